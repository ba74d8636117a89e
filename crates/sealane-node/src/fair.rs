//! What keeps one client from taking what is for all: rates, and the memory of bodies.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sealane_message::limits::{
    MAX_BODIES_BYTES, MAX_CONNECTIONS_PER_ADDRESS, MAX_ENQUEUE_RATE, MAX_GUESSES_PER_MINUTE,
    MAX_RATE_KEYS, MAX_TOKENS,
};
use tokio::sync::Semaphore;

use crate::listener::Peer;

/// What one client may take of a node. The defaults are in docs/LIMITS.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections of one address; an IPv6 network of 64 bits counts as one. At least 1.
    pub connections_per_address: usize,
    /// Messages that one token may enqueue in a second, on average over the last second and what
    /// went before. A node without tokens serves its own machine, without this limit.
    pub enqueue_rate: u64,
    /// Tokens that are not known, that one address may show in a minute.
    pub guesses_per_minute: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
            enqueue_rate: MAX_ENQUEUE_RATE,
            guesses_per_minute: MAX_GUESSES_PER_MINUTE,
        }
    }
}

/// The state of these limits in a running node.
pub(crate) struct Fair {
    /// Messages enqueued, by the name of the token.
    pub(crate) enqueued: Rates<String>,
    /// Tokens guessed, by address.
    pub(crate) guessed: Rates<Peer>,
    /// Bytes of bodies that are held.
    pub(crate) bodies: Arc<Semaphore>,
}

impl Fair {
    pub(crate) fn new(limits: Limits) -> Self {
        let enqueue = limits.enqueue_rate as f64;
        let guesses = limits.guesses_per_minute as f64;
        Self {
            enqueued: Rates::new(enqueue, enqueue, MAX_TOKENS),
            guessed: Rates::new(guesses / 60.0, guesses, MAX_RATE_KEYS),
            bodies: Arc::new(Semaphore::new(MAX_BODIES_BYTES)),
        }
    }
}

/// How much each may do: so much at once, and then so much a second. What is done is charged
/// afterwards, when it is known how much it was, so that a bucket may be in debt.
pub(crate) struct Rates<K> {
    per_second: f64,
    burst: f64,
    max_keys: usize,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq + Clone> Rates<K> {
    fn new(per_second: f64, burst: f64, max_keys: usize) -> Self {
        Self { per_second, burst, max_keys, buckets: Mutex::default() }
    }

    /// How long this one has to wait before it does anything more; none: not at all.
    pub(crate) fn wait(&self, key: &K, now: Instant) -> Option<Duration> {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.left(*buckets.get(key)?, now);
        (left < 1.0).then(|| Duration::from_secs_f64((1.0 - left) / self.per_second.max(1e-6)))
    }

    /// Notes what was done.
    pub(crate) fn charge(&self, key: &K, count: usize, now: Instant) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= self.max_keys && !buckets.contains_key(key) {
            self.make_room(&mut buckets, now);
        }
        let fresh = Bucket { left: self.burst, at: now };
        let bucket = buckets.entry(key.clone()).or_insert(fresh);
        *bucket = Bucket { left: self.left(*bucket, now) - count as f64, at: now };
    }

    fn left(&self, bucket: Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_second).min(self.burst)
    }

    /// A full bucket says nothing; where there is none, any one goes.
    fn make_room(&self, buckets: &mut HashMap<K, Bucket>, now: Instant) {
        buckets.retain(|_, bucket| self.left(*bucket, now) < self.burst);
        if buckets.len() >= self.max_keys
            && let Some(any) = buckets.keys().next().cloned()
        {
            buckets.remove(&any);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_at_once_and_then_the_rate() {
        let rates = Rates::new(10.0, 20.0, 8);
        let start = Instant::now();
        assert_eq!(rates.wait(&"a", start), None);
        rates.charge(&"a", 20, start);
        let wait = rates.wait(&"a", start).unwrap();
        assert!((wait.as_secs_f64() - 0.1).abs() < 1e-3, "{wait:?}");
        assert_eq!(rates.wait(&"b", start), None);
        let later = start + Duration::from_millis(150);
        assert_eq!(rates.wait(&"a", later), None);
        rates.charge(&"a", 101, later);
        let wait = rates.wait(&"a", later).unwrap().as_secs_f64();
        assert!((10.0..10.2).contains(&wait), "a debt is paid first: {wait}");
        assert_eq!(rates.wait(&"a", later + Duration::from_secs(60)), None);
    }

    #[test]
    fn strangers_do_not_fill_the_table() {
        let rates = Rates::new(1.0, 1.0, 100);
        let start = Instant::now();
        for key in 0..10_000 {
            rates.charge(&key, 1, start);
        }
        assert!(rates.buckets.lock().unwrap().len() <= 100);
    }
}
