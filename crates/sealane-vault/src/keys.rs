//! Keys: one per purpose, all from the main key.

mod recovery;
mod slot;
mod writer;

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use zeroize::Zeroizing;

use crate::Error;
use crate::format::chunk::{ChunkHead, ChunkId, ChunkKind, TAG_BYTES};
use crate::format::header::VaultId;

pub use recovery::RecoveryCode;
pub use slot::{Argon2Cost, SlotKind, SlotSecret};
pub(crate) use slot::{KeySlot, NewSecret, SLOT_PREFIX, owner_identity, slot_key};
pub use writer::WriterKey;

/// A secret of 32 bytes, erased when it is dropped.
pub(crate) type VaultSecretKey = Zeroizing<[u8; 32]>;

const CONTEXT: &str = "sealane vault v1 ";
const SIGNATURE: &[u8] = b"sealane vault v1 signature";
const NONCE_BYTES: usize = 12;

/// The key of one purpose.
pub(crate) fn derive(purpose: &str, secret: &[u8; 32], vault: &VaultId) -> VaultSecretKey {
    let mut hasher = blake3::Hasher::new_derive_key(&format!("{CONTEXT}{purpose}"));
    hasher.update(secret);
    hasher.update(vault);
    Zeroizing::new(*hasher.finalize().as_bytes())
}

/// Fills an array from the system's randomness.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Library("randomness"))?;
    Ok(bytes)
}

/// Keys that name contents and open nothing.
#[derive(Clone)]
pub(crate) struct VaultNamingKeys {
    pub(crate) data: VaultSecretKey,
    pub(crate) page: VaultSecretKey,
    pub(crate) list: VaultSecretKey,
    pub(crate) chunker: VaultSecretKey,
    pub(crate) page_cuts: VaultSecretKey,
}

impl VaultNamingKeys {
    pub(crate) fn derive(main: &[u8; 32], vault: &VaultId) -> VaultNamingKeys {
        let key = |purpose| derive(purpose, main, vault);
        VaultNamingKeys {
            data: key("data-ids"),
            page: key("page-ids"),
            list: key("list-ids"),
            chunker: key("chunker"),
            page_cuts: key("page-cuts"),
        }
    }

    pub(crate) fn id(&self, kind: ChunkKind, plaintext: &[u8]) -> ChunkId {
        let key = match kind {
            ChunkKind::Data => &self.data,
            ChunkKind::Page => &self.page,
            ChunkKind::List => &self.list,
        };
        let hash = blake3::keyed_hash(key, plaintext);
        let (id, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 24], &[]));
        ChunkId(*id)
    }

    /// Whether a page may end behind the entry of this path.
    pub(crate) fn ends_page(&self, path: &[u8]) -> bool {
        blake3::keyed_hash(&self.page_cuts, path).as_bytes().first() == Some(&0)
    }
}

/// Keys that seal and open: the vault's own, or a session's.
pub(crate) struct VaultSealingKeys {
    vault: VaultId,
    chunks: LessSafeKey,
    records: LessSafeKey,
    nonces: VaultSecretKey,
}

impl VaultSealingKeys {
    pub(crate) fn derive(secret: &[u8; 32], vault: &VaultId) -> Result<VaultSealingKeys, Error> {
        Ok(VaultSealingKeys {
            vault: *vault,
            chunks: aead(&derive("chunks", secret, vault))?,
            records: aead(&derive("records", secret, vault))?,
            nonces: derive("record-nonces", secret, vault),
        })
    }

    /// Seals what stands in `out` from `from` on, and appends its tag.
    pub(crate) fn seal_chunk(
        &self,
        head: &ChunkHead,
        out: &mut Vec<u8>,
        from: usize,
    ) -> Result<(), Error> {
        let associated = Aad::from(head.associated(&self.vault));
        let body = out.get_mut(from..).unwrap_or_default();
        let tag = self
            .chunks
            .seal_in_place_separate_tag(chunk_nonce(&head.id), associated, body)
            .map_err(|_| Error::Library("cipher"))?;
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }

