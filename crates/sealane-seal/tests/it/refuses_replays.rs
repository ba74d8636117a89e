//! A message is taken once, in its epoch, from its sender, through restarts.

use crate::shared::world::*;
use sealane_seal::*;

const C: Class = Class::Group;

fn refused(message: &Sealed, opener: &mut Opener, expected: Error) {
    let before = state(opener);
    assert_eq!(message.live(opener).unwrap_err(), expected);
    assert_eq!(state(opener), before);
}

/// A sender, and a reader that knows it.
fn met(group: Group, epochs: &Epochs) -> (Sealer, Opener) {
    let (mut sender, mut reader) = (sealer(group, slot(1), epochs), opener(group, epochs));
    introduce(&mut sender, &mut reader);
    (sender, reader)
}

#[test]
fn in_the_same_epoch() {
    for suite in Suite::ALL {
        let group = group(suite);
        let epochs = epochs(group);
        let (mut sender, mut reader) = met(group, &epochs);
        let messages: Vec<_> =
            (0..20).map(|n| seal(&mut sender, Class::ALL[n % 3], Form::Full, META, BODY)).collect();
        for message in messages.iter().rev() {
            message.live(&mut reader).unwrap();
            messages
                .iter()
                .rev()
                .take_while(|other| other.bytes != message.bytes)
                .for_each(|other| refused(other, &mut reader, Error::Replayed));
        }
        messages.iter().for_each(|message| refused(message, &mut reader, Error::Replayed));
    }
}

#[test]
fn in_the_other_form() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = met(group, &epochs);
    let full = seal(&mut sender, C, Form::Full, META, BODY);
    let compact = full.with_header(full.header(), Form::Compact);
    assert_eq!(compact.stored(&mut reader, 0).unwrap().1, BODY, "the forms are one message");
    full.live(&mut reader).unwrap();
    refused(&compact, &mut reader, Error::Replayed);
}

#[test]
fn in_the_next_epoch_and_the_one_after() {
    let group = group(Suite::ChaCha20Poly1305);
    let mut epochs = epochs(group);
    let (mut sender, mut reader) = met(group, &epochs);
    let mut quiet = sealer(group, slot(2), &epochs);
    introduce(&mut quiet, &mut reader);
    let old = seal(&mut sender, C, Form::Full, META, BODY);
    let never_seen = seal(&mut sender, C, Form::Full, META, BODY);
    let late = seal(&mut quiet, C, Form::Full, META, BODY);
    let too_late = seal(&mut quiet, C, Form::Full, META, BODY);
    old.live(&mut reader).unwrap();

    reader.insert(Epoch(1), advance(&mut epochs)).unwrap();
    refused(&old, &mut reader, Error::Replayed);
    let mut sender = sealer(group, slot(1), &epochs);
    seal(&mut sender, C, Form::Full, META, b"new").live(&mut reader).unwrap();
    refused(&old, &mut reader, Error::EpochPast);
    refused(&never_seen, &mut reader, Error::EpochPast);
    late.live(&mut reader).expect("on its way when the epoch changed");

    reader.insert(Epoch(2), advance(&mut epochs)).unwrap();
    refused(&too_late, &mut reader, Error::EpochPast);
    assert_eq!(too_late.stored(&mut reader, 0).unwrap().1, BODY, "a store is not live");
}

#[test]
fn after_a_restart() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = met(group, &epochs);
    let messages: Vec<_> = (0..3).map(|_| seal(&mut sender, C, Form::Full, META, BODY)).collect();
    messages[0].live(&mut reader).unwrap();
    let mut bytes = messages[2].bytes.clone();
    let attached = messages[2].attached();
    let mut pending = reader.open_live(Form::Full, &attached, &mut bytes, 0).unwrap();
    let stored = pending.to_store(0).unwrap();
    drop(pending);
    assert_eq!(stored.ceiling(), messages[2].header().counter + 1);
    messages[2].live(&mut reader).expect("not accepted, not moved");

    let mut again = opener(group, &epochs);
    again.restore(&SessionState::from_bytes(&stored.to_bytes()).unwrap());
    for message in &messages {
        refused(message, &mut again, Error::Replayed);
    }
    seal(&mut sender, C, Form::Full, META, BODY).live(&mut again).unwrap();
}

