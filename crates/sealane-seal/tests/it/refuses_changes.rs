//! Whatever is authenticated cannot be changed: no bit, no class, no meta, no group.

use crate::shared::peer;
use crate::shared::world::*;
use sealane_seal::*;

/// The five messages whose every byte is put to the test.
fn five() -> [(Suite, Class, Form, &'static [u8]); 5] {
    [
        (Suite::Aes256Gcm, Class::Authenticated, Form::Full, BODY),
        (Suite::ChaCha20Poly1305, Class::Group, Form::Compact, BODY),
        (Suite::Aes256Gcm, Class::Signed, Form::Full, BODY),
        (Suite::ChaCha20Poly1305, Class::Peer, Form::Full, BODY),
        (Suite::Aes256Gcm, Class::Group, Form::Full, b""),
    ]
}

/// Opens a changed message both ways; no way may open, move anything, or leave plaintext.
fn is_refused(opener: &mut Opener, changed: &Sealed, plain: &[u8], what: &str) {
    let before = state(opener);
    let mut bytes = changed.bytes.clone();
    let live = opener.open_live(changed.form, &changed.meta, &mut bytes, changed.clear);
    let live = live.map(Pending::accept).expect_err(what);
    leaves_nothing(&changed.bytes, &bytes, live, plain, changed.class);
    let mut bytes = changed.bytes.clone();
    let (form, clear) = (changed.form, changed.clear);
    let stored = opener.open_stored(Epoch(0), form, &changed.meta, &mut bytes, clear);
    leaves_nothing(&changed.bytes, &bytes, stored.expect_err(what), plain, changed.class);
    assert_eq!(state(opener), before, "{what}");
}

/// The bytes are as they came if no key was applied, and hold no plaintext in any case.
fn leaves_nothing(came: &[u8], now: &[u8], error: Error, plain: &[u8], class: Class) {
    let is_new = came != now;
    let is_zeroed = matches!(error, Error::NotAuthentic | Error::Signature);
    assert!(!is_new || is_zeroed, "{error:?}");
    if class != Class::Authenticated || is_zeroed {
        let holds =
            plain.len() > 8 && now.windows(8).any(|part| plain.windows(8).any(|p| p == part));
        assert!(!holds, "{error:?}");
    }
}

#[test]
fn every_byte_and_every_bit_of_five_messages() {
    for (suite, class, form, body) in five() {
        let group = group_of(suite, class);
        let epochs = epochs(group);
        let mut sender = sealer(group, slot(1), &epochs);
        let mut reader = opener(group, &epochs);
        seal(&mut sender, class, form, META, b"before").live(&mut reader).unwrap();
        let message = seal(&mut sender, class, form, META, body);
        for at in 0..message.bytes.len() {
            for value in 1..=255 {
                let mut changed = message.clone();
                changed.bytes[at] ^= value;
                is_refused(&mut reader, &changed, body, &format!("{class:?} byte {at} ^ {value}"));
            }
        }
        for at in 0..message.meta.len() {
            for bit in 0..8 {
                let mut changed = message.clone();
                changed.meta[at] ^= 1 << bit;
                is_refused(&mut reader, &changed, body, &format!("{class:?} meta {at} bit {bit}"));
            }
        }
        for len in 0..message.bytes.len() {
            let mut changed = message.clone();
            changed.bytes.truncate(len);
            is_refused(&mut reader, &changed, body, &format!("{class:?} cut to {len}"));
        }
        assert_eq!(message.live(&mut reader).unwrap().1, body, "untouched, it opens");
    }
}

#[test]
fn another_class_slot_epoch_or_counter_in_the_header() {
    for (suite, class, form, body) in five() {
        let group = group_of(suite, class);
        let epochs = epochs(group);
        let mut sender = sealer(group, slot(1), &epochs);
        let mut reader = opener(group, &epochs);
        let message = seal(&mut sender, class, form, META, body);
        let header = message.bytes[message.clear..].to_vec();
        let (header, len) = SframeHeader::parse(&header, form, Epoch(0)).unwrap();
        let mut others: Vec<SframeHeader> = Class::ALL
            .into_iter()
            .filter(|other| *other != class)
            .map(|class| SframeHeader { key: KeyId { class, ..header.key }, ..header })
            .collect();
        others.push(SframeHeader { key: KeyId { slot: slot(0), ..header.key }, ..header });
        others.push(SframeHeader { key: KeyId { epoch_low: 1, ..header.key }, ..header });
        for counter in [1, 1000, limits::MAX_COUNTER] {
            others.push(SframeHeader { counter, ..header });
        }
        for other in others {
            let mut changed = message.clone();
            let place = changed.clear..changed.clear + len;
            changed.bytes.splice(place, other.encode(form).iter().copied());
            is_refused(&mut reader, &changed, body, &format!("{class:?} as {other:?}"));
        }
        assert!(message.live(&mut reader).is_ok());
    }
}

#[test]
fn a_body_does_not_move_between_clear_and_ciphertext() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let mut sender = sealer(group, slot(1), &epochs);
    let mut reader = opener(group, &epochs);
    let clear = seal(&mut sender, Class::Authenticated, Form::Full, META, BODY);
    let secret = seal(&mut sender, Class::Group, Form::Full, META, BODY);
    for len in 0..clear.bytes.len() {
        if len != clear.clear {
            is_refused(&mut reader, &Sealed { clear: len, ..clear.clone() }, BODY, "clear");
        }
    }
    for len in 1..secret.bytes.len() + 2 {
        is_refused(&mut reader, &Sealed { clear: len, ..secret.clone() }, BODY, "secret");
    }
    let mut longer = secret.clone();
    longer.bytes.splice(0..0, *b"clear");
    longer.clear = 5;
    is_refused(&mut reader, &longer, BODY, "clear before ciphertext");
    let moved = [&BODY[1..], META].concat();
    let mut shifted = clear.clone();
    shifted.meta.push(BODY[0]);
    shifted.bytes.remove(0);
    shifted.clear -= 1;
    is_refused(&mut reader, &shifted, &moved, "from body to meta");
}

