//! Any value of the data model.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sealane_message::Value;

/// Values of up to four levels, with and without bytes, which JSON does not lead back.
pub(crate) fn value(with_bytes: bool) -> impl Strategy<Value = Value> {
    leaf(with_bytes).prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
            prop::collection::btree_map(key(), inner, 0..20).prop_map(map),
        ]
    })
}

fn map(fields: BTreeMap<String, Value>) -> Value {
    // Some order that is neither alphabetical nor CBOR's.
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_by_key(|(key, _)| key.chars().rev().collect::<String>());
    Value::Map(fields)
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{0,8}", 1 => ".{0,40}"]
}

fn leaf(with_bytes: bool) -> impl Strategy<Value = Value> {
    let finite = any::<f64>().prop_filter("finite", |n| n.is_finite());
    let bytes = prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes);
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        2 => any::<i64>().prop_map(Value::from),
        2 => any::<u64>().prop_map(Value::from),
        2 => (-200_i64..200).prop_map(Value::from),
        2 => finite.prop_map(Value::F64),
        1 => any::<f32>().prop_map(|n| Value::F64(if n.is_finite() { n.into() } else { -0.0 })),
        1 => (-3000_i32..3000).prop_map(|n| Value::F64(f64::from(n) / 8.0)),
        2 => "\\PC{0,40}".prop_map(Value::Text),
        1 => any::<Vec<char>>().prop_map(|text| Value::Text(text.into_iter().collect())),
        1 => if with_bytes { bytes.boxed() } else { Just(Value::Null).boxed() },
    ]
}
