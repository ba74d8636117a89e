//! Which messages a subscription has shown, by their identity.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use crate::limits::MAX_SEEN_RANGES;
use sealane_message::Topic;
use sealane_protocol::limits::MAX_IN_FLIGHT;
use sealane_seal::{Epoch, SenderContext, Slot};

use crate::ReceivedMessage;

/// Which message it is, within its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MessageIdentity {
    pub(super) sender: SenderStart,
    pub(super) counter: u64,
}

/// One start of a sender, in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SenderStart {
    pub(super) epoch: Epoch,
    pub(super) slot: Slot,
    pub(super) context: SenderContext,
}

/// Where a message stands in the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HubPosition(u64, u64, u64);

impl HubPosition {
    pub(super) fn of(message: &ReceivedMessage) -> HubPosition {
        let mut hasher = DefaultHasher::new();
        message.stream.as_str().hash(&mut hasher);
        HubPosition(hasher.finish(), message.generation, message.offset)
    }
}

/// Whether a message that comes was seen before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DuplicateVerdict {
    /// It is new.
    New,
    /// It came before, from the same place: a consumer's message that comes again.
    Again,
    /// It came before from another place, or that is not known any more.
    Elsewhere,
}

/// All identities that were seen, as ranges; of a consumer's latest also the places.
#[derive(Debug)]
pub(super) struct SeenMessages {
    senders: BTreeMap<SenderStart, BTreeMap<u64, u64>>,
    ranges: usize,
    /// None: nothing comes again from the same place.
    origins: Option<RecentPositions>,
    newest: HashMap<Topic, Epoch>,
    /// Of senders up to this one nothing is remembered any more.
    forgotten: Option<SenderStart>,
}

/// The places of as many messages as one consumer can have in flight.
#[derive(Debug, Default)]
struct RecentPositions {
    of: HashMap<MessageIdentity, HubPosition>,
    order: VecDeque<MessageIdentity>,
}

impl SeenMessages {
    pub(super) fn new(is_consumer: bool) -> SeenMessages {
        let origins = is_consumer.then(RecentPositions::default);
        let (senders, newest) = (BTreeMap::new(), HashMap::new());
        SeenMessages { senders, ranges: 0, origins, newest, forgotten: None }
    }

    /// The newest epoch that was seen in a stream.
    pub(super) fn newest(&self, stream: &Topic) -> Option<Epoch> {
        self.newest.get(stream).copied()
    }

    /// Looks at a message and remembers it.
    pub(super) fn see(
        &mut self,
        identity: MessageIdentity,
        stream: &Topic,
        origin: HubPosition,
    ) -> DuplicateVerdict {
        let MessageIdentity { sender, counter } = identity;
        if !self.insert(sender, counter) {
            let known = self.origins.as_ref().and_then(|origins| origins.of.get(&identity));
            return if known == Some(&origin) {
                DuplicateVerdict::Again
            } else {
                DuplicateVerdict::Elsewhere
            };
        }
        if let Some(origins) = &mut self.origins {
            origins.remember(identity, origin);
        }
        match self.newest.get_mut(stream) {
            Some(newest) => *newest = sender.epoch.max(*newest),
            None => drop(self.newest.insert(stream.clone(), sender.epoch)),
        }
        DuplicateVerdict::New
    }

    /// Counters between those that came.
    pub(super) fn skipped(&self) -> u64 {
        let between = |ranges: &BTreeMap<u64, u64>| {
            let (first, last) = (ranges.keys().next(), ranges.values().next_back());
            let whole = last.zip(first).map_or(0, |(last, first)| last - first + 1);
            whole - ranges.iter().map(|(from, to)| to - from + 1).sum::<u64>()
        };
        self.senders.values().map(between).sum()
    }

    /// Whether the counter is new.
    fn insert(&mut self, sender: SenderStart, counter: u64) -> bool {
        if self.forgotten >= Some(sender) {
            return false;
        }
        let ranges = self.senders.entry(sender).or_default();
        let below = ranges.range(..=counter).next_back().map(|(from, to)| (*from, *to));
        if below.is_some_and(|(_, to)| counter <= to) {
            return false;
        }
        let joins_below = below.filter(|(_, to)| to + 1 == counter);
        let above = ranges.get(&(counter + 1)).copied();
        let from = joins_below.map_or(counter, |(from, _)| from);
        if above.is_some() {
            ranges.remove(&(counter + 1));
            self.ranges -= 1;
        }
        if ranges.insert(from, above.unwrap_or(counter)).is_none() {
            self.ranges += 1;
        }
        if self.ranges > MAX_SEEN_RANGES {
            self.close_gap();
        }
        true
    }

