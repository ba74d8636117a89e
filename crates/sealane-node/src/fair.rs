//! The limits that keep one client from taking the shared resources: rates, and the memory of
//! bodies and of what clients have not taken yet.

mod replies;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::limits::{
    MAX_ASKED_BYTES, MAX_BODIES_BYTES, MAX_CONNECTION_DELIVERIES_BYTES,
    MAX_CONNECTIONS_PER_ADDRESS, MAX_DELIVERIES_BYTES, MAX_ENQUEUE_RATE, MAX_GUESSES_PER_MINUTE,
    MAX_RATE_KEYS, MAX_REPLIES_BYTES, MAX_TOKEN_BODIES_BYTES, MAX_TOKENS, MIN_EQUAL_SHARES,
    MIN_SHARE_KIB, REPLY_PIECE_BYTES,
};
use parking_lot::{Mutex, MutexGuard};
use sealane_protocol::limits::MAX_REQUEST_BYTES;

use crate::peer::ClientPeer;
use crate::refusal::HttpRefusal;
pub(crate) use replies::{ReplyCounted, ReplyHold, ReplyMemory, ReplyOwner, ReplyPlace};

/// The limits of one client of a node. The defaults are in docs/LIMITS.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of one address; an IPv6 network of 64 bits counts as one. At least 1.
    pub connections_per_address: usize,
    /// Messages that one token may enqueue in a second, on average over the last second and what
    /// went before. A node without tokens serves its own machine, without this limit.
    pub enqueue_rate: u64,
    /// Tokens that are not known, that one address may show in a minute.
    pub guesses_per_minute: u64,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
            enqueue_rate: MAX_ENQUEUE_RATE,
            guesses_per_minute: MAX_GUESSES_PER_MINUTE,
        }
    }
}

/// The state of these limits in a running node.
pub(crate) struct FairLimits {
    /// Messages enqueued, by the name of the token.
    pub(crate) enqueued: ClientRates<String>,
    /// Tokens guessed, by address.
    pub(crate) guessed: ClientRates<ClientPeer>,
    pub(crate) bodies: Arc<BodyMemory>,
    pub(crate) deliveries: DeliveryMemory,
    pub(crate) replies: Arc<ReplyMemory>,
    pub(crate) asked: Arc<CreditReserve>,
}

impl FairLimits {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        let enqueue = limits.enqueue_rate as f64;
        let guesses = limits.guesses_per_minute as f64;
        // Large replies have room of their own within the budget. The shares of connections, which
        // are taken first, would leave them none.
        let deliveries = DeliveryMemory::new(MAX_DELIVERIES_BYTES - MAX_REPLIES_BYTES);
        let replies = ReplyMemory::new();
        Self {
            // Rates go by token: an address can be a whole fleet behind one proxy.
            enqueued: ClientRates::new(enqueue, enqueue, MAX_TOKENS),
            // Guesses go by address, since a guess has no token that is known.
            guessed: ClientRates::new(guesses / 60.0, guesses, MAX_RATE_KEYS),
            bodies: BodyMemory::new(MAX_BODIES_BYTES, MAX_TOKEN_BODIES_BYTES),
            deliveries,
            replies,
            asked: CreditReserve::new(MAX_ASKED_BYTES),
        }
    }
}

/// How much each may do: so much at once, and then so much a second. What is done is charged
/// afterwards, when it is known how much it was, so that a bucket may be in debt.
pub(crate) struct ClientRates<K> {
    per_second: f64,
    burst: f64,
    max_keys: usize,
    buckets: Mutex<HashMap<K, RateBucket>>,
}

#[derive(Clone, Copy)]
struct RateBucket {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq + Clone> ClientRates<K> {
    pub(crate) fn new(per_second: f64, burst: f64, max_keys: usize) -> Self {
        Self { per_second, burst, max_keys, buckets: Mutex::default() }
    }

    /// How long this one has to wait before it does anything more; none: not at all.
    pub(crate) fn wait(&self, key: &K, now: Instant) -> Option<Duration> {
        let buckets = self.buckets.lock();
        let left = self.left(*buckets.get(key)?, now);
        (left < 1.0).then(|| Duration::from_secs_f64((1.0 - left) / self.per_second.max(1e-6)))
    }

