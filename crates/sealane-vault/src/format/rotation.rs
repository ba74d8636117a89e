use sealane_group::PublicKey;
use zeroize::Zeroizing;

use super::config::VaultMetadata;
use super::header::{ObjectHeader, ObjectKind, VaultId};
use super::pack::ObjectHash;
use super::roster::{VaultRosterSlot, read_slots, write_slots};
use crate::Error;
use crate::keys::{VaultSealingKeys, VaultSecretKey, VaultSigner, verify};
use crate::limits::{MAX_ROTATION_BYTES, MAX_ROTATIONS};
use crate::wire::VaultFieldReader;

pub(crate) const ROTATION_PREFIX: &str = "rotations/";

pub(crate) fn rotation_key(generation: u8) -> String {
    format!("{ROTATION_PREFIX}{generation:03}")
}

/// The record of a change of the main key: the owner before signs the owner after.
#[derive(Debug, Clone)]
pub(crate) struct VaultRotation {
    /// The generation that begins with it.
    pub(crate) generation: u8,
    pub(crate) before: [u8; 32],
    pub(crate) after: [u8; 32],
    /// The new owner's identity, to which writers seal.
    pub(crate) identity: PublicKey,
    /// As the config has it, which whoever has the first main key can write anew.
    pub(crate) metadata: VaultMetadata,
    /// The number of the list of slots that `slots` follows.
    pub(crate) list: u64,
    /// The slots from then on.
    pub(crate) slots: Vec<VaultRosterSlot>,
}

/// Both owners' keys at a change.
pub(crate) struct RotationSigners<'a> {
    pub(crate) before: &'a VaultSigner,
    pub(crate) after: &'a VaultSigner,
}

/// A rotation as it lies in the store.
#[derive(Debug, Clone)]
pub(crate) struct SealedRotation {
    pub(crate) rotation: VaultRotation,
    pub(crate) hash: ObjectHash,
    bytes: Vec<u8>,
    record: std::ops::Range<usize>,
}

impl VaultRotation {
    /// The whole object. `before` are the main keys of all generations before, oldest first, which
    /// whoever has the new one needs for what lies there.
    pub(crate) fn write(
        &self,
        vault: &VaultId,
        before: &[VaultSecretKey],
        sealing: &VaultSealingKeys,
        signers: &RotationSigners<'_>,
    ) -> Result<Vec<u8>, Error> {
        let mut out = ObjectHeader::owners(ObjectKind::Rotation, vault, self.generation).write();
        out.extend_from_slice(&self.before);
        out.extend_from_slice(&self.after);
        out.extend_from_slice(&self.identity.to_bytes());
        out.push(self.metadata as u8);
        out.extend_from_slice(&self.list.to_le_bytes());
        write_slots(&mut out, &self.slots);
        let mut keys = Zeroizing::new(Vec::with_capacity(before.len() * 32));
        before.iter().for_each(|key| keys.extend_from_slice(key.as_slice()));
        let record = sealing.seal_record(&out, &keys)?;
        out.extend_from_slice(&record);
        signers.after.sign(&mut out)?;
        signers.before.sign(&mut out)?;
        if out.len() > MAX_ROTATION_BYTES {
            return Err(Error::TooLarge { what: rotation_key(self.generation) });
        }
        Ok(out)
    }
}

impl SealedRotation {
    /// Reads a rotation that both of its owners signed.
    pub(crate) fn read(
        key: &str,
        bytes: Vec<u8>,
        vault: &VaultId,
    ) -> Result<SealedRotation, Error> {
        let mut reader = VaultFieldReader::new("a change of the main key", &bytes);
        let header = ObjectHeader::read(&mut reader, key, ObjectKind::Rotation, Some(vault))?;
        let generation = header.generation;
        let known = (1..=MAX_ROTATIONS).contains(&generation) && rotation_key(generation) == key;
        if header.wrapped.is_some() || !known {
            return Err(reader.malformed());
        }
        let (before, after) = (reader.array()?, reader.array()?);
        let identity = reader.take(PublicKey::BYTES)?;
        let identity = PublicKey::from_bytes(identity).map_err(|_| reader.malformed())?;
        let metadata = VaultMetadata::from_byte(reader.u8()?).ok_or(reader.malformed())?;
        let list = reader.u64()?;
        let slots = read_slots(&mut reader)?;
        let start = bytes.len() - reader.left();
        let end = bytes.len().checked_sub(128).filter(|end| *end >= start);
        let end = end.ok_or(reader.malformed())?;
        verify(&before, key, &bytes)?;
        verify(&after, key, bytes.get(..end + 64).unwrap_or_default())?;
        let rotation = VaultRotation { generation, before, after, identity, metadata, list, slots };
        let hash = *blake3::hash(&bytes).as_bytes();
        Ok(SealedRotation { rotation, hash, bytes, record: start..end })
    }

    /// The whole object.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The main keys before, oldest first.
    pub(crate) fn open(&self, sealing: &VaultSealingKeys) -> Result<Vec<VaultSecretKey>, Error> {
        let key = rotation_key(self.rotation.generation);
        let head = self.bytes.get(..self.record.start).unwrap_or_default();
        let record = self.bytes.get(self.record.clone()).unwrap_or_default();
        let keys = Zeroizing::new(sealing.open_record(&key, head, record)?);
        let malformed = Error::Malformed { what: "a change of the main key" };
        let (keys, []) = keys.as_chunks::<32>() else { return Err(malformed) };
        if keys.len() != usize::from(self.rotation.generation) {
            return Err(malformed);
        }
        Ok(keys.iter().map(|key| VaultSecretKey::new(*key)).collect())
    }
}
