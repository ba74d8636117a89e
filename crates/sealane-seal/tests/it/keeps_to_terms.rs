//! Nothing opens of a slot in an epoch in which nobody had it, and class S only of who had it.

use crate::shared::world::*;
use sealane_seal::*;

/// A message of slot 1 in an epoch, as its sender sealed it.
fn message_of(suite: Suite, class: Class, form: Form, epoch: u64, member: u8) -> Sealed {
    let group = group_of(suite, class);
    let mut sender = sealer(group, slot(1), &epochs_at(group, epoch));
    sender.set_signing_key(signing_key_of(slot(1), member));
    seal(&mut sender, class, form, META, BODY)
}

fn term_of(since: u64, until: Option<u64>, member: u8) -> Term {
    let verifying_key = signing_key_of(slot(1), member).verifying_key();
    Term { slot: slot(1), since: Epoch(since), until: until.map(Epoch), verifying_key }
}

/// Refused, both ways, and no key was applied: the bytes are as they came.
fn is_no_members(message: &Sealed, reader: &mut Opener, near: u64, what: &str) {
    let mut bytes = message.bytes.clone();
    let (form, clear) = (message.form, message.clear);
    let stored = reader.open_stored(Epoch(near), form, &message.attached(), &mut bytes, clear);
    assert_eq!(stored.unwrap_err(), Error::NotMember, "{what}");
    let live = reader.open_live(form, &message.attached(), &mut bytes, clear);
    assert_eq!(live.map(|_| ()), Err(Error::NotMember), "{what}");
    assert_eq!(bytes, message.bytes, "{what}: a key was applied");
}

#[test]
fn every_class_before_since_and_from_until_on() {
    for suite in Suite::ALL {
        for class in Class::ALL {
            let group = group_of(suite, class);
            for newest in 0..8 {
                let mut reader = opener(group, &epochs_at(group, newest));
                reader.set_terms([term_of(3, Some(6), 9), term(0)]).unwrap();
                expect(&mut reader, 1, CONTEXT);
                for form in [Form::Full, Form::Compact] {
                    let message = message_of(suite, class, form, newest, 9);
                    let what = format!("{class:?} {form:?} in epoch {newest}");
                    if (3..6).contains(&newest) {
                        message.stored(&mut reader, newest).expect(&what);
                        let _ = message.live(&mut reader);
                    } else {
                        is_no_members(&message, &mut reader, newest, &what);
                    }
                }
            }
        }
    }
}

/// The first epoch counts, the last does not, in a store as well as live one epoch late.
#[test]
fn at_the_edges_of_a_term() {
    let group = group(Suite::Aes256Gcm);
    for (epoch, is_member) in [(2, false), (3, true), (5, true), (6, false)] {
        // One epoch later, so that the message comes late and live.
        let mut reader = opener(group, &epochs_at(group, epoch + 1));
        reader.set_terms([term_of(3, Some(6), 9)]).unwrap();
        expect(&mut reader, 1, CONTEXT);
        for class in [Class::Authenticated, Class::Group, Class::Signed] {
            let message = message_of(Suite::Aes256Gcm, class, Form::Full, epoch, 9);
            let stored = message.stored(&mut reader, epoch).map(|_| ());
            let mut bytes = message.bytes.clone();
            let (form, clear) = (message.form, message.clear);
            let live = reader.open_live(form, &message.attached(), &mut bytes, clear).map(|_| ());
            let expected = if is_member { Ok(()) } else { Err(Error::NotMember) };
            assert_eq!((stored, live), (expected, expected), "{class:?} {epoch}");
        }
    }
}

