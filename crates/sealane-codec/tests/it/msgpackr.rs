//! npm's `msgpackr` in a real Node.js process reads what we write and writes what we read.

use std::path::Path;

use crate::shared::five::FIVE;
use crate::shared::node::{Line, converse};
use crate::shared::order::ordered;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sealane_codec::{Codec, Transcoder, decode, encode, records};
use sealane_message::Value;
use sealane_testing::{npm_package, unhex};

const PEER: &str = r#"
const { Packr, Unpackr } = require(process.argv[1]);
const options = process.argv[2] == 'records'
    ? { sequential: true, mapsAsObjects: true, int64AsType: 'auto' }
    : { useRecords: false, variableMapSize: true, int64AsType: 'auto' };
const packr = new Packr({ ...options }), unpackr = new Unpackr({ ...options });
const plain = (key, value) =>
    typeof value == 'bigint' ? 'bigint:' + value
    : value?.type == 'Buffer' ? 'bytes:' + value.data : value;
const answer = (kind, bytes) => kind == 'read'
    ? JSON.stringify(unpackr.unpack(bytes), plain)
    : packr.pack(JSON.parse(bytes.toString())).toString('hex');
"#;

fn peer(mode: &str, lines: &[Line]) -> Vec<String> {
    converse(PEER, &[&npm_package("msgpackr"), Path::new(mode)], lines)
}

/// Messages of one connection: known shapes again and again, a new shape inside a known one, empty
/// maps, maps in arrays, integers that look like records, text of every length class.
fn conversation() -> Vec<String> {
    let mut messages: Vec<String> = FIVE.iter().map(|(_, json)| (*json).to_owned()).collect();
    messages.extend([
        r#"{}"#.to_owned(),
        r#"[63,64,100,127,128,-1,-32,-33,{"credit":64}]"#.to_owned(),
        r#"{"credit":{"credit":{"credit":[{},{"a":1.5},{"a":"b"}]}}}"#.to_owned(),
        format!(r#"{{"text":"{}","long":"{}"}}"#, "ü".repeat(40), "x".repeat(70_000)),
        r#"{"a":null,"b":true,"c":false,"d":-2147483648,"e":4294967295}"#.to_owned(),
    ]);
    messages.extend((0..90).map(|n| format!(r#"{{"shape{n}":{n},"inner":{{"i{n}":[{n}]}}}}"#)));
    messages.extend(FIVE.iter().map(|(_, json)| (*json).to_owned()));
    messages
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn msgpackr_reads_our_records() {
    let mut encoder = records::Encoder::new();
    let mut lines = Vec::new();
    for json in conversation() {
        let mut out = Vec::new();
        encoder.transcode(Codec::Json, json.as_bytes(), &mut out).unwrap();
        lines.push(Line::Read(out));
    }
    assert_eq!(peer("records", &lines), conversation());
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn we_read_the_records_of_msgpackr() {
    let lines: Vec<_> =
        conversation().into_iter().map(|json| Line::Write(json.into_bytes())).collect();
    let packed = peer("records", &lines);
    let mut decoder = records::Decoder::new();
    let mut lengths = Vec::new();
    for (json, hex) in conversation().iter().zip(&packed) {
        let bytes = unhex(hex);
        lengths.push(bytes.len());
        let value = decoder.decode(&bytes).unwrap();
        assert_eq!(value, decode(Codec::Json, json.as_bytes()).unwrap(), "{json}");
    }
    assert_eq!(lengths[0], 12, "the first message defines its structure");
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn plain_messagepack_goes_both_ways() {
    let mut lines = Vec::new();
    for json in conversation() {
        let mut out = Vec::new();
        let mut transcoder = Transcoder::new();
        transcoder.transcode(Codec::Json, json.as_bytes(), Codec::MsgPack, &mut out).unwrap();
        lines.push(Line::Read(out));
    }
    lines.extend(conversation().into_iter().map(|json| Line::Write(json.into_bytes())));
    let answers = peer("plain", &lines);
    let (read, written) = answers.split_at(conversation().len());
    assert_eq!(read, conversation());
    for (json, hex) in conversation().iter().zip(written) {
        let value = decode(Codec::MsgPack, &unhex(hex)).unwrap();
        assert_eq!(value, decode(Codec::Json, json.as_bytes()).unwrap());
    }
}

/// With `int64AsType: 'auto'` integers up to 2^53 are numbers in JavaScript, beyond it BigInts;
/// msgpackr itself writes integers beyond 32 bits as floats.
#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn large_integers_and_bytes_keep_their_value() {
    let values = [
        Value::from(1_u64 << 33),
        Value::from(-(1_i64 << 33)),
        Value::from((1_u64 << 53) - 1),
        Value::from(u64::MAX),
        Value::from(i64::MIN),
        Value::F64(10.0),
        Value::Bytes(vec![1, 2, 255]),
    ];
    let expected = [
        "8589934592",
        "-8589934592",
        "9007199254740991",
        r#""bigint:18446744073709551615""#,
        r#""bigint:-9223372036854775808""#,
        "10",
        r#""bytes:1,2,255""#,
    ];
    for (mode, codec) in [("plain", Codec::MsgPack), ("records", Codec::MsgPackRecords)] {
        let mut lines = Vec::new();
        for value in &values {
            let mut out = Vec::new();
            encode(codec, value, &mut out);
            lines.push(Line::Read(out));
        }
        assert_eq!(peer(mode, &lines), expected);
        let written = peer(mode, &[Line::Write(b"5000000000".to_vec())]);
        let offset = unhex(&written[0]);
        assert_eq!(decode(codec, &offset).unwrap(), Value::F64(5e9));
        assert_eq!(sealane_codec::read_u64(codec, &offset), Ok(5_000_000_000));
    }
}

/// Many shapes, some of them often, with values that JavaScript has as well: no integral floats,
/// no integers beyond 32 bits.
fn random_conversation(messages: usize) -> Vec<String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(|n| Value::from(i64::from(n))),
        (-100_i64..200).prop_map(Value::from),
        any::<i16>().prop_map(|n| Value::F64(f64::from(n) + 0.25)),
        "\\PC{0,40}".prop_map(Value::Text),
    ];
    let value = leaf.prop_recursive(4, 24, 6, |inner| {
        let fields = prop::collection::btree_map("[a-e]|\\PC{1,3}", inner.clone(), 0..6);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            3 => fields.prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    });
    let mut runner = TestRunner::deterministic();
    let mut message = || {
        let mut json = Vec::new();
        encode(Codec::Json, &value.new_tree(&mut runner).unwrap().current(), &mut json);
        String::from_utf8(json).unwrap()
    };
    (0..messages).map(|_| message()).collect()
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn random_connections_agree_in_both_directions() {
    let messages = random_conversation(600);
    let mut encoder = records::Encoder::new();
    let mut lines = Vec::new();
    for json in &messages {
        let mut out = Vec::new();
        encoder.transcode(Codec::Json, json.as_bytes(), &mut out).unwrap();
        lines.push(Line::Read(out));
    }
    lines.extend(messages.iter().map(|json| Line::Write(json.clone().into_bytes())));
    let answers = peer("records", &lines);
    let (read, written) = answers.split_at(messages.len());
    let mut decoder = records::Decoder::new();
    for ((json, read), written) in messages.iter().zip(read).zip(written) {
        let value = ordered(decode(Codec::Json, json.as_bytes()).unwrap());
        // Objects of JavaScript put integer keys first.
        assert_eq!(ordered(decode(Codec::Json, read.as_bytes()).unwrap()), value);
        assert_eq!(ordered(decoder.decode(&unhex(written)).unwrap()), value);
    }
}
