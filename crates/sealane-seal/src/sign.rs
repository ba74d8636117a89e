//! Ed25519 of class S.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use std::fmt;
use std::sync::Arc;

use crate::Error;
use crate::associated::SIGNATURE_LABEL;
use crate::limits::SIGNATURE_BYTES;

/// A member's key to sign class S with. Its text form names the public key only.
#[derive(Clone)]
pub struct SigningKey(Arc<Ed25519KeyPair>);

impl SigningKey {
    /// The key of a secret seed (RFC 8032 §5.1.5).
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] when the library refuses.
    pub fn from_seed(seed: &[u8; 32]) -> Result<SigningKey, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Error::Cipher)?;
        Ok(SigningKey(Arc::new(pair)))
    }

    /// The key that others verify with.
    pub fn verifying_key(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap_or_default()
    }

    /// Signs what is told outside of the seal. It has to begin with a label of its own, which is
    /// another one than that of class S.
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] when the library refuses, and for the label of class S.
    pub fn sign_open(&self, labelled: &[u8]) -> Result<[u8; SIGNATURE_BYTES], Error> {
        if labelled.starts_with(SIGNATURE_LABEL) {
            return Err(Error::Cipher);
        }
        self.sign(labelled)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<[u8; SIGNATURE_BYTES], Error> {
        let signature = self.0.try_sign(message).map_err(|_| Error::Cipher)?;
        signature.as_ref().try_into().map_err(|_| Error::Cipher)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

/// Whether a signature of what is told outside of the seal verifies.
pub fn verifies_open(key: &[u8; 32], labelled: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
    VerifyingKey::new(key).is_ok_and(|key| key.verify(labelled, signature).is_ok())
}

/// Whether an Ed25519 key is a point of small order: a signature that anybody can write down
/// verifies every message under it. RFC 8032 leaves it to the caller to refuse such keys.
pub fn is_weak_key(key: &[u8; 32]) -> bool {
    let mut point = *key;
    // The sign of x: of these points, each sign is one.
    if let Some(high) = point.last_mut() {
        *high &= 0x7f;
    }
    SMALL_ORDER.contains(&point)
}

/// The y of the 8 points of small order, also where it is not reduced: 0, 1, the two of order 8,
/// p - 1, p and p + 1.
const SMALL_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    small(0x01, 0, 0),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
    small(0xec, 0xff, 0x7f),
    small(0xed, 0xff, 0x7f),
    small(0xee, 0xff, 0x7f),
];

/// A number by its first byte, those between, and its last.
const fn small(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    (bytes[0], bytes[31]) = (first, last);
    bytes
}

/// A member's public key, as the roster has it.
#[derive(Debug, Clone)]
pub(crate) struct VerifyingKey {
    key: ParsedPublicKey,
    /// Nothing verifies under it. It is no error of the roster: one such member must not keep
    /// readers from the others.
    is_weak: bool,
}

impl VerifyingKey {
    pub(crate) fn new(bytes: &[u8]) -> Result<VerifyingKey, Error> {
        let key = ParsedPublicKey::new(&ED25519, bytes).map_err(|_| Error::Malformed)?;
        let is_weak = bytes.try_into().is_ok_and(is_weak_key);
        Ok(VerifyingKey { key, is_weak })
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        if self.is_weak {
            return Err(Error::Signature);
        }
        self.key.verify_sig(message, signature).map_err(|_| Error::Signature)
    }
}

#[cfg(test)]
mod tests;
