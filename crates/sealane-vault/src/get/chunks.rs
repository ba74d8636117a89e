use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Error;
use crate::compress::ChunkDecompressor;
use crate::format::chunk::{ChunkHead, ChunkId, ChunkKind};
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::page::{FilePiece, read_list};
use crate::keys::VaultSealingKeys;
use crate::limits::{MAX_CHUNK_LOOKS, MAX_VAIN_LOOKS, READ_BLOCK_BYTES};
use crate::manifest::{ChunkFinding, ChunkLocation, ChunkManifest, ChunkState};
use crate::vault::{Snapshot, Vault};
use crate::wire::VaultFieldReader;

/// Bytes that are read ahead if a reader goes through a pack in order.
const AHEAD_BYTES: u64 = 4 << 20;

/// Reads chunks, and gives out nothing that is not verified.
pub(crate) struct ChunkReader<'a> {
    vault: &'a Vault,
    manifest: &'a ChunkManifest,
    decompressor: ChunkDecompressor,
    keys: HashMap<ObjectHash, Arc<VaultSealingKeys>>,
    window: PackWindow,
    opened: Vec<u8>,
    plain: Vec<u8>,
    /// Whether chunks of others were opened here, and which were not what they should be.
    learned: HashMap<(ChunkId, ObjectHash), bool>,
    /// The snapshot that is read, if it is one alone.
    snapshot: Option<u64>,
    /// Packs that the store lists, or did, and does not give.
    absent: HashSet<ObjectHash>,
    /// Looks at the store that found nothing since one did.
    vain: usize,
}

/// A part of a pack as it lies in the store.
#[derive(Default)]
struct PackWindow {
    pack: ObjectHash,
    from: u64,
    bytes: Vec<u8>,
}

