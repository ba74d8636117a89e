//! The hub: streams on disk, and everything that is done with them.

mod keys;
mod manage;
mod shares;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::limits::MAX_WRITE_QUEUE_MESSAGES;
use parking_lot::Mutex;
use sealane_message::{Pattern, Topic};
use sealane_protocol::limits::{MAX_BATCH_MESSAGES, MAX_DELAY_MS, MAX_RANGE_MESSAGES};
use sealane_protocol::{StreamJoined, StreamPosition};
use tokio::sync::{Semaphore, oneshot};

use keys::EnqueueKeys;
pub use keys::IdempotencyKey;

use crate::clock::HubClock;
use crate::envelope::{MessageIds, StreamEnvelope};
use crate::metrics::{Metrics, SeriesFigures, Timings, figures};
use crate::publishing::{OpenSessions, PublishSession, queue_cost};
use crate::registry::StreamRegistry;
use crate::rules::RuleTable;
use crate::store::{OwnBounds, StoreId, StoreReads, StoreWrites, StreamSettings};
use crate::stream::{ConsumerEntry, StreamEntry};
use crate::subscription::{
    LaneTurn, StreamSubscription, SubscriptionOutput, SubscriptionReader, TURN_BYTES, part, read,
    start_offset,
};
use crate::writer::{
    AppendCommand, AppendedMessages, ConfigureCommand, RemoveCommand, StoreWriter, WriterCommand,
    check_seal,
};
use crate::{
    ConsumerState, Error, Level, ReadStart, Retention, StreamChange, StreamState, checkpoint, store,
};

/// How a hub is opened.
#[derive(Debug, Clone)]
pub struct HubConfig {
    /// Where the streams are kept; made if it is not there.
    pub folder: PathBuf,
    /// The level of streams that are made by their first message.
    pub level: Level,
    /// The retention of streams that are made by their first message.
    pub retention: Retention,
}

/// An append of one or more messages to one stream: all or none, one after the other.
#[derive(Debug, Clone)]
pub struct StreamEnqueue {
    /// The stream.
    pub topic: Topic,
    /// The messages.
    pub envelopes: Vec<StreamEnvelope>,
    /// The offset that the first must get.
    pub expect: Option<u64>,
    /// How long they are held back.
    pub delay_ms: Option<u64>,
    /// The idempotency key, and the body that came with it.
    pub key: Option<IdempotencyKey>,
    /// The owner of the shares that it counts to, a token; empty: none was needed.
    pub owner: Arc<str>,
}

/// Streams that were found among others.
#[derive(Debug)]
pub struct StreamsFound {
    /// Those that were wanted.
    pub streams: Vec<StreamState>,
    /// How many were looked at for them.
    pub looked: usize,
    /// The last one that was looked at, wanted or not, where there may be more behind it.
    pub next: Option<Topic>,
}

/// Streams that are looked at in one go.
const LOOKS: usize = 256;
/// Consumers that are described in one go, and those of one stream.
const LOOKED_CONSUMERS: usize = 1024;

/// Messages of a range request.
#[derive(Debug)]
pub struct StreamPage {
    /// The stream's topic and generation.
    pub joined: StreamJoined,
    /// Messages and gaps, in order.
    pub events: Vec<SubscriptionOutput>,
    /// Where to go on.
    pub next: u64,
    /// Whether nothing was left.
    pub end: bool,
}

/// Streams on disk. Cheap to share behind an [`Arc`].
pub struct StreamHub {
    registry: Arc<StreamRegistry>,
    ids: MessageIds,
    queue: Arc<Semaphore>,
    sessions: Arc<OpenSessions>,
    closing: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    level: Level,
    store_id: StoreId,
    #[cfg(test)]
    pub(crate) store_trouble: crate::store::trouble::PlannedTrouble,
}

impl StreamHub {
    /// Opens the streams of a folder, recovering from whatever way they were left.
    ///
    /// # Errors
    /// [`Error::StorageFailed`] where the folder cannot be used, is used by another hub, or was
    /// written by a newer version.
    pub fn open(config: HubConfig) -> Result<Self, Error> {
        Self::open_by(config, HubClock::system())
    }

