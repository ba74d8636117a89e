//! MessagePack and CBOR onto the tape: their heads differ, what follows is alike.

use crate::CodecError;
use crate::head::{BinaryFormat, ItemHead, ItemLength};
use crate::input::DatumInput;
use crate::limits::MAX_DEPTH;
use crate::tape::{Tape, TapeSpan, TapeToken};

/// Reads the whole of `bytes` as one datum.
pub(crate) fn read<F: BinaryFormat>(
    format: &mut F,
    bytes: &[u8],
    tape: &mut Tape,
) -> Result<(), CodecError> {
    tape.start(bytes.len())?;
    let mut reader = BinaryReader { format, input: DatumInput::new(bytes), bytes, tape };
    reader.value(0)?;
    reader.input.finish()
}

/// Steps over one item, which stands inside `level` containers. It checks that the item is whole
/// and not too deep; what its text says is left to [`read`].
pub(crate) fn skip<F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'_>,
    level: usize,
) -> Result<(), CodecError> {
    let at = input.at();
    match format.head(input)? {
        ItemHead::Text(len) | ItemHead::Bytes(len) => skip_string(format, input, len, at),
        ItemHead::Array(len) => skip_items(format, input, len, at, level, 1),
        ItemHead::Map(len) => skip_items(format, input, len, at, level, 2),
        ItemHead::Record(_) => Err(CodecError::UnknownRecord { at }),
        ItemHead::Break => Err(CodecError::Malformed { codec: F::CODEC, at }),
        _ => Ok(()),
    }
}

/// Reads the head of a map key, which must be text.
#[inline]
pub(crate) fn text_key<F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'_>,
) -> Result<ItemLength, CodecError> {
    let at = input.at();
    match format.head(input)? {
        ItemHead::Text(len) => Ok(len),
        ItemHead::Break => Err(CodecError::Malformed { codec: F::CODEC, at }),
        _ => Err(CodecError::KeyNotText { at }),
    }
}

/// Whether another element or field of a container follows, of which `count` have been read.
#[inline]
pub(crate) fn more(input: &mut DatumInput<'_>, len: ItemLength, count: u64) -> bool {
    match len {
        Some(len) => count < len,
        None => !input.eat(0xff),
    }
}

/// Refuses a container that claims more items than there are bytes.
#[inline]
pub(crate) fn plausible(
    input: &DatumInput<'_>,
    len: ItemLength,
    width: u64,
    at: usize,
) -> Result<(), CodecError> {
    match len {
        Some(len) if len > input.left() as u64 / width => Err(CodecError::Truncated { at }),
        _ => Ok(()),
    }
}

fn skip_items<F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'_>,
    len: ItemLength,
    at: usize,
    level: usize,
    width: u64,
) -> Result<(), CodecError> {
    if level >= MAX_DEPTH {
        return Err(CodecError::TooDeep { at });
    }
    plausible(input, len, width, at)?;
    let mut count = 0;
    while more(input, len, count) {
        for _ in 0..width {
            skip(format, input, level + 1)?;
        }
        count += 1;
    }
    Ok(())
}

fn skip_string<F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'_>,
    len: ItemLength,
    at: usize,
) -> Result<(), CodecError> {
    if let Some(len) = len {
        return take(input, len, at).map(drop);
    }
    // The chunks of a string have its own type; `read` checks that, here any string will do.
    while !input.eat(0xff) {
        let at = input.at();
        match format.head(input)? {
            ItemHead::Text(Some(len)) | ItemHead::Bytes(Some(len)) => take(input, len, at)?,
            _ => return Err(CodecError::Malformed { codec: F::CODEC, at }),
        };
    }
    Ok(())
}

#[inline]
pub(crate) fn take<'a>(
    input: &mut DatumInput<'a>,
    len: u64,
    at: usize,
) -> Result<&'a [u8], CodecError> {
    let len = usize::try_from(len).map_err(|_| CodecError::Truncated { at })?;
    input.take(len).map_err(|_| CodecError::Truncated { at })
}

