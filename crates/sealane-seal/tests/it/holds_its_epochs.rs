//! A reader opens in the epochs whose secrets it holds, and in no other.

use crate::shared::world::*;
use sealane_seal::*;

const C: Class = Class::Group;

fn message_of(group: Group, epoch: u64, form: Form) -> Sealed {
    let epochs = epochs_at(group, epoch);
    seal(&mut sealer(group, slot(1), &epochs), C, form, META, BODY)
}

/// No epoch is entered on trial: who holds the secret before can compute it, and does not.
#[test]
fn secrets_are_taken_and_never_tried_ahead() {
    let group = group(Suite::Aes256Gcm);
    let secrets = epochs_at(group, 2);
    let secret = |epoch| secrets.secret(Epoch(epoch)).unwrap().clone();
    let mut reader = opener(group, &epochs(group));
    expect(&mut reader, 1, CONTEXT);
    let message = message_of(group, 1, Form::Full);
    assert_eq!(message.live(&mut reader).unwrap_err(), Error::EpochUnknown);
    assert_eq!(message.stored(&mut reader, 0).unwrap_err(), Error::EpochUnknown);
    reader.insert(Epoch(1), secret(1)).unwrap();
    message.live(&mut reader).unwrap();
    assert_eq!(reader.insert(Epoch(1), secret(2)), Err(Error::EpochStep), "another secret");
    assert_eq!(reader.insert(Epoch(1), secret(1)), Ok(()), "the same again");
    assert_eq!(reader.epochs().newest(), Epoch(1));
}

#[test]
fn a_forged_epoch_moves_nothing() {
    let group = group(Suite::Aes256Gcm);
    let mut reader = opener(group, &epochs(group));
    expect(&mut reader, 1, CONTEXT);
    let before = state(&reader);
    let binding = Binding::stream(TOPIC);
    let attached = Attached { context: CONTEXT, binding: &binding, meta: META };
    for low in 1..=255 {
        let key = KeyId { slot: slot(1), class: C, epoch_low: low };
        let header = SframeHeader { key, counter: 0 }.encode(Form::Full);
        let mut forged = [&header[..], &[0xaa; 40]].concat();
        let error = reader.open_live(Form::Full, &attached, &mut forged, 0).map(|_| ());
        assert_eq!(error, Err(Error::EpochUnknown), "{low}");
    }
    assert_eq!(state(&reader), before);
}

#[test]
fn older_secrets_come_later_and_the_newest_stays_the_newest() {
    let group = group(Suite::Aes256Gcm);
    let secrets = epochs_at(group, 9);
    let secret = |epoch| secrets.secret(Epoch(epoch)).unwrap().clone();
    let mut epochs = Epochs::new(group.id(), History::Kept, Epoch(9), secret(9));
    for epoch in [3, 7, 0] {
        epochs.insert(Epoch(epoch), secret(epoch)).unwrap();
        assert_eq!(epochs.newest(), Epoch(9));
    }
    let held: Vec<_> = epochs.held().map(|(epoch, _)| epoch.0).collect();
    assert_eq!(held, [0, 3, 7, 9]);
    let mut reader = opener(group, &epochs);
    for (epoch, expected) in [(0, true), (3, true), (5, false), (7, true), (9, true)] {
        let opened = message_of(group, epoch, Form::Full).stored(&mut reader, 9);
        assert_eq!(opened.is_ok(), expected, "{epoch}");
    }
}

/// A compact key id means the epoch nearest to the reader's: from 7 below it to 8 above.
#[test]
fn the_compact_form_reaches_seven_back_and_eight_ahead() {
    let group = group(Suite::Aes256Gcm);
    let all = epochs_at(group, 130);
    let mut reader = opener(group, &all);
    for epoch in 93..=108 {
        let opened = message_of(group, epoch, Form::Compact).stored(&mut reader, 100);
        assert_eq!(opened.unwrap().0.epoch(), Epoch(epoch));
    }
    for epoch in [92, 109, 116] {
        let compact = message_of(group, epoch, Form::Compact);
        assert_eq!(compact.stored(&mut reader, 100).unwrap_err(), Error::NotAuthentic, "{epoch}");
        message_of(group, epoch, Form::Full).stored(&mut reader, 100).unwrap();
    }
}