impl PackWindow {
    /// The bytes from `offset` on, if all `length` of them are here.
    fn get(&self, pack: &ObjectHash, offset: u64, length: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.from)?).ok()?;
        let found = self.bytes.get(at..at.checked_add(length)?);
        found.filter(|_| self.pack == *pack)
    }

    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(vault: &'a Vault, manifest: &'a ChunkManifest) -> Result<Self, Error> {
        vault.owner("read")?;
        Ok(ChunkReader {
            vault,
            manifest,
            decompressor: ChunkDecompressor::new()?,
            keys: HashMap::new(),
            window: PackWindow::default(),
            opened: Vec::new(),
            plain: Vec::new(),
            learned: HashMap::new(),
            snapshot: None,
            absent: HashSet::new(),
            vain: 0,
        })
    }

    /// Reads what a snapshot names, from wherever this machine knows it to lie.
    pub(crate) fn of(vault: &'a Vault, snapshot: &Snapshot) -> Result<Self, Error> {
        let mut chunks = ChunkReader::new(vault, vault.manifest())?;
        chunks.turn_to(snapshot);
        Ok(chunks)
    }

    /// Turns to another snapshot.
    pub(crate) fn turn_to(&mut self, snapshot: &Snapshot) {
        self.snapshot = Some(snapshot.number);
    }

    pub(crate) fn manifest(&self) -> &'a ChunkManifest {
        self.manifest
    }

    pub(crate) fn vault(&self) -> &'a Vault {
        self.vault
    }

    /// The plaintext of a chunk, from the first of its places that gives it.
    pub(crate) fn read(&mut self, id: &ChunkId, kind: ChunkKind) -> Result<&[u8], Error> {
        self.read_at(id, kind)?;
        Ok(&self.plain)
    }

    /// Reads a chunk from the first of its places that gives it. What was put since the manifest
    /// was brought up to date is found, and so is what a prune has moved.
    fn read_at(&mut self, id: &ChunkId, kind: ChunkKind) -> Result<ChunkLocation, Error> {
        let absent = self.absent.len();
        let mut failed = match self.try_places(id, kind) {
            Err(error) if error.is_damage() => error,
            other => return other,
        };
        if self.absent.len() == absent && !self.may_look() {
            return Err(failed);
        }
        for _ in 0..MAX_CHUNK_LOOKS {
            let changed = self.look_again()?;
            match self.try_places(id, kind) {
                Err(error) if error.is_damage() => failed = error,
                other => return other,
            }
            if !changed {
                break;
            }
        }
        Err(self.why(failed)?)
    }

    fn try_places(&mut self, id: &ChunkId, kind: ChunkKind) -> Result<ChunkLocation, Error> {
        let mut failed = None;
        for location in self.manifest.places(id)? {
            let read = self.try_read(&location, kind);
            // A chunk that the owner sealed counts as kept already.
            if read.is_err() || !location.own {
                self.learned.insert((*id, location.pack), read.is_ok());
            }
            match read {
                Ok(()) => return Ok(location),
                Err(error) if error.is_damage() => {
                    if matches!(error, Error::Missing(_)) {
                        self.absent.insert(location.pack);
                    }
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::Missing(format!("chunk {id}"))))
    }

    /// Whether another look at the store for a chunk that is lost is worth its price.
    pub(crate) fn may_look(&self) -> bool {
        self.vain < MAX_VAIN_LOOKS
    }

    /// Brings the manifest up to date once more. Gives whether the store has changed.
    ///
    /// Where much is lost, that would ask for a list of all packs for each chunk: after some looks
    /// in vain only a pack that has gone since is a reason for another.
    pub(crate) fn look_again(&mut self) -> Result<bool, Error> {
        self.vault.store().look_anew();
        let remembered = std::ptr::eq(self.manifest, self.vault.manifest());
        let changed = match remembered && self.vault.state().is_ok() {
            true => self.vault.sync()?,
            false => self.vault.sync_packs(self.manifest)?,
        };
        self.vain = if changed { 0 } else { self.vain + 1 };
        Ok(changed)
    }

    /// Why a chunk that the store does not have either cannot be read.
    fn why(&self, failed: Error) -> Result<Error, Error> {
        self.vault.store().look_anew();
        let chain = self.vault.walk(None)?;
        if chain.rotated {
            return Ok(Error::Rotated);
        }
        let removed = |number: &u64| chain.removed.iter().any(|(removed, _)| removed == number);
        Ok(match self.snapshot.filter(removed) {
            Some(number) => Error::Removed(number),
            None => failed,
        })
    }

    fn try_read(&mut self, location: &ChunkLocation, kind: ChunkKind) -> Result<(), Error> {
        if location.head.descriptor.kind != kind {
            return Err(Error::Malformed { what: "a chunk's kind" });
        }
        self.fetch(location)?;
        self.open(location)
    }

    /// Whether the chunk opens in this very pack.
    pub(crate) fn opens_in(&mut self, id: &ChunkId, pack: &ObjectHash) -> Result<bool, Error> {
        for location in self.manifest.places(id)?.iter().filter(|at| at.pack == *pack) {
            match self.try_read(location, location.head.descriptor.kind) {
                Ok(()) => return Ok(true),
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Opens a chunk that stands in the window.
    fn open(&mut self, location: &ChunkLocation) -> Result<(), Error> {
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
        id: &ChunkId,
        kind: ChunkKind,
    ) -> Result<(ChunkHead, Vec<u8>), Error> {
        let location = self.read_at(id, kind)?;
        let mut sealed = self.opened.clone();
        self.vault.sealing().seal_chunk(&location.head, &mut sealed, 0)?;
        Ok((location.head, sealed))
    }

    /// Checks a chunk as it lies in a pack.
    pub(crate) fn check(
        &mut self,
        pack: &PackRecord,
        head: &ChunkHead,
        sealed: &[u8],
    ) -> Result<(), Error> {
        self.window.pack = pack.hash;
        self.window.from = 0;
        self.window.bytes.clear();
        self.window.bytes.extend_from_slice(sealed);
        let header = pack.header.clone();
        let head = *head;
        let (pack, own) = (pack.hash, true);
        let at = ChunkLocation { pack, header, pack_bytes: 0, offset: 0, head, bad: false, own };
        let opened = self.open(&at);
        // The chunk does not lie there, so that nothing else may be read from what is here.
        self.window = PackWindow::default();
        opened
    }

    fn sealing(&mut self, location: &ChunkLocation) -> Result<Arc<VaultSealingKeys>, Error> {
        let key = pack_key(&location.pack);
        let mut reader = VaultFieldReader::new("a pack", &location.header);
        let header =
            ObjectHeader::read(&mut reader, &key, ObjectKind::Pack, Some(self.vault.vault_id()))?;
        let sealing = self.vault.sealing_of(&header)?;
        self.keys.insert(location.pack, Arc::clone(&sealing));
        Ok(sealing)
    }

    /// Brings a chunk into the window, and more where chunks are read in order.
    ///
    /// Reads begin and end at whole blocks: where chunks begin is not for the store to see.
    fn fetch(&mut self, location: &ChunkLocation) -> Result<(), Error> {
        let length = location.head.sealed_bytes as usize;
        if self.window.get(&location.pack, location.offset, length).is_some() {
            return Ok(());
        }
        let in_order = self.window.pack == location.pack
            && location.offset >= self.window.from
            && location.offset <= self.window.end();
        let ahead = if in_order { AHEAD_BYTES } else { 0 };
        let (from, to) = blocks(location, ahead);
        // The part of the first blocks that is already in the window is not read again.
        let held = if in_order { self.window.end().min(to).saturating_sub(from) } else { 0 };
        let drop = usize::try_from(from.saturating_sub(self.window.from)).unwrap_or(usize::MAX);
        let held = usize::try_from(held).unwrap_or(0);
        if held > 0 {
            self.window.bytes.copy_within(drop..drop + held, 0);
        }
        let total = usize::try_from(to - from).map_err(|_| Error::Library("memory"))?;
        self.window.bytes.resize(total, 0);
        self.window.pack = location.pack;
        self.window.from = from;
        let key = pack_key(&location.pack);
        let rest = self.window.bytes.get_mut(held..).unwrap_or_default();
        let read = self.vault.store().get_range(&key, from + held as u64, rest);
        if read.is_err() {
            // The bytes in the window are now no part of any pack.
            self.window.bytes.clear();
        }
        read
    }

    /// A part of a file: the pieces of a list, or the one piece that it is.
    ///
    /// One list is in memory at a time, however many a file has.
    pub(crate) fn parts(&mut self, piece: &FilePiece) -> Result<Vec<FilePiece>, Error> {
        match piece {
            FilePiece::List { bytes, id } => self.list(*bytes, id),
            other => Ok(vec![*other]),
        }
    }

    /// The pieces of a list that stands for `bytes`.
    pub(crate) fn list(&mut self, bytes: u64, id: &ChunkId) -> Result<Vec<FilePiece>, Error> {
        let list = self.read(id, ChunkKind::List).and_then(read_list)?;
        let sum = list.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.bytes()));
        let malformed = Error::Malformed { what: "a list of chunks" };
        if sum == Some(bytes) { Ok(list) } else { Err(malformed) }
    }

    /// The plaintext of a file's piece, which must have the length that the file says.
    pub(crate) fn data(&mut self, bytes: u64, id: &ChunkId) -> Result<&[u8], Error> {
        let data = self.read(id, ChunkKind::Data)?;
        let malformed = Error::Malformed { what: "a chunk's length" };
        if data.len() as u64 == bytes { Ok(data) } else { Err(malformed) }
    }

    /// The same, in a buffer of the caller's.
    pub(crate) fn take(
        &mut self,
        bytes: u64,
        id: &ChunkId,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.data(bytes, id)?;
        std::mem::swap(&mut self.plain, out);
        Ok(())
    }
}

impl Drop for ChunkReader<'_> {
    /// Notes what was learned, so that the next put relies on what opens and keeps anew what does
    /// not. That is a shortcut: what cannot be noted is found again.
    fn drop(&mut self) {
        let learned = self.learned.drain().map(|((id, pack), opened)| ChunkFinding {
            id,
            pack,
            state: if opened { ChunkState::Opened } else { ChunkState::Bad },
        });
        let learned: Vec<ChunkFinding> = learned.collect();
        if !learned.is_empty() {
            let _ = self.manifest.transaction(|manifest| manifest.learn(&learned));
        }
    }
}

