use zeroize::Zeroizing;

use crate::crypto::{WrappingKey, WrappingSecret, random, verify_member};
use crate::limits::{LATTICE_KEY_BYTES, WRAPPING_KEY_BYTES};
use crate::wire::{GroupFieldReader, begin, is_name, put_name, put_part};
use crate::{Error, GroupDocument, Identity, PublicKey};

const LABEL: &[u8] = b"Sealane 1.0 card ";

/// The document that a member-to-be shows an authority: its public keys, its name, and a key for a
/// single invitation, all signed by itself.
#[derive(Debug, Clone)]
pub struct IdentityCard {
    name: String,
    public: PublicKey,
    pub(crate) nonce: [u8; 32],
    once: WrappingKey,
    hash: [u8; 32],
}

/// The secret part of a card, which the folder keeps until its invitation comes.
pub(crate) struct PendingCard {
    pub(crate) nonce: [u8; 32],
    pub(crate) seed: Zeroizing<[u8; 32]>,
}

impl PendingCard {
    /// The secret key that the invitation is encrypted to.
    pub(crate) fn wrapping(&self) -> Result<WrappingSecret, Error> {
        WrappingSecret::from_seed(&self.seed)
    }
}

impl IdentityCard {
    /// Reads a card and checks its signature.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`], [`Error::NewerVersion`], [`Error::Signature`].
    pub fn from_bytes(bytes: &[u8]) -> Result<IdentityCard, Error> {
        let mut reader = GroupFieldReader::open(GroupDocument::Card, bytes)?;
        let malformed = || Error::Malformed(GroupDocument::Card);
        let key = reader.bytes(PublicKey::BYTES)?;
        let public = PublicKey::from_bytes(key).map_err(|_| malformed())?;
        let nonce = reader.array()?;
        let once = reader.bytes(WRAPPING_KEY_BYTES)?;
        let once = WrappingKey::from_bytes(once).ok_or_else(malformed)?;
        let name = reader.name()?;
        // Room for an ML-DSA-65 key; nothing asks for one yet.
        if !matches!(reader.part()?.len(), 0 | LATTICE_KEY_BYTES) || reader.left() != 64 {
            return Err(malformed());
        }
        verify_member(public.verifying_key(), LABEL, GroupDocument::Card, bytes)?;
        Ok(IdentityCard { name, public, nonce, once, hash: *blake3::hash(bytes).as_bytes() })
    }

    /// Makes a card, under another name than the identity's if one is given, and what to keep of
    /// it.
    pub(crate) fn make(
        identity: &Identity,
        name: Option<&str>,
    ) -> Result<(Vec<u8>, PendingCard), Error> {
        let waiting = PendingCard { nonce: random()?, seed: Zeroizing::new(random()?) };
        Ok((IdentityCard::write(identity, name, &waiting)?, waiting))
    }

    /// The bytes of a card with that nonce and key.
    pub(crate) fn write(
        identity: &Identity,
        name: Option<&str>,
        waiting: &PendingCard,
    ) -> Result<Vec<u8>, Error> {
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(Error::Name(name.to_owned()));
        }
        let mut bytes = begin(GroupDocument::Card);
        bytes.extend(identity.public().to_bytes());
        bytes.extend(waiting.nonce);
        bytes.extend(waiting.wrapping()?.public().to_bytes());
        put_name(&mut bytes, name.unwrap_or(identity.name()));
        put_part(&mut bytes, &[]);
        identity.signer()?.append(LABEL, &mut bytes)?;
        Ok(bytes)
    }

    /// The name that the member gives itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The member's keys.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The key of this one card.
    pub(crate) fn once(&self) -> &WrappingKey {
        &self.once
    }

    pub(crate) fn hash(&self) -> [u8; 32] {
        self.hash
    }
}
