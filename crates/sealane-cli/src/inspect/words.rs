//! The meanings of header fields' values.

use sealane::{Codec, Value};
use sealane_frame::limits::MAX_HOP_LIMIT;
use sealane_frame::{FrameKind, VERSION};
use sealane_message::DataType;
use sealane_seal::Class;

use super::hex;
use super::walk::count;
use crate::times;

/// A field's value for programs, and its meaning for people.
pub(super) type FieldMeaning = (Value, String);

pub(super) fn class_name(class: Class) -> &'static str {
    match class {
        Class::Authenticated => "authenticated",
        Class::Group => "group",
        Class::Signed => "signed",
        Class::Peer => "peer",
    }
}

pub(super) fn kind_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Message => "message",
        FrameKind::Control => "control",
        FrameKind::Routing => "routing",
        FrameKind::Gossip => "gossip",
    }
}

pub(super) fn next_hop(tag: &[u8]) -> FieldMeaning {
    let meaning = match () {
        () if tag.iter().all(|&byte| byte == 0xff) => "everybody in reach takes it from this link",
        () if tag.iter().all(|&byte| byte == 0) => "nobody yet",
        () => "who takes the frame from this link",
    };
    told(tag, meaning)
}

pub(super) fn destination(tag: &[u8]) -> FieldMeaning {
    let all = tag.iter().all(|&byte| byte == 0xff);
    told(tag, if all { "the whole group" } else { "whom it is for" })
}

/// A tag with these words.
pub(super) fn told(tag: &[u8], meaning: &str) -> FieldMeaning {
    (hex::encode(tag).into(), meaning.to_owned())
}

pub(super) fn hop_limit(limit: u64) -> FieldMeaning {
    let most = u64::from(MAX_HOP_LIMIT);
    let meaning = match limit {
        0 => "may not be relayed any more".to_owned(),
        1 => "may be relayed once more".to_owned(),
        _ if limit > most => format!("{limit} is read as {most}: relayed {most} times more"),
        _ => format!("may be relayed {limit} times more"),
    };
    (limit.into(), meaning)
}

pub(super) fn version(version: u64) -> FieldMeaning {
    let is_known = version == u64::from(VERSION);
    let meaning = if is_known { "of the frame".into() } else { format!("unknown: not {VERSION}") };
    (version.into(), meaning)
}

pub(super) fn kind(id: u64) -> FieldMeaning {
    match u8::try_from(id).ok().and_then(FrameKind::from_id) {
        Some(kind) => (kind_name(kind).into(), kind_name(kind).into()),
        None => (id.into(), format!("unknown: 0 to {} are known", FrameKind::ALL.len() - 1)),
    }
}

/// Class, priority and compression.
pub(super) fn flags(flags: u8) -> FieldMeaning {
    let class = Class::from_bits(flags);
    let priority = match flags >> 2 & 3 {
        0 => "low",
        1 => "normal",
        2 => "high",
        _ => "critical",
    };
    let compression = compression(flags);
    let reserved = if flags >> 6 == 0 { "" } else { "; bits 6 and 7 must be 0 and are not" };
    let [letter, name] = [class.letter().to_string(), class_name(class).to_owned()];
    let meaning = format!(
        "class {letter} ({name}), priority {priority}, compression {compression}{reserved}"
    );
    let value = Value::Map(vec![
        ("class".into(), letter.into()),
        ("priority".into(), priority.into()),
        ("compression".into(), compression.into()),
    ]);
    (value, meaning)
}

/// How the body was compressed.
pub(super) fn compression(flags: u8) -> &'static str {
    match flags >> 4 & 3 {
        0 => "none",
        1 => "lz4",
        2 => "zstd",
        _ => "unknown",
    }
}

pub(super) fn codec(id: u64) -> FieldMeaning {
    match u8::try_from(id).ok().and_then(Codec::from_id) {
        Some(codec) => (codec.name().into(), format!("{} is the codec of the body", codec.name())),
        None if id == 0 => ("none".into(), "bytes of no codec".into()),
        None => (id.into(), format!("{id} is no codec that this program knows")),
    }
}

pub(super) fn data_type(id: u64) -> FieldMeaning {
    let name = u16::try_from(id).ok().and_then(|id| DataType::from_number(id).name());
    // Frames of other kinds number their bodies themselves.
    let said = name.map_or("none that this program knows".into(), |name| format!("`{name}`"));
    (id.into(), format!("type {id}; of a message: {said}"))
}

pub(super) fn body_length(bytes: u64) -> FieldMeaning {
    let bytes_shown = usize::try_from(bytes).unwrap_or(usize::MAX);
    let length = count(bytes_shown, "byte", "bytes");
    (bytes.into(), format!("{length}, without signature and tag"))
}

/// A time that a stranger wrote: RFC 3339 has no years of five digits.
pub(super) fn moment(ms: u64) -> String {
    match ms {
        253_402_300_800_000.. => format!("{ms} ms: after the year 9999"),
        _ => times::show_time(ms),
    }
}

pub(super) fn context(bytes: &[u8]) -> FieldMeaning {
    let shown = hex::encode(bytes);
    (shown.into(), "the sender context: drawn at each start, part of every key".into())
}

pub(super) fn orders(low: u64) -> FieldMeaning {
    (low.into(), format!("{low}: low byte of how many orders the sender had obeyed"))
}
