//! CBOR has its own order of map keys.

use sealane_message::Value;

/// Map fields in one order, since CBOR's differs from the others'.
pub(crate) fn ordered(value: Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(ordered).collect()),
        Value::Map(fields) => {
            let mut fields: Vec<_> =
                fields.into_iter().map(|(key, value)| (key, ordered(value))).collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Map(fields)
        }
        value => value,
    }
}