    /// Notes what was done.
    pub(crate) fn charge(&self, key: &K, count: usize, now: Instant) {
        let mut buckets = self.buckets.lock();
        // The map has a bound of its own. Otherwise a guesser with many addresses would fill memory
        // instead.
        if buckets.len() >= self.max_keys && !buckets.contains_key(key) {
            self.make_room(&mut buckets, now);
        }
        let fresh = RateBucket { left: self.burst, at: now };
        let bucket = buckets.entry(key.clone()).or_insert(fresh);
        // The bucket may go into debt. The number of messages is known only once the body was read.
        *bucket = RateBucket { left: self.left(*bucket, now) - count as f64, at: now };
    }

    fn left(&self, bucket: RateBucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_second).min(self.burst)
    }

    /// A full bucket says nothing; where there is none, any one goes.
    fn make_room(&self, buckets: &mut HashMap<K, RateBucket>, now: Instant) {
        buckets.retain(|_, bucket| self.left(*bucket, now) < self.burst);
        // No bucket is full, so that each one bounds somebody. Any one that goes costs less than
        // refusing newcomers.
        if buckets.len() >= self.max_keys
            && let Some(any) = buckets.keys().next().cloned()
        {
            buckets.remove(&any);
        }
    }
}

/// The memory of deliveries that clients have not taken yet.
///
/// One half is parted equally among all connections, so that those whose clients read nothing leave
/// the others theirs. Of the other half each may take a part of what is left, so that few
/// connections go fast. Nobody waits: where both halves are taken there is room for one message.
pub(crate) struct DeliveryMemory {
    left: Arc<DeliveryHalves>,
    max_kib: usize,
}

/// KiB that nobody holds.
struct DeliveryHalves {
    equal: AtomicUsize,
    free: AtomicUsize,
}

/// The share of one connection in both halves, free or held.
pub(crate) struct DeliveryShare {
    left: Arc<DeliveryHalves>,
    equal_kib: usize,
    free_kib: usize,
}

/// The part of what is left that one connection may take.
const FREE_SHARE: usize = 16;

impl DeliveryMemory {
    fn new(max_bytes: usize) -> Self {
        let half = || AtomicUsize::new(max_bytes >> 11);
        let left = Arc::new(DeliveryHalves { equal: half(), free: half() });
        Self { left, max_kib: (max_bytes >> 11) * 2 }
    }

    /// The share of one of so many connections now.
    pub(crate) fn share(&self, connections: usize) -> DeliveryShare {
        let most = MAX_CONNECTION_DELIVERIES_BYTES >> 10;
        // Few connections would otherwise hold large equal parts, which newcomers could not get.
        let equal = self.max_kib / 2 / connections.max(MIN_EQUAL_SHARES);
        let equal = equal.clamp(MIN_SHARE_KIB, most);
        let free = self.left.free.load(Ordering::Relaxed) / FREE_SHARE;
        let (equal_kib, free_kib) =
            (take(&self.left.equal, equal), take(&self.left.free, free.min(most - equal)));
        DeliveryShare { left: self.left.clone(), equal_kib, free_kib }
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        let DeliveryHalves { equal, free } = &*self.left;
        let left = equal.load(Ordering::Relaxed) + free.load(Ordering::Relaxed);
        self.max_kib.saturating_sub(left) << 10
    }
}

/// Takes all of so much, or nothing.
fn take(half: &AtomicUsize, kib: usize) -> usize {
    let without = |left: usize| left.checked_sub(kib);
    // Nothing is taken in part. A half that runs out gives 0, and the least share keeps the
    // connection moving.
    half.fetch_update(Ordering::Relaxed, Ordering::Relaxed, without).map_or(0, |_| kib)
}

impl DeliveryShare {
    pub(crate) fn bytes(&self) -> usize {
        // Even with nothing taken a connection may send one message, or it could never become idle.
        (self.equal_kib + self.free_kib).max(MIN_SHARE_KIB) << 10
    }

