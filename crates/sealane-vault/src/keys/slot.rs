use argon2::{Algorithm, Argon2, Params, Version};
use sealane_group::{Identity, PublicKey, seal_to};
use zeroize::Zeroizing;

use super::{
    RecoveryCode, VaultSecretKey, VaultSigner, WriterKey, aead, derive, open_with, random,
    seal_with, verify,
};
use crate::Error;
use crate::format::header::{ObjectHeader, ObjectKind, VaultId};
use crate::keys::VaultSealingKeys;
use crate::limits::{MAX_KDF_LANES, MAX_KDF_MEMORY_KIB, MAX_KDF_PASSES, MAX_LABEL_BYTES};
use crate::wire::{VaultFieldReader, hex};

pub(crate) const SLOT_PREFIX: &str = "keys/";
const INFO: &[u8] = b"sealane vault v1 slot";

pub(crate) fn slot_key(id: &[u8; 8]) -> String {
    format!("{SLOT_PREFIX}{}", hex(id))
}

/// The cost of Argon2id. A higher cost makes unlocking and guessing slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes that can be filled at once.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    fn default() -> Self {
        Argon2Cost { memory_kib: 64 << 10, passes: 3, lanes: 4 }
    }
}

/// The secret that opens a slot.
pub enum SlotSecret<'a> {
    /// A passphrase, as bytes.
    Passphrase(&'a [u8]),
    /// A printed recovery code.
    Recovery(&'a RecoveryCode),
    /// Somebody's identity.
    Identity(&'a Identity),
    /// A writer's key, which adds and does not read.
    Writer(&'a WriterKey),
}

impl SlotSecret<'_> {
    /// Whether it adds and does not read.
    pub(crate) fn adds(&self) -> bool {
        matches!(self, SlotSecret::Writer(_))
    }

    /// Whether it may open a slot of this kind.
    pub(crate) fn opens(&self, kind: SlotKind) -> bool {
        match self {
            SlotSecret::Passphrase(_) => kind == SlotKind::Passphrase,
            SlotSecret::Recovery(_) => kind == SlotKind::Recovery,
            SlotSecret::Identity(_) => kind == SlotKind::Identity,
            SlotSecret::Writer(_) => false,
        }
    }
}

impl std::fmt::Debug for SlotSecret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SlotSecret::Passphrase(_) => "Passphrase",
            SlotSecret::Recovery(_) => "Recovery",
            SlotSecret::Identity(_) => "Identity",
            SlotSecret::Writer(_) => "Writer",
        })
    }
}

/// The kind of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    /// Opened by a passphrase.
    Passphrase,
    /// Opened by a recovery code.
    Recovery,
    /// Opened by an identity.
    Identity,
    /// Opens nothing: names a writer.
    Writer,
}

impl SlotKind {
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            SlotKind::Passphrase => 1,
            SlotKind::Recovery => 2,
            SlotKind::Identity => 3,
            SlotKind::Writer => 4,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<SlotKind> {
        match byte {
            1 => Some(SlotKind::Passphrase),
            2 => Some(SlotKind::Recovery),
            3 => Some(SlotKind::Identity),
            4 => Some(SlotKind::Writer),
            _ => None,
        }
    }
}

/// A key slot.
#[derive(Debug, Clone)]
pub(crate) struct KeySlot {
    pub(crate) id: [u8; 8],
    pub(crate) kind: SlotKind,
    pub(crate) cost: Option<Argon2Cost>,
    bytes: Vec<u8>,
    body: usize,
}

impl KeySlot {
    pub(crate) fn read(key: &str, bytes: Vec<u8>, vault: &VaultId) -> Result<KeySlot, Error> {
        let mut reader = VaultFieldReader::new("a key slot", &bytes);
        ObjectHeader::read(&mut reader, key, ObjectKind::Slot, Some(vault))?;
        let id = reader.array()?;
        let kind = SlotKind::from_byte(reader.u8()?).ok_or(reader.malformed())?;
        let body = bytes.len() - reader.left();
        let mut cost = None;
        if kind == SlotKind::Passphrase {
            reader.take(16)?;
            let found = Argon2Cost {
                memory_kib: reader.u32()?,
                passes: reader.u32()?,
                lanes: reader.u32()?,
            };
            let bounded = found.memory_kib <= MAX_KDF_MEMORY_KIB
                && found.passes <= MAX_KDF_PASSES
                && found.lanes <= MAX_KDF_LANES;
            cost = Some(found).filter(|_| bounded);
            if cost.is_none() {
                return Err(reader.malformed());
            }
        }
        if slot_key(&id) != key {
            return Err(reader.malformed());
        }
        Ok(KeySlot { id, kind, cost, bytes, body })
    }

    fn begin(vault: &VaultId, kind: u8) -> Result<([u8; 8], Vec<u8>), Error> {
        let id = random()?;
        let mut out = ObjectHeader::owners(ObjectKind::Slot, vault, 0).write();
        out.extend_from_slice(&id);
        out.push(kind);
        Ok((id, out))
    }

