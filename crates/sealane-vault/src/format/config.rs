use super::header::{ObjectHeader, ObjectKind, VaultId};
use crate::Error;
use crate::keys::{VaultSigner, verify};
use crate::wire::VaultFieldReader;

pub(crate) const CONFIG_KEY: &str = "config";

/// Chunk sizes of every vault of this version: least, average, greatest.
pub(crate) const CHUNK_SIZES: [u32; 3] = [256 << 10, 1 << 20, 4 << 20];

/// Whether names can be read without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VaultMetadata {
    /// Everything is sealed.
    #[default]
    Sealed,
    /// Each snapshot comes with a readable listing.
    Plain,
}

impl VaultMetadata {
    pub(crate) fn from_byte(byte: u8) -> Option<VaultMetadata> {
        match byte {
            0 => Some(VaultMetadata::Sealed),
            1 => Some(VaultMetadata::Plain),
            _ => None,
        }
    }
}

/// The properties that are fixed when the vault is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VaultConfig {
    pub(crate) vault: VaultId,
    pub(crate) metadata: VaultMetadata,
    pub(crate) created_ns: i64,
    pub(crate) owner: [u8; 32],
}

impl VaultConfig {
    pub(crate) fn write(&self, signer: &VaultSigner) -> Result<Vec<u8>, Error> {
        let header = ObjectHeader::owners(ObjectKind::Config, &self.vault, 0);
        let mut out = header.write();
        CHUNK_SIZES.iter().for_each(|size| out.extend_from_slice(&size.to_le_bytes()));
        out.push(self.metadata as u8);
        out.extend_from_slice(&self.created_ns.to_le_bytes());
        out.extend_from_slice(&self.owner);
        signer.sign(&mut out)?;
        Ok(out)
    }

    /// Reads a config that its own key signs. Whether that is the owner's, is known only to who
    /// holds the main key.
    pub(crate) fn read(bytes: &[u8]) -> Result<VaultConfig, Error> {
        let mut reader = VaultFieldReader::new("the config", bytes);
        let header = ObjectHeader::read(&mut reader, CONFIG_KEY, ObjectKind::Config, None)?;
        for size in CHUNK_SIZES {
            if reader.u32()? != size {
                return Err(reader.malformed());
            }
        }
        let metadata = VaultMetadata::from_byte(reader.u8()?).ok_or(reader.malformed())?;
        let created_ns = reader.i64()?;
        let owner = reader.array()?;
        reader.take(64)?;
        reader.end()?;
        if header.wrapped.is_some() {
            return Err(reader.malformed());
        }
        verify(&owner, CONFIG_KEY, bytes)?;
        Ok(VaultConfig { vault: header.vault, metadata, created_ns, owner })
    }
}
