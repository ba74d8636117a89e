use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use crate::limits::{MAX_RETRY_WAIT_MS, MIN_RETRY_WAIT_MS};

/// How long to wait before the next attempt: doubling from 50 ms to 5 s, each wait shortened by up
/// to a half at random, so that many clients of one hub do not come back in step.
#[derive(Debug, Clone)]
pub(crate) struct RetryBackoff {
    next: Duration,
}

impl RetryBackoff {
    pub(crate) fn new() -> Self {
        Self { next: Duration::from_millis(MIN_RETRY_WAIT_MS) }
    }

    pub(crate) fn wait(&mut self) -> Duration {
        let full = self.next;
        self.next = (full * 2).min(Duration::from_millis(MAX_RETRY_WAIT_MS));
        let jitter = u32::try_from(random() % 1024).unwrap_or(0);
        full - full / 2 * jitter / 1024
    }
}

/// Sixty-four bits that nobody can predict: the hash of nothing under a key which the standard
/// library derives from the system's randomness, another one at each call.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound() {
        let mut backoff = RetryBackoff::new();
        let waits: Vec<_> = (0..20).map(|_| backoff.wait()).collect();
        let [first, longest] = [MIN_RETRY_WAIT_MS, MAX_RETRY_WAIT_MS].map(Duration::from_millis);
        assert!(waits[0] >= first / 2 && waits[0] <= first);
        assert!(waits.iter().all(|wait| *wait <= longest));
        assert!(waits[19] >= longest / 2);
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
