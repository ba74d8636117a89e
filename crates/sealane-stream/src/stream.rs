//! A stream in memory: its extent, its recent blocks, and who reads it.

mod tail;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::limits::{MAX_CONSUMERS, MAX_TOKEN_CONSUMERS};
use parking_lot::Mutex;
use sealane_frame::GroupTag;
use sealane_message::Topic;

use crate::block::StreamBlock;
use crate::commit::StreamExtent;
use crate::consumer::{ConsumerMember, ConsumerProgress, DeadCounts};
use crate::metrics::{ConsumerCounts, OwnSeries, StreamCounts};
use crate::rules::HeldBounds;
use crate::shares::{OwnerTally, ShareBook, ShareKind, SharePlace};
use crate::signal::LaneWaiter;
use crate::store::{ConsumerRow, StreamRow, StreamSettings, TrimmedBlocks};
use crate::{ConsumerSettings, Error};
use tail::StreamTail;

/// One stream.
pub(crate) struct StreamEntry {
    pub(crate) number: u32,
    pub(crate) topic: Topic,
    /// The token that its share is counted for; empty: none was needed, or it is not known.
    pub(crate) owner: Arc<str>,
    pub(crate) created_ms: u64,
    /// The group whose keys open its messages, for as long as it lives; none: it is open.
    pub(crate) sealed: Option<GroupTag>,
    /// Set once it is removed from the store, for good.
    pub(crate) removed: AtomicBool,
    pub(crate) state: Mutex<StreamInner>,
    /// As `next` of the state, for readers that only want to know whether more has come.
    end: AtomicU64,
    /// The last subscription by pattern, in the order in which they came, that was told of this
    /// stream or has looked at it itself.
    pub(crate) met: AtomicU64,
    /// The waiters of all subscriptions of this stream, by member.
    pub(crate) waiters: Mutex<HashMap<ConsumerMember, Arc<LaneWaiter>>>,
    pub(crate) readers: AtomicUsize,
    pub(crate) counts: OwnSeries<StreamCounts>,
    /// Its place in its owner's share.
    place: OnceLock<SharePlace>,
}

pub(crate) struct StreamInner {
    pub(crate) settings: StreamSettings,
    /// The bounds that hold: its own, and those of a rule.
    pub(crate) bounds: HeldBounds,
    /// The lowest offset that can be read.
    pub(crate) first: u64,
    /// A commit that may not stand yet is removing the offsets below; `u64::MAX` where that is the
    /// whole stream.
    pub(crate) leaving: u64,
    /// The offset of the next append; everything below it has reached its level.
    pub(crate) next: u64,
    /// Everything below is in the store; `memory` streams are readable before they are stored.
    pub(crate) stored_next: u64,
    pub(crate) last_ms: u64,
    /// Bytes at rest.
    pub(crate) bytes: u64,
    /// (first offset, generation), ascending.
    pub(crate) generations: Vec<(u64, u64)>,
    pub(crate) damaged: Vec<(u64, u64)>,
    /// Whether the store may have blocks below `first`: they were purged, and go little by little.
    pub(crate) has_purged: bool,
    pub(crate) consumers: HashMap<Arc<str>, Arc<ConsumerEntry>>,
    tail: StreamTail,
}

/// A consumer, its members, and what the store knows of it.
pub(crate) struct ConsumerEntry {
    pub(crate) name: Arc<str>,
    /// The token that made it; empty: none was needed.
    pub(crate) owner: Arc<str>,
    pub(crate) state: Mutex<ConsumerProgress>,
    pub(crate) members: Mutex<HashMap<ConsumerMember, Arc<LaneWaiter>>>,
    /// Set once it is removed from the store, for good.
    pub(crate) removed: AtomicBool,
    pub(crate) dirty: AtomicBool,
    /// Whether the clock has to look after it.
    pub(crate) timed: AtomicBool,
    /// Whether the clock has to look whether its owner's share has room.
    pub(crate) starved: AtomicBool,
    /// Its place in its owner's share.
    place: OnceLock<SharePlace>,
    /// Messages that ran out of attempts and were made dead letters.
    pub(crate) dead_lettered: AtomicU64,
    /// Messages that ran out of attempts and could be made no dead letter.
    pub(crate) dead_dropped: AtomicU64,
    /// The stored state of the consumer; only the writer looks.
    pub(crate) kept: Mutex<ConsumerKept>,
    pub(crate) counts: OwnSeries<ConsumerCounts>,
}

