//! Epochs go forward only: by order, or on a trial that is kept only if the tag verifies.

use crate::shared::world::*;
use sealane_seal::*;

const C: Class = Class::Group;

fn message_of(group: Group, epoch: u64, form: Form) -> Sealed {
    let epochs = epochs_at(group, epoch);
    seal(&mut sealer(group, slot(1), &epochs), C, form, META, BODY)
}

#[test]
fn up_to_1024_steps_and_only_when_accepted() {
    for suite in Suite::ALL {
        let group = group(suite);
        for epoch in [1, 127, 128, 129, 255, 256, 257, 512, 1000, 1023, 1024] {
            let message = message_of(group, epoch, Form::Full);
            let mut reader = opener(group, &epochs(group));
            let mut bytes = message.bytes.clone();
            let pending = reader.open_live(Form::Full, META, &mut bytes, 0).unwrap();
            assert_eq!(pending.opened().epoch(), Epoch(epoch));
            assert_eq!(&bytes[pending.opened().body()], BODY);
            drop(pending);
            assert_eq!(state(&reader), state(&opener(group, &epochs(group))), "dropped");
            message.live(&mut reader).unwrap();
            assert_eq!(reader.epochs().newest(), Epoch(epoch));
            assert_eq!(message.live(&mut reader).unwrap_err(), Error::Replayed);
        }
        let mut reader = opener(group, &epochs(group));
        let before = state(&reader);
        for epoch in [1025, 1280, 2048] {
            assert!(message_of(group, epoch, Form::Full).live(&mut reader).is_err(), "{epoch}");
        }
        assert_eq!(state(&reader), before);
    }
}

#[test]
fn a_forged_epoch_moves_nothing() {
    let group = group(Suite::Aes256Gcm);
    let mut reader = opener(group, &epochs(group));
    let before = state(&reader);
    for low in 1..=255 {
        let key = KeyId { slot: slot(1), class: C, epoch_low: low };
        let header = SframeHeader { key, counter: 0 }.encode(Form::Full);
        let mut forged = [&header[..], &[0xaa; 40]].concat();
        let error = reader.open_live(Form::Full, META, &mut forged, 0).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NotAuthentic | Error::EpochUnknown), "{low} {error}");
        assert_eq!(forged[header.len()..header.len() + 24], [0; 24], "zeroed");
    }
    assert_eq!(state(&reader), before);
}

#[test]
fn the_compact_form_reaches_eight_ahead() {
    let group = group(Suite::Aes256Gcm);
    for epoch in 0..=8 {
        let mut reader = opener(group, &epochs_at(group, 100));
        message_of(group, 100 + epoch, Form::Compact).live(&mut reader).unwrap();
        assert_eq!(reader.epochs().newest(), Epoch(100 + epoch));
    }
    let mut reader = opener(group, &epochs_at(group, 100));
    assert!(message_of(group, 109, Form::Compact).live(&mut reader).is_err());
    let late = message_of(group, 99, Form::Compact);
    assert!(late.live(&mut reader).is_ok(), "one behind");
    assert_eq!(
        message_of(group, 98, Form::Compact).live(&mut reader).unwrap_err(),
        Error::EpochPast
    );
}

/// The full form is tried in every epoch that its low bits may mean; the compact form names one.
#[test]
fn the_compact_form_is_not_tried_far_ahead() {
    let group = group(Suite::Aes256Gcm);
    for far in [100 + 256, 100 + 512, 100 + 1024] {
        let mut reader = opener(group, &epochs_at(group, 100));
        let before = state(&reader);
        let refused = message_of(group, far, Form::Compact).live(&mut reader).unwrap_err();
        assert_eq!((refused, state(&reader)), (Error::NotAuthentic, before), "{far}");
        message_of(group, far, Form::Full).live(&mut reader).unwrap();
    }
}

#[test]
fn an_order_advances_only_if_its_authority_signed_it() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let order = Advance { to: Epoch(3) }.to_bytes();
    let obeys = |class, number| {
        let mut reader = opener(group, &epochs);
        let message =
            seal(&mut sealer(group, slot(number), &epochs), class, Form::Full, META, &order);
        let (opened, body) = message.live(&mut reader).unwrap();
        let result = reader.obey(&opened, &body, slot(2));
        (result, reader.epochs().newest(), reader, opened)
    };
    let (result, newest, mut reader, opened) = obeys(Class::Signed, 2);
    assert_eq!((result, newest), (Ok(Epoch(3)), Epoch(3)));
    assert_eq!(reader.obey(&opened, &order, slot(2)), Err(Error::EpochStep), "obeyed once");
    for (class, number) in [(Class::Signed, 1), (C, 2), (Class::Authenticated, 2)] {
        let (result, newest, ..) = obeys(class, number);
        assert_eq!((result, newest), (Err(Error::NotAuthorized), Epoch(0)));
    }
    for (to, expected) in [(0, Error::EpochStep), (3, Error::EpochStep), (1028, Error::EpochStep)] {
        let order = Advance { to: Epoch(to) }.to_bytes();
        assert_eq!(reader.obey(&opened, &order, slot(2)), Err(expected));
    }
    assert_eq!(reader.obey(&opened, &order[..9], slot(2)), Err(Error::Malformed));
    assert_eq!(
        reader.obey(&opened, &[1, 2, 0, 0, 0, 0, 0, 0, 0, 9], slot(2)),
        Err(Error::Malformed)
    );
}

