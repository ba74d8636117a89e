//! The recipe of the report on a radio mesh: RustCrypto, a random nonce from the system and fresh
//! buffers for each message, nothing authenticated beside the ciphertext.

use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit};

const MARKER: [u8; 2] = [0xae, 0];
const NONCE_BYTES: usize = 12;

/// One key of one cipher.
pub(crate) struct Recipe<C>(C);

/// The report's cipher, and the one that it should have been compared with.
pub(crate) type ChaCha = Recipe<ChaCha20Poly1305>;
pub(crate) type Aes = Recipe<Aes256Gcm>;

impl<C: Aead + KeyInit> Recipe<C> {
    pub(crate) fn new() -> Option<Self> {
        C::new_from_slice(&[1; 32]).ok().map(Self)
    }

    /// Marker, nonce, ciphertext, tag: 30 bytes more.
    pub(crate) fn seal(&self, document: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let nonce_of = aes_gcm::aead::Nonce::<C>::try_from(&nonce[..]).ok()?;
        let sealed = self.0.encrypt(&nonce_of, document).ok()?;
        let mut out = Vec::with_capacity(MARKER.len() + NONCE_BYTES + sealed.len());
        out.extend_from_slice(&MARKER);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        Some(out)
    }

    pub(crate) fn open(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = bytes.strip_prefix(&MARKER)?.split_at_checked(NONCE_BYTES)?;
        let nonce = aes_gcm::aead::Nonce::<C>::try_from(nonce).ok()?;
        self.0.decrypt(&nonce, sealed).ok()
    }
}

/// The report's five rows: their name, the document's bytes, and the microseconds that it took to
/// build it plain and encrypted, and to build, copy and merge it.
pub(crate) const ROWS: [(&str, usize, [f64; 4]); 5] = [
    ("minimal (counter only)", 50, [1.0, 64.0, 1.0, 105.0]),
    ("small (1 chat)", 128, [1.0, 77.0, 2.0, 146.0]),
    ("medium (5 chats)", 416, [1.0, 131.0, 4.0, 255.0]),
    ("large (10 chats: 8 are sent)", 632, [4.0, 147.0, 8.0, 290.0]),
    ("very large (20 chats: 8 are sent)", 632, [4.0, 145.0, 8.0, 288.0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_adds_30_bytes_and_opens() {
        let document = [7; 632];
        let (chacha, aes) = (ChaCha::new().unwrap(), Aes::new().unwrap());
        let sealed = chacha.seal(&document).unwrap();
        assert_eq!(sealed.len(), 662);
        assert_eq!(chacha.open(&sealed).unwrap(), document);
        assert_eq!(aes.open(&aes.seal(&document).unwrap()).unwrap(), document);
        assert_ne!(chacha.seal(&document), Some(sealed));
    }
}
