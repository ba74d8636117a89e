//! Types that derive serde's traits, in all codecs alike.
//!
//! A value is written by its announced lengths, as the binary codecs want it, and read over
//! [`crate::fields`] and its like: borrowed text stays borrowed, and a [`RawDatum`] is spliced or
//! cut out without a look into it. Integers are read as [`crate::read_u64`] reads them, since
//! JavaScript writes large ones as floats; serde's own formats would refuse those.
//!
//! ```
//! use sealane_codec::{Codec, DatumWriter, typed};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
//! struct Grant {
//!     credit: u64,
//! }
//!
//! let mut bytes = Vec::new();
//! typed::write(&Grant { credit: 10 }, &mut DatumWriter::new(Codec::MsgPack, &mut bytes));
//! assert_eq!(bytes, b"\x81\xa6credit\x0a");
//! assert_eq!(typed::read::<Grant>(Codec::MsgPack, &bytes)?, Grant { credit: 10 });
//! # Ok::<(), typed::TypedError>(())
//! ```

mod error;
mod read;
mod write;

pub use error::TypedError;
pub use read::{read, read_fields, read_request};
pub use write::write;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// By this name serializer and deserializer know a [`RawDatum`].
const RAW: &str = "sealane_codec::typed::RawDatum";

/// A datum as bytes of the codec that is written or read. Only this module's functions carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawDatum<'a>(pub &'a [u8]);

impl Serialize for RawDatum<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(RAW, &PlainBytes(self.0))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawDatum<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, RawVisitor).map(RawDatum)
    }
}

/// Bytes, which serde takes for an array of numbers.
struct PlainBytes<'a>(&'a [u8]);

impl Serialize for PlainBytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = &'de [u8];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a datum of the codec that is read")
    }

    fn visit_borrowed_bytes<E: serde::de::Error>(self, raw: &'de [u8]) -> Result<&'de [u8], E> {
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{Codec, CodecError, DatumWriter};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        a: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        b: Option<i64>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Whole<'a> {
        #[serde(borrow)]
        raw: RawDatum<'a>,
        mode: Mode,
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
        inner: Vec<Inner>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Flat {
        first: u64,
        #[serde(flatten)]
        inner: Inner,
        last: bool,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Verb {
        Skip(Inner),
        Wait(bool),
    }

    fn written<T: serde::Serialize>(codec: Codec, value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(value, &mut DatumWriter::new(codec, &mut bytes));
        bytes
    }

    /// A datum that is written as JSON here, in this codec.
    fn datum(codec: Codec, json: &str) -> Vec<u8> {
        let value = crate::decode(Codec::Json, json.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        crate::encode(codec, &value, &mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_is_read_back_and_envelopes_are_spliced() {
        for codec in Codec::AT_REST {
            let raw = datum(codec, r#"{"x":[1,null,{"y":-2.5}]}"#);
            for (limit, b) in [(None, None), (Some(7), Some(-3))] {
                let inner = vec![Inner { a: u64::MAX, b }, Inner { a: 0, b: None }];
                let (name, mode) = ("\u{e9}\n".into(), Mode::Slow);
                let whole = Whole { raw: RawDatum(&raw), mode, name, inner, limit };
                let bytes = written(codec, &whole);
                assert!(bytes.windows(raw.len()).any(|part| part == raw), "{codec:?}");
                assert_eq!(read_request::<Whole<'_>>(codec, &bytes).as_ref(), Ok(&whole));
                let fields = crate::fields(codec, &bytes).unwrap();
                assert_eq!(read_fields::<Whole<'_>>(codec, &fields), Ok(whole));
            }
            let verb = Verb::Skip(Inner { a: 1, b: None });
            assert_eq!(written(codec, &verb), datum(codec, r#"{"skip":{"a":1}}"#));
            assert_eq!(read(codec, &written(codec, &verb)), Ok(verb));
        }
    }

    #[test]
    fn a_map_that_was_not_counted_looks_like_one_that_was() {
        let flat = Flat { first: 1, inner: Inner { a: 2, b: Some(3) }, last: true };
        for codec in Codec::AT_REST {
            let mut expected = Vec::new();
            let mut writer = DatumWriter::new(codec, &mut expected);
            writer.map(4);
            for (key, n) in [("first", 1), ("a", 2), ("b", 3)] {
                writer.key(key);
                writer.u64(n);
            }
            writer.key("last");
            writer.bool(true);
            writer.end();
            assert_eq!(written(codec, &flat), expected);
            assert_eq!(read(codec, &expected).as_ref(), Ok(&flat));
            // More fields than a head of one byte counts.
            let many: std::collections::BTreeMap<_, _> =
                (0..300).map(|n| (format!("k{n}"), n)).collect();
            #[derive(Serialize)]
            struct Many {
                #[serde(flatten)]
                many: std::collections::BTreeMap<String, u64>,
            }
            let bytes = written(codec, &vec![Many { many: many.clone() }, Many { many }]);
            let all = crate::maps(codec, &bytes).unwrap();
            assert_eq!(all.iter().map(<[_]>::len).collect::<Vec<_>>(), [300, 300]);
        }
    }

    #[test]
    fn javascript_writes_large_integers_as_floats() {
        let bytes = b"\x83\xa5first\xcb\x42\x78\xbc\xfe\x56\x80\x00\x00\xa1a\xcb\
            \x40\x14\x00\x00\x00\x00\x00\x00\xa4last\xc3";
        let flat: Flat = read(Codec::MsgPack, bytes).unwrap();
        assert_eq!((flat.first, flat.inner.a, flat.inner.b), (1_700_000_000_000, 5, None));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let json = |text: &'static str| read_request::<Whole<'_>>(Codec::Json, text.as_bytes());
        let whole = r#"{"raw":1,"mode":"fast","name":"n","inner":[]}"#;
        assert!(json(whole).is_ok());
        assert_eq!(json(r#"{"raw":1,"x":2}"#), Err(TypedError::Unknown("x".into())));
        assert_eq!(json(r#"{"raw":1}"#), Err(TypedError::Missing("mode")));
        assert!(matches!(json("[]"), Err(TypedError::Codec(CodecError::WrongKind { .. }))));
        for (text, expected) in [
            (r#"{"mode":"idle"}"#, "`mode` is none of fast, slow"),
            (r#"{"name":7}"#, "`name` is not text"),
            (r#"{"inner":[{"a":-1}]}"#, "`inner.a` is not an integer from 0 up"),
            (r#"{"inner":[{"b":1}]}"#, "`inner.a` is missing"),
            (r#"{"limit":null}"#, "`limit` is not an integer from 0 up"),
        ] {
            let error = json(text).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert!(text.contains(&format!("\"{}\"", error.field())));
        }
        let verb = |text: &'static str| read::<Verb>(Codec::Json, text.as_bytes()).unwrap_err();
        assert_eq!(verb(r#"{"jump":1}"#), TypedError::Unknown("jump".into()));
        assert_eq!(verb(r#"{"wait":1}"#).to_string(), "`wait` is not true or false");
        assert!(verb("{}").to_string().contains("exactly one"));
        // A peer that may be newer may say null.
        let lenient = r#"{"raw":1,"mode":"fast","name":"n","inner":[],"limit":null}"#;
        assert!(read::<Whole<'_>>(Codec::Json, lenient.as_bytes()).is_ok());
    }
}
