//! Values for programs, as docs/reference/JSON.md has them.

use sealane::{Codec, Value};

/// The version of the schema of every JSON line.
const SCHEMA: u64 = 1;

/// A map of these fields.
pub(crate) fn map(fields: Vec<(&str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A line of JSON with the schema's version.
pub(crate) fn record(mut fields: Vec<(&str, Value)>) -> String {
    fields.insert(0, ("v", SCHEMA.into()));
    let mut line = Vec::new();
    sealane_codec::encode(Codec::Json, &map(fields), &mut line);
    line.push(b'\n');
    String::from_utf8_lossy(&line).into_owned()
}
