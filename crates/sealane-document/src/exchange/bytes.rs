use sealane_message::bytes::{ByteReader, Leb128Error};
use sealane_seal::Slot;

use crate::ExchangeError;

/// The fields of a message, from its front.
pub(super) struct ExchangeFieldReader<'a>(ByteReader<'a>);

impl<'a> ExchangeFieldReader<'a> {
    /// The bytes behind the sort of a message, which must be this one.
    pub(super) fn of(message: &'a [u8], sort: u8) -> Result<Self, ExchangeError> {
        match message.split_first() {
            Some((first, rest)) if *first == sort => Ok(ExchangeFieldReader::new(rest)),
            Some(_) => Err(ExchangeError::Unknown),
            None => Err(ExchangeError::Length),
        }
    }

    /// The fields of a part of a message.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(ByteReader::new(bytes))
    }

    /// All that follows.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.0.rest()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ExchangeError> {
        self.0.array().ok_or(ExchangeError::Length)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ExchangeError> {
        self.0.bytes(count).ok_or(ExchangeError::Length)
    }

    pub(super) fn slot(&mut self) -> Result<Slot, ExchangeError> {
        Slot::new(u16::from_le_bytes(self.array()?)).ok_or(ExchangeError::Order)
    }

    pub(super) fn leb128(&mut self) -> Result<u64, ExchangeError> {
        self.0.leb128().map_err(|error| match error {
            Leb128Error::Truncated => ExchangeError::Length,
            Leb128Error::Malformed => ExchangeError::Order,
        })
    }
}
