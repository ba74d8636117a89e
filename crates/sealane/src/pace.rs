//! How many refusals get a line of their own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::limits::{MAX_REFUSALS_TOLD, REFUSALS_INTERVAL_MS};

/// Bounds the lines about what was refused: anybody who may write into a stream can have as many
/// messages refused as it likes. All are counted and told as events.
#[derive(Debug, Default)]
pub struct RefusalPace {
    of: BTreeMap<String, PacedRefusals>,
}

/// The refusals of one code.
#[derive(Debug)]
struct PacedRefusals {
    began: Instant,
    told: u32,
    omitted: u64,
}

impl RefusalPace {
    /// One without a refusal yet.
    pub const fn new() -> RefusalPace {
        RefusalPace { of: BTreeMap::new() }
    }

    /// Whether a refusal of that code is told; then how many before it were not.
    pub fn tell(&mut self, code: &str) -> Option<u64> {
        self.tell_at(code, Instant::now())
    }

    fn tell_at(&mut self, code: &str, now: Instant) -> Option<u64> {
        let none = PacedRefusals { began: now, told: 0, omitted: 0 };
        let paced = self.of.entry(code.to_owned()).or_insert(none);
        let interval = Duration::from_millis(REFUSALS_INTERVAL_MS);
        if now.saturating_duration_since(paced.began) >= interval {
            (paced.began, paced.told) = (now, 0);
        }
        if paced.told >= MAX_REFUSALS_TOLD {
            paced.omitted += 1;
            return None;
        }
        paced.told += 1;
        Some(std::mem::take(&mut paced.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_makes_a_bounded_number_of_lines_and_the_next_one_counts_the_rest() {
        let (mut pace, began) = (RefusalPace::new(), Instant::now());
        let told = (0..3000).filter(|_| pace.tell_at("A", began).is_some()).count();
        assert_eq!(told, MAX_REFUSALS_TOLD as usize);
        assert_eq!(pace.tell_at("B", began), Some(0), "another code");
        let later = began + Duration::from_millis(REFUSALS_INTERVAL_MS);
        assert_eq!(pace.tell_at("A", later), Some(3000 - u64::from(MAX_REFUSALS_TOLD)));
        assert_eq!(pace.tell_at("A", later), Some(0));
    }
}
