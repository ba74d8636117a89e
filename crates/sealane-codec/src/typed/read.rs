use std::borrow::Cow;

use serde::de::value::CowStrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use super::{RAW, TypedError};
use crate::head::ItemHead;
use crate::view::{elements, fields, kind, read_bool, read_bytes, read_text, read_u64, scalar};
use crate::{Codec, CodecError, DatumKind, MapField};

/// Reads a datum of a peer that may be newer. An optional field may be null.
///
/// # Errors
/// [`TypedError`] where it is no `T`.
pub fn read<'de, T: Deserialize<'de>>(codec: Codec, datum: &'de [u8]) -> Result<T, TypedError> {
    T::deserialize(TypedReader { codec, datum, is_strict: false })
}

/// Reads a request. A field is there or not: null does not stand for an optional one.
///
/// # Errors
/// As [`read`].
pub fn read_request<'de, T: Deserialize<'de>>(
    codec: Codec,
    datum: &'de [u8],
) -> Result<T, TypedError> {
    T::deserialize(TypedReader { codec, datum, is_strict: true })
}

/// Reads a map whose fields were found already, as [`read`] does.
///
/// # Errors
/// As [`read`].
pub fn read_fields<'de, T: Deserialize<'de>>(
    codec: Codec,
    fields: &[MapField<'de>],
) -> Result<T, TypedError> {
    T::deserialize(FieldsReader { codec, fields, is_strict: false })
}

/// One datum.
#[derive(Clone, Copy)]
struct TypedReader<'de> {
    codec: Codec,
    datum: &'de [u8],
    is_strict: bool,
}

impl<'de> TypedReader<'de> {
    fn map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        let Self { codec, datum, is_strict } = self;
        let all = fields(codec, datum)?;
        visitor.visit_map(FieldsReader { codec, fields: &all, is_strict })
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match read_text(self.codec, self.datum)? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }
}

impl<'de> Deserializer<'de> for TypedReader<'de> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        let Self { codec, datum, .. } = self;
        match kind(codec, datum).ok_or(CodecError::Malformed { codec, at: 0 })? {
            DatumKind::Null => visitor.visit_unit(),
            DatumKind::Bool => self.deserialize_bool(visitor),
            DatumKind::Text => self.text(visitor),
            DatumKind::Bytes => self.deserialize_bytes(visitor),
            DatumKind::Array => self.deserialize_seq(visitor),
            DatumKind::Map => self.map(visitor),
            expected @ (DatumKind::Int | DatumKind::Float) => match read_u64(codec, datum) {
                Ok(n) => visitor.visit_u64(n),
                Err(_) => match scalar(codec, datum, expected)? {
                    ItemHead::I64(n) => visitor.visit_i64(n),
                    ItemHead::F64(n) => visitor.visit_f64(n),
                    _ => Err(CodecError::WrongKind { expected }.into()),
                },
            },
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_bool(read_bool(self.codec, self.datum)?)
    }

    /// A count that a peer has and this type does not hold is the largest that it does.
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        let n = read_u64(self.codec, self.datum)?;
        visitor.visit_u32(u32::try_from(n).unwrap_or(u32::MAX))
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_u64(read_u64(self.codec, self.datum)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.text(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match read_bytes(self.codec, self.datum)? {
            Cow::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
            Cow::Owned(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        if !self.is_strict && kind(self.codec, self.datum) == Some(DatumKind::Null) {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        if name == RAW {
            return visitor.visit_borrowed_bytes(self.datum);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        let elements = elements(self.codec, self.datum)?.into_iter();
        visitor.visit_seq(TypedElements { elements, of: self })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        let Self { codec, datum, is_strict } = self;
        if kind(codec, datum) == Some(DatumKind::Text) {
            let variant: CowStrDeserializer<'_, TypedError> =
                read_text(codec, datum)?.into_deserializer();
            return visitor.visit_enum(variant).map_err(|error| match error {
                TypedError::Unknown(_) => {
                    de::Error::custom(format_args!("is none of {}", variants.join(", ")))
                }
                error => error,
            });
        }
        match fields(codec, datum)?.as_slice() {
            [(name, value)] => {
                let of = TypedReader { codec, datum: value, is_strict };
                visitor.visit_enum(Variant { name: name.clone(), of })
            }
            _ => Err(de::Error::custom("is not a map of exactly one field")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 f32 f64 char byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

/// The fields of a map, one after the other.
#[derive(Clone, Copy)]
struct FieldsReader<'f, 'de> {
    codec: Codec,
    /// Those that have not been read to their end.
    fields: &'f [MapField<'de>],
    is_strict: bool,
}

impl<'de> Deserializer<'de> for FieldsReader<'_, 'de> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for FieldsReader<'_, 'de> {
    type Error = TypedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TypedError> {
        let Some((key, _)) = self.fields.first() else { return Ok(None) };
        match key {
            Cow::Borrowed(key) => seed.deserialize(de::value::BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => seed.deserialize(key.as_str().into_deserializer()),
        }
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, TypedError> {
        let Self { codec, is_strict, .. } = *self;
        let Some(((key, datum), rest)) = self.fields.split_first() else {
            return Err(de::Error::custom("has no more fields"));
        };
        self.fields = rest;
        let value = seed.deserialize(TypedReader { codec, datum, is_strict });
        value.map_err(|error: TypedError| error.within(key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}

/// The elements of an array.
struct TypedElements<'de> {
    elements: std::vec::IntoIter<&'de [u8]>,
    of: TypedReader<'de>,
}

impl<'de> SeqAccess<'de> for TypedElements<'de> {
    type Error = TypedError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, TypedError> {
        let next = self.elements.next();
        next.map(|datum| seed.deserialize(TypedReader { datum, ..self.of })).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}

/// A variant of an enum: the one field of a map, whose key tells which.
struct Variant<'de> {
    name: Cow<'de, str>,
    of: TypedReader<'de>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = TypedError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), TypedError> {
        let variant = seed.deserialize(CowStrDeserializer::<TypedError>::new(self.name.clone()))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = TypedError;

    fn unit_variant(self) -> Result<(), TypedError> {
        Err(de::Error::custom("is a map"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, TypedError> {
        seed.deserialize(self.of).map_err(|error| error.within(&self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TypedError> {
        self.of.deserialize_seq(visitor).map_err(|error| error.within(&self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.of.map(visitor).map_err(|error| error.within(&self.name))
    }
}