/// The stored state of a consumer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConsumerKept {
    /// The number of its row; 0: it has none yet.
    pub(crate) number: u64,
    /// The first row of `progress` that its own row does not hold; 0: it holds all.
    pub(crate) first: u64,
    /// Bytes of it in such rows.
    pub(crate) bytes: u64,
    /// Its settings changed, so that its row has to be written.
    pub(crate) is_changed: bool,
}

/// Where an offset is.
pub(crate) enum OffsetPlace {
    /// In this block, or where a damaged record was, before a later one of it.
    Block(Arc<StreamBlock>),
    /// On disk.
    Behind,
    /// Not written yet.
    AtEnd,
    /// Removed by retention; reading goes on here.
    Trimmed(u64),
    /// Damaged; reading goes on here.
    Damaged(u64),
}

impl StreamEntry {
    pub(crate) fn new(row: StreamRow) -> Self {
        let topic = row.topic.clone();
        let entry = |row: ConsumerRow| {
            let entry = Arc::new(ConsumerEntry::restore(row, &topic));
            (entry.name.clone(), entry)
        };
        let state = StreamInner {
            bounds: HeldBounds { retention: row.settings.retention, rule: None },
            settings: row.settings,
            first: row.first,
            leaving: row.first,
            next: row.next,
            stored_next: row.next,
            last_ms: row.last_ms,
            bytes: row.bytes,
            generations: row.generations,
            damaged: row.damaged,
            has_purged: row.has_purged,
            consumers: row.consumers.into_iter().map(entry).collect(),
            tail: StreamTail::default(),
        };
        Self {
            number: row.number,
            topic: row.topic,
            owner: row.owner.into(),
            created_ms: row.created_ms,
            sealed: row.sealed,
            removed: AtomicBool::new(false),
            met: AtomicU64::new(0),
            end: AtomicU64::new(state.next),
            state: Mutex::new(state),
            waiters: Mutex::new(HashMap::new()),
            readers: AtomicUsize::new(0),
            counts: OwnSeries::default(),
            place: OnceLock::new(),
        }
    }

    /// Makes blocks that follow each other, and whose level is reached, readable.
    pub(crate) fn publish(&self, blocks: impl IntoIterator<Item = Arc<StreamBlock>>) {
        let mut state = self.state.lock();
        for block in blocks {
            // A reader sees messages from here on. So this comes after the commit, or at the level
            // `memory` before it.
            state.next = block.last + 1;
            state.last_ms = block.records.last().map_or(state.last_ms, |record| record.time_ms);
            let stored_next = state.stored_next;
            state.tail.push(block, stored_next);
        }
        // Before those are woken who look for it once they have asked to be.
        self.end.store(state.next, Ordering::SeqCst);
        drop(state);
        // The lock is free here. A woken reader would otherwise wait for it at once.
        self.wake();
    }

    /// Notes that blocks up to `last` are in the store.
    pub(crate) fn note_stored(&self, last: u64, bytes: u64) {
        let mut state = self.state.lock();
        state.stored_next = state.stored_next.max(last + 1);
        state.bytes += bytes;
        let stored_next = state.stored_next;
        state.tail.shorten(stored_next);
    }

    /// Notes that the offsets `first..=last` cannot be read; returns whether that is news.
    pub(crate) fn note_damage(&self, first: u64, last: u64) -> bool {
        let mut state = self.state.lock();
        let known = state.damaged.iter().any(|(a, b)| *a <= first && last <= *b);
        if !known {
            state.damaged.push((first, last));
            state.damaged.sort_unstable();
        }
        !known
    }

    /// Wakes every subscription that waits for this stream.
    pub(crate) fn wake(&self) {
        self.waiters.lock().values().for_each(|waiter| waiter.wake());
    }

    /// Wakes every subscription, those too that have no credit left.
    pub(crate) fn rouse(&self) {
        self.waiters.lock().values().for_each(|waiter| waiter.rouse());
    }

    /// Where `offset` is.
    pub(crate) fn find(&self, offset: u64) -> OffsetPlace {
        // Most looks find nothing new, so that they take no lock (decision 12).
        if offset >= self.end.load(Ordering::SeqCst) {
            return OffsetPlace::AtEnd;
        }
        self.state.lock().find(offset)
    }

    /// Lets other readers who catch up share `block`.
    pub(crate) fn share(&self, block: &Arc<StreamBlock>) {
        self.state.lock().tail.share(block.clone());
    }

