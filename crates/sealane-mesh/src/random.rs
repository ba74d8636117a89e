//! Numbers that nobody outside can foresee, out of the seed that the driver gave.

use crate::MeshSpan;

/// A stream of numbers: BLAKE3 of a counter, keyed with the seed.
#[derive(Debug)]
pub(crate) struct MeshRandom {
    key: [u8; 32],
    drawn: u64,
}

impl MeshRandom {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self { key: blake3::derive_key("Sealane 1.0 mesh random", seed), drawn: 0 }
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        let hash = blake3::keyed_hash(&self.key, &self.drawn.to_le_bytes());
        let word = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(word)
    }

    /// A part of that time, from none of it to nearly all.
    pub(crate) fn within(&mut self, span: MeshSpan) -> MeshSpan {
        if span.0 == 0 { span } else { MeshSpan(self.word() % span.0) }
    }
}