    /// A new slot object that gives `main` to who holds `secret`.
    pub(crate) fn write(
        vault: &VaultId,
        main: &VaultSecretKey,
        label: &str,
        secret: &NewSecret<'_>,
    ) -> Result<([u8; 8], Vec<u8>), Error> {
        if label.len() > MAX_LABEL_BYTES {
            return Err(Error::TooLarge { what: "the label".to_owned() });
        }
        let plaintext = Zeroizing::new([main.as_slice(), label.as_bytes()].concat());
        match secret {
            NewSecret::Passphrase(passphrase, cost) => {
                let (id, mut out) = KeySlot::begin(vault, 1)?;
                let salt: [u8; 16] = random()?;
                out.extend_from_slice(&salt);
                for number in [cost.memory_kib, cost.passes, cost.lanes] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                let key = argon(passphrase, &salt, *cost)?;
                let sealed = seal_with(&aead(&key)?, random()?, &out, &plaintext)?;
                Ok((id, [out, sealed].concat()))
            }
            NewSecret::Recovery(code) => {
                let (id, out) = KeySlot::begin(vault, 2)?;
                let key = recovery_key(code, vault);
                let sealed = seal_with(&aead(&key)?, random()?, &out, &plaintext)?;
                Ok((id, [out, sealed].concat()))
            }
            NewSecret::Identity(public) => {
                let (id, mut out) = KeySlot::begin(vault, 3)?;
                let info = [INFO, &out].concat();
                let wrapped =
                    seal_to(public, &info, &plaintext).map_err(|_| Error::Library("cipher"))?;
                out.extend_from_slice(&(wrapped.len() as u16).to_le_bytes());
                out.extend_from_slice(&wrapped);
                Ok((id, out))
            }
        }
    }

    /// A new slot object that names a writer.
    pub(crate) fn write_writer(
        vault: &VaultId,
        verifying: &[u8; 32],
        label: &str,
        sealing: &VaultSealingKeys,
        owner: &VaultSigner,
    ) -> Result<([u8; 8], Vec<u8>), Error> {
        let (id, mut out) = KeySlot::begin(vault, 4)?;
        out.extend_from_slice(verifying);
        let record = sealing.seal_record(&out, label.as_bytes())?;
        out.extend_from_slice(&record);
        owner.sign(&mut out)?;
        Ok((id, out))
    }

    /// The main key, if `secret` opens this slot.
    pub(crate) fn open(
        &self,
        secret: &SlotSecret<'_>,
        vault: &VaultId,
    ) -> Result<Option<VaultSecretKey>, Error> {
        let (head, body) = self.bytes.split_at_checked(self.body).unwrap_or_default();
        let opened = match (self.kind, secret) {
            (SlotKind::Passphrase, SlotSecret::Passphrase(passphrase)) => {
                let at = self.body + 28;
                let (Some(salt), Some(cost)) = (body.first_chunk::<16>(), self.cost) else {
                    return Ok(None);
                };
                let (head, sealed) = self.bytes.split_at_checked(at).unwrap_or_default();
                let key = argon(passphrase, salt, cost)?;
                open_with(&aead(&key)?, head, sealed)
            }
            (SlotKind::Recovery, SlotSecret::Recovery(code)) => {
                open_with(&aead(&recovery_key(code, vault))?, head, body)
            }
            (SlotKind::Identity, SlotSecret::Identity(identity)) => {
                let info = [INFO, head].concat();
                let wrapped = body.get(2..).unwrap_or_default();
                identity.open(&info, wrapped).ok().map(|plain| plain.to_vec())
            }
            _ => None,
        };
        let opened = opened.map(Zeroizing::new);
        Ok(opened.and_then(|plain| plain.first_chunk().map(|main| Zeroizing::new(*main))))
    }

    /// BLAKE3 of the object.
    pub(crate) fn hash(&self) -> [u8; 32] {
        *blake3::hash(&self.bytes).as_bytes()
    }

    /// The writer's verifying key, if this slot names one under the owner's signature.
    pub(crate) fn writer(&self, owner: &[u8; 32]) -> Result<[u8; 32], Error> {
        let malformed = Error::Malformed { what: "a key slot" };
        let body = self.bytes.get(self.body..).and_then(<[u8]>::first_chunk);
        let writer = body.filter(|_| self.kind == SlotKind::Writer).ok_or(malformed)?;
        verify(owner, &slot_key(&self.id), &self.bytes)?;
        Ok(*writer)
    }

    /// A writer's label, which only the owner can read.
    pub(crate) fn writer_label(&self, sealing: &VaultSealingKeys) -> Option<String> {
        let at = self.body + 32;
        let end = self.bytes.len().checked_sub(64)?;
        let (head, record) = self.bytes.get(..end)?.split_at_checked(at)?;
        let label = sealing.open_record("keys", head, record).ok()?;
        String::from_utf8(label).ok()
    }
}

/// The secret that is to open a new slot.
pub(crate) enum NewSecret<'a> {
    Passphrase(&'a [u8], Argon2Cost),
    Recovery(&'a RecoveryCode),
    Identity(&'a PublicKey),
}

fn argon(passphrase: &[u8], salt: &[u8; 16], cost: Argon2Cost) -> Result<VaultSecretKey, Error> {
    let refused = |_| Error::Malformed { what: "a key slot's cost" };
    let params =
        Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).map_err(refused)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase, salt, key.as_mut_slice())
        .map_err(|error| match error {
            argon2::Error::OutOfMemory => Error::NoMemory { kib: cost.memory_kib },
            other => refused(other),
        })?;
    Ok(key)
}

fn recovery_key(code: &RecoveryCode, vault: &VaultId) -> VaultSecretKey {
    let mut hasher = blake3::Hasher::new_derive_key("sealane vault v1 recovery");
    hasher.update(code.0.as_slice());
    hasher.update(vault);
    Zeroizing::new(*hasher.finalize().as_bytes())
}

/// The owner's identity, to which writers seal.
pub(crate) fn owner_identity(main: &VaultSecretKey, vault: &VaultId) -> Result<Identity, Error> {
    Identity::from_seed("vault", derive("identity", main, vault))
        .map_err(|_| Error::Library("cipher"))
}
