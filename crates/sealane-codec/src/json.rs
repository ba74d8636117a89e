//! JSON (RFC 8259) onto the tape by `serde_json`, and its text from the tape.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::ser::{CompactFormatter, Formatter};

use crate::tape::{Tape, TapeSpan, TapeToken};
use crate::{Codec, CodecError};

/// Reads the whole of `bytes` as one datum.
pub(crate) fn read(bytes: &[u8], tape: &mut Tape) -> Result<(), CodecError> {
    tape.start(bytes.len())?;
    let text = text(bytes)?;
    let mut sink = TapeSink { tape, text, failure: None, wide: false };
    let mut parser = serde_json::Deserializer::from_str(text);
    let parsed = TapeItem { sink: &mut sink, level: 0 }.deserialize(&mut parser).map_err(|error| {
        match sink.failure.take() {
            // A cause found inside a visitor does not know where it stands; the parser does.
            Some(cause) => cause.found_at(offset(&error, text)),
            None => failure(&error, text),
        }
    });
    let wide = sink.wide;
    parsed?;
    parser.end().map_err(|error| failure(&error, text))?;
    if wide { refuse_wide_integers(bytes) } else { Ok(()) }
}

/// The bytes as text, which JSON must be as a whole.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, CodecError> {
    simdutf8::compat::from_utf8(bytes)
        .map_err(|error| CodecError::NotUnicode { at: error.valid_up_to() })
}

/// The parser's error, in our terms.
pub(crate) fn failure(error: &serde_json::Error, text: &str) -> CodecError {
    let at = offset(error, text);
    if error.is_eof() {
        return CodecError::Truncated { at };
    }
    let malformed = CodecError::Malformed { codec: Codec::Json, at };
    // The parser has no kinds finer than "syntax"; these messages are pinned by tests.
    let message = error.to_string();
    if message.starts_with("trailing characters") {
        CodecError::Trailing { at }
    } else if message.starts_with("number out of range") {
        CodecError::NotFinite { at }
    } else if message.contains("surrogate") || message.contains("unexpected end of hex escape") {
        CodecError::NotUnicode { at }
    } else {
        malformed
    }
}

/// The parser tells lines and columns, both from 1.
pub(crate) fn offset(error: &serde_json::Error, text: &str) -> usize {
    let before = error.line().saturating_sub(1);
    let lines: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    (lines + error.column().saturating_sub(1)).min(text.len())
}

struct TapeSink<'t> {
    tape: &'t mut Tape,
    text: &'t str,
    failure: Option<CodecError>,
    /// A float was read that may have been an integer of more than 64 bits.
    wide: bool,
}

impl TapeSink<'_> {
    /// Keeps the cause, which the parser's own error type cannot hold without allocating.
    fn refuse<E: serde::de::Error>(&mut self, cause: CodecError) -> E {
        self.failure = Some(cause);
        E::custom("")
    }

    /// Where borrowed text stands in the input.
    fn offset_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize)
    }

    fn borrowed(&self, part: &str) -> TapeSpan {
        let start = self.offset_of(part);
        Tape::span(start..start + part.len())
    }

    fn owned(&mut self, part: &str) -> Result<TapeSpan, CodecError> {
        let start = self.tape.own_len();
        self.tape.own(part.as_bytes(), 0)?;
        Ok(self.tape.own_since(start))
    }

    fn push<E: serde::de::Error>(&mut self, token: TapeToken) -> Result<(), E> {
        self.tape.push(token, 0).map_err(|cause| self.refuse(cause))
    }

    fn push_key<E: serde::de::Error>(&mut self, key: TapeSpan) -> Result<(), E> {
        self.tape.push_key(key, 0).map_err(|cause| self.refuse(cause))
    }
}

/// One value, inside `level` containers.
struct TapeItem<'s, 't> {
    sink: &'s mut TapeSink<'t>,
    level: usize,
}

