use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::claim::ChunkClaims;
use super::seal::ChunkSealer;
use super::upload::PackUploader;
use super::{IdHash, PutContent, PutEntry, PutJob, PutStep};
use crate::Error;
use crate::format::chunk::{ChunkHead, ChunkId, ChunkKind};
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::pack::{ObjectHash, PackRecord, seal_trailer};
use crate::format::page::{FilePiece, PageDraft, SnapshotEntry, SnapshotEntryKind, write_pieces};
use crate::format::snapshot::SnapshotCounts;
use crate::keys::random;
use crate::limits::{
    MAX_FILE_LISTS, MAX_PACK_CHUNKS, MAX_PAGE_ENTRIES, MAX_PIECES, PACK_TARGET_BYTES,
};
use crate::listing::ListingWriter;
use crate::manifest::{ChunkManifest, VaultFileStat};
use crate::store::spool_name;

/// Bytes at which a page ends in any case.
const PAGE_BYTES: usize = 128 << 10;
/// Entries below which a page does not end by its paths.
const PAGE_LEAST: usize = 16;
/// Bytes of a pack that are hashed and written at once: hashing is several times faster in long
/// runs.
const BLOCK_BYTES: usize = 256 << 10;
/// Files that are remembered at once.
const SEEN_BATCH: usize = 4096;

/// Puts sealed chunks into packs, in order, and entries into pages.
pub(super) struct ChunkPacker<'a> {
    sealer: ChunkSealer<'a>,
    claims: &'a ChunkClaims,
    header: ObjectHeader,
    spool: PathBuf,
    dry: bool,
    /// Packs whose names no new one may have, since a prune will remove what has them.
    condemned: HashSet<ObjectHash>,
    open: Option<OpenPack>,
    written: HashSet<ChunkId, IdHash>,
    relied: HashSet<ChunkId, IdHash>,
    page: PageDraft,
    pages: Vec<ChunkId>,
    file: Option<(PutEntry, Vec<FilePiece>)>,
    first_names: HashMap<Vec<u8>, Vec<FilePiece>>,
    seen: Vec<(Vec<u8>, VaultFileStat, Vec<FilePiece>)>,
    manifest: Option<ChunkManifest>,
    listing: Option<ListingWriter>,
    scratch: Vec<u8>,
    counts: SnapshotCounts,
}

/// The outcome of all jobs.
pub(crate) struct PackerOutput {
    pub(crate) pages: Vec<ChunkId>,
    pub(crate) counts: SnapshotCounts,
    pub(crate) relied: HashSet<ChunkId, IdHash>,
    pub(crate) listing: Option<ListingWriter>,
}

/// A pack that is being written.
struct OpenPack {
    file: File,
    path: SpoolFile,
    hasher: blake3::Hasher,
    /// Bytes that are neither hashed nor written yet.
    block: Vec<u8>,
    header: Vec<u8>,
    size: u64,
    chunks: Vec<ChunkHead>,
}

/// A file that is on its way to be an object. What does not get there takes no room: on a full disk
/// it would keep the next run from completing.
pub(super) struct SpoolFile(pub(super) PathBuf);

