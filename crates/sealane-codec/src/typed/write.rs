use serde::Serialize;
use serde::de::value::Error;
use serde::ser::{self, Impossible, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use super::RAW;
use crate::DatumWriter;

/// Writes one value as the datum that its type's `Serialize` describes.
///
/// Types of the data model alone are written whole. A value that has no place in it, which only a
/// `Serialize` by hand can make, ends the datum where it stands; debug builds assert that.
pub fn write<T: Serialize + ?Sized>(value: &T, writer: &mut DatumWriter<'_>) {
    let written = value.serialize(TypedWriter { writer, is_raw: false });
    debug_assert!(written.is_ok(), "no value of the data model: {written:?}");
}

/// Writes one datum.
struct TypedWriter<'w, 'a> {
    writer: &'w mut DatumWriter<'a>,
    /// Whether the bytes that come are a datum of the writer's codec.
    is_raw: bool,
}

/// Writes what stands in a map or an array.
struct TypedItems<'w, 'a> {
    writer: &'w mut DatumWriter<'a>,
    /// Where the head stands, which is written anew when the fields have been counted.
    open: Option<usize>,
    fields: usize,
}

impl<'w, 'a> TypedItems<'w, 'a> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(TypedWriter { writer: self.writer, is_raw: false })
    }

    fn finish(self) -> Result<(), Error> {
        match self.open {
            Some(head) => self.writer.end_uncounted(head, self.fields),
            None => self.writer.end(),
        }
        Ok(())
    }
}

impl<'w, 'a> TypedWriter<'w, 'a> {
    fn array(self, len: usize) -> TypedItems<'w, 'a> {
        self.writer.array(len);
        TypedItems { writer: self.writer, open: None, fields: 0 }
    }

    fn map(self, len: Option<usize>) -> TypedItems<'w, 'a> {
        let open = match len {
            Some(len) => {
                self.writer.map(len);
                None
            }
            None => Some(self.writer.uncounted_map()),
        };
        TypedItems { writer: self.writer, open, fields: 0 }
    }
}

/// The error for a kind of value that no type of the protocol has.
fn foreign<T>() -> Result<T, Error> {
    Err(ser::Error::custom("a kind of value that has no form here"))
}

/// Numbers that are written as wider ones.
macro_rules! widened {
    ($($narrow:ident($type:ty) is $wide:ident;)*) => {$(
        fn $narrow(self, n: $type) -> Result<(), Error> {
            self.$wide(n.into())
        }
    )*};
}

impl<'w, 'a> Serializer for TypedWriter<'w, 'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = TypedItems<'w, 'a>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = TypedItems<'w, 'a>;
    type SerializeStruct = TypedItems<'w, 'a>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_bool(self, bool: bool) -> Result<(), Error> {
        self.writer.bool(bool);
        Ok(())
    }

    widened! {
        serialize_i8(i8) is serialize_i64;
        serialize_i16(i16) is serialize_i64;
        serialize_i32(i32) is serialize_i64;
        serialize_u8(u8) is serialize_u64;
        serialize_u16(u16) is serialize_u64;
        serialize_u32(u32) is serialize_u64;
        serialize_f32(f32) is serialize_f64;
    }

    fn serialize_i64(self, n: i64) -> Result<(), Error> {
        self.writer.i64(n);
        Ok(())
    }

    fn serialize_u64(self, n: u64) -> Result<(), Error> {
        self.writer.u64(n);
        Ok(())
    }

    fn serialize_f64(self, n: f64) -> Result<(), Error> {
        self.writer.f64(n);
        Ok(())
    }

    fn serialize_char(self, one: char) -> Result<(), Error> {
        self.serialize_str(one.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.writer.text(text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        if self.is_raw {
            self.writer.raw(bytes);
        } else {
            self.writer.bytes(bytes);
        }
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.writer.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(TypedWriter { is_raw: name == RAW, ..self })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut map = self.map(Some(1));
        map.serialize_entry(variant, value)?;
        map.finish()
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<TypedItems<'w, 'a>, Error> {
        match len {
            Some(len) => Ok(self.array(len)),
            None => foreign(),
        }
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        foreign()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        foreign()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        foreign()
    }

    fn serialize_map(self, len: Option<usize>) -> Result<TypedItems<'w, 'a>, Error> {
        Ok(self.map(len))
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<TypedItems<'w, 'a>, Error> {
        Ok(self.map(Some(len)))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        foreign()
    }
}

impl SerializeSeq for TypedItems<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

impl SerializeMap for TypedItems<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.fields += 1;
        self.item(key)?;
        self.writer.end_key();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

impl SerializeStruct for TypedItems<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.fields += 1;
        self.writer.key(key);
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}
