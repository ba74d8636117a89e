//! How many bytes a message costs, over its body and in all.

use crate::shared::members::{self, CLASSES, Members};
use sealane_codec::{Codec, Writer};
use sealane_frame::{FrameBuf, seal_compact, seal_frame};
use sealane_seal::{Class, Suite, limits::MAX_COUNTER};

/// Counters and data types that take most bytes where both still fit the compact form.
const LONGEST: [(u64, u16); 2] = [(u32::MAX as u64 - 9, 0xff), ((1 << 24) - 10, u16::MAX)];

#[test]
fn the_compact_form_adds_27_bytes_or_31_for_peers_or_91_with_a_signature() {
    let bound = |class| match class {
        Class::Authenticated | Class::Group => 27,
        Class::Peer => 31,
        Class::Signed => 91,
    };
    for class in CLASSES {
        for (counter, data_type) in LONGEST {
            for suite in Suite::ALL {
                let mut members = Members::starting_at(class, suite, counter);
                members.fields.data_type = data_type;
                let (sealer, fields) = (&mut members.sealer, members.fields);
                let link = members::link(&members.dictionary, &members.roster);
                let mut buf = FrameBuf::new();
                let binding = members::binding();
                let body = &[7; 100];
                let frame = seal_compact(sealer, &fields, &binding, body, &link, &mut buf).unwrap();
                // A pair has slots 0 and 1 and so may save a byte.
                let spared = usize::from(class == Class::Peer);
                assert!((100 + bound(class) - spared..=100 + bound(class)).contains(&frame.len()));
            }
        }
    }
}

#[test]
fn a_chat_text_of_100_bytes_takes_160_bytes_compact_and_220_full() {
    for class in [Class::Group, Class::Peer] {
        let mut members = Members::starting_at(class, Suite::Aes256Gcm, u32::MAX as u64 - 9);
        let (sealer, fields) = (&mut members.sealer, &members.fields);
        let (mut buf, binding) = (FrameBuf::new(), members::binding());
        let mut draft = buf.draft();
        write_chat(draft.body());
        let full = draft.seal(sealer, fields, &binding).unwrap().len();
        let mut draft = buf.draft();
        write_chat(draft.body());
        let link = members::link(&members.dictionary, &members.roster);
        let compact = draft.seal_compact(sealer, fields, &binding, &link).unwrap();
        assert!(full <= 220, "{full}");
        assert!(compact.len() <= 160, "{}", compact.len());
    }
}

#[test]
fn large_bodies_fit_their_bounds() {
    for (body_bytes, bound) in [(8192, 8352), (256 << 10, 262_400)] {
        for class in CLASSES {
            let counter = MAX_COUNTER - 9;
            let mut members = Members::starting_at(class, Suite::Aes256Gcm, counter);
            let (body, mut buf) = (vec![7; body_bytes], FrameBuf::new());
            let (sealer, binding) = (&mut members.sealer, members::binding());
            let frame = seal_frame(sealer, &members.fields, &binding, &body, &mut buf).unwrap();
            assert!(frame.len() <= bound, "{class:?}: {}", frame.len());
        }
    }
}

/// A chat event, as far as its size goes: a CBOR map with the integer keys kind, conversation,
/// time and text. The types of events stand in a later crate; this is in their place.
fn write_chat(body: &mut Vec<u8>) {
    let mut writer = Writer::new(Codec::Cbor, body);
    writer.map(4);
    writer.u64(0);
    writer.u64(1);
    writer.u64(1);
    writer.bytes(&[0x5a; 8]);
    writer.u64(2);
    writer.u64(1_790_000_000_000);
    writer.u64(3);
    writer.text(&"a chat text that is a hundred bytes long, no byte more ".repeat(2)[..100]);
    writer.end();
}
