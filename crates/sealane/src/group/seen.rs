//! Which messages a subscription has shown, by their names.
//!
//! All members can make an unsigned frame of any slot. So what was seen of signed messages and of
//! unsigned ones is kept apart, with a share for each slot, and only a slot's own signed messages
//! take the room of its signed ones.

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher};

use crate::limits::{MAX_SEEN_RANGES, MAX_SEEN_RANGES_OF_SLOT, MAX_SEEN_TAGS};
use sealane_frame::RELAY_BYTES;
use sealane_message::Topic;
use sealane_protocol::limits::MAX_IN_FLIGHT;
use sealane_seal::{Class, Epoch, OpenedMessage, SenderContext, Slot};

use crate::ReceivedMessage;

mod ranges;
mod tags;

use ranges::{CounterVerdict, SeenRanges};
use tags::SeenTags;

/// Which message it is, within its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MessageIdentity {
    pub(super) sender: SenderStart,
    pub(super) is_signed: bool,
    pub(super) counter: u64,
}

/// One start of a sender, in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SenderStart {
    pub(super) slot: Slot,
    pub(super) epoch: Epoch,
    pub(super) context: SenderContext,
}

/// A keyed hash of a frame. Nobody can make another frame of the same hash: of the tag in the frame
/// itself every member can, since it holds the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameHash(u64);

/// Where a message stands in the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct HubPosition(u64, u64, u64);

impl MessageIdentity {
    pub(super) fn of(opened: &OpenedMessage) -> MessageIdentity {
        let (epoch, slot, context) = (opened.epoch(), opened.slot(), opened.context());
        let sender = SenderStart { slot, epoch, context };
        let is_signed = opened.class() == Class::Signed;
        MessageIdentity { sender, is_signed, counter: opened.counter() }
    }
}

impl HubPosition {
    pub(super) fn of(message: &ReceivedMessage) -> HubPosition {
        let mut hasher = DefaultHasher::new();
        message.stream.as_str().hash(&mut hasher);
        HubPosition(hasher.finish(), message.generation, message.offset)
    }
}

/// Whether a message that comes was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuplicateVerdict {
    /// It is new.
    New,
    /// It came before, from the same place: a consumer's message that comes again.
    Again,
    /// It came before from another place, or that is not known any more.
    Elsewhere,
    /// It may have come before: what was known of its counter had to leave.
    Perhaps,
    /// It is unsigned, and another frame came under its name: one of the two is forged.
    Conflict,
}

/// All names that were seen; of a consumer's latest messages also the places.
#[derive(Debug, Default)]
pub(super) struct SeenMessages {
    key: RandomState,
    signed: SeenRanges,
    unsigned: SeenRanges,
    tags: SeenTags,
    /// None: nothing comes again from the same place.
    origins: Option<RecentPositions>,
    newest: HashMap<Topic, Epoch>,
}

/// The places of as many messages as one consumer can have in flight.
#[derive(Debug, Default)]
struct RecentPositions {
    of: HashMap<HubPosition, FrameHash>,
    order: VecDeque<HubPosition>,
}

impl SeenMessages {
    pub(super) fn new(is_consumer: bool) -> SeenMessages {
        let origins = is_consumer.then(RecentPositions::default);
        SeenMessages { origins, ..SeenMessages::default() }
    }

    /// The newest epoch that was seen in a stream.
    pub(super) fn newest(&self, stream: &Topic) -> Option<Epoch> {
        self.newest.get(stream).copied()
    }

    /// The hash of a frame: of all but what relays change.
    pub(super) fn hash(&self, frame: &[u8]) -> FrameHash {
        FrameHash(self.key.hash_one(frame.get(RELAY_BYTES..).unwrap_or_default()))
    }

    /// Looks at a message and remembers it.
    pub(super) fn see(
        &mut self,
        identity: MessageIdentity,
        hash: FrameHash,
        stream: &Topic,
        origin: HubPosition,
    ) -> DuplicateVerdict {
        let known = self.origins.as_ref().and_then(|origins| origins.of.get(&origin));
        if known == Some(&hash) {
            return DuplicateVerdict::Again;
        }
        let MessageIdentity { sender, is_signed, counter } = identity;
        let seen = if is_signed { &mut self.signed } else { &mut self.unsigned };
        let verdict = match seen.see(sender, counter) {
            CounterVerdict::Seen if is_signed || !self.tags.is_other(identity, hash) => {
                return DuplicateVerdict::Elsewhere;
            }
            CounterVerdict::Seen => DuplicateVerdict::Conflict,
            CounterVerdict::New => DuplicateVerdict::New,
            CounterVerdict::Doubtful => DuplicateVerdict::Perhaps,
        };
        if !is_signed {
            self.tags.remember(identity, hash);
        }
        if let Some(origins) = &mut self.origins {
            origins.remember(origin, hash);
        }
        match self.newest.get_mut(stream) {
            Some(newest) => *newest = sender.epoch.max(*newest),
            None => drop(self.newest.insert(stream.clone(), sender.epoch)),
        }
        verdict
    }

    /// Counters between those that came, signed or not: a sender uses one counter for both.
    pub(super) fn skipped(&self) -> u64 {
        let mut all: BTreeMap<SenderStart, Vec<(u64, u64)>> = BTreeMap::new();
        for (sender, range) in self.signed.ranges().chain(self.unsigned.ranges()) {
            all.entry(sender).or_default().push(range);
        }
        all.into_values().map(between).sum()
    }
}

/// How many counters lie between ranges of one start.
fn between(mut ranges: Vec<(u64, u64)>) -> u64 {
    ranges.sort_unstable();
    let (mut gaps, mut next) = (0, None);
    for (from, to) in ranges {
        gaps += next.map_or(0, |next| from.saturating_sub(next));
        next = next.max(Some(to + 1));
    }
    gaps
}

impl RecentPositions {
    fn remember(&mut self, origin: HubPosition, hash: FrameHash) {
        if self.order.len() >= MAX_IN_FLIGHT
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
        self.order.push_back(origin);
        self.of.insert(origin, hash);
    }
}

#[cfg(test)]
mod tests;