    /// The consumer `name`, if there is one.
    pub(crate) fn known_consumer(&self, name: &str) -> Option<Arc<ConsumerEntry>> {
        self.state.lock().consumers.get(name).cloned()
    }

    /// Takes a consumer out that is removed from the store; its members are told.
    pub(crate) fn lose_consumer(&self, entry: &Arc<ConsumerEntry>) {
        self.state.lock().consumers.remove(&entry.name);
        entry.leave_shares();
        entry.removed.store(true, Ordering::SeqCst);
        entry.rouse();
    }

    /// The consumer `name`, made at `start` where there is none.
    pub(crate) fn consumer(
        &self,
        name: &str,
        owner: &str,
        start: u64,
        shares: &ShareBook,
    ) -> Result<Arc<ConsumerEntry>, Error> {
        let mut state = self.state.lock();
        if let Some(entry) = state.consumers.get(name) {
            return Ok(entry.clone());
        }
        // A bound for each token keeps one client from taking all consumers of a stream.
        let of_owner = state.consumers.values().filter(|entry| &*entry.owner == owner).count();
        let limits = [
            (of_owner, MAX_TOKEN_CONSUMERS, "consumers of this token"),
            (state.consumers.len(), MAX_CONSUMERS, "consumers"),
        ];
        for (count, limit, what) in limits {
            if count >= limit {
                return Err(Error::TooMany { what, limit: limit as u64 });
            }
        }
        let share = shares.of(owner);
        let place = share.take(ShareKind::Consumers)?;
        let consumer = ConsumerProgress::new(start, ConsumerSettings::default());
        let name: Arc<str> = name.into();
        let entry = Arc::new(ConsumerEntry::new(name.clone(), owner.into(), consumer));
        entry.belong_to(share, place);
        state.consumers.insert(name, entry.clone());
        Ok(entry)
    }

    /// Counts for its owner, and its consumers for theirs.
    pub(crate) fn belong_to(&self, shares: &ShareBook) {
        if let Some(kind) = ShareKind::of_stream(&self.topic) {
            self.place.get_or_init(|| shares.of(&self.owner).keep(kind));
        }
        let consumers: Vec<_> = self.state.lock().consumers.values().cloned().collect();
        for entry in consumers {
            let share = shares.of(&entry.owner);
            let place = share.keep(ShareKind::Consumers);
            entry.belong_to(share, place);
        }
    }

    /// It is removed, and its consumers with it.
    pub(crate) fn leave_shares(&self) {
        self.place.get().into_iter().for_each(SharePlace::leave);
        let consumers: Vec<_> = self.state.lock().consumers.values().cloned().collect();
        consumers.iter().for_each(|entry| entry.leave_shares());
    }

    /// Whether it has a reader, or a consumer of it a member.
    pub(crate) fn is_read(&self) -> bool {
        let consumers: Vec<_> = self.state.lock().consumers.values().cloned().collect();
        self.readers.load(Ordering::Relaxed) > 0
            || consumers.iter().any(|entry| !entry.members.lock().is_empty())
    }

    /// The settings that its owner chose.
    pub(crate) fn settings(&self) -> StreamSettings {
        self.state.lock().settings
    }
}

impl StreamInner {
    /// The generation that is being written.
    pub(crate) fn generation(&self) -> u64 {
        self.generations.last().map_or(0, |(_, generation)| *generation)
    }

    /// How far the stream `number` reaches in the store once `gone` has left it.
    pub(crate) fn extent(&self, number: u32, gone: Option<TrimmedBlocks>) -> StreamExtent {
        let behind = gone.map_or(0, |gone| gone.last + 1);
        // A purge may go beyond what is stored: a commit stores a `memory` stream's messages and
        // purges them. The next message is behind both.
        StreamExtent {
            stream: number,
            first: self.first.max(behind),
            next: self.stored_next.max(behind),
            bytes: self.bytes.saturating_sub(gone.map_or(0, |gone| gone.bytes)),
        }
    }

    /// The offsets that can be read.
    pub(crate) fn visible(&self) -> Range<u64> {
        self.first..self.next
    }

    /// The first offset from `from` on whose block's last message is not older than `time_ms`, of
    /// what is not stored yet.
    pub(crate) fn offset_at(&self, from: u64, time_ms: u64) -> u64 {
        self.tail.find_time(from, time_ms).map_or(self.next, |block| block.first)
    }

