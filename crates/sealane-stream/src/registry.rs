//! All streams of a hub, and the lists by which its threads find what needs them.

mod followers;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use parking_lot::{Condvar, Mutex, RwLock};
use sealane_message::{Pattern, Topic};

use crate::Error;
use crate::block::StreamBlock;
use crate::checkpoint::CheckpointLog;
use crate::clock::HubClock;
use crate::consumer::ConsumerMember;
use crate::metrics::{Metrics, SeriesPlaces, Timings};
use crate::rooms::StreamRooms;
use crate::rules::RuleTable;
use crate::shares::ShareBook;
use crate::signal::SubscriptionSignal;
use crate::store::{StoreFault, StoreReads, StreamRow};
use crate::stream::{ConsumerEntry, StreamEntry};
use crate::writer::WriterCommand;
use followers::PatternFollowers;

pub(crate) struct StreamRegistry {
    pub(crate) reads: StoreReads,
    pub(crate) clock: HubClock,
    pub(crate) metrics: Metrics,
    pub(crate) timings: Timings,
    pub(crate) series: SeriesPlaces,
    pub(crate) shares: ShareBook,
    /// Every stream has its row in the store: only the writer adds and removes streams, in the
    /// order of its queue, after the commit stands.
    streams: RwLock<StreamIndex>,
    /// The rules of retention.
    rules: RwLock<Arc<RuleTable>>,
    /// Whether any stream has bounds, or ever had since the hub was opened.
    pub(crate) bounded: AtomicBool,
    /// Why the last commit failed, as long as they do.
    pub(crate) fault: Mutex<Option<StoreFault>>,
    /// Held by whoever copies the write-ahead log.
    pub(crate) log: CheckpointLog,
    followers: PatternFollowers,
    dirty: Mutex<Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)>>,
    timed: Mutex<Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)>>,
    timed_added: Condvar,
    /// Consumers that give nothing new until their owners' shares have room.
    starved: Mutex<Vec<Arc<ConsumerEntry>>>,
    writer: Sender<WriterCommand>,
}

#[derive(Default)]
struct StreamIndex {
    by_topic: BTreeMap<Topic, Arc<StreamEntry>>,
    by_number: HashMap<u32, Arc<StreamEntry>>,
    rooms: StreamRooms,
}

impl StreamRegistry {
    pub(crate) fn new(
        reads: StoreReads,
        clock: HubClock,
        is_bounded: bool,
        rows: Vec<StreamRow>,
        writer: Sender<WriterCommand>,
    ) -> Self {
        let is_bounded = is_bounded
            || rows.iter().any(|row| !row.settings.retention.keeps_all() || row.has_purged);
        let (mut streams, series) = (StreamIndex::default(), SeriesPlaces::default());
        let shares = ShareBook::default();
        let mut known: Vec<_> =
            rows.into_iter().map(|row| Arc::new(StreamEntry::new(row))).collect();
        // Series go to the oldest streams, the same after each start.
        known.sort_by_key(|stream| (stream.created_ms, stream.number));
        for stream in known {
            series.admit(&stream);
            stream.belong_to(&shares);
            streams.add(stream);
        }
        Self {
            reads,
            clock,
            metrics: Metrics::default(),
            timings: Timings::default(),
            series,
            shares,
            streams: RwLock::new(streams),
            rules: RwLock::default(),
            bounded: AtomicBool::new(is_bounded),
            fault: Mutex::default(),
            log: CheckpointLog::default(),
            followers: PatternFollowers::default(),
            dirty: Mutex::default(),
            timed: Mutex::default(),
            timed_added: Condvar::new(),
            starved: Mutex::default(),
            writer,
        }
    }

    /// The rules of retention.
    pub(crate) fn rules(&self) -> Arc<RuleTable> {
        self.rules.read().clone()
    }

    /// Has these rules hold from now on. Where they are known to differ for the topics of one
    /// pattern alone, only those streams are looked at.
    pub(crate) fn hold(&self, rules: RuleTable, of: Option<&Pattern>) {
        self.bounded.fetch_or(rules.is_bounded(), Ordering::Relaxed);
        *self.rules.write() = Arc::new(rules);
        let is_concerned = |topic: &Topic| of.is_none_or(|pattern| pattern.matches(topic));
        for stream in self.streams().iter().filter(|stream| is_concerned(&stream.topic)) {
            self.govern(stream);
        }
    }

    /// Gives a stream the bounds that hold for it by its settings and the rules.
    pub(crate) fn govern(&self, stream: &StreamEntry) {
        let rules = self.rules();
        let mut state = stream.state.lock();
        state.bounds = rules.bounds(&stream.topic, &state.settings);
        self.bounded.fetch_or(!state.bounds.retention.keeps_all(), Ordering::Relaxed);
    }