    /// As [`StreamHub::open`], by another clock than the system's.
    ///
    /// # Errors
    /// As [`StreamHub::open`].
    pub fn open_by(config: HubConfig, clock: HubClock) -> Result<Self, Error> {
        // The store takes its lock first. Two hubs of one folder must not both get as far as
        // threads.
        let opened = store::open(&config.folder, clock.day_ms())?;
        let (sender, receiver) = std::sync::mpsc::channel();
        let reads = StoreReads::new(config.folder.clone(), opened.lock.clone());
        let (level, retention) = (config.level, config.retention);
        let defaults = StreamSettings { level, retention, own_bounds: OwnBounds::default() };
        let is_bounded = !defaults.retention.keeps_all();
        let registry =
            Arc::new(StreamRegistry::new(reads, clock, is_bounded, opened.streams, sender));
        registry.hold(RuleTable::of_rows(opened.rules, config.retention)?, None);
        registry.begin();
        let writes = StoreWrites::new(
            opened.connection,
            opened.lock.clone(),
            opened.opening,
            &config.folder,
            &registry.log,
        )?;
        #[cfg(test)]
        let store_trouble = writes.trouble.clone();
        // The writer is made before the first thread starts, so that a fault of the store leaves
        // none behind.
        let writer = StoreWriter::new(
            registry.clone(),
            receiver,
            writes,
            defaults,
            opened.next,
            opened.clock,
        )?;
        let closing = Arc::new(AtomicBool::new(false));
        let watched = registry.clone();
        let (clocked, stop) = (registry.clone(), closing.clone());
        let copier = checkpoint::LogCheckpointer::new(&config.folder, opened.lock, &registry.log)?;
        let until = closing.clone();
        let threads = vec![
            spawn("sealane-writer", move || writer.run())?,
            spawn("sealane-clock", move || tick(&clocked, &stop))?,
            spawn("sealane-copier", move || copier.run(&until, &watched.log))?,
        ];
        Ok(Self {
            registry,
            ids: MessageIds::new()?,
            queue: Arc::new(Semaphore::new(MAX_WRITE_QUEUE_MESSAGES)),
            sessions: Arc::default(),
            closing,
            threads: Mutex::new(threads),
            level: config.level,
            store_id: opened.id,
            #[cfg(test)]
            store_trouble,
        })
    }

    /// The ids that are given to messages without one.
    pub fn ids(&self) -> &MessageIds {
        &self.ids
    }

    /// The level of streams that are made by their first message.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The store's own name, which no copy of it shares.
    pub fn store_id(&self) -> StoreId {
        self.store_id
    }

    /// Streams that subscriptions follow, each as often as it is followed.
    pub fn followed(&self) -> usize {
        self.registry.followed()
    }

    /// The hub's counters.
    pub fn metrics(&self) -> &Metrics {
        &self.registry.metrics
    }

    /// How long the hub takes, and how long others take for what it gives them.
    pub fn timings(&self) -> &Timings {
        &self.registry.timings
    }

    /// Figures by stream and by consumer. This looks at every stream: not for a thread that others
    /// wait for.
    pub fn figures(&self) -> SeriesFigures {
        figures(&self.registry)
    }

    /// How many streams there are.
    pub fn count(&self) -> usize {
        self.registry.count()
    }

    /// How many of them are sealed.
    pub fn count_sealed(&self) -> usize {
        self.registry.count_sealed()
    }

    /// Appends messages; resolves when their level is reached. A stream that is not there yet is
    /// made as what they are: open, or sealed for their group.
    ///
    /// # Errors
    /// As the causes are named; nothing was appended then.
    pub async fn enqueue(&self, enqueue: StreamEnqueue) -> Result<AppendedMessages, Error> {
        self.check(&enqueue)?;
        let StreamEnqueue { topic, envelopes, expect, delay_ms, key, owner } = enqueue;
        let group = envelopes.first().and_then(StreamEnvelope::group);
        envelopes.iter().try_for_each(|envelope| check_seal(group, envelope.group()))?;
        // The queue's room bounds memory. Clients wait here, and not in an unbounded channel.
        let share = self.share(&envelopes).await?;
        let (reply, answer) = oneshot::channel();
        // The delay begins after the wait for room, so that a busy hub does not shorten it.
        let due_ms = delay_ms.map(|delay_ms| self.registry.clock.day_ms() + delay_ms);
        let (key, each) = match key.map(|key| key.0) {
            None => (None, Vec::new()),
            Some(EnqueueKeys::Whole(key)) => (Some(key), Vec::new()),
            Some(EnqueueKeys::Each(each)) => (None, each),
        };
        let append = AppendCommand {
            topic,
            envelopes,
            group,
            expect,
            due_ms,
            key,
            each,
            owner,
            reply,
            _share: share,
        };
        self.registry.send(WriterCommand::Append(append))?;
        answer.await.unwrap_or(Err(Error::Draining))
    }

