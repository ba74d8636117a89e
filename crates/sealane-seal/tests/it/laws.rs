//! What holds for every message: it opens to itself, in any form, and has the size it must have.

use crate::shared::world::*;
use proptest::prelude::*;
use sealane_seal::*;

fn suite() -> impl Strategy<Value = Suite> {
    prop_oneof![Just(Suite::Aes256Gcm), Just(Suite::ChaCha20Poly1305)]
}

fn class() -> impl Strategy<Value = Class> {
    (0..4_usize).prop_map(|index| Class::ALL[index])
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Full), Just(Form::Compact)]
}

proptest! {
    #[test]
    fn a_message_opens_to_itself(
        (suite, class, form) in (suite(), class(), form()),
        (number, epoch, skipped) in (0..1024_u16, 0..300_u64, 0..300_u64),
        meta in prop::collection::vec(any::<u8>(), 0..=limits::MAX_META_BYTES),
        body in prop::collection::vec(any::<u8>(), 0..700),
    ) {
        let group = group_of(suite, class);
        let number = if class == Class::Peer { number % 2 } else { number };
        let epochs = epochs_at(group, epoch);
        let mut sender = sealer(group, slot(number), &epochs);
        for _ in 0..skipped {
            seal(&mut sender, class, form, b"", b"");
        }
        let mut reader = opener(group, &epochs);
        let key = signing_key(slot(number)).verifying_key();
        reader.set_signer(slot(number), &key).unwrap();
        let message = seal(&mut sender, class, form, &meta, &body);
        let tail = if class == Class::Signed { 80 } else { 16 };
        let header = message.bytes.len() - body.len() - tail;
        let most = if form == Form::Full { 9 } else { 8 };
        prop_assert!((1..=most).contains(&header));
        for _ in 0..2 {
            let (opened, read) = message.stored(&mut reader, epoch).unwrap();
            prop_assert_eq!(&read, &body);
            prop_assert_eq!((opened.class(), opened.slot()), (class, slot(number)));
            prop_assert_eq!((opened.epoch(), opened.counter()), (Epoch(epoch), skipped));
        }
        prop_assert_eq!(message.live(&mut reader).unwrap().1, body);
    }

    #[test]
    fn in_place_and_appended_are_the_same(
        (suite, class, form) in (suite(), class(), form()),
        body in prop::collection::vec(any::<u8>(), 0..300),
        (before, after) in (0..20_usize, 0..20_usize),
    ) {
        let group = group_of(suite, class);
        let epochs = epochs(group);
        let appended =
            seal(&mut sealer(group, slot(1), &epochs), class, form, META, &body).bytes;
        let head = before + class.head_bytes();
        let mut buf = vec![0xee; head + body.len() + class.tail_bytes() + after];
        let place = head..head + body.len();
        buf[place.clone()].copy_from_slice(&body);
        let mut sealer = sealer(group, slot(1), &epochs);
        let sealed = sealer.seal_in_place(class, form, META, &mut buf, place).unwrap();
        prop_assert_eq!(&buf[sealed.clone()], &appended[..]);
        prop_assert!(buf[..sealed.start].iter().chain(&buf[sealed.end..]).all(|b| *b == 0xee));
    }

    #[test]
    fn the_forms_are_lossless_into_each_other(
        (number, class, epoch) in (0..1024_u16, class(), 0..u64::from(u32::MAX)),
        counter in prop_oneof![0..300_u64, 0..=limits::MAX_COUNTER],
        away in -7..=8_i64,
    ) {
        let key = KeyId::new(slot(number), class, Epoch(epoch));
        let header = SframeHeader { key, counter };
        // A reader whose epoch lies near completes both to the same.
        let near = Epoch(epoch.saturating_add_signed(-away));
        for form in [Form::Full, Form::Compact] {
            let bytes = header.encode(form);
            prop_assert_eq!(SframeHeader::parse(&bytes, form, near), Ok((header, bytes.len())));
        }
        prop_assert_eq!(key.epoch(near), Epoch(epoch));
    }

    #[test]
    fn any_bytes_are_a_header_of_one_encoding_or_none(
        bytes in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        for form in [Form::Full, Form::Compact] {
            if let Ok((header, len)) = SframeHeader::parse(&bytes, form, Epoch(0)) {
                let encoded = header.encode(form);
                prop_assert_eq!(&encoded[..], &bytes[..len]);
            }
        }
    }
}

/// The bytes that the seal adds, at most: with a frame of 2 more they keep the promise of A and C
/// in 27 over the body.
#[test]
fn the_bytes_over_the_body() {
    for (class, full, compact) in [
        (Class::Authenticated, 25, 24),
        (Class::Group, 25, 24),
        (Class::Signed, 89, 88),
        (Class::Peer, 25, 24),
    ] {
        let group = group_of(Suite::Aes256Gcm, class);
        let number = if class == Class::Peer { 1 } else { 1023 };
        let epochs = epochs_at(group, 255);
        let first = sealer(group, slot(number), &epochs);
        let mut stored = first.reserve(1).unwrap().state().to_bytes();
        stored[43..51].copy_from_slice(&(limits::MAX_COUNTER - 9).to_be_bytes());
        let state = CounterState::from_bytes(&stored).unwrap();
        let mut last = Sealer::resume(group, &state, &epochs, Witness([4; 32])).unwrap();
        last.set_signing_key(signing_key(slot(number)));
        lease(&mut last, 5);
        let mut over = |form| seal(&mut last, class, form, META, BODY).bytes.len() - BODY.len();
        let short = usize::from(class == Class::Peer);
        assert_eq!((over(Form::Full), over(Form::Compact)), (full - short, compact - short));
    }
}

#[test]
fn every_error_has_a_code_of_its_own() {
    let codes: std::collections::BTreeSet<_> = ERRORS.iter().map(|error| error.code).collect();
    assert_eq!(codes.len(), ERRORS.len());
    assert_eq!(Error::NotAuthentic.info().code, "SL-SEAL-03");
}
