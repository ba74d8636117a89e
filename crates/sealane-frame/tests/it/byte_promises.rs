//! How many bytes a message costs, over its body and in all.

use crate::shared::members::{self, CLASSES, Members};
use sealane_codec::{document, event};
use sealane_frame::{FrameBuf, seal_compact, seal_frame};
use sealane_message::DataType;
use sealane_message::document::{Count, Document, EmergencyCall, Heartbeat, Location, Position};
use sealane_message::event::{Action, Content, Event, EventId, Reference};
use sealane_message::limits::MAX_COUNT;
use sealane_seal::limits::{MAX_COUNTER, MAX_SLOT};
use sealane_seal::{Class, Suite};

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
fn a_chat_text_of_100_bytes_takes_160_bytes_compact_or_222_signed_and_220_full() {
    let chat = text(100);
    let event_bytes = encoded(&chat).len();
    assert!(event_bytes <= 129, "{event_bytes}");
    for (class, bound) in [(Class::Group, 160), (Class::Peer, 160), (Class::Signed, 222)] {
        let frame = sealed(class, &chat);
        assert!(frame.compact <= bound, "{class:?}: {}", frame.compact);
        assert!(class == Class::Signed || frame.full <= 220, "{class:?}: {}", frame.full);
    }
}

#[test]
fn a_chat_text_of_8_kib_takes_8320_bytes_full_or_8390_signed() {
    let chat = text(8 << 10);
    let event_bytes = encoded(&chat).len();
    assert!(event_bytes <= 8231, "{event_bytes}");
    for (class, bound) in [(Class::Group, 8320), (Class::Peer, 8320), (Class::Signed, 8390)] {
        let frame = sealed(class, &chat);
        assert!(frame.full <= bound, "{class:?}: {}", frame.full);
    }
}

#[test]
fn a_reaction_takes_72_bytes_compact_or_135_signed() {
    // The slot of a member of a large group, which takes most bytes, and the one of the pair.
    for slot in [MAX_SLOT, 1] {
        let of = Reference { slot, id: EventId(*b"an event") };
        let reaction = doing(Action::React { of, emoji: "👍".into() });
        let event_bytes = encoded(&reaction).len();
        assert!(event_bytes <= 41, "{event_bytes}");
        for (class, bound) in [(Class::Group, 72), (Class::Peer, 72), (Class::Signed, 135)] {
            let frame = sealed(class, &reaction);
            assert!(frame.compact <= bound, "{class:?}: {}", frame.compact);
        }
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

#[test]
fn documents_take_54_bytes_compact_for_a_position_36_for_a_count_108_for_an_answer() {
    let position = Position::from_degrees(48.137_154, 11.576_124).unwrap();
    let location = Document::Location(Location {
        time_ms: 1_795_370_000_000,
        position,
        altitude_dm: Some(5190),
        accuracy_dm: Some(35),
    });
    let heartbeat = Document::Heartbeat(Heartbeat { next_s: Some(60), up_s: u32::MAX });
    let counter = Document::Counter(vec![Count { id: 255, total: MAX_COUNT }]);
    let answer = Document::Acknowledgement(EmergencyCall { slot: MAX_SLOT, number: u32::MAX });
    for (class, document, bound) in [
        (Class::Group, location, 54),
        (Class::Authenticated, heartbeat, 36),
        (Class::Authenticated, counter, 36),
        (Class::Signed, answer, 108),
    ] {
        let mut body = Vec::new();
        if document.data_type() == DataType::ACKNOWLEDGEMENT {
            body.extend(1_795_370_000_000_u64.to_le_bytes());
        }
        document::encode(&document, &mut body).unwrap();
        let mut buf = FrameBuf::new();
        let mut members = Members::starting_at(class, Suite::Aes256Gcm, u32::MAX as u64 - 9);
        members.fields.data_type = document.data_type().number();
        let link = members::link(&members.dictionary, &members.roster);
        let (sealer, fields) = (&mut members.sealer, &members.fields);
        let binding = members::binding();
        let frame = seal_compact(sealer, fields, &binding, &body, &link, &mut buf).unwrap();
        assert!(frame.len() <= bound, "{document:?}: {}", frame.len());
    }
}

/// An event of today, of the sender's only device.
fn doing(action: Action<'_>) -> Event<'_> {
    Event::new(EventId([0x5a, 0x03, 0xc4, 0x91, 0xee, 0x27, 0xb8, 0x6d]), 1_795_370_000_000, action)
}

fn text(bytes: usize) -> Event<'static> {
    doing(Action::Message(Content::Text("x".repeat(bytes).into()).into()))
}

fn encoded(event: &Event<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    event::encode(event, &mut bytes).unwrap();
    bytes
}

/// Bytes of one event in both forms of a frame.
struct Frames {
    full: usize,
    compact: usize,
}

/// Seals an event under a counter that takes most bytes, in the compact form those that fit it.
fn sealed(class: Class, event: &Event<'_>) -> Frames {
    let binding = members::binding();
    let mut buf = FrameBuf::new();
    let mut long = Members::starting_at(class, Suite::Aes256Gcm, MAX_COUNTER - 9);
    let mut draft = buf.draft();
    event::encode(event, draft.body()).unwrap();
    let full = draft.seal(&mut long.sealer, &long.fields, &binding).unwrap().len();
    let mut members = Members::starting_at(class, Suite::Aes256Gcm, u32::MAX as u64 - 9);
    let mut draft = buf.draft();
    event::encode(event, draft.body()).unwrap();
    let link = members::link(&members.dictionary, &members.roster);
    let (sealer, fields) = (&mut members.sealer, &members.fields);
    let compact = draft.seal_compact(sealer, fields, &binding, &link).unwrap().len();
    Frames { full, compact }
}