#[test]
fn forward_secrecy_erases_what_the_cursor_has_passed() {
    let group = group(Suite::Aes256Gcm);
    let old = message_of(group, 0, Form::Full);
    for (history, expected) in
        [(History::ForwardSecret, Err(Error::EpochUnknown)), (History::Kept, Ok(()))]
    {
        let mut reader = opener(group, &epochs_of(group, history));
        old.stored(&mut reader, 0).unwrap();
        reader.advance(Epoch(5)).unwrap();
        assert!(old.stored(&mut reader, 0).is_ok(), "advancing erases nothing");
        reader.passed(Epoch(5));
        assert_eq!(old.stored(&mut reader, 0).map(|_| ()), expected);
        reader.forget(Epoch(5));
        assert_eq!(old.stored(&mut reader, 0).map(|_| ()), Err(Error::EpochUnknown));
        assert_eq!(reader.epochs().held().count(), 1);
    }
}

#[test]
fn the_ratchet_is_one_way_and_bound_to_the_group() {
    let here = epochs_at(group(Suite::Aes256Gcm), 3);
    let secrets: Vec<_> = here.held().map(|(_, secret)| *secret.expose()).collect();
    assert_eq!(secrets.len(), 4);
    let elsewhere = epochs_at(pair(Suite::Aes256Gcm), 3);
    for (epoch, secret) in elsewhere.held() {
        assert!(!secrets.contains(secret.expose()), "{epoch:?}");
    }
    let resumed =
        Epochs::ratcheting(here.group(), History::Kept, Epoch(2), EpochSecret::new(secrets[2]));
    let mut resumed = resumed;
    resumed.advance(Epoch(3)).unwrap();
    assert_eq!(resumed.secret(Epoch(3)).unwrap().expose(), &secrets[3]);
    assert!(!format!("{here:?}").contains(&format!("{:?}", secrets[3])));
    assert!(format!("{here:?}").contains("EpochSecret(…)"));
}

#[test]
fn agreed_secrets_are_inserted_and_never_tried_ahead() {
    let group = group(Suite::Aes256Gcm);
    let ratchet = epochs_at(group, 2);
    let secret = |epoch| ratchet.secret(Epoch(epoch)).unwrap().clone();
    let epochs = Epochs::agreed(group.id(), History::Kept, Epoch(0), secret(0));
    let mut reader = opener(group, &epochs);
    let message = message_of(group, 1, Form::Full);
    assert_eq!(message.live(&mut reader).unwrap_err(), Error::EpochUnknown);
    assert_eq!(reader.advance(Epoch(1)), Err(Error::EpochStep));
    reader.insert(Epoch(1), secret(1)).unwrap();
    message.live(&mut reader).unwrap();
    assert_eq!(reader.insert(Epoch(1), secret(2)), Err(Error::EpochStep));
    assert_eq!(reader.insert(Epoch(1), secret(1)), Ok(()));
    assert_eq!(reader.epochs().newest(), Epoch(1));
}

#[test]
fn the_number_of_secrets_is_bounded() {
    let group = group(Suite::Aes256Gcm);
    let mut epochs = epochs_at(group, 4095);
    assert_eq!(epochs.held().count(), limits::MAX_EPOCHS_HELD);
    assert_eq!(epochs.advance(Epoch(4096)), Err(Error::TooManyEpochs));
    let mut reader = opener(group, &epochs);
    let before = state(&reader);
    epochs.forget(Epoch(4000));
    epochs.advance(Epoch(4096)).unwrap();
    let message = seal(&mut sealer(group, slot(1), &epochs), C, Form::Full, META, BODY);
    assert_eq!(message.live(&mut reader).unwrap_err(), Error::TooManyEpochs);
    assert_eq!(state(&reader), before);
    reader.forget(Epoch(4000));
    message.live(&mut reader).unwrap();
}
