use super::chunk::{ChunkDescriptor, ChunkHead, ChunkId};
use super::header::{MAGIC, ObjectHeader, ObjectKind, VaultId};
use crate::Error;
use crate::keys::VaultSealingKeys;
use crate::limits::{MAX_CHUNK_BYTES, MAX_PACK_BYTES, MAX_TRAILER_BYTES};
use crate::store::VaultStore;
use crate::wire::{VaultFieldReader, hex, put_varint};

/// Bytes behind the trailer: its length, and the magic.
pub(crate) const FOOTER_BYTES: usize = 8;

/// BLAKE3 of an object's bytes.
pub(crate) type ObjectHash = [u8; 32];

/// Where the pack of this hash lies.
pub(crate) fn pack_key(hash: &ObjectHash) -> String {
    let text = hex(hash);
    let (first, _) = text.split_at_checked(2).unwrap_or(("", ""));
    format!("packs/{first}/{text}")
}

/// A pack as an index and the manifest know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackRecord {
    pub(crate) hash: ObjectHash,
    pub(crate) size: u64,
    pub(crate) header: Vec<u8>,
    pub(crate) chunks: Vec<ChunkHead>,
}

impl PackRecord {
    /// The main key that sealed it.
    pub(crate) fn generation(&self) -> u8 {
        self.header.get(7).copied().unwrap_or(0)
    }
}

/// A trailer's plaintext.
pub(crate) fn write_trailer(chunks: &[ChunkHead]) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunks.len() * 32 + 10);
    put_varint(&mut out, chunks.len() as u64);
    for chunk in chunks {
        out.extend_from_slice(&chunk.id.0);
        out.push(chunk.descriptor.to_byte());
        put_varint(&mut out, u64::from(chunk.plain_bytes));
        put_varint(&mut out, u64::from(chunk.sealed_bytes));
    }
    out
}

/// Reads a trailer's plaintext.
pub(crate) fn read_trailer(bytes: &[u8]) -> Result<Vec<ChunkHead>, Error> {
    let mut reader = VaultFieldReader::new("a trailer", bytes);
    // 27 bytes are the least that a chunk's row takes, so the count cannot ask for much memory.
    let count = reader.length(bytes.len() / 27)?;
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        let id = ChunkId(reader.array()?);
        let descriptor = ChunkDescriptor::from_byte(reader.u8()?).ok_or(reader.malformed())?;
        let plain_bytes = reader.length(MAX_CHUNK_BYTES)? as u32;
        let sealed_bytes = reader.length(MAX_CHUNK_BYTES + 16)? as u32;
        chunks.push(ChunkHead { id, descriptor, plain_bytes, sealed_bytes }.check()?);
    }
    reader.end()?;
    Ok(chunks)
}

/// The end of a pack: the sealed trailer and the footer.
pub(crate) fn seal_trailer(
    sealing: &VaultSealingKeys,
    header: &[u8],
    offset: u64,
    chunks: &[ChunkHead],
) -> Result<Vec<u8>, Error> {
    let associated = [header, &offset.to_le_bytes()].concat();
    let mut out = sealing.seal_record(&associated, &write_trailer(chunks))?;
    let length = out.len() as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(MAGIC);
    Ok(out)
}

/// A pack's header, and where its trailer is.
pub(crate) struct PackEnds {
    hash: ObjectHash,
    size: u64,
    header: ObjectHeader,
    header_bytes: Vec<u8>,
    /// Where the trailer begins.
    offset: u64,
    /// The bytes of the trailer as the footer has them, which anybody may have written.
    length: usize,
}

impl PackEnds {
    /// Reads header and footer from the store, with ranges only.
    pub(crate) fn read(
        store: &VaultStore,
        hash: &ObjectHash,
        size: u64,
        vault: &VaultId,
    ) -> Result<PackEnds, Error> {
        let key = pack_key(hash);
        if size > MAX_PACK_BYTES {
            return Err(Error::TooLarge { what: key });
        }
        let front = usize::try_from(size).unwrap_or(usize::MAX).min(2048);
        let mut head = vec![0; front];
        store.get_range(&key, 0, &mut head)?;
        let mut reader = VaultFieldReader::new("a pack", &head);
        let header = ObjectHeader::read(&mut reader, &key, ObjectKind::Pack, Some(vault))?;
        let header_bytes = head.get(..front - reader.left()).unwrap_or_default().to_vec();

        let mut footer = [0; FOOTER_BYTES];
        let at = size.checked_sub(FOOTER_BYTES as u64).ok_or(Error::Truncated(key.clone()))?;
        store.get_range(&key, at, &mut footer)?;
        let mut reader = VaultFieldReader::new("a pack", &footer);
        let length = u64::from(reader.u32()?);
        if reader.array()? != *MAGIC {
            return Err(Error::Truncated(key));
        }
        let offset = at.checked_sub(length).filter(|&offset| offset >= header_bytes.len() as u64);
        let offset = offset.filter(|_| length <= MAX_TRAILER_BYTES as u64);
        let offset = offset.ok_or(Error::Malformed { what: "a pack" })?;
        let length = usize::try_from(length).unwrap_or(0);
        Ok(PackEnds { hash: *hash, size, header, header_bytes, offset, length })
    }

    /// The bytes that the trailer takes.
    pub(crate) fn trailer_bytes(&self) -> u64 {
        self.length as u64
    }

    /// Reads the trailer as it was sealed.
    pub(crate) fn trailer(&self, store: &VaultStore) -> Result<Vec<u8>, Error> {
        let mut record = vec![0; self.length];
        store.get_range(&pack_key(&self.hash), self.offset, &mut record)?;
        Ok(record)
    }

    /// Opens the trailer with the keys that `open` has for the header.
    pub(crate) fn open(
        self,
        record: Vec<u8>,
        open: impl FnOnce(&ObjectHeader) -> Result<std::sync::Arc<VaultSealingKeys>, Error>,
    ) -> Result<PackRecord, Error> {
        let PackEnds { hash, size, header, header_bytes, offset, .. } = self;
        let associated = [header_bytes.as_slice(), &offset.to_le_bytes()].concat();
        let trailer = open(&header)?.open_record(&pack_key(&hash), &associated, &record)?;
        // Both together would be the most that a hostile pack costs.
        drop(record);
        let chunks = read_trailer(&trailer)?;
        let sealed: u64 = chunks.iter().map(|chunk| u64::from(chunk.sealed_bytes)).sum();
        if header_bytes.len() as u64 + sealed != offset {
            return Err(Error::Malformed { what: "a pack" });
        }
        Ok(PackRecord { hash, size, header: header_bytes, chunks })
    }
}
