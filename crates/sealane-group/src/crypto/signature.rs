//! Ed25519 (RFC 8032) of members; Ed25519 and ML-DSA-65 (FIPS 204), both, of an authority.

use aws_lc_rs::signature::{
    ED25519, Ed25519KeyPair, KeyPair, ML_DSA_65, ML_DSA_65_SIGNING, ParsedPublicKey, PqdsaKeyPair,
    VerificationAlgorithm,
};

use crate::limits::{AUTHORITY_SIGNATURE_BYTES, LATTICE_KEY_BYTES, LATTICE_SIGNATURE_BYTES};
use crate::{Error, GroupDocument};

const ED25519_BYTES: usize = 64;
const _: () = assert!(AUTHORITY_SIGNATURE_BYTES == ED25519_BYTES + LATTICE_SIGNATURE_BYTES);

/// A member's key for what is signed outside of the seal.
pub(crate) struct MemberSigner(Ed25519KeyPair);

impl MemberSigner {
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Result<MemberSigner, Error> {
        Ed25519KeyPair::from_seed_unchecked(seed).map(MemberSigner).map_err(|_| Error::Cipher)
    }

    pub(crate) fn verifying_key(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap_or_default()
    }

    /// Appends the signature of label ‖ `bytes` to `bytes`.
    pub(crate) fn append(&self, label: &[u8], bytes: &mut Vec<u8>) -> Result<(), Error> {
        let signature = self.0.try_sign(&labelled(label, bytes)).map_err(|_| Error::Cipher)?;
        bytes.extend_from_slice(signature.as_ref());
        Ok(())
    }
}

/// The bytes that a signature is made over: no signature of one kind of document passes for
/// another's.
fn labelled(label: &[u8], bytes: &[u8]) -> Vec<u8> {
    [label, bytes].concat()
}

/// Gives what stands before the signature at the end, if it verifies.
pub(crate) fn verify_member<'a>(
    key: &[u8; 32],
    label: &[u8],
    document: GroupDocument,
    signed: &'a [u8],
) -> Result<&'a [u8], Error> {
    let (bytes, signature) =
        signed.split_last_chunk::<ED25519_BYTES>().ok_or(Error::Malformed(document))?;
    if !verifies(&ED25519, key, &labelled(label, bytes), signature) {
        return Err(Error::Signature(document));
    }
    Ok(bytes)
}

fn verifies<A: VerificationAlgorithm>(
    algorithm: &'static A,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> bool {
    let key = ParsedPublicKey::new(algorithm, key);
    key.is_ok_and(|key| key.verify_sig(message, signature).is_ok())
}

/// The two secret keys of an authority.
pub(crate) struct AuthoritySigner {
    curve: MemberSigner,
    lattice: PqdsaKeyPair,
}

impl AuthoritySigner {
    pub(crate) fn from_seeds(
        curve: &[u8; 32],
        lattice: &[u8; 32],
    ) -> Result<AuthoritySigner, Error> {
        let lattice = PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, lattice);
        let lattice = lattice.map_err(|_| Error::Cipher)?;
        Ok(AuthoritySigner { curve: MemberSigner::from_seed(curve)?, lattice })
    }

    /// The key that others verify with.
    pub(crate) fn verifier(&self) -> Result<AuthorityVerifier, Error> {
        let lattice = self.lattice.public_key().as_ref().try_into();
        let lattice = Box::new(lattice.map_err(|_| Error::Cipher)?);
        Ok(AuthorityVerifier { curve: self.curve.verifying_key(), lattice })
    }

    /// Appends both signatures of label ‖ `bytes` to `bytes`.
    pub(crate) fn append(&self, label: &[u8], bytes: &mut Vec<u8>) -> Result<(), Error> {
        let signed = labelled(label, bytes);
        let mut lattice = [0; LATTICE_SIGNATURE_BYTES];
        let len = self.lattice.sign(&signed, &mut lattice).map_err(|_| Error::Cipher)?;
        if len != lattice.len() {
            return Err(Error::Cipher);
        }
        self.curve.append(label, bytes)?;
        bytes.extend_from_slice(&lattice);
        Ok(())
    }
}

/// The two public keys of an authority.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AuthorityVerifier {
    pub(crate) curve: [u8; 32],
    pub(crate) lattice: Box<[u8; LATTICE_KEY_BYTES]>,
}

impl AuthorityVerifier {
    /// Gives what stands before the two signatures at the end, if both verify.
    pub(crate) fn verify<'a>(
        &self,
        label: &[u8],
        document: GroupDocument,
        signed: &'a [u8],
    ) -> Result<&'a [u8], Error> {
        let (rest, lattice) = signed
            .split_last_chunk::<LATTICE_SIGNATURE_BYTES>()
            .ok_or(Error::Malformed(document))?;
        let bytes = verify_member(&self.curve, label, document, rest)?;
        let key = self.lattice.as_slice();
        if !verifies(&ML_DSA_65, key, &labelled(label, bytes), lattice) {
            return Err(Error::Signature(document));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
