//! Laws of every message: it opens to itself, in any form, and has the size it must have.

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

fn binding() -> impl Strategy<Value = Binding> {
    prop_oneof![
        Just(Binding::link()),
        "[a-z0-9/]{0,40}".prop_map(|topic| Binding::stream(&topic)),
        any::<[u8; 32]>().prop_map(|group| Binding::conversation(GroupId(group))),
    ]
}

fn counter() -> impl Strategy<Value = u64> {
    prop_oneof![0..300_u64, 0..=limits::MAX_COUNTER - 1]
}

proptest! {
    #[test]
    fn a_message_opens_to_itself(
        (suite, class, form, binding) in (suite(), class(), form(), binding()),
        (number, epoch, counter) in (0..1024_u16, 0..300_u64, counter()),
        context in any::<[u8; 8]>().prop_map(SenderContext),
        meta in prop::collection::vec(any::<u8>(), 0..=limits::MAX_META_BYTES),
        body in prop::collection::vec(any::<u8>(), 0..700),
    ) {
        let group = group_of(suite, class);
        let number = if class == Class::Peer { number % 2 } else { number };
        let epochs = epochs_at(group, epoch);
        let mut sender = sealer_of(group, slot(number), &epochs, context, counter);
        let mut reader = opener(group, &epochs);
        reader.set_terms([term(number)]).unwrap();
        introduce(&mut sender, &mut reader);
        let message = seal_for(&mut sender, &binding, class, form, &meta, &body);
        let tail = if class == Class::Signed { 80 } else { 16 };
        let header = message.bytes.len() - body.len() - tail;
        let most = if form == Form::Full { 9 } else { 8 };
        prop_assert!((1..=most).contains(&header));
        for _ in 0..2 {
            let (opened, read) = message.stored(&mut reader, epoch).unwrap();
            prop_assert_eq!(&read, &body);
            prop_assert_eq!((opened.class(), opened.slot()), (class, slot(number)));
            prop_assert_eq!((opened.epoch(), opened.counter()), (Epoch(epoch), counter + 1));
            prop_assert_eq!((opened.group(), opened.context()), (group.id(), context));
        }
        prop_assert_eq!(message.live(&mut reader).unwrap().1, body);
    }

    #[test]
    fn in_place_and_appended_are_the_same(
        (suite, class, form, binding) in (suite(), class(), form(), binding()),
        body in prop::collection::vec(any::<u8>(), 0..300),
        (before, after) in (0..20_usize, 0..20_usize),
    ) {
        let group = group_of(suite, class);
        let epochs = epochs(group);
        let mut appending = sealer(group, slot(1), &epochs);
        let appended = seal_for(&mut appending, &binding, class, form, META, &body).bytes;
        let head = before + class.head_bytes();
        let mut buf = vec![0xee; head + body.len() + class.tail_bytes() + after];
        let place = head..head + body.len();
        buf[place.clone()].copy_from_slice(&body);
        let mut sealer = sealer(group, slot(1), &epochs);
        let sealed = sealer.seal_in_place(class, form, &binding, META, &mut buf, place).unwrap();
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

    #[test]
    fn any_bytes_are_a_state_or_an_announcement_of_one_encoding_or_none(
        mut bytes in prop::collection::vec(any::<u8>(), 0..40),
        len in prop_oneof![Just(SessionState::BYTES), Just(Announcement::BYTES)],
        is_plausible: bool,
    ) {
        if is_plausible {
            bytes.resize(len, 0);
            bytes[..2].copy_from_slice(&[1, 0]);
            bytes[len.min(27)..].iter_mut().take(3).for_each(|high| *high = 0);
        }
        if let Ok(state) = SessionState::from_bytes(&bytes) {
            prop_assert_eq!(&state.to_bytes()[..], &bytes[..]);
        }
        if let Ok(announcement) = Announcement::from_bytes(&bytes) {
            prop_assert_eq!(&announcement.to_bytes()[..], &bytes[..]);
        }
    }
}

/// The bytes that the seal adds, at most: with a prefix of 4 and a counter of 4 they keep the
/// promise of A and C in 27 over the body.
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
        let next = limits::MAX_COUNTER - 9;
        let mut last = sealer_of(group, slot(number), &epochs, CONTEXT, next);
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
