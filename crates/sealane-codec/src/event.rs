//! Events as deterministic CBOR, `spec/event.md`.
//!
//! ```
//! use sealane_codec::event::{decode, encode};
//! use sealane_message::event::{Action, Content, Event, EventId};
//!
//! let said = Content::Text("hello".into());
//! let event = Event::new(EventId([1; 8]), 1_700_000_000_000, Action::Message(said.into()));
//! let mut bytes = Vec::new();
//! encode(&event, &mut bytes)?;
//! assert_eq!(decode(&bytes)?, event);
//! # Ok::<(), sealane_codec::event::EventError>(())
//! ```

mod content;
mod error;
mod form;
mod read;
mod show;
mod write;

use std::borrow::Cow;

use sealane_message::Value;
use sealane_message::event::{Action, Content, Event, Message, Reference};
use sealane_message::limits::{MAX_ATTACHMENTS, MAX_HANDLE_BYTES, MAX_MENTIONS, MAX_POLL_OPTIONS};

pub use error::{ERRORS, EventError};

use content::text;
use read::MapReader;
use write::MapWriter;

use crate::input::DatumInput;

/// The keys of an event's map.
mod key {
    pub(super) const ID: u8 = 0;
    pub(super) const DEVICE: u8 = 3;
    pub(super) const TIME: u8 = 4;
    pub(super) const ACTION: u8 = 5;
    pub(super) const OF: u8 = 6;
    pub(super) const CONTENT: u8 = 7;
    pub(super) const TEXT: u8 = 8;
    pub(super) const THREAD: u8 = 9;
    pub(super) const REPLY_TO: u8 = 10;
    pub(super) const MENTIONS: u8 = 11;
    pub(super) const ATTACHMENTS: u8 = 12;
    pub(super) const EXPIRES: u8 = 13;
    pub(super) const EPHEMERAL: u8 = 14;
    pub(super) const CHOICES: u8 = 15;
    pub(super) const SECONDS: u8 = 16;
}

/// Appends an event's bytes to `out`. Nothing else is allocated.
///
/// # Errors
/// [`EventError`] where a field or a number of elements is beyond its limit, the action is
/// [`Action::Unknown`], or [`Content::Unknown`] holds anything else than what [`decode`] gives in
/// it; `out` is then as it was.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EventError> {
    let start = out.len();
    let written = write_event(event, out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Reads one event, which borrows its text and bytes. Only lists are allocated.
///
/// # Errors
/// [`EventError`] where the bytes are anything else than the one form of an event.
pub fn decode(bytes: &[u8]) -> Result<Event<'_>, EventError> {
    let mut input = DatumInput::new(bytes);
    let event = read_event(&mut input)?;
    input.finish()?;
    Ok(event)
}

/// The event as programs and people are shown it: a map with the names of `spec/event.md`.
pub fn to_value(event: &Event<'_>) -> Value {
    show::to_value(event)
}

fn write_event(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EventError> {
    let mut map = MapWriter::new(out);
    map.bytes(key::ID, &event.id.0);
    if let Some(device) = &event.device {
        map.handle(key::DEVICE, "device", device)?;
    }
    map.number(key::TIME, event.time_ms);
    map.variant(key::ACTION, number(&event.action).ok_or(EventError::ActionUnknown)?);
    write_action(&event.action, &mut map)?;
    map.end();
    Ok(())
}

/// The number of an action; none of one that this version does not know.
fn number(action: &Action<'_>) -> Option<u64> {
    Some(match action {
        Action::Message(_) => 0,
        Action::Edit { .. } => 1,
        Action::Delete(_) => 2,
        Action::React { .. } => 3,
        Action::Unreact { .. } => 4,
        Action::Read(_) => 5,
        Action::Deliver(_) => 6,
        Action::Pin(_) => 7,
        Action::Unpin(_) => 8,
        Action::Vote { .. } => 9,
        Action::Create(_) => 10,
        Action::Rename(_) => 11,
        Action::Invite(_) => 12,
        Action::Join(_) => 13,
        Action::Leave(_) => 14,
        Action::Call => 15,
        Action::HangUp(_) => 16,
        _ => return None,
    })
}

fn write_action(action: &Action<'_>, map: &mut MapWriter<'_>) -> Result<(), EventError> {
    match action {
        Action::Message(message) => write_message(message, map)?,
        Action::Edit { of, content } => {
            map.reference(key::OF, *of);
            content::write(content, key::CONTENT, map)?;
        }
        Action::React { of, emoji } | Action::Unreact { of, emoji } => {
            map.reference(key::OF, *of);
            map.text(key::TEXT, emoji);
        }
        Action::Delete(of)
        | Action::Read(of)
        | Action::Deliver(of)
        | Action::Pin(of)
        | Action::Unpin(of) => map.reference(key::OF, *of),
        Action::Vote { of, choices } => {
            map.reference(key::OF, *of);
            map.texts(key::CHOICES, "choices", choices, MAX_POLL_OPTIONS)?;
        }
        Action::Create(name) | Action::Rename(name) => map.text(key::TEXT, name),
        Action::Invite(who) | Action::Join(who) | Action::Leave(who) => {
            map.handle(key::TEXT, "handle", who)?;
        }
        Action::HangUp(seconds) => map.number(key::SECONDS, *seconds),
        _ => {}
    }
    Ok(())
}

fn write_message(message: &Message<'_>, map: &mut MapWriter<'_>) -> Result<(), EventError> {
    content::write(&message.content, key::CONTENT, map)?;
    for (key, of) in [(key::THREAD, message.thread), (key::REPLY_TO, message.reply_to)] {
        if let Some(of) = of {
            map.reference(key, of);
        }
    }
    if !message.mentions.is_empty() {
        map.texts(key::MENTIONS, "mentions", &message.mentions, MAX_MENTIONS)?;
    }
    if !message.attachments.is_empty() {
        map.list(key::ATTACHMENTS, "attachments", message.attachments.len(), MAX_ATTACHMENTS)?;
        for attachment in &message.attachments {
            content::write_attachment(attachment, map.element())?;
        }
    }
    if let Some(expires) = message.expires_ms {
        map.number(key::EXPIRES, expires);
    }
    map.truth(key::EPHEMERAL, message.is_ephemeral);
    Ok(())
}

fn read_event<'a>(input: &mut DatumInput<'a>) -> Result<Event<'a>, EventError> {
    let mut map = MapReader::new(input, "event", 1)?;
    let id = map.need(key::ID, "id")?.id("id")?;
    let device = if map.has(key::DEVICE)? { Some(map.handle("device")?) } else { None };
    let time_ms = map.need(key::TIME, "time")?.number("time")?;
    let action = map.variant(key::ACTION, "action")?;
    let action = read_action(action, &mut map)?;
    map.end()?;
    let mut event = Event::new(id, time_ms, action);
    event.device = device.map(Cow::Borrowed);
    Ok(event)
}

