use std::str::FromStr;

use super::live::LiveChunks;
use crate::Error;
use crate::format::config::CONFIG_KEY;
use crate::format::header::ObjectHeader;
use crate::format::index::read_index;
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::page::FilePiece;
use crate::format::roster::roster_key;
use crate::format::snapshot::SealedSnapshotLink;
use crate::get::ChunkReader;
use crate::limits::{MAX_INDEX_BYTES, MAX_VERIFY_PASSES};
use crate::listing::listing_key;
use crate::manifest::{ChunkFinding, ChunkManifest, ChunkState};
use crate::put::SkippedItem;
use crate::store::VaultStore;
use crate::vault::Vault;

/// The outcome of a verification.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Snapshots whose pages and files are complete.
    pub snapshots: u64,
    /// Packs whose trailers open.
    pub packs: u64,
    /// Chunks that snapshots need.
    pub chunks: u64,
    /// Bytes of packs that were read and checked, with `read_data`.
    pub read_bytes: u64,
    /// The problems found: the object or path, and the reason.
    pub problems: Vec<SkippedItem>,
    /// Packs that are not what they were, by the hash that names them.
    pub(super) bad_packs: Vec<ObjectHash>,
}

/// The packs that a verification reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VerifyData {
    /// Of each only what lists its chunks.
    #[default]
    Lists,
    /// Every byte of every pack.
    All,
    /// Every byte of a part of them.
    Part(VerifyPart),
}

/// A part of the packs: those of one number of so many. A pack belongs to the same part each time,
/// so that as many verifications as there are parts read every pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyPart {
    number: u64,
    of: u64,
}

impl FromStr for VerifyPart {
    type Err = Error;

    /// Reads `1/7`.
    fn from_str(text: &str) -> Result<VerifyPart, Error> {
        let parse = || {
            let (number, of) = text.split_once('/')?;
            let (number, of): (u64, u64) = (number.trim().parse().ok()?, of.trim().parse().ok()?);
            (1..=of).contains(&number).then_some(VerifyPart { number, of })
        };
        parse().ok_or(Error::Malformed { what: "a part (1/7 up to 7/7)" })
    }
}

impl VerifyData {
    fn has(&self, pack: &ObjectHash) -> bool {
        match self {
            VerifyData::Lists => false,
            VerifyData::All => true,
            VerifyData::Part(VerifyPart { number, of }) => {
                let (first, _) = pack.split_first_chunk().unwrap_or((&[0; 8], &[]));
                // Hashes are spread evenly.
                u64::from_le_bytes(*first) % of == number - 1
            }
        }
    }
}

impl VerifyReport {
    pub(super) fn problem(&mut self, path: &str, error: &Error) {
        self.name(path, &error.named());
    }

    fn name(&mut self, path: &str, reason: &str) {
        self.problems.push(SkippedItem { path: path.to_owned(), reason: reason.to_owned() });
    }
}

impl Vault {
    /// Checks that the chain is whole, and that all objects that its snapshots need are there. With
    /// `read_data` it also checks that every byte of every pack is as written. Uses nothing that
    /// this machine remembers.
    ///
    /// Everything found bad counts as absent from then on, so that the next put keeps it anew. If a
    /// prune removes objects while this runs, that is no problem. Packs that come while it runs are
    /// not read.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and errors of the store as a whole. Problems with single objects are in
    /// [`VerifyReport::problems`].
    pub fn verify(&self, read_data: bool) -> Result<VerifyReport, Error> {
        self.verify_data(if read_data { VerifyData::All } else { VerifyData::Lists })
    }

