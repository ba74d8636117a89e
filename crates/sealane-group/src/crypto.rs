//! The only place that calls the libraries of cryptography, but for the seal.

mod boxed;
mod hybrid;
mod signature;

pub(crate) use boxed::{NONCE_BYTES, TAG_BYTES, open_box, seal_box};
pub(crate) use hybrid::{WrappingKey, WrappingSecret, wrap};
pub(crate) use signature::{AuthoritySigner, AuthorityVerifier, MemberSigner, verify_member};

use crate::Error;

/// Fresh bytes from the system's source of randomness.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    // The library of cryptography would first measure the jitter of the processor, which takes each
    // process 65 ms. The system's source is seeded since its start, and knows nothing of forks.
    getrandom::fill(&mut bytes).map_err(|_| Error::Cipher)?;
    Ok(bytes)
}
