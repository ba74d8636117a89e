//! Fields one after the other, the low byte first.

use sealane_frame::PeerTag;
use sealane_message::bytes::ByteReader;
use sealane_seal::Slot;

use crate::MeshError;

/// The bytes of a message that are left to read.
#[derive(Debug)]
pub(crate) struct MessageBytes<'a>(ByteReader<'a>);

impl<'a> MessageBytes<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self(ByteReader::new(body))
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], MeshError> {
        self.0.array().ok_or(MeshError::Truncated)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0.rest()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, MeshError> {
        self.take().map(u8::from_le_bytes)
    }

    pub(crate) fn word(&mut self) -> Result<u16, MeshError> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<u32, MeshError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn slot(&mut self) -> Result<Slot, MeshError> {
        slot(self.word()?)
    }

    pub(crate) fn tag(&mut self) -> Result<PeerTag, MeshError> {
        self.take().map(PeerTag::from_bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), MeshError> {
        if self.is_empty() { Ok(()) } else { Err(MeshError::TooLong) }
    }
}

pub(crate) fn slot(number: u16) -> Result<Slot, MeshError> {
    Slot::new(number).ok_or(MeshError::Range)
}

/// The version in the two highest bits of each message's first byte.
pub(crate) const VERSION: u8 = 1;

/// The first byte of a message of which `low` are the other six bits.
pub(crate) const fn first(low: u8) -> u8 {
    VERSION << 6 | low & 0x3f
}

/// The other six bits of a message's first byte.
pub(crate) fn version(first: u8) -> Result<u8, MeshError> {
    if first >> 6 == VERSION { Ok(first & 0x3f) } else { Err(MeshError::UnknownVersion) }
}
