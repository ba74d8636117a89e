//! Two neighbours find out what each lacks, in few bytes, whatever the other says.

use crate::shared::entries::{all, entries, entry, holding, slot, stamp};
use proptest::prelude::*;
use sealane_document::exchange::{differing, digest, inventory, lacks, overview};
use sealane_document::{ERRORS, ExchangeError, RegisterEntry, RegisterSet};
use sealane_message::DataType;

/// The frames that `from` gives to `to` after an overview of `from` and an inventory of `to`.
fn given(from: &RegisterSet, to: &RegisterSet, salt: u8, max_bytes: usize) -> Vec<RegisterEntry> {
    let mut given = vec![];
    for overview in overview(from, salt, max_bytes) {
        assert!(overview.len() <= max_bytes);
        let origins = differing(to, &overview).unwrap();
        for inventory in inventory(to, &origins, max_bytes) {
            given.extend(lacks(from, &inventory).unwrap().into_iter().cloned());
        }
    }
    given
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_hold_the_same_after_two_rounds_each_way(
        a in entries(300),
        b in entries(300),
        max_bytes in 11_usize..400,
    ) {
        let (mut a, mut b) = (holding(&a), holding(&b));
        // The second round is for frames with one stamp, which the first shows where others lack.
        for salt in 0..2 {
            let (to_b, to_a) = (given(&a, &b, salt, max_bytes), given(&b, &a, salt, max_bytes));
            to_b.into_iter().for_each(|entry| { b.take(entry); });
            to_a.into_iter().for_each(|entry| { a.take(entry); });
        }
        prop_assert_eq!(all(&a), all(&b));
        prop_assert_eq!(digest(&a), digest(&b));
        prop_assert!(given(&a, &b, 2, max_bytes).is_empty());
    }

    #[test]
    fn what_a_neighbour_makes_up_is_refused_or_harmless(
        held in entries(100),
        sort in 0..4_u8,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let held = holding(&held);
        let message = [vec![sort], bytes].concat();
        if let Ok(origins) = differing(&held, &message) {
            prop_assert!(origins.windows(2).all(|two| two[0] < two[1]));
        }
        if let Ok(lacking) = lacks(&held, &message) {
            prop_assert!(lacking.len() <= held.len());
        }
    }
}

#[test]
fn nothing_is_said_where_nothing_differs() {
    let held = holding(&[entry(3, DataType::LOCATION, stamp(1, 7), 0)]);
    for overview in overview(&held, 7, 64) {
        assert_eq!(differing(&held, &overview), Ok(vec![]));
    }
    assert!(inventory(&held, &[], 64).is_empty());
    assert_eq!(overview(&RegisterSet::new(), 7, 64).len(), 1, "who holds nothing says so");
}

#[test]
fn an_overview_of_20_origins_takes_86_bytes_and_an_inventory_of_one_36() {
    let mut registers = RegisterSet::new();
    for origin in 0..20 {
        for of in [DataType::COUNTER, DataType::VITALS, DataType::LOCATION, DataType::EMERGENCY] {
            registers.take(entry(origin, of, stamp(3, 70_000), 0));
        }
    }
    let overviews = overview(&registers, 7, 222);
    assert_eq!(overviews.iter().map(Vec::len).collect::<Vec<_>>(), [86]);
    let inventories = inventory(&registers, &[slot(7)], 222);
    assert_eq!(inventories.iter().map(Vec::len).collect::<Vec<_>>(), [36]);
}

#[test]
fn urgent_frames_go_first_and_then_the_newest() {
    let of = |of, counter| entry(1, of, stamp(1, counter), 0);
    let held = holding(&[
        of(DataType::LOCATION, 9),
        of(DataType::CHAT, 7),
        of(DataType::CHAT, 8),
        of(DataType::EMERGENCY, 1),
    ]);
    let asked = inventory(&RegisterSet::new(), &[slot(1)], 64).concat();
    let given: Vec<_> =
        lacks(&held, &asked).unwrap().iter().map(|entry| entry.stamp.counter).collect();
    assert_eq!(given, [1, 9, 8, 7]);
}

#[test]
fn messages_that_no_neighbour_writes_are_refused_by_name() {
    use ExchangeError::{Length, Order, Unknown};
    let held = RegisterSet::new();
    for (message, error) in [
        (vec![], Length),
        (vec![9], Unknown),
        (vec![2], Unknown),
        (vec![1], Length),
        (vec![1, 9, 0, 0], Length),
        (vec![1, 9, 0, 0, 0xff, 0xff], Order),
        (vec![1, 9, 0, 0, 1, 0, 2, 1, 1, 1], Order),
        (vec![1, 9, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1], Order),
        (vec![1, 9, 0, 0, 1, 0, 0x81, 0, 1, 1, 1], Order),
        (vec![1, 9, 0, 0, 1, 0, 1, 1, 1], Length),
    ] {
        assert_eq!(differing(&held, &message), Err(error), "{message:?}");
    }
    for (message, error) in [
        (vec![1], Unknown),
        (vec![2, 0], Length),
        (vec![2, 1, 0, 1, 4, 0, 0, 0], Order),
        (vec![2, 1, 0, 1, 4, 65, 0, 0], Order),
        (vec![2, 1, 0, 1, 4, 1, 0, 0, 1], Length),
        (vec![2, 1, 0, 1, 4, 2, 0, 0, 1, 1, 0, 0], Order),
        (vec![2, 1, 0, 1, 4, 2, 0, 0, 1, 1, 0, 2], Order),
        (vec![2, 1, 0, 1, 0x84, 0, 1, 0, 0, 1, 1], Order),
        (vec![2, 1, 0, 2, 4, 1, 0, 0, 1, 1, 4, 1, 0, 0, 1, 1], Order),
        (vec![2, 1, 0, 0, 1, 0, 0], Order),
    ] {
        assert_eq!(lacks(&held, &message).map(|_| ()), Err(error), "{message:?}");
    }
    let page = include_str!("../../../../spec/document.md");
    for error in ERRORS {
        assert!(page.contains(&format!("| {} | `{}` |", error.code, error.name)), "{}", error.code);
    }
}
