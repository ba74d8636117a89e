//! The envelope that the words after `sealane pub TOPIC` become.

use sealane::{Codec, Value};
use sealane_protocol::limits::MAX_ENVELOPE_DEPTH;

use crate::CliFailure;

/// Encodes a body: a JSON map is the envelope, as it was written where the codec is JSON; other
/// JSON, or text that is not JSON, becomes `{"data": …}`.
///
/// # Errors
/// [`CliFailure::Body`] for text that begins as a JSON map does, and is not one: more often
/// a slip of quoting than a message.
pub fn encode(body: &str, codec: Codec) -> Result<Vec<u8>, CliFailure> {
    let envelope = value(body)?;
    if codec == Codec::Json && body.trim_start().starts_with('{') {
        return Ok(body.trim().into());
    }
    let mut bytes = Vec::new();
    sealane_codec::encode(codec, &envelope, &mut bytes);
    Ok(bytes)
}

/// The same as a value.
///
/// # Errors
/// As [`encode`].
pub fn value(body: &str) -> Result<Value, CliFailure> {
    match sealane_codec::decode(Codec::Json, body.as_bytes()) {
        Ok(map @ Value::Map(_)) => Ok(map),
        Ok(other) => Ok(data(other)),
        Err(error) if body.trim_start().starts_with('{') => Err(CliFailure::Body(error)),
        Err(_) => Ok(data(body.into())),
    }
}

/// Whether a body nests deeper than the hub takes.
pub(crate) fn is_too_deep(body: &str) -> bool {
    // A body without so many brackets is not read once more.
    let brackets = body.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    brackets >= MAX_ENVELOPE_DEPTH
        && value(body).is_ok_and(|value| depth(&value) > MAX_ENVELOPE_DEPTH)
}

/// The levels of a value. Recursion ends at the depth that a decoder takes.
fn depth(value: &Value) -> usize {
    match value {
        Value::Map(fields) => {
            1 + fields.iter().map(|(_, value)| depth(value)).max().unwrap_or_default()
        }
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn data(value: Value) -> Value {
    Value::Map(vec![("data".into(), value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(body: &str) -> String {
        String::from_utf8(encode(body, Codec::Json).unwrap()).unwrap()
    }

    #[test]
    fn maps_stay_and_the_rest_is_data() {
        assert_eq!(json(" {\"b\": 1,  \"a\": 2} "), "{\"b\": 1,  \"a\": 2}");
        assert_eq!(json("[1]"), r#"{"data":[1]}"#);
        assert_eq!(json("7"), r#"{"data":7}"#);
        assert_eq!(json("hello \"you\""), r#"{"data":"hello \"you\""}"#);
        assert_eq!(json(""), r#"{"data":""}"#);
        assert_eq!(encode(r#"{"a":1}"#, Codec::MsgPack).unwrap(), b"\x81\xa1a\x01");
    }

    #[test]
    fn the_hubs_depth_is_taken_and_no_more() {
        let nested = |levels| "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        assert!(!is_too_deep(&nested(MAX_ENVELOPE_DEPTH)));
        assert!(is_too_deep(&nested(MAX_ENVELOPE_DEPTH + 1)));
        assert!(!is_too_deep(&"[]".repeat(99)), "a text");
        let array = |levels| "[".repeat(levels) + &"]".repeat(levels);
        assert!(is_too_deep(&array(MAX_ENVELOPE_DEPTH)), "the map around it counts");
    }

    #[test]
    fn a_map_that_is_none_is_refused() {
        assert!(matches!(encode("{a:1}", Codec::Json), Err(CliFailure::Body(_))));
    }
}
