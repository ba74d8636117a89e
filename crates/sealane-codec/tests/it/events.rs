//! An event has one encoding, comes back from it as it was, and nothing else is read as one.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sealane_codec::event::{EventError, decode, encode};
use sealane_message::event::{Action, Attachment, Content, Event, EventId, Message};
use sealane_message::limits::{MAX_HANDLE_BYTES, MAX_MENTIONS};

type Text = Cow<'static, str>;

fn text() -> impl Strategy<Value = Text> {
    "\\PC{0,40}".prop_map(Cow::Owned)
}

fn handle() -> impl Strategy<Value = Text> {
    "[a-zäß€]{1,21}".prop_map(Cow::Owned)
}

fn bytes() -> impl Strategy<Value = Cow<'static, [u8]>> {
    vec(any::<u8>(), 0..300).prop_map(Cow::Owned)
}

fn id() -> impl Strategy<Value = EventId> {
    any::<[u8; 16]>().prop_map(EventId)
}

fn written() -> impl Strategy<Value = Content<'static>> {
    let rich = (text(), text(), vec(text(), 0..4));
    let code = (text(), text(), option::of(text()), any::<bool>());
    let place = (-90.0..=90.0, -180.0..=180.0, option::of(0.0..1e9), option::of(text()));
    let poll = (text(), vec((text(), text()), 0..5), any::<[bool; 2]>(), option::of(any::<u64>()));
    prop_oneof![
        text().prop_map(Content::Text),
        rich.prop_map(|(raw, formatted, links)| Content::Rich { raw, formatted, links }),
        code.prop_map(|(language, code, filename, has_line_numbers)| {
            Content::Code { language, code, filename, has_line_numbers }
        }),
        (place, option::of(text())).prop_map(
            |((latitude, longitude, accuracy_m, address), place)| {
                Content::Location { latitude, longitude, accuracy_m, address, place }
            }
        ),
        poll.prop_map(|(question, options, [is_multiple, is_anonymous], closes_ms)| {
            Content::Poll { question, options, is_multiple, is_anonymous, closes_ms }
        }),
    ]
}

fn media() -> impl Strategy<Value = Content<'static>> {
    let number = any::<u64>;
    let voice = (number(), bytes(), option::of(text()), text(), bytes());
    let video = (number(), bytes(), number(), number(), text(), bytes());
    let sticker = (text(), text(), text(), any::<bool>(), bytes());
    let gif = (text(), bytes(), number(), number(), option::of(text()));
    prop_oneof![
        voice.prop_map(|(seconds, waveform, transcription, mime, data)| {
            Content::Voice { seconds, waveform, transcription, mime, data }
        }),
        video.prop_map(|(seconds, thumbnail, width, height, mime, data)| {
            Content::Video { seconds, thumbnail, width, height, mime, data }
        }),
        sticker.prop_map(|(pack, sticker, emoji, is_animated, data)| {
            Content::Sticker { pack, sticker, emoji, is_animated, data }
        }),
        gif.prop_map(|(url, thumbnail, width, height, caption)| {
            Content::Gif { url, thumbnail, width, height, caption }
        }),
    ]
}

fn content() -> impl Strategy<Value = Content<'static>> {
    prop_oneof![written(), media()]
}

fn attachment() -> impl Strategy<Value = Attachment<'static>> {
    let names = (id(), text(), text(), any::<u64>());
    let parts = (option::of(bytes()), bytes(), option::of(bytes()), vec((text(), text()), 0..3));
    (names, parts).prop_map(|((id, filename, mime, size), (thumbnail, object, key, metadata))| {
        Attachment { id, filename, mime, size, thumbnail, object, key, metadata }
    })
}

fn message() -> impl Strategy<Value = Message<'static>> {
    let place = (option::of(id()), option::of(id()), vec(text(), 0..4));
    let rest = (vec(attachment(), 0..3), option::of(any::<u64>()), any::<bool>());
    (content(), place, rest).prop_map(
        |(content, (thread, reply_to, mentions), (attachments, expires_ms, is_ephemeral))| {
            let said = Message::from(content);
            Message { thread, reply_to, mentions, attachments, expires_ms, is_ephemeral, ..said }
        },
    )
}

fn action() -> impl Strategy<Value = Action<'static>> {
    prop_oneof![
        4 => message().prop_map(Action::Message),
        1 => (id(), content()).prop_map(|(of, content)| Action::Edit { of, content }),
        1 => id().prop_map(Action::Delete),
        1 => (id(), text()).prop_map(|(of, emoji)| Action::React { of, emoji }),
        1 => (id(), text()).prop_map(|(of, emoji)| Action::Unreact { of, emoji }),
        1 => id().prop_map(Action::Read),
        1 => id().prop_map(Action::Deliver),
        1 => id().prop_map(Action::Pin),
        1 => id().prop_map(Action::Unpin),
        1 => (id(), vec(text(), 0..4)).prop_map(|(of, choices)| Action::Vote { of, choices }),
        1 => text().prop_map(Action::Create),
        1 => text().prop_map(Action::Rename),
        1 => handle().prop_map(Action::Invite),
        1 => handle().prop_map(Action::Join),
        1 => handle().prop_map(Action::Leave),
        1 => Just(Action::Call),
        1 => any::<u64>().prop_map(Action::HangUp),
    ]
}

