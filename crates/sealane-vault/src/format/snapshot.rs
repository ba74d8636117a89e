use super::chunk::{ChunkCompression, ChunkDescriptor, ChunkId, ID_BYTES};
use super::header::{ObjectHeader, ObjectKind, VaultId};
use super::pack::ObjectHash;
use crate::Error;
use crate::keys::{VaultSealingKeys, VaultSigner, verify};
use crate::limits::{
    MAX_HOST_BYTES, MAX_NOTE_BYTES, MAX_PATH_BYTES, MAX_ROTATION_BYTES, MAX_ROTATIONS,
    MAX_SNAPSHOT_BYTES, MAX_SNAPSHOT_PATHS, MAX_TAG_BYTES, MAX_TAGS,
};
use crate::wire::{VaultFieldReader, put_bytes, put_varint};

/// The slot id of a signer; zeros for the owner.
pub(crate) type SignerId = [u8; 8];

/// The owner, in the link with which it hands over to the next main key.
pub(crate) const HANDOVER: SignerId = [0xff; 8];

pub(crate) fn snapshot_key(number: u64) -> String {
    format!("snapshots/{number:010}")
}

/// The number that a key of `snapshots/` names.
pub(crate) fn snapshot_number(key: &str) -> Option<u64> {
    let digits = key.strip_prefix("snapshots/").filter(|digits| digits.len() == 10)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The extension that names where the files were.
const PATHS: u64 = 1;
/// The extension that names the owner's list of slots.
const ROSTER: u64 = 2;
/// The extension that names tags.
const TAGS: u64 = 3;
/// The extension of a hand-over that holds copies of the changes of the main key.
const ROTATIONS: u64 = 4;

/// The counts of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotCounts {
    /// Files, hard links counted each.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Chunks that the vault did not have.
    pub new_chunks: u64,
    /// Their bytes, before compression.
    pub new_bytes: u64,
    /// Bytes of the packs that were written.
    pub stored_bytes: u64,
}

/// A link of the chain, before it is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotBody {
    pub(crate) prune: bool,
    pub(crate) time_ns: i64,
    pub(crate) source: String,
    pub(crate) note: String,
    pub(crate) counts: SnapshotCounts,
    pub(crate) compression: ChunkCompression,
    pub(crate) listing: Option<ObjectHash>,
    pub(crate) pages: Vec<ChunkId>,
    /// Where on its host the files were; empty in snapshots that do not say it.
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) tags: Vec<String>,
    /// The number of the owner's list of slots when this was written; 0 where none was.
    pub(crate) roster: u64,
    /// In a hand-over a second copy of all changes of the main key, without which the vault is
    /// closed. Each begins with its generation, so that a sorted list is in their order.
    pub(crate) rotations: Vec<Vec<u8>>,
}

/// The part of a link that anyone can read and check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotLink {
    pub(crate) number: u64,
    pub(crate) previous: ObjectHash,
    pub(crate) signer: SignerId,
    /// In a hand-over the links that the new owner takes over, and first, with number 0, the
    /// rotation object. In others of the owner the links that were removed.
    pub(crate) removed: Vec<(u64, ObjectHash)>,
}

impl SnapshotLink {
    pub(crate) fn is_owners(&self) -> bool {
        [SignerId::default(), HANDOVER].contains(&self.signer)
    }
}

/// A link as it was read.
#[derive(Debug, Clone)]
pub(crate) struct SealedSnapshotLink {
    pub(crate) header: ObjectHeader,
    pub(crate) link: SnapshotLink,
    pub(crate) hash: ObjectHash,
    bytes: Vec<u8>,
    record: std::ops::Range<usize>,
}

/// A whole snapshot object.
pub(crate) fn write(
    header: &ObjectHeader,
    link: &SnapshotLink,
    body: &SnapshotBody,
    sealing: &VaultSealingKeys,
    signer: &VaultSigner,
) -> Result<Vec<u8>, Error> {
    let mut out = header.write();
    out.extend_from_slice(&link.number.to_le_bytes());
    out.extend_from_slice(&link.previous);
    out.extend_from_slice(&link.signer);
    out.extend_from_slice(&(link.removed.len() as u32).to_le_bytes());
    for (number, hash) in &link.removed {
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(hash);
    }
    let record = sealing.seal_record(&out, &write_body(body))?;
    out.extend_from_slice(&record);
    signer.sign(&mut out)?;
    if out.len() > MAX_SNAPSHOT_BYTES || body.paths.len() > MAX_SNAPSHOT_PATHS {
        return Err(Error::TooLarge { what: snapshot_key(link.number) });
    }
    Ok(out)
}

