/// One datum of the data model that every codec carries without loss.
///
/// Integers cover `i64` and `u64`; floats are finite; map keys are text and unique within their
/// map, in the order in which they were written. Anything else a codec can express (tags, NaN,
/// integer keys, extension types) is refused on entry, so that nothing stored is undeliverable to
/// a reader of another codec later. JSON alone has no bytes: it shows them as base64url text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The absent value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer that fits `i64`.
    I64(i64),
    /// An integer above [`i64::MAX`]; smaller ones are [`Value::I64`], so that equal numbers are
    /// equal values. `Value::from(u64)` chooses.
    U64(u64),
    /// A finite double.
    F64(f64),
    /// Unicode text.
    Text(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// Values in order.
    Array(Vec<Value>),
    /// Values under unique text keys, in order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The value under `key`, if this is a map that has it.
    pub fn field(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(fields) => fields.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is an integer from 0 up.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::I64(n) => u64::try_from(n).ok(),
            Value::U64(n) => Some(n),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Value::I64(n)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        i64::try_from(n).map_or(Value::U64(n), Value::I64)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_equal_values() {
        assert_eq!(Value::from(5_u64), Value::from(5_i64));
        assert_eq!(Value::from(u64::MAX), Value::U64(u64::MAX));
        assert_eq!(Value::from(u64::MAX).as_u64(), Some(u64::MAX));
        assert_eq!(Value::from(-1_i64).as_u64(), None);
    }

    #[test]
    fn a_field_is_found_by_its_key() {
        let map = Value::Map(vec![("a".into(), Value::Null), ("b".into(), "x".into())]);
        assert_eq!(map.field("b").and_then(Value::as_text), Some("x"));
        assert_eq!(map.field("c"), None);
    }
}
