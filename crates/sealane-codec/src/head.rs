use crate::input::DatumInput;
use crate::tape::{Tape, TapeSpan};
use crate::{Codec, CodecError};

/// The head of an item of a binary codec.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ItemHead {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Text(ItemLength),
    Bytes(ItemLength),
    Array(ItemLength),
    Map(ItemLength),
    /// The structure of a record, whose values follow.
    Record(usize),
    /// The end of something of open length.
    Break,
}

/// A declared number of bytes, elements or fields. `None` is CBOR's indefinite length.
pub(crate) type ItemLength = Option<u64>;

/// How a binary codec writes the heads of its items.
pub(crate) trait BinaryFormat {
    /// For errors.
    const CODEC: Codec;

    /// Reads one head. Refuses what is outside the data model.
    fn head(&mut self, input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError>;

    /// The number of keys of a record that [`BinaryFormat::head`] told of, and what reads them.
    fn record(&mut self, _index: usize, _tape: &mut Tape, at: usize) -> Result<usize, CodecError> {
        Err(CodecError::UnknownRecord { at })
    }

    /// One key of a record. Its text has been put on the tape by [`BinaryFormat::record`].
    fn record_key(&self, _index: usize, _nth: usize) -> Option<TapeSpan> {
        None
    }
}

/// Integers that fit `i64` have one form in the data model.
#[inline]
pub(crate) fn unsigned(n: u64) -> ItemHead {
    i64::try_from(n).map_or(ItemHead::U64(n), ItemHead::I64)
}

/// The data model has no float that is not finite.
#[inline]
pub(crate) fn finite(n: f64, at: usize) -> Result<ItemHead, CodecError> {
    if n.is_finite() { Ok(ItemHead::F64(n)) } else { Err(CodecError::NotFinite { at }) }
}