    /// Whether so many bytes are more than overhead can make of what the share allows: a single
    /// message, or one that is much longer in the codec of its reader. It is held as a large reply.
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes > 2 * self.bytes() + REPLY_PIECE_BYTES
    }

    /// Gives back what is more than `bytes`.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let kept_kib = bytes.div_ceil(1024);
        let equal_kib = self.equal_kib.min(kept_kib);
        // The free half is given back first, since a burst of another connection may need it now.
        let free_kib = self.free_kib.min(kept_kib - equal_kib);
        self.left.equal.fetch_add(self.equal_kib - equal_kib, Ordering::Relaxed);
        self.left.free.fetch_add(self.free_kib - free_kib, Ordering::Relaxed);
        (self.equal_kib, self.free_kib) = (equal_kib, free_kib);
    }
}

impl Drop for DeliveryShare {
    fn drop(&mut self) {
        self.keep(0);
    }
}

/// The memory of bodies: so much for all, and so much of it for one token. A node without tokens
/// serves its own machine, which is one address, without the second.
pub(crate) struct BodyMemory {
    max: usize,
    max_of_token: usize,
    held: Mutex<BodyBytes>,
}

/// Bytes.
#[derive(Default)]
struct BodyBytes {
    all: usize,
    of_tokens: HashMap<String, usize>,
}

impl BodyMemory {
    pub(crate) fn new(max: usize, max_of_token: usize) -> Arc<Self> {
        Arc::new(Self { max, max_of_token, held: Mutex::default() })
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        self.lock().all
    }

    /// The share of a body that has not begun, by the name of the token that it comes with.
    pub(crate) fn share(self: &Arc<Self>, token: Option<&str>) -> BodyShare {
        BodyShare { bodies: self.clone(), token: token.map(str::to_owned), bytes: 0 }
    }

    fn give_back(&self, token: Option<&str>, bytes: usize) {
        let mut held = self.lock();
        held.all -= bytes;
        if let Some(token) = token
            && let Some(of_token) = held.of_tokens.get_mut(token)
        {
            *of_token -= bytes;
            // Without a body the token needs no entry. The map is then as large as the bodies under
            // way.
            if *of_token == 0 {
                held.of_tokens.remove(token);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BodyBytes> {
        self.held.lock()
    }
}

/// The memory that one body holds, until it is dropped.
pub(crate) struct BodyShare {
    bodies: Arc<BodyMemory>,
    token: Option<String>,
    bytes: usize,
}

impl BodyShare {
    /// Takes memory for so much more of the body.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), HttpRefusal> {
        let mut held = self.bodies.lock();
        // The bound of all is asked first. A token within its own bound must not pass a full node.
        if held.all + more > self.bodies.max {
            return Err(HttpRefusal::Crowded);
        }
        if let Some(token) = &self.token {
            let of_token = held.of_tokens.get(token).copied().unwrap_or_default() + more;
            if of_token > self.bodies.max_of_token {
                return Err(HttpRefusal::Crowded);
            }
            // Both bounds have passed here, so that no sum rises for a body that is refused.
            held.of_tokens.insert(token.clone(), of_token);
        }
        held.all += more;
        self.bytes += more;
        Ok(())
    }

    /// Gives so much of it back.
    pub(crate) fn shrink(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.bodies.give_back(self.token.as_deref(), less);
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.bodies.give_back(self.token.as_deref(), self.bytes);
    }
}

/// The bytes that publishing sockets are asked for beyond their first credit, counted for all in
/// one place.
pub(crate) struct CreditReserve {
    max: u64,
    held: AtomicU64,
}

impl CreditReserve {
    pub(crate) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, held: AtomicU64::new(0) })
    }

    /// Bytes that are reserved.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// The room of a socket that is asked for nothing more yet.
    pub(crate) fn room(self: &Arc<Self>) -> ReservedCredit {
        ReservedCredit { asked: self.clone(), bytes: 0 }
    }
}

/// The bytes reserved for one publishing socket, until it is dropped.
pub(crate) struct ReservedCredit {
    asked: Arc<CreditReserve>,
    bytes: u64,
}