/// The blocks that a chunk lies in, and those that `ahead` bytes behind it reach; none ends behind
/// the pack.
fn blocks(location: &ChunkLocation, ahead: u64) -> (u64, u64) {
    let end = location.offset + u64::from(location.head.sealed_bytes);
    let to = end.max(location.offset + ahead).next_multiple_of(READ_BLOCK_BYTES);
    let from = location.offset - location.offset % READ_BLOCK_BYTES;
    (from, to.min(location.pack_bytes).max(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::chunk::{ChunkCompression, ChunkDescriptor};

    #[test]
    fn a_read_tells_nothing_of_where_chunks_begin() {
        let block = READ_BLOCK_BYTES;
        let descriptor =
            ChunkDescriptor { kind: ChunkKind::Data, compression: ChunkCompression::None };
        for (offset, sealed_bytes, ahead) in
            [(24, 17, 0), (block - 1, 2, 0), (3 * block, 4 << 20, 0), (5, 100, AHEAD_BYTES)]
        {
            let head = ChunkHead { id: ChunkId([1; 24]), descriptor, plain_bytes: 1, sealed_bytes };
            let pack_bytes = 30 << 20;
            let pack = [0; 32];
            let at = ChunkLocation {
                pack,
                header: vec![],
                pack_bytes,
                offset,
                head,
                bad: false,
                own: true,
            };
            let (from, to) = blocks(&at, ahead);
            assert_eq!((from % block, to % block), (0, 0), "{offset}");
            assert!(from <= offset && offset + u64::from(sealed_bytes) <= to);
            let small = ChunkLocation { pack_bytes: offset + u64::from(sealed_bytes) + 9, ..at };
            assert_eq!(blocks(&small, 64 << 20).1, small.pack_bytes);
        }
    }
}