    /// Opens a chunk into `out`, which becomes what was sealed: the compressed form.
    pub(crate) fn open_chunk(
        &self,
        head: &ChunkHead,
        sealed: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let refused = || Error::NotAuthentic { what: format!("chunk {}", head.id) };
        let length = sealed.len().checked_sub(TAG_BYTES).ok_or_else(refused)?;
        let (body, tag) = sealed.split_at_checked(length).ok_or_else(refused)?;
        // Bytes that are there already need not be zeroed again.
        out.resize(length, 0);
        let associated = Aad::from(head.associated(&self.vault));
        let nonce = chunk_nonce(&head.id);
        self.chunks.open_separate_gather(nonce, associated, body, tag, out).map_err(|_| refused())
    }

    /// A record of `plaintext` behind `associated`.
    pub(crate) fn seal_record(
        &self,
        associated: &[u8],
        plaintext: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let mut hasher = blake3::Hasher::new_keyed(&self.nonces);
        hasher.update(&(associated.len() as u64).to_le_bytes());
        hasher.update(associated);
        hasher.update(plaintext);
        let mut nonce = [0; NONCE_BYTES];
        hasher.finalize_xof().fill(&mut nonce);
        seal_with(&self.records, nonce, associated, plaintext)
    }

    pub(crate) fn open_record(
        &self,
        what: &str,
        associated: &[u8],
        record: &[u8],
    ) -> Result<Vec<u8>, Error> {
        open_with(&self.records, associated, record)
            .ok_or_else(|| Error::NotAuthentic { what: format!("`{what}`") })
    }
}

impl fmt::Debug for VaultSealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealing").finish_non_exhaustive()
    }
}

fn aead(key: &[u8; 32]) -> Result<LessSafeKey, Error> {
    let key = UnboundKey::new(&AES_256_GCM_SIV, key).map_err(|_| Error::Library("cipher"))?;
    Ok(LessSafeKey::new(key))
}

fn chunk_nonce(id: &ChunkId) -> Nonce {
    let (nonce, _) = id.0.split_first_chunk::<NONCE_BYTES>().unwrap_or((&[0; 12], &[]));
    Nonce::assume_unique_for_key(*nonce)
}

/// nonce ‖ ciphertext ‖ tag.
fn seal_with(
    key: &LessSafeKey,
    nonce: [u8; NONCE_BYTES],
    associated: &[u8],
    plaintext: &[u8],
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(NONCE_BYTES + plaintext.len() + TAG_BYTES);
    out.extend_from_slice(&nonce);
    out.extend_from_slice(plaintext);
    let body = out.get_mut(NONCE_BYTES..).unwrap_or_default();
    let tag = key
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(associated),
            body,
        )
        .map_err(|_| Error::Library("cipher"))?;
    out.extend_from_slice(tag.as_ref());
    Ok(out)
}

fn open_with(key: &LessSafeKey, associated: &[u8], record: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = record.split_first_chunk::<NONCE_BYTES>()?;
    let mut out = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let length = key.open_in_place(nonce, Aad::from(associated), &mut out).ok()?.len();
    out.truncate(length);
    Some(out)
}

/// An Ed25519 key that signs objects.
pub(crate) struct VaultSigner(Ed25519KeyPair);

impl VaultSigner {
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Result<VaultSigner, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(VaultSigner).map_err(|_| Error::Library("signature"))
    }

    pub(crate) fn verifying_key(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap_or_default()
    }

    /// Appends the signature of what is there.
    pub(crate) fn sign(&self, object: &mut Vec<u8>) -> Result<(), Error> {
        let message = [SIGNATURE, object].concat();
        let signature = self.0.try_sign(&message).map_err(|_| Error::Library("signature"))?;
        object.extend_from_slice(signature.as_ref());
        Ok(())
    }
}

/// Checks the signature that ends an object.
pub(crate) fn verify(key: &[u8; 32], name: &str, object: &[u8]) -> Result<(), Error> {
    let refused = || Error::Signature(name.to_owned());
    let (signed, signature) = object.split_last_chunk::<64>().ok_or_else(refused)?;
    let key = ParsedPublicKey::new(&ED25519, key).map_err(|_| refused())?;
    key.verify_sig(&[SIGNATURE, signed].concat(), signature).map_err(|_| refused())
}