impl ReservedCredit {
    /// The part of one of so many sockets.
    pub(crate) fn part(&self, sockets: usize) -> u64 {
        self.asked.max / sockets.max(1) as u64
    }

    /// Reserves so much more, if there is room for it.
    pub(crate) fn grow(&mut self, more: u64) -> bool {
        let max = self.asked.max;
        // Check and addition are one step. Two sockets could otherwise both take the last room.
        let with = |held: u64| held.checked_add(more).filter(|held| *held <= max);
        let is_there =
            self.asked.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok();
        self.bytes += if is_there { more } else { 0 };
        is_there
    }

    /// Holds so much from now on: what has come already is held whether there is room or not.
    pub(crate) fn set(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            self.asked.held.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.asked.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for ReservedCredit {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// One body fits the memory that there is for it.
const _: () = assert!(
    MAX_REQUEST_BYTES <= MAX_TOKEN_BODIES_BYTES && MAX_TOKEN_BODIES_BYTES <= MAX_BODIES_BYTES
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_at_once_and_then_the_rate() {
        let rates = ClientRates::new(10.0, 20.0, 8);
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
    fn those_who_read_nothing_leave_something_for_the_others() {
        let deliveries = DeliveryMemory::new(256 << 20);
        assert_eq!(deliveries.share(1).bytes(), MAX_CONNECTION_DELIVERIES_BYTES);
        let stuck: Vec<_> = (0..1000).map(|_| deliveries.share(1001)).collect();
        assert!(deliveries.held() <= 256 << 20);
        let mut one = deliveries.share(1001);
        assert!(one.bytes() >= 127 << 10, "{}", one.bytes());
        one.keep(5000);
        assert_eq!(one.bytes(), 5 << 10);
        // However many come, they can have a message each, and no more than there is.
        let more: Vec<_> = (0..50_000).map(|_| deliveries.share(51_001)).collect();
        assert!(deliveries.held() <= 256 << 20);
        assert!(more.iter().all(|taken| taken.bytes() >= MIN_SHARE_KIB << 10));
        drop((stuck, one, more));
        assert_eq!(deliveries.held(), 0);
    }

    #[test]
    fn nothing_is_reserved_beyond_the_room_but_what_has_come_already() {
        let asked = CreditReserve::new(1000);
        let (mut first, mut second) = (asked.room(), asked.room());
        assert_eq!((first.part(1), first.part(3), first.part(0)), (1000, 333, 1000));
        assert!(first.grow(600) && !second.grow(401) && second.grow(400));
        assert!(!first.grow(1) && asked.held() == 1000);
        second.set(900);
        assert_eq!(asked.held(), 1500, "it goes beyond, and is counted");
        first.set(200);
        assert!(!first.grow(1), "what went beyond leaves nobody any room");
        drop(second);
        assert!(first.grow(800) && !first.grow(1));
        drop(first);
        assert_eq!(asked.held(), 0);
    }

    #[test]
    fn strangers_do_not_fill_the_table() {
        let rates = ClientRates::new(1.0, 1.0, 100);
        let start = Instant::now();
        for key in 0..10_000 {
            rates.charge(&key, 1, start);
        }
        assert!(rates.buckets.lock().len() <= 100);
    }

    #[test]
    fn a_token_holds_its_share_and_leaves_the_others_theirs() {
        let bodies = BodyMemory::new(1000, 400);
        let mut first = bodies.share(Some("a"));
        let mut second = bodies.share(Some("a"));
        assert!(first.grow(300).is_ok() && second.grow(100).is_ok());
        assert!(matches!(second.grow(1), Err(HttpRefusal::Crowded)));
        let mut other = bodies.share(Some("b"));
        let mut none = bodies.share(None);
        assert!(other.grow(100).is_ok() && none.grow(500).is_ok());
        assert!(matches!(other.grow(1), Err(HttpRefusal::Crowded)));
        drop(first);
        assert!(second.grow(300).is_ok() && bodies.held() == 1000);
        drop((second, other, none));
        let held = bodies.lock();
        assert!(held.all == 0 && held.of_tokens.is_empty());
    }
}