impl<'de> DeserializeSeed<'de> for TapeItem<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TapeItem<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.sink.push(TapeToken::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, bool: bool) -> Result<(), E> {
        self.sink.push(TapeToken::Bool(bool))
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<(), E> {
        self.sink.push(TapeToken::I64(n))
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<(), E> {
        self.sink.push(i64::try_from(n).map_or(TapeToken::U64(n), TapeToken::I64))
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<(), E> {
        self.sink.wide |= n.abs() >= i64::MAX as f64;
        self.sink.push(TapeToken::F64(n))
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<(), E> {
        let span = self.sink.borrowed(text);
        self.sink.push(TapeToken::Text(span))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let span = self.sink.owned(text).map_err(|cause| self.sink.refuse(cause))?;
        self.sink.push(TapeToken::Text(span))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let TapeItem { sink, level } = self;
        let open = sink.tape.open(level + 1, 0).map_err(|cause| sink.refuse(cause))?;
        let mut len = 0;
        while items.next_element_seed(TapeItem { sink: &mut *sink, level: level + 1 })?.is_some() {
            len += 1;
        }
        sink.tape.close_array(&open, len);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let TapeItem { sink, level } = self;
        let open = sink.tape.open(level + 1, 0).map_err(|cause| sink.refuse(cause))?;
        while fields.next_key_seed(TapeKey { sink: &mut *sink })?.is_some() {
            fields.next_value_seed(TapeItem { sink: &mut *sink, level: level + 1 })?;
        }
        let closed = sink.tape.close_map(&open, sink.text.as_bytes(), 0);
        closed.map_err(|cause| sink.refuse(cause))
    }
}

struct TapeKey<'s, 't> {
    sink: &'s mut TapeSink<'t>,
}

impl<'de> DeserializeSeed<'de> for TapeKey<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TapeKey<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<(), E> {
        let span = self.sink.borrowed(text);
        self.sink.push_key(span)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let span = self.sink.owned(text).map_err(|cause| self.sink.refuse(cause))?;
        self.sink.push_key(span)
    }
}

pub(crate) fn write_u64(out: &mut Vec<u8>, n: u64) {
    // Writing to a vector does not fail.
    let _ = CompactFormatter.write_u64(out, n);
}

pub(crate) fn write_i64(out: &mut Vec<u8>, n: i64) {
    let _ = CompactFormatter.write_i64(out, n);
}

/// The shortest text that reads back as this float, always with a point or an exponent.
pub(crate) fn write_f64(out: &mut Vec<u8>, n: f64) {
    let _ = CompactFormatter.write_f64(out, n);
}

pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    base64_simd::URL_SAFE_NO_PAD.encode_append(bytes, out);
    out.push(b'"');
}

/// Escapes what RFC 8259 §7 demands and nothing else.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let Some(plain) = rest.iter().position(|&byte| needs_escape(byte)) {
        let (before, from) = rest.split_at(plain);
        out.extend_from_slice(before);
        let Some((&byte, after)) = from.split_first() else { break };
        escape(out, byte);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[inline]
fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digit = |n: u8| if n < 10 { b'0' + n } else { b'a' + n - 10 };
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// `serde_json` reads an integer beyond 64 bits as a float, which is not what was written. The
/// text is known to be valid, so that numbers are what stands outside strings.
fn refuse_wide_integers(text: &[u8]) -> Result<(), CodecError> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at = after_string(text, at),
            b'-' | b'0'..=b'9' => {
                let end = after_number(text, at);
                if is_wide_integer(text.get(at..end).unwrap_or_default()) {
                    return Err(CodecError::IntegerRange { at });
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// The offset after the string that begins at `at`.
pub(crate) fn after_string(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return end + found + 1,
            Some(found) => end += found + 2,
            None => return text.len().max(end),
        }
    }
}

/// A number that is digits alone, as most are; none where it takes a parser to say what it is.
pub(crate) fn plain_number(text: &[u8]) -> Option<u64> {
    // Nineteen digits always fit, and no number of several digits begins with 0.
    let is_plain = matches!(text, [b'0'] | [b'1'..=b'9', ..]) && text.len() <= 19;
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let add = |number: u64, byte: &u8| Some(number * 10 + digit(byte)?);
    if is_plain { text.iter().try_fold(0, add) } else { None }
}

fn after_number(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let digits = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    at + rest.iter().take_while(|byte| digits(byte)).count()
}

fn is_wide_integer(number: &[u8]) -> bool {
    let Ok(number) = std::str::from_utf8(number) else { return false };
    !number.contains(['.', 'e', 'E'])
        && number != "-0"
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}