    /// The same, with every byte of those packs that `data` names.
    ///
    /// # Errors
    /// As [`Vault::verify`].
    pub fn verify_data(&self, data: VerifyData) -> Result<VerifyReport, Error> {
        self.owner("verify")?;
        // Copies of this machine say nothing about the objects of the store.
        self.store().stop_looking();
        self.store().forget();
        let mut report = VerifyReport::default();
        self.verify_signed(&mut report)?;
        let manifest = ChunkManifest::temporary()?;
        let packs = self.verify_trailers(&manifest, &mut report)?;
        self.verify_indexes(&mut report)?;
        if data != VerifyData::Lists {
            let mut chunks = ChunkReader::new(self, &manifest)?;
            for pack in packs.iter().filter(|pack| data.has(&pack.hash)) {
                let learn = |learned: &[ChunkFinding]| {
                    manifest.transaction(|manifest| manifest.learn(learned))?;
                    self.manifest().transaction(|manifest| manifest.learn(learned))
                };
                let key = pack_key(&pack.hash);
                match self.verify_pack(pack, &mut chunks, &learn) {
                    Err(error) if self.is_gone(&key, &error)? => continue,
                    Err(error) if error.is_damage() => {
                        report.problem(&key, &error);
                        report.bad_packs.push(pack.hash);
                    }
                    other => other?,
                }
                report.read_bytes += pack.size;
            }
        }
        self.verify_snapshots(&manifest, &mut report)?;
        Ok(report)
    }

    /// Config, slots, reports and marks: what the owner signed.
    fn verify_signed(&self, report: &mut VerifyReport) -> Result<(), Error> {
        match crate::vault::read_config(self.store()) {
            Err(error) if error.is_damage() || matches!(error, Error::NoVault(_)) => {
                report.problem(CONFIG_KEY, &error);
            }
            other => other.map(|_| ())?,
        }
        report.problems.extend(self.check_roster()?);
        report.problems.extend(self.check_rotations()?);
        for object in self.store().list("reports/")? {
            match self.read_report(&object.key) {
                Err(error) if self.is_gone(&object.key, &error)? => {}
                Err(error) if error.is_damage() => report.problem(&object.key, &error),
                other => other.map(|_| ())?,
            }
        }
        for object in self.store().list("condemned/")? {
            match self.read_mark(&object.key) {
                Err(error) if self.is_gone(&object.key, &error)? => {}
                Err(error) if error.is_damage() => report.problem(&object.key, &error),
                other => other.map(|_| ())?,
            }
        }
        Ok(())
    }

    /// Whether an object that was listed has been removed since, as prunes do.
    fn is_gone(&self, key: &str, error: &Error) -> Result<bool, Error> {
        Ok(matches!(error, Error::Missing(_)) && self.store().size(key)?.is_none())
    }

