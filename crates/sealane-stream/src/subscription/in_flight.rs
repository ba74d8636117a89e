//! The ids of what a member has in flight: it may acknowledge by id, and the log knows offsets.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use super::lane::{LaneWork, SubscriptionLane};
use super::lanes::SubscriptionLanes;
use crate::consumer::ConsumerMember;

/// A message that a member has in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeliveredMessage {
    /// The index of its lane.
    pub(super) lane: usize,
    pub(super) offset: u64,
}

/// The messages that a member has in flight, by the hash of their id.
#[derive(Default)]
pub(super) struct InFlight {
    first: HashMap<u64, DeliveredMessage, BuildHasherDefault<HashedKey>>,
    /// The further messages of ids that are in flight more than once, which is rare.
    repeats: HashMap<u64, BTreeSet<DeliveredMessage>>,
    hash: RandomState,
    /// Messages acknowledged by offset, which are still here.
    stale: usize,
    /// How many there were after the last look at which of them are still in flight.
    held: usize,
}

impl InFlight {
    pub(super) fn insert(&mut self, id: &[u8], delivered: DeliveredMessage) {
        let hash = self.hash.hash_one(id);
        // Almost every id is in flight once, so that one small map serves nearly all.
        let first = *self.first.entry(hash).or_insert(delivered);
        if first != delivered {
            self.repeats.entry(hash).or_default().insert(delivered);
        }
    }

    pub(super) fn remove(&mut self, id: &[u8], all: &mut Vec<DeliveredMessage>) {
        let hash = self.hash.hash_one(id);
        all.extend(self.first.remove(&hash));
        if !self.repeats.is_empty() {
            all.extend(self.repeats.remove(&hash).into_iter().flatten());
        }
    }

    /// Forgets everything of a lane, whose index another stream may get.
    pub(super) fn lose(&mut self, lane: usize) {
        self.repeats.retain(|_, further| {
            further.retain(|delivered| delivered.lane != lane);
            !further.is_empty()
        });
        let repeats = &mut self.repeats;
        self.first.retain(|hash, delivered| {
            if delivered.lane != lane {
                return true;
            }
            let next = repeats.get_mut(hash).and_then(BTreeSet::pop_first);
            next.is_some_and(|next| {
                *delivered = next;
                true
            })
        });
    }

    /// Forgets what was acknowledged by offset, once that is half of all.
    pub(super) fn prune(
        &mut self,
        acked: usize,
        member: ConsumerMember,
        lanes: &SubscriptionLanes,
    ) {
        self.stale += acked;
        // Acknowledgements by offset do not know ids. Cleaning at half keeps the cost of each
        // constant.
        if self.stale >= 1024 && self.stale * 2 >= self.first.len() {
            self.forget(member, lanes);
        }
    }

    /// Forgets what is in flight to this member no more, though it never acknowledged it, once
    /// that may be half of all.
    pub(super) fn bound(&mut self, member: ConsumerMember, lanes: &SubscriptionLanes) {
        let repeats: usize = self.repeats.len();
        // Messages that time out go to others without a word here. This bound finds them.
        if self.first.len() + repeats > 1024 + 2 * self.held {
            self.forget(member, lanes);
        }
    }

    fn forget(&mut self, member: ConsumerMember, lanes: &SubscriptionLanes) {
        self.stale = 0;
        let held = |delivered: &DeliveredMessage| match lanes.get(delivered.lane) {
            Some(SubscriptionLane { work: LaneWork::Member { entry }, .. }) => {
                entry.state.lock().holds(member, delivered.offset)
            }
            _ => false,
        };
        self.repeats.retain(|_, further| {
            further.retain(held);
            !further.is_empty()
        });
        // An id whose first message is done may have others: one of them becomes the first.
        let repeats = &mut self.repeats;
        self.first.retain(|hash, delivered| {
            if held(delivered) {
                return true;
            }
            let next = repeats.get_mut(hash).and_then(BTreeSet::pop_first);
            next.is_some_and(|next| {
                *delivered = next;
                true
            })
        });
        self.held = self.first.len() + self.repeats.len();
    }
}

/// Passes on a key that is a hash already.
#[derive(Default)]
struct HashedKey(u64);

impl Hasher for HashedKey {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_no_more_is_forgotten_though_it_was_never_acknowledged() {
        let (mut in_flight, lanes) = (InFlight::default(), SubscriptionLanes::default());
        for offset in 0..100_000_u64 {
            // Retention, or the time to acknowledge, took each of them.
            in_flight.insert(&offset.to_le_bytes(), DeliveredMessage { lane: 0, offset });
            in_flight.bound(1, &lanes);
            assert!(in_flight.first.len() <= 1025, "{} after {offset}", in_flight.first.len());
        }
    }
}