    fn check(&self, enqueue: &StreamEnqueue) -> Result<(), Error> {
        let wrong = |name: &'static str, cause| Err(Error::parameter(name, cause));
        if self.closing.load(Ordering::Relaxed) {
            return Err(Error::Draining);
        }
        if enqueue.envelopes.is_empty() {
            return wrong("envelopes", "is empty");
        }
        if enqueue.envelopes.len() > MAX_BATCH_MESSAGES {
            let limit = MAX_BATCH_MESSAGES as u64;
            return Err(Error::TooMany { what: "messages in a batch", limit });
        }
        if enqueue.delay_ms.is_some_and(|delay_ms| delay_ms > MAX_DELAY_MS) {
            return wrong("delayMs", "is longer than 30 days");
        }
        let has_keys = matches!(&enqueue.key, Some(IdempotencyKey(EnqueueKeys::Each(_))));
        if has_keys && (enqueue.delay_ms.is_some() || enqueue.expect.is_some()) {
            return wrong("Idempotency-Scope", "`message` goes without `expect` and `delayMs`");
        }
        if enqueue.delay_ms.is_some() && enqueue.expect.is_some() {
            return wrong("expect", "cannot be asked of a delayed message");
        }
        Ok(())
    }

    /// The share of the writer's queue that messages take: the queue is full of so many messages,
    /// or of so many bytes.
    async fn share(
        &self,
        envelopes: &[StreamEnvelope],
    ) -> Result<tokio::sync::OwnedSemaphorePermit, Error> {
        let share = self.queue.clone().acquire_many_owned(queue_cost(envelopes.iter())).await;
        share.map_err(|_| Error::Draining)
    }

