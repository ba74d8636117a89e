//! Laws that hold for any bytes that a store may serve, behind a cipher or not. The fuzz targets
//! and the replay of their corpus call them. Beside them stand objects that a hostile writer can
//! put into a vault, for the tests that do so.

use crate::format::chunk::{ChunkCompression, ChunkDescriptor, ChunkHead, ChunkId, ChunkKind};
use crate::format::config::VaultConfig;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::index::{index_key, write_indexes};
use crate::format::pack::{PackRecord, pack_key, read_trailer, seal_trailer, write_trailer};
use crate::format::page::{
    FilePiece, PageDraft, SnapshotEntry, read_list, read_page, write_pieces,
};
use crate::format::roster::VaultRoster;
use crate::format::rotation::{SealedRotation, rotation_key};
use crate::format::snapshot::{
    self, SealedSnapshotLink, SnapshotBody, SnapshotLink, read_body, snapshot_key,
};
use crate::keys::{KeySlot, NewSecret, slot_key};
use crate::put::{ChunkSealer, now_ns};
use crate::vault::Vault;
use crate::wire::from_hex;
use crate::{Error, SnapshotCounts};

/// Reads what follows the first byte as the part of a vault that this byte names.
///
/// # Panics
/// If what was read is not written again as the same.
pub fn part(bytes: &[u8]) {
    let Some((what, bytes)) = bytes.split_first() else { return };
    match what % 8 {
        0 => drop(VaultConfig::read(bytes)),
        1 => slot(bytes),
        2 => snapshot(bytes),
        3 => drop(read_body(bytes)),
        4 => {
            if let Ok(chunks) = read_trailer(bytes) {
                assert_eq!(write_trailer(&chunks), bytes);
            }
        }
        5 => {
            if let Ok(pieces) = read_list(bytes) {
                let mut written = vec![];
                write_pieces(&mut written, &pieces);
                assert_eq!(written, bytes);
            }
        }
        6 => page(bytes),
        _ => roster(bytes),
    }
}

fn roster(bytes: &[u8]) {
    if let (Some(vault), Some(number)) = (array(bytes, 8), array(bytes, 24)) {
        let key = crate::format::roster::roster_key(u64::from_le_bytes(number));
        drop(VaultRoster::read(&key, bytes, &vault, &[[0; 32]]));
        let generation = bytes.get(7).copied().unwrap_or_default();
        drop(SealedRotation::read(&rotation_key(generation), bytes.to_vec(), &vault));
    }
}

/// A chunk of a pack that lies: `plain` under any id.
#[derive(Debug, Clone)]
pub struct HostileChunk {
    /// 0 data, 1 a page, 2 a list.
    pub kind: u8,
    /// The id that it claims; none is the true one.
    pub id: Option<ChunkId>,
    /// The plaintext that is sealed.
    pub plain: Vec<u8>,
}

fn chunk_kind(kind: u8) -> ChunkKind {
    match kind {
        1 => ChunkKind::Page,
        2 => ChunkKind::List,
        _ => ChunkKind::Data,
    }
}

/// The id that a key of the vault, a writer's too, gives a content.
pub fn id(vault: &Vault, kind: u8, plain: &[u8]) -> ChunkId {
    vault.naming().id(chunk_kind(kind), plain)
}

/// The plaintext of a page.
pub fn page_of(entries: &[SnapshotEntry]) -> Vec<u8> {
    let mut draft = PageDraft::default();
    entries.iter().for_each(|entry| draft.push(entry));
    draft.plaintext()
}

/// The plaintext of a list.
pub fn list_of(pieces: &[FilePiece]) -> Vec<u8> {
    let mut out = Vec::new();
    write_pieces(&mut out, pieces);
    out
}

/// Puts a hostile pack into the store; gives its size.
///
/// # Errors
/// Errors of the store.
pub fn plant_pack(vault: &Vault, lies: &[HostileChunk]) -> Result<u64, Error> {
    let header = ObjectHeader { kind: ObjectKind::Pack, ..vault.header() }.write();
    let mut sealer = ChunkSealer::new(vault.naming(), vault.sealing());
    let mut out = header.clone();
    let mut heads = Vec::new();
    for lie in lies {
        let kind = chunk_kind(lie.kind);
        let head = ChunkHead {
            id: lie.id.unwrap_or_else(|| id(vault, lie.kind, &lie.plain)),
            descriptor: ChunkDescriptor { kind, compression: ChunkCompression::Zstd(3) },
            plain_bytes: lie.plain.len() as u32,
            sealed_bytes: 0,
        };
        heads.push(sealer.append(head, &lie.plain, &mut out)?);
    }
    let end = seal_trailer(vault.sealing(), &header, out.len() as u64, &heads)?;
    out.extend_from_slice(&end);
    vault.store().put(&pack_key(blake3::hash(&out).as_bytes()), &out)?;
    Ok(out.len() as u64)
}

