use std::fmt;

/// Bytes that are drawn at once.
const BLOCK_BYTES: usize = 256;

/// A source of random numbers that gives the same ones for the same seed and purpose, on every
/// machine and in every version: the output of BLAKE3 keyed with both.
///
/// Each purpose has a source of its own, so that one more draw for one thing changes no other.
pub struct Random {
    stream: blake3::OutputReader,
    block: [u8; BLOCK_BYTES],
    used: usize,
}

impl Random {
    /// The source for a purpose and a number, such as that of a node.
    pub fn new(seed: u64, purpose: &str, number: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("Sealane 1.0 simulator");
        hasher.update(&seed.to_le_bytes());
        hasher.update(&number.to_le_bytes());
        hasher.update(purpose.as_bytes());
        Self { stream: hasher.finalize_xof(), block: [0; BLOCK_BYTES], used: BLOCK_BYTES }
    }

    /// Any number.
    pub fn word(&mut self) -> u64 {
        if self.used + 8 > BLOCK_BYTES {
            self.stream.fill(&mut self.block);
            self.used = 0;
        }
        let rest = self.block.get(self.used..).and_then(|rest| rest.first_chunk::<8>());
        self.used += 8;
        u64::from_le_bytes(rest.copied().unwrap_or_default())
    }

    /// A number below `end`, each as likely as the others; 0 where there is none below.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of a product (Lemire 2019): off by less than `end` in 2^64.
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 to 1, without 1.
    pub fn part(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this chance happens. It draws in any case, so that a chance that is
    /// changed changes nothing else.
    pub fn happens(&mut self, chance: f64) -> bool {
        self.part() < chance
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Random").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_purpose_give_the_same_numbers_for_ever() {
        let words = |seed, purpose, number| {
            let mut random = Random::new(seed, purpose, number);
            (0..100).map(|_| random.word()).collect::<Vec<_>>()
        };
        assert_eq!(words(1, "loss", 2), words(1, "loss", 2));
        for other in [words(2, "loss", 2), words(1, "loss", 3), words(1, "losses", 2)] {
            assert_ne!(words(1, "loss", 2), other);
        }
        let known = [9_142_113_489_715_266_644, 17_191_196_051_761_240_233];
        assert_eq!(words(1, "loss", 2)[..2], known, "runs of older versions can be repeated");
    }

    #[test]
    fn numbers_are_spread_evenly_within_their_bounds() {
        let mut random = Random::new(7, "test", 0);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let happened = (0..100_000).filter(|_| random.happens(0.3)).count();
        assert!((29_000..31_000).contains(&happened), "{happened}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
    }
}
