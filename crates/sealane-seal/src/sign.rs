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

/// A member's public key, as the roster has it.
#[derive(Debug, Clone)]
pub(crate) struct VerifyingKey(ParsedPublicKey);

impl VerifyingKey {
    pub(crate) fn new(bytes: &[u8]) -> Result<VerifyingKey, Error> {
        ParsedPublicKey::new(&ED25519, bytes).map(VerifyingKey).map_err(|_| Error::Malformed)
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        self.0.verify_sig(message, signature).map_err(|_| Error::Signature)
    }
}

#[cfg(test)]
mod tests;