    /// Has the clock look after every consumer that waits for time to pass, or for dead letters.
    pub(crate) fn begin(&self) {
        for stream in self.streams() {
            let consumers: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
            for entry in consumers {
                if !entry.state.lock().is_settled() {
                    self.mark_timed(&stream, &entry);
                }
            }
        }
    }

    /// The stream of `topic`, if there is one.
    pub(crate) fn find(&self, topic: &Topic) -> Option<Arc<StreamEntry>> {
        self.streams.read().by_topic.get(topic).cloned()
    }

    pub(crate) fn by_number(&self, number: u32) -> Option<Arc<StreamEntry>> {
        self.streams.read().by_number.get(&number).cloned()
    }

    /// All streams, by topic.
    pub(crate) fn streams(&self) -> Vec<Arc<StreamEntry>> {
        self.streams.read().by_topic.values().cloned().collect()
    }

    /// How many streams there are.
    pub(crate) fn count(&self) -> usize {
        self.streams.read().by_topic.len()
    }

    /// How many of them there are in each room.
    pub(crate) fn rooms(&self) -> StreamRooms {
        self.streams.read().rooms
    }

    /// How many of them are sealed.
    pub(crate) fn count_sealed(&self) -> usize {
        self.streams.read().by_topic.values().filter(|stream| stream.sealed.is_some()).count()
    }

