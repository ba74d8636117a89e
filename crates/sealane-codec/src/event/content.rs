//! The content of a message and its attachments. Key 0 of a content is its kind.

use std::borrow::Cow;

use sealane_message::event::{Attachment, Content};
use sealane_message::limits::MAX_POLL_OPTIONS;

use super::EventError;
use super::read::MapReader;
use super::write::MapWriter;
use crate::input::DatumInput;
use crate::limits::{MAX_ATTACHMENT_FACTS, MAX_LINKS};

const KIND: u8 = 0;

mod kind {
    pub(super) const TEXT: u64 = 0;
    pub(super) const RICH: u64 = 1;
    pub(super) const CODE: u64 = 2;
    pub(super) const VOICE: u64 = 3;
    pub(super) const VIDEO: u64 = 4;
    pub(super) const LOCATION: u64 = 5;
    pub(super) const POLL: u64 = 6;
    pub(super) const STICKER: u64 = 7;
    pub(super) const GIF: u64 = 8;
}

/// How many containers the values of a content stand inside: the event and the content.
const LEVEL: usize = 2;

/// Writes a content under a key of the event.
pub(super) fn write(
    content: &Content<'_>,
    key: u8,
    event: &mut MapWriter<'_>,
) -> Result<(), EventError> {
    match content {
        Content::Unknown { kind, map } => {
            check_unknown(*kind, map)?;
            event.encoded(key, map);
            Ok(())
        }
        known => write_known(known, event.nested(key)),
    }
}

/// Refuses what would not be read as unknown content of this kind.
fn check_unknown(kind: u64, map: &[u8]) -> Result<(), EventError> {
    let mut input = DatumInput::new(map);
    let content = read(&mut MapReader::new(&mut input, "content", LEVEL)?)?;
    input.finish()?;
    match content {
        Content::Unknown { kind: read, .. } if read == kind => Ok(()),
        _ => Err(EventError::Field { name: "content" }),
    }
}

fn write_known(content: &Content<'_>, mut map: MapWriter<'_>) -> Result<(), EventError> {
    match content {
        Content::Text(text) => {
            map.variant(KIND, kind::TEXT);
            map.text(1, text);
        }
        Content::Rich { raw, formatted, links } => {
            map.variant(KIND, kind::RICH);
            map.text(1, raw);
            map.text(2, formatted);
            if !links.is_empty() {
                map.texts(3, "links", links, MAX_LINKS)?;
            }
        }
        Content::Code { language, code, filename, has_line_numbers } => {
            map.variant(KIND, kind::CODE);
            map.text(1, language);
            map.text(2, code);
            map.some_text(3, filename.as_ref());
            map.truth(4, *has_line_numbers);
        }
        Content::Location { latitude, longitude, accuracy_m, address, place } => {
            map.variant(KIND, kind::LOCATION);
            map.float(1, within(*latitude, -90.0, 90.0, "latitude")?);
            map.float(2, within(*longitude, -180.0, 180.0, "longitude")?);
            if let Some(accuracy) = accuracy_m {
                map.float(3, within(*accuracy, 0.0, f64::MAX, "accuracy")?);
            }
            map.some_text(4, address.as_ref());
            map.some_text(5, place.as_ref());
        }
        Content::Poll { question, options, is_multiple, is_anonymous, closes_ms } => {
            map.variant(KIND, kind::POLL);
            map.text(1, question);
            map.pairs(2, "options", options, MAX_POLL_OPTIONS)?;
            map.truth(3, *is_multiple);
            map.truth(4, *is_anonymous);
            if let Some(closes) = closes_ms {
                map.number(5, *closes);
            }
        }
        media => write_media(media, &mut map),
    }
    map.end();
    Ok(())
}

fn write_media(content: &Content<'_>, map: &mut MapWriter<'_>) {
    match content {
        Content::Voice { seconds, waveform, transcription, mime, data } => {
            map.variant(KIND, kind::VOICE);
            map.number(1, *seconds);
            map.bytes(2, waveform);
            map.some_text(3, transcription.as_ref());
            map.text(4, mime);
            map.bytes(5, data);
        }
        Content::Video { seconds, thumbnail, width, height, mime, data } => {
            map.variant(KIND, kind::VIDEO);
            map.number(1, *seconds);
            map.bytes(2, thumbnail);
            map.number(3, *width);
            map.number(4, *height);
            map.text(5, mime);
            map.bytes(6, data);
        }
        Content::Sticker { pack, sticker, emoji, is_animated, data } => {
            map.variant(KIND, kind::STICKER);
            map.text(1, pack);
            map.text(2, sticker);
            map.text(3, emoji);
            map.truth(4, *is_animated);
            map.bytes(5, data);
        }
        Content::Gif { url, thumbnail, width, height, caption } => {
            map.variant(KIND, kind::GIF);
            map.text(1, url);
            map.bytes(2, thumbnail);
            map.number(3, *width);
            map.number(4, *height);
            map.some_text(5, caption.as_ref());
        }
        // The others are written by the caller.
        _ => {}
    }
}

