//! No key and counter are used twice, whatever is restarted, copied or restored.

use std::collections::BTreeSet;

use crate::shared::world::{self, *};
use proptest::prelude::*;
use sealane_seal::*;

const HERE: Witness = Witness([4; 32]);
const ELSEWHERE: Witness = Witness([5; 32]);

fn fresh(epochs: &Epochs) -> Sealer {
    Sealer::fresh(group(Suite::Aes256Gcm), slot(1), epochs, HERE).unwrap()
}

fn resume(stored: &[u8], epochs: &Epochs, witness: Witness) -> Result<Sealer, Error> {
    let state = CounterState::from_bytes(stored).unwrap();
    Sealer::resume(group(Suite::Aes256Gcm), &state, epochs, witness)
}

fn counter(sealer: &mut Sealer) -> Result<u64, Error> {
    let mut out = Vec::new();
    let expected = sealer.next_counter();
    let sealed = sealer.append(Class::Group, Form::Full, META, BODY, &mut out);
    assert_eq!(sealed.is_ok(), expected.is_ok());
    sealed?;
    Ok(SframeHeader::parse(&out, Form::Full, sealer.epoch()).unwrap().0.counter)
}

#[test]
fn nothing_is_sealed_before_a_block_is_stored() {
    let epochs = epochs(group(Suite::Aes256Gcm));
    let mut sealer = fresh(&epochs);
    assert_eq!(counter(&mut sealer), Err(Error::NotReserved));
    let block = sealer.reserve(2).unwrap();
    assert!(block.is_first());
    assert_eq!(counter(&mut sealer), Err(Error::NotReserved), "asked for is not stored");
    sealer.confirm(block).unwrap();
    assert_eq!(sealer.remaining(), 2);
    assert_eq!(counter(&mut sealer), Ok(0));
    let next = sealer.reserve(2).unwrap();
    assert!(!next.is_first());
    assert_eq!(counter(&mut sealer), Ok(1), "the block in use does not wait for the next");
    assert_eq!(counter(&mut sealer), Err(Error::NotReserved));
    sealer.confirm(next).unwrap();
    assert_eq!(counter(&mut sealer), Ok(2));
}

#[test]
fn a_restart_goes_on_at_the_stored_bound() {
    let mut epochs = epochs(group(Suite::Aes256Gcm));
    let mut sealer = fresh(&epochs);
    let block = sealer.reserve(100).unwrap();
    let stored = block.state().to_bytes();
    sealer.confirm(block).unwrap();
    assert_eq!(counter(&mut sealer), Ok(0));
    let mut again = resume(&stored, &epochs, HERE).unwrap();
    assert_eq!(counter(&mut again), Err(Error::NotReserved));
    let block = again.reserve(1).unwrap();
    assert!(!block.is_first());
    again.confirm(block).unwrap();
    assert_eq!(counter(&mut again), Ok(100));

    epochs.advance(Epoch(1)).unwrap();
    let mut later = resume(&stored, &epochs, HERE).unwrap();
    assert_eq!(counter(&mut later), Err(Error::NotReserved), "a new epoch reserves anew");
    lease(&mut later, 1);
    assert_eq!((later.epoch(), counter(&mut later)), (Epoch(1), Ok(0)));
}

#[test]
fn a_copied_or_foreign_state_is_refused() {
    let epochs = epochs(group(Suite::Aes256Gcm));
    let block = fresh(&epochs).reserve(100).unwrap();
    let stored = block.state().to_bytes();
    assert_eq!(resume(&stored, &epochs, ELSEWHERE).unwrap_err(), Error::ClonedState);
    let other = Group::new(GroupId([1; 32]), Suite::Aes256Gcm);
    let state = CounterState::from_bytes(&stored).unwrap();
    let other_epochs = world::epochs(other);
    let resumed = Sealer::resume(other, &state, &other_epochs, HERE);
    assert_eq!(resumed.unwrap_err(), Error::ClonedState);
}

#[test]
fn a_state_ahead_of_the_secrets_is_not_resumed() {
    let group = group(Suite::Aes256Gcm);
    let block = fresh(&epochs_at(group, 2)).reserve(1).unwrap();
    let stored = block.state().to_bytes();
    assert_eq!(resume(&stored, &epochs(group), HERE).unwrap_err(), Error::EpochUnknown);
}

#[test]
fn who_hears_itself_falls_silent() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut reader = opener(group, &epochs);
    let (mut first, mut clone) = (sealer(group, slot(1), &epochs), sealer(group, slot(1), &epochs));
    let own = seal(&mut first, Class::Group, Form::Full, META, BODY);
    let (own, _) = own.stored(&mut reader, 0).unwrap();
    first.heard(&own).expect("what was sealed here is no clone");
    seal(&mut clone, Class::Group, Form::Full, META, BODY);
    let foreign = seal(&mut clone, Class::Group, Form::Full, META, BODY);
    let (foreign, _) = foreign.stored(&mut reader, 0).unwrap();
    assert_eq!(first.heard(&foreign), Err(Error::ClonedState));
    assert_eq!(counter(&mut first), Err(Error::ClonedState));
    assert_eq!(first.reserve(1).unwrap_err(), Error::ClonedState);
    assert_eq!(first.heard(&own), Err(Error::ClonedState), "for good");
}

