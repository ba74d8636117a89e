use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::header::ObjectHeader;
use crate::format::index::{index_key, read_index};
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::page::{FilePiece, SnapshotEntryKind, read_page};
use crate::get::ChunkReader;
use crate::limits::MAX_INDEX_BYTES;
use crate::put::{IdHash, SkippedItem};
use crate::vault::{Snapshot, Vault, hash_of};

/// The chunks that snapshots need.
#[derive(Default)]
pub(super) struct LiveChunks {
    pub(super) ids: HashSet<ChunkId, IdHash>,
    /// Pages and lists of which all that they name was added. A writer may name a page as a part of
    /// a file: then it is needed, and nothing that it names was added yet.
    added: HashSet<ChunkId, IdHash>,
    /// Pages of which something cannot be read: the page itself, or lists of files.
    lost: HashMap<ChunkId, Vec<ChunkId>>,
}

/// A page or a list that cannot be read.
pub(super) struct UnreadChunk {
    pub(super) id: ChunkId,
    pub(super) error: Error,
}

impl LiveChunks {
    /// Adds all that a page needs, and gives what of it cannot be read. What was added already is
    /// not read again.
    ///
    /// A list that cannot be read costs its file alone: the other files of the page count.
    pub(super) fn add_page(
        &mut self,
        chunks: &mut ChunkReader<'_>,
        page: &ChunkId,
        piece: &mut dyn FnMut(&FilePiece, &str) -> Result<(), Error>,
    ) -> Result<Vec<UnreadChunk>, Error> {
        if let Some(lost) = self.lost.get(page) {
            let unread = |id: &ChunkId| UnreadChunk {
                id: *id,
                error: Error::Missing(format!("chunk {id}")),
            };
            return Ok(lost.iter().map(unread).collect());
        }
        if !self.added.insert(*page) {
            return Ok(Vec::new());
        }
        let is_new = self.ids.insert(*page);
        let entries = match chunks.read(page, ChunkKind::Page).and_then(read_page) {
            Err(error) if error.is_damage() => {
                self.added.remove(page);
                if is_new {
                    self.ids.remove(page);
                }
                self.lost.insert(*page, vec![*page]);
                return Ok(vec![UnreadChunk { id: *page, error }]);
            }
            other => other?,
        };
        let mut unread = Vec::new();
        for entry in entries {
            let SnapshotEntryKind::File { pieces, .. } = &entry.node else { continue };
            for part in pieces {
                match part {
                    FilePiece::List { bytes, id } => {
                        if !self.added.insert(*id) {
                            continue;
                        }
                        let is_new = self.ids.insert(*id);
                        match chunks.list(*bytes, id) {
                            // Another file may name it with the right length.
                            Err(error) if error.is_damage() => {
                                self.added.remove(id);
                                if is_new {
                                    self.ids.remove(id);
                                }
                                unread.push(UnreadChunk { id: *id, error });
                            }
                            list => {
                                for part in list? {
                                    self.piece(&part, &entry.shown(), piece)?;
                                }
                            }
                        }
                    }
                    other => self.piece(other, &entry.shown(), piece)?,
                }
            }
        }
        if !unread.is_empty() {
            self.lost.insert(*page, unread.iter().map(|one| one.id).collect());
        }
        Ok(unread)
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

impl Vault {
    /// All chunks that these snapshots need. A page that cannot be read could name any, so that it
    /// is an error, unless it is a writer's and nobody ever kept it: a writer may name anything.
    pub(super) fn live_chunks<'s>(
        &self,
        snapshots: impl Iterator<Item = &'s Snapshot>,
        kept: &mut Kept<'_>,
    ) -> Result<LiveChunks, Error> {
        let mut chunks = ChunkReader::new(self, self.manifest())?;
        let mut live = LiveChunks::default();
        for snapshot in snapshots {
            for page in &snapshot.body.pages {
                for UnreadChunk { id, error } in
                    live.add_page(&mut chunks, page, &mut |_, _| Ok(()))?
                {
                    if !snapshot.by_writer || kept.was_kept(&id)? {
                        return Err(Error::unread(&[snapshot.unread(&error)]));
                    }
                    let path = format!("snapshot {}", snapshot.number);
                    self.warn([SkippedItem { path, reason: error.named() }]);
                }
            }
        }
        Ok(live)
    }
}

impl Snapshot {
    /// A snapshot that cannot be read wholly, for people.
    pub(super) fn unread(&self, error: &Error) -> String {
        format!("{} ({})", self.number, error.named())
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