pub(super) fn read<'a>(map: &mut MapReader<'_, 'a>) -> Result<Content<'a>, EventError> {
    let kind = map.variant(KIND, "kind")?;
    Ok(match kind {
        kind::TEXT => Content::Text(text(map, 1, "text")?),
        kind::RICH => Content::Rich {
            raw: text(map, 1, "raw text")?,
            formatted: text(map, 2, "formatted text")?,
            links: if map.has(3)? {
                map.some("links", |map| map.texts("links", MAX_LINKS))?
            } else {
                Vec::new()
            },
        },
        kind::CODE => Content::Code {
            language: text(map, 1, "language")?,
            code: text(map, 2, "code")?,
            filename: map.some_text(3, "file name")?,
            has_line_numbers: map.truth(4, "line numbers")?,
        },
        kind::LOCATION => Content::Location {
            latitude: float(map, 1, -90.0, 90.0, "latitude")?,
            longitude: float(map, 2, -180.0, 180.0, "longitude")?,
            accuracy_m: if map.has(3)? {
                Some(within(map.float("accuracy")?, 0.0, f64::MAX, "accuracy")?)
            } else {
                None
            },
            address: map.some_text(4, "address")?,
            place: map.some_text(5, "place")?,
        },
        kind::POLL => Content::Poll {
            question: text(map, 1, "question")?,
            options: map.need(2, "options")?.pairs("options", MAX_POLL_OPTIONS)?,
            is_multiple: map.truth(3, "several choices")?,
            is_anonymous: map.truth(4, "anonymous")?,
            closes_ms: some_number(map, 5, "closes")?,
        },
        media => read_media(media, map)?,
    })
}

fn read_media<'a>(kind: u64, map: &mut MapReader<'_, 'a>) -> Result<Content<'a>, EventError> {
    Ok(match kind {
        kind::VOICE => Content::Voice {
            seconds: map.need(1, "seconds")?.number("seconds")?,
            waveform: bytes(map, 2, "waveform")?,
            transcription: map.some_text(3, "transcription")?,
            mime: text(map, 4, "MIME type")?,
            data: bytes(map, 5, "data")?,
        },
        kind::VIDEO => Content::Video {
            seconds: map.need(1, "seconds")?.number("seconds")?,
            thumbnail: bytes(map, 2, "thumbnail")?,
            width: map.need(3, "width")?.number("width")?,
            height: map.need(4, "height")?.number("height")?,
            mime: text(map, 5, "MIME type")?,
            data: bytes(map, 6, "data")?,
        },
        kind::STICKER => Content::Sticker {
            pack: text(map, 1, "pack")?,
            sticker: text(map, 2, "sticker")?,
            emoji: text(map, 3, "emoji")?,
            is_animated: map.truth(4, "animated")?,
            data: bytes(map, 5, "data")?,
        },
        kind::GIF => Content::Gif {
            url: text(map, 1, "URL")?,
            thumbnail: bytes(map, 2, "thumbnail")?,
            width: map.need(3, "width")?.number("width")?,
            height: map.need(4, "height")?.number("height")?,
            caption: map.some_text(5, "caption")?,
        },
        kind => Content::Unknown { kind, map: Cow::Borrowed(map.whole()?) },
    })
}

pub(super) fn write_attachment(
    attachment: &Attachment<'_>,
    mut map: MapWriter<'_>,
) -> Result<(), EventError> {
    map.bytes(0, &attachment.id.0);
    map.text(1, &attachment.filename);
    map.text(2, &attachment.mime);
    map.number(3, attachment.size);
    if let Some(thumbnail) = &attachment.thumbnail {
        map.bytes(4, thumbnail);
    }
    map.bytes(5, &attachment.object);
    if let Some(key) = &attachment.key {
        map.bytes(6, key);
    }
    if !attachment.metadata.is_empty() {
        map.pairs(7, "facts", &attachment.metadata, MAX_ATTACHMENT_FACTS)?;
    }
    map.end();
    Ok(())
}

pub(super) fn read_attachment<'a>(
    map: &mut MapReader<'_, 'a>,
) -> Result<Attachment<'a>, EventError> {
    Ok(Attachment {
        id: map.need(0, "attachment's id")?.id("attachment's id")?,
        filename: text(map, 1, "file name")?,
        mime: text(map, 2, "MIME type")?,
        size: map.need(3, "size")?.number("size")?,
        thumbnail: some_bytes(map, 4, "thumbnail")?,
        object: bytes(map, 5, "object")?,
        key: some_bytes(map, 6, "attachment's key")?,
        metadata: if map.has(7)? {
            map.some("facts", |map| map.pairs("facts", MAX_ATTACHMENT_FACTS))?
        } else {
            Vec::new()
        },
    })
}

pub(super) fn text<'a>(
    map: &mut MapReader<'_, 'a>,
    key: u8,
    name: &'static str,
) -> Result<Cow<'a, str>, EventError> {
    Ok(Cow::Borrowed(map.need(key, name)?.text(name)?))
}

fn bytes<'a>(
    map: &mut MapReader<'_, 'a>,
    key: u8,
    name: &'static str,
) -> Result<Cow<'a, [u8]>, EventError> {
    Ok(Cow::Borrowed(map.need(key, name)?.bytes(name)?))
}

fn some_bytes<'a>(
    map: &mut MapReader<'_, 'a>,
    key: u8,
    name: &'static str,
) -> Result<Option<Cow<'a, [u8]>>, EventError> {
    Ok(if map.has(key)? { Some(Cow::Borrowed(map.bytes(name)?)) } else { None })
}

fn some_number(
    map: &mut MapReader<'_, '_>,
    key: u8,
    name: &'static str,
) -> Result<Option<u64>, EventError> {
    Ok(if map.has(key)? { Some(map.number(name)?) } else { None })
}

fn float(
    map: &mut MapReader<'_, '_>,
    key: u8,
    least: f64,
    most: f64,
    name: &'static str,
) -> Result<f64, EventError> {
    within(map.need(key, name)?.float(name)?, least, most, name)
}

/// A float in its range, which no infinity and no NaN is.
fn within(value: f64, least: f64, most: f64, name: &'static str) -> Result<f64, EventError> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(EventError::Field { name }) }
}
