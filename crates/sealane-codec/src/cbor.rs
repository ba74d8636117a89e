//! The heads of CBOR (RFC 8949 §3), read in every well-formed form and written in the
//! deterministic one (§4.2.1).

use crate::float;
use crate::head::{BinaryFormat, ItemHead, ItemLength, finite, unsigned};
use crate::input::DatumInput;
use crate::{Codec, CodecError};

/// CBOR without tags, undefined and other simple values.
pub(crate) struct Cbor;

impl BinaryFormat for Cbor {
    const CODEC: Codec = Codec::Cbor;

    #[inline]
    fn head(&mut self, input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
        head(input)
    }
}

pub(crate) mod major {
    pub(crate) const UNSIGNED: u8 = 0;
    pub(crate) const NEGATIVE: u8 = 1;
    pub(crate) const BYTES: u8 = 2;
    pub(crate) const TEXT: u8 = 3;
    pub(crate) const ARRAY: u8 = 4;
    pub(crate) const MAP: u8 = 5;
    pub(crate) const TAG: u8 = 6;
}

const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const F16: u8 = 0xf9;
const F32: u8 = 0xfa;
const F64: u8 = 0xfb;
const BREAK: u8 = 0xff;

#[inline]
pub(crate) fn head(input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
    let at = input.at();
    let initial = input.byte()?;
    Ok(match initial >> 5 {
        major::UNSIGNED => unsigned(definite(initial, input, at)?),
        major::NEGATIVE => ItemHead::I64(negative(definite(initial, input, at)?, at)?),
        major::BYTES => ItemHead::Bytes(length(initial, input, at)?),
        major::TEXT => ItemHead::Text(length(initial, input, at)?),
        major::ARRAY => ItemHead::Array(length(initial, input, at)?),
        major::MAP => ItemHead::Map(length(initial, input, at)?),
        major::TAG => {
            definite(initial, input, at)?;
            return Err(CodecError::Extension { at });
        }
        _ => return simple(initial, input, at),
    })
}

/// Major type 7.
fn simple(initial: u8, input: &mut DatumInput<'_>, at: usize) -> Result<ItemHead, CodecError> {
    match initial {
        FALSE => Ok(ItemHead::Bool(false)),
        TRUE => Ok(ItemHead::Bool(true)),
        NULL => Ok(ItemHead::Null),
        F16 => finite(float::from_half(u16::from_be_bytes(input.array()?)), at),
        F32 => finite(f32::from_be_bytes(input.array()?).into(), at),
        F64 => finite(f64::from_be_bytes(input.array()?), at),
        BREAK => Ok(ItemHead::Break),
        // Undefined and the unassigned simple values of one byte.
        0xe0..=0xf3 | 0xf7 => Err(CodecError::Extension { at }),
        // Values below 32 have one byte only (§3.3).
        0xf8 if input.byte()? >= 32 => Err(CodecError::Extension { at }),
        _ => Err(CodecError::Malformed { codec: Codec::Cbor, at }),
    }
}

/// The argument of an item that cannot be of indefinite length.
#[inline]
fn definite(initial: u8, input: &mut DatumInput<'_>, at: usize) -> Result<u64, CodecError> {
    length(initial, input, at)?.ok_or(CodecError::Malformed { codec: Codec::Cbor, at })
}

#[inline]
fn length(initial: u8, input: &mut DatumInput<'_>, at: usize) -> Result<ItemLength, CodecError> {
    Ok(match initial & 0x1f {
        small @ 0..=23 => Some(small.into()),
        24 => Some(input.byte()?.into()),
        25 => Some(u16::from_be_bytes(input.array()?).into()),
        26 => Some(u32::from_be_bytes(input.array()?).into()),
        27 => Some(u64::from_be_bytes(input.array()?)),
        31 => None,
        _ => return Err(CodecError::Malformed { codec: Codec::Cbor, at }),
    })
}

fn negative(argument: u64, at: usize) -> Result<i64, CodecError> {
    let n = i64::try_from(argument).map_err(|_| CodecError::IntegerRange { at })?;
    Ok(-1 - n)
}

/// The shortest head that holds `argument`.
#[inline]
pub(crate) fn write_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let initial = major << 5;
    if argument < 24 {
        out.push(initial | argument as u8);
    } else if let Ok(n) = u8::try_from(argument) {
        out.extend_from_slice(&[initial | 24, n]);
    } else if let Ok(n) = u16::try_from(argument) {
        put(out, initial | 25, n.to_be_bytes());
    } else if let Ok(n) = u32::try_from(argument) {
        put(out, initial | 26, n.to_be_bytes());
    } else {
        put(out, initial | 27, argument.to_be_bytes());
    }
}

pub(crate) fn write_negative(out: &mut Vec<u8>, n: i64) {
    write_head(out, major::NEGATIVE, !n as u64);
}

/// The shortest of half, single and double that keeps the value.
pub(crate) fn write_f64(out: &mut Vec<u8>, n: f64) {
    if let Some(half) = float::to_half(n) {
        put(out, F16, half.to_be_bytes());
    } else if f64::from(n as f32) == n {
        put(out, F32, (n as f32).to_be_bytes());
    } else {
        put(out, F64, n.to_be_bytes());
    }
}

/// How many bytes [`write_f64`] writes.
pub(crate) fn f64_bytes(n: f64) -> usize {
    match float::to_half(n) {
        Some(_) => 3,
        None if f64::from(n as f32) == n => 5,
        None => 9,
    }
}

pub(crate) fn write_bool(out: &mut Vec<u8>, bool: bool) {
    out.push(if bool { TRUE } else { FALSE });
}

pub(crate) fn write_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

#[inline]
pub(crate) fn write_string(out: &mut Vec<u8>, major: u8, bytes: &[u8]) {
    write_head(out, major, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[inline]
fn put<const N: usize>(out: &mut Vec<u8>, initial: u8, payload: [u8; N]) {
    out.push(initial);
    out.extend_from_slice(&payload);
}
