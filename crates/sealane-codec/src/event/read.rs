use std::borrow::Cow;

use sealane_message::event::{EventId, Reference, TextPair};

use super::form::{self, head};
use super::{EventError, is_handle};
use crate::binary;
use crate::head::ItemHead;
use crate::input::DatumInput;

/// Reads a map with ascending integer keys. Fields are asked for in ascending order; those that
/// nobody asks for are skipped.
pub(super) struct MapReader<'i, 'a> {
    input: &'i mut DatumInput<'a>,
    /// Where its head stands.
    start: usize,
    /// How many containers its values stand inside.
    level: usize,
    /// Fields whose key has not been read.
    left: u64,
    /// The key that was read last.
    last: Option<u64>,
    /// Whether the value of `last` is still to be read.
    is_open: bool,
}

impl<'i, 'a> MapReader<'i, 'a> {
    pub(super) fn new(
        input: &'i mut DatumInput<'a>,
        name: &'static str,
        level: usize,
    ) -> Result<Self, EventError> {
        let start = input.at();
        match head(input)? {
            ItemHead::Map(Some(left)) => {
                Ok(Self { input, start, level, left, last: None, is_open: false })
            }
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
        self.whole().map(drop)
    }

    /// Skips what is left of the map, and gives the bytes of all of it.
    pub(super) fn whole(&mut self) -> Result<&'a [u8], EventError> {
        loop {
            if self.is_open {
                self.skip()?;
            }
            if self.left == 0 {
                return Ok(self.input.since(self.start));
            }
            self.next_key()?;
        }
    }

    fn next_key(&mut self) -> Result<(), EventError> {
        let at = self.input.at();
        let ItemHead::U64(key) = head(self.input)? else {
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
        form::skip(self.input, self.level)
    }

    pub(super) fn number(&mut self, name: &'static str) -> Result<u64, EventError> {
        match head(self.input)? {
            ItemHead::U64(value) => Ok(value),
            _ => Err(EventError::Field { name }),
        }
    }

    /// The number of an action or a kind. The commonest is 0, of which nothing is written.
    pub(super) fn variant(&mut self, key: u8, name: &'static str) -> Result<u64, EventError> {
        if !self.has(key)? {
            return Ok(0);
        }
        match self.number(name)? {
            0 => Err(EventError::Field { name }),
            number => Ok(number),
        }
    }

    pub(super) fn float(&mut self, name: &'static str) -> Result<f64, EventError> {
        match head(self.input)? {
            ItemHead::F64(value) => Ok(value),
            _ => Err(EventError::Field { name }),
        }
    }

    pub(super) fn bytes(&mut self, name: &'static str) -> Result<&'a [u8], EventError> {
        match head(self.input)? {
            ItemHead::Bytes(Some(length)) => {
                let at = self.input.at();
                Ok(binary::take(self.input, length, at)?)
            }
            _ => Err(EventError::Field { name }),
        }
    }

    pub(super) fn id(&mut self, name: &'static str) -> Result<EventId, EventError> {
        let id = self.bytes(name)?.try_into().map_err(|_| EventError::Field { name })?;
        Ok(EventId(id))
    }

    /// The slot without leading zeros, and the id.
    pub(super) fn reference(&mut self, name: &'static str) -> Result<Reference, EventError> {
        let at = self.input.at();
        let Some((slot, id)) = self.bytes(name)?.split_last_chunk() else {
            return Err(EventError::Field { name });
        };
        let slot = match *slot {
            [] => 0,
            [0] | [0, _] => return Err(EventError::NotDeterministic { at }),
            [low] => u16::from(low),
            [high, low] => u16::from_be_bytes([high, low]),
            _ => return Err(EventError::Field { name }),
        };
        Ok(Reference { slot, id: EventId(*id) })
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<&'a str, EventError> {
        match head(self.input)? {
            ItemHead::Text(Some(length)) => form::text(self.input, length),
            _ => Err(EventError::Field { name }),
        }
    }

    pub(super) fn handle(&mut self, name: &'static str) -> Result<&'a str, EventError> {
        let text = self.text(name)?;
        if is_handle(text) { Ok(text) } else { Err(EventError::Field { name }) }
    }

    /// True where the field is there. False is never written.
    pub(super) fn truth(&mut self, key: u8, name: &'static str) -> Result<bool, EventError> {
        if !self.has(key)? {
            return Ok(false);
        }
        match head(self.input)? {
            ItemHead::Bool(true) => Ok(true),
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
        let ItemHead::Array(Some(count)) = head(self.input)? else {
            return Err(EventError::Field { name });
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > limit {
            return Err(EventError::TooMany { name, limit });
        }
        let mut list = Vec::with_capacity(count.min(self.input.left()));
        self.level += 1;
        for _ in 0..count {
            list.push(one(self)?);
        }
        self.level -= 1;
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
    ) -> Result<Vec<TextPair<'a>>, EventError> {
        self.list(name, limit, |map| match head(map.input)? {
            ItemHead::Array(Some(2)) => {
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
        let mut map = MapReader::new(self.input, name, self.level + 1)?;
        let value = read(&mut map)?;
        map.end()?;
        Ok(value)
    }
}
