//! ChaCha20-Poly1305 (RFC 8439) for wrapped secrets and files at rest.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::Error;

pub(crate) const NONCE_BYTES: usize = 12;
pub(crate) const TAG_BYTES: usize = 16;

/// Ciphertext and tag.
pub(crate) fn seal_box(
    key: &[u8; 32],
    nonce: [u8; NONCE_BYTES],
    associated: &[u8],
    plaintext: &[u8],
) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(plaintext.len() + TAG_BYTES);
    text.extend_from_slice(plaintext);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let sealed = prepare(key)?.seal_in_place_append_tag(nonce, Aad::from(associated), &mut text);
    sealed.map_err(|_| Error::Cipher)?;
    Ok(text)
}

/// The plaintext, or nothing if anything was changed.
pub(crate) fn open_box(
    key: &[u8; 32],
    nonce: [u8; NONCE_BYTES],
    associated: &[u8],
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let len = sealed.len().checked_sub(TAG_BYTES)?;
    let mut text = Zeroizing::new(sealed.to_vec());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let key = prepare(key).ok()?;
    key.open_in_place(nonce, Aad::from(associated), &mut text).ok()?;
    text.truncate(len);
    Some(text)
}

fn prepare(key: &[u8; 32]) -> Result<LessSafeKey, Error> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| Error::Cipher)?;
    Ok(LessSafeKey::new(key))
}
