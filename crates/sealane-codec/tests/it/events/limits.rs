//! Each limit holds when an event is written and when it is read, and not one element earlier.

use std::borrow::Cow;

use sealane_codec::CodecError;
use sealane_codec::event::{EventError, decode, encode};
use sealane_codec::limits::{MAX_ATTACHMENT_FACTS, MAX_DEPTH, MAX_LINKS};
use sealane_message::event::{Action, Attachment, Content, Event, EventId, Message, Reference};
use sealane_message::limits::{MAX_ATTACHMENTS, MAX_HANDLE_BYTES, MAX_MENTIONS, MAX_POLL_OPTIONS};

use super::fields::{ATTACHMENT, attached, said};
use super::{doing, encoded, hello, raw};

fn text(bytes: usize) -> Cow<'static, str> {
    "x".repeat(bytes).into()
}

fn texts(count: usize) -> Vec<Cow<'static, str>> {
    vec![text(1); count]
}

fn attachment(facts: usize) -> Attachment<'static> {
    Attachment {
        id: EventId([1; 8]),
        filename: text(1),
        mime: text(1),
        size: 1,
        thumbnail: None,
        object: vec![1].into(),
        key: None,
        metadata: vec![(text(1), text(1)); facts],
    }
}

fn says(content: Content<'static>) -> Event<'static> {
    doing(Action::Message(content.into()))
}

fn with(change: impl FnOnce(&mut Message<'static>)) -> Event<'static> {
    let mut message = Message::from(Content::Text(text(1)));
    change(&mut message);
    doing(Action::Message(message))
}

fn poll(options: usize) -> Event<'static> {
    says(Content::Poll {
        question: text(1),
        options: vec![(text(1), text(1)); options],
        is_multiple: false,
        is_anonymous: false,
        closes_ms: None,
    })
}

fn vote(choices: usize) -> Event<'static> {
    let of = Reference { slot: 0, id: EventId([2; 8]) };
    doing(Action::Vote { of, choices: texts(choices) })
}

/// The same event with a list of one element more, whose head and elements the caller names.
fn longer(bytes: &[u8], count: usize, element: &[u8]) -> Vec<u8> {
    let list = |count: usize| {
        let head = &raw::texts(&vec![""; count])[..];
        let head = &head[..head.len() - count];
        [head, &element.repeat(count)].concat()
    };
    let (list, longer) = (list(count), list(count + 1));
    let at = bytes.windows(list.len()).position(|window| window == list).unwrap();
    [&bytes[..at], &longer, &bytes[at + list.len()..]].concat()
}

/// A list of an event, which has so many elements.
struct List {
    name: &'static str,
    limit: usize,
    /// The bytes of an element.
    element: Vec<u8>,
    event: fn(usize) -> Event<'static>,
}

fn list(
    name: &'static str,
    limit: usize,
    element: Vec<u8>,
    event: fn(usize) -> Event<'static>,
) -> List {
    List { name, limit, element, event }
}

fn lists() -> Vec<List> {
    let (one, pair) = (raw::text("x"), raw::texts(&["x", "x"]));
    let object = encoded(&with(|message| message.attachments = vec![attachment(0)]));
    // Behind the key of attachments and the head of the list.
    let object =
        object[object.windows(2).position(|pair| pair == [12, 0x81]).unwrap() + 2..].to_vec();
    let rich =
        |links| says(Content::Rich { raw: text(1), formatted: text(1), links: texts(links) });
    let (links, options) = (one.clone(), pair.clone());
    vec![
        list("mentions", MAX_MENTIONS, one.clone(), |count| with(|m| m.mentions = texts(count))),
        list("attachments", MAX_ATTACHMENTS, object, |count| {
            with(|message| message.attachments = vec![attachment(0); count])
        }),
        list("facts", MAX_ATTACHMENT_FACTS, pair, |count| {
            with(|message| message.attachments = vec![attachment(count)])
        }),
        list("links", MAX_LINKS, links, rich),
        list("options", MAX_POLL_OPTIONS, options, poll),
        list("choices", MAX_POLL_OPTIONS, one, vote),
    ]
}

#[test]
fn lists_have_as_many_elements_as_they_may() {
    for List { name, limit, element, event } in lists() {
        let full = event(limit);
        let bytes = encoded(&full);
        assert_eq!(decode(&bytes).unwrap(), full);
        let too_many = EventError::TooMany { name, limit };
        let mut out = b"kept".to_vec();
        assert_eq!(encode(&event(limit + 1), &mut out), Err(too_many.clone()));
        assert_eq!(out, b"kept");
        assert_eq!(decode(&longer(&bytes, limit, &element)), Err(too_many));
    }
}

/// Functions that make an event: of a handle, and of a value that nobody knows.
type OfHandle<'a> = &'a dyn Fn(&str) -> Event<'static>;
type OfValue<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

#[test]
fn handles_have_1_to_64_bytes() {
    let named = |action: fn(Cow<'static, str>) -> Action<'static>| {
        move |handle: &str| doing(action(handle.to_owned().into()))
    };
    let device = |handle: &str| {
        let mut event = hello();
        event.device = Some(handle.to_owned().into());
        event
    };
    let makers: [(&str, OfHandle<'_>); 4] = [
        ("device", &device),
        ("handle", &named(Action::Invite)),
        ("handle", &named(Action::Join)),
        ("handle", &named(Action::Leave)),
    ];
    let longest = "x".repeat(MAX_HANDLE_BYTES);
    for (name, make) in makers {
        let bytes = encoded(&make(&longest));
        assert_eq!(decode(&bytes).unwrap(), make(&longest));
        let other = raw::text(&longest);
        let at = bytes.windows(other.len()).position(|window| window == other).unwrap();
        // The last handle has the characters of a shorter one, and more bytes.
        for wrong in [String::new(), format!("{longest}x"), "€".repeat(22)] {
            let refused = EventError::Field { name };
            assert_eq!(encode(&make(&wrong), &mut Vec::new()), Err(refused.clone()));
            let rest = &bytes[at + other.len()..];
            let changed = [&bytes[..at], &raw::text(&wrong), rest].concat();
            assert_eq!(decode(&changed), Err(refused));
        }
    }
}

fn place(latitude: f64, longitude: f64, accuracy: f64) -> Event<'static> {
    let accuracy_m = Some(accuracy);
    says(Content::Location { latitude, longitude, accuracy_m, address: None, place: None })
}

#[test]
fn places_lie_on_the_earth() {
    for (latitude, longitude) in [(90.0, 180.0), (-90.0, -180.0), (0.0, -0.0)] {
        let event = place(latitude, longitude, 0.0);
        assert_eq!(decode(&encoded(&event)).unwrap(), event);
    }
    // Each needs 8 bytes, as the values that take their place do.
    let (latitude, longitude, accuracy) = (48.1, 16.3, 0.1);
    let bytes = encoded(&place(latitude, longitude, accuracy));
    let off = [
        ("latitude", latitude, [90.000_1, -90.000_1]),
        ("longitude", longitude, [180.000_1, -180.000_1]),
        ("accuracy", accuracy, [-0.1, -1e300]),
    ];
    for (name, good, wrong) in off {
        let refused = EventError::Field { name };
        let at = bytes.windows(9).position(|window| window == raw::float(good)).unwrap();
        for wrong in wrong {
            let put = |value: f64| if value == good { wrong } else { value };
            let event = place(put(latitude), put(longitude), put(accuracy));
            assert_eq!(encode(&event, &mut Vec::new()), Err(refused.clone()));
            let changed = [&bytes[..at], &raw::float(wrong), &bytes[at + 9..]].concat();
            assert_eq!(decode(&changed), Err(refused.clone()));
        }
    }
    for endless in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = |event| encode(&event, &mut Vec::new()).unwrap_err();
        let field = |name| EventError::Field { name };
        assert_eq!(refused(place(endless, 0.0, 0.0)), field("latitude"));
        assert_eq!(refused(place(0.0, endless, 0.0)), field("longitude"));
        assert_eq!(refused(place(0.0, 0.0, endless)), field("accuracy"));
    }
}

#[test]
fn what_nobody_knows_is_not_deeper_than_any_datum() {
    let too_deep = |error| matches!(error, Err(EventError::Malformed(CodecError::TooDeep { .. })));
    let beside = |value: &[u8]| {
        let mut bytes = encoded(&hello());
        bytes[0] += 1;
        [&bytes[..], &[23], value].concat()
    };
    let within = |value: &[u8]| said(&raw::map(&[(1, &raw::text("hello")), (2, value)]));
    let unknown = |value: &[u8]| said(&raw::map(&[(0, &raw::number(99)), (1, value)]));
    let object = |value: &[u8]| attached(raw::map(&[&ATTACHMENT[..], &[(8, value)]].concat()));
    // How many containers each value stands inside: the event, its content, or its attachments,
    // each of which is a map within an array.
    let places: [(usize, OfValue<'_>); 4] =
        [(1, &beside), (2, &within), (2, &unknown), (3, &object)];
    for (level, wrap) in places {
        let deepest = MAX_DEPTH - level;
        assert!(decode(&wrap(&raw::nested(deepest))).is_ok(), "{level}");
        assert!(too_deep(decode(&wrap(&raw::nested(deepest + 1))).map(drop)), "{level}");
        // Maps count as arrays do.
        let map = raw::map(&[(0, &raw::nested(deepest))]);
        assert!(too_deep(decode(&wrap(&map)).map(drop)), "{level}");
    }
}
