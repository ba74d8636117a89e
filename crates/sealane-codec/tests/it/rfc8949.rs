//! The examples of RFC 8949, appendix A.

use sealane_codec::{Codec, CodecError, decode, encode};
use sealane_message::Value;
use sealane_testing::unhex;

/// A row of the table as it is here: its value as JSON, its bytes, or why it is refused.
enum Row {
    Json(&'static str),
    Bytes(&'static [u8]),
    Refused(&'static str),
}
use Row::{Bytes, Json, Refused};

const EXTENSION: Row = Refused("a tag, extension or simple value at byte ");
const NOT_FINITE: Row = Refused("a float that is not finite at byte ");
const RANGE: Row = Refused("an integer outside 64 bits at byte ");
const KEY: Row = Refused("a map key that is not text at byte ");

const TWENTY_FIVE: &str = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]";

#[rustfmt::skip]
const TABLE: [(&str, Row); 82] = [
    ("00", Json("0")),
    ("01", Json("1")),
    ("0a", Json("10")),
    ("17", Json("23")),
    ("1818", Json("24")),
    ("1819", Json("25")),
    ("1864", Json("100")),
    ("1903e8", Json("1000")),
    ("1a000f4240", Json("1000000")),
    ("1b000000e8d4a51000", Json("1000000000000")),
    ("1bffffffffffffffff", Json("18446744073709551615")),
    ("c249010000000000000000", EXTENSION),
    ("3bffffffffffffffff", RANGE),
    ("c349010000000000000000", EXTENSION),
    ("20", Json("-1")),
    ("29", Json("-10")),
    ("3863", Json("-100")),
    ("3903e7", Json("-1000")),
    ("f90000", Json("0.0")),
    ("f98000", Json("-0.0")),
    ("f93c00", Json("1.0")),
    ("fb3ff199999999999a", Json("1.1")),
    ("f93e00", Json("1.5")),
    ("f97bff", Json("65504.0")),
    ("fa47c35000", Json("100000.0")),
    ("fa7f7fffff", Json("3.4028234663852886e+38")),
    ("fb7e37e43c8800759c", Json("1.0e+300")),
    ("f90001", Json("5.960464477539063e-8")),
    ("f90400", Json("0.00006103515625")),
    ("f9c400", Json("-4.0")),
    ("fbc010666666666666", Json("-4.1")),
    ("f97c00", NOT_FINITE),
    ("f97e00", NOT_FINITE),
    ("f9fc00", NOT_FINITE),
    ("fa7f800000", NOT_FINITE),
    ("fa7fc00000", NOT_FINITE),
    ("faff800000", NOT_FINITE),
    ("fb7ff0000000000000", NOT_FINITE),
    ("fb7ff8000000000000", NOT_FINITE),
    ("fbfff0000000000000", NOT_FINITE),
    ("f4", Json("false")),
    ("f5", Json("true")),
    ("f6", Json("null")),
    ("f7", EXTENSION),
    ("f0", EXTENSION),
    ("f8ff", EXTENSION),
    ("c074323031332d30332d32315432303a30343a30305a", EXTENSION),
    ("c11a514b67b0", EXTENSION),
    ("c1fb41d452d9ec200000", EXTENSION),
    ("d74401020304", EXTENSION),
    ("d818456449455446", EXTENSION),
    ("d82076687474703a2f2f7777772e6578616d706c652e636f6d", EXTENSION),
    ("40", Bytes(b"")),
    ("4401020304", Bytes(&[1, 2, 3, 4])),
    ("60", Json(r#""""#)),
    ("6161", Json(r#""a""#)),
    ("6449455446", Json(r#""IETF""#)),
    ("62225c", Json(r#""\"\\""#)),
    ("62c3bc", Json(r#""\u00fc""#)),
    ("63e6b0b4", Json(r#""\u6c34""#)),
    ("64f0908591", Json(r#""\ud800\udd51""#)),
    ("80", Json("[]")),
    ("83010203", Json("[1,2,3]")),
    ("8301820203820405", Json("[1,[2,3],[4,5]]")),
    ("98190102030405060708090a0b0c0d0e0f101112131415161718181819", Json(TWENTY_FIVE)),
    ("a0", Json("{}")),
    ("a201020304", KEY),
    ("a26161016162820203", Json(r#"{"a":1,"b":[2,3]}"#)),
    ("826161a161626163", Json(r#"["a",{"b":"c"}]"#)),
    ("a56161614161626142616361436164614461656145",
        Json(r#"{"a":"A","b":"B","c":"C","d":"D","e":"E"}"#)),
    ("5f42010243030405ff", Bytes(&[1, 2, 3, 4, 5])),
    ("7f657374726561646d696e67ff", Json(r#""streaming""#)),
    ("9fff", Json("[]")),
    ("9f018202039f0405ffff", Json("[1,[2,3],[4,5]]")),
    ("9f01820203820405ff", Json("[1,[2,3],[4,5]]")),
    ("83018202039f0405ff", Json("[1,[2,3],[4,5]]")),
    ("83019f0203ff820405", Json("[1,[2,3],[4,5]]")),
    ("9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", Json(TWENTY_FIVE)),
    ("bf61610161629f0203ffff", Json(r#"{"a":1,"b":[2,3]}"#)),
    ("826161bf61626163ff", Json(r#"["a",{"b":"c"}]"#)),
    ("bf6346756ef563416d7421ff", Json(r#"{"Fun":true,"Amt":-2}"#)),
    ("bf61610161629f0203ffff", Json(r#"{"a":1,"b":[2,3]}"#)),
];

/// Rows with open lengths, or with keys in another than canonical order, are written otherwise.
fn is_canonical(hex: &str) -> bool {
    !hex.ends_with("ff") || hex.starts_with("1b") || hex == "f97bff" || hex == "fa7f7fffff"
}

#[test]
fn every_row_is_read_and_written_or_refused() {
    let mut refused = 0;
    for (hex, row) in TABLE {
        let bytes = unhex(hex);
        let value = match row {
            Json(json) => decode(Codec::Json, json.as_bytes()).unwrap(),
            Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Refused(why) => {
                let error = decode(Codec::Cbor, &bytes).unwrap_err();
                assert_eq!(error.info().name, "OutsideModel", "{hex}: {error}");
                assert!(error.to_string().starts_with(why), "{hex}: {error}");
                refused += 1;
                continue;
            }
        };
        assert_eq!(decode(Codec::Cbor, &bytes).unwrap(), value, "{hex}");
        let mut out = Vec::new();
        encode(Codec::Cbor, &value, &mut out);
        let has_open_length = hex.contains("9f") || hex.contains("bf6");
        if is_canonical(hex) && !has_open_length {
            assert_eq!(out, bytes, "{hex}");
        }
    }
    assert_eq!(refused, 22);
}

/// RFC 8949, appendix F: examples of what is not well-formed.
#[test]
fn what_is_not_well_formed_is_refused() {
    #[rustfmt::skip]
    const NOT_WELL_FORMED: [&str; 79] = [
        "18", "19", "1a", "1b", "1901", "1a0102", "1b01020304050607", "38", "58", "78", "98",
        "9a01ff00", "b8", "d8", "f8", "f900", "fa0000", "fb000000", "41", "61", "5affffffff00",
        "5bffffffffffffffff010203", "7affffffff00", "7b7fffffffffffffff010203", "81",
        "818181818181818181",
        "8200", "a1", "a20102", "a100", "a2000000", "5f4100", "7f6100", "9f", "9f0102", "bf",
        "bf01020102", "819f", "9f8000", "9f9f9f9f9fffffffff", "9f819f819f9fffffff", "1c", "1d",
        "1e", "3c", "3d", "3e", "5c", "5d", "5e", "7c", "7d", "7e", "9c", "9d", "9e", "bc", "bd",
        "be", "dc", "dd", "de", "fc", "fd", "fe", "f800", "f801", "f818", "f81f", "5f00ff",
        "5f6100ff", "7f4100ff", "5f5f4100ffff", "ff", "81ff", "8200ff", "a1ff", "a100ff", "bf00ff",
    ];
    for hex in NOT_WELL_FORMED {
        assert!(decode(Codec::Cbor, &unhex(hex)).is_err(), "{hex}");
    }
    for reserved in ["1f", "3f", "df"] {
        let error = decode(Codec::Cbor, &unhex(reserved)).unwrap_err();
        assert!(matches!(error, CodecError::Malformed { at: 0, .. }), "{reserved}");
    }
}