    /// Goes on with the publishing session `name` of the token `owner`, or begins it. A connection
    /// that has it is told [`Error::SessionTaken`].
    ///
    /// # Errors
    /// [`Error::Draining`].
    pub fn publishing(&self, owner: &str, name: &str) -> Result<PublishSession, Error> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Error::Draining);
        }
        let (registry, queue) = (self.registry.clone(), self.queue.clone());
        Ok(PublishSession::open(registry, queue, self.sessions.clone(), owner, name))
    }

    /// Subscribes; also returns what the first frame says of a single stream.
    ///
    /// # Errors
    /// As the causes are named.
    pub async fn subscribe(
        &self,
        pattern: Pattern,
        who: SubscriptionReader,
    ) -> Result<(StreamSubscription, Option<StreamJoined>), Error> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Error::Draining);
        }
        StreamSubscription::open(self.registry.clone(), pattern, who).await
    }

    /// Messages of a stream, at most `limit`.
    ///
    /// # Errors
    /// [`Error::UnknownStream`] and failures of the store.
    pub async fn read(
        &self,
        topic: &Topic,
        start: ReadStart,
        limit: usize,
    ) -> Result<StreamPage, Error> {
        let stream = self.find(topic)?;
        let mut next = start_offset(&self.registry, &stream, start).await?;
        let (mut pieces, mut events) = (Vec::new(), Vec::new());
        let limit = limit.min(MAX_RANGE_MESSAGES);
        let turn = LaneTurn { messages: limit, bytes: TURN_BYTES };
        let more = read(&self.registry, &stream, &mut next, turn, &mut pieces).await?;
        part(pieces, &mut events);
        // A removal during the read could leave a page that looks like an empty stream.
        if stream.removed.load(Ordering::SeqCst) {
            return Err(Error::UnknownStream(topic.to_string()));
        }
        let state = stream.state.lock();
        let joined = StreamJoined {
            stream: topic.clone(),
            generation: state.generation(),
            offset: next,
            recovered: true,
            level: state.settings.level.into(),
            sealed: stream.sealed,
        };
        Ok(StreamPage { joined, events, next, end: !more || next >= state.next })
    }

    /// A stream's state.
    ///
    /// # Errors
    /// [`Error::UnknownStream`].
    pub fn stream(&self, topic: &Topic) -> Result<StreamState, Error> {
        Ok(describe(&*self.find(topic)?))
    }

    /// How many messages of a stream each connection has in flight, by
    /// [`StreamSubscription::member`].
    ///
    /// # Errors
    /// [`Error::UnknownStream`].
    pub fn in_flight(&self, topic: &Topic) -> Result<HashMap<u64, usize>, Error> {
        let stream = self.find(topic)?;
        let consumers: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
        let mut counts = HashMap::new();
        for entry in consumers {
            entry.state.lock().count_in_flight(&mut counts);
        }
        Ok(counts)
    }

    /// Up to `limit` streams that are wanted, behind `after`, by topic, whose topics begin so. Few
    /// are looked at, so that whoever wants none of many lets others have their turn in between;
    /// what is not wanted is not described.
    pub fn streams(
        &self,
        beginning: &str,
        after: Option<&Topic>,
        limit: usize,
        wanted: impl Fn(&Topic) -> bool,
    ) -> StreamsFound {
        // A bounded look holds the lock of all streams only briefly. The caller goes on behind it.
        let found = self.registry.begun(beginning, after, LOOKS);
        let mut listed = StreamsFound { streams: Vec::new(), looked: 0, next: None };
        let mut consumers = 0;
        for stream in &found {
            if listed.streams.len() == limit || consumers >= LOOKED_CONSUMERS {
                break;
            }
            listed.looked += 1;
            if wanted(&stream.topic) {
                let state = describe(stream);
                consumers += state.consumers.len();
                listed.streams.push(state);
            }
        }
        let is_cut = listed.looked < found.len() || found.len() == LOOKS;
        let last = listed.looked.checked_sub(1).and_then(|last| found.get(last));
        listed.next = last.filter(|_| is_cut).map(|stream| stream.topic.clone());
        listed
    }

    /// Makes a stream, open or sealed, or changes it; returns its state and whether it was made.
    /// The change counts once it is stored.
    ///
    /// # Errors
    /// [`Error::SealMismatch`] where a group is asked of a stream that is not, and failures of
    /// the store; the stream is as it was then.
    pub async fn configure(
        &self,
        topic: &Topic,
        change: StreamChange,
    ) -> Result<(StreamState, bool), Error> {
        self.configure_for(Arc::default(), topic, change).await
    }

    /// As [`StreamHub::configure`]. A stream that is made counts to the share of `owner`.
    ///
    /// # Errors
    /// As [`StreamHub::configure`].
    pub async fn configure_for(
        &self,
        owner: Arc<str>,
        topic: &Topic,
        change: StreamChange,
    ) -> Result<(StreamState, bool), Error> {
        let (reply, answer) = oneshot::channel();
        let configure = ConfigureCommand { topic: topic.clone(), change, owner, reply };
        self.registry.send(WriterCommand::Configure(configure))?;
        let (stream, made) = answer.await.unwrap_or(Err(Error::Draining))?;
        Ok((describe(&stream), made))
    }

    /// Removes a stream with everything in it. Who publishes to its topic at the same time does so
    /// before, or to a new stream.
    ///
    /// # Errors
    /// [`Error::UnknownStream`] and failures of the store; the stream is as it was then.
    pub async fn remove(&self, topic: &Topic) -> Result<(), Error> {
        self.ask_to_remove(topic.clone(), None).await.map(drop)
    }

    /// Removes a stream as [`StreamHub::remove`] does if it is still as it was seen: nothing came
    /// to it since, nothing is held back for it, and nobody reads it. Returns whether it went. A
    /// message that comes at the same time either keeps the stream or is the first of a new one.
    ///
    /// # Errors
    /// [`Error::UnknownStream`] and failures of the store; the stream is as it was then.
    pub async fn remove_idle(&self, seen: &StreamState) -> Result<bool, Error> {
        let since = StreamPosition { generation: seen.generation, offset: seen.next };
        self.ask_to_remove(seen.stream.clone(), Some(since)).await
    }

    async fn ask_to_remove(
        &self,
        topic: Topic,
        idle_since: Option<StreamPosition>,
    ) -> Result<bool, Error> {
        let (reply, answer) = oneshot::channel();
        self.registry.send(WriterCommand::Remove(RemoveCommand { topic, idle_since, reply }))?;
        answer.await.unwrap_or(Err(Error::Draining))
    }

    /// Whether consumers did something that waits to be stored.
    #[cfg(test)]
    pub(crate) fn has_unstored(&self) -> bool {
        self.registry.has_dirty()
    }

    /// Why the store takes nothing now; none: it does.
    pub fn trouble(&self) -> Option<Error> {
        self.registry.fault.lock().clone().map(Error::from)
    }

    /// Stores everything that is known and closes. Blocks until it is done.
    ///
    /// # Errors
    /// Failures of the store: what was acknowledged at the level `memory` may be lost.
    pub fn close(&self) -> Result<(), Error> {
        if self.closing.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        // Clients that wait for room are refused now. Those in the queue are still stored.
        self.queue.close();
        let (reply, mut answer) = oneshot::channel();
        self.registry.send(WriterCommand::Stop(reply))?;
        for thread in self.threads.lock().drain(..) {
            self.registry.stop_waiting();
            // The copier sleeps parked and the clock on a condition. Both have to look at the flag.
            thread.thread().unpark();
            if thread.join().is_err() {
                return Err(Error::StorageFailed("a thread of the hub panicked".into()));
            }
        }
        // A writer that failed has not come as far as this.
        self.registry.reads.close();
        answer.try_recv().unwrap_or(Err(Error::StorageFailed("the writer ended early".into())))
    }

    fn find(&self, topic: &Topic) -> Result<Arc<StreamEntry>, Error> {
        self.registry.find(topic).ok_or_else(|| Error::UnknownStream(topic.to_string()))
    }
}

