use std::io::Write;

use super::chunks::ChunkReader;
use crate::Error;
use crate::format::page::{FilePiece, SnapshotEntry, SnapshotEntryKind};

/// A file of a snapshot, any part of which can be read without the rest.
pub struct StoredFile<'a> {
    chunks: ChunkReader<'a>,
    entry: SnapshotEntry,
}

impl<'a> StoredFile<'a> {
    pub(crate) fn new(chunks: ChunkReader<'a>, entry: SnapshotEntry) -> Result<Self, Error> {
        match entry.node {
            SnapshotEntryKind::File { .. } => Ok(Self { chunks, entry }),
            _ => Err(Error::NoEntry(entry.shown())),
        }
    }

    /// The entry in the snapshot.
    pub fn entry(&self) -> &SnapshotEntry {
        &self.entry
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.entry.size()
    }

    /// Refuses a range that begins behind the end of the file.
    ///
    /// # Errors
    /// [`Error::BehindEnd`].
    pub fn check_offset(&self, offset: u64) -> Result<(), Error> {
        let (path, size) = (self.entry.shown(), self.size());
        if offset > 0 && offset >= size { Err(Error::BehindEnd { path, size }) } else { Ok(()) }
    }

    /// Writes `length` bytes from `offset` on to `out`, or as many as there are; gives how many.
    /// Only the chunks that they lie in are fetched, and each is verified first.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::NotAuthentic`], what the store fails for, and [`Error::File`]
    /// when `out` fails.
    pub fn read_range(
        &mut self,
        offset: u64,
        length: u64,
        out: &mut dyn Write,
    ) -> Result<u64, Error> {
        let SnapshotEntryKind::File { pieces, .. } = &self.entry.node else { return Ok(0) };
        let range = FileRange { from: offset, to: offset.saturating_add(length) };
        let (written, _) = range.pieces(&mut self.chunks, pieces, 0, out)?;
        Ok(written)
    }
}

/// Writes all of a file to `out`, each chunk verified first; gives how many bytes it has.
pub(crate) fn write_file(
    chunks: &mut ChunkReader<'_>,
    entry: &SnapshotEntry,
    out: &mut dyn Write,
) -> Result<u64, Error> {
    let SnapshotEntryKind::File { pieces, .. } = &entry.node else { return Ok(0) };
    let (written, _) = FileRange { from: 0, to: u64::MAX }.pieces(chunks, pieces, 0, out)?;
    Ok(written)
}

/// Places within a file.
struct FileRange {
    from: u64,
    to: u64,
}

impl FileRange {
    /// Writes what of `pieces`, which begin at `at`, lies in the range. Gives how many bytes those
    /// were, and where the pieces end.
    fn pieces(
        &self,
        chunks: &mut ChunkReader<'_>,
        pieces: &[FilePiece],
        mut at: u64,
        out: &mut dyn Write,
    ) -> Result<(u64, u64), Error> {
        let mut written = 0;
        for piece in pieces {
            let (from, to) = (self.from.max(at), self.to.min(at + piece.bytes()));
            if from < to {
                let (skip, take) = (from - at, to - from);
                match piece {
                    FilePiece::Chunk { bytes, id } => {
                        let data = chunks.data(*bytes, id)?;
                        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
                        let take = usize::try_from(take).unwrap_or(usize::MAX);
                        write(out, data.get(skip..).and_then(|data| data.get(..take)))?;
                    }
                    FilePiece::Hole { .. } => zeros(out, take)?,
                    FilePiece::List { bytes, id } => {
                        let list = chunks.list(*bytes, id)?;
                        self.pieces(chunks, &list, at, out)?;
                    }
                }
                written += take;
            }
            at += piece.bytes();
            if at >= self.to {
                break;
            }
        }
        Ok((written, at))
    }
}

fn write(out: &mut dyn Write, data: Option<&[u8]>) -> Result<(), Error> {
    let written = out.write_all(data.unwrap_or_default());
    written.map_err(|cause| Error::File { path: "the output".to_owned(), cause })
}

fn zeros(out: &mut dyn Write, mut count: u64) -> Result<(), Error> {
    let block = [0; 4096];
    while count > 0 {
        let part = usize::try_from(count).unwrap_or(block.len()).min(block.len());
        write(out, block.get(..part))?;
        count -= part as u64;
    }
    Ok(())
}

impl std::fmt::Debug for StoredFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredFile").field("entry", &self.entry.shown()).finish_non_exhaustive()
    }
}