    /// Forgets the oldest gap, so that a message that would still fill it counts as repeated: what
    /// cannot be remembered is refused, not shown twice.
    fn close_gap(&mut self) {
        let gapped = self.senders.iter_mut().find(|(_, ranges)| ranges.len() > 1);
        let Some((_, ranges)) = gapped else {
            // One range for each sender: the oldest is let go, and nothing more is taken of it.
            if let Some((oldest, ranges)) = self.senders.pop_first() {
                self.ranges -= ranges.len();
                self.forgotten = Some(oldest);
            }
            return;
        };
        let first = ranges.pop_first();
        let second = ranges.pop_first();
        if let (Some((from, _)), Some((_, to))) = (first, second) {
            ranges.insert(from, to);
            self.ranges -= 1;
        }
    }
}

impl RecentPositions {
    fn remember(&mut self, identity: MessageIdentity, origin: HubPosition) {
        if self.order.len() >= MAX_IN_FLIGHT
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
        self.order.push_back(identity);
        self.of.insert(identity, origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(epoch: u64) -> SenderStart {
        let slot = Slot::new(1).unwrap();
        SenderStart { epoch: Epoch(epoch), slot, context: SenderContext([5; 8]) }
    }

    fn see(seen: &mut SeenMessages, counter: u64, offset: u64) -> DuplicateVerdict {
        let stream: Topic = "a".parse().unwrap();
        let identity = MessageIdentity { sender: start(3), counter };
        seen.see(identity, &stream, HubPosition(7, 1, offset))
    }

    #[test]
    fn a_repeat_is_known_in_any_order_and_gaps_are_counted() {
        let mut seen = SeenMessages::new(false);
        for (offset, counter) in [5, 3, 4, 9, 7, 8, 0].into_iter().enumerate() {
            assert_eq!(see(&mut seen, counter, offset as u64), DuplicateVerdict::New);
        }
        assert_eq!((seen.ranges, seen.skipped()), (3, 3));
        for counter in [0, 3, 4, 5, 7, 8, 9] {
            assert_eq!(see(&mut seen, counter, 20), DuplicateVerdict::Elsewhere);
        }
        assert_eq!(see(&mut seen, 6, 21), DuplicateVerdict::New);
        assert_eq!((seen.ranges, seen.skipped()), (2, 2));
        assert_eq!(seen.newest(&"a".parse().unwrap()), Some(Epoch(3)));
    }

    #[test]
    fn a_consumers_message_comes_again_from_its_place_only() {
        let mut seen = SeenMessages::new(true);
        assert_eq!(see(&mut seen, 7, 1), DuplicateVerdict::New);
        assert_eq!(see(&mut seen, 7, 1), DuplicateVerdict::Again);
        assert_eq!(see(&mut seen, 7, 2), DuplicateVerdict::Elsewhere);
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_counts_as_seen() {
        let mut seen = SeenMessages::new(true);
        for n in 0..2 * MAX_SEEN_RANGES as u64 {
            assert_eq!(see(&mut seen, 2 * n, n), DuplicateVerdict::New);
            assert!(seen.ranges <= MAX_SEEN_RANGES);
        }
        assert_eq!(see(&mut seen, 1, 7), DuplicateVerdict::Elsewhere, "a gap that was closed");
        let origins = seen.origins.as_ref().unwrap();
        assert_eq!((origins.of.len(), origins.order.len()), (MAX_IN_FLIGHT, MAX_IN_FLIGHT));
    }

    #[test]
    fn many_senders_are_bounded_too() {
        let mut seen = SeenMessages::new(false);
        for epoch in 0..MAX_SEEN_RANGES as u64 + 10 {
            seen.insert(start(epoch), 0);
        }
        assert_eq!((seen.ranges, seen.senders.len()), (MAX_SEEN_RANGES, MAX_SEEN_RANGES));
        assert!(!seen.insert(start(3), 1), "it was let go");
    }
}
