use std::borrow::Cow;

use sealane_message::event::{Reference, TextPair};

use super::{EventError, is_handle};
use crate::cbor::{self, major};

/// Writes a map with ascending integer keys below 24. Its head is one byte that is set at the end.
pub(super) struct MapWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Where the head stands.
    at: usize,
    fields: u8,
}

impl<'o> MapWriter<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        let at = out.len();
        out.push(0);
        Self { out, at, fields: 0 }
    }

    /// Sets the head. No map has 24 fields.
    pub(super) fn end(self) {
        if let Some(head) = self.out.get_mut(self.at) {
            *head = major::MAP << 5 | self.fields;
        }
    }

    /// A map under a key; the caller ends it before it goes on.
    pub(super) fn nested(&mut self, key: u8) -> MapWriter<'_> {
        self.key(key);
        MapWriter::new(self.out)
    }

    /// A map that is an element of a list.
    pub(super) fn element(&mut self) -> MapWriter<'_> {
        MapWriter::new(self.out)
    }

    fn key(&mut self, key: u8) {
        self.out.push(key);
        self.fields += 1;
    }

    pub(super) fn number(&mut self, key: u8, value: u64) {
        self.key(key);
        cbor::write_head(self.out, major::UNSIGNED, value);
    }

    /// The number of an action or a kind; 0, the commonest, is absent.
    pub(super) fn variant(&mut self, key: u8, number: u64) {
        if number != 0 {
            self.number(key, number);
        }
    }

    /// The slot without leading zeros, and the id.
    pub(super) fn reference(&mut self, key: u8, Reference { slot, id }: Reference) {
        let slot = slot.to_be_bytes();
        let zeros = slot.iter().take_while(|byte| **byte == 0).count();
        let slot = slot.get(zeros..).unwrap_or_default();
        self.key(key);
        cbor::write_head(self.out, major::BYTES, (slot.len() + id.0.len()) as u64);
        self.out.extend_from_slice(slot);
        self.out.extend_from_slice(&id.0);
    }

    /// A value that is encoded already.
    pub(super) fn encoded(&mut self, key: u8, value: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(value);
    }

    pub(super) fn bytes(&mut self, key: u8, value: &[u8]) {
        self.key(key);
        cbor::write_string(self.out, major::BYTES, value);
    }

    pub(super) fn text(&mut self, key: u8, value: &str) {
        self.key(key);
        cbor::write_string(self.out, major::TEXT, value.as_bytes());
    }

    pub(super) fn some_text(&mut self, key: u8, value: Option<&Cow<'_, str>>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub(super) fn handle(
        &mut self,
        key: u8,
        name: &'static str,
        value: &str,
    ) -> Result<(), EventError> {
        if !is_handle(value) {
            return Err(EventError::Field { name });
        }
        self.text(key, value);
        Ok(())
    }

    pub(super) fn float(&mut self, key: u8, value: f64) {
        self.key(key);
        cbor::write_f64(self.out, value);
    }

    /// True; false is absent.
    pub(super) fn truth(&mut self, key: u8, value: bool) {
        if value {
            self.key(key);
            cbor::write_bool(self.out, true);
        }
    }

    /// The head of a list, whose elements the caller writes.
    pub(super) fn list(
        &mut self,
        key: u8,
        name: &'static str,
        count: usize,
        limit: usize,
    ) -> Result<(), EventError> {
        if count > limit {
            return Err(EventError::TooMany { name, limit });
        }
        self.key(key);
        cbor::write_head(self.out, major::ARRAY, count as u64);
        Ok(())
    }

    pub(super) fn texts(
        &mut self,
        key: u8,
        name: &'static str,
        values: &[Cow<'_, str>],
        limit: usize,
    ) -> Result<(), EventError> {
        self.list(key, name, values.len(), limit)?;
        for value in values {
            cbor::write_string(self.out, major::TEXT, value.as_bytes());
        }
        Ok(())
    }

    /// A list of pairs of text.
    pub(super) fn pairs(
        &mut self,
        key: u8,
        name: &'static str,
        values: &[TextPair<'_>],
        limit: usize,
    ) -> Result<(), EventError> {
        self.list(key, name, values.len(), limit)?;
        for (first, second) in values {
            cbor::write_head(self.out, major::ARRAY, 2);
            cbor::write_string(self.out, major::TEXT, first.as_bytes());
            cbor::write_string(self.out, major::TEXT, second.as_bytes());
        }
        Ok(())
    }
}
