use std::collections::HashMap;
use std::sync::Arc;

use crate::Error;
use crate::compress::Decompressor;
use crate::format::chunk::{ChunkHead, ChunkKind, Id};
use crate::format::header::{Kind, ObjectHeader};
use crate::format::pack::{Hash, Pack, pack_key};
use crate::format::page::{Piece, read_list};
use crate::keys::Sealing;
use crate::manifest::{Location, Manifest};
use crate::vault::Vault;
use crate::wire::Reader;

/// What is read ahead of a reader that goes through a pack in order.
const AHEAD_BYTES: u64 = 4 << 20;

/// Reads chunks, and gives out nothing that is not verified.
pub(crate) struct Chunks<'a> {
    vault: &'a Vault,
    manifest: &'a Manifest,
    decompressor: Decompressor,
    keys: HashMap<Hash, Arc<Sealing>>,
    window: Window,
    opened: Vec<u8>,
    plain: Vec<u8>,
}

/// A part of a pack as it lies in the store.
#[derive(Default)]
struct Window {
    pack: Hash,
    from: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The bytes from `offset` on, if all `length` of them are here.
    fn get(&self, pack: &Hash, offset: u64, length: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.from)?).ok()?;
        let found = self.bytes.get(at..at.checked_add(length)?);
        found.filter(|_| self.pack == *pack)
    }

    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(vault: &'a Vault, manifest: &'a Manifest) -> Result<Self, Error> {
        vault.owner("read")?;
        Ok(Chunks {
            vault,
            manifest,
            decompressor: Decompressor::new()?,
            keys: HashMap::new(),
            window: Window::default(),
            opened: Vec::new(),
            plain: Vec::new(),
        })
    }

    pub(crate) fn manifest(&self) -> &'a Manifest {
        self.manifest
    }

    pub(crate) fn vault(&self) -> &'a Vault {
        self.vault
    }

    /// The plaintext of a chunk.
    pub(crate) fn read(&mut self, id: &Id, kind: ChunkKind) -> Result<&[u8], Error> {
        let location = self.manifest.locate(id)?;
        if location.head.descriptor.kind != kind {
            return Err(Error::Malformed { what: "a chunk's kind" });
        }
        self.fetch(&location)?;
        self.open(&location)?;
        Ok(&self.plain)
    }

    /// Opens a chunk that stands in the window.
    fn open(&mut self, location: &Location) -> Result<(), Error> {
        let head = &location.head;
        let sealing = match self.keys.get(&location.pack) {
            Some(sealing) => Arc::clone(sealing),
            None => self.sealing(location)?,
        };
        let length = head.sealed_bytes as usize;
        let sealed = self.window.get(&location.pack, location.offset, length).unwrap_or_default();
        sealing.open_chunk(head, sealed, &mut self.opened)?;
        let compression = head.descriptor.compression;
        let plain_bytes = head.plain_bytes as usize;
        self.decompressor.decompress(compression, &self.opened, plain_bytes, &mut self.plain)?;
        if self.vault.naming().id(head.descriptor.kind, &self.plain) != head.id {
            return Err(Error::NotAuthentic { what: format!("chunk {}", head.id) });
        }
        Ok(())
    }

    /// A chunk, verified, and sealed under the vault's own key.
    pub(crate) fn seal_again(
        &mut self,
        id: &Id,
        kind: ChunkKind,
    ) -> Result<(ChunkHead, Vec<u8>), Error> {
        let location = self.manifest.locate(id)?;
        self.read(id, kind)?;
        let mut sealed = self.opened.clone();
        self.vault.sealing().seal_chunk(&location.head, &mut sealed, 0)?;
        Ok((location.head, sealed))
    }

    /// Checks a chunk as it lies in a pack.
    pub(crate) fn check(
        &mut self,
        pack: &Pack,
        head: &ChunkHead,
        sealed: &[u8],
    ) -> Result<(), Error> {
        self.window.pack = pack.hash;
        self.window.from = 0;
        self.window.bytes.clear();
        self.window.bytes.extend_from_slice(sealed);
        let header = pack.header.clone();
        self.open(&Location { pack: pack.hash, header, pack_bytes: 0, offset: 0, head: *head })
    }

    fn sealing(&mut self, location: &Location) -> Result<Arc<Sealing>, Error> {
        let key = pack_key(&location.pack);
        let mut reader = Reader::new("a pack", &location.header);
        let header =
            ObjectHeader::read(&mut reader, &key, Kind::Pack, Some(self.vault.vault_id()))?;
        let sealing = self.vault.sealing_of(&header)?;
        self.keys.insert(location.pack, Arc::clone(&sealing));
        Ok(sealing)
    }

    /// Brings a chunk into the window, and more where chunks are read in order.
    fn fetch(&mut self, location: &Location) -> Result<(), Error> {
        let length = location.head.sealed_bytes as usize;
        if self.window.get(&location.pack, location.offset, length).is_some() {
            return Ok(());
        }
        let in_order = self.window.pack == location.pack
            && location.offset >= self.window.from
            && location.offset <= self.window.end();
        let wanted = if in_order { AHEAD_BYTES.max(length as u64) } else { length as u64 };
        let left = location.pack_bytes.saturating_sub(location.offset);
        let wanted = usize::try_from(wanted.min(left)).unwrap_or(length).max(length);
        self.window.bytes.resize(wanted, 0);
        self.window.pack = location.pack;
        self.window.from = location.offset;
        let key = pack_key(&location.pack);
        let store = self.vault.store();
        let read = store.get_range(&key, location.offset, &mut self.window.bytes);
        if read.is_err() {
            // What is in the window now, is no part of any pack.
            self.window.bytes.clear();
        }
        read
    }

    /// The chunks and holes of a file, with lists read.
    pub(crate) fn flatten(&mut self, pieces: &[Piece]) -> Result<Vec<Piece>, Error> {
        let mut flat = Vec::with_capacity(pieces.len());
        for piece in pieces {
            match piece {
                Piece::List { bytes, id } => flat.extend(self.list(*bytes, id)?),
                other => flat.push(*other),
            }
        }
        Ok(flat)
    }

    /// The pieces of a list that stands for `bytes`.
    pub(crate) fn list(&mut self, bytes: u64, id: &Id) -> Result<Vec<Piece>, Error> {
        let list = self.read(id, ChunkKind::List).and_then(read_list)?;
        let sum = list.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.bytes()));
        let malformed = Error::Malformed { what: "a list of chunks" };
        if sum == Some(bytes) { Ok(list) } else { Err(malformed) }
    }

    /// The plaintext of a file's piece, which must have the length that the file says.
    pub(crate) fn data(&mut self, bytes: u64, id: &Id) -> Result<&[u8], Error> {
        let data = self.read(id, ChunkKind::Data)?;
        let malformed = Error::Malformed { what: "a chunk's length" };
        if data.len() as u64 == bytes { Ok(data) } else { Err(malformed) }
    }

    /// The same, in a buffer of the caller's.
    pub(crate) fn take(&mut self, bytes: u64, id: &Id, out: &mut Vec<u8>) -> Result<(), Error> {
        self.data(bytes, id)?;
        std::mem::swap(&mut self.plain, out);
        Ok(())
    }
}
