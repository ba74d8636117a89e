//! The one flat form between any two codecs.

use std::ops::Range;

use crate::limits::{MAX_DEPTH, MAX_TAPE_KEPT, MAX_TAPE_RESERVED, MAX_VALUES};
use sealane_message::Value;

use crate::writer::DatumWriter;
use crate::{CodecError, DatumKind};

/// A part of the input, or of the tape's own text where the input does not hold it verbatim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TapeSpan {
    /// Offset; the top bit tells that it is one into the tape's own text.
    start: u32,
    len: u32,
}

const OWN: u32 = 1 << 31;

/// The number of values (or keys) in a container, and the index after its last token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TapeExtent {
    len: u32,
    end: u32,
}

impl TapeExtent {
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TapeToken {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Text(TapeSpan),
    Bytes(TapeSpan),
    Array(TapeExtent),
    Map(TapeExtent),
}

/// A container whose end has not been read.
#[must_use]
pub(crate) struct OpenContainer {
    index: usize,
    keys: usize,
}

/// A datum as tokens in reading order. Reused from call to call, it stops allocating.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    tokens: Vec<TapeToken>,
    /// The deepest nesting so far.
    depth: usize,
    own: Vec<u8>,
    /// The keys of all maps that are open, innermost last.
    keys: Vec<TapeSpan>,
    /// Token indices of the keys of all maps that are being written in order, innermost last.
    order: Vec<u32>,
}

/// Up to this many keys, comparing each with each is faster than sorting.
const PAIRWISE_KEYS: usize = 12;

impl Tape {
    /// One for a single datum of that many bytes, which saves growing step by step. What the datum
    /// claims of itself plays no part.
    pub(crate) fn for_input(bytes: usize) -> Self {
        const KEYS: usize = 16;
        Tape {
            tokens: Vec::with_capacity((bytes / 4 + 2).min(MAX_TAPE_RESERVED)),
            keys: Vec::with_capacity(KEYS.min(bytes / 4)),
            ..Tape::default()
        }
    }

    /// Forgets the last datum and makes sure that the next one can be addressed.
    pub(crate) fn start(&mut self, input_len: usize) -> Result<(), CodecError> {
        self.tokens.clear();
        self.depth = 0;
        self.own.clear();
        self.keys.clear();
        if input_len < OWN as usize { Ok(()) } else { Err(CodecError::TooLarge { at: 0 }) }
    }

    /// The values of the datum, keys counted, and how deep it is nested.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.tokens.len(), self.depth)
    }

    /// Gives back what an unusually large datum took. For tapes that live as long as a connection.
    pub(crate) fn trim(&mut self) {
        if self.tokens.capacity() > MAX_TAPE_KEPT || self.own.capacity() > MAX_TAPE_KEPT {
            *self = Self::default();
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, token: TapeToken, at: usize) -> Result<(), CodecError> {
        if self.tokens.len() >= MAX_VALUES {
            return Err(CodecError::TooLarge { at });
        }
        self.tokens.push(token);
        Ok(())
    }

    #[inline]
    pub(crate) fn push_key(&mut self, key: TapeSpan, at: usize) -> Result<(), CodecError> {
        self.keys.push(key);
        self.push(TapeToken::Text(key), at)
    }

    /// Begins a container at nesting `level`, of which the outermost is 1.
    pub(crate) fn open(&mut self, level: usize, at: usize) -> Result<OpenContainer, CodecError> {
        if level > MAX_DEPTH {
            return Err(CodecError::TooDeep { at });
        }
        self.depth = self.depth.max(level);
        let open = OpenContainer { index: self.tokens.len(), keys: self.keys.len() };
        self.push(TapeToken::Null, at)?;
        Ok(open)
    }

    pub(crate) fn close_array(&mut self, open: &OpenContainer, len: usize) {
        let extent = TapeExtent { len: len as u32, end: self.tokens.len() as u32 };
        if let Some(token) = self.tokens.get_mut(open.index) {
            *token = TapeToken::Array(extent);
        }
    }

    /// Ends a map, `at` which no key may have come twice.
    pub(crate) fn close_map(
        &mut self,
        open: &OpenContainer,
        input: &[u8],
        at: usize,
    ) -> Result<(), CodecError> {
        let keys = self.keys.get_mut(open.keys..).unwrap_or_default();
        let len = keys.len();
        if has_twins(keys, &self.own, input) {
            return Err(CodecError::DuplicateKey { at });
        }
        self.keys.truncate(open.keys);
        let extent = TapeExtent { len: len as u32, end: self.tokens.len() as u32 };
        if let Some(token) = self.tokens.get_mut(open.index) {
            *token = TapeToken::Map(extent);
        }
        Ok(())
    }

    /// A part of the input, by its place there.
    #[inline]
    pub(crate) fn span(range: Range<usize>) -> TapeSpan {
        TapeSpan { start: range.start as u32, len: (range.end - range.start) as u32 }
    }

    /// Where the tape's own text ends, for [`Tape::own_since`].
    pub(crate) fn own_len(&self) -> usize {
        self.own.len()
    }

    /// Appends to the tape's own text.
    pub(crate) fn own(&mut self, part: &[u8], at: usize) -> Result<(), CodecError> {
        if self.own.len() + part.len() >= OWN as usize {
            return Err(CodecError::TooLarge { at });
        }
        self.own.extend_from_slice(part);
        Ok(())
    }

    /// A part of the tape's own text, by its place there.
    #[inline]
    pub(crate) fn own_span(range: Range<u32>) -> TapeSpan {
        TapeSpan { start: range.start | OWN, len: range.end - range.start }
    }

    /// All of the tape's own text after `start`.
    pub(crate) fn own_since(&self, start: usize) -> TapeSpan {
        TapeSpan { start: start as u32 | OWN, len: (self.own.len() - start) as u32 }
    }
}

