use super::live::Live;
use crate::Error;
use crate::format::header::ObjectHeader;
use crate::format::index::read_index;
use crate::format::pack::{Pack, pack_key};
use crate::format::page::Piece;
use crate::get::Chunks;
use crate::limits::{MAX_INDEX_BYTES, MAX_PACK_BYTES};
use crate::listing::listing_key;
use crate::manifest::Manifest;
use crate::put::Skipped;
use crate::vault::Vault;

/// What a verification found.
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
    /// What is wrong: which object or path, and why.
    pub problems: Vec<Skipped>,
}

impl VerifyReport {
    fn problem(&mut self, path: &str, error: &Error) {
        let reason = format!("{error} [{}]", error.info().code);
        self.problems.push(Skipped { path: path.to_owned(), reason });
    }
}

impl Vault {
    /// Checks that the chain is whole, and that all that its snapshots need is there; with
    /// `read_data` also that every byte of every pack is what was written. Uses nothing that this
    /// machine remembers.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for as a whole. What is wrong with single
    /// objects is in [`VerifyReport::problems`].
    pub fn verify(&self, read_data: bool) -> Result<VerifyReport, Error> {
        self.owner("verify")?;
        let mut report = VerifyReport::default();
        if let Err(error) = self.check_chain(None) {
            report.problem("snapshots/", &error);
        }
        let manifest = Manifest::in_memory()?;
        let mut packs = Vec::new();
        for (hash, size) in self.pack_objects()? {
            match self.read_pack(&hash, size) {
                Ok(pack) => {
                    manifest.add_pack(&pack)?;
                    packs.push(pack);
                    report.packs += 1;
                }
                Err(error) => report.problem(&pack_key(&hash), &error),
            }
        }
        self.verify_indexes(&mut report)?;
        self.verify_snapshots(&manifest, &mut report)?;
        if read_data {
            let mut chunks = Chunks::new(self, &manifest)?;
            for pack in &packs {
                if let Err(error) = self.verify_pack(pack, &mut chunks) {
                    report.problem(&pack_key(&pack.hash), &error);
                }
                report.read_bytes += pack.size;
            }
        }
        Ok(report)
    }

    fn verify_indexes(&self, report: &mut VerifyReport) -> Result<(), Error> {
        for object in self.store().list("index/")? {
            let open = |header: &ObjectHeader| self.sealing_of(header);
            let read = self
                .store()
                .get(&object.key, MAX_INDEX_BYTES)
                .and_then(|bytes| read_index(&object.key, &bytes, self.vault_id(), open));
            if let Err(error) = read {
                report.problem(&object.key, &error);
            }
        }
        Ok(())
    }

    fn verify_snapshots(
        &self,
        manifest: &Manifest,
        report: &mut VerifyReport,
    ) -> Result<(), Error> {
        let mut chunks = Chunks::new(self, manifest)?;
        let mut live = Live::default();
        let signers = self.signers()?;
        for number in self.snapshot_numbers()? {
            let before = report.problems.len();
            let name = format!("snapshot {number}");
            let body = self
                .load(number, &signers)
                .and_then(|sealed| sealed.open(self.sealing_of(&sealed.header)?.as_ref()));
            let body = match body {
                Ok(body) if body.prune => continue,
                Ok(body) => body,
                Err(error) => {
                    report.problem(&name, &error);
                    continue;
                }
            };
            for page in &body.pages {
                let mut missing = Vec::new();
                let added = live.add_page(&mut chunks, page, &mut |piece, path| {
                    if let Err(error) = check_piece(manifest, piece) {
                        missing.push((path.to_owned(), error));
                    }
                    Ok(())
                });
                missing.iter().for_each(|(path, error)| report.problem(path, error));
                if let Err(error) = added {
                    report.problem(&name, &error);
                }
            }
            if let Some(hash) = body.listing {
                let key = listing_key(&hash);
                match self.store().get(&key, usize::MAX) {
                    Ok(bytes) if blake3::hash(&bytes).as_bytes() == &hash => {}
                    Ok(_) => report.problem(&key, &Error::Malformed { what: "a listing" }),
                    Err(error) => report.problem(&key, &error),
                }
            }
            report.snapshots += u64::from(report.problems.len() == before);
        }
        report.chunks = live.ids.len() as u64;
        Ok(())
    }

    fn verify_pack(&self, pack: &Pack, chunks: &mut Chunks<'_>) -> Result<(), Error> {
        let key = pack_key(&pack.hash);
        let most = usize::try_from(MAX_PACK_BYTES).unwrap_or(usize::MAX);
        let bytes = self.store().get(&key, most)?;
        if blake3::hash(&bytes).as_bytes() != &pack.hash {
            return Err(Error::NotAuthentic { what: format!("`{key}`") });
        }
        let mut offset = pack.header.len();
        for head in &pack.chunks {
            let end = offset + head.sealed_bytes as usize;
            let sealed = bytes.get(offset..end).ok_or_else(|| Error::Truncated(key.clone()))?;
            chunks.check(pack, head, sealed)?;
            offset = end;
        }
        Ok(())
    }
}

/// Whether a piece of a file is where the manifest says, with the length that the file says.
fn check_piece(manifest: &Manifest, piece: &Piece) -> Result<(), Error> {
    let Piece::Chunk { bytes, id } = piece else { return Ok(()) };
    let location = manifest.locate(id)?;
    let same = u64::from(location.head.plain_bytes) == *bytes;
    if same { Ok(()) } else { Err(Error::Malformed { what: "a chunk's length" }) }
}
