//! The compact form loses nothing: full to compact to full, and compact to full to compact.

use crate::shared::members::{
    self, CLASSES, CONTEXT, EPOCH, GROUP_TAG, Members, READER, RELAY, SENDER,
};
use proptest::prelude::*;
use sealane_frame::limits::{MAX_FRAME_BODY_BYTES, MAX_HOP_LIMIT};
use sealane_frame::{
    CompactView, DictionaryEntry, FrameAnnouncement, FrameBuf, FrameCompression, FrameDictionary,
    FrameError, FrameKind, FrameRoster, FrameView, Header, HeaderFields, LinkContext, PeerTag,
    Priority, open_compact, open_frame, seal_compact, seal_frame, to_compact, to_full,
};
use sealane_seal::limits::MAX_COUNTER;
use sealane_seal::{Class, Epoch, Form, KeyId, SenderContext, SframeHeader, Slot, Suite};

/// Which message a frame carries.
#[derive(Clone, Copy)]
struct Name {
    key: KeyId,
    counter: u64,
    context: SenderContext,
}

impl Name {
    fn new(slot: Slot, class: Class, epoch: Epoch) -> Name {
        Name { key: KeyId::new(slot, class, epoch), counter: 5, context: CONTEXT }
    }

    /// Whether both headers are short enough for the compact form.
    fn fits(&self, fields: &HeaderFields) -> bool {
        let head = SframeHeader { key: self.key, counter: self.counter }.encode(Form::Compact);
        head.len() + if fields.data_type < 0x100 { 4 } else { 5 } <= 11
    }
}

