//! The recipe of the report on a radio mesh: RustCrypto, a random nonce from the system and fresh
//! buffers for each message, nothing authenticated beside the ciphertext.

pub(crate) mod document;
pub(crate) mod gossip;

use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit};

const MARKER: [u8; 2] = [0xae, 0];
const NONCE_BYTES: usize = 12;

/// One key of one cipher.
pub(crate) struct BaselineCipher<C>(C);

/// The report's cipher, and the one that it should have been compared with.
pub(crate) type ChaCha = BaselineCipher<ChaCha20Poly1305>;
pub(crate) type BaselineAes = BaselineCipher<Aes256Gcm>;

impl<C: Aead + KeyInit> BaselineCipher<C> {
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

/// Marker, flags, message, hops and their most, origin and length around what nodes relay.
pub(crate) const RELAY_BYTES: usize = 28;
/// The place of the hops that a document has made.
const HOPS_AT: usize = 18;

/// A sealed document as nodes relay it; nothing of this is authenticated.
pub(crate) fn enveloped(sealed: &[u8]) -> Vec<u8> {
    let mut out = vec![0xb1; RELAY_BYTES];
    out.extend_from_slice(sealed);
    out
}

/// The bytes that a node sends on: a copy with one hop more.
pub(crate) fn relayed(enveloped: &[u8]) -> Vec<u8> {
    let mut out = enveloped.to_vec();
    if let Some(hops) = out.get_mut(HOPS_AT) {
        *hops = hops.wrapping_add(1);
    }
    out
}

/// One of the report's documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishedDocument {
    pub(crate) name: &'static str,
    /// Lines of chat that it holds.
    pub(crate) chats: u64,
    /// How many of them are sent.
    pub(crate) chats_sent: usize,
    pub(crate) bytes: usize,
    pub(crate) published: Option<PublishedTimes>,
}

/// The report's figures for a document, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishedTimes {
    pub(crate) build: f64,
    pub(crate) build_encrypted: f64,
    /// Built, copied, read and merged.
    pub(crate) sync: f64,
    pub(crate) sync_encrypted: f64,
}

/// The report's five rows, and the document that its last one was believed to be.
pub(crate) const SAMPLES: [PublishedDocument; 6] = [
    sample("minimal (counter only)", 0, 50, [1.0, 64.0, 1.0, 105.0]),
    sample("small (1 chat)", 1, 128, [1.0, 77.0, 2.0, 146.0]),
    sample("medium (5 chats)", 5, 416, [1.0, 131.0, 4.0, 255.0]),
    sample("large (10 chats: 8 are sent)", 10, 632, [4.0, 147.0, 8.0, 290.0]),
    sample("very large (20 chats: 8 are sent)", 10, 632, [4.0, 145.0, 8.0, 288.0]),
    PublishedDocument {
        name: "truly larger (all of 20 chats)",
        chats: 20,
        chats_sent: usize::MAX,
        bytes: 1506,
        published: None,
    },
];

const fn sample(name: &'static str, chats: u64, bytes: usize, us: [f64; 4]) -> PublishedDocument {
    let [build, build_encrypted, sync, sync_encrypted] = us;
    let published = PublishedTimes { build, build_encrypted, sync, sync_encrypted };
    PublishedDocument {
        name,
        chats,
        chats_sent: document::CHATS_SENT,
        bytes,
        published: Some(published),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_adds_30_bytes_and_opens() {
        let document = [7; 632];
        let (chacha, aes) = (ChaCha::new().unwrap(), BaselineAes::new().unwrap());
        let sealed = chacha.seal(&document).unwrap();
        assert_eq!(sealed.len(), 662);
        assert_eq!(chacha.open(&sealed).unwrap(), document);
        assert_eq!(aes.open(&aes.seal(&document).unwrap()).unwrap(), document);
        assert_ne!(chacha.seal(&document), Some(sealed));
    }

    #[test]
    fn each_document_of_the_report_has_the_bytes_that_it_had_there() {
        for PublishedDocument { name, chats, chats_sent, bytes, .. } in SAMPLES {
            let document = document::GossipDocument::with_chats(chats);
            assert_eq!(document.build(chats_sent).len(), bytes, "{name}");
        }
    }
}
