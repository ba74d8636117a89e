//! The state that a reader holds, which no test through the public API can count.

use super::*;
use crate::sign::SigningKey;
use crate::{Binding, GroupId, History, Sealer, Suite};

const META: &[u8] = b"meta";

fn group() -> Group {
    Group::new(GroupId([7; 32]), Suite::Aes256Gcm)
}

fn epochs() -> Epochs {
    Epochs::new(group().id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]))
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn signing_key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn reader() -> Opener {
    let mut reader = Opener::new(group(), None, epochs()).unwrap();
    let verifying_key = signing_key().verifying_key();
    let terms = (0..=1023).map(slot);
    let (since, until) = (Epoch(0), None);
    reader.set_terms(terms.map(|slot| Term { slot, since, until, verifying_key })).unwrap();
    reader
}

fn announcement(slot: Slot, context: SenderContext) -> Vec<u8> {
    let mut sealer = Sealer::new(group(), slot, context, &epochs(), 0).unwrap();
    sealer.set_signing_key(signing_key());
    let (body, mut sealed) = (Announcement { start: 5, orders: 0 }.to_bytes(), Vec::new());
    let (class, form, binding) = (Class::Signed, Form::Full, Binding::link());
    sealer.append(class, form, &binding, META, &body, &mut sealed).unwrap();
    sealed
}

/// Sessions, keys, and how many of each there is room for.
fn held(reader: &Opener) -> [usize; 4] {
    let (sessions, keys) = (reader.sessions.entries(), reader.keys.entries());
    let count = |is_held: &mut dyn Iterator<Item = bool>| is_held.filter(|held| *held).count();
    [
        count(&mut sessions.iter().map(Option::is_some)),
        count(&mut keys.iter().map(Option::is_some)),
        sessions.len(),
        keys.len(),
    ]
}

#[test]
fn forged_contexts_and_slots_are_not_held() {
    let (mut reader, binding) = (reader(), Binding::link());
    let honest = SenderContext([1; 8]);
    let mut first = announcement(slot(3), honest);
    let attached = Attached { context: honest, binding: &binding, meta: META };
    let _ = reader.open_announcement(&attached, &mut first).unwrap().accept();
    let before = held(&reader);
    assert_eq!(before[..2], [1, 1]);
    for number in 0..3000_u64 {
        let context = SenderContext(number.to_be_bytes());
        let mut forged = announcement(slot((number % 1024) as u16), context);
        *forged.last_mut().unwrap() ^= 1;
        let attached = Attached { context, binding: &binding, meta: META };
        reader.allow_trials();
        let refused = reader.open_announcement(&attached, &mut forged.clone());
        assert_eq!(refused.map(|_| ()), Err(Error::NotAuthentic));
        let refused = reader.open_live(Form::Full, &attached, &mut forged.clone(), 0);
        assert_eq!(refused.map(|_| ()), Err(Error::Unannounced));
        let refused = reader.open_stored(Epoch(0), Form::Full, &attached, &mut forged, 0);
        assert_eq!(refused, Err(Error::NotAuthentic));
    }
    assert_eq!(held(&reader), before);
    assert_eq!(reader.announced(slot(3)), Some(honest));
}

/// An authentic announcement that is not accepted leaves its key, and no session.
#[test]
fn a_dropped_announcement_begins_nothing() {
    let (mut reader, binding) = (reader(), Binding::link());
    let context = SenderContext([1; 8]);
    let mut sealed = announcement(slot(3), context);
    let attached = Attached { context, binding: &binding, meta: META };
    let mut announced = reader.open_announcement(&attached, &mut sealed).unwrap();
    assert!(announced.to_store(0).is_some());
    drop(announced);
    assert_eq!((held(&reader)[0], reader.announced(slot(3))), (0, None));
}

/// However often a member starts, it takes the room of one.
#[test]
fn a_later_start_takes_the_place_of_the_one_before() {
    let (mut reader, binding) = (reader(), Binding::link());
    let mut before = None;
    for start in 1..200_u64 {
        let context = SenderContext(start.to_be_bytes());
        let mut sealer = Sealer::new(group(), slot(3), context, &epochs(), 0).unwrap();
        sealer.set_signing_key(signing_key());
        let (body, mut sealed) = (Announcement { start, orders: 0 }.to_bytes(), Vec::new());
        let (class, form) = (Class::Signed, Form::Full);
        sealer.append(class, form, &binding, META, &body, &mut sealed).unwrap();
        let attached = Attached { context, binding: &binding, meta: META };
        reader.allow_trials();
        let _ = reader.open_announcement(&attached, &mut sealed).unwrap().accept();
        assert_eq!(*before.get_or_insert(held(&reader)), held(&reader));
    }
}
