mod tally;

use sealane_message::Value;

use crate::cbor::{self, major};
use crate::msgpack;
use crate::{Codec, json};
use tally::WriterTally;

/// Composes one datum of a codec at the end of a buffer, splicing already encoded values
/// verbatim. It allocates nothing of its own.
///
/// Containers may nest 64 deep, twice as deep as a datum may. The caller writes as many values as
/// it announced, a key before each value of a map, and ends each container. Debug builds assert
/// that.
///
/// CBOR's keys stand in the order in which they are written; [`DatumWriter::value`] and
/// [`DatumWriter::raw`] keep them canonical below.
pub struct DatumWriter<'a> {
    codec: Codec,
    out: &'a mut Vec<u8>,
    /// Where the datum began.
    start: usize,
    /// One bit per open container, innermost lowest: whether it is a map. For JSON's brackets.
    maps: u64,
    tally: WriterTally,
}

impl<'a> DatumWriter<'a> {
    /// Writes behind what `out` holds.
    pub fn new(codec: Codec, out: &'a mut Vec<u8>) -> Self {
        DatumWriter { codec, start: out.len(), out, maps: 0, tally: WriterTally::new() }
    }

    /// Begins a map of `len` fields.
    #[inline]
    pub fn map(&mut self, len: usize) {
        self.tally.open(len * 2);
        match self.codec {
            Codec::Json => self.open(b'{', 1),
            Codec::Cbor => cbor::write_head(self.out, major::MAP, len as u64),
            Codec::MsgPack | Codec::MsgPackRecords => msgpack::write_map(self.out, len),
        }
    }

    /// Begins an array of `len` elements.
    pub fn array(&mut self, len: usize) {
        self.tally.open(len);
        match self.codec {
            Codec::Json => self.open(b'[', 0),
            Codec::Cbor => cbor::write_head(self.out, major::ARRAY, len as u64),
            Codec::MsgPack | Codec::MsgPackRecords => msgpack::write_array(self.out, len),
        }
    }

    /// Begins a map whose fields are not counted yet, and says where its head stands.
    pub(crate) fn uncounted_map(&mut self) -> usize {
        self.map(0);
        self.tally.expect(usize::MAX);
        // The head of an empty map is one byte in every codec.
        self.out.len() - 1
    }

    /// Ends a map that turned out to have so many fields.
    pub(crate) fn end_uncounted(&mut self, head: usize, fields: usize) {
        let mut counted = Vec::new();
        DatumWriter::new(self.codec, &mut counted).map(fields);
        // The head of few fields is one byte too, and nothing moves.
        self.out.splice(head..=head, counted);
        self.tally.expect(0);
        self.end();
    }

    /// Ends the innermost container.
    pub fn end(&mut self) {
        self.tally.close();
        if self.codec == Codec::Json {
            self.out.push(if self.maps & 1 == 1 { b'}' } else { b']' });
            self.maps >>= 1;
        }
    }

    /// A field's key.
    pub fn key(&mut self, key: &str) {
        self.key_utf8(key.as_bytes());
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        self.utf8(text.as_bytes());
    }

