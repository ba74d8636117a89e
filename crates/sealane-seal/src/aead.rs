//! One key of one suite: the only place that calls the ciphers.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::limits::TAG_BYTES;
use crate::{Error, Suite};

pub(crate) const KEY_BYTES: usize = 32;
pub(crate) const SALT_BYTES: usize = 12;

/// A prepared key with its salt. The library erases the key when it is dropped.
pub(crate) struct Key {
    key: LessSafeKey,
    salt: [u8; SALT_BYTES],
}

impl Key {
    pub(crate) fn new(
        suite: Suite,
        key: &[u8; KEY_BYTES],
        salt: [u8; SALT_BYTES],
    ) -> Result<Key, Error> {
        let algorithm = match suite {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| Error::Cipher)?;
        Ok(Key { key: LessSafeKey::new(key), salt })
    }

    /// Encrypts `text` where it stands and gives its tag.
    #[inline]
    pub(crate) fn seal(
        &self,
        counter: u64,
        associated: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], Error> {
        let sealed =
            self.key.seal_in_place_separate_tag(self.nonce(counter), Aad::from(associated), text);
        let tag = sealed.map_err(|_| Error::Cipher)?;
        tag.as_ref().try_into().map_err(|_| Error::Cipher)
    }

    /// Decrypts `text` where it stands; zeroes it when the tag does not verify.
    #[inline]
    pub(crate) fn open(
        &self,
        counter: u64,
        associated: &[u8],
        text: &mut [u8],
        tag: &[u8],
    ) -> Result<(), Error> {
        let (nonce, associated) = (self.nonce(counter), Aad::from(associated));
        let opened = self.key.open_in_place_separate_tag(nonce, associated, tag, text);
        let is_open = opened.is_ok();
        if !is_open {
            text.fill(0);
            return Err(Error::NotAuthentic);
        }
        Ok(())
    }

    /// RFC 9605 §4.4.3: the salt, with the counter over its end.
    fn nonce(&self, counter: u64) -> Nonce {
        let mut nonce = self.salt;
        let [_, _, _, _, low @ ..] = &mut nonce;
        *low = (u64::from_be_bytes(*low) ^ counter).to_be_bytes();
        Nonce::assume_unique_for_key(nonce)
    }
}

#[cfg(test)]
mod tests;