/// The event that the action is about.
fn of(map: &mut MapReader<'_, '_>) -> Result<Reference, EventError> {
    map.need(key::OF, "of")?.reference("of")
}

fn handle<'a>(
    map: &mut MapReader<'_, 'a>,
    key: u8,
    name: &'static str,
) -> Result<Cow<'a, str>, EventError> {
    Ok(Cow::Borrowed(map.need(key, name)?.handle(name)?))
}

fn read_action<'a>(number: u64, map: &mut MapReader<'_, 'a>) -> Result<Action<'a>, EventError> {
    Ok(match number {
        0 => Action::Message(read_message(map)?),
        1 => Action::Edit { of: of(map)?, content: read_content(map)? },
        2 => Action::Delete(of(map)?),
        3 => Action::React { of: of(map)?, emoji: text(map, key::TEXT, "emoji")? },
        4 => Action::Unreact { of: of(map)?, emoji: text(map, key::TEXT, "emoji")? },
        5 => Action::Read(of(map)?),
        6 => Action::Deliver(of(map)?),
        7 => Action::Pin(of(map)?),
        8 => Action::Unpin(of(map)?),
        9 => {
            let of = of(map)?;
            let choices = map.need(key::CHOICES, "choices")?.texts("choices", MAX_POLL_OPTIONS)?;
            Action::Vote { of, choices }
        }
        10 => Action::Create(text(map, key::TEXT, "name")?),
        11 => Action::Rename(text(map, key::TEXT, "name")?),
        12 => Action::Invite(handle(map, key::TEXT, "handle")?),
        13 => Action::Join(handle(map, key::TEXT, "handle")?),
        14 => Action::Leave(handle(map, key::TEXT, "handle")?),
        15 => Action::Call,
        16 => Action::HangUp(map.need(key::SECONDS, "seconds")?.number("seconds")?),
        unknown => Action::Unknown(unknown),
    })
}

fn read_content<'a>(map: &mut MapReader<'_, 'a>) -> Result<Content<'a>, EventError> {
    map.need(key::CONTENT, "content")?.nested("content", content::read)
}

fn read_message<'a>(map: &mut MapReader<'_, 'a>) -> Result<Message<'a>, EventError> {
    let mut message = Message::from(read_content(map)?);
    if map.has(key::THREAD)? {
        message.thread = Some(map.reference("thread")?);
    }
    if map.has(key::REPLY_TO)? {
        message.reply_to = Some(map.reference("reply to")?);
    }
    if map.has(key::MENTIONS)? {
        message.mentions = map.some("mentions", |map| map.texts("mentions", MAX_MENTIONS))?;
    }
    if map.has(key::ATTACHMENTS)? {
        let read = |map: &mut MapReader<'_, 'a>| {
            map.list("attachments", MAX_ATTACHMENTS, |map| {
                map.nested("attachment", content::read_attachment)
            })
        };
        message.attachments = map.some("attachments", read)?;
    }
    if map.has(key::EXPIRES)? {
        message.expires_ms = Some(map.number("expires")?);
    }
    message.is_ephemeral = map.truth(key::EPHEMERAL, "ephemeral")?;
    Ok(message)
}

/// A handle's length.
fn is_handle(text: &str) -> bool {
    (1..=MAX_HANDLE_BYTES).contains(&text.len())
}