    /// An integer from 0 up.
    #[inline]
    pub fn u64(&mut self, n: u64) {
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                json::write_u64(self.out, n);
            }
            Codec::MsgPack => msgpack::write_u64(self.out, n, 0x7f),
            Codec::Cbor => cbor::write_head(self.out, major::UNSIGNED, n),
            // The bytes from 0x40 to 0x7f are records.
            Codec::MsgPackRecords => msgpack::write_u64(self.out, n, 0x3f),
        }
    }

    /// An integer.
    #[inline]
    pub fn i64(&mut self, n: i64) {
        if let Ok(n) = u64::try_from(n) {
            return self.u64(n);
        }
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                json::write_i64(self.out, n);
            }
            Codec::Cbor => cbor::write_negative(self.out, n),
            Codec::MsgPack | Codec::MsgPackRecords => msgpack::write_negative(self.out, n),
        }
    }

    /// A float. One that is not finite, which the data model does not have, is written as null.
    pub fn f64(&mut self, n: f64) {
        if !n.is_finite() {
            return self.null();
        }
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                json::write_f64(self.out, n);
            }
            Codec::Cbor => cbor::write_f64(self.out, n),
            Codec::MsgPack | Codec::MsgPackRecords => msgpack::write_f64(self.out, n),
        }
    }

    /// True or false.
    pub fn bool(&mut self, bool: bool) {
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                self.out.extend_from_slice(if bool { b"true" } else { b"false" });
            }
            Codec::Cbor => cbor::write_bool(self.out, bool),
            Codec::MsgPack | Codec::MsgPackRecords => self.out.push(if bool { 0xc3 } else { 0xc2 }),
        }
    }

    /// The absent value.
    pub fn null(&mut self) {
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                self.out.extend_from_slice(b"null");
            }
            Codec::Cbor => cbor::write_null(self.out),
            Codec::MsgPack | Codec::MsgPackRecords => self.out.push(0xc0),
        }
    }

    /// Bytes. JSON shows them as base64url text without padding (RFC 4648 §5).
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                json::write_bytes(self.out, bytes);
            }
            Codec::Cbor => cbor::write_string(self.out, major::BYTES, bytes),
            Codec::MsgPack | Codec::MsgPackRecords => msgpack::write_bytes(self.out, bytes),
        }
    }

    /// One datum that is already encoded in this codec.
    pub fn raw(&mut self, datum: &[u8]) {
        self.tally.item();
        if self.codec == Codec::Json {
            self.comma();
        }
        self.out.extend_from_slice(datum);
    }

    /// Any value. CBOR's map keys are put in canonical order.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(bool) => self.bool(*bool),
            Value::I64(n) => self.i64(*n),
            Value::U64(n) => self.u64(*n),
            Value::F64(n) => self.f64(*n),
            Value::Text(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Array(values) => {
                self.array(values.len());
                values.iter().for_each(|value| self.value(value));
                self.end();
            }
            Value::Map(fields) => self.fields(fields),
        }
    }

    fn fields(&mut self, fields: &[(String, Value)]) {
        self.map(fields.len());
        if self.sorts_keys() {
            let mut order: Vec<_> = fields.iter().collect();
            order.sort_by_key(|(key, _)| (key.len(), key));
            order.into_iter().for_each(|field| self.field(field));
        } else {
            fields.iter().for_each(|field| self.field(field));
        }
        self.end();
    }

    fn field(&mut self, (key, value): &(String, Value)) {
        self.key(key);
        self.value(value);
    }

    /// Text that is known to be UTF-8.
    #[inline]
    pub(crate) fn utf8(&mut self, text: &[u8]) {
        self.tally.item();
        match self.codec {
            Codec::Json => {
                self.comma();
                json::write_text(self.out, text);
            }
            Codec::Cbor => cbor::write_string(self.out, major::TEXT, text),
            Codec::MsgPack | Codec::MsgPackRecords => msgpack::write_text(self.out, text),
        }
    }

    /// A key that is known to be UTF-8.
    #[inline]
    pub(crate) fn key_utf8(&mut self, key: &[u8]) {
        self.utf8(key);
        self.end_key();
    }

    /// Stands behind a key that was written as text.
    #[inline]
    pub(crate) fn end_key(&mut self) {
        if self.codec == Codec::Json {
            self.out.push(b':');
        }
    }

    /// Writes one value of a codec whose containers need no end, and are not ended.
    pub(crate) fn flat(&mut self) -> DatumWriter<'_> {
        self.tally.item();
        let DatumWriter { codec, start, maps, .. } = *self;
        DatumWriter { codec, out: self.out, start, maps, tally: WriterTally::off() }
    }

    /// Whether containers need no end and keys look like any text.
    pub(crate) fn is_flat(&self) -> bool {
        matches!(self.codec, Codec::MsgPack | Codec::MsgPackRecords)
    }

    /// Whether a map's keys have one order only.
    pub(crate) fn sorts_keys(&self) -> bool {
        self.codec == Codec::Cbor
    }

    fn open(&mut self, bracket: u8, is_map: u64) {
        self.comma();
        self.out.push(bracket);
        self.maps = self.maps << 1 | is_map;
    }

    /// A value or key that is neither the first of the datum or container nor a field's value
    /// follows another, which never ends like one of these.
    #[inline]
    fn comma(&mut self) {
        let begins = self.out.len() == self.start;
        if !begins && !matches!(self.out.last(), Some(b'{' | b'[' | b':') | None) {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delivery frame, around an envelope that is spliced.
    fn frame(codec: Codec, envelope: &[u8]) -> Vec<u8> {
        let mut out = b"earlier".to_vec();
        let mut writer = DatumWriter::new(codec, &mut out);
        writer.map(3);
        writer.key("deliver");
        writer.raw(envelope);
        writer.key("none");
        writer.array(0);
        writer.end();
        writer.key("offsets");
        writer.array(4);
        writer.u64(64);
        writer.i64(-1);
        writer.null();
        writer.map(1);
        writer.key("\"\n\u{1}");
        writer.f64(f64::NAN);
        writer.end();
        writer.end();
        writer.end();
        out.split_off(7)
    }

    #[test]
    fn json_has_commas_and_brackets_where_they_belong() {
        assert_eq!(
            frame(Codec::Json, br#"{"a":[]}"#).escape_ascii().to_string(),
            br#"{"deliver":{"a":[]},"none":[],"offsets":[64,-1,null,{"\"\n\u0001":null}]}"#
                .escape_ascii()
                .to_string()
        );
    }

    #[test]
    fn binary_codecs_need_no_end() {
        let tail = b"\xa3\"\n\x01\xc0";
        let plain = frame(Codec::MsgPack, b"\x90");
        let head = b"\x83\xa7deliver\x90\xa4none\x90\xa7offsets\x94\x40\xff\xc0\x81";
        assert_eq!(plain, [&head[..], tail].concat());
        let records = frame(Codec::MsgPackRecords, b"\x90");
        let head = b"\x83\xa7deliver\x90\xa4none\x90\xa7offsets\x94\xcc\x40\xff\xc0\x81";
        assert_eq!(records, [&head[..], tail].concat());
        let cbor = frame(Codec::Cbor, b"\x80");
        let head = b"\xa3\x67deliver\x80\x64none\x80\x67offsets\x84\x18\x40\x20\xf6\xa1";
        assert_eq!(cbor, [&head[..], b"\x63\"\n\x01\xf6"].concat());
    }

    #[test]
    #[cfg(debug_assertions)]
    fn what_was_announced_is_what_is_written() {
        for (announced, written, what) in [(2, 1, "fewer"), (1, 2, "more"), (0, 1, "more")] {
            let write = move || {
                let mut out = Vec::new();
                let mut writer = DatumWriter::new(Codec::Cbor, &mut out);
                writer.map(announced);
                for _ in 0..written {
                    writer.key("a");
                    writer.null();
                }
                writer.end();
            };
            let said = std::panic::catch_unwind(write).unwrap_err();
            assert!(said.downcast_ref::<&str>().unwrap().starts_with(what));
        }
    }

    #[test]
    fn floats_stay_floats_in_json() {
        for (n, text) in
            [(1.0, "1.0"), (-0.0, "-0.0"), (1e20, "1e20"), (1e-7, "1e-7"), (0.1, "0.1")]
        {
            let mut out = Vec::new();
            DatumWriter::new(Codec::Json, &mut out).f64(n);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out.parse::<f64>().unwrap().to_bits(), n.to_bits());
            assert!(out.contains(['.', 'e']), "{out} for {text}");
        }
    }
}
