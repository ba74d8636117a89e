//! The one form of CBOR that events have (RFC 8949 §4.2.1), also where nobody knows the keys.

use super::EventError;
use crate::binary::{plausible, take};
use crate::cbor;
use crate::head::ItemHead;
use crate::input::DatumInput;
use crate::limits::MAX_DEPTH;
use crate::{Codec, CodecError};

/// A head of definite length, and the shortest that there is.
pub(super) fn head(input: &mut DatumInput<'_>) -> Result<ItemHead, EventError> {
    let at = input.at();
    let head = match cbor::head(input)? {
        ItemHead::I64(n) if n >= 0 => ItemHead::U64(n.unsigned_abs()),
        head => head,
    };
    let shortest = match head {
        ItemHead::Null | ItemHead::Bool(_) => Some(1),
        ItemHead::U64(n) => Some(head_bytes(n)),
        // CBOR writes a negative n as -1 - n.
        ItemHead::I64(n) => Some(head_bytes(n.unsigned_abs() - 1)),
        ItemHead::F64(n) => Some(cbor::f64_bytes(n)),
        ItemHead::Text(length)
        | ItemHead::Bytes(length)
        | ItemHead::Array(length)
        | ItemHead::Map(length) => length.map(head_bytes),
        ItemHead::Record(_) | ItemHead::Break => {
            return Err(CodecError::Malformed { codec: Codec::Cbor, at }.into());
        }
    };
    if shortest == Some(input.since(at).len()) {
        Ok(head)
    } else {
        Err(EventError::NotDeterministic { at })
    }
}

/// The text behind its head.
pub(super) fn text<'a>(input: &mut DatumInput<'a>, length: u64) -> Result<&'a str, EventError> {
    let at = input.at();
    let bytes = take(input, length, at)?;
    Ok(simdutf8::basic::from_utf8(bytes).map_err(|_| CodecError::NotUnicode { at })?)
}

/// Steps over one item, which stands inside `level` containers, and checks the form of all of it.
pub(super) fn skip(input: &mut DatumInput<'_>, level: usize) -> Result<(), EventError> {
    let at = input.at();
    match head(input)? {
        ItemHead::Text(Some(length)) => text(input, length).map(drop),
        ItemHead::Bytes(Some(length)) => Ok(take(input, length, at).map(drop)?),
        ItemHead::Array(Some(count)) => {
            open(input, count, 1, level, at)?;
            (0..count).try_for_each(|_| skip(input, level + 1))
        }
        ItemHead::Map(Some(count)) => {
            open(input, count, 2, level, at)?;
            skip_fields(input, count, level + 1)
        }
        _ => Ok(()),
    }
}

/// Refuses a container that is too deep, or claims more items than there are bytes.
fn open(
    input: &DatumInput<'_>,
    count: u64,
    width: u64,
    level: usize,
    at: usize,
) -> Result<(), EventError> {
    if level >= MAX_DEPTH {
        return Err(CodecError::TooDeep { at }.into());
    }
    Ok(plausible(input, Some(count), width, at)?)
}

/// The fields of a map, whose keys ascend by their bytes.
fn skip_fields(input: &mut DatumInput<'_>, count: u64, level: usize) -> Result<(), EventError> {
    let mut last: Option<&[u8]> = None;
    for _ in 0..count {
        let at = input.at();
        skip(input, level)?;
        let key = input.since(at);
        if last.is_some_and(|last| last >= key) {
            return Err(EventError::NotDeterministic { at });
        }
        last = Some(key);
        skip(input, level)?;
    }
    Ok(())
}

/// Bytes of the shortest head with this argument.
fn head_bytes(argument: u64) -> usize {
    match argument {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}