#[inline]
fn resolve<'t>(span: TapeSpan, own: &'t [u8], input: &'t [u8]) -> &'t [u8] {
    let from = if span.start & OWN == 0 { input } else { own };
    let start = (span.start & !OWN) as usize;
    from.get(start..start + span.len as usize).unwrap_or_default()
}

fn has_twins(keys: &mut [TapeSpan], own: &[u8], input: &[u8]) -> bool {
    if keys.len() > PAIRWISE_KEYS {
        keys.sort_unstable_by(|a, b| resolve(*a, own, input).cmp(resolve(*b, own, input)));
        return keys.windows(2).any(|pair| match pair {
            [a, b] => resolve(*a, own, input) == resolve(*b, own, input),
            _ => false,
        });
    }
    let mut rest: &[TapeSpan] = keys;
    while let Some((key, others)) = rest.split_first() {
        let twin = |other: &TapeSpan| {
            other.len == key.len && resolve(*other, own, input) == resolve(*key, own, input)
        };
        if others.iter().any(twin) {
            return true;
        }
        rest = others;
    }
    false
}

/// A tape together with the input that its spans point into.
#[derive(Clone, Copy)]
pub(crate) struct Datum<'t> {
    tokens: &'t [TapeToken],
    own: &'t [u8],
    input: &'t [u8],
}

impl Tape {
    /// The datum that was read last, from `input`.
    pub(crate) fn datum<'t>(&'t self, input: &'t [u8]) -> Datum<'t> {
        Datum { tokens: &self.tokens, own: &self.own, input }
    }

    /// Writes what was read from `input` last.
    pub(crate) fn write(&mut self, input: &[u8], writer: &mut DatumWriter<'_>) {
        self.order.clear();
        let datum = Datum { tokens: &self.tokens, own: &self.own, input };
        if writer.is_flat() {
            datum.write_flat(writer);
        } else {
            datum.write_nested(0, &mut self.order, writer);
        }
    }
}

impl<'t> Datum<'t> {
    pub(crate) fn token(self, index: usize) -> Option<TapeToken> {
        self.tokens.get(index).copied()
    }