/// Leaves at 3, comes back at 5 with another key.
#[test]
fn each_epoch_is_verified_by_the_key_of_its_member() {
    for suite in Suite::ALL {
        let group = group(suite);
        let all = epochs_at(group, 7);
        let mut reader = opener(group, &all);
        reader.set_terms([term_of(5, None, 20), term_of(0, Some(3), 10)]).unwrap();
        for epoch in 0..=7 {
            for member in [10, 20] {
                let message = message_of(suite, Class::Signed, Form::Full, epoch, member);
                let read = message.stored(&mut reader, 7).map(|_| ());
                let expected = match (epoch, member) {
                    (..3, 10) | (5.., 20) => Ok(()),
                    (3..5, _) => Err(Error::NotMember),
                    _ => Err(Error::Signature),
                };
                assert_eq!(read, expected, "member {member} in epoch {epoch}");
            }
        }
    }
}

/// Only the terms that are told later count, also for messages of keys that are known already.
#[test]
fn a_member_that_left_is_not_read_any_more() {
    for class in Class::ALL {
        let group = group_of(Suite::Aes256Gcm, class);
        let mut reader = opener(group, &epochs_at(group, 4));
        expect(&mut reader, 1, CONTEXT);
        let before = message_of(Suite::Aes256Gcm, class, Form::Full, 3, 9);
        let mut sender = sealer(group, slot(1), &epochs_at(group, 4));
        let [first, second] = [0, 1].map(|_| seal(&mut sender, class, Form::Full, META, BODY));
        first.live(&mut reader).unwrap();
        reader.set_terms([term_of(0, Some(4), 9)]).unwrap();
        is_no_members(&second, &mut reader, 4, "live session, key derived");
        is_no_members(&first, &mut reader, 4, "read before");
        before.stored(&mut reader, 4).expect("of its own time");
        reader.set_terms([]).unwrap();
        is_no_members(&before, &mut reader, 4, "nobody is a member");
        reader.set_terms([term_of(0, None, 9)]).unwrap();
        second.live(&mut reader).expect("it is one after all");
    }
}

/// Announcements as well, before a trial is spent on them.
#[test]
fn who_is_no_member_announces_nothing() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs_at(group, 4);
    let mut reader = opener(group, &epochs);
    reader.set_terms([term_of(0, Some(4), 9), term(2)]).unwrap();
    for number in 0..2 * limits::MAX_TRIALS {
        let context = SenderContext(u64::from(number).to_be_bytes());
        let mut sender = sealer_of(group, slot(1), &epochs, context, 0);
        let announced = announcement(&mut sender, 1);
        let mut bytes = announced.bytes.clone();
        let refused = reader.open_announcement(&announced.attached(), &mut bytes).map(|_| ());
        assert_eq!((refused, bytes), (Err(Error::NotMember), announced.bytes));
    }
    let mut honest = sealer(group, slot(2), &epochs);
    announcement(&mut honest, 1).announce(&mut reader).expect("no trial was spent");
}

/// A slot goes from one member to another: whatever start the first one named, at the last moment
/// and out of malice, the next one is heard.
#[test]
fn the_start_of_who_left_does_not_bind_who_comes() {
    let group = group(Suite::Aes256Gcm);
    let mut epochs = epochs(group);
    let mut reader = opener(group, &epochs);
    reader.set_terms([term_of(0, Some(1), 10), term_of(1, None, 20)]).unwrap();
    let mut leaving = sealer(group, slot(1), &epochs);
    leaving.set_signing_key(signing_key_of(slot(1), 10));
    let last = announcement(&mut leaving, u64::MAX);
    let said = seal(&mut leaving, Class::Group, Form::Full, META, BODY);
    last.announce(&mut reader).unwrap();
    said.live(&mut reader).unwrap();

    reader.insert(Epoch(1), advance(&mut epochs)).unwrap();
    let mut next = sealer_of(group, slot(1), &epochs, SenderContext([2; 8]), 0);
    next.set_signing_key(signing_key_of(slot(1), 20));
    announcement(&mut next, 5).announce(&mut reader).unwrap();
    let replayed = last.announce(&mut reader).unwrap_err();
    assert_eq!(replayed, Error::Replayed, "of an earlier epoch, however late its start");
    assert_eq!(said.live(&mut reader).unwrap_err(), Error::Unannounced);
    seal(&mut next, Class::Group, Form::Full, META, BODY).live(&mut reader).unwrap();
}
