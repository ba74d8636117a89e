use std::borrow::Cow;

use sealane_message::event::Pair;

use super::{EventError, is_handle};
use crate::binary;
use crate::cbor::{self, Cbor};
use crate::head::Head;
use crate::input::Input;

/// Reads a map with ascending integer keys. Fields are asked for in ascending order; those that
/// nobody asks for are skipped.
pub(super) struct MapReader<'i, 'a> {
    input: &'i mut Input<'a>,
    /// Fields whose key has not been read.
    left: u64,
    /// The key that was read last.
    last: Option<u64>,
    /// Whether the value of `last` is still to be read.
    is_open: bool,
}

impl<'i, 'a> MapReader<'i, 'a> {
    pub(super) fn new(input: &'i mut Input<'a>, name: &'static str) -> Result<Self, EventError> {
        match head(input)? {
            Head::Map(Some(left)) => Ok(Self { input, left, last: None, is_open: false }),
            _ => Err(EventError::Field { name }),
        }
    }

    /// Whether the field is there; the caller then reads its value.
    pub(super) fn has(&mut self, key: u8) -> Result<bool, EventError> {
        let key = u64::from(key);
        loop {
            if self.is_open {
                match self.last {
                    Some(last) if last == key => {
                        self.is_open = false;
                        return Ok(true);
                    }
                    Some(last) if last > key => return Ok(false),
                    _ => self.skip()?,
                }
            }
            if self.left == 0 {
                return Ok(false);
            }
            self.next_key()?;
        }
    }

    /// The field, whose value the caller reads.
    pub(super) fn need(&mut self, key: u8, name: &'static str) -> Result<&mut Self, EventError> {
        if self.has(key)? { Ok(self) } else { Err(EventError::Missing { name }) }
    }

    /// Skips what is left of the map.
    pub(super) fn end(mut self) -> Result<(), EventError> {
        loop {
            if self.is_open {
                self.skip()?;
            }
            if self.left == 0 {
                return Ok(());
            }
            self.next_key()?;
        }
    }

    fn next_key(&mut self) -> Result<(), EventError> {
        let at = self.input.at();
        let Head::U64(key) = head(self.input)? else {
            return Err(EventError::Field { name: "key" });
        };
        if self.last.is_some_and(|last| last >= key) {
            return Err(EventError::NotDeterministic { at });
        }
        self.left -= 1;
        self.last = Some(key);
        self.is_open = true;
        Ok(())
    }

    fn skip(&mut self) -> Result<(), EventError> {
        self.is_open = false;
        Ok(binary::skip(&mut Cbor, self.input, 2)?)
    }

    pub(super) fn number(&mut self, name: &'static str) -> Result<u64, EventError> {
        match head(self.input)? {
            Head::U64(value) => Ok(value),
            _ => Err(EventError::Field { name }),
        }
    }

    pub(super) fn float(&mut self, name: &'static str) -> Result<f64, EventError> {
        match head(self.input)? {
            Head::F64(value) => Ok(value),
            _ => Err(EventError::Field { name }),
        }
    }

    pub(super) fn bytes(&mut self, name: &'static str) -> Result<&'a [u8], EventError> {
        match head(self.input)? {
            Head::Bytes(Some(length)) => self.take(length),
            _ => Err(EventError::Field { name }),
        }
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        name: &'static str,
    ) -> Result<[u8; N], EventError> {
        self.bytes(name)?.try_into().map_err(|_| EventError::Field { name })
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<&'a str, EventError> {
        let Head::Text(Some(length)) = head(self.input)? else {
            return Err(EventError::Field { name });
        };
        let at = self.input.at();
        let bytes = self.take(length)?;
        let not_unicode = |_| crate::CodecError::NotUnicode { at };
        Ok(simdutf8::basic::from_utf8(bytes).map_err(not_unicode)?)
    }

    pub(super) fn handle(&mut self, name: &'static str) -> Result<&'a str, EventError> {
        let text = self.text(name)?;
        if is_handle(text) { Ok(text) } else { Err(EventError::Field { name }) }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], EventError> {
        let at = self.input.at();
        let length = usize::try_from(length).map_err(|_| crate::CodecError::Truncated { at })?;
        Ok(self.input.take(length)?)
    }

    /// True where the field is there. False is never written.
    pub(super) fn truth(&mut self, key: u8, name: &'static str) -> Result<bool, EventError> {
        if !self.has(key)? {
            return Ok(false);
        }
        match head(self.input)? {
            Head::Bool(true) => Ok(true),
            _ => Err(EventError::Field { name }),
        }
    }

    /// A text that may be absent.
    pub(super) fn some_text(
        &mut self,
        key: u8,
        name: &'static str,
    ) -> Result<Option<Cow<'a, str>>, EventError> {
        Ok(if self.has(key)? { Some(Cow::Borrowed(self.text(name)?)) } else { None })
    }

    /// A list of at most `limit` elements. Memory is taken for those that can be there.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        limit: usize,
        mut one: impl FnMut(&mut Self) -> Result<T, EventError>,
    ) -> Result<Vec<T>, EventError> {
        let Head::Array(Some(count)) = head(self.input)? else {
            return Err(EventError::Field { name });
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > limit {
            return Err(EventError::TooMany { name, limit });
        }
        let mut list = Vec::with_capacity(count.min(self.input.left()));
        for _ in 0..count {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// A list that is written only if it is not empty.
    pub(super) fn some<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self) -> Result<Vec<T>, EventError>,
    ) -> Result<Vec<T>, EventError> {
        let list = read(self)?;
        if list.is_empty() { Err(EventError::Field { name }) } else { Ok(list) }
    }

    pub(super) fn texts(
        &mut self,
        name: &'static str,
        limit: usize,
    ) -> Result<Vec<Cow<'a, str>>, EventError> {
        self.list(name, limit, |map| Ok(Cow::Borrowed(map.text(name)?)))
    }

    /// A list of pairs of text.
    pub(super) fn pairs(
        &mut self,
        name: &'static str,
        limit: usize,
    ) -> Result<Vec<Pair<'a>>, EventError> {
        self.list(name, limit, |map| match head(map.input)? {
            Head::Array(Some(2)) => {
                let first = Cow::Borrowed(map.text(name)?);
                Ok((first, Cow::Borrowed(map.text(name)?)))
            }
            _ => Err(EventError::Field { name }),
        })
    }

    /// A map as the value.
    pub(super) fn nested<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut MapReader<'_, 'a>) -> Result<T, EventError>,
    ) -> Result<T, EventError> {
        let mut map = MapReader::new(self.input, name)?;
        let value = read(&mut map)?;
        map.end()?;
        Ok(value)
    }
}

/// A head in its one form.
fn head(input: &mut Input<'_>) -> Result<Head, EventError> {
    let at = input.at();
    let head = match cbor::head(input)? {
        // Events have no integers below 0.
        Head::I64(n) if n >= 0 => Head::U64(n.unsigned_abs()),
        head => head,
    };
    let is_shortest = match head {
        Head::U64(n) => input.since(at).len() == head_bytes(n),
        Head::Text(Some(n)) | Head::Bytes(Some(n)) | Head::Array(Some(n)) | Head::Map(Some(n)) => {
            input.since(at).len() == head_bytes(n)
        }
        Head::F64(n) => input.since(at).len() == cbor::f64_bytes(n),
        Head::Bool(_) => true,
        _ => false,
    };
    if is_shortest { Ok(head) } else { Err(EventError::NotDeterministic { at }) }
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
