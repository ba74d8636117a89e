//! The sizes of the five messages of the codec report, in every codec.

use crate::shared::five::FIVE;
use sealane_codec::{Codec, Transcoder, decode, encode, records};
use sealane_message::Value;

fn sizes(codec: Codec) -> Vec<usize> {
    let size = |json: &str| {
        let value = decode(Codec::Json, json.as_bytes()).unwrap();
        let (mut encoded, mut transcoded) = (Vec::new(), Vec::new());
        encode(codec, &value, &mut encoded);
        Transcoder::new().transcode(Codec::Json, json.as_bytes(), codec, &mut transcoded).unwrap();
        assert_eq!(encoded, transcoded);
        if codec != Codec::Cbor {
            assert_eq!(decode(codec, &encoded).unwrap(), value);
        }
        encoded.len()
    };
    FIVE.iter().map(|(_, json)| size(json)).collect()
}

#[test]
fn each_codec_writes_the_known_sizes() {
    assert_eq!(sizes(Codec::Json), [13, 100, 274, 196, 231]);
    assert_eq!(sizes(Codec::MsgPack), [9, 77, 216, 163, 204]);
    assert_eq!(sizes(Codec::Cbor), [9, 78, 218, 157, 204]);
    assert_eq!(sizes(Codec::MsgPackRecords), [12, 83, 232, 113, 210]);
}

#[test]
fn json_comes_back_as_it_was_written() {
    for (name, json) in FIVE {
        let mut out = Vec::new();
        encode(Codec::Json, &decode(Codec::Json, json.as_bytes()).unwrap(), &mut out);
        assert_eq!(std::str::from_utf8(&out).unwrap(), json, "{name}");
    }
}

/// The gateway of the report always wrote the three-byte map header.
#[test]
fn the_long_map_headers_of_the_report_are_read() {
    let mut lengths = Vec::new();
    for (_, json) in FIVE {
        let value = decode(Codec::Json, json.as_bytes()).unwrap();
        let mut long = Vec::new();
        with_map16(&value, &mut long);
        lengths.push(long.len());
        assert_eq!(decode(Codec::MsgPack, &long).unwrap(), value);
        let mut short = Vec::new();
        Transcoder::new().transcode(Codec::MsgPack, &long, Codec::MsgPack, &mut short).unwrap();
        assert!(short.len() < long.len());
    }
    assert_eq!(lengths, [11, 81, 226, 175, 208]);
}

fn with_map16(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Map(fields) => {
            out.extend([0xde, 0, fields.len() as u8]);
            for (key, value) in fields {
                encode(Codec::MsgPack, &Value::from(key.as_str()), out);
                with_map16(value, out);
            }
        }
        Value::Array(values) => {
            out.push(0x90 | values.len() as u8);
            values.iter().for_each(|value| with_map16(value, out));
        }
        value => encode(Codec::MsgPack, value, out),
    }
}

#[test]
fn warm_records_take_half_of_json() {
    let mut encoder = records::Encoder::new();
    let mut decoder = records::Decoder::new();
    for pass in 0..3 {
        let mut lengths = Vec::new();
        for (name, json) in FIVE {
            let mut out = Vec::new();
            encoder.transcode(Codec::Json, json.as_bytes(), &mut out).unwrap();
            lengths.push(out.len());
            let value = decode(Codec::Json, json.as_bytes()).unwrap();
            assert_eq!(decoder.decode(&out).unwrap(), value, "{name}");
        }
        if pass > 0 {
            assert_eq!(lengths, [2, 45, 116, 87, 163]);
            assert_eq!(lengths.iter().sum::<usize>(), 413);
        }
    }
}
