//! The ids of what a member has in flight: it may acknowledge by id, and the log knows offsets.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use super::slot::{Slot, Work};
use super::slots::Slots;
use crate::consumer::Member;

/// Where the messages are that a member has in flight, by the hash of their id: slot and offset.
#[derive(Default)]
pub(super) struct InFlight {
    places: HashMap<u64, (usize, u64), BuildHasherDefault<Hashed>>,
    /// The further places of ids that are in flight more than once, which is rare.
    repeats: HashMap<u64, BTreeSet<(usize, u64)>>,
    hash: RandomState,
    /// Messages acknowledged by offset, which are still here.
    stale: usize,
    /// How many there were after the last look at which of them are still in flight.
    held: usize,
}

impl InFlight {
    pub(super) fn insert(&mut self, id: &[u8], place: (usize, u64)) {
        let hash = self.hash.hash_one(id);
        let first = *self.places.entry(hash).or_insert(place);
        if first != place {
            self.repeats.entry(hash).or_default().insert(place);
        }
    }

    pub(super) fn remove(&mut self, id: &[u8], places: &mut Vec<(usize, u64)>) {
        let hash = self.hash.hash_one(id);
        places.extend(self.places.remove(&hash));
        if !self.repeats.is_empty() {
            places.extend(self.repeats.remove(&hash).into_iter().flatten());
        }
    }

    /// Forgets everything of a slot, whose index another stream may get.
    pub(super) fn lose(&mut self, slot: usize) {
        self.repeats.retain(|_, places| {
            places.retain(|(index, _)| *index != slot);
            !places.is_empty()
        });
        let repeats = &mut self.repeats;
        self.places.retain(|hash, place| {
            if place.0 != slot {
                return true;
            }
            let next = repeats.get_mut(hash).and_then(BTreeSet::pop_first);
            next.is_some_and(|next| {
                *place = next;
                true
            })
        });
    }

    /// Forgets what was acknowledged by offset, once that is half of all.
    pub(super) fn prune(&mut self, acked: usize, member: Member, slots: &Slots) {
        self.stale += acked;
        if self.stale >= 1024 && self.stale * 2 >= self.places.len() {
            self.forget(member, slots);
        }
    }

    /// Forgets what is in flight to this member no more, though it never acknowledged it, once
    /// that may be half of all.
    pub(super) fn bound(&mut self, member: Member, slots: &Slots) {
        let repeats: usize = self.repeats.len();
        if self.places.len() + repeats > 1024 + 2 * self.held {
            self.forget(member, slots);
        }
    }

    fn forget(&mut self, member: Member, slots: &Slots) {
        self.stale = 0;
        let held = |(index, offset): &(usize, u64)| match slots.get(*index) {
            Some(Slot { work: Work::Member { shared }, .. }) => {
                shared.state.lock().holds(member, *offset)
            }
            _ => false,
        };
        self.repeats.retain(|_, places| {
            places.retain(held);
            !places.is_empty()
        });
        // An id whose first place is done may have others: one of them takes its place.
        let repeats = &mut self.repeats;
        self.places.retain(|hash, place| {
            if held(place) {
                return true;
            }
            let next = repeats.get_mut(hash).and_then(BTreeSet::pop_first);
            next.is_some_and(|next| {
                *place = next;
                true
            })
        });
        self.held = self.places.len() + self.repeats.len();
    }
}

/// Passes on a key that is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
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
        let (mut in_flight, slots) = (InFlight::default(), Slots::default());
        for offset in 0..100_000_u64 {
            // Retention, or the time to acknowledge, took each of them.
            in_flight.insert(&offset.to_le_bytes(), (0, offset));
            in_flight.bound(1, &slots);
            assert!(in_flight.places.len() <= 1025, "{} after {offset}", in_flight.places.len());
        }
    }
}
