//! The kept frames follow from the set of frames alone.

use crate::shared::entries::{all, entries, entry, holding, slot, stamp};
use proptest::prelude::*;
use sealane_document::exchange::digest;
use sealane_document::limits::{APPLICATION_TYPES, MAX_ANSWERS_KEPT, MAX_DOCUMENT_BYTES, kept};
use sealane_document::{RegisterEntry, RegisterSet, TakeOutcome};
use sealane_message::DataType;

/// All that one holds, taken by the other.
fn merged(into: &RegisterSet, from: &RegisterSet) -> RegisterSet {
    let mut both = into.clone();
    from.iter().for_each(|entry| {
        both.take(entry.clone());
    });
    both
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn neither_order_nor_repeats_matter(
        entries in entries(300),
        seed in any::<u64>(),
    ) {
        let mut shuffled = entries.clone();
        shuffled.extend(entries.iter().step_by(3).cloned());
        shuffled.sort_by_key(|entry| blake3_like(seed, entry));
        let (one, other) = (holding(&entries), holding(&shuffled));
        prop_assert_eq!(all(&one), all(&other));
        prop_assert_eq!(digest(&one), digest(&other));
        prop_assert_eq!(one.len(), all(&one).len());
    }

    #[test]
    fn merging_is_commutative_associative_and_idempotent(
        a in entries(150),
        b in entries(150),
        c in entries(150),
    ) {
        let [a, b, c] = [holding(&a), holding(&b), holding(&c)];
        prop_assert_eq!(all(&merged(&a, &b)), all(&merged(&b, &a)));
        let left = merged(&merged(&a, &b), &c);
        prop_assert_eq!(all(&left), all(&merged(&a, &merged(&b, &c))));
        prop_assert_eq!(all(&merged(&a, &a)), all(&a));
    }
}

/// A number that shuffles.
fn blake3_like(seed: u64, entry: &RegisterEntry) -> u64 {
    let mark = entry.mark().0;
    let word = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at: usize| mark[at]));
    (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

#[test]
fn the_newest_frames_are_kept_and_no_more() {
    let mut registers = RegisterSet::new();
    let location = |counter| entry(1, DataType::LOCATION, stamp(2, counter), 0);
    assert_eq!(registers.take(location(5)), TakeOutcome::New);
    assert_eq!(registers.take(location(5)), TakeOutcome::Known);
    assert_eq!(registers.take(location(4)), TakeOutcome::Older);
    assert_eq!(registers.take(entry(1, DataType::LOCATION, stamp(1, 900), 0)), TakeOutcome::Older);
    assert_eq!(registers.take(location(6)), TakeOutcome::New);
    assert_eq!(all(&registers), [location(6)]);
    for counter in 0..2 * MAX_ANSWERS_KEPT as u64 {
        let answer = entry(1, DataType::ACKNOWLEDGEMENT, stamp(2, counter), 0);
        assert_eq!(registers.take(answer), TakeOutcome::New);
    }
    let answers: Vec<_> = registers.of(slot(1), DataType::ACKNOWLEDGEMENT).collect();
    assert_eq!((answers.len(), answers[0].stamp.counter), (MAX_ANSWERS_KEPT, 64));
    assert_eq!(registers.len(), 1 + MAX_ANSWERS_KEPT);
    registers.forget(slot(1));
    assert!(registers.is_empty());
}

#[test]
fn one_of_two_frames_with_one_stamp_is_kept_by_all() {
    let [one, other] = [0, 1].map(|copy| entry(1, DataType::COUNTER, stamp(0, 1), copy));
    let [mut first, mut second] = [&one, &other].map(|only| holding(std::slice::from_ref(only)));
    let took = (first.take(other), second.take(one));
    let conflict = |is_kept| TakeOutcome::Conflict { is_kept };
    assert!(took == (conflict(true), conflict(false)) || took == (conflict(false), conflict(true)));
    assert_eq!(all(&first), all(&second));
    assert_eq!((first.conflicts(), first.len()), (1, 1));
}

#[test]
fn what_is_no_document_is_refused() {
    let mut registers = RegisterSet::new();
    for of in [DataType::UNKNOWN, DataType::PACKET, DataType::CONTROL, DataType::from_number(80)] {
        assert_eq!(registers.take(entry(1, of, stamp(0, 0), 0)), TakeOutcome::Refused, "{of}");
    }
    let frame = vec![0; MAX_DOCUMENT_BYTES + 1];
    let long = RegisterEntry::new(slot(1), DataType::CHAT, stamp(0, 0), frame.into());
    assert_eq!(registers.take(long), TakeOutcome::Refused);
    assert!(registers.is_empty());
    for number in APPLICATION_TYPES {
        assert_eq!(kept(DataType::from_number(number)), 1);
    }
}
