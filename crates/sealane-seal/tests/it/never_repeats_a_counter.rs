//! No key and nonce are used twice, whatever is restarted, copied, restored or forked.

use std::collections::BTreeSet;

use crate::shared::world::*;
use proptest::prelude::*;
use sealane_seal::*;

/// A body of zeros shows the key stream.
const ZEROS: [u8; 32] = [0; 32];

fn context(number: u64) -> SenderContext {
    SenderContext(number.to_be_bytes())
}

/// The ciphertext of a body, and its tag.
fn parts(message: &Sealed, body: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (text, tag) = message.bytes.split_at(message.bytes.len() - limits::TAG_BYTES);
    let header = message.header().encode(message.form).len();
    (text[header..header + body.len()].to_vec(), tag.to_vec())
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

fn counter(sealer: &mut Sealer) -> Result<u64, Error> {
    let mut out = Vec::new();
    let expected = sealer.next_counter();
    let binding = Binding::link();
    let sealed = sealer.append(Class::Group, Form::Full, &binding, META, BODY, &mut out);
    assert_eq!(sealed.is_ok(), expected.is_ok());
    sealed?;
    Ok(SframeHeader::parse(&out, Form::Full, sealer.epoch()).unwrap().0.counter)
}

/// Two starts of one slot, in one epoch, at one counter: a copied disk, a restored snapshot, a
/// cloned machine, a forked process.
#[test]
fn two_starts_with_one_counter_share_no_key_stream() {
    let (one, other) = (BODY, &BODY.iter().map(|byte| byte ^ 0x5a).collect::<Vec<_>>()[..]);
    for suite in Suite::ALL {
        for class in [Class::Group, Class::Signed, Class::Peer] {
            let group = group_of(suite, class);
            let epochs = epochs(group);
            let start = |number| sealer_of(group, slot(1), &epochs, context(number), 77);
            let sealed = |number, body| seal(&mut start(number), class, Form::Full, META, body);
            let first = sealed(0, one);
            // The control: under the same context the two-time pad shows both bodies.
            let again = sealed(0, other);
            assert_eq!(first.bytes[..4], again.bytes[..4], "slot, epoch and counter are the same");
            let texts = |again: &Sealed| xor(&parts(&first, one).0, &parts(again, other).0);
            assert_eq!(texts(&again), xor(one, other), "{suite:?} {class:?}");
            for bit in 0..64 {
                let again = sealed(1 << bit, other);
                assert_eq!(first.bytes[..4], again.bytes[..4]);
                let same = xor(&texts(&again), &xor(one, other));
                assert!(same.iter().filter(|byte| **byte == 0).count() < 8, "{suite:?} {bit}");
            }
        }
    }
}

/// In class A, too: a tag of one start is not that of another over the same body.
#[test]
fn two_starts_with_one_counter_share_no_tag() {
    for suite in Suite::ALL {
        for class in Class::ALL {
            let group = group_of(suite, class);
            let epochs = epochs(group);
            let mut tags = BTreeSet::new();
            for number in 0..100 {
                let mut sealer = sealer_of(group, slot(1), &epochs, context(number), 77);
                let message = seal(&mut sealer, class, Form::Full, META, BODY);
                assert!(tags.insert(parts(&message, &[]).1), "{suite:?} {class:?} {number}");
            }
        }
    }
}

#[test]
fn many_starts_give_as_many_key_streams() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut streams = BTreeSet::new();
    for number in 0..2000 {
        let mut sealer = sealer_of(group, slot(1), &epochs, context(number), 0);
        for _ in 0..2 {
            let message = seal(&mut sealer, Class::Group, Form::Compact, META, &ZEROS);
            assert!(streams.insert(parts(&message, &ZEROS).0), "{number}");
        }
    }
}

#[test]
fn the_last_counter_is_the_last() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    assert_eq!(limits::MAX_COUNTER, (1 << 40) - 1);
    let mut sealer = sealer_of(group, slot(1), &epochs, CONTEXT, limits::MAX_COUNTER - 1);
    assert_eq!(counter(&mut sealer), Ok(limits::MAX_COUNTER - 1));
    assert_eq!(counter(&mut sealer), Ok(limits::MAX_COUNTER));
    assert_eq!(counter(&mut sealer), Err(Error::CountersUsedUp));
    assert_eq!(sealer.next_counter(), Err(Error::CountersUsedUp));
    for next in [limits::MAX_COUNTER + 1, u64::MAX] {
        let mut sealer = sealer_of(group, slot(1), &epochs, context(1), next);
        assert_eq!(counter(&mut sealer), Err(Error::CountersUsedUp), "{next}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Seal(Class),
    /// Another start, with whatever counter its disk has.
    Start(u64),
    /// The same start enters the next epoch, with whatever counter.
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![Just(Class::Group), Just(Class::Signed)];
    prop_oneof![
        6 => class.prop_map(Step::Seal),
        2 => (0..5_u64).prop_map(Step::Start),
        1 => (0..5_u64).prop_map(Step::Advance),
    ]
}

proptest! {
    /// Law: whatever counters a slot's starts begin with, no key stream comes twice.
    #[test]
    fn through_any_life(steps in prop::collection::vec(step(), 1..60)) {
        let group = group(Suite::Aes256Gcm);
        let mut epochs = epochs(group);
        let (mut starts, mut streams) = (0, BTreeSet::new());
        let mut sealer = sealer_of(group, slot(1), &epochs, context(starts), 0);
        for step in steps {
            match step {
                Step::Seal(class) => {
                    let message = seal(&mut sealer, class, Form::Full, META, &ZEROS);
                    prop_assert!(streams.insert(parts(&message, &ZEROS).0));
                }
                Step::Start(next) => {
                    starts += 1;
                    sealer = sealer_of(group, slot(1), &epochs, context(starts), next);
                }
                Step::Advance(next) => {
                    drop(advance(&mut epochs));
                    sealer = sealer_of(group, slot(1), &epochs, context(starts), next);
                }
            }
        }
    }
}