    #[inline]
    pub(crate) fn bytes(self, span: TapeSpan) -> &'t [u8] {
        resolve(span, self.own, self.input)
    }

    /// The index after the value at `index`.
    pub(crate) fn after(self, index: usize) -> usize {
        match self.token(index) {
            Some(TapeToken::Array(extent) | TapeToken::Map(extent)) => extent.end as usize,
            _ => index + 1,
        }
    }

    /// The keys of the map at `index`.
    pub(crate) fn keys(self, index: usize) -> impl Iterator<Item = &'t [u8]> {
        let len = match self.token(index) {
            Some(TapeToken::Map(extent)) => extent.len,
            _ => 0,
        };
        let mut next = index + 1;
        (0..len).map(move |_| {
            let key = self.key_bytes(next);
            next = self.after(next + 1);
            key
        })
    }

    /// The text under `name`, if the datum is a map that has it.
    pub(crate) fn text_field(self, name: &str) -> Result<Option<&'t str>, CodecError> {
        let Some(TapeToken::Map(extent)) = self.token(0) else { return Ok(None) };
        let mut next = 1;
        for _ in 0..extent.len {
            if self.key_bytes(next) == name.as_bytes() {
                return match self.token(next + 1) {
                    Some(TapeToken::Text(span)) => self.text(span).map(Some),
                    _ => Err(CodecError::WrongKind { expected: DatumKind::Text }),
                };
            }
            next = self.after(next + 1);
        }
        Ok(None)
    }

    /// The datum as a [`Value`].
    pub(crate) fn value(self) -> Result<Value, CodecError> {
        Ok(self.value_at(0)?.0)
    }

    /// The value at `index`, and the index after it. Recursion ends at [`MAX_DEPTH`], which
    /// [`Tape::open`] checked.
    fn value_at(self, index: usize) -> Result<(Value, usize), CodecError> {
        let value = match self.token(index).unwrap_or(TapeToken::Null) {
            TapeToken::Null => Value::Null,
            TapeToken::Bool(bool) => Value::Bool(bool),
            TapeToken::I64(n) => Value::I64(n),
            TapeToken::U64(n) => Value::from(n),
            TapeToken::F64(n) => Value::F64(n),
            TapeToken::Text(span) => Value::Text(self.text(span)?.to_owned()),
            TapeToken::Bytes(span) => Value::Bytes(self.bytes(span).to_vec()),
            TapeToken::Array(extent) => {
                let mut values = Vec::with_capacity(extent.len as usize);
                let mut next = index + 1;
                for _ in 0..extent.len {
                    let (value, after) = self.value_at(next)?;
                    values.push(value);
                    next = after;
                }
                return Ok((Value::Array(values), next));
            }
            TapeToken::Map(extent) => {
                let mut fields = Vec::with_capacity(extent.len as usize);
                let mut next = index + 1;
                for _ in 0..extent.len {
                    let key = self.key(next)?.to_owned();
                    let (value, after) = self.value_at(next + 1)?;
                    fields.push((key, value));
                    next = after;
                }
                return Ok((Value::Map(fields), next));
            }
        };
        Ok((value, index + 1))
    }

    fn key(self, index: usize) -> Result<&'t str, CodecError> {
        match self.token(index) {
            Some(TapeToken::Text(span)) => self.text(span),
            _ => Ok(""),
        }
    }

    fn text(self, span: TapeSpan) -> Result<&'t str, CodecError> {
        let start = (span.start & !OWN) as usize;
        simdutf8::basic::from_utf8(self.bytes(span))
            .map_err(|_| CodecError::NotUnicode { at: start })
    }

    /// For a codec whose containers need no end and whose keys look like any text.
    fn write_flat(self, writer: &mut DatumWriter<'_>) {
        let mut flat = writer.flat();
        for &token in self.tokens {
            self.write_token(token, &mut flat);
        }
    }

    #[inline]
    pub(crate) fn write_token(self, token: TapeToken, writer: &mut DatumWriter<'_>) {
        match token {
            TapeToken::Null => writer.null(),
            TapeToken::Bool(bool) => writer.bool(bool),
            TapeToken::I64(n) => writer.i64(n),
            TapeToken::U64(n) => writer.u64(n),
            TapeToken::F64(n) => writer.f64(n),
            TapeToken::Text(span) => writer.utf8(self.bytes(span)),
            TapeToken::Bytes(span) => writer.bytes(self.bytes(span)),
            TapeToken::Array(extent) => writer.array(extent.len as usize),
            TapeToken::Map(extent) => writer.map(extent.len as usize),
        }
    }

    /// Writes the value at `index` and returns the index after it. Recursion ends at
    /// [`MAX_DEPTH`], which [`Tape::open`] checked.
    fn write_nested(
        self,
        index: usize,
        order: &mut Vec<u32>,
        writer: &mut DatumWriter<'_>,
    ) -> usize {
        let token = self.token(index).unwrap_or(TapeToken::Null);
        self.write_token(token, writer);
        let mut next = index + 1;
        match token {
            TapeToken::Array(extent) => {
                for _ in 0..extent.len {
                    next = self.write_nested(next, order, writer);
                }
                writer.end();
            }
            TapeToken::Map(extent) if writer.sorts_keys() => {
                self.write_sorted(next, extent, order, writer);
                next = extent.end as usize;
            }
            TapeToken::Map(extent) => {
                for _ in 0..extent.len {
                    self.write_key(next, writer);
                    next = self.write_nested(next + 1, order, writer);
                }
                writer.end();
            }
            _ => {}
        }
        next
    }

    fn write_sorted(
        self,
        first: usize,
        extent: TapeExtent,
        order: &mut Vec<u32>,
        writer: &mut DatumWriter<'_>,
    ) {
        let base = order.len();
        let mut next = first;
        for _ in 0..extent.len {
            order.push(next as u32);
            next = self.after(next + 1);
        }
        // RFC 8949 §4.2.1 orders by encoded key; a text's head orders by its length.
        let encoded = |index: &u32| {
            let key = self.key_bytes(*index as usize);
            (key.len(), key)
        };
        if let Some(keys) = order.get_mut(base..) {
            keys.sort_unstable_by(|a, b| encoded(a).cmp(&encoded(b)));
        }
        for at in base..base + extent.len as usize {
            let index = order.get(at).copied().unwrap_or_default() as usize;
            self.write_key(index, writer);
            self.write_nested(index + 1, order, writer);
        }
        order.truncate(base);
        writer.end();
    }

    pub(crate) fn key_bytes(self, index: usize) -> &'t [u8] {
        match self.token(index) {
            Some(TapeToken::Text(span)) => self.bytes(span),
            _ => &[],
        }
    }

    fn write_key(self, index: usize, writer: &mut DatumWriter<'_>) {
        writer.key_utf8(self.key_bytes(index));
    }
}
