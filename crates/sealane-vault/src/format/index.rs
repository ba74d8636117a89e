use super::header::{ObjectHeader, ObjectKind, VaultId};
use super::pack::{ObjectHash, PackRecord, read_trailer, write_trailer};
use crate::Error;
use crate::keys::VaultSealingKeys;
use crate::limits::{MAX_INDEX_BYTES, MAX_PACK_BYTES, MAX_TRAILER_BYTES};
use crate::wire::{VaultFieldReader, hex, put_bytes, put_varint};

pub(crate) fn index_key(hash: &ObjectHash) -> String {
    format!("index/{}", hex(hash))
}

/// The index objects of these packs: one, or as many as their trailers need.
pub(crate) fn write_indexes(
    sealing: &VaultSealingKeys,
    header: &ObjectHeader,
    packs: &[PackRecord],
) -> Result<Vec<Vec<u8>>, Error> {
    let mut objects = Vec::new();
    let mut rows = Vec::new();
    let mut count = 0;
    for pack in packs {
        let mut row = pack.hash.to_vec();
        put_varint(&mut row, pack.size);
        put_bytes(&mut row, &pack.header);
        put_bytes(&mut row, &write_trailer(&pack.chunks));
        if count > 0 && rows.len() + row.len() > MAX_INDEX_BYTES - (1 << 16) {
            objects.push(seal(sealing, header, count, &std::mem::take(&mut rows))?);
            count = 0;
        }
        rows.append(&mut row);
        count += 1;
    }
    if count > 0 {
        objects.push(seal(sealing, header, count, &rows)?);
    }
    Ok(objects)
}

fn seal(
    sealing: &VaultSealingKeys,
    header: &ObjectHeader,
    count: u64,
    rows: &[u8],
) -> Result<Vec<u8>, Error> {
    let mut out = ObjectHeader { kind: ObjectKind::Index, ..header.clone() }.write();
    let mut plaintext = Vec::with_capacity(rows.len() + 10);
    put_varint(&mut plaintext, count);
    plaintext.extend_from_slice(rows);
    let record = sealing.seal_record(&out, &plaintext)?;
    out.extend_from_slice(&record);
    Ok(out)
}

/// The packs that an index object names.
pub(crate) fn read_index(
    key: &str,
    bytes: &[u8],
    vault: &VaultId,
    open: impl FnOnce(&ObjectHeader) -> Result<std::sync::Arc<VaultSealingKeys>, Error>,
) -> Result<Vec<PackRecord>, Error> {
    let mut reader = VaultFieldReader::new("an index", bytes);
    let header = ObjectHeader::read(&mut reader, key, ObjectKind::Index, Some(vault))?;
    let (head, record) = bytes.split_at_checked(bytes.len() - reader.left()).unwrap_or_default();
    let plaintext = open(&header)?.open_record(key, head, record)?;
    let mut reader = VaultFieldReader::new("an index", &plaintext);
    let count = reader.length(plaintext.len() / 32)?;
    let mut packs = Vec::new();
    for _ in 0..count {
        let hash = reader.array()?;
        let size = reader.varint()?;
        let header = reader.bytes(2048)?.to_vec();
        let chunks = read_trailer(reader.bytes(MAX_TRAILER_BYTES)?)?;
        let sealed: u64 = chunks.iter().map(|chunk| u64::from(chunk.sealed_bytes)).sum();
        if size > MAX_PACK_BYTES || header.len() as u64 + sealed > size {
            return Err(reader.malformed());
        }
        packs.push(PackRecord { hash, size, header, chunks });
    }
    reader.end()?;
    Ok(packs)
}