    /// When the message of `offset` was stored, where it is among the recent ones.
    pub(crate) fn time_of(&self, offset: u64) -> Option<u64> {
        self.tail.time_of(offset)
    }

    /// Where a reader goes on who has seen everything before `offset` of `generation`, and
    /// whether nothing is missing.
    pub(crate) fn resume(&self, offset: u64, generation: Option<u64>) -> (u64, bool) {
        let end = match generation {
            // The client waited for a stream that was not there yet: it has seen nothing.
            Some(0) if offset == 0 => return (self.first, self.first == 0),
            None => Some(self.next),
            Some(wanted) => {
                let at = self.generations.iter().position(|(_, generation)| *generation == wanted);
                at.map(|at| self.generations.get(at + 1).map_or(self.next, |(first, _)| *first))
            }
        };
        match end {
            // The client has seen messages that this generation does not have. They were
            // acknowledged and lost.
            Some(end) if offset > end => (end.max(self.first), false),
            Some(_) if offset < self.first => (self.first, false),
            Some(_) => (offset, true),
            None => (self.first, false),
        }
    }

    fn find(&self, offset: u64) -> OffsetPlace {
        if offset >= self.next {
            return OffsetPlace::AtEnd;
        }
        if offset < self.first {
            return OffsetPlace::Trimmed(self.first);
        }
        // Known damage is answered from memory. Otherwise each reader would read the bad block
        // again.
        if let Some((_, last)) = self.damaged.iter().find(|(a, b)| (*a..=*b).contains(&offset)) {
            return OffsetPlace::Damaged(last + 1);
        }
        self.tail.find(offset).cloned().map_or(OffsetPlace::Behind, OffsetPlace::Block)
    }
}

impl ConsumerEntry {
    /// Counts for its owner's shares from now on.
    fn belong_to(&self, share: Arc<OwnerTally>, place: SharePlace) {
        if self.place.set(place).is_ok() {
            self.state.lock().belong_to(share);
        }
    }

    /// It is removed. Members that do not know it yet count no more.
    fn leave_shares(&self) {
        self.place.get().into_iter().for_each(SharePlace::leave);
        self.state.lock().leave_share();
    }

    fn new(name: Arc<str>, owner: Arc<str>, consumer: ConsumerProgress) -> Self {
        Self {
            name,
            owner,
            state: Mutex::new(consumer),
            members: Mutex::new(HashMap::new()),
            removed: AtomicBool::new(false),
            dirty: AtomicBool::new(false),
            timed: AtomicBool::new(false),
            starved: AtomicBool::new(false),
            place: OnceLock::new(),
            dead_lettered: AtomicU64::new(0),
            dead_dropped: AtomicU64::new(0),
            kept: Mutex::default(),
            counts: OwnSeries::default(),
        }
    }

    fn restore(row: ConsumerRow, topic: &Topic) -> Self {
        let changes = &row.changes.pieces;
        let mut dead = DeadCounts { lettered: row.dead_lettered, dropped: row.dead_dropped };
        // A row that cannot be read loses this consumer's place, and must not keep the hub from
        // starting.
        let consumer = ConsumerProgress::restore(row.settings, &row.state, changes, &mut dead);
        let mut consumer = consumer.unwrap_or_else(|| {
            tracing::error!(stream = %topic, consumer = row.name, "begins anew: it is damaged");
            let mut consumer = ConsumerProgress::new(0, row.settings);
            // Its row is of no use to what is stored next.
            consumer.is_unstored();
            consumer
        });
        consumer.paused_ms = row.paused_ms;
        let kept = ConsumerKept {
            number: row.number,
            first: row.changes.first,
            bytes: changes.iter().map(|piece| piece.len() as u64).sum(),
            is_changed: false,
        };
        Self {
            dead_lettered: AtomicU64::new(dead.lettered),
            dead_dropped: AtomicU64::new(dead.dropped),
            kept: Mutex::new(kept),
            ..Self::new(row.name.into(), row.owner.into(), consumer)
        }
    }

    /// Wakes every member that waits for something to do.
    pub(crate) fn wake(&self) {
        self.members.lock().values().for_each(|waiter| waiter.wake());
    }

    /// Wakes every member, those too that have no credit left.
    pub(crate) fn rouse(&self) {
        self.members.lock().values().for_each(|waiter| waiter.rouse());
    }
}