prop_compose! {
    fn event()(
        names in (id(), id()), sender in handle(), device in option::of(handle()),
        time in any::<u64>(), action in action(),
    ) -> Event<'static> {
        let mut event = Event::new(names.0, names.1, sender, time, action);
        event.device = device;
        event
    }
}

fn encoded(event: &Event<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(event, &mut bytes).unwrap();
    bytes
}

fn doing(action: Action<'static>) -> Event<'static> {
    Event::new(EventId([1; 16]), EventId([2; 16]), "ada", 1_700_000_000_000, action)
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
}

#[test]
fn its_bytes_are_those_of_the_specification() {
    // id, conversation, sender, time, action, content.
    let mut expected = vec![0xa6, 0x00, 0x50];
    expected.extend([1; 16]);
    expected.extend([0x01, 0x50]);
    expected.extend([2; 16]);
    expected.extend(b"\x02\x63ada");
    expected.extend(b"\x04\x1b\x00\x00\x01\x8b\xcf\xe5\x68\x00");
    expected.extend(b"\x05\x00\x07\xa2\x00\x00\x01\x65hello");
    assert_eq!(encoded(&hello()), expected);
}

#[test]
fn keys_of_a_later_version_are_skipped() {
    let mut bytes = encoded(&hello());
    bytes[0] += 1;
    bytes.extend(b"\x18\x63\x82\x01\xa1\x61a\xf6");
    assert_eq!(decode(&bytes).unwrap(), hello());
}

#[test]
fn an_action_of_a_later_version_is_shown_and_not_written() {
    let mut bytes = encoded(&hello());
    let at = bytes.windows(2).position(|pair| pair == [5, 0]).unwrap();
    bytes[at + 1] = 0x17;
    let read = decode(&bytes).unwrap();
    assert_eq!(read.action, Action::Unknown(0x17));
    let mut out = b"kept".to_vec();
    assert_eq!(encode(&read, &mut out), Err(EventError::ActionUnknown));
    assert_eq!(out, b"kept");
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
    assert!(is_other_form(refused(b"\x05\x00\x07", b"\x18\x05\x00\x07")), "a longer key");
    assert!(is_other_form(refused(b"\x00\x01\x65", b"\x00\x00\x65")), "a key twice");
    let kind = |kind: u8| refused(b"\xa2\x00\x00", &[0xa2, 0, kind]);
    assert_eq!(kind(9), EventError::ContentUnknown { kind: 9 });
    assert_eq!(refused(b"\x01\x65hello", b"\x02\x65hello"), EventError::Missing { name: "text" });
    assert_eq!(refused(b"\x65hello", b"\x45hello"), EventError::Field { name: "text" });
    assert_eq!(refused(b"\x63ada", b"\x60"), EventError::Field { name: "sender" });
    assert_eq!(refused(b"\x50\x02", b"\x4f"), EventError::Field { name: "conversation" });
    assert!(matches!(refused(b"hello", b"hell\xff"), EventError::Malformed(_)), "no UTF-8");
    assert!(matches!(refused(b"hello", b"hello!"), EventError::Malformed(_)), "bytes behind it");
}

#[test]
fn limits_hold_both_ways() {
    let mut said = Message::from(Content::Text("".into()));
    said.mentions = vec!["x".into(); MAX_MENTIONS + 1];
    let crowd = doing(Action::Message(said.clone()));
    let too_many = EventError::TooMany { name: "mentions", limit: MAX_MENTIONS };
    assert_eq!(encode(&crowd, &mut Vec::new()), Err(too_many.clone()));
    said.mentions.pop();
    let mut bytes = encoded(&doing(Action::Message(said)));
    let at = bytes.windows(3).position(|window| window == [0x99, 1, 0]).unwrap();
    bytes[at + 2] = 1;
    assert_eq!(decode(&bytes), Err(too_many));
    let mut long = hello();
    long.sender = "x".repeat(MAX_HANDLE_BYTES + 1).into();
    assert_eq!(encode(&long, &mut Vec::new()), Err(EventError::Field { name: "sender" }));
    let latitude = Content::Location {
        latitude: f64::NAN,
        longitude: 0.0,
        accuracy_m: None,
        address: None,
        place: None,
    };
    let nowhere = doing(Action::Message(latitude.into()));
    assert_eq!(encode(&nowhere, &mut Vec::new()), Err(EventError::Field { name: "latitude" }));
}
