//! Events of every kind, by chance.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sealane_message::event::{
    Action, Attachment, Content, Event, EventId, Message, Reference, TextPair,
};

use super::raw;

type Text = Cow<'static, str>;

fn text() -> impl Strategy<Value = Text> {
    "\\PC{0,40}".prop_map(Cow::Owned)
}

fn texts() -> impl Strategy<Value = Vec<Text>> {
    vec(text(), 0..4)
}

fn pairs() -> impl Strategy<Value = Vec<TextPair<'static>>> {
    vec((text(), text()), 0..4)
}

fn handle() -> impl Strategy<Value = Text> {
    "[a-zäß€]{1,21}".prop_map(Cow::Owned)
}

fn bytes() -> impl Strategy<Value = Cow<'static, [u8]>> {
    vec(any::<u8>(), 0..300).prop_map(Cow::Owned)
}

fn id() -> impl Strategy<Value = EventId> {
    any::<[u8; 8]>().prop_map(EventId)
}

/// Slots of every length.
fn reference() -> impl Strategy<Value = Reference> {
    let slot = prop_oneof![Just(0), 1..=0xff_u16, any::<u16>()];
    (slot, id()).prop_map(|(slot, id)| Reference { slot, id })
}

fn written() -> impl Strategy<Value = Content<'static>> {
    let code = (text(), text(), option::of(text()), any::<bool>());
    let place = (-90.0..=90.0, -180.0..=180.0, option::of(0.0..1e9), option::of(text()));
    let poll = (text(), pairs(), any::<[bool; 2]>(), option::of(any::<u64>()));
    prop_oneof![
        text().prop_map(Content::Text),
        (text(), text(), texts()).prop_map(|(raw, formatted, links)| Content::Rich {
            raw,
            formatted,
            links
        }),
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

/// Content of a later version, with fields of every type.
pub(super) fn unknown() -> impl Strategy<Value = Content<'static>> {
    let value = prop_oneof![
        any::<u64>().prop_map(raw::number),
        text().prop_map(|text| raw::text(&text)),
        bytes().prop_map(|bytes| raw::bytes(&bytes)),
        texts().prop_map(|texts| raw::texts(&texts)),
        Just(raw::NULL.to_vec()),
    ];
    let fields = proptest::collection::btree_map(1..1000_u64, value, 0..4);
    (9..=u64::MAX, fields).prop_map(|(kind, fields)| {
        let number = raw::number(kind);
        let fields = fields.iter().map(|(key, value)| (*key, &value[..]));
        let fields: Vec<_> = std::iter::once((0, &number[..])).chain(fields).collect();
        Content::Unknown { kind, map: raw::map(&fields).into() }
    })
}

fn content() -> impl Strategy<Value = Content<'static>> {
    prop_oneof![5 => written(), 4 => media(), 1 => unknown()]
}

fn attachment() -> impl Strategy<Value = Attachment<'static>> {
    let names = (id(), text(), text(), any::<u64>());
    let parts = (option::of(bytes()), bytes(), option::of(bytes()), pairs());
    (names, parts).prop_map(|((id, filename, mime, size), (thumbnail, object, key, metadata))| {
        Attachment { id, filename, mime, size, thumbnail, object, key, metadata }
    })
}

fn message() -> impl Strategy<Value = Message<'static>> {
    let place = (option::of(reference()), option::of(reference()), texts());
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
        1 => (reference(), content()).prop_map(|(of, content)| Action::Edit { of, content }),
        1 => reference().prop_map(Action::Delete),
        1 => (reference(), text()).prop_map(|(of, emoji)| Action::React { of, emoji }),
        1 => (reference(), text()).prop_map(|(of, emoji)| Action::Unreact { of, emoji }),
        1 => reference().prop_map(Action::Read),
        1 => reference().prop_map(Action::Deliver),
        1 => reference().prop_map(Action::Pin),
        1 => reference().prop_map(Action::Unpin),
        1 => (reference(), texts()).prop_map(|(of, choices)| Action::Vote { of, choices }),
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
    pub(super) fn event()(
        id in id(), device in option::of(handle()), time in any::<u64>(), action in action(),
    ) -> Event<'static> {
        let mut event = Event::new(id, time, action);
        event.device = device;
        event
    }
}