#[test]
fn when_the_sessions_were_lost() {
    let group = group(Suite::Aes256Gcm);
    let mut epochs = epochs(group);
    let mut sender = sealer(group, slot(1), &epochs);
    let announced = announcement(&mut sender, 5);
    let message = seal(&mut sender, C, Form::Full, META, BODY);
    let mut reader = opener(group, &epochs);
    reader.set_live_floor(Epoch(1));
    assert_eq!(announced.announce(&mut reader).unwrap_err(), Error::EpochPast);
    refused(&message, &mut reader, Error::EpochPast);
    reader.insert(Epoch(1), advance(&mut epochs)).unwrap();
    let mut sender = sealer(group, slot(1), &epochs);
    refused(&seal(&mut sender, C, Form::Full, META, BODY), &mut reader, Error::Unannounced);
    announcement(&mut sender, 5).announce(&mut reader).unwrap();
    seal(&mut sender, C, Form::Full, META, BODY).live(&mut reader).unwrap();
    refused(&message, &mut reader, Error::EpochPast);
    assert_eq!(announced.announce(&mut reader).unwrap_err(), Error::EpochPast);
}

#[test]
fn behind_the_window() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = met(group, &epochs);
    let messages: Vec<_> =
        (0..1026).map(|_| seal(&mut sender, C, Form::Full, META, BODY)).collect();
    messages[1025].live(&mut reader).unwrap();
    refused(&messages[0], &mut reader, Error::Stale);
    refused(&messages[1], &mut reader, Error::Stale);
    messages[2].live(&mut reader).unwrap();
}

#[test]
fn a_forged_counter_jump_moves_nothing() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = met(group, &epochs);
    seal(&mut sender, C, Form::Full, META, BODY).live(&mut reader).unwrap();
    let next = seal(&mut sender, C, Form::Full, META, BODY);
    let jumped = SframeHeader { counter: limits::MAX_COUNTER, ..next.header() };
    let forged = next.with_header(jumped, Form::Full);
    refused(&forged, &mut reader, Error::NotAuthentic);
    next.live(&mut reader).expect("the session lives");
}

#[test]
fn a_reflection_is_not_read() {
    for class in [Class::Authenticated, C, Class::Peer] {
        let group = group_of(Suite::ChaCha20Poly1305, class);
        let epochs = epochs(group);
        let (mut here, mut there) =
            (sealer(group, slot(0), &epochs), sealer(group, slot(1), &epochs));
        let mut reader = Opener::new(group, Some(slot(0)), epochs.clone()).unwrap();
        reader.set_terms((0..2).map(term)).unwrap();
        let announced = announcement(&mut here, 1);
        assert_eq!(announced.announce(&mut reader).unwrap_err(), Error::Reflected);
        introduce(&mut there, &mut reader);
        let (ours, theirs) = (
            seal(&mut here, class, Form::Full, META, BODY),
            seal(&mut there, class, Form::Full, META, BODY),
        );
        refused(&ours, &mut reader, Error::Reflected);
        let header = ours.header();
        let other = SframeHeader { key: KeyId { slot: slot(1), ..header.key }, ..header };
        let turned = ours.with_header(other, Form::Full);
        refused(&turned, &mut reader, Error::NotAuthentic);
        assert_ne!(ours.bytes[ours.bytes.len() - 16..], theirs.bytes[theirs.bytes.len() - 16..]);
        theirs.live(&mut reader).unwrap();
        assert!(ours.stored(&mut reader, 0).is_ok(), "one's own stream is read");
    }
}

#[test]
fn a_stored_message_is_read_as_often_as_one_likes() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
    let message = seal(&mut sender, Class::Signed, Form::Full, META, BODY);
    let before = state(&reader);
    let (first, _) = message.stored(&mut reader, 0).unwrap();
    let (second, _) = message.stored(&mut reader, 0).unwrap();
    assert_eq!(first, second);
    assert_eq!((first.group(), first.epoch(), first.counter()), (group.id(), Epoch(0), 0));
    assert_eq!(state(&reader), before);
}
