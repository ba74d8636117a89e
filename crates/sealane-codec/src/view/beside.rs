//! A map of a few fields around an array of many values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{ArrayVisitor, MapField, TOO_MANY, TextSeed, json_top, refuse_deep_json, refuse_twice};
use super::{elements, fields};
use crate::limits::MAX_VALUES;
use crate::{Codec, CodecError, DatumKind};

/// The fields of a map without the one named `name`, and the elements of the array that this one
/// is. In JSON both are found in one pass. What holds for [`fields`] holds here.
///
/// # Errors
/// As [`fields`] and [`elements`], and [`CodecError::WrongKind`] where there is no such field.
pub fn fields_beside<'a>(
    codec: Codec,
    bytes: &'a [u8],
    name: &str,
) -> Result<(Vec<MapField<'a>>, Vec<&'a [u8]>), CodecError> {
    let missing = CodecError::WrongKind { expected: DatumKind::Array };
    if codec != Codec::Json {
        let mut fields = fields(codec, bytes)?;
        let at = fields.iter().position(|(key, _)| key == name).ok_or(missing)?;
        let (_, array) = fields.remove(at);
        return Ok((fields, elements(codec, array)?));
    }
    let mut split = FieldsBeside { name, fields: Vec::new(), elements: None };
    json_top(bytes, &mut split, DatumKind::Map)?;
    let FieldsBeside { fields, elements, .. } = split;
    let elements = elements.ok_or(missing)?;
    refuse_deep_json(bytes, fields.iter().map(|(_, value)| *value), 1)?;
    refuse_deep_json(bytes, elements.iter().copied(), 2)?;
    refuse_twice(&fields, bytes)?;
    Ok((fields, elements))
}

/// Parts a map at one of its fields, which is an array.
struct FieldsBeside<'n, 'de> {
    name: &'n str,
    fields: Vec<MapField<'de>>,
    elements: Option<Vec<&'de [u8]>>,
}

impl<'de> Visitor<'de> for &mut FieldsBeside<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(TextSeed)? {
            if key != self.name {
                let value: &RawValue = map.next_value()?;
                self.fields.push((key, value.get().as_bytes()));
            } else if self.elements.replace(map.next_value_seed(ElementsSeed)?).is_some() {
                return Err(A::Error::custom("twice"));
            }
            if self.fields.len() > MAX_VALUES {
                return Err(A::Error::custom(TOO_MANY));
            }
        }
        Ok(())
    }
}

struct ElementsSeed;

impl<'de> DeserializeSeed<'de> for ElementsSeed {
    type Value = Vec<&'de [u8]>;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Self::Value, D::Error> {
        parser.deserialize_seq(ArrayVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transcoder;

    type Parts<'a> = Result<(Vec<MapField<'a>>, Vec<&'a [u8]>), CodecError>;

    fn layered(codec: Codec, bytes: &[u8]) -> Parts<'_> {
        let mut fields = fields(codec, bytes)?;
        let at = fields.iter().position(|(key, _)| key == "m").unwrap();
        let (_, array) = fields.remove(at);
        Ok((fields, elements(codec, array)?))
    }

    #[test]
    fn one_pass_finds_what_two_find() {
        let json = br#" {"to": "a", "m" : [ {"x":"]"} ,[1,[2]], 3 ] ,"e":{"m":[]}} "#;
        for codec in Codec::AT_REST {
            let mut map = Vec::new();
            match codec {
                Codec::Json => map.extend_from_slice(json),
                _ => Transcoder::new().transcode(Codec::Json, json, codec, &mut map).unwrap(),
            }
            let parts = fields_beside(codec, &map, "m").unwrap();
            assert_eq!((parts.0.len(), parts.1.len()), (2, 3));
            assert_eq!(Ok(parts), layered(codec, &map));
        }
    }

    #[test]
    fn what_two_passes_refuse_one_refuses_too() {
        for depth in 1..40 {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let text = format!(r#"{{"a":0,"m":[1,{open}{close}]}}"#);
            let text = text.as_bytes();
            let is_deep = layered(Codec::Json, text).is_err();
            assert_eq!(fields_beside(Codec::Json, text, "m").is_err(), is_deep, "{depth}");
        }
        for text in [
            r#"{"m":[1],"m":[2]}"#,
            r#"{"a":1,"m":[1],"a":2}"#,
            r#"{"m":[1"#,
            r#"{"m":[1]} x"#,
            r#"{"m":{}}"#,
            r#"{"a":[1]}"#,
            r#"[1]"#,
        ] {
            assert!(fields_beside(Codec::Json, text.as_bytes(), "m").is_err(), "{text}");
        }
    }
}
