//! Ids, keys and ciphers of form 2.

use std::num::NonZeroU32;

use aws_lc_rs::aead::{
    AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::pbkdf2;
use zeroize::Zeroizing;

use super::Error;

/// Rounds of PBKDF2-HMAC-SHA256, for each file anew.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
const TAG_BYTES: usize = 16;

/// The cipher of a blob, which the blob does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum N2sCipher {
    /// The cipher that the format settled on.
    ChaCha20Poly1305,
    /// The cipher of its first version.
    Aes256Gcm,
}

impl N2sCipher {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            N2sCipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            N2sCipher::Aes256Gcm => &AES_256_GCM,
        }
    }
}

/// The hash of a file's bytes or of a link's target: BLAKE3-256 in 64 hexadecimal digits.
pub fn file_hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// The id of a blob, which is its name: BLAKE3-256 of the path, a colon, and the hash's digits.
pub fn name(path: &str, hash: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(path.as_bytes()).update(b":").update(hash.as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Seals in place and appends the tag.
pub(super) fn seal(
    cipher: N2sCipher,
    name: &str,
    passphrase: &[u8],
    content: &mut Vec<u8>,
) -> Result<(), Error> {
    let (key, nonce) = derive(name, passphrase)?;
    let key = key_of(cipher, &key)?;
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::empty(), content).map_err(|_| Error::Cipher)
}

/// Opens with whichever cipher the tag verifies.
pub(super) fn open(name: &str, passphrase: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
    let (key, nonce) = derive(name, passphrase)?;
    let end = sealed.len().checked_sub(TAG_BYTES).ok_or(Error::NotAuthentic)?;
    let (content, tag) = sealed.split_at_checked(end).ok_or(Error::NotAuthentic)?;
    let mut plain = vec![0; content.len()];
    for cipher in [N2sCipher::ChaCha20Poly1305, N2sCipher::Aes256Gcm] {
        let key = key_of(cipher, &key)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        if key.open_separate_gather(nonce, Aad::empty(), content, tag, &mut plain).is_ok() {
            return Ok(plain);
        }
    }
    Err(Error::NotAuthentic)
}

fn key_of(cipher: N2sCipher, key: &[u8; 32]) -> Result<LessSafeKey, Error> {
    let key = UnboundKey::new(cipher.algorithm(), key).map_err(|_| Error::Cipher)?;
    Ok(LessSafeKey::new(key))
}

/// The key from the passphrase and the id's first 16 bytes, and the nonce: its last 12.
fn derive(name: &str, passphrase: &[u8]) -> Result<(Zeroizing<[u8; 32]>, [u8; 12]), Error> {
    let id = blake3::Hash::from_hex(name).map_err(|_| Error::WrongName)?;
    let (Some(salt), Some(nonce)) = (id.as_bytes().first_chunk::<16>(), id.as_bytes().last_chunk())
    else {
        return Err(Error::WrongName);
    };
    let mut key = Zeroizing::new([0; 32]);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt, passphrase, &mut *key);
    Ok((key, *nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivations_are_those_of_the_published_vector() {
        let hash = file_hash(b"hello n2s\n");
        assert!(hash.starts_with("017d7b4e") && hash.ends_with("8a0812"), "{hash}");
        let name = name("relative/path/to/file.txt", &hash);
        assert_eq!(name, "05a63a51c3441a43997d5a6ed9b29eac1ca046d6946a080c150a4b7477c53358");
        let (key, nonce) = derive(&name, b"123456").unwrap();
        let key = blake3::Hash::from_bytes(*key).to_hex();
        assert_eq!(
            key.as_str(),
            "5a97b3262011dda8ddf215275afe28a69a44288683782cc6811063e1fac63421"
        );
        assert_eq!(nonce[..4], [0x94, 0x6a, 0x08, 0x0c]);
        assert_eq!(nonce[8..], [0x77, 0xc5, 0x33, 0x58]);
    }
}
