//! How many bytes a message costs, over its body and in all.

use crate::shared::members::{self, CLASSES, Members};
use sealane_codec::{Codec, Writer};
use sealane_frame::{FrameBuf, seal_compact, seal_frame};
use sealane_seal::{Class, Suite, limits::MAX_COUNTER};

/// Counters and data types that take most bytes where both still fit the compact form.
const LONGEST: [(u64, u16); 2] = [(MAX_COUNTER - 9, 0xff), (u32::MAX as u64 - 9, u16::MAX)];

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
                let frame = seal_compact(sealer, &fields, &[7; 100], &link, &mut buf).unwrap();
                // A pair has slots 0 and 1 and so may save a byte.
                let spared = usize::from(class == Class::Peer);
                assert!((100 + bound(class) - spared..=100 + bound(class)).contains(&frame.len()));
            }
        }
    }
}

/// In a pair, and with 64 bytes of a signature more in a group of people, where chat is signed.
#[test]
fn a_chat_text_of_100_bytes_takes_160_bytes_compact_and_220_full_or_64_more_in_a_group() {
    for (class, signature) in [(Class::Peer, 0), (Class::Signed, 64)] {
        let mut members = Members::starting_at(class, Suite::Aes256Gcm, MAX_COUNTER - 9);
        let mut buf = FrameBuf::new();
        let mut draft = buf.draft();
        write_chat(draft.body());
        let full = draft.seal(&mut members.sealer, &members.fields).unwrap().len();
        let mut draft = buf.draft();
        write_chat(draft.body());
        let link = members::link(&members.dictionary, &members.roster);
        let compact = draft.seal_compact(&mut members.sealer, &members.fields, &link).unwrap();
        assert!(full <= 220 + signature, "{full}");
        assert!(compact.len() <= 160 + signature, "{}", compact.len());
    }
}

#[test]
fn large_bodies_fit_their_bounds() {
    for (body_bytes, bound) in [(8192, 8352), (256 << 10, 262_400)] {
        for class in CLASSES {
            let counter = MAX_COUNTER - 9;
            let mut members = Members::starting_at(class, Suite::Aes256Gcm, counter);
            let (body, mut buf) = (vec![7; body_bytes], FrameBuf::new());
            let frame = seal_frame(&mut members.sealer, &members.fields, &body, &mut buf).unwrap();
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