#[test]
fn a_reservation_does_not_outlive_its_epoch() {
    let mut epochs = epochs(group(Suite::Aes256Gcm));
    let mut sealer = fresh(&epochs);
    let block = sealer.reserve(5).unwrap();
    assert_eq!(sealer.enter_newest(&epochs), Err(Error::EpochStep));
    epochs.advance(Epoch(1)).unwrap();
    sealer.enter_newest(&epochs).unwrap();
    assert_eq!(sealer.confirm(block), Err(Error::EpochStep));
    assert_eq!(counter(&mut sealer), Err(Error::NotReserved));
}

#[test]
fn the_last_counter_is_the_last() {
    let epochs = epochs(group(Suite::Aes256Gcm));
    let block = fresh(&epochs).reserve(1).unwrap();
    let mut stored = block.state().to_bytes();
    stored[43..51].copy_from_slice(&limits::MAX_COUNTER.to_be_bytes());
    let mut sealer = resume(&stored, &epochs, HERE).unwrap();
    lease(&mut sealer, 1000);
    assert_eq!(sealer.remaining(), 1);
    assert_eq!(counter(&mut sealer), Ok(limits::MAX_COUNTER));
    assert_eq!(counter(&mut sealer), Err(Error::CountersUsedUp));
    assert_eq!(sealer.reserve(1).unwrap_err(), Error::CountersUsedUp);
}

/// The bound behind the last counter is that of a sender which has used them all up.
#[test]
fn a_state_whose_counters_are_used_up_is_read_and_gives_none() {
    let epochs = epochs(group(Suite::Aes256Gcm));
    let mut stored = fresh(&epochs).reserve(1).unwrap().state().to_bytes();
    stored[43..51].copy_from_slice(&(limits::MAX_COUNTER + 1).to_be_bytes());
    let mut sealer = resume(&stored, &epochs, HERE).unwrap();
    assert_eq!(sealer.reserve(1).unwrap_err(), Error::CountersUsedUp);
    assert_eq!(counter(&mut sealer), Err(Error::CountersUsedUp));
    stored[43..51].copy_from_slice(&(limits::MAX_COUNTER + 2).to_be_bytes());
    assert_eq!(CounterState::from_bytes(&stored), Err(Error::Malformed));
}

#[test]
fn a_damaged_state_is_refused() {
    let epochs = epochs(group(Suite::Aes256Gcm));
    let stored = fresh(&epochs).reserve(1).unwrap().state().to_bytes();
    assert_eq!(CounterState::from_bytes(&stored[1..]), Err(Error::Malformed));
    assert_eq!(CounterState::from_bytes(&[&stored[..], &[0]].concat()), Err(Error::Malformed));
    for (at, value) in [(0, 2), (33, 4), (43, 1)] {
        let mut bytes = stored;
        bytes[at] = value;
        assert_eq!(CounterState::from_bytes(&bytes), Err(Error::Malformed), "{at}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Seal,
    Reserve(u64),
    /// Stores the reservation and stops before confirming it.
    StoreAndStop(u64),
    Stop,
    Advance,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Seal),
        3 => (1..5_u64).prop_map(Step::Reserve),
        1 => (1..5_u64).prop_map(Step::StoreAndStop),
        1 => Just(Step::Stop),
        1 => Just(Step::Advance),
    ]
}

proptest! {
    #[test]
    fn through_any_life(steps in prop::collection::vec(step(), 1..60)) {
        let mut epochs = epochs(group(Suite::Aes256Gcm));
        let (mut sealer, mut used) = (fresh(&epochs), BTreeSet::new());
        let mut disk = None;
        let restart = |disk: &Option<[u8; CounterState::BYTES]>, epochs: &Epochs| match disk {
            Some(stored) => resume(stored, epochs, HERE).unwrap(),
            None => fresh(epochs),
        };
        for step in steps {
            match step {
                Step::Seal => {
                    if let Ok(counter) = counter(&mut sealer) {
                        prop_assert!(used.insert((sealer.epoch(), counter)));
                    }
                }
                Step::Reserve(count) => {
                    let block = sealer.reserve(count).unwrap();
                    prop_assert_eq!(block.is_first(), disk.is_none());
                    disk = Some(block.state().to_bytes());
                    sealer.confirm(block).unwrap();
                }
                Step::StoreAndStop(count) => {
                    disk = Some(sealer.reserve(count).unwrap().state().to_bytes());
                    sealer = restart(&disk, &epochs);
                }
                Step::Stop => sealer = restart(&disk, &epochs),
                Step::Advance => {
                    epochs.advance(Epoch(epochs.newest().0 + 1)).unwrap();
                    sealer.enter_newest(&epochs).unwrap();
                }
            }
        }
    }
}
