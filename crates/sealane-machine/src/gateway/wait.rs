//! How long to wait before the hub is tried again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::limits::{MAX_HUB_WAIT_MS, MIN_HUB_WAIT_MS};

/// Waits that double from a tenth of a second to [`MAX_HUB_WAIT_MS`]. Each is shortened by up to a
/// half at random, so that the gateways of a hub that comes back do not come in step.
#[derive(Debug, Default)]
pub(crate) struct HubBackoff {
    failures: u32,
}

impl HubBackoff {
    /// The hub has answered.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Whether the last attempt has failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// How long to wait after one more failure.
    pub(crate) fn failed(&mut self) -> Duration {
        let doubled = MIN_HUB_WAIT_MS.checked_shl(self.failures).unwrap_or(MAX_HUB_WAIT_MS);
        // The exponent has a bound of its own. A hub that is away for weeks must not wrap the
        // shift.
        self.failures = (self.failures + 1).min(16);
        shortened(doubled.min(MAX_HUB_WAIT_MS))
    }
}

/// A time of at most so many milliseconds, and at least half of them.
pub(crate) fn shortened(whole_ms: u64) -> Duration {
    // The hash of nothing under a key that the standard library draws anew at each call.
    let random = RandomState::new().hash_one(());
    Duration::from_millis(whole_ms - random % (whole_ms / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_begin_anew() {
        let mut waits = HubBackoff::default();
        let all: Vec<_> = (0..40).map(|_| waits.failed().as_millis() as u64).collect();
        for (number, wait) in all.iter().enumerate() {
            let whole = (MIN_HUB_WAIT_MS << number.min(16)).min(MAX_HUB_WAIT_MS);
            assert!((whole / 2..=whole).contains(wait), "{number}: {wait}");
        }
        waits.succeeded();
        assert!(waits.failed() <= Duration::from_millis(MIN_HUB_WAIT_MS));
    }
}