/// A frame whose seal is a pattern: forms can be changed without keys.
fn unsealed(fields: &HeaderFields, name: Name, body_bytes: usize) -> Vec<u8> {
    let Name { key, counter, context } = name;
    let header = Header::new(fields, body_bytes, counter, context).unwrap();
    let head = SframeHeader { key, counter }.encode(Form::Full);
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

/// The knowledge of the link beside the message.
#[derive(Clone, Copy)]
struct Known {
    /// The dictionary byte.
    byte: u8,
    near: Epoch,
}

/// The dictionary and the roster that supply the fields of `fields` which a compact frame leaves
/// out.
fn context(fields: &HeaderFields, name: Name, known: Known) -> (FrameDictionary, FrameRoster) {
    let (mut dictionary, mut roster) = (FrameDictionary::new(), FrameRoster::new());
    dictionary.define(known.byte, DictionaryEntry::of(fields)).unwrap();
    roster.insert(fields.group, name.key.slot, fields.source).unwrap();
    roster.set_epoch(fields.group, known.near);
    let announced = FrameAnnouncement { context: name.context, orders: fields.orders };
    roster.announce(fields.group, name.key.slot, announced).unwrap();
    (dictionary, roster)
}

/// Checks both ways; gives the compact form's length.
fn there_and_back(
    fields: &HeaderFields,
    name: Name,
    known: Known,
    body_bytes: usize,
) -> Result<usize, FrameError> {
    let (dictionary, roster) = context(fields, name, known);
    let (next_hop, previous_hop) = (fields.next_hop, fields.previous_hop);
    let link = LinkContext { dictionary: &dictionary, roster: &roster, next_hop, previous_hop };
    let full = unsealed(fields, name, body_bytes);
    let (mut compact, mut back, mut again) = (vec![], vec![], vec![]);
    to_compact(&full, &link, &mut compact)?;
    to_full(&compact, &link, &mut back)?;
    assert_eq!(back, full);
    to_compact(&back, &link, &mut again)?;
    assert_eq!(again, compact);
    let view = CompactView::parse(&compact, &link).unwrap();
    let header = view.header(&link).unwrap();
    assert_eq!((header.context(), header.orders()), (name.context, fields.orders));
    assert_eq!(compact[2], name.context.low());
    let bound = if fields.class == Class::Peer { 15 } else { 11 };
    assert!(view.header_bytes() <= bound, "{}", view.header_bytes());
    Ok(compact.len())
}

#[test]
fn every_combination_of_the_small_fields() {
    let (slot, near) = (Slot::new(700).unwrap(), Epoch(3));
    for class in CLASSES {
        let name = Name { counter: 77, ..Name::new(slot, class, near) };
        for kind in FrameKind::ALL {
            for priority in Priority::ALL {
                for compression in FrameCompression::ALL {
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
                        there_and_back(&fields, name, Known { byte: 9, near }, 20).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn every_slot_data_type_dictionary_byte_and_epoch() {
    let fields = HeaderFields::new(GROUP_TAG, SENDER, 0x21);
    let (slot, class) = (Slot::new(700).unwrap(), Class::Group);
    let (name, known) = (Name::new(slot, class, Epoch(0)), Known { byte: 0, near: Epoch(0) });
    for slot in (0..=1023).map(|slot| Slot::new(slot).unwrap()) {
        there_and_back(&fields, Name::new(slot, class, Epoch(0)), known, 1).unwrap();
    }
    for data_type in 0..=u16::MAX {
        let fields = HeaderFields { data_type, ..fields };
        there_and_back(&fields, name, known, 0).unwrap();
    }
    for byte in 0..=u8::MAX {
        there_and_back(&fields, name, Known { byte, ..known }, 0).unwrap();
    }
    for epoch in (0..600).map(Epoch) {
        let name = Name::new(slot, class, epoch);
        for away in 0..=7 {
            for near in [epoch.0.saturating_sub(away), epoch.0 + away].map(Epoch) {
                there_and_back(&fields, name, Known { near, ..known }, 0).unwrap();
            }
        }
    }
}

#[test]
fn every_byte_of_contexts_and_orders() {
    let slot = Slot::new(700).unwrap();
    for value in 0..=u8::MAX {
        let known = Known { byte: 0, near: EPOCH };
        let fields = HeaderFields { orders: value, ..HeaderFields::new(GROUP_TAG, SENDER, 0x21) };
        for at in 0..SenderContext::BYTES {
            let mut name = Name::new(slot, Class::Group, EPOCH);
            name.context.0[at] = value;
            there_and_back(&fields, name, known, 3).unwrap();
        }
    }
}

/// Counters below 2^32 fit with data types of one byte, those below 2^24 with all, and no others.
#[test]
fn every_length_of_a_counter() {
    let known = Known { byte: 0, near: Epoch(0) };
    for (data_type, first_too_long) in [(0xff, 1 << 32), (0x100, 1 << 24), (0xffff, 1 << 24)] {
        let fields = HeaderFields::new(GROUP_TAG, SENDER, data_type);
        let name = Name::new(Slot::new(700).unwrap(), Class::Group, Epoch(0));
        for bits in 0..=40 {
            for counter in [(1_u64 << bits) - 1, (1_u64 << bits).min(MAX_COUNTER)] {
                let name = Name { counter, ..name };
                let made = there_and_back(&fields, name, known, 9);
                let fits = counter < first_too_long;
                assert_eq!(made.is_ok(), fits, "{data_type} {counter}: {made:?}");
                assert!(made.is_ok() || made == Err(FrameError::NoCompactForm));
            }
        }
    }
}

/// As above, for whoever seals: the last counter that fits, and the next one.
#[test]
fn a_counter_that_does_not_fit_is_not_sealed() {
    for class in CLASSES {
        for (data_type, last) in [(0x21, (1 << 32) - 1), (0x121, (1 << 24) - 1)] {
            let mut members = Members::starting_at(class, Suite::Aes256Gcm, last);
            let (mut buf, binding) = (FrameBuf::new(), members::binding());
            members.fields.data_type = data_type;
            let link = members::link(&members.dictionary, &members.roster);
            let (sealer, fields) = (&mut members.sealer, &members.fields);
            seal_compact(sealer, fields, &binding, b"last", &link, &mut buf).unwrap();
            let next = seal_compact(sealer, fields, &binding, b"next", &link, &mut buf);
            if class == Class::Peer {
                // Key ids of slots 0 and 1 take a byte less, so that the counter may take it.
                next.unwrap();
            } else {
                assert_eq!(next.err(), Some(FrameError::NoCompactForm));
                assert_eq!(sealer.next_counter(), Ok(last + 1), "no counter was spent");
            }
            seal_frame(sealer, fields, &binding, b"next", &mut buf).unwrap();
        }
    }
}

#[test]
fn what_the_link_does_not_say_has_no_compact_form() {
    let fields = HeaderFields { next_hop: RELAY, ..HeaderFields::new(GROUP_TAG, SENDER, 0x21) };
    let slot = Slot::new(700).unwrap();
    let name = Name::new(slot, Class::Group, Epoch(20));
    let known = Known { byte: 0, near: Epoch(20) };
    let (dictionary, mut roster) = context(&fields, name, known);
    let odd = [
        HeaderFields { next_hop: READER, ..fields },
        HeaderFields { previous_hop: READER, ..fields },
        HeaderFields { destination: READER, ..fields },
        HeaderFields { codec: 1, ..fields },
        HeaderFields { priority: Priority::High, ..fields },
        HeaderFields { source: READER, ..fields },
        HeaderFields { orders: 1, ..fields },
    ];
    let refused = |fields, name, roster: &FrameRoster| {
        let link =
            LinkContext { dictionary: &dictionary, roster, next_hop: RELAY, previous_hop: SENDER };
        let mut out = vec![];
        let made = to_compact(&unsealed(&fields, name, 9), &link, &mut out);
        assert!(made.is_ok() || out.is_empty());
        made.err()
    };
    assert_eq!(refused(fields, name, &roster), None);
    for fields in odd {
        assert_eq!(refused(fields, name, &roster), Some(FrameError::NoCompactForm), "{fields:?}");
    }
    for bit in [0, 7, 31, 63] {
        let mut other = name;
        other.context.0[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(refused(fields, other, &roster), Some(FrameError::NoCompactForm), "{bit}");
    }
    let other = Name::new(Slot::new(701).unwrap(), Class::Group, Epoch(20));
    assert_eq!(refused(fields, other, &roster), Some(FrameError::NoCompactForm));
    roster.set_epoch(GROUP_TAG, Epoch(40));
    assert_eq!(refused(fields, name, &roster), Some(FrameError::NoCompactForm));
}

#[test]
fn what_is_sealed_in_one_form_opens_in_the_other() {
    for class in CLASSES {
        for suite in Suite::ALL {
            let mut members = Members::starting_at(class, suite, 300);
            let link = members::link(&members.dictionary, &members.roster);
            let (sealer, opener) = (&mut members.sealer, &mut members.opener);
            let (mut buf, binding) = (FrameBuf::new(), members::binding());
            let full = seal_frame(sealer, &members.fields, &binding, b"one", &mut buf).unwrap();
            let mut compact = vec![];
            to_compact(full, &link, &mut compact).unwrap();
            let received = open_compact(opener, &binding, &mut compact, &link).unwrap();
            assert_eq!((received.body, received.header.as_bytes()), (&b"one"[..], &full[..64]));
            let _ = received.accept();

            let (mut buf, fields) = (FrameBuf::new(), &members.fields);
            let compact = seal_compact(sealer, fields, &binding, b"two", &link, &mut buf);
            let (compact, mut full) = (compact.unwrap(), vec![]);
            to_full(compact, &link, &mut full).unwrap();
            let received = open_frame(opener, &binding, &mut full).unwrap();
            assert_eq!((received.body, received.header.fields()), (&b"two"[..], members.fields));
            let _ = received.accept();
        }
    }
}

#[test]
fn odd_compact_frames_are_refused() {
    let members = Members::new(Class::Group);
    let link = members::link(&members.dictionary, &members.roster);
    // First byte, dictionary byte, last byte of the context, data type, SFrame header of slot 700,
    // class C, epoch 4 mod 16.
    let head = [0x8f, 4, b'1', 0x21, 0x95, 0xaf, 0x14];
    let tag = [7; 16];
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = [&head[..], b"body", &tag].concat();
        change(&mut bytes);
        let view = CompactView::parse(&bytes, &link);
        view.and_then(|view| view.header(&link)).err()
    };
    assert_eq!(with(&|_| ()), None);
    assert_eq!(with(&|bytes| bytes.truncate(3)), Some(FrameError::TooShort));
    assert_eq!(with(&|bytes| bytes[0] = 0x4f), Some(FrameError::UnknownVersion));
    assert_eq!(with(&|bytes| bytes[1] = 5), Some(FrameError::UnknownEntry));
    let zero_high = |bytes: &mut Vec<u8>| {
        bytes[0] |= 0x40;
        bytes.insert(4, 0);
    };
    assert_eq!(with(&zero_high), Some(FrameError::ReservedBits));
    assert_eq!(with(&|bytes| bytes[4] = 0xb5), Some(FrameError::BadSealHeader));
    let long = |bytes: &mut Vec<u8>| drop(bytes.splice(4..5, [0x9c, 0xaf, 0x14, 1, 0, 0, 0, 0]));
    assert_eq!(with(&long), Some(FrameError::BadSealHeader), "headers of 12 bytes");
    assert_eq!(with(&|bytes| bytes[6] = 0x24), Some(FrameError::HeadersDisagree));
    assert_eq!(with(&|bytes| bytes[5] = 0xae), Some(FrameError::UnknownSource));
    assert_eq!(with(&|bytes| bytes.truncate(22)), Some(FrameError::LengthMismatch));
    for low in (0..=u8::MAX).filter(|low| *low != CONTEXT.low()) {
        assert_eq!(with(&|bytes| bytes[2] = low), Some(FrameError::Unannounced), "{low}");
    }
}

fn any_fields() -> impl Strategy<Value = HeaderFields> {
    let bytes = any::<[u8; 2]>();
    let small = (0..4_usize, 0..4_usize, 0..4_usize, 0..3_usize, 0..=MAX_HOP_LIMIT, bytes);
    let tags = (any::<[u8; 8]>(), any::<[u8; 8]>(), any::<[u8; 8]>(), any::<[u8; 8]>());
    (small, tags, any::<[u8; 4]>(), any::<u16>()).prop_map(|(small, tags, group, data_type)| {
        let (kind, class, priority, compression, hop_limit, [codec, orders]) = small;
        let [next_hop, previous_hop, source, destination] =
            [tags.0, tags.1, tags.2, tags.3].map(PeerTag::from_bytes);
        HeaderFields {
            next_hop,
            previous_hop,
            hop_limit,
            kind: FrameKind::ALL[kind],
            class: Class::ALL[class],
            priority: Priority::ALL[priority],
            compression: FrameCompression::ALL[compression],
            codec,
            data_type,
            group: sealane_frame::GroupTag::from_bytes(group),
            source,
            destination,
            orders,
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
        context: [u8; 8],
        body_bytes in 0..300_usize,
    ) {
        let counter = low & ((1 << bits) - 1);
        let epoch = Epoch(epoch.into());
        let key = KeyId::new(Slot::new(slot).unwrap(), fields.class, epoch);
        let name = Name { key, counter, context: SenderContext(context) };
        let near = Epoch(epoch.0 + away);
        let made = there_and_back(&fields, name, Known { byte, near }, body_bytes);
        prop_assert_eq!(made.is_ok(), name.fits(&fields), "{:?}", made);
        prop_assert!(made.is_ok() || made == Err(FrameError::NoCompactForm));
    }
}

/// The writer refuses it before it seals, and the reader before it looks at the seal.
#[test]
fn a_body_beyond_its_limit_is_refused_at_both_ends() {
    let mut members = Members::new(Class::Group);
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    let body = vec![0; MAX_FRAME_BODY_BYTES + 1];
    let refused = seal_frame(&mut members.sealer, &members.fields, &binding, &body, &mut buf);
    assert_eq!(refused.err(), Some(FrameError::BodyTooLong));
    let name = Name::new(members.sealer.slot(), Class::Group, EPOCH);
    let mut frame = unsealed(&members.fields, name, MAX_FRAME_BODY_BYTES);
    assert!(FrameView::parse(&frame).is_ok());
    let bytes = u32::try_from(MAX_FRAME_BODY_BYTES + 1).unwrap();
    frame[43..47].copy_from_slice(&bytes.to_le_bytes());
    frame.push(0);
    assert_eq!(FrameView::parse(&frame).err(), Some(FrameError::BodyTooLong));
}
