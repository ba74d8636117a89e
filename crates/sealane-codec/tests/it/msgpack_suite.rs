//! npm's `msgpack-test-suite`: every form of every value that the data model has is read, and the
//! shortest is written.

use sealane_codec::{Codec, CodecError, decode, encode};
use sealane_message::Value;
use sealane_testing::npm_package;
use serde_json::Value as Json;

/// Extension types are not in the data model.
const REFUSED_GROUPS: [&str; 2] = ["50.timestamp.yaml", "60.ext.yaml"];

fn suite() -> serde_json::Map<String, Json> {
    let path = npm_package("msgpack-test-suite/dist/msgpack-test-suite.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    sealane_testing::unhex(&text.replace('-', ""))
}

/// The value that a case means. A case with a `bignum` is read from it.
fn expected(case: &serde_json::Map<String, Json>) -> Value {
    let (kind, plain) = case.iter().find(|(key, _)| *key != "msgpack").unwrap();
    let plain = case.get("bignum").unwrap_or(plain);
    match (kind.as_str(), plain) {
        ("binary", Json::String(hex)) => Value::Bytes(unhex(hex)),
        (_, Json::String(digits)) if case.contains_key("bignum") => digits
            .parse::<i64>()
            .map(Value::from)
            .unwrap_or_else(|_| Value::from(digits.parse::<u64>().unwrap())),
        (_, plain) => decode(Codec::Json, plain.to_string().as_bytes()).unwrap(),
    }
}

fn is_float(form: &str) -> bool {
    form.starts_with("ca") || form.starts_with("cb")
}

fn same(read: &Value, expected: &Value) -> bool {
    match (read, expected) {
        // The suite lists float forms of integers, which stay floats here.
        (Value::F64(float), Value::I64(int)) => *float == *int as f64,
        (Value::F64(float), Value::U64(int)) => *float == *int as f64,
        _ => read == expected,
    }
}

#[test]
#[ignore = "lab: needs npm packages"]
fn every_form_is_read_and_the_shortest_is_written() {
    let (mut read, mut refused) = (0, 0);
    for (group, cases) in suite() {
        for case in cases.as_array().unwrap() {
            let case = case.as_object().unwrap();
            let forms = case["msgpack"].as_array().unwrap();
            let forms: Vec<&str> = forms.iter().map(|form| form.as_str().unwrap()).collect();
            if REFUSED_GROUPS.contains(&group.as_str()) {
                for form in forms {
                    let error = decode(Codec::MsgPack, &unhex(form)).unwrap_err();
                    assert!(matches!(error, CodecError::Extension { .. }), "{form}: {error}");
                    refused += 1;
                }
                continue;
            }
            let expected = expected(case);
            let shortest =
                forms.iter().filter(|form| !is_float(form)).map(|form| unhex(form).len());
            let shortest = shortest.min().unwrap_or_default();
            for form in forms {
                let value = decode(Codec::MsgPack, &unhex(form)).unwrap();
                assert!(same(&value, &expected), "{group} {form}: {value:?} {expected:?}");
                if !is_float(form) {
                    let mut out = Vec::new();
                    encode(Codec::MsgPack, &value, &mut out);
                    assert_eq!(out.len(), shortest, "{group} {form}");
                }
                read += 1;
            }
        }
    }
    assert_eq!((read, refused), (203, 30));
}