fn write_body(body: &SnapshotBody) -> Vec<u8> {
    let mut out = vec![1, u8::from(body.prune)];
    out.extend_from_slice(&body.time_ns.to_le_bytes());
    put_bytes(&mut out, body.source.as_bytes());
    put_bytes(&mut out, body.note.as_bytes());
    let counts = &body.counts;
    let rows = [counts.files, counts.folders, counts.links, counts.bytes];
    let new = [counts.new_chunks, counts.new_bytes, counts.stored_bytes];
    rows.iter().chain(&new).for_each(|&count| put_varint(&mut out, count));
    let kind = super::chunk::ChunkKind::Data;
    out.push(ChunkDescriptor { kind, compression: body.compression }.to_byte());
    put_bytes(&mut out, body.listing.as_ref().map_or(&[][..], |hash| hash));
    put_varint(&mut out, body.pages.len() as u64);
    body.pages.iter().for_each(|id| out.extend_from_slice(&id.0));
    put_list(&mut out, PATHS, &body.paths);
    if body.roster > 0 {
        let mut number = Vec::new();
        put_varint(&mut number, body.roster);
        put_varint(&mut out, ROSTER);
        put_bytes(&mut out, &number);
    }
    put_list(&mut out, TAGS, &body.tags);
    put_list(&mut out, ROTATIONS, &body.rotations);
    out
}

/// An extension that is a list; an empty one is left out.
fn put_list(out: &mut Vec<u8>, tag: u64, list: &[impl AsRef<[u8]>]) {
    if list.is_empty() {
        return;
    }
    let mut value = Vec::new();
    put_varint(&mut value, list.len() as u64);
    list.iter().for_each(|item| put_bytes(&mut value, item.as_ref()));
    put_varint(out, tag);
    put_bytes(out, &value);
}

/// The most that a list may have, lest a writer asks for more memory than its link is long.
#[derive(Clone, Copy)]
struct SnapshotListLimit {
    items: usize,
    /// Of each item.
    bytes: usize,
}

/// The items of such an extension, sorted, each once. A snapshot whose list is not one is read as
/// one without, so that what it keeps stays readable.
fn read_list(value: &[u8], most: SnapshotListLimit) -> Vec<Vec<u8>> {
    let mut reader = VaultFieldReader::new("a snapshot", value);
    let mut read = || -> Result<Vec<Vec<u8>>, Error> {
        let count = reader.length(most.items)?;
        (0..count).map(|_| Ok(reader.bytes(most.bytes)?.to_vec())).collect()
    };
    let mut list = read().unwrap_or_default();
    list.sort();
    list.dedup();
    list
}

impl SnapshotBody {
    fn extend(&mut self, tag: u64, value: &[u8]) -> Result<(), Error> {
        match tag {
            PATHS => {
                self.paths = read_list(
                    value,
                    SnapshotListLimit { items: MAX_SNAPSHOT_PATHS, bytes: MAX_PATH_BYTES },
                )
            }
            TAGS => {
                let tags =
                    read_list(value, SnapshotListLimit { items: MAX_TAGS, bytes: MAX_TAG_BYTES })
                        .into_iter();
                self.tags = tags.filter_map(|tag| String::from_utf8(tag).ok()).collect();
            }
            ROSTER => self.roster = VaultFieldReader::new("a snapshot", value).varint()?,
            ROTATIONS => {
                let items = usize::from(MAX_ROTATIONS);
                self.rotations =
                    read_list(value, SnapshotListLimit { items, bytes: MAX_ROTATION_BYTES });
            }
            // A later version of the format may have added it.
            _ => {}
        }
        Ok(())
    }
}

