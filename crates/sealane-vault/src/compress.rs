//! Compression with contexts and buffers that are kept.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use crate::Error;
use crate::format::chunk::ChunkCompression;

/// Makes plaintexts smaller.
pub(crate) struct ChunkCompressor {
    zstd: Option<(u8, zstd::bulk::Compressor<'static>)>,
    lz4: Option<CompressTable>,
    scratch: Vec<u8>,
}

impl ChunkCompressor {
    pub(crate) fn new() -> ChunkCompressor {
        ChunkCompressor { zstd: None, lz4: None, scratch: Vec::new() }
    }

    /// Appends the compressed form to `out`, or the plaintext when that is not longer, and says
    /// which.
    pub(crate) fn append(
        &mut self,
        wanted: ChunkCompression,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ChunkCompression, Error> {
        let length = match wanted {
            ChunkCompression::None => None,
            ChunkCompression::Lz4 => Some(self.lz4(plaintext)?),
            ChunkCompression::Zstd(level) => Some(self.zstd(level, plaintext)?),
        };
        let compressed = length.filter(|&length| length < plaintext.len());
        match compressed.and_then(|length| self.scratch.get(..length)) {
            Some(smaller) => {
                out.extend_from_slice(smaller);
                Ok(wanted)
            }
            None => {
                out.extend_from_slice(plaintext);
                Ok(ChunkCompression::None)
            }
        }
    }

    fn lz4(&mut self, plaintext: &[u8]) -> Result<usize, Error> {
        let room = get_maximum_output_size(plaintext.len());
        if self.scratch.len() < room {
            self.scratch.resize(room, 0);
        }
        // Always the large table: the small one gives other bytes, and which one a context has
        // would depend on what it compressed before.
        let table = self.lz4.get_or_insert_with(CompressTable::large);
        compress_into_with_table(plaintext, &mut self.scratch, table)
            .map_err(|_| Error::Library("compression"))
    }

    fn zstd(&mut self, level: u8, plaintext: &[u8]) -> Result<usize, Error> {
        let failed = |_| Error::Library("compression");
        let room = zstd::zstd_safe::compress_bound(plaintext.len());
        if self.scratch.len() < room {
            self.scratch.resize(room, 0);
        }
        if self.zstd.as_ref().is_none_or(|(held, _)| *held != level) {
            let context = zstd::bulk::Compressor::new(i32::from(level)).map_err(failed)?;
            self.zstd = Some((level, context));
        }
        let Some((_, context)) = &mut self.zstd else { return Err(Error::Library("compression")) };
        context.compress_to_buffer(plaintext, self.scratch.as_mut_slice()).map_err(failed)
    }
}

/// Gives plaintexts back.
pub(crate) struct ChunkDecompressor(zstd::bulk::Decompressor<'static>);

impl ChunkDecompressor {
    pub(crate) fn new() -> Result<ChunkDecompressor, Error> {
        let context = zstd::bulk::Decompressor::new();
        context.map(ChunkDecompressor).map_err(|_| Error::Library("compression"))
    }

    /// Makes `out` the plaintext of `compressed`, which must have exactly `length` bytes.
    pub(crate) fn decompress(
        &mut self,
        compression: ChunkCompression,
        compressed: &[u8],
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let malformed = || Error::Malformed { what: "a compressed chunk" };
        out.resize(length, 0);
        let found = match compression {
            ChunkCompression::None if compressed.len() == length => {
                out.copy_from_slice(compressed);
                length
            }
            ChunkCompression::None => return Err(malformed()),
            ChunkCompression::Lz4 => {
                lz4_flex::block::decompress_into(compressed, out).map_err(|_| malformed())?
            }
            ChunkCompression::Zstd(_) => self
                .0
                .decompress_to_buffer(compressed, out.as_mut_slice())
                .map_err(|_| malformed())?,
        };
        if found == length { Ok(()) } else { Err(malformed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * at % 251) as u8 % 17).collect()
    }

    #[test]
    fn comes_back_and_does_not_depend_on_what_came_before() {
        for wanted in [ChunkCompression::None, ChunkCompression::Lz4, ChunkCompression::Zstd(3)] {
            let mut used = ChunkCompressor::new();
            for length in [1, 100, 70_000, 3000, 1 << 20, 500] {
                let plaintext = text(length);
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let found = used.append(wanted, &plaintext, &mut a).unwrap();
                ChunkCompressor::new().append(wanted, &plaintext, &mut b).unwrap();
                assert!(a == b, "{wanted:?} {length}");
                let mut back = Vec::new();
                let mut decompressor = ChunkDecompressor::new().unwrap();
                decompressor.decompress(found, &a, length, &mut back).unwrap();
                assert_eq!(back, plaintext);
                assert!(decompressor.decompress(found, &a, length - 1, &mut back).is_err());
                assert!(decompressor.decompress(found, &a, length + 1, &mut back).is_err());
            }
        }
    }
}