/// Most keys and many values are short and plain, which is told without a call.
#[inline]
fn utf8(part: &[u8], at: usize) -> Result<(), CodecError> {
    if part.is_ascii() {
        return Ok(());
    }
    simdutf8::basic::from_utf8(part).map(drop).map_err(|_| CodecError::NotUnicode { at })
}

struct BinaryReader<'a, F> {
    format: &'a mut F,
    input: DatumInput<'a>,
    bytes: &'a [u8],
    tape: &'a mut Tape,
}

impl<F: BinaryFormat> BinaryReader<'_, F> {
    /// Reads a value that stands inside `level` containers.
    fn value(&mut self, level: usize) -> Result<(), CodecError> {
        let at = self.input.at();
        let token = match self.format.head(&mut self.input)? {
            ItemHead::Null => TapeToken::Null,
            ItemHead::Bool(bool) => TapeToken::Bool(bool),
            ItemHead::I64(n) => TapeToken::I64(n),
            ItemHead::U64(n) => TapeToken::U64(n),
            ItemHead::F64(n) => TapeToken::F64(n),
            ItemHead::Text(len) => TapeToken::Text(self.string(len, at, true)?),
            ItemHead::Bytes(len) => TapeToken::Bytes(self.string(len, at, false)?),
            ItemHead::Array(len) => return self.array(len, at, level),
            ItemHead::Map(len) => return self.map(len, at, level),
            ItemHead::Record(index) => return self.record(index, at, level),
            ItemHead::Break => return Err(CodecError::Malformed { codec: F::CODEC, at }),
        };
        self.tape.push(token, at)
    }

    fn array(&mut self, len: ItemLength, at: usize, level: usize) -> Result<(), CodecError> {
        plausible(&self.input, len, 1, at)?;
        let open = self.tape.open(level + 1, at)?;
        let mut count = 0;
        while more(&mut self.input, len, count) {
            self.value(level + 1)?;
            count += 1;
        }
        self.tape.close_array(&open, count as usize);
        Ok(())
    }

    fn map(&mut self, len: ItemLength, at: usize, level: usize) -> Result<(), CodecError> {
        plausible(&self.input, len, 2, at)?;
        let open = self.tape.open(level + 1, at)?;
        let mut count = 0;
        while more(&mut self.input, len, count) {
            let at = self.input.at();
            let len = text_key(self.format, &mut self.input)?;
            let key = self.string(len, at, true)?;
            self.tape.push_key(key, at)?;
            self.value(level + 1)?;
            count += 1;
        }
        self.tape.close_map(&open, self.bytes, self.input.at())
    }

    fn record(&mut self, index: usize, at: usize, level: usize) -> Result<(), CodecError> {
        let len = self.format.record(index, self.tape, at)?;
        let open = self.tape.open(level + 1, at)?;
        for nth in 0..len {
            let key = self.format.record_key(index, nth).ok_or(CodecError::UnknownRecord { at })?;
            self.tape.push_key(key, at)?;
            self.value(level + 1)?;
        }
        self.tape.close_map(&open, self.bytes, self.input.at())
    }

    #[inline]
    fn string(
        &mut self,
        len: ItemLength,
        at: usize,
        is_text: bool,
    ) -> Result<TapeSpan, CodecError> {
        let Some(len) = len else {
            return self.chunks(at, is_text);
        };
        let part = take(&mut self.input, len, at)?;
        if is_text {
            utf8(part, at)?;
        }
        let end = self.input.at();
        Ok(Tape::span(end - part.len()..end))
    }

    /// A string of indefinite length: definite chunks of its own type, each of whole characters.
    #[cold]
    fn chunks(&mut self, start: usize, is_text: bool) -> Result<TapeSpan, CodecError> {
        let own_start = self.tape.own_len();
        while !self.input.eat(0xff) {
            let at = self.input.at();
            let len = match self.format.head(&mut self.input)? {
                ItemHead::Text(Some(len)) if is_text => len,
                ItemHead::Bytes(Some(len)) if !is_text => len,
                _ => return Err(CodecError::Malformed { codec: F::CODEC, at }),
            };
            let part = take(&mut self.input, len, at)?;
            if is_text {
                utf8(part, at)?;
            }
            self.tape.own(part, start)?;
        }
        Ok(self.tape.own_since(own_start))
    }
}
