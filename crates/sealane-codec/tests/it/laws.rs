//! Laws that hold for every value and every input.

use crate::shared::order::ordered;
use crate::shared::values::value;
use proptest::prelude::*;
use sealane_codec::{
    Codec, DatumKind, DatumWriter, Transcoder, decode, elements, encode, fields, kind, maps,
    read_bool, read_bytes, read_text, read_u64, records,
};
use sealane_message::Value;

fn encoded(codec: Codec, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(codec, value, &mut out);
    out
}

fn transcoded(from: Codec, bytes: &[u8], to: Codec) -> Vec<u8> {
    let mut out = b"before".to_vec();
    Transcoder::new().transcode(from, bytes, to, &mut out).unwrap();
    out.split_off(6)
}

/// Equal, and zeros of the same sign.
fn identical(a: &Value, b: &Value) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn decoding_undoes_encoding(value in value(false)) {
        for codec in Codec::ALL {
            let back = decode(codec, &encoded(codec, &value)).unwrap();
            match codec {
                Codec::Cbor => prop_assert!(identical(&ordered(back), &ordered(value.clone()))),
                _ => prop_assert!(identical(&back, &value), "{codec:?}"),
            }
        }
    }

    #[test]
    fn binary_codecs_carry_bytes(value in value(true)) {
        for codec in [Codec::MsgPack, Codec::Cbor, Codec::MsgPackRecords] {
            let back = decode(codec, &encoded(codec, &value)).unwrap();
            prop_assert!(identical(&ordered(back), &ordered(value.clone())));
        }
        let json = encoded(Codec::Json, &value);
        prop_assert_eq!(Transcoder::new().validate(Codec::Json, &json), Ok(()));
    }

    #[test]
    fn any_codec_and_back_is_the_same(value in value(false)) {
        for from in Codec::ALL {
            let bytes = encoded(from, &value);
            for to in Codec::ALL {
                let there = transcoded(from, &bytes, to);
                let back = transcoded(to, &there, from);
                if from == Codec::Cbor || to != Codec::Cbor {
                    prop_assert_eq!(&back, &bytes, "{:?} {:?}", from, to);
                }
                prop_assert_eq!(
                    ordered(decode(from, &back).unwrap()), ordered(value.clone()));
            }
        }
    }

    #[test]
    fn deterministic_cbor_is_a_fixed_point(value in value(true)) {
        let once = encoded(Codec::Cbor, &value);
        prop_assert_eq!(&transcoded(Codec::Cbor, &once, Codec::Cbor), &once);
        // The same fields in another order are the same bytes.
        prop_assert_eq!(&encoded(Codec::Cbor, &ordered(value)), &once);
    }

    #[test]
    fn splicing_composes_what_encoding_does(values in prop::collection::vec(value(true), 1..5)) {
        let keys = ["a", "b", "c", "d", "e"];
        let named = keys.iter().zip(&values);
        let map = Value::Map(named.clone().map(|(k, v)| (k.to_string(), v.clone())).collect());
        for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
            let mut out = Vec::new();
            let mut writer = DatumWriter::new(codec, &mut out);
            writer.map(values.len());
            for (key, value) in named.clone() {
                writer.key(key);
                writer.raw(&encoded(codec, value));
            }
            writer.end();
            prop_assert_eq!(&out, &encoded(codec, &map));
        }
    }

    #[test]
    fn views_agree_with_decoding(value in value(false)) {
        for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
            let bytes = encoded(codec, &value);
            let value = decode(codec, &bytes).unwrap();
            check_views(codec, &bytes, &value);
        }
    }

    #[test]
    fn a_connection_of_records_carries_every_message(
        values in prop::collection::vec(value(true), 1..30)
    ) {
        let (mut encoder, mut decoder) = (records::Encoder::new(), records::Decoder::new());
        let mut plain_decoder = records::Decoder::new();
        for value in &values {
            let mut out = Vec::new();
            encoder.encode(value, &mut out);
            prop_assert!(identical(&decoder.decode(&out).unwrap(), value));
            let mut plain = Vec::new();
            plain_decoder.to_plain(&out, &mut plain).unwrap();
            prop_assert_eq!(plain, encoded(Codec::MsgPack, value));
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        never_panics(&bytes);
    }

    #[test]
    fn damaged_data_never_panic(
        value in value(true),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        for codec in Codec::ALL {
            let mut bytes = encoded(codec, &value);
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            never_panics(&bytes);
        }
    }
}

fn check_views(codec: Codec, bytes: &[u8], value: &Value) {
    let expected = match value {
        Value::Null => DatumKind::Null,
        Value::Bool(bool) => {
            assert_eq!(read_bool(codec, bytes), Ok(*bool));
            DatumKind::Bool
        }
        Value::I64(_) | Value::U64(_) => {
            assert_eq!(read_u64(codec, bytes).ok(), value.as_u64());
            DatumKind::Int
        }
        Value::F64(_) => DatumKind::Float,
        Value::Text(text) => {
            assert_eq!(read_text(codec, bytes).unwrap(), text.as_str());
            DatumKind::Text
        }
        Value::Bytes(content) => {
            assert_eq!(read_bytes(codec, bytes).unwrap(), content.as_slice());
            DatumKind::Bytes
        }
        Value::Array(values) => {
            let spans = elements(codec, bytes).unwrap();
            assert_eq!(spans.len(), values.len());
            for (span, value) in spans.iter().zip(values) {
                assert_eq!(&decode(codec, span).unwrap(), value);
            }
            check_maps(codec, bytes, &spans, values);
            DatumKind::Array
        }
        Value::Map(pairs) => {
            let spans = fields(codec, bytes).unwrap();
            assert_eq!(spans.len(), pairs.len());
            for ((key, span), (name, value)) in spans.iter().zip(pairs) {
                assert_eq!(key, name);
                assert_eq!(&decode(codec, span).unwrap(), value);
            }
            DatumKind::Map
        }
    };
    assert_eq!(kind(codec, bytes), Some(expected));
}

/// Maps of an array are found at once as they are one by one.
fn check_maps(codec: Codec, bytes: &[u8], spans: &[&[u8]], values: &[Value]) {
    let Ok(all) = maps(codec, bytes) else {
        assert!(values.iter().any(|value| !matches!(value, Value::Map(_))));
        return;
    };
    assert_eq!(all.iter().len(), spans.len());
    for (map, span) in all.iter().zip(spans) {
        assert_eq!(map, fields(codec, span).unwrap());
    }
}

fn never_panics(bytes: &[u8]) {
    for codec in Codec::ALL {
        let _ = decode(codec, bytes);
        let _ = fields(codec, bytes);
        let _ = elements(codec, bytes);
        let _ = maps(codec, bytes);
        let _ = kind(codec, bytes);
        let _ = read_text(codec, bytes);
        let _ = read_bytes(codec, bytes);
        let _ = read_u64(codec, bytes);
        let _ = read_bool(codec, bytes);
    }
}