/// Puts an index into the store that says a pack holds chunks of these ids.
///
/// # Errors
/// Errors of the store.
pub fn plant_index(vault: &Vault, pack: &str, size: u64, ids: &[ChunkId]) -> Result<(), Error> {
    let hash = pack.rsplit('/').next().and_then(from_hex).unwrap_or_default();
    let kind = ChunkKind::Data;
    let descriptor = ChunkDescriptor { kind, compression: ChunkCompression::None };
    let chunks = ids.iter();
    let chunks =
        chunks.map(|&id| ChunkHead { id, descriptor, plain_bytes: 1, sealed_bytes: 17 }).collect();
    // A header as the owner's packs have it.
    let header = ObjectHeader { kind: ObjectKind::Pack, wrapped: None, ..vault.header() }.write();
    let lie = PackRecord { hash, size, header, chunks };
    for object in write_indexes(vault.sealing(), &vault.header(), &[lie])? {
        vault.store().put(&index_key(blake3::hash(&object).as_bytes()), &object)?;
    }
    Ok(())
}

/// Puts a slot into the store that opens for an identity, with a main key of a stranger's own.
///
/// # Errors
/// Errors of the store.
pub fn plant_slot(vault: &Vault, identity: &sealane_group::PublicKey) -> Result<String, Error> {
    let main = crate::keys::VaultSecretKey::new([7; 32]);
    let secret = NewSecret::Identity(identity);
    // It comes before every other one by its name.
    loop {
        let (id, object) = KeySlot::write(vault.vault_id(), &main, "", &secret)?;
        if id.first() == Some(&0) {
            vault.store().put(&slot_key(&id), &object)?;
            return Ok(slot_key(&id));
        }
    }
}

/// A link as somebody with a writer's key can make it.
#[derive(Debug, Clone, Default)]
pub struct FalseLink {
    /// Its number.
    pub number: u64,
    /// The hash that it names of the link before it.
    pub previous: [u8; 32],
    /// Snapshots that it says were removed.
    pub removed: Vec<(u64, [u8; 32])>,
    /// Its pages.
    pub pages: Vec<ChunkId>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// Puts a link into the store, signed with the vault's key, which may be a writer's.
///
/// # Errors
/// Errors of the store.
pub fn plant_link(vault: &Vault, link: FalseLink) -> Result<(), Error> {
    let body = SnapshotBody {
        prune: false,
        time_ns: now_ns(),
        source: "a writer".to_owned(),
        note: String::new(),
        counts: SnapshotCounts::default(),
        compression: ChunkCompression::None,
        listing: None,
        pages: link.pages,
        paths: Vec::new(),
        tags: link.tags,
        roster: 0,
        rotations: Vec::new(),
    };
    let FalseLink { number, previous, removed, .. } = link;
    let signed = SnapshotLink { number, previous, signer: vault.signer_id(), removed };
    let header = ObjectHeader { kind: ObjectKind::Snapshot, ..vault.header() };
    let object = snapshot::write(&header, &signed, &body, vault.sealing(), vault.signer())?;
    vault.store().put(&snapshot_key(number), &object).map(|_| ())
}

fn slot(bytes: &[u8]) {
    // Its vault and id stand in it, so that more than the comparison with the key is reached.
    if let (Some(vault), Some(id)) = (array(bytes, 8), array(bytes, 24)) {
        drop(KeySlot::read(&slot_key(&id), bytes.to_vec(), &vault));
    }
}

fn snapshot(bytes: &[u8]) {
    if let (Some(vault), Some(number)) = (array(bytes, 8), array(bytes, 24)) {
        drop(SealedSnapshotLink::read(u64::from_le_bytes(number), bytes.to_vec(), &vault));
    }
}

/// A writer may share less of a path than it could and may add what later versions know, so bytes
/// may differ; entries may not.
fn page(bytes: &[u8]) {
    let Ok(entries) = read_page(bytes) else { return };
    let mut draft = PageDraft::default();
    entries.iter().for_each(|entry| draft.push(entry));
    let again = read_page(&draft.plaintext()).ok();
    assert_eq!(again.as_ref(), Some(&entries));
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
