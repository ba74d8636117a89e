//! The compact form loses nothing: full to compact to full, and compact to full to compact.

use crate::shared::members::{self, CLASSES, GROUP_TAG, Members, READER, RELAY, SENDER};
use proptest::prelude::*;
use sealane_frame::limits::MAX_HOP_LIMIT;
use sealane_frame::{
    CompactView, Compression, Dictionary, Entry, FrameBuf, FrameError, Header, HeaderFields, Kind,
    LinkContext, PeerTag, Priority, Roster, open_compact, open_frame, seal_compact, seal_frame,
    to_compact, to_full,
};
use sealane_seal::limits::MAX_COUNTER;
use sealane_seal::{Class, Epoch, Form, KeyId, Slot, Suite};

/// A frame whose seal is a pattern: forms can be changed without keys.
fn unsealed(fields: &HeaderFields, key: KeyId, counter: u64, body_bytes: usize) -> Vec<u8> {
    let header = Header::new(fields, body_bytes, counter).unwrap();
    let head = sealane_seal::SframeHeader { key, counter }.encode(Form::Full);
    let text: Vec<u8> = (0..body_bytes).map(|at| at as u8 ^ 0x5c).collect();
    let mut frame = header.as_bytes().to_vec();
    if fields.class == Class::Authenticated {
        frame.extend_from_slice(&text);
        frame.extend_from_slice(&head);
    } else {
        frame.extend_from_slice(&head);
        frame.extend_from_slice(&text);
    }
    let tail = if fields.class == Class::Signed { 80 } else { 16 };
    frame.extend((0..tail).map(|at| at as u8 | 0x80));
    frame
}

/// The context that says what a compact frame of `fields` does not.
fn context(fields: &HeaderFields, slot: Slot, byte: u8, near: Epoch) -> (Dictionary, Roster) {
    let (mut dictionary, mut roster) = (Dictionary::new(), Roster::new());
    dictionary.define(byte, Entry::of(fields)).unwrap();
    roster.insert(fields.group, slot, fields.source).unwrap();
    roster.set_epoch(fields.group, near);
    (dictionary, roster)
}

/// Checks both ways; gives the compact form's length.
fn there_and_back(
    fields: &HeaderFields,
    key: KeyId,
    counter: u64,
    (byte, near, body_bytes): (u8, Epoch, usize),
) -> Result<usize, FrameError> {
    let (dictionary, roster) = context(fields, key.slot, byte, near);
    let (next_hop, previous_hop) = (fields.next_hop, fields.previous_hop);
    let link = LinkContext { dictionary: &dictionary, roster: &roster, next_hop, previous_hop };
    let full = unsealed(fields, key, counter, body_bytes);
    let (mut compact, mut back, mut again) = (vec![], vec![], vec![]);
    to_compact(&full, &link, &mut compact)?;
    to_full(&compact, &link, &mut back)?;
    assert_eq!(back, full);
    to_compact(&back, &link, &mut again)?;
    assert_eq!(again, compact);
    let view = CompactView::parse(&compact, &link).unwrap();
    let bound = if fields.class == Class::Peer { 15 } else { 11 };
    assert!(view.header_bytes() <= bound, "{}", view.header_bytes());
    Ok(compact.len())
}