impl Drop for StreamHub {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the hub did not close cleanly");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|cause| Error::StorageFailed(format!("{name}: {cause}")))
}

/// Lets time pass for consumers, as often as delays are exact.
fn tick(registry: &StreamRegistry, closing: &AtomicBool) {
    while !closing.load(Ordering::Relaxed) {
        registry.wait_timed(Duration::from_millis(250));
        registry.expire();
        registry.wake_starved();
        // A pause between looks bounds the clock's work, whatever the number of deadlines is.
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn describe(stream: &StreamEntry) -> StreamState {
    let state = stream.state.lock();
    let mut consumers: Vec<_> = state.consumers.values().cloned().collect();
    let mut described = StreamState {
        stream: stream.topic.clone(),
        generation: state.generation(),
        first: state.first,
        next: state.next,
        count: state.next - state.first,
        bytes: state.bytes,
        level: state.settings.level.into(),
        retention: state.bounds.retention,
        rule: state.bounds.rule.as_ref().map(|rule| rule.to_string()),
        sealed: stream.sealed,
        created_ms: stream.created_ms,
        last_ms: state.last_ms,
        readers: stream.readers.load(Ordering::Relaxed) as u64,
        consumers: Vec::new(),
        damaged: state.damaged.iter().map(|(first, last)| *first..=*last).collect(),
        connections: None,
    };
    // Each consumer has a lock of its own. Holding the stream's as well would stop its writer for
    // the whole list.
    drop(state);
    consumers.sort_by(|a, b| a.name.cmp(&b.name));
    described.consumers = consumers.iter().map(|entry| entry.describe()).collect();
    described
}

impl ConsumerEntry {
    fn describe(&self) -> ConsumerState {
        let consumer = self.state.lock();
        ConsumerState {
            consumer: self.name.to_string(),
            next: consumer.cursor(),
            in_flight: consumer.in_flight() as u64,
            members: self.members.lock().len() as u64,
            redelivered: consumer.redelivered,
            dead_lettered: self.dead_lettered.load(Ordering::Relaxed),
            dead_dropped: self.dead_dropped.load(Ordering::Relaxed),
            paused_ms: consumer.paused_ms,
        }
    }
}

#[cfg(test)]
mod tests;