    /// Up to `limit` streams that match, in the order of their topics, behind `after`.
    pub(crate) fn page(
        &self,
        pattern: Option<&Pattern>,
        after: Option<&Topic>,
        limit: usize,
    ) -> Vec<Arc<StreamEntry>> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let streams = self.streams.read();
        let behind = streams.by_topic.range::<Topic, _>((start, Bound::Unbounded));
        let matching = behind.filter(|(topic, _)| pattern.is_none_or(|p| p.matches(topic)));
        matching.map(|(_, stream)| stream.clone()).take(limit).collect()
    }

    /// The next `looks` streams whose topics begin so, in their order, behind `after`.
    pub(crate) fn begun(
        &self,
        beginning: &str,
        after: Option<&Topic>,
        looks: usize,
    ) -> Vec<Arc<StreamEntry>> {
        let start = match after.map(Topic::as_str) {
            Some(after) if after >= beginning => Bound::Excluded(after),
            _ => Bound::Included(beginning),
        };
        let streams = self.streams.read();
        let behind = streams.by_topic.range::<str, _>((start, Bound::Unbounded));
        let begun = behind.take_while(|(topic, _)| topic.as_str().starts_with(beginning));
        begun.map(|(_, stream)| stream.clone()).take(looks).collect()
    }

    /// Adds a stream that is stored; whoever waits for one of its name is told.
    pub(crate) fn insert(&self, stream: &Arc<StreamEntry>) {
        // The series is there before the stream can be found, so that its first message is counted.
        self.series.admit(stream);
        self.govern(stream);
        stream.belong_to(&self.shares);
        self.streams.write().add(stream.clone());
        self.followers.meet(stream, 0);
    }

    /// Makes blocks readable, and tells those who have not met the stream.
    pub(crate) fn publish(&self, stream: &Arc<StreamEntry>, blocks: Vec<Arc<StreamBlock>>) {
        let Some(first) = blocks.first().map(|block| block.first) else { return };
        stream.publish(blocks);
        self.followers.meet(stream, first);
    }

    /// Takes out a stream that is removed from the store; whoever reads it is told.
    pub(crate) fn remove(&self, stream: &Arc<StreamEntry>) {
        let mut streams = self.streams.write();
        if streams.by_topic.remove(&stream.topic).is_some() {
            streams.rooms.remove(&stream.topic);
        }
        streams.by_number.remove(&stream.number);
        drop(streams);
        self.series.dismiss(stream);
        stream.leave_shares();
        // The stream leaves the lists before the flag is set: a reader that sees the flag finds no
        // old entry.
        stream.removed.store(true, Ordering::SeqCst);
        stream.rouse();
    }

    /// Tells `signal` of the streams that come to match, and of others once they have something;
    /// returns those that match now.
    pub(crate) fn watch(
        &self,
        member: ConsumerMember,
        pattern: &Pattern,
        signal: &Arc<SubscriptionSignal>,
    ) -> Vec<Arc<StreamEntry>> {
        self.followers.watch(member, pattern, signal);
        self.page(Some(pattern), None, usize::MAX)
    }

    pub(crate) fn unwatch(&self, member: ConsumerMember) {
        self.followers.unwatch(member);
    }

    /// Notes that a subscription follows one more stream than `before`.
    ///
    /// # Errors
    /// [`Error::TooMany`] where that is more than its share.
    pub(crate) fn follow(&self, before: usize) -> Result<(), Error> {
        self.followers.follow(before)
    }

    pub(crate) fn unfollow(&self, count: usize) {
        self.followers.unfollow(count);
    }

    /// Streams that subscriptions follow, each as often as it is followed.
    pub(crate) fn followed(&self) -> usize {
        self.followers.followed()
    }

    /// Has the consumer stored soon.
    pub(crate) fn mark_dirty(&self, stream: &Arc<StreamEntry>, entry: &Arc<ConsumerEntry>) {
        if entry.dirty.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut dirty = self.dirty.lock();
        dirty.push((stream.clone(), entry.clone()));
        // One command wakes the writer for the whole list, however many consumers change.
        if dirty.len() == 1 {
            // Nobody listens any more only after the writer has stored everything and ended.
            let _ = self.writer.send(WriterCommand::Dirty);
        }
    }

    pub(crate) fn has_dirty(&self) -> bool {
        !self.dirty.lock().is_empty()
    }

    pub(crate) fn take_dirty(&self) -> Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)> {
        std::mem::take(&mut self.dirty.lock())
    }

    /// Gives back consumers that were taken and not looked at.
    pub(crate) fn give_back(&self, mut dirty: Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)>) {
        self.dirty.lock().append(&mut dirty);
    }

    /// Has the clock look after the consumer.
    pub(crate) fn mark_timed(&self, stream: &Arc<StreamEntry>, entry: &Arc<ConsumerEntry>) {
        if !entry.timed.swap(true, Ordering::SeqCst) {
            self.timed.lock().push((stream.clone(), entry.clone()));
            self.timed_added.notify_one();
        }
    }

    /// Has the clock wake the consumer's members once its owner's share has room.
    pub(crate) fn mark_starved(&self, entry: &Arc<ConsumerEntry>) {
        if !entry.starved.swap(true, Ordering::SeqCst) {
            self.starved.lock().push(entry.clone());
        }
    }

    /// Wakes the members of consumers whose owners' shares have room again.
    pub(crate) fn wake_starved(&self) {
        let starved = std::mem::take(&mut *self.starved.lock());
        let mut kept = Vec::new();
        for entry in starved {
            if entry.state.lock().is_starved() && !entry.removed.load(Ordering::Relaxed) {
                kept.push(entry);
                continue;
            }
            // The mark goes first: a member that finds nothing after all marks it anew.
            entry.starved.store(false, Ordering::SeqCst);
            entry.wake();
        }
        self.starved.lock().append(&mut kept);
    }

    /// Waits up to `patience` until some consumer waits for time to pass.
    pub(crate) fn wait_timed(&self, patience: std::time::Duration) {
        let mut timed = self.timed.lock();
        if timed.is_empty() {
            self.timed_added.wait_for(&mut timed, patience);
        }
    }

    /// Ends [`StreamRegistry::wait_timed`] for whoever waits.
    pub(crate) fn stop_waiting(&self) {
        self.timed_added.notify_all();
    }

    /// Lets time pass for all consumers that wait for it.
    pub(crate) fn expire(&self) {
        let (steady_ms, ahead_ms) = (self.clock.steady_ms(), self.clock.ahead_ms());
        // The list is taken out, since the walk locks consumers and connections add to it
        // meanwhile.
        let timed = std::mem::take(&mut *self.timed.lock());
        let mut kept = Vec::with_capacity(timed.len());
        for (stream, entry) in timed {
            let mut consumer = entry.state.lock();
            let ready = consumer.expire(steady_ms);
            if consumer.set_ahead(ahead_ms) {
                // The stored times of what is held back are of the day, and that has stepped.
                consumer.is_unstored();
                self.mark_dirty(&stream, &entry);
            }
            // Flag and state are decided under the consumer's lock. A message handed out after it
            // marks the consumer anew.
            let (dead, settled) = (consumer.has_dead(), consumer.is_settled());
            let is_gone = entry.removed.load(Ordering::Relaxed);
            if settled || is_gone || stream.removed.load(Ordering::Relaxed) {
                entry.timed.store(false, Ordering::SeqCst);
            }
            drop(consumer);
            if ready {
                entry.wake();
            }
            if dead {
                // Dead messages need the writer, even if no member acts again.
                self.mark_dirty(&stream, &entry);
            }
            if entry.timed.load(Ordering::SeqCst) {
                kept.push((stream, entry));
            }
        }
        self.timed.lock().append(&mut kept);
    }

    /// Hands a command to the writer.
    pub(crate) fn send(&self, command: WriterCommand) -> Result<(), Error> {
        self.writer.send(command).map_err(|_| Error::Draining)
    }
}

impl StreamIndex {
    fn add(&mut self, stream: Arc<StreamEntry>) {
        if self.by_topic.insert(stream.topic.clone(), stream.clone()).is_none() {
            self.rooms.add(&stream.topic);
        }
        self.by_number.insert(stream.number, stream);
    }
}