#[test]
fn every_combination_of_the_small_fields() {
    let (slot, near) = (Slot::new(700).unwrap(), Epoch(3));
    for class in CLASSES {
        let key = KeyId::new(slot, class, near);
        for kind in Kind::ALL {
            for priority in Priority::ALL {
                for compression in Compression::ALL {
                    for hop_limit in 0..=MAX_HOP_LIMIT {
                        let fields = HeaderFields {
                            next_hop: RELAY,
                            hop_limit,
                            kind,
                            class,
                            priority,
                            compression,
                            ..HeaderFields::new(GROUP_TAG, SENDER, 0x21)
                        };
                        there_and_back(&fields, key, 77, (9, near, 20)).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn every_slot_data_type_dictionary_byte_and_epoch() {
    let fields = HeaderFields::new(GROUP_TAG, SENDER, 0x21);
    let key = KeyId::new(Slot::new(700).unwrap(), Class::Group, Epoch(0));
    for slot in (0..=1023).map(|slot| Slot::new(slot).unwrap()) {
        there_and_back(&fields, KeyId { slot, ..key }, 5, (0, Epoch(0), 1)).unwrap();
    }
    for data_type in 0..=u16::MAX {
        let fields = HeaderFields { data_type, ..fields };
        there_and_back(&fields, key, 5, (0, Epoch(0), 0)).unwrap();
    }
    for byte in 0..=u8::MAX {
        there_and_back(&fields, key, 5, (byte, Epoch(0), 0)).unwrap();
    }
    for epoch in (0..600).map(Epoch) {
        let key = KeyId::new(key.slot, key.class, epoch);
        for away in 0..=7 {
            let least = Epoch(epoch.0.saturating_sub(away));
            there_and_back(&fields, key, 5, (0, least, 0)).unwrap();
            there_and_back(&fields, key, 5, (0, Epoch(epoch.0 + away), 0)).unwrap();
        }
    }
}

#[test]
fn every_length_of_a_counter() {
    for data_type in [0xff, 0x100] {
        let fields = HeaderFields::new(GROUP_TAG, SENDER, data_type);
        let key = KeyId::new(Slot::new(700).unwrap(), Class::Group, Epoch(0));
        for bits in 0..=40 {
            let counter = ((1_u64 << bits) - 1).min(MAX_COUNTER);
            let made = there_and_back(&fields, key, counter, (0, Epoch(0), 9));
            let fits = data_type < 0x100 || counter <= u32::MAX.into();
            assert_eq!(made.is_ok(), fits, "{data_type} {counter}: {made:?}");
            assert!(made.is_ok() || made == Err(FrameError::NoCompactForm));
        }
    }
}

#[test]
fn what_the_link_does_not_say_has_no_compact_form() {
    let fields = HeaderFields { next_hop: RELAY, ..HeaderFields::new(GROUP_TAG, SENDER, 0x21) };
    let slot = Slot::new(700).unwrap();
    let key = KeyId::new(slot, Class::Group, Epoch(20));
    let (dictionary, mut roster) = context(&fields, slot, 0, Epoch(20));
    let odd = [
        HeaderFields { next_hop: READER, ..fields },
        HeaderFields { previous_hop: READER, ..fields },
        HeaderFields { destination: READER, ..fields },
        HeaderFields { codec: 1, ..fields },
        HeaderFields { priority: Priority::High, ..fields },
        HeaderFields { source: READER, ..fields },
        HeaderFields { time_ms: 1, ..fields },
    ];
    let refused = |fields, key, roster: &Roster| {
        let link =
            LinkContext { dictionary: &dictionary, roster, next_hop: RELAY, previous_hop: SENDER };
        let mut out = vec![];
        let made = to_compact(&unsealed(&fields, key, 5, 9), &link, &mut out);
        assert!(made.is_ok() || out.is_empty());
        made.err()
    };
    assert_eq!(refused(fields, key, &roster), None);
    for fields in odd {
        assert_eq!(refused(fields, key, &roster), Some(FrameError::NoCompactForm), "{fields:?}");
    }
    let other = KeyId { slot: Slot::new(701).unwrap(), ..key };
    assert_eq!(refused(fields, other, &roster), Some(FrameError::NoCompactForm));
    roster.set_epoch(GROUP_TAG, Epoch(40));
    assert_eq!(refused(fields, key, &roster), Some(FrameError::NoCompactForm));
}

#[test]
fn what_is_sealed_in_one_form_opens_in_the_other() {
    for class in CLASSES {
        for suite in Suite::ALL {
            let mut members = Members::starting_at(class, suite, 300);
            let link = members::link(&members.dictionary, &members.roster);
            let (sealer, opener) = (&mut members.sealer, &mut members.opener);
            let mut buf = FrameBuf::new();
            let full = seal_frame(sealer, &members.fields, b"one", &mut buf).unwrap();
            let mut compact = vec![];
            to_compact(full, &link, &mut compact).unwrap();
            let received = open_compact(opener, &mut compact, &link).unwrap();
            assert_eq!((received.body, received.header.as_bytes()), (&b"one"[..], &full[..64]));
            let _ = received.accept();

            let mut buf = FrameBuf::new();
            let compact = seal_compact(sealer, &members.fields, b"two", &link, &mut buf).unwrap();
            let mut full = vec![];
            to_full(compact, &link, &mut full).unwrap();
            let received = open_frame(opener, &mut full).unwrap();
            assert_eq!((received.body, received.header.fields()), (&b"two"[..], members.fields));
            let _ = received.accept();
        }
    }
}

#[test]
fn odd_compact_frames_are_refused() {
    let members = Members::new(Class::Group);
    let link = members::link(&members.dictionary, &members.roster);
    // First byte, dictionary byte, data type, SFrame header of slot 700, class C, epoch 0.
    let head = [0x8f, 4, 0x21, 0x95, 0xaf, 0x10];
    let tag = [7; 16];
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = [&head[..], b"body", &tag].concat();
        change(&mut bytes);
        let view = CompactView::parse(&bytes, &link);
        view.and_then(|view| view.header(&link)).err()
    };
    assert_eq!(with(&|_| ()), None);
    assert_eq!(with(&|bytes| bytes.truncate(2)), Some(FrameError::TooShort));
    assert_eq!(with(&|bytes| bytes[0] = 0x4f), Some(FrameError::UnknownVersion));
    assert_eq!(with(&|bytes| bytes[1] = 5), Some(FrameError::UnknownEntry));
    let zero_high = |bytes: &mut Vec<u8>| {
        bytes[0] |= 0x40;
        bytes.insert(3, 0);
    };
    assert_eq!(with(&zero_high), Some(FrameError::ReservedBits));
    assert_eq!(with(&|bytes| bytes[3] = 0xb5), Some(FrameError::BadSealHeader));
    assert_eq!(with(&|bytes| bytes[5] = 0x20), Some(FrameError::HeadersDisagree));
    assert_eq!(with(&|bytes| bytes[4] = 0xae), Some(FrameError::UnknownSource));
    assert_eq!(with(&|bytes| bytes.truncate(21)), Some(FrameError::LengthMismatch));
}

fn any_fields() -> impl Strategy<Value = HeaderFields> {
    let small = (0..4_usize, 0..4_usize, 0..4_usize, 0..3_usize, 0..=MAX_HOP_LIMIT, any::<u8>());
    let tags = (any::<[u8; 8]>(), any::<[u8; 8]>(), any::<[u8; 8]>(), any::<[u8; 8]>());
    (small, tags, any::<[u8; 4]>(), any::<u16>()).prop_map(|(small, tags, group, data_type)| {
        let (kind, class, priority, compression, hop_limit, codec) = small;
        let [next_hop, previous_hop, source, destination] =
            [tags.0, tags.1, tags.2, tags.3].map(PeerTag::from_bytes);
        HeaderFields {
            next_hop,
            previous_hop,
            hop_limit,
            kind: Kind::ALL[kind],
            class: Class::ALL[class],
            priority: Priority::ALL[priority],
            compression: Compression::ALL[compression],
            codec,
            data_type,
            group: sealane_frame::GroupTag::from_bytes(group),
            source,
            destination,
            time_ms: 0,
        }
    })
}

proptest! {
    /// Law: a full frame has one compact form on a link and comes back from it byte by byte.
    #[test]
    fn there_and_back_again(
        fields in any_fields(),
        slot in 0..=1023_u16,
        epoch: u32,
        away in 0..=7_u64,
        bits in 0..=40_u32,
        low: u64,
        byte: u8,
        body_bytes in 0..300_usize,
    ) {
        let counter = low & ((1 << bits) - 1);
        let epoch = Epoch(epoch.into());
        let key = KeyId::new(Slot::new(slot).unwrap(), fields.class, epoch);
        let near = Epoch(epoch.0 + away);
        let made = there_and_back(&fields, key, counter, (byte, near, body_bytes));
        let fits = fields.data_type < 0x100 || counter <= u32::MAX.into();
        prop_assert!(made.is_ok() || !fits && made == Err(FrameError::NoCompactForm), "{:?}", made);
    }
}
