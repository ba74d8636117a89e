use std::fmt;

/// Bytes that are drawn at once.
const BLOCK_BYTES: usize = 256;

/// A source of random numbers that gives the same ones for the same seed and purpose, on every
/// machine and in every version: the output of BLAKE3 keyed with both.
///
/// Each purpose has a source of its own, so that one more draw for one thing changes no other.
pub struct SimRandom {
    stream: blake3::OutputReader,
    block: [u8; BLOCK_BYTES],
    used: usize,
}

impl SimRandom {
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

/// The chances of one transmission: a number for each question and receiver.
///
/// A number depends on the source, the sender, the how manieth transmission of the sender it is,
/// the receiver and the question, and on nothing else: so one machine more in reach, one question
/// more, and one transmission more of another machine change none of the other numbers. This is
/// SplitMix64 (Steele, Lea, Flood 2014), whose numbers can be had in any order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransmissionDraws(u64);

/// The question that a number of a transmission decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrawPurpose {
    /// How long the radio waits before it sends.
    Wait,
    /// Whether the radio carries it so far.
    Fading,
    /// Whether the medium loses it.
    Medium,
    /// Whether this direction loses it.
    Direction,
    /// Whether it comes twice.
    Copies,
    /// How much later it comes, and how much later for the second time.
    Jitter,
    SecondJitter,
}

/// A chance, as it is compared with what is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DrawOdds(u64);

/// The step of SplitMix64: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl TransmissionDraws {
    /// Those of a sender's transmission of this number.
    pub(crate) fn new(source: u64, from: u32, number: u64) -> Self {
        Self(mixed(mixed(source.wrapping_add(u64::from(from))).wrapping_add(number)))
    }

    fn word(self, node: u32, about: DrawPurpose) -> u64 {
        let index = u64::from(node) << 3 | about as u64;
        mixed(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Whether something of this chance happens at a receiver. What is certain is not drawn.
    #[inline]
    pub(crate) fn happens(self, node: u32, about: DrawPurpose, odds: DrawOdds) -> bool {
        match odds {
            DrawOdds::NEVER => false,
            DrawOdds::ALWAYS => true,
            DrawOdds(odds) => self.word(node, about) >> 11 < odds,
        }
    }

    /// A number below `end`, each as likely as the others; 0 where there is none below.
    pub(crate) fn below(self, node: u32, about: DrawPurpose, end: u64) -> u64 {
        ((u128::from(self.word(node, about)) * u128::from(end)) >> 64) as u64
    }
}

/// A step of SplitMix64.
fn mixed(state: u64) -> u64 {
    let word = state.wrapping_add(GOLDEN);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl DrawOdds {
    const NEVER: DrawOdds = DrawOdds(0);
    const ALWAYS: DrawOdds = DrawOdds(1 << 53);

    /// A chance from 0 to 1, to the accuracy of what is drawn.
    pub(crate) fn of(chance: f64) -> Self {
        Self((chance.clamp(0.0, 1.0) * Self::ALWAYS.0 as f64) as u64)
    }
}

impl fmt::Debug for SimRandom {
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
            let mut random = SimRandom::new(seed, purpose, number);
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
        let mut random = SimRandom::new(7, "test", 0);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let happened = (0..100_000).filter(|_| random.happens(0.3)).count();
        assert!((29_000..31_000).contains(&happened), "{happened}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
    }

    #[test]
    fn each_receiver_and_question_has_its_own_number() {
        let draws = TransmissionDraws::new(1, 2, 3);
        let at = |draws: TransmissionDraws, node, about| draws.below(node, about, 1 << 40);
        let own = at(draws, 7, DrawPurpose::Fading);
        assert_eq!(own, at(TransmissionDraws::new(1, 2, 3), 7, DrawPurpose::Fading));
        let others = [
            at(draws, 8, DrawPurpose::Fading),
            at(draws, 7, DrawPurpose::Medium),
            at(TransmissionDraws::new(2, 2, 3), 7, DrawPurpose::Fading),
            at(TransmissionDraws::new(1, 3, 3), 7, DrawPurpose::Fading),
            at(TransmissionDraws::new(1, 2, 4), 7, DrawPurpose::Fading),
        ];
        assert!(!others.contains(&own), "{own}: {others:?}");
    }

    #[test]
    fn chances_hold_over_receivers_and_over_transmissions() {
        let odds = DrawOdds::of(0.3);
        let happens = |number, node| {
            TransmissionDraws::new(5, 1, number).happens(node, DrawPurpose::Fading, odds)
        };
        let over_receivers = (0..100_000).filter(|node| happens(0, *node)).count();
        let over_transmissions = (0..100_000).filter(|number| happens(*number, 4)).count();
        for count in [over_receivers, over_transmissions] {
            assert!((29_400..30_600).contains(&count), "{count}");
        }
        // The same receiver and another one, at the same transmissions: 9 % both.
        let both = (0..100_000).filter(|number| happens(*number, 4) && happens(*number, 5)).count();
        assert!((8_600..9_400).contains(&both), "{both}");
        let draws = TransmissionDraws::new(9, 9, 9);
        assert!((0..1000).all(|node| draws.happens(node, DrawPurpose::Fading, DrawOdds::of(1.0))));
        assert!(!(0..1000).any(|node| draws.happens(node, DrawPurpose::Fading, DrawOdds::NEVER)));
        assert_eq!(
            (draws.below(1, DrawPurpose::Wait, 0), draws.below(1, DrawPurpose::Wait, 1)),
            (0, 0)
        );
    }
}
