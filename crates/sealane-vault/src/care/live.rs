use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::header::ObjectHeader;
use crate::format::index::{index_key, read_index};
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::page::{FilePiece, SnapshotEntryKind, read_page};
use crate::get::ChunkReader;
use crate::limits::MAX_INDEX_BYTES;
use crate::put::IdHash;
use crate::vault::{Vault, hash_of};

/// The chunks that snapshots need.
#[derive(Default)]
pub(super) struct LiveChunks {
    pub(super) ids: HashSet<ChunkId, IdHash>,
    /// The page or list that was read last: where a page fails, the one that cannot be read.
    pub(super) at: Option<ChunkId>,
}

impl LiveChunks {
    /// Adds all that a page needs. What was added already is not read again.
    pub(super) fn add_page(
        &mut self,
        chunks: &mut ChunkReader<'_>,
        page: &ChunkId,
        piece: &mut dyn FnMut(&FilePiece, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.ids.insert(*page) {
            return Ok(());
        }
        self.at = Some(*page);
        for entry in chunks.read(page, ChunkKind::Page).and_then(read_page)? {
            let SnapshotEntryKind::File { pieces, .. } = &entry.node else { continue };
            for part in pieces {
                match part {
                    FilePiece::List { bytes, id } => {
                        if self.ids.insert(*id) {
                            self.at = Some(*id);
                            for part in chunks.list(*bytes, id)? {
                                self.piece(&part, &entry.shown(), piece)?;
                            }
                        }
                    }
                    other => self.piece(other, &entry.shown(), piece)?,
                }
            }
        }
        Ok(())
    }

    fn piece(
        &mut self,
        part: &FilePiece,
        path: &str,
        piece: &mut dyn FnMut(&FilePiece, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let FilePiece::Chunk { id, .. } = part
            && self.ids.insert(*id)
        {
            piece(part, path)?;
        }
        Ok(())
    }
}

/// Tells what was kept and cannot be read from what a writer only says that it kept.
pub(super) struct Kept<'a> {
    vault: &'a Vault,
    packs: &'a [PackRecord],
    /// The chunks that indexes name in absent packs, or none if an index is damaged.
    missing: Option<Option<HashSet<ChunkId, IdHash>>>,
    /// Whether the packs that were looked at are as they were written.
    whole: HashMap<ObjectHash, bool>,
}

impl<'a> Kept<'a> {
    pub(super) fn new(vault: &'a Vault, packs: &'a [PackRecord]) -> Self {
        Kept { vault, packs, missing: None, whole: HashMap::new() }
    }

    /// Whether a chunk that cannot be read may have been kept: a pack that is damaged has it, or
    /// may have it, or an index names it in a pack that is not there. A pack that is as its writer
    /// made it holds no more than can be read.
    pub(super) fn was_kept(&mut self, id: &ChunkId) -> Result<bool, Error> {
        let packs = self.packs;
        let known: HashSet<&ObjectHash> = packs.iter().map(|pack| &pack.hash).collect();
        let objects = self.vault.pack_objects()?;
        let strange = objects.iter().map(|(hash, _)| hash).filter(|hash| !known.contains(hash));
        let claiming = packs.iter().filter(|pack| pack.chunks.iter().any(|head| head.id == *id));
        for hash in claiming.map(|pack| &pack.hash).chain(strange) {
            let whole = match self.whole.get(hash) {
                Some(whole) => *whole,
                None => self.vault.store().has(&pack_key(hash), hash)?,
            };
            self.whole.insert(*hash, whole);
            if !whole {
                return Ok(true);
            }
        }
        if self.missing.is_none() {
            self.missing = Some(self.read_indexes()?);
        }
        Ok(match &self.missing {
            Some(Some(missing)) => missing.contains(id),
            _ => true,
        })
    }

    /// The chunks that indexes name in absent packs; none if an index is damaged.
    fn read_indexes(&self) -> Result<Option<HashSet<ChunkId, IdHash>>, Error> {
        let mut missing = HashSet::default();
        let objects = self.vault.pack_objects()?;
        let there: HashSet<ObjectHash> = objects.into_iter().map(|(hash, _)| hash).collect();
        for object in self.vault.store().list("index/")? {
            let Some(hash) = hash_of(&object) else { continue };
            let bytes = match self.vault.store().get(&object.key, MAX_INDEX_BYTES) {
                Ok(bytes) => bytes,
                Err(error) if error.is_damage() => return Ok(None),
                Err(error) => return Err(error),
            };
            if *blake3::hash(&bytes).as_bytes() != hash && index_key(&hash) == object.key {
                return Ok(None);
            }
            let open = |header: &ObjectHeader| self.vault.sealing_of(header);
            match read_index(&object.key, &bytes, self.vault.vault_id(), open) {
                Ok(packs) => {
                    let gone = packs.iter().filter(|pack| !there.contains(&pack.hash));
                    missing.extend(gone.flat_map(|pack| &pack.chunks).map(|head| head.id));
                }
                // It is as it was made, and tells nothing.
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(missing))
    }
}