impl Drop for SpoolFile {
    fn drop(&mut self) {
        // After an upload there is nothing left to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl<'a> ChunkPacker<'a> {
    pub(super) fn new(
        sealer: ChunkSealer<'a>,
        claims: &'a ChunkClaims,
        header: ObjectHeader,
        spool: &Path,
        listing: Option<ListingWriter>,
    ) -> Self {
        ChunkPacker {
            sealer,
            claims,
            header: ObjectHeader { kind: ObjectKind::Pack, ..header },
            spool: spool.to_owned(),
            dry: false,
            condemned: HashSet::new(),
            open: None,
            written: HashSet::default(),
            relied: HashSet::default(),
            page: PageDraft::default(),
            pages: Vec::new(),
            file: None,
            first_names: HashMap::new(),
            seen: Vec::new(),
            manifest: None,
            listing,
            scratch: Vec::new(),
            counts: SnapshotCounts::default(),
        }
    }

    /// Counts what it would write.
    pub(super) fn dry(self, dry: bool) -> Self {
        Self { dry, ..self }
    }

    /// Makes no pack of one of these names.
    pub(super) fn beside(self, condemned: HashSet<ObjectHash>) -> Self {
        Self { condemned, ..self }
    }

    /// Remembers what files looked like.
    pub(super) fn remembering(self, manifest: ChunkManifest) -> Self {
        Self { manifest: Some(manifest), ..self }
    }

    /// Does what a job says.
    pub(super) fn job(
        &mut self,
        job: &mut PutJob,
        uploader: &PackUploader<'_>,
    ) -> Result<(), Error> {
        for step in job.steps.drain(..) {
            match step {
                PutStep::Entry(found) => self.entry(*found, uploader)?,
                PutStep::Chunk { plain, id, sealed } => {
                    let bytes = plain.len() as u64;
                    let sealed = sealed.and_then(|(head, range)| {
                        job.sealed.get(range).map(|sealed| (head, sealed))
                    });
                    self.chunk(id, sealed, uploader)?;
                    self.piece(FilePiece::Chunk { bytes, id });
                }
                PutStep::Hole(bytes) => self.piece(FilePiece::Hole { bytes }),
                PutStep::End(look) => self.end(look, uploader)?,
                PutStep::Abandon => self.file = None,
            }
        }
        Ok(())
    }

    fn piece(&mut self, piece: FilePiece) {
        if let Some((_, pieces)) = &mut self.file {
            pieces.push(piece);
        }
    }

    fn entry(&mut self, mut found: PutEntry, uploader: &PackUploader<'_>) -> Result<(), Error> {
        debug_assert!(self.file.is_none(), "the file before has ended");
        match std::mem::replace(&mut found.content, PutContent::Whole) {
            PutContent::Follows => {
                self.file = Some((found, Vec::new()));
                Ok(())
            }
            PutContent::Whole => self.whole(found, uploader),
            PutContent::Same(first) => {
                let pieces = self.first_names.get(&first).cloned().unwrap_or_default();
                let size = pieces.iter().map(FilePiece::bytes).sum();
                found.entry.node = SnapshotEntryKind::File { size, pieces };
                found.entry.hard_link = Some(first);
                self.whole(found, uploader)
            }
        }
    }

    fn end(
        &mut self,
        look: Option<VaultFileStat>,
        uploader: &PackUploader<'_>,
    ) -> Result<(), Error> {
        let Some((mut found, pieces)) = self.file.take() else { return Ok(()) };
        if let Some(look) = look {
            self.seen.push((std::mem::take(&mut found.absolute), look, pieces.clone()));
            if self.seen.len() >= SEEN_BATCH {
                self.remember()?;
            }
        }
        let size = pieces.iter().map(FilePiece::bytes).sum();
        found.entry.node = SnapshotEntryKind::File { size, pieces };
        self.whole(found, uploader)
    }

    /// An entry with all its pieces.
    fn whole(&mut self, found: PutEntry, uploader: &PackUploader<'_>) -> Result<(), Error> {
        let mut entry = found.entry;
        match &mut entry.node {
            SnapshotEntryKind::Folder => self.counts.folders += 1,
            SnapshotEntryKind::Link { .. } => self.counts.links += 1,
            SnapshotEntryKind::Device(_) | SnapshotEntryKind::Fifo => {}
            SnapshotEntryKind::File { size, pieces } => {
                self.counts.files += 1;
                self.counts.bytes += *size;
                for piece in pieces.iter() {
                    if let FilePiece::Chunk { id, .. } = piece
                        && self.claims.is_kept(id)
                    {
                        self.relied.insert(*id);
                    }
                }
                if found.has_other_names {
                    self.first_names.insert(entry.path.clone(), pieces.clone());
                }
                check_pieces(pieces.len(), &entry.path)?;
                if pieces.len() > MAX_PIECES {
                    *pieces = self.lists(pieces, uploader)?;
                }
            }
        }
        self.push(&entry, uploader)
    }

    /// The pieces of a large file, as lists in chunks of their own.
    fn lists(
        &mut self,
        pieces: &[FilePiece],
        uploader: &PackUploader<'_>,
    ) -> Result<Vec<FilePiece>, Error> {
        let mut lists = Vec::new();
        for part in pieces.chunks(MAX_PIECES) {
            let bytes = part.iter().map(FilePiece::bytes).sum();
            let mut plaintext = Vec::new();
            write_pieces(&mut plaintext, part);
            let id = self.record(ChunkKind::List, &plaintext, uploader)?;
            lists.push(FilePiece::List { bytes, id });
        }
        Ok(lists)
    }

    fn push(&mut self, entry: &SnapshotEntry, uploader: &PackUploader<'_>) -> Result<(), Error> {
        if let Some(listing) = &mut self.listing {
            listing.add(entry)?;
        }
        self.page.push(entry);
        let cut = self.page.count() >= PAGE_LEAST && self.sealer.naming().ends_page(&entry.path);
        if cut || self.page.count() >= MAX_PAGE_ENTRIES || self.page.bytes() >= PAGE_BYTES {
            self.end_page(uploader)?;
        }
        Ok(())
    }

    fn end_page(&mut self, uploader: &PackUploader<'_>) -> Result<(), Error> {
        if self.page.count() > 0 {
            let plaintext = self.page.plaintext();
            self.page.clear();
            let id = self.record(ChunkKind::Page, &plaintext, uploader)?;
            self.pages.push(id);
        }
        Ok(())
    }

    /// Keeps a page or a list unless it is kept already.
    fn record(
        &mut self,
        kind: ChunkKind,
        plaintext: &[u8],
        uploader: &PackUploader<'_>,
    ) -> Result<ChunkId, Error> {
        let id = self.sealer.naming().id(kind, plaintext);
        if self.claims.is_kept(&id) || self.written.contains(&id) {
            self.relied.insert(id);
            return Ok(id);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let head = self.sealer.record(kind, plaintext, &mut scratch)?;
        let kept = self.append(head, &scratch, uploader);
        self.scratch = scratch;
        kept.map(|()| id)
    }

    fn chunk(
        &mut self,
        id: ChunkId,
        sealed: Option<(ChunkHead, &[u8])>,
        uploader: &PackUploader<'_>,
    ) -> Result<(), Error> {
        if self.claims.is_kept(&id) || self.written.contains(&id) {
            return Ok(());
        }
        // The claims see to it that the first occurrence in order is sealed.
        let (head, sealed) = sealed.ok_or(Error::Library("pipeline"))?;
        self.append(head, sealed, uploader)
    }

    /// Keeps a chunk that is sealed already.
    pub(super) fn append(
        &mut self,
        head: ChunkHead,
        sealed: &[u8],
        uploader: &PackUploader<'_>,
    ) -> Result<(), Error> {
        if head.descriptor.kind == ChunkKind::Data {
            self.counts.new_chunks += 1;
            self.counts.new_bytes += u64::from(head.plain_bytes);
        }
        self.written.insert(head.id);
        if self.dry {
            self.counts.stored_bytes += sealed.len() as u64;
            return Ok(());
        }
        let pack = match &mut self.open {
            Some(pack) => pack,
            None => {
                let path = SpoolFile(self.spool.join(spool_name("pack")?));
                self.open.insert(OpenPack::create(path, &self.header)?)
            }
        };
        pack.append(head, sealed)?;
        if pack.size >= PACK_TARGET_BYTES || pack.chunks.len() >= MAX_PACK_CHUNKS {
            self.close(uploader)?;
        }
        Ok(())
    }

    /// Ends the open pack, with the entries of the page that is not complete yet.
    fn close(&mut self, uploader: &PackUploader<'_>) -> Result<(), Error> {
        let Some(mut pack) = self.open.take() else { return Ok(()) };
        if self.page.count() > 0 {
            let plaintext = self.page.plaintext();
            let id = self.sealer.naming().id(ChunkKind::Page, &plaintext);
            if !self.claims.is_kept(&id) && self.written.insert(id) {
                let mut sealed = Vec::new();
                let head = self.sealer.record(ChunkKind::Page, &plaintext, &mut sealed)?;
                pack.append(head, &sealed)?;
            }
        }
        let mut end = seal_trailer(self.sealer.sealing(), &pack.header, pack.size, &pack.chunks)?;
        if !self.condemned.is_empty() && self.condemned.contains(&pack.hash_with(&end)?) {
            // Equal chunks make an equal pack. A prune that is under way would remove it.
            let mut sealed = Vec::new();
            let head = self.sealer.record(ChunkKind::Data, &random::<32>()?, &mut sealed)?;
            pack.append(head, &sealed)?;
            end = seal_trailer(self.sealer.sealing(), &pack.header, pack.size, &pack.chunks)?;
        }
        let (path, pack) = pack.finish(&end)?;
        self.counts.stored_bytes += pack.size;
        if uploader.upload(path, pack) { Ok(()) } else { Err(Error::Stopped) }
    }

    fn remember(&mut self) -> Result<(), Error> {
        let seen = std::mem::take(&mut self.seen);
        let Some(manifest) = self.manifest.as_ref().filter(|_| !self.dry) else {
            return Ok(());
        };
        manifest.transaction(|manifest| {
            seen.iter().try_for_each(|(path, look, pieces)| manifest.see(path, look, pieces))
        })
    }

    /// Ends the last page and the last pack.
    pub(super) fn finish(mut self, uploader: &PackUploader<'_>) -> Result<PackerOutput, Error> {
        self.end_page(uploader)?;
        self.close(uploader)?;
        self.remember()?;
        debug_assert!(self.file.is_none() && self.page.count() == 0, "nothing is left to be kept");
        let ChunkPacker { pages, counts, relied, listing, .. } = self;
        Ok(PackerOutput { pages, counts, relied, listing })
    }
}

impl OpenPack {
    fn create(path: SpoolFile, header: &ObjectHeader) -> Result<OpenPack, Error> {
        let file = File::create_new(&path.0).map_err(|cause| Error::store("tmp", cause))?;
        let hasher = blake3::Hasher::new();
        let block = Vec::with_capacity(BLOCK_BYTES);
        let (header, chunks) = (header.write(), Vec::new());
        let mut pack = OpenPack { file, path, hasher, block, header, size: 0, chunks };
        let header = pack.header.clone();
        pack.write(&header)?;
        Ok(pack)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.size += bytes.len() as u64;
        if self.block.len() + bytes.len() > BLOCK_BYTES {
            self.write_block()?;
        }
        if bytes.len() >= BLOCK_BYTES {
            return self.write_now(bytes);
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    fn write_block(&mut self) -> Result<(), Error> {
        let mut block = std::mem::take(&mut self.block);
        let written = self.write_now(&block);
        block.clear();
        self.block = block;
        written
    }

    fn write_now(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|cause| Error::store("tmp", cause))
    }

    fn append(&mut self, head: ChunkHead, sealed: &[u8]) -> Result<(), Error> {
        debug_assert_eq!(head.sealed_bytes as usize, sealed.len(), "a chunk is as its head says");
        self.write(sealed)?;
        self.chunks.push(head);
        Ok(())
    }

    /// The hash that the pack has if it ends so.
    fn hash_with(&mut self, end: &[u8]) -> Result<ObjectHash, Error> {
        self.write_block()?;
        let mut hasher = self.hasher.clone();
        hasher.update(end);
        Ok(*hasher.finalize().as_bytes())
    }

    fn finish(mut self, end: &[u8]) -> Result<(SpoolFile, PackRecord), Error> {
        debug_assert!(self.holds_together());
        self.write(end)?;
        self.write_block()?;
        let hash = *self.hasher.finalize().as_bytes();
        let pack = PackRecord { hash, size: self.size, header: self.header, chunks: self.chunks };
        Ok((self.path, pack))
    }

    /// Chunks stand one behind the other, from the header on: their places are not written.
    fn holds_together(&self) -> bool {
        let sealed: u64 = self.chunks.iter().map(|chunk| u64::from(chunk.sealed_bytes)).sum();
        self.size == self.header.len() as u64 + sealed
    }
}

/// Refuses a file of more pieces than readers take.
fn check_pieces(pieces: usize, path: &[u8]) -> Result<(), Error> {
    if pieces.div_ceil(MAX_PIECES) > MAX_FILE_LISTS {
        return Err(Error::TooManyPieces(String::from_utf8_lossy(path).into_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a file has 256 GiB of data at least, between as many holes.
    #[test]
    fn a_file_of_more_pieces_than_readers_take_is_refused() {
        let most = MAX_PIECES * MAX_FILE_LISTS;
        assert!(check_pieces(most, b"disk.img").is_ok());
        let refused = check_pieces(most + 1, b"disk.img").unwrap_err();
        assert!(matches!(refused, Error::TooManyPieces(_)), "{refused:?}");
        assert_eq!(refused.named(), "`disk.img` has too many pieces [SL-VAULT-42]");
    }
}