/// The full form reaches from 127 below to 128 above, and is not tried in any other epoch.
#[test]
fn the_full_form_reaches_127_back_and_128_ahead() {
    let group = group(Suite::Aes256Gcm);
    let all = epochs_at(group, 700);
    let mut reader = opener(group, &all);
    for epoch in [173, 174, 299, 300, 301, 427, 428] {
        let opened = message_of(group, epoch, Form::Full).stored(&mut reader, 300);
        assert_eq!(opened.unwrap().0.epoch(), Epoch(epoch));
    }
    for epoch in [44, 172, 429, 556] {
        let refused = message_of(group, epoch, Form::Full).stored(&mut reader, 300);
        assert_eq!(refused.unwrap_err(), Error::NotAuthentic, "{epoch}");
    }
}

#[test]
fn live_messages_come_of_the_newest_epoch_and_the_one_before() {
    let group = group(Suite::Aes256Gcm);
    for (epoch, expected) in [
        (100, Ok(())),
        (99, Ok(())),
        (98, Err(Error::EpochPast)),
        (93, Err(Error::EpochPast)),
        (101, Err(Error::EpochUnknown)),
    ] {
        for form in [Form::Full, Form::Compact] {
            let mut reader = opener(group, &epochs_at(group, 100));
            expect(&mut reader, 1, CONTEXT);
            let came = message_of(group, epoch, form).live(&mut reader).map(|_| ());
            assert_eq!(came, expected, "{epoch} {form:?}");
        }
    }
}

#[test]
fn forward_secrecy_erases_what_the_cursor_has_passed() {
    let group = group(Suite::Aes256Gcm);
    let old = message_of(group, 0, Form::Full);
    let later = epochs_at(group, 5);
    for (history, expected) in
        [(History::ForwardSecret, Err(Error::EpochUnknown)), (History::Kept, Ok(()))]
    {
        let mut reader = opener(group, &epochs_of(group, history));
        old.stored(&mut reader, 0).unwrap();
        reader.insert(Epoch(5), later.secret(Epoch(5)).unwrap().clone()).unwrap();
        assert!(old.stored(&mut reader, 0).is_ok(), "a newer secret erases nothing");
        reader.passed(Epoch(5));
        assert_eq!(old.stored(&mut reader, 0).map(|_| ()), expected);
        reader.forget(Epoch(5));
        assert_eq!(old.stored(&mut reader, 0).map(|_| ()), Err(Error::EpochUnknown));
        assert_eq!(reader.epochs().held().count(), 1);
        reader.forget(Epoch(6));
        assert_eq!(reader.epochs().held().count(), 1, "the newest stays");
    }
}

#[test]
fn the_step_is_one_way_and_bound_to_the_group() {
    let here = epochs_at(group(Suite::Aes256Gcm), 3);
    let secrets: Vec<_> = here.held().map(|(_, secret)| *secret.expose()).collect();
    assert_eq!(secrets.len(), 4);
    let elsewhere = epochs_at(pair(Suite::Aes256Gcm), 3);
    for (epoch, secret) in elsewhere.held().skip(1) {
        assert!(!secrets.contains(secret.expose()), "{epoch:?}");
    }
    let third = EpochSecret::new(secrets[2]).next(here.group(), Epoch(3)).unwrap();
    assert_eq!(third.expose(), &secrets[3]);
    let skipped = EpochSecret::new(secrets[2]).next(here.group(), Epoch(4)).unwrap();
    assert_ne!(skipped.expose(), &secrets[3], "the epoch enters the step");
    assert!(!format!("{here:?}").contains(&format!("{:?}", secrets[3])));
    assert!(format!("{here:?}").contains("EpochSecret(…)"));
}

/// A removal must never depend on room: the oldest secret leaves for a newer one.
#[test]
fn the_number_of_secrets_is_bounded() {
    let group = group(Suite::Aes256Gcm);
    let mut epochs = epochs_at(group, 4095);
    assert_eq!(epochs.held().count(), limits::MAX_EPOCHS_HELD);
    let first = epochs.secret(Epoch(0)).unwrap().clone();
    drop(advance(&mut epochs));
    assert_eq!((epochs.held().count(), epochs.newest()), (4096, Epoch(4096)));
    assert!(epochs.secret(Epoch(0)).is_none() && epochs.secret(Epoch(1)).is_some());
    assert_eq!(epochs.insert(Epoch(0), first), Err(Error::TooManyEpochs));
    epochs.forget(Epoch(4000));
    assert_eq!(epochs.held().count(), 97);
}
