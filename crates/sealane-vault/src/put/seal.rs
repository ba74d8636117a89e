use super::claim::ChunkClaims;
use super::{PutJob, PutStep};
use crate::Error;
use crate::compress::ChunkCompressor;
use crate::format::chunk::{ChunkCompression, ChunkDescriptor, ChunkHead, ChunkKind, TAG_BYTES};
use crate::keys::{VaultNamingKeys, VaultSealingKeys};

/// Names, compresses and seals chunks. Each thread has its own.
pub(crate) struct ChunkSealer<'a> {
    naming: &'a VaultNamingKeys,
    sealing: &'a VaultSealingKeys,
    compressor: ChunkCompressor,
}

impl<'a> ChunkSealer<'a> {
    pub(crate) fn new(naming: &'a VaultNamingKeys, sealing: &'a VaultSealingKeys) -> Self {
        Self { naming, sealing, compressor: ChunkCompressor::new() }
    }

    /// Seals all chunks of a job that nobody has.
    pub(super) fn job(
        &mut self,
        job: &mut PutJob,
        claims: &ChunkClaims,
        compression: ChunkCompression,
    ) -> Result<(), Error> {
        job.sealed.clear();
        for step in &mut job.steps {
            let PutStep::Chunk { plain, id, sealed } = step else { continue };
            let plaintext = job.plain.get(plain.clone()).unwrap_or_default();
            *id = self.naming.id(ChunkKind::Data, plaintext);
            if !claims.claim(id, job.number) {
                continue;
            }
            let from = job.sealed.len();
            let head = ChunkHead {
                id: *id,
                descriptor: ChunkDescriptor { kind: ChunkKind::Data, compression },
                plain_bytes: plaintext.len() as u32,
                sealed_bytes: 0,
            };
            let head = self.append(head, plaintext, &mut job.sealed)?;
            *sealed = Some((head, from..job.sealed.len()));
        }
        Ok(())
    }

    /// Appends the sealed form of a chunk that is named already, and completes what is said of it.
    pub(crate) fn append(
        &mut self,
        mut head: ChunkHead,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ChunkHead, Error> {
        let from = out.len();
        let wanted = head.descriptor.compression;
        head.descriptor.compression = self.compressor.append(wanted, plaintext, out)?;
        head.sealed_bytes = (out.len() - from + TAG_BYTES) as u32;
        self.sealing.seal_chunk(&head, out, from)?;
        Ok(head)
    }

    /// Names and seals a plaintext of another kind than data, always with Zstandard level 3.
    pub(super) fn record(
        &mut self,
        kind: ChunkKind,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ChunkHead, Error> {
        let head = ChunkHead {
            id: self.naming.id(kind, plaintext),
            descriptor: ChunkDescriptor { kind, compression: ChunkCompression::Zstd(3) },
            plain_bytes: plaintext.len() as u32,
            sealed_bytes: 0,
        };
        self.append(head, plaintext, out)
    }

    pub(super) fn naming(&self) -> &'a VaultNamingKeys {
        self.naming
    }

    pub(super) fn sealing(&self) -> &'a VaultSealingKeys {
        self.sealing
    }
}
