//! The heads of MessagePack (the specification's "Formats" table), read and written.

use rmp::Marker;

use crate::head::{BinaryFormat, ItemHead, finite, unsigned};
use crate::input::DatumInput;
use crate::{Codec, CodecError};

/// MessagePack as the specification has it.
pub(crate) struct MsgPack;

impl BinaryFormat for MsgPack {
    const CODEC: Codec = Codec::MsgPack;

    #[inline]
    fn head(&mut self, input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
        head(input)
    }
}

#[inline]
pub(crate) fn head(input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
    let at = input.at();
    Ok(match Marker::from_u8(input.byte()?) {
        Marker::FixPos(n) => ItemHead::I64(n.into()),
        Marker::FixNeg(n) => ItemHead::I64(n.into()),
        Marker::FixStr(len) => ItemHead::Text(Some(len.into())),
        Marker::FixMap(len) => ItemHead::Map(Some(len.into())),
        Marker::FixArray(len) => ItemHead::Array(Some(len.into())),
        Marker::Null => ItemHead::Null,
        Marker::False => ItemHead::Bool(false),
        Marker::True => ItemHead::Bool(true),
        Marker::U8 => ItemHead::I64(input.byte()?.into()),
        Marker::U16 => ItemHead::I64(u16::from_be_bytes(input.array()?).into()),
        Marker::U32 => ItemHead::I64(u32::from_be_bytes(input.array()?).into()),
        Marker::U64 => unsigned(u64::from_be_bytes(input.array()?)),
        Marker::I8 => ItemHead::I64(i8::from_be_bytes(input.array()?).into()),
        Marker::I16 => ItemHead::I64(i16::from_be_bytes(input.array()?).into()),
        Marker::I32 => ItemHead::I64(i32::from_be_bytes(input.array()?).into()),
        Marker::I64 => ItemHead::I64(i64::from_be_bytes(input.array()?)),
        Marker::F32 => finite(f32::from_be_bytes(input.array()?).into(), at)?,
        Marker::F64 => finite(f64::from_be_bytes(input.array()?), at)?,
        Marker::Str8 => ItemHead::Text(Some(input.byte()?.into())),
        Marker::Str16 => ItemHead::Text(Some(u16::from_be_bytes(input.array()?).into())),
        Marker::Str32 => ItemHead::Text(Some(u32::from_be_bytes(input.array()?).into())),
        Marker::Bin8 => ItemHead::Bytes(Some(input.byte()?.into())),
        Marker::Bin16 => ItemHead::Bytes(Some(u16::from_be_bytes(input.array()?).into())),
        Marker::Bin32 => ItemHead::Bytes(Some(u32::from_be_bytes(input.array()?).into())),
        Marker::Array16 => ItemHead::Array(Some(u16::from_be_bytes(input.array()?).into())),
        Marker::Array32 => ItemHead::Array(Some(u32::from_be_bytes(input.array()?).into())),
        Marker::Map16 => ItemHead::Map(Some(u16::from_be_bytes(input.array()?).into())),
        Marker::Map32 => ItemHead::Map(Some(u32::from_be_bytes(input.array()?).into())),
        Marker::FixExt1
        | Marker::FixExt2
        | Marker::FixExt4
        | Marker::FixExt8
        | Marker::FixExt16
        | Marker::Ext8
        | Marker::Ext16
        | Marker::Ext32 => return Err(CodecError::Extension { at }),
        Marker::Reserved => return Err(CodecError::Malformed { codec: Codec::MsgPack, at }),
    })
}

/// Writes an integer from 0 up in its shortest form; those up to `fix_max` take one byte.
#[inline]
pub(crate) fn write_u64(out: &mut Vec<u8>, n: u64, fix_max: u64) {
    if n <= fix_max {
        out.push(n as u8);
    } else if let Ok(n) = u8::try_from(n) {
        out.extend_from_slice(&[Marker::U8.to_u8(), n]);
    } else if let Ok(n) = u16::try_from(n) {
        put(out, Marker::U16, n.to_be_bytes());
    } else if let Ok(n) = u32::try_from(n) {
        put(out, Marker::U32, n.to_be_bytes());
    } else {
        put(out, Marker::U64, n.to_be_bytes());
    }
}

/// Writes a negative integer in its shortest form.
pub(crate) fn write_negative(out: &mut Vec<u8>, n: i64) {
    if n >= -32 {
        out.push(n as u8);
    } else if let Ok(n) = i8::try_from(n) {
        put(out, Marker::I8, n.to_be_bytes());
    } else if let Ok(n) = i16::try_from(n) {
        put(out, Marker::I16, n.to_be_bytes());
    } else if let Ok(n) = i32::try_from(n) {
        put(out, Marker::I32, n.to_be_bytes());
    } else {
        put(out, Marker::I64, n.to_be_bytes());
    }
}

/// Always eight bytes, so that a float stays one and keeps its value.
pub(crate) fn write_f64(out: &mut Vec<u8>, n: f64) {
    put(out, Marker::F64, n.to_be_bytes());
}

#[inline]
pub(crate) fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..=31 => out.push(Marker::FixStr(len as u8).to_u8()),
        len @ 32..=0xff => out.extend_from_slice(&[Marker::Str8.to_u8(), len as u8]),
        len => wide(out, Marker::Str16, Marker::Str32, len),
    }
    out.extend_from_slice(text);
}

pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        len @ 0..=0xff => out.extend_from_slice(&[Marker::Bin8.to_u8(), len as u8]),
        len => wide(out, Marker::Bin16, Marker::Bin32, len),
    }
    out.extend_from_slice(bytes);
}

pub(crate) fn write_array(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => out.push(Marker::FixArray(len as u8).to_u8()),
        _ => wide(out, Marker::Array16, Marker::Array32, len),
    }
}

#[inline]
pub(crate) fn write_map(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=15 => out.push(Marker::FixMap(len as u8).to_u8()),
        _ => wide(out, Marker::Map16, Marker::Map32, len),
    }
}

#[inline]
fn put<const N: usize>(out: &mut Vec<u8>, marker: Marker, payload: [u8; N]) {
    out.push(marker.to_u8());
    out.extend_from_slice(&payload);
}

/// Lengths beyond 32 bits cannot come from an input, nor from memory that anyone has.
fn wide(out: &mut Vec<u8>, short: Marker, long: Marker, len: usize) {
    match u16::try_from(len) {
        Ok(len) => put(out, short, len.to_be_bytes()),
        Err(_) => put(out, long, (len as u32).to_be_bytes()),
    }
}