#[test]
fn another_group_suite_or_secret() {
    let home = group(Suite::Aes256Gcm);
    let epochs = epochs(home);
    let message = seal(&mut sealer(home, slot(1), &epochs), Class::Group, Form::Full, META, BODY);
    let secret = || epochs.secret(Epoch(0)).unwrap().clone();
    let strangers = [
        (Group::new(GroupId([6; 32]), Suite::Aes256Gcm), secret()),
        (Group::new(home.id(), Suite::ChaCha20Poly1305), secret()),
        (home, EpochSecret::new([2; 32])),
    ];
    for (group, secret) in strangers {
        let epochs = Epochs::agreed(group.id(), History::Kept, Epoch(0), secret);
        is_refused(&mut opener(group, &epochs), &message, BODY, &format!("{group:?}"));
    }
    assert!(message.live(&mut opener(home, &epochs)).is_ok());
}

#[test]
fn a_member_cannot_sign_for_another() {
    let group = group(Suite::ChaCha20Poly1305);
    let epochs = epochs(group);
    let mut posing = sealer(group, slot(1), &epochs);
    posing.set_signing_key(signing_key(slot(2)));
    let message = seal(&mut posing, Class::Signed, Form::Full, META, BODY);
    let mut reader = opener(group, &epochs);
    is_refused(&mut reader, &message, BODY, "signed with another's key");
    assert_eq!(message.live(&mut reader).unwrap_err(), Error::Signature);

    let message = seal(&mut sealer(group, slot(3), &epochs), Class::Signed, Form::Full, META, BODY);
    reader.remove_signer(slot(3));
    assert_eq!(message.live(&mut reader).unwrap_err(), Error::UnknownSigner);
}

/// Another member can compute every key; the signed epoch is what stops this one.
#[test]
fn a_signed_body_cannot_be_wrapped_again_256_epochs_later() {
    let group = group(Suite::Aes256Gcm);
    let (early, late) = (epochs(group), epochs_at(group, 256));
    let mut sender = sealer(group, slot(1), &early);
    let message = seal(&mut sender, Class::Signed, Form::Full, META, BODY);
    let (_, signed) = message.live(&mut opener(group, &early)).unwrap();
    assert_eq!(signed, BODY);
    let mut again = sealer(group, slot(1), &late);
    again.set_signing_key(signing_key(slot(1)));
    let honest = seal(&mut again, Class::Signed, Form::Full, META, BODY);
    assert_eq!(honest.bytes[..3], message.bytes[..3], "the same header");

    // The insider: the early signature under the late key.
    let metadata = peer::metadata(group, META);
    let secret = |epochs: &Epochs| *epochs.secret(epochs.newest()).unwrap().expose();
    let plain = peer::open(&secret(&early), &metadata, &message.bytes).unwrap();
    assert_eq!(plain.len(), BODY.len() + limits::SIGNATURE_BYTES);
    let (header, _) = SframeHeader::parse(&message.bytes, Form::Full, Epoch(0)).unwrap();
    let bytes = peer::seal(&secret(&late), header, &metadata, &plain);
    let wrapped = Sealed { bytes, ..message };
    let mut reader = opener(group, &late);
    assert_eq!(wrapped.live(&mut reader).unwrap_err(), Error::Signature);
    assert!(honest.live(&mut reader).is_ok());
}

/// A body of one byte too many is refused by its length, before anything is opened; one byte less
/// is refused for what it is.
#[test]
fn a_body_that_is_too_long_is_refused_by_its_length() {
    for class in [Class::Group, Class::Signed, Class::Peer, Class::Authenticated] {
        let group = group_of(Suite::Aes256Gcm, class);
        let mut reader = opener(group, &epochs(group));
        let key = KeyId { slot: slot(1), class, epoch_low: 0 };
        let header = SframeHeader { key, counter: 0 }.encode(Form::Full);
        let signature = if class == Class::Signed { limits::SIGNATURE_BYTES } else { 0 };
        let mut refused = |body: usize| {
            let clear = if class == Class::Authenticated { body } else { 0 };
            let mut bytes = vec![0; clear];
            bytes.extend_from_slice(&header);
            bytes.resize(header.len() + body + signature + limits::TAG_BYTES, 0);
            let opened = reader.open_live(Form::Full, META, &mut bytes, clear);
            opened.map(|_| ()).unwrap_err()
        };
        let most = limits::MAX_SEALED_BODY_BYTES;
        assert_eq!(refused(most + 1), Error::TooLarge, "{class:?}");
        assert_eq!(refused(most), Error::NotAuthentic, "{class:?}");
    }
}
