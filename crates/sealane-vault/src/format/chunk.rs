use std::fmt;
use std::hash::{Hash, Hasher};

use super::header::{MAGIC, VERSION, VaultId};
use crate::Error;
use crate::limits::MAX_CHUNK_BYTES;
use crate::wire::hex;

/// Bytes of an [`ChunkId`].
pub(crate) const ID_BYTES: usize = 24;
/// Bytes that sealing adds.
pub(crate) const TAG_BYTES: usize = 16;

/// A chunk's keyed name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkId(pub(crate) [u8; ID_BYTES]);

impl Hash for ChunkId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (first, _) = self.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
        state.write_u64(u64::from_le_bytes(*first));
    }
}

impl fmt::Debug for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// The kind of a chunk's plaintext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ChunkKind {
    Data = 0,
    Page = 1,
    List = 2,
}

/// How chunks are made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkCompression {
    /// Not at all.
    None,
    /// An LZ4 block.
    Lz4,
    /// A Zstandard frame of this level, 1 to 22.
    Zstd(u8),
}

impl Default for ChunkCompression {
    fn default() -> Self {
        ChunkCompression::Zstd(3)
    }
}

/// Kind and compression of a chunk in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkDescriptor {
    pub(crate) kind: ChunkKind,
    pub(crate) compression: ChunkCompression,
}

impl ChunkDescriptor {
    pub(crate) fn to_byte(self) -> u8 {
        let compression = match self.compression {
            ChunkCompression::None => 0,
            ChunkCompression::Lz4 => 1,
            ChunkCompression::Zstd(level) => 16 + level.clamp(1, 22),
        };
        (self.kind as u8) << 6 | compression
    }

    pub(crate) fn from_byte(byte: u8) -> Option<ChunkDescriptor> {
        let kind = match byte >> 6 {
            0 => ChunkKind::Data,
            1 => ChunkKind::Page,
            2 => ChunkKind::List,
            _ => return None,
        };
        let compression = match byte & 0x3f {
            0 => ChunkCompression::None,
            1 => ChunkCompression::Lz4,
            low @ 17..=38 => ChunkCompression::Zstd(low - 16),
            _ => return None,
        };
        Some(ChunkDescriptor { kind, compression })
    }
}

/// The entry of a chunk in a trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub(crate) id: ChunkId,
    pub(crate) descriptor: ChunkDescriptor,
    pub(crate) plain_bytes: u32,
    pub(crate) sealed_bytes: u32,
}

impl ChunkHead {
    /// Refuses lengths that no chunk has, before memory is taken for them.
    pub(crate) fn check(self) -> Result<ChunkHead, Error> {
        let plain = self.plain_bytes as usize;
        let sealed = self.sealed_bytes as usize;
        let stored = self.descriptor.compression == ChunkCompression::None;
        let fits = sealed > TAG_BYTES && sealed <= plain + TAG_BYTES;
        if plain == 0 || plain > MAX_CHUNK_BYTES || !fits || stored && sealed != plain + TAG_BYTES {
            return Err(Error::Malformed { what: "a chunk's lengths" });
        }
        Ok(self)
    }

    /// The associated data of the chunk.
    pub(crate) fn associated(&self, vault: &VaultId) -> [u8; 50] {
        let mut out = [0; 50];
        let parts: [&[u8]; 5] = [
            MAGIC,
            &[VERSION, self.descriptor.to_byte()],
            &self.plain_bytes.to_le_bytes(),
            vault,
            &self.id.0,
        ];
        let bytes = parts.into_iter().flatten();
        out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_one_byte_in_one_form() {
        let valid = (0..=255).filter(|&byte| ChunkDescriptor::from_byte(byte).is_some());
        let again: Vec<u8> =
            valid.clone().map(|byte| ChunkDescriptor::from_byte(byte).unwrap().to_byte()).collect();
        assert!(again.into_iter().eq(valid.clone()));
        assert_eq!(valid.count(), 3 * 24);
    }
}