impl SealedSnapshotLink {
    /// Reads what needs no key, and checks that the object is what its key says.
    pub(crate) fn read(
        number: u64,
        bytes: Vec<u8>,
        vault: &VaultId,
    ) -> Result<SealedSnapshotLink, Error> {
        let key = snapshot_key(number);
        let mut reader = VaultFieldReader::new("a snapshot", &bytes);
        let header = ObjectHeader::read(&mut reader, &key, ObjectKind::Snapshot, Some(vault))?;
        let found = reader.u64()?;
        let previous = reader.array()?;
        let signer = reader.array()?;
        let count = reader.u32()? as usize;
        if found != number || count > reader.left() / 40 {
            return Err(reader.malformed());
        }
        let mut removed = Vec::with_capacity(count);
        for _ in 0..count {
            removed.push((reader.u64()?, reader.array()?));
        }
        let left = reader.left().checked_sub(64).ok_or(reader.malformed())?;
        let start = bytes.len() - reader.left();
        let hash = *blake3::hash(&bytes).as_bytes();
        let link = SnapshotLink { number, previous, signer, removed };
        Ok(SealedSnapshotLink { header, link, hash, record: start..start + left, bytes })
    }

    pub(crate) fn check_signature(&self, key: &[u8; 32]) -> Result<(), Error> {
        verify(key, &snapshot_key(self.link.number), &self.bytes)
    }

    /// Whether the link would verify if it named this signer.
    pub(crate) fn verifies_as(&self, signer: SignerId, key: &[u8; 32]) -> bool {
        let mut bytes = self.bytes.clone();
        let at = self.header.write().len() + 8 + 32;
        let Some(place) = bytes.get_mut(at..at + signer.len()) else { return false };
        place.copy_from_slice(&signer);
        verify(key, &snapshot_key(self.link.number), &bytes).is_ok()
    }

    pub(crate) fn open(&self, sealing: &VaultSealingKeys) -> Result<SnapshotBody, Error> {
        let head = self.bytes.get(..self.record.start).unwrap_or_default();
        let record = self.bytes.get(self.record.clone()).unwrap_or_default();
        let plaintext = sealing.open_record(&snapshot_key(self.link.number), head, record)?;
        read_body(&plaintext)
    }
}

pub(crate) fn read_body(plaintext: &[u8]) -> Result<SnapshotBody, Error> {
    let mut reader = VaultFieldReader::new("a snapshot", plaintext);
    let (version, what) = (reader.u8()?, reader.u8()?);
    if version != 1 || what > 1 {
        return Err(reader.malformed());
    }
    let time_ns = reader.i64()?;
    let source = text(reader.bytes(MAX_HOST_BYTES)?)?;
    let note = text(reader.bytes(MAX_NOTE_BYTES)?)?;
    let counts = SnapshotCounts {
        files: reader.varint()?,
        folders: reader.varint()?,
        links: reader.varint()?,
        bytes: reader.varint()?,
        new_chunks: reader.varint()?,
        new_bytes: reader.varint()?,
        stored_bytes: reader.varint()?,
    };
    let descriptor = ChunkDescriptor::from_byte(reader.u8()?).ok_or(reader.malformed())?;
    let listing = match reader.bytes(32)? {
        [] => None,
        hash => Some(hash.try_into().map_err(|_| reader.malformed())?),
    };
    let count = reader.length(reader.left() / ID_BYTES)?;
    let mut pages = Vec::with_capacity(count);
    for _ in 0..count {
        pages.push(ChunkId(reader.array()?));
    }
    let mut body = SnapshotBody {
        prune: what == 1,
        time_ns,
        source,
        note,
        counts,
        compression: descriptor.compression,
        listing,
        pages,
        paths: Vec::new(),
        tags: Vec::new(),
        roster: 0,
        rotations: Vec::new(),
    };
    while reader.left() > 0 {
        let tag = reader.varint()?;
        let value = reader.bytes(reader.left())?;
        body.extend(tag, value)?;
    }
    Ok(body)
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    let text = str::from_utf8(bytes).map_err(|_| Error::Malformed { what: "a snapshot" })?;
    Ok(text.to_owned())
}
