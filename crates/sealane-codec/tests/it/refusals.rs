//! Every codec refuses data outside the data model, with its cause and place.

use sealane_codec::{Codec, CodecError, DatumKind, ERRORS, decode, elements, fields, maps};
use sealane_codec::{read_bool, read_bytes, read_text, read_u64, records};

use Codec::{Cbor, Json, MsgPack, MsgPackRecords};

fn refused(codec: Codec, bytes: &[u8]) -> CodecError {
    let error = decode(codec, bytes).unwrap_err();
    assert!(ERRORS.contains(error.info()));
    error
}

#[test]
fn a_key_comes_once() {
    let twice: [(Codec, &[u8]); 5] = [
        (Json, br#"{"a":1,"b":2,"a":3}"#),
        (Json, br#"{"a":1,"\u0061":2}"#),
        (MsgPack, b"\x82\xa1a\x01\xd9\x01a\x02"),
        (Cbor, b"\xa2\x61a\x01\x7f\x61a\xff\x02"),
        (MsgPackRecords, b"\xd4\x72\x40\x92\xa1a\xa1a\x01\x02"),
    ];
    for (codec, bytes) in twice {
        let error = refused(codec, bytes);
        assert!(matches!(error, CodecError::DuplicateKey { at } if at > 0), "{error}");
        if codec != MsgPackRecords {
            assert!(matches!(fields(codec, bytes), Err(CodecError::DuplicateKey { .. })));
        }
    }
    let many: Vec<String> = (0..1000).map(|n| format!(r#""k{}":0"#, n % 999)).collect();
    let wide = format!("{{{}}}", many.join(","));
    assert!(matches!(refused(Json, wide.as_bytes()), CodecError::DuplicateKey { .. }));
}

#[test]
fn keys_are_text() {
    assert_eq!(refused(MsgPack, b"\x81\x01\x02"), CodecError::KeyNotText { at: 1 });
    assert_eq!(refused(Cbor, b"\xa1\x01\x02"), CodecError::KeyNotText { at: 1 });
    assert_eq!(refused(Cbor, b"\xa1\x41a\x02"), CodecError::KeyNotText { at: 1 });
    assert_eq!(fields(MsgPack, b"\x81\x01\x02"), Err(CodecError::KeyNotText { at: 1 }));
}

#[test]
fn numbers_are_64_bits_and_finite() {
    for json in ["[18446744073709551616]", "[-9223372036854775809]", "[1,1000000000000000000000]"] {
        let error = refused(Json, json.as_bytes());
        assert!(matches!(error, CodecError::IntegerRange { at } if at > 0), "{json} {error}");
    }
    assert!(decode(Json, b"[1e20, \"18446744073709551616\", 18446744073709551615]").is_ok());
    assert!(matches!(refused(Json, b"[1e400]"), CodecError::NotFinite { .. }));
    assert_eq!(refused(MsgPack, b"\x91\xca\x7f\x80\0\0"), CodecError::NotFinite { at: 1 });
    assert_eq!(refused(Cbor, b"\x81\xf9\x7e\0"), CodecError::NotFinite { at: 1 });
    assert_eq!(refused(Cbor, b"\x3b\xff\0\0\0\0\0\0\0"), CodecError::IntegerRange { at: 0 });
}

#[test]
fn text_is_unicode() {
    assert_eq!(refused(MsgPack, b"\x91\xa1\xff"), CodecError::NotUnicode { at: 1 });
    assert_eq!(refused(MsgPack, b"\x81\xa1\xff\x01"), CodecError::NotUnicode { at: 1 });
    assert_eq!(refused(Cbor, b"\x62\xed\xa0"), CodecError::NotUnicode { at: 0 });
    // One character in two chunks.
    assert!(matches!(refused(Cbor, b"\x7f\x61\xc3\x61\xbc\xff"), CodecError::NotUnicode { .. }));
    assert_eq!(refused(Json, b"[\"ab\xff\"]"), CodecError::NotUnicode { at: 4 });
    for lone in [r#""\ud800""#, r#""\udc00""#, r#"{"\ud800x":1}"#, r#""\ud800\ud800""#] {
        assert!(matches!(refused(Json, lone.as_bytes()), CodecError::NotUnicode { .. }), "{lone}");
    }
}

#[test]
fn extensions_have_no_place() {
    let extensions: [(Codec, &[u8]); 8] = [
        (MsgPack, b"\xd4\x01\x00"),
        (MsgPack, b"\xd6\xff\0\0\0\0"),
        (MsgPack, b"\xd4\x72\x40\x91\xa1a\x01"),
        (MsgPackRecords, b"\xd4\x01\x00"),
        (MsgPackRecords, b"\xd6\xff\0\0\0\0"),
        (Cbor, b"\xc1\x00"),
        (Cbor, b"\xf7"),
        (Cbor, b"\xf8\x20"),
    ];
    for (codec, bytes) in extensions {
        assert_eq!(refused(codec, bytes), CodecError::Extension { at: 0 }, "{bytes:02x?}");
    }
    assert!(matches!(refused(MsgPack, b"\xc1"), CodecError::Malformed { at: 0, .. }));
}

#[test]
fn a_datum_is_whole_and_alone() {
    let whole: [(Codec, &[u8]); 4] = [
        (Json, br#"{"a":[1,"b"]}"#),
        (MsgPack, b"\x81\xa1a\x92\x01\xa1b"),
        (Cbor, b"\xa1\x61a\x82\x01\x61b"),
        (MsgPackRecords, b"\xd4\x72\x40\x91\xa1a\x92\x01\xa1b"),
    ];
    for (codec, bytes) in whole {
        assert!(decode(codec, bytes).is_ok());
        for end in 0..bytes.len() {
            let error = refused(codec, &bytes[..end]);
            assert!(matches!(error, CodecError::Truncated { .. }), "{codec:?} {end} {error}");
        }
        let longer = [bytes, b"1"].concat();
        assert_eq!(refused(codec, &longer), CodecError::Trailing { at: bytes.len() });
        if codec != MsgPackRecords {
            assert_eq!(fields(codec, &longer), Err(CodecError::Trailing { at: bytes.len() }));
        }
    }
    assert_eq!(elements(MsgPack, b"\x91\x01\x01"), Err(CodecError::Trailing { at: 2 }));
}

#[test]
fn readers_of_one_kind_refuse_others() {
    let wrong = |expected| CodecError::WrongKind { expected };
    assert_eq!(read_u64(Json, b"\"5\""), Err(wrong(DatumKind::Int)));
    assert_eq!(read_u64(Json, b" 5 "), Ok(5));
    assert_eq!(read_u64(Json, b"5.5"), Err(wrong(DatumKind::Int)));
    assert_eq!(read_u64(Json, b"-1"), Err(wrong(DatumKind::Int)));
    assert_eq!(read_u64(Json, b"1e3"), Ok(1000));
    assert_eq!(read_u64(MsgPack, b"\xd0\xff"), Err(wrong(DatumKind::Int)));
    assert_eq!(read_u64(MsgPack, b"\x05\x05"), Err(CodecError::Trailing { at: 1 }));
    assert_eq!(read_u64(Cbor, b"\xfb\x43\x50\0\0\0\0\0\0"), Err(wrong(DatumKind::Int)));
    assert_eq!(read_bool(Cbor, b"\xf6"), Err(wrong(DatumKind::Bool)));
    assert_eq!(read_text(MsgPack, b"\x05"), Err(wrong(DatumKind::Text)));
    assert_eq!(read_text(Json, br#""a\u00fc""#).unwrap(), "a\u{fc}");
    assert_eq!(read_text(Cbor, b"\x7f\x61a\x61b\xff").unwrap(), "ab");
    assert_eq!(read_bytes(Json, br#""_-8""#).unwrap(), [0xff, 0xef].as_slice());
    for text in [br#""_-8=""#.as_slice(), br#""/+8""#, br#""_-9""#, br#""_""#, b"7"] {
        assert_eq!(read_bytes(Json, text), Err(wrong(DatumKind::Bytes)));
    }
    assert_eq!(read_bytes(MsgPack, b"\xc4\x01a").unwrap(), b"a".as_slice());
    assert_eq!(read_bytes(MsgPack, b"\xa1a"), Err(wrong(DatumKind::Bytes)));
    assert_eq!(read_bytes(Cbor, b"\x5f\x41a\x41b\xff").unwrap(), b"ab".as_slice());
    assert_eq!(read_bytes(Cbor, b"\x41aa"), Err(CodecError::Trailing { at: 2 }));
    assert_eq!(fields(Json, b"[]"), Err(wrong(DatumKind::Map)));
    assert_eq!(elements(Cbor, b"\xa0"), Err(wrong(DatumKind::Array)));
}

#[test]
fn an_array_of_maps_holds_nothing_else() {
    let cases: [(Codec, [&[u8]; 4]); 3] = [
        (Json, [b"{}", b"[{},1]", br#"[{"a":1,"a":2}]"#, b"[{}"]),
        (MsgPack, [b"\x80", b"\x92\x80\x01", b"\x91\x82\xa1a\x01\xa1a\x02", b"\x92\x80"]),
        (Cbor, [b"\xa0", b"\x9f\xa0\x01\xff", b"\x81\xa2\x61a\x01\x61a\x02", b"\x9f\xa0"]),
    ];
    let wrong = |expected| Err(CodecError::WrongKind { expected });
    for (codec, [map, mixed, twice, cut]) in cases {
        assert_eq!(maps(codec, map), wrong(DatumKind::Array), "{codec:?}");
        assert_eq!(maps(codec, mixed), wrong(DatumKind::Map), "{codec:?}");
        assert_eq!(maps(codec, twice), Err(CodecError::DuplicateKey { at: twice.len() }));
        assert!(matches!(maps(codec, cut), Err(CodecError::Truncated { .. })), "{codec:?}");
    }
}

#[test]
fn a_refused_datum_leaves_the_dictionary_as_it_was() {
    let mut decoder = records::Decoder::new();
    let known = decoder.decode(b"\xd4\x72\x40\x91\xa1a\x01").unwrap();
    let refused: [&[u8]; 7] = [
        b"\xd4\x72\x40\x91\xa1b",             // cut off behind the definition
        b"\x92\xd4\x72\x40\x91\xa1b\x01\xc1", // malformed behind a whole record
        b"\xd4\x72\x41\x91\xa1b\x01\x01",     // trailing byte
        b"\xd4\x72\x41\x91\x01\x01",          // a key that is not text
        b"\xd4\x72\x80\x91\xa1b\x01",         // no record byte
        b"\xd5\x72\x60\x00\x91\xa1b\x01",     // two-byte record
        b"\x41\x01",                          // unknown
    ];
    for bytes in refused {
        assert!(decoder.decode(bytes).is_err(), "{bytes:02x?}");
        assert!(decoder.to_plain(bytes, &mut Vec::new()).is_err());
        assert_eq!(decoder.decode(b"\x40\x01").unwrap(), known);
        assert_eq!(decoder.decode(b"\x41\x01"), Err(CodecError::UnknownRecord { at: 0 }));
    }
    // A byte may get another meaning, even inside a record of its old one.
    let nested = decoder.decode(b"\xd4\x72\x40\x92\xa1x\xa1y\xd4\x72\x40\x91\xa1z\x01\x02");
    let json = br#"{"x":{"z":1},"y":2}"#;
    assert_eq!(nested.unwrap(), decode(Json, json).unwrap());
    assert_eq!(decoder.decode(b"\x40\x05").unwrap(), decode(Json, br#"{"z":5}"#).unwrap());
}

#[test]
fn views_have_no_dictionary() {
    let error = fields(MsgPackRecords, b"\x81\xa1a\x40\x01").unwrap_err();
    assert_eq!(error, CodecError::UnknownRecord { at: 3 });
    assert_eq!(
        fields(MsgPackRecords, b"\x81\xa1a\xcc\x40").unwrap(),
        [("a".into(), &b"\xcc\x40"[..])]
    );
}
