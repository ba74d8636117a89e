//! An event has one encoding, comes back from it as it was, and nothing else is read as one. What a
//! later version adds is skipped, or kept as it came.

mod any;
mod fields;
mod limits;
mod raw;

use proptest::collection::vec;
use proptest::prelude::*;
use sealane_codec::CodecError;
use sealane_codec::event::{EventError, decode, encode};
use sealane_message::event::{Action, Content, Event, EventId, Message, Reference};

use any::{event, unknown};
use fields::{ATTACHMENT, attached, said};

fn encoded(event: &Event<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(event, &mut bytes).unwrap();
    bytes
}

fn doing(action: Action<'static>) -> Event<'static> {
    Event::new(EventId([1; 8]), 1_700_000_000_000, action)
}

fn hello() -> Event<'static> {
    doing(Action::Message(Content::Text("hello".into()).into()))
}

proptest! {
    #[test]
    fn it_comes_back_as_it_was(event in event()) {
        let bytes = encoded(&event);
        prop_assert_eq!(&decode(&bytes).unwrap(), &event);
        prop_assert_eq!(decode(&bytes).unwrap().into_owned(), event);
    }

    #[test]
    fn what_is_read_has_no_other_encoding(event in event(), at in any::<usize>(), bit in 0_u8..8) {
        let mut bytes = encoded(&event);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(read) = decode(&bytes) {
            // Keys that nobody knows are skipped, and actions that nobody knows are not written.
            let mut again = Vec::new();
            if encode(&read, &mut again).is_ok() && again.len() == bytes.len() {
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn a_part_is_refused(event in event(), cut in any::<usize>()) {
        let bytes = encoded(&event);
        prop_assert!(decode(&bytes[..cut % bytes.len()]).is_err());
    }

    #[test]
    fn anything_is_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn unknown_content_is_passed_on_as_it_came(content in unknown(), is_edit in any::<bool>()) {
        let Content::Unknown { kind, map } = &content else { unreachable!() };
        let of = Reference { slot: 3, id: EventId([4; 8]) };
        let action = match is_edit {
            true => Action::Edit { of, content: content.clone() },
            false => Action::Message(content.clone().into()),
        };
        let bytes = encoded(&doing(action));
        prop_assert!(bytes.ends_with(map));
        let read = decode(&bytes).unwrap();
        let (Action::Edit { content: got, .. } | Action::Message(Message { content: got, .. })) =
            &read.action
        else {
            unreachable!()
        };
        prop_assert_eq!(got, &Content::Unknown { kind: *kind, map: map.clone() });
        prop_assert_eq!(encoded(&read), bytes);
    }
}

#[test]
fn its_bytes_are_those_of_the_specification() {
    // id, time, content: neither the action message nor the kind text is written.
    let head =
        b"\xa3\x00\x48\x01\x01\x01\x01\x01\x01\x01\x01\x04\x1b\x00\x00\x01\x8b\xcf\xe5\x68\x00";
    let expected = [&head[..], b"\x07\xa1\x01\x65hello"].concat();
    assert_eq!(encoded(&hello()), expected);
}

#[test]
fn a_reference_has_the_slot_without_leading_zeros_and_the_id() {
    let slots: [(u16, &[u8]); 5] =
        [(0, &[]), (1, &[1]), (255, &[255]), (256, &[1, 0]), (0xffff, &[255, 255])];
    for (slot, written) in slots {
        let event = doing(Action::Delete(Reference { slot, id: EventId([7; 8]) }));
        let bytes = encoded(&event);
        assert!(bytes.ends_with(&[&[0x48 + written.len() as u8][..], written, &[7; 8]].concat()));
        assert_eq!(decode(&bytes).unwrap(), event);
    }
}

#[test]
fn keys_of_a_later_version_are_skipped() {
    let (text, value) = (raw::text("hello"), raw::map(&[(0, raw::NULL), (25, raw::FALSE)]));
    for key in [10, 23, 24, 99, u64::MAX] {
        let mut bytes = encoded(&hello());
        bytes[0] += 1;
        bytes.extend(raw::number(key.max(17)));
        bytes.extend(&value);
        assert_eq!(decode(&bytes).unwrap(), hello());
        let (known, longer) = (raw::map(&[(1, &text)]), raw::map(&[(1, &text), (key, &value)]));
        let (known, longer) = (said(&known), said(&longer));
        assert_eq!(decode(&longer).unwrap(), decode(&known).unwrap());
        let longer = attached(raw::map(&[&ATTACHMENT[..], &[(key, &value)]].concat()));
        let known = attached(raw::map(&ATTACHMENT));
        assert_eq!(decode(&longer).unwrap(), decode(&known).unwrap());
    }
    // The free keys between those that are known.
    let bytes = encoded(&hello());
    let sender =
        [&[bytes[0] + 2][..], &bytes[1..11], b"\x01\x41a\x02\x63ada", &bytes[11..]].concat();
    assert_eq!(decode(&sender).unwrap(), hello());
}

#[test]
fn what_is_skipped_has_the_one_form_too() {
    let refused = |value: &[u8]| {
        let unknown = raw::map(&[(0, &raw::number(9)), (1, value)]);
        let mut beside = encoded(&hello());
        beside[0] += 1;
        beside.push(20);
        beside.extend(value);
        [decode(&said(&unknown)).unwrap_err(), decode(&beside).unwrap_err()]
    };
    let other_forms = [
        &b"\x18\x17"[..],                        // 23 in two bytes
        b"\x38\x17",                             // -24 in two bytes
        b"\x3b\x00\x00\x00\x00\xff\xff\xff\xff", // -2^32 in nine bytes
        b"\x58\x01x",                            // bytes, text, array and map behind longer heads
        b"\x78\x01x",
        b"\x98\x01\x00",
        b"\xb8\x01\x00\x00",
        b"\x5f\x41x\xff", // of open length
        b"\x7f\x61x\xff",
        b"\x9f\x00\xff",
        b"\xbf\x00\x00\xff",
        b"\xfa\x3f\x80\x00\x00", // 1.0 in five bytes and in nine
        b"\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x81\x18\x00", // within an array, as a key, and as a value
        b"\xa1\x18\x00\x00",
        b"\xa1\x00\x18\x00",
        b"\xa2\x01\x00\x00\x00",          // keys that do not ascend
        b"\xa2\x00\x00\x00\x00",          // a key twice
        b"\xa2\x61a\x00\x19\x01\x00\x00", // keys of two types
    ];
    for value in other_forms {
        for error in refused(value) {
            assert!(matches!(error, EventError::NotDeterministic { .. }), "{value:x?}: {error}");
        }
    }
    let no_data = [
        &b"\xff"[..],                            // an end without a beginning
        b"\x61\xff",                             // no UTF-8
        b"\xc0\x00",                             // a tag
        b"\xf7",                                 // undefined
        b"\xf9\x7c\x00",                         // infinity
        b"\x1c",                                 // a reserved head
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", // more elements than bytes
        b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for value in no_data {
        for error in refused(value) {
            assert!(matches!(error, EventError::Malformed(_)), "{value:x?}: {error}");
        }
    }
}

#[test]
fn an_action_of_a_later_version_is_shown_and_not_written() {
    let (id, time) = (raw::bytes(&[1; 8]), raw::number(1_700_000_000_000));
    for number in [17, 24, u64::MAX] {
        // Its keys may mean something else.
        let action = raw::number(number);
        let bytes = raw::map(&[(0, &id), (4, &time), (5, &action), (6, raw::NULL), (7, raw::TRUE)]);
        let read = decode(&bytes).unwrap();
        assert_eq!(read, doing(Action::Unknown(number)));
        let mut out = b"kept".to_vec();
        assert_eq!(encode(&read.into_owned(), &mut out), Err(EventError::ActionUnknown));
        assert_eq!(out, b"kept");
    }
}

#[test]
fn only_what_could_be_read_is_written_as_unknown_content() {
    let written = |kind: u64, map: &[u8]| {
        let content = Content::Unknown { kind, map: map.to_vec().into() };
        let mut out = b"kept".to_vec();
        let result = encode(&doing(Action::Message(content.into())), &mut out);
        assert!(result.is_ok() || out == b"kept");
        result
    };
    let unknown = raw::map(&[(0, &raw::number(9)), (1, raw::NULL)]);
    assert_eq!(written(9, &unknown), Ok(()));
    let field = |name| Err(EventError::Field { name });
    assert_eq!(written(10, &unknown), field("content"), "of another kind");
    assert_eq!(written(0, &raw::map(&[(1, &raw::text("x"))])), field("content"), "a text");
    assert_eq!(written(9, &raw::number(9)), field("content"), "no map");
    assert_eq!(written(9, &raw::map(&[(0, raw::NULL)])), field("kind"), "of no kind");
    let behind = [&unknown[..], b"\x00"].concat();
    let error = written(9, &behind).unwrap_err();
    assert!(matches!(error, EventError::Malformed(CodecError::Trailing { .. })), "{error}");
    let error = written(9, &unknown[..unknown.len() - 1]).unwrap_err();
    assert!(matches!(error, EventError::Malformed(CodecError::Truncated { .. })), "{error}");
    let error = written(9, b"\xa1\x00\x18\x09").unwrap_err();
    assert!(matches!(error, EventError::NotDeterministic { .. }), "{error}");
    assert!(matches!(written(9, b""), Err(EventError::Malformed(_))));
}

/// Changes the bytes of `hello` and says why they are refused.
fn refused(find: &[u8], replace: &[u8]) -> EventError {
    let bytes = encoded(&hello());
    let at = bytes.windows(find.len()).rposition(|window| window == find).unwrap();
    let changed = [&bytes[..at], replace, &bytes[at + find.len()..]].concat();
    decode(&changed).unwrap_err()
}

#[test]
fn every_fault_is_named() {
    let is_other_form = |error| matches!(error, EventError::NotDeterministic { .. });
    assert!(is_other_form(refused(b"\x65hello", b"\x78\x05hello")), "a longer head");
    assert!(is_other_form(refused(b"\x65hello", b"\x7f\x65hello\xff")), "an open length");
    assert!(is_other_form(refused(b"\x07\xa1", b"\x18\x07\xa1")), "a longer key");
    assert!(is_other_form(refused(b"\x07\xa1\x01", b"\x07\xb8\x01\x01")), "a longer map");
    assert!(is_other_form(refused(b"\x07\xa1\x01", b"\x07\xa2\x01\x60\x01")), "a key twice");
    let descending = b"\xa3\x01\x65hello\x03\x00\x02\x00";
    assert!(is_other_form(refused(b"\xa1\x01\x65hello", descending)), "keys that descend");
    let field = |name| EventError::Field { name };
    assert_eq!(refused(b"\xa1\x01", b"\xa1\x02"), EventError::Missing { name: "text" });
    assert_eq!(refused(b"\x65hello", b"\x45hello"), field("text"));
    assert_eq!(refused(b"\x07\xa1", b"\x61a\xa1"), field("key"), "a key of text");
    assert_eq!(refused(b"\x01\x65", b"\x20\x65"), field("key"), "a key below 0");
    assert_eq!(decode(b"\x80"), Err(field("event")), "no map");
    assert!(matches!(refused(b"hello", b"hell\xff"), EventError::Malformed(_)), "no UTF-8");
    assert!(matches!(refused(b"hello", b"hello!"), EventError::Malformed(_)), "bytes behind it");
    assert!(matches!(decode(b""), Err(EventError::Malformed(_))), "nothing");
}

#[test]
fn codes_are_stable() {
    let codes: Vec<_> = sealane_codec::event::ERRORS.iter().map(|error| error.code).collect();
    // The numbers between name nothing any more, and nothing else may take them.
    let expected = ["01", "05", "07"].map(|n| format!("SL-EVENT-{n}"));
    assert_eq!(codes, expected);
}
