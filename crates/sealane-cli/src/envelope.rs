//! The envelope that the words after `sealane pub TOPIC` become.

use sealane::{Codec, Value};

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
    fn a_map_that_is_none_is_refused() {
        assert!(matches!(encode("{a:1}", Codec::Json), Err(CliFailure::Body(_))));
    }
}
