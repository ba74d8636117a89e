//! The content of a body, as its codec has it.

use sealane::{Codec, DataType, Value};
use sealane_codec::body_value;
use sealane_frame::{FrameKind, Header};

use super::{hex, words};

/// The header's fields about its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyHeader {
    /// The codec's number.
    pub(super) codec: u8,
    pub(super) compression: &'static str,
    pub(super) kind: FrameKind,
    pub(super) data_type: DataType,
}

impl BodyHeader {
    pub(super) fn of(header: &Header) -> Self {
        Self {
            codec: header.codec(),
            compression: words::compression(header.flags()),
            kind: header.kind(),
            data_type: DataType::from_number(header.data_type()),
        }
    }

    /// Whether the time at which it was made stands before it.
    fn is_timed(&self) -> bool {
        self.kind == FrameKind::Message && self.data_type.is_urgent()
    }
}

/// A body that can be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InspectBody {
    pub(super) shown: ShownBody,
    /// Why it is not shown by its codec.
    pub(super) note: Option<String>,
    /// When it was made, by its sender's clock.
    pub(super) time_ms: Option<u64>,
}

/// How a body is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShownBody {
    /// A datum of its codec, a document or an event.
    Value(Value),
    /// Text of no codec.
    Text(String),
    /// Neither.
    Bytes(Vec<u8>),
}

impl InspectBody {
    /// Reads a body, and the time before it if it has one.
    pub(super) fn read(head: BodyHeader, bytes: &[u8]) -> Self {
        if !head.is_timed() {
            return Self::shown(head, bytes);
        }
        match bytes.split_first_chunk() {
            Some((time, bytes)) => {
                Self { time_ms: Some(u64::from_le_bytes(*time)), ..Self::shown(head, bytes) }
            }
            None => {
                let note = "without the time that an urgent message begins with".to_owned();
                Self { shown: ShownBody::Bytes(bytes.to_vec()), note: Some(note), time_ms: None }
            }
        }
    }

    fn shown(BodyHeader { codec, compression, kind, data_type }: BodyHeader, bytes: &[u8]) -> Self {
        let raw = |note| Self { shown: ShownBody::Bytes(bytes.to_vec()), note, time_ms: None };
        if compression != "none" {
            return raw(Some(format!("compressed ({compression}): shown as it travels")));
        }
        let Some(codec) = Codec::from_id(codec) else {
            if codec == 0
                && kind == FrameKind::Message
                && let Some(value) = body_value(data_type, bytes)
            {
                let shown = ShownBody::Value(value);
                return Self { shown, note: None, time_ms: None };
            }
            let note = (codec != 0).then(|| format!("{codec} is no codec that is known"));
            return match std::str::from_utf8(bytes) {
                Ok(text) if !bytes.is_empty() && text.chars().all(is_printable) => {
                    Self { shown: ShownBody::Text(text.to_owned()), note, time_ms: None }
                }
                _ => raw(note),
            };
        };
        match sealane_codec::decode(codec, bytes) {
            Ok(value) => Self { shown: ShownBody::Value(value), note: None, time_ms: None },
            Err(error) => raw(Some(format!("not {}: {error}", codec.name()))),
        }
    }

    /// The lines that show it, none longer than `columns`.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        let text = match &self.shown {
            ShownBody::Bytes(bytes) => return hex::dump(bytes),
            ShownBody::Text(text) => text.clone(),
            ShownBody::Value(value) => json(value),
        };
        text.lines().flat_map(|line| cut(&printable(line), columns)).collect()
    }
}

/// A datum in JSON.
pub(super) fn json(value: &Value) -> String {
    let mut text = Vec::new();
    sealane_codec::encode(Codec::Json, value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Text without what a terminal would obey: it comes from whoever sent the frame.
pub(super) fn printable(text: &str) -> String {
    let shown = |c: char| {
        if is_printable(c) { c.to_string() } else { format!("\\u{{{:x}}}", u32::from(c)) }
    };
    text.chars().map(shown).collect()
}

/// Whether a character neither steers a terminal nor turns the direction of text.
fn is_printable(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || c == '\t' || !c.is_control() && !turns
}

fn cut(line: &str, columns: usize) -> Vec<String> {
    let line: Vec<char> = line.replace('\t', "    ").chars().collect();
    if line.is_empty() {
        return vec![String::new()];
    }
    line.chunks(columns).map(|part| part.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(codec: u8) -> BodyHeader {
        let (kind, data_type) = (FrameKind::Message, DataType::UNKNOWN);
        BodyHeader { codec, compression: "none", kind, data_type }
    }

    #[test]
    fn bodies_are_shown_as_their_codec_says() {
        let lines = |codec, bytes: &[u8]| InspectBody::read(plain(codec), bytes).lines(20);
        assert_eq!(lines(1, b"{\"a\": 1}"), ["{\"a\":1}"]);
        assert_eq!(lines(2, b"\x81\xa1a\x01"), ["{\"a\":1}"]);
        assert_eq!(lines(3, b"\xa1\x61a\x01"), ["{\"a\":1}"]);
        assert_eq!(lines(0, b"hello\n\nyou"), ["hello", "", "you"]);
        assert!(lines(0, b"\xff\x00")[0].starts_with("000000  ff 00"));
        assert_eq!(lines(0, &[b'x'; 45]).iter().map(String::len).max(), Some(20));
        let wrong = InspectBody::read(plain(3), b"\xff");
        assert!(wrong.note.is_some_and(|note| note.starts_with("not cbor: ")));
        let compressed = BodyHeader { compression: "lz4", ..plain(1) };
        assert!(InspectBody::read(compressed, b"1").note.is_some());
        let timed = BodyHeader { data_type: DataType::COMMAND, ..plain(1) };
        let body = InspectBody::read(timed, b"\x01\x01\0\0\0\0\0\x002");
        assert_eq!((body.time_ms, body.lines(9)), (Some(257), vec!["2".to_owned()]));
        assert!(InspectBody::read(timed, b"2").note.is_some());
        let seen = BodyHeader { data_type: DataType::ACKNOWLEDGEMENT, ..plain(0) };
        let body = InspectBody::read(seen, b"\x01\0\0\0\0\0\0\0\x07\0\x03\0\0\0");
        assert_eq!(body.lines(40), ["{\"slot\":7,\"number\":3}"]);
        assert_eq!(body.time_ms, Some(1));
        let said = BodyHeader { data_type: DataType::CHAT, ..plain(0) };
        let event =
            [&b"\xa3\0\x48\x01\x01\x01\x01\x01\x01\x01\x01\x04\x07\x07"[..], b"\xa1\x01\x62hi"];
        let shown = InspectBody::read(said, &event.concat()).lines(200).concat();
        assert!(shown.contains("\"text\":\"hi\"") && shown.contains("\"timeMs\":7"), "{shown}");
        let packet =
            BodyHeader { kind: FrameKind::Control, data_type: DataType::CLEAR, ..plain(0) };
        assert!(InspectBody::read(packet, &[0; 6]).lines(80)[0].starts_with("000000  00"));
    }

    #[test]
    fn nothing_in_a_body_steers_the_terminal() {
        for codec in [0, 1] {
            let body = InspectBody::read(plain(codec), "\"\u{9b}31m\u{202e}\u{7f}\"".as_bytes());
            let shown = body.lines(90).join("");
            assert!(shown.chars().all(is_printable), "{shown:?}");
        }
        assert_eq!(printable("a\u{1b}[2J"), "a\\u{1b}[2J");
    }
}
