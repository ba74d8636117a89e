//! Numbers that a seed repeats.

use std::ops::Range;

/// SplitMix64, by Guy Steele, Doug Lea and Christine Flood (OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(seed)
    }

    /// The next number of all that there are.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so that it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number of a range.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// Bytes that nothing compresses.
    pub fn noise(&mut self, bytes: usize) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        for part in noise.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            part.copy_from_slice(number.get(..part.len()).unwrap_or(&number));
        }
        noise
    }

    /// Whether so many of a hundred times.
    pub fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The seed of a run: `SEALANE_SEED`, or the clock. It is printed, so that a run can be repeated.
pub fn seed_of_run() -> u64 {
    let clock = || std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64;
    let named = std::env::var("SEALANE_SEED").ok();
    let seed = named.map_or_else(clock, |text| text.parse().expect("SEALANE_SEED is a number"));
    println!("SEALANE_SEED={seed}");
    seed
}