    fn verify_trailers(
        &self,
        manifest: &ChunkManifest,
        report: &mut VerifyReport,
    ) -> Result<Vec<PackRecord>, Error> {
        let mut packs = Vec::new();
        self.read_trailers(self.pack_objects()?, &mut |hash, pack| {
            match pack {
                Ok(pack) => {
                    manifest.add_pack(&pack, self.origin(&pack))?;
                    packs.push(pack);
                    report.packs += 1;
                }
                Err(error) if self.is_gone(&pack_key(&hash), &error)? => {}
                Err(error) if error.is_damage() => {
                    report.problem(&pack_key(&hash), &error);
                    report.bad_packs.push(hash);
                    self.manifest().doubt_pack(&hash)?;
                }
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        Ok(packs)
    }

    fn verify_indexes(&self, report: &mut VerifyReport) -> Result<(), Error> {
        for object in self.store().list("index/")? {
            let open = |header: &ObjectHeader| self.sealing_of(header);
            let read = self.store().get(&object.key, MAX_INDEX_BYTES);
            if read.as_ref().is_ok_and(|bytes| self.is_of_next_key(&object.key, bytes)) {
                continue;
            }
            let read =
                read.and_then(|bytes| read_index(&object.key, &bytes, self.vault_id(), open));
            match read {
                Ok(_) => {}
                Err(error) if self.is_gone(&object.key, &error)? => {}
                Err(error) => report.problem(&object.key, &error),
            }
        }
        Ok(())
    }

    /// Goes through all snapshots; anew if a prune removed some of those that have problems.
    fn verify_snapshots(
        &self,
        manifest: &ChunkManifest,
        report: &mut VerifyReport,
    ) -> Result<(), Error> {
        let mut found = self.try_snapshots(manifest)?;
        for _ in 1..MAX_VERIFY_PASSES {
            if found.troubled.is_empty() {
                break;
            }
            let removed = self.walk(None)?.removed;
            if !removed.iter().any(|(number, _)| found.troubled.contains(number)) {
                break;
            }
            found = self.try_snapshots(manifest)?;
        }
        report.problems.append(&mut found.report.problems);
        report.snapshots = found.report.snapshots;
        report.chunks = found.report.chunks;
        Ok(())
    }

    fn try_snapshots(&self, manifest: &ChunkManifest) -> Result<VerifyPass, Error> {
        let chain = self.walk(None)?;
        let mut report = VerifyReport { problems: chain.problems, ..VerifyReport::default() };
        let mut chunks = ChunkReader::new(self, manifest)?;
        let mut checked = CheckedChunks::default();
        let signers = self.signers()?;
        let mut numbers = [chain.links, chain.loose].concat();
        numbers.sort_unstable();
        let (mut named, mut troubled) = (0, Vec::new());
        for number in numbers {
            let before = report.problems.len();
            let name = format!("snapshot {number}");
            let read = self.load(number, &signers).and_then(|sealed| {
                let body = sealed.open(self.sealing_of(&sealed.header)?.as_ref())?;
                Ok((sealed, body))
            });
            let body = match read {
                Ok((sealed, body)) => {
                    named = named.max(if is_owners(&sealed) { body.roster } else { 0 });
                    body
                }
                Err(error) => {
                    report.problem(&name, &error);
                    troubled.push(number);
                    continue;
                }
            };
            if body.prune {
                continue;
            }
            for page in &body.pages {
                checked.page(manifest, &mut chunks, page, &name, &mut report)?;
            }
            if let Some(hash) = body.listing {
                self.verify_listing(&hash, &mut report);
            }
            match report.problems.len() == before {
                true => report.snapshots += 1,
                false => troubled.push(number),
            }
        }
        if named > self.roster().number {
            let reason = "the owner's list of slots is missing, or was rolled back";
            report.name(&roster_key(named), reason);
        }
        report.chunks = checked.live.ids.len() as u64;
        Ok(VerifyPass { report, troubled })
    }

    fn verify_listing(&self, hash: &ObjectHash, report: &mut VerifyReport) {
        let key = listing_key(hash);
        match self.store().get(&key, usize::MAX) {
            Ok(bytes) if blake3::hash(&bytes).as_bytes() == hash => {}
            Ok(_) => report.problem(&key, &Error::Malformed { what: "a listing" }),
            Err(error) => report.problem(&key, &error),
        }
    }

    /// Opens every chunk of a pack, and gives the first error that there is.
    fn verify_pack(
        &self,
        pack: &PackRecord,
        chunks: &mut ChunkReader<'_>,
        learn: &dyn Fn(&[ChunkFinding]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut bytes = PackHashStream::new(self.store(), pack);
        let mut learned = Vec::with_capacity(LEARNED_AT_ONCE);
        let mut outcome = Ok(());
        let mut offset = pack.header.len() as u64;
        for head in &pack.chunks {
            let opened = match bytes.get(offset, head.sealed_bytes as usize) {
                Ok(sealed) => chunks.check(pack, head, sealed),
                Err(error) if error.is_damage() => Err(error),
                Err(error) => return Err(error),
            };
            let state = if opened.is_ok() { ChunkState::Opened } else { ChunkState::Bad };
            learned.push(ChunkFinding { id: head.id, pack: pack.hash, state });
            if learned.len() == LEARNED_AT_ONCE {
                learn(&learned)?;
                learned.clear();
            }
            outcome = outcome.and(opened);
            offset += u64::from(head.sealed_bytes);
        }
        learn(&learned)?;
        outcome.and(bytes.finish())
    }
}

/// The outcome of a pass over all snapshots.
struct VerifyPass {
    report: VerifyReport,
    /// The snapshots that have problems.
    troubled: Vec<u64>,
}

/// Chunks whose state is noted at once.
const LEARNED_AT_ONCE: usize = 4096;

/// A pack that is read from front to back and hashed on the way.
struct PackHashStream<'a> {
    store: &'a VaultStore,
    pack: &'a PackRecord,
    hasher: blake3::Hasher,
    held: Vec<u8>,
    /// Where what is held begins.
    from: u64,
}

impl<'a> PackHashStream<'a> {
    const BLOCK: u64 = 4 << 20;

    fn new(store: &'a VaultStore, pack: &'a PackRecord) -> Self {
        PackHashStream { store, pack, hasher: blake3::Hasher::new(), held: Vec::new(), from: 0 }
    }

    /// The bytes at a place that lies behind those asked for before.
    fn get(&mut self, offset: u64, length: usize) -> Result<&[u8], Error> {
        while self.from + (self.held.len() as u64) < offset + length as u64 {
            let done = usize::try_from(offset - self.from).unwrap_or(usize::MAX);
            let done = done.min(self.held.len());
            self.held.drain(..done);
            self.from += done as u64;
            self.read()?;
        }
        let at = usize::try_from(offset - self.from).unwrap_or(usize::MAX);
        let found = self.held.get(at..).and_then(|held| held.get(..length));
        found.ok_or_else(|| Error::Truncated(pack_key(&self.pack.hash)))
    }

    fn end(&self) -> u64 {
        self.from + self.held.len() as u64
    }

    /// Reads the next block, which there must be.
    fn read(&mut self) -> Result<(), Error> {
        let key = pack_key(&self.pack.hash);
        let end = self.end();
        let length = Self::BLOCK.min(self.pack.size.saturating_sub(end));
        if length == 0 {
            return Err(Error::Truncated(key));
        }
        let held = self.held.len();
        self.held.resize(held + usize::try_from(length).unwrap_or(0), 0);
        let block = self.held.get_mut(held..).unwrap_or_default();
        self.store.get_range(&key, end, block)?;
        self.hasher.update(block);
        Ok(())
    }

    /// Reads what is left, and compares the whole with the hash that names the pack.
    fn finish(mut self) -> Result<(), Error> {
        while self.end() < self.pack.size {
            self.from = self.end();
            self.held.clear();
            self.read()?;
        }
        let same = self.hasher.finalize().as_bytes() == &self.pack.hash;
        let changed = || Error::NotAuthentic { what: format!("`{}`", pack_key(&self.pack.hash)) };
        if same { Ok(()) } else { Err(changed()) }
    }
}

fn is_owners(sealed: &SealedSnapshotLink) -> bool {
    sealed.link.is_owners()
}

/// Pages and chunks that were checked for a snapshot before.
#[derive(Default)]
struct CheckedChunks {
    live: LiveChunks,
}

impl CheckedChunks {
    fn page(
        &mut self,
        manifest: &ChunkManifest,
        chunks: &mut ChunkReader<'_>,
        page: &crate::format::chunk::ChunkId,
        name: &str,
        report: &mut VerifyReport,
    ) -> Result<(), Error> {
        let mut missing = Vec::new();
        let added = self.live.add_page(chunks, page, &mut |piece, path| {
            if check_piece(manifest, piece).is_err() {
                missing.push((*piece, path.to_owned()));
            }
            Ok(())
        })?;
        // A prune may have written them anew since the packs were listed.
        if !missing.is_empty() && chunks.may_look() {
            chunks.look_again()?;
        }
        for (piece, path) in missing {
            if let Err(error) = check_piece(manifest, &piece) {
                report.problem(&path, &error);
            }
        }
        added.iter().for_each(|unread| report.problem(name, &unread.error));
        Ok(())
    }
}

/// Whether a piece of a file has a place that is not known to be bad, with the length that the
/// file says.
fn check_piece(manifest: &ChunkManifest, piece: &FilePiece) -> Result<(), Error> {
    let FilePiece::Chunk { bytes, id } = piece else { return Ok(()) };
    let places = manifest.places(id)?;
    if places.iter().all(|place| u64::from(place.head.plain_bytes) != *bytes) {
        return Err(Error::Malformed { what: "a chunk's length" });
    }
    if manifest.is_bad(id)? {
        return Err(Error::NotAuthentic { what: format!("chunk {id}") });
    }
    Ok(())
}
