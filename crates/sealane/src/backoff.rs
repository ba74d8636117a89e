use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);

/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(5);

/// How long to wait before the next attempt: doubling from 50 ms to 5 s, each wait shortened by up
/// to a half at random, so that many clients of one hub do not come back in step.
#[derive(Debug, Clone)]
pub(crate) struct RetryBackoff {
    next: Duration,
}

impl RetryBackoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    pub(crate) fn wait(&mut self) -> Duration {
        let full = self.next;
        self.next = (full * 2).min(LONGEST);
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
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST);
        assert!(waits.iter().all(|wait| *wait <= LONGEST));
        assert!(waits[19] >= LONGEST / 2);
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
