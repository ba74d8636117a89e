//! The input as a sequence of steps of two connections and of requests, on one real hub.
//!
//! Each input begins with a hub without streams. All runs on one thread, so that what a connection
//! is given can be held against everything that was answered before.

#[path = "input.rs"]
mod input;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use sealane_frame::GroupTag;
use sealane_message::{Pattern, Topic};
use sealane_protocol::{AckMark, EnqueueOutcome, Op, ServerFrame, StreamPosition, read_ops};
use sealane_stream::{
    AppendedMessages, ConsumerChange, Error, HubConfig, IdempotencyKey, Level, PublishAnswered,
    ReadStart, Retention, SessionItem, StreamChange, StreamDelivery, StreamEnqueue, StreamEnvelope,
    StreamHub, StreamSubscription, SubscriptionOutput, SubscriptionReader,
};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use input::Steps;

const CODECS: [Codec; 3] = [Codec::Json, Codec::MsgPack, Codec::Cbor];
const TOPICS: [&str; 3] = ["a", "a/b", "c"];
const PATTERNS: [&str; 6] = ["a", "a/b", "c", "*", "a/**", "**"];
/// Steps of one input.
const MAX_STEPS: usize = 96;
/// Connections that one input opens.
const MAX_OPENS: usize = 12;
/// Inputs that share one folder.
const INPUTS: usize = 256;
/// Deliveries in one read.
const MAX_TAKEN: usize = 512;
/// How long a reader may wait for what it was granted credit for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Makes every commit that stores messages fail.
const FAIL: &str = "CREATE TRIGGER IF NOT EXISTS failing BEFORE INSERT ON block
     BEGIN SELECT RAISE(ABORT, 'the test says so'); END;";
const HEAL: &str = "DROP TRIGGER IF EXISTS failing";

thread_local!(static WORLD: RefCell<Option<FuzzedHub>> = const { RefCell::new(None) });

/// Runs the steps that `bytes` stand for.
pub(super) fn run(bytes: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        if world.as_ref().is_some_and(|world| world.inputs >= INPUTS) {
            world.take().into_iter().for_each(FuzzedHub::close);
        }
        world.get_or_insert_with(FuzzedHub::new).input(Steps(bytes));
    });
}

/// One connection, and what it was told.
struct Connection {
    subscription: StreamSubscription,
    pattern: Pattern,
    /// The consumer; none: it reads for itself.
    consumer: Option<String>,
    codec: Codec,
    granted: u64,
    delivered: u64,
    /// The next offset of each stream that the reader was told of.
    next: HashMap<Topic, u64>,
}

struct FuzzedHub {
    folder: tempfile::TempDir,
    runtime: Runtime,
    hub: Arc<StreamHub>,
    /// A second program that has the store open, and makes it fail.
    store: rusqlite::Connection,
    is_failing: bool,
    scratch: Transcoder,
    inputs: usize,
    ids: u64,
    /// The id of each message that was acknowledged with its place.
    positions: HashMap<(Topic, u64, u64), String>,
    /// The generation and offset of the last first delivery to each consumer.
    firsts: HashMap<(String, Topic), (u64, u64)>,
    /// Where each message of a session is, by session, stream and number.
    numbered: HashMap<(usize, Topic, u64), EnqueueOutcome>,
    connections: [Option<Connection>; 2],
    /// Requests that the writer is to find in its queue together.
    together: JoinSet<Option<Result<AppendedMessages, Error>>>,
    is_gathering: bool,
}

fn open(folder: &std::path::Path) -> Arc<StreamHub> {
    let folder = folder.to_owned();
    let config = HubConfig { folder, level: Level::Os, retention: Retention::default() };
    Arc::new(StreamHub::open(config).expect("the hub opens"))
}

impl FuzzedHub {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = open(folder.path());
        let store = rusqlite::Connection::open(folder.path().join("streams.db")).expect("a store");
        store.busy_timeout(PATIENCE).expect("patience");
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self {
            folder,
            runtime: runtime.enable_time().build().expect("a runtime"),
            hub,
            store,
            is_failing: false,
            scratch: Transcoder::new(),
            inputs: 0,
            ids: 0,
            positions: HashMap::new(),
            firsts: HashMap::new(),
            numbered: HashMap::new(),
            connections: [None, None],
            together: JoinSet::new(),
            is_gathering: false,
        }
    }

    fn close(self) {
        self.hub.close().expect("the hub closes cleanly");
    }

    fn input(&mut self, mut steps: Steps<'_>) {
        self.inputs += 1;
        self.numbered.clear();
        for topic in TOPICS {
            let hub = self.hub.clone();
            let topic = topic.parse().expect("a topic");
            let _ = self.runtime.block_on(async { hub.remove(&topic).await });
        }
        let (mut opens, mut reopens) = (0, 0);
        for _ in 0..MAX_STEPS {
            if steps.0.is_empty() {
                break;
            }
            let step = steps.byte();
            let who = usize::from(step >> 7);
            match step & 0x0f {
                0 if opens < MAX_OPENS => {
                    opens += 1;
                    self.subscribe(who, &mut steps);
                }
                1 => self.connections[who] = None,
                2 => self.frame(who, &mut steps),
                3 if step & 0x10 != 0 => self.publish(who, &mut steps),
                3 | 4 => self.enqueue(&mut steps),
                5 => self.enqueue_raw(&mut steps),
                6 => self.configure(&mut steps),
                7 => self.remove(&mut steps),
                8 => self.read(&mut steps),
                9 | 10 => self.take(who, usize::from(steps.byte())),
                11 => self.ask(who, Op::Credit(steps.byte().into())),
                12 => self.op(who, &mut steps),
                13 => self.fail(step & 0x10 == 0),
                14 if reopens == 0 => {
                    reopens += 1;
                    self.reopen();
                }
                15 => self.is_gathering = true,
                _ => {}
            }
        }
        self.end();
    }

    fn subscribe(&mut self, who: usize, steps: &mut Steps<'_>) {
        self.gathered();
        let pattern: Pattern = steps.pick(&PATTERNS).parse().expect("a pattern");
        let kind = steps.byte();
        let number = u64::from(steps.byte());
        let from = match kind & 3 {
            0 => ReadStart::First,
            1 => ReadStart::New,
            2 => ReadStart::Offset(number),
            _ => ReadStart::Time(number << 33),
        };
        let consumer = match (kind >> 2) & 3 {
            0 | 1 => None,
            2 => Some("x".to_owned()),
            _ => Some(String::new()),
        };
        let some = |bit: u8, value: u32| (kind & bit != 0).then_some(value);
        let change = ConsumerChange {
            max_in_flight: some(16, 1 + number as u32 % 4),
            ack_wait_ms: some(32, 100).map(u64::from),
            max_attempts: some(64, number as u32 % 3),
        };
        let generation = (kind & 128 != 0).then_some(number);
        let asked = match consumer.clone() {
            None => SubscriptionReader::Reader { start: from, generation },
            Some(name) => SubscriptionReader::Member {
                name,
                owner: String::new(),
                start: from,
                change,
                steers: Default::default(),
            },
        };
        self.connections[who] = None;
        let opened = self.runtime.block_on(self.hub.subscribe(pattern.clone(), asked));
        let Ok((subscription, joined)) = coded(opened) else { return };
        let mut next = HashMap::new();
        if let Some(joined) = joined {
            next.insert(joined.stream, joined.offset);
        }
        let codec = CODECS[usize::from(number as u8) % 3];
        let (granted, delivered) = (0, 0);
        let connection =
            Connection { subscription, pattern, consumer, codec, granted, delivered, next };
        self.connections[who] = Some(connection);
    }

    /// A frame as it stands in the input.
    fn frame(&mut self, who: usize, steps: &mut Steps<'_>) {
        let (codec, frame) = (steps.pick(&CODECS), steps.part());
        let mut ops = Vec::new();
        if coded(read_ops(codec, frame, &mut ops)).is_ok() {
            ops.into_iter().for_each(|op| self.ask(who, op));
        }
    }

    fn op(&mut self, who: usize, steps: &mut Steps<'_>) {
        let kind = steps.byte();
        let stream = (kind & 4 != 0).then(|| steps.topic());
        let (from, len) = (u64::from(steps.byte()), u64::from(kind >> 4));
        let marks = match kind & 8 {
            0 => vec![AckMark::Range { stream: stream.clone(), from, to: from + len }],
            _ => vec![AckMark::Id(format!("i{from}")), AckMark::Id(format!("i{}", self.ids))],
        };
        let op = match kind & 3 {
            0 | 1 => Op::Ack(marks),
            2 => Op::Nack(marks, len),
            _ => Op::Seek { stream, offset: from, generation: None },
        };
        self.ask(who, op);
    }

    fn ask(&mut self, who: usize, op: Op) {
        let Some(connection) = &mut self.connections[who] else { return };
        let more = if let Op::Credit(n) = &op { *n } else { 0 };
        if coded(connection.subscription.apply(op)).is_err() {
            // A refusal ends the connection, and only this connection.
            self.connections[who] = None;
            return self.works(1 - who);
        }
        connection.granted += more;
    }

    fn envelopes(&mut self, count: u8, codec: Codec) -> Vec<StreamEnvelope> {
        let envelopes = (0..count).map(|_| {
            self.ids += 1;
            let value = format!("{{\"id\":\"i{}\",\"n\":[1.5,null,\"text\"]}}", self.ids);
            let mut body = Vec::new();
            self.scratch
                .transcode(Codec::Json, value.as_bytes(), codec, &mut body)
                .expect("an envelope");
            StreamEnvelope::read(&mut self.scratch, self.hub.ids(), codec, &body)
                .expect("an envelope")
        });
        envelopes.collect()
    }

    fn enqueue(&mut self, steps: &mut Steps<'_>) {
        let (topic, kind) = (steps.topic(), steps.byte());
        let codec = CODECS[usize::from(kind & 3) % 3];
        let envelopes = self.envelopes(1 + (kind >> 2 & 7), codec);
        let expect = (kind & 32 != 0).then(|| u64::from(steps.byte()));
        let delay_ms = (kind & 64 != 0).then(|| u64::from(steps.byte() % 4));
        let key = (kind & 128 != 0).then(|| {
            let (key, body) = (steps.byte() % 4, steps.byte() % 2);
            IdempotencyKey::new(b"token", &[key], &[body]).expect("a key")
        });
        self.send(StreamEnqueue { topic, envelopes, expect, delay_ms, key, owner: "".into() });
    }

    /// A message of one of two sessions: the next, the last again, or one that skips a number. It
    /// is stored at the end of its stream, or where it was before.
    fn publish(&mut self, who: usize, steps: &mut Steps<'_>) {
        self.gathered();
        let (topic, kind) = (steps.topic(), steps.byte());
        let known = self.numbered.keys().filter(|(of, on, _)| (*of, on) == (who, &topic));
        let last = known.map(|(.., n)| *n).max().unwrap_or(0);
        let n = [last + 1, last + 1, last, last + 2][usize::from(kind & 3)];
        let envelope = self.envelopes(1, Codec::Json).remove(0);
        let expect = (kind & 4 != 0).then(|| u64::from(steps.byte()));
        let delay_ms = (kind & 8 != 0).then(|| u64::from(steps.byte() % 4));
        let (id, digest) = (envelope.id().to_owned(), n as u32);
        let end = self.hub.stream(&topic).map_or(0, |stream| stream.next);
        let item = SessionItem { topic: topic.clone(), n, envelope, expect, delay_ms, digest };
        let PublishAnswered { stream, from, to, result } = self.told(who, item);
        assert_eq!((&stream, from, to), (&topic, n, n));
        let placed = match coded(result) {
            Ok(placed) => placed,
            Err(error) => {
                assert!(self.is_failing || !is_of_the_store(&error), "{error}");
                return;
            }
        };
        let before = self.numbered.insert((who, topic.clone(), n), placed.first);
        assert!(before.is_none_or(|before| before == placed.first), "{n} is at two places");
        if let EnqueueOutcome::At(StreamPosition { generation, offset }) = placed.first
            && offset >= end
        {
            let other = self.positions.insert((topic, generation, offset), id);
            assert!(other.is_none(), "two messages have one position");
        }
    }

    fn told(&mut self, who: usize, item: SessionItem) -> PublishAnswered {
        const KEEP: u64 = 16;
        let hub = self.hub.clone();
        self.runtime.block_on(async move {
            let session = hub.publishing("", ["x", "y"][who]).expect("a session");
            let (items, mut answers) = (vec![item], Vec::new());
            let room = session.room(&items).await.expect("room");
            session.publish(items, KEEP, room).expect("a session of its own");
            session.answers(&mut answers).await.expect("an answer");
            answers.remove(0)
        })
    }

    fn enqueue_raw(&mut self, steps: &mut Steps<'_>) {
        let (topic, codec, raw) = (steps.topic(), steps.pick(&CODECS), steps.part());
        let read = StreamEnvelope::read(&mut self.scratch, self.hub.ids(), codec, raw);
        let Ok(envelope) = coded(read) else { return };
        let (envelopes, key, owner) = (vec![envelope], None, "".into());
        self.send(StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key, owner });
    }

    fn send(&mut self, enqueue: StreamEnqueue) {
        let hub = self.hub.clone();
        self.request(async move { Some(hub.enqueue(enqueue).await) });
    }

    /// Sends a request now, or with the others that wait.
    fn request(
        &mut self,
        request: impl Future<Output = Option<Result<AppendedMessages, Error>>> + Send + 'static,
    ) {
        let _guard = self.runtime.enter();
        self.together.spawn(request);
        drop(_guard);
        if !self.is_gathering || self.together.len() == 4 {
            self.gathered();
        }
    }

    /// Has the answers to all requests that wait.
    fn gathered(&mut self) {
        self.is_gathering = false;
        let together = std::mem::take(&mut self.together);
        for answer in self.runtime.block_on(together.join_all()).into_iter().flatten() {
            match coded(answer) {
                Ok(appended) => self.note(&appended),
                Err(error) => assert!(self.is_failing || !is_of_the_store(&error), "{error}"),
            }
        }
    }

    /// No two messages have one position.
    fn note(&mut self, appended: &AppendedMessages) {
        if appended.due_ms.is_some() {
            return;
        }
        for (offset, id) in (appended.offset..).zip(&appended.ids) {
            let id = std::str::from_utf8(id).expect("ids are text").to_owned();
            let position = (appended.stream.clone(), appended.generation, offset);
            let before = self.positions.insert(position, id.clone());
            assert!(before.is_none_or(|before| before == id), "two messages have one position");
        }
    }

    fn configure(&mut self, steps: &mut Steps<'_>) {
        let (topic, kind) = (steps.topic(), steps.byte());
        let levels = [Level::Memory, Level::Os, Level::Memory, Level::Disk];
        let change = StreamChange {
            level: (kind & 4 != 0).then_some(levels[usize::from(kind & 3)]),
            max_age_ms: (kind & 8 != 0).then(|| u64::from(steps.byte()) << 8),
            max_count: (kind & 16 != 0).then(|| u64::from(steps.byte() & 7)),
            max_bytes: (kind & 32 != 0).then(|| u64::from(steps.byte()) << 2),
            follow_rules: kind & 0xc0 == 0x40,
            sealed: (kind & 0xc0 == 0xc0).then_some(GroupTag::from_bytes([7; 4])),
        };
        let (hub, is_failing) = (self.hub.clone(), self.is_failing);
        self.request(async move {
            let configured = coded(hub.configure(&topic, change).await);
            let refused = configured.err().filter(|_| !is_failing);
            assert!(refused.as_ref().is_none_or(|e| !is_of_the_store(e)), "{refused:?}");
            None
        });
    }

    fn remove(&mut self, steps: &mut Steps<'_>) {
        let (topic, hub, is_failing) = (steps.topic(), self.hub.clone(), self.is_failing);
        self.numbered.retain(|(_, of, _), _| *of != topic);
        self.request(async move {
            let refused = coded(hub.remove(&topic).await).err().filter(|_| !is_failing);
            assert!(refused.as_ref().is_none_or(|e| !is_of_the_store(e)), "{refused:?}");
            None
        });
    }

    /// A range read: messages and gaps follow each other.
    fn read(&mut self, steps: &mut Steps<'_>) {
        self.gathered();
        let (topic, from, limit) = (steps.topic(), steps.byte().into(), steps.byte().into());
        let page = self.runtime.block_on(self.hub.read(&topic, ReadStart::Offset(from), limit));
        let Ok(page) = coded(page) else { return };
        let mut next = None;
        for event in &page.events {
            let (from, to) = match event {
                SubscriptionOutput::Deliver(delivery) => (delivery.offset(), delivery.offset()),
                SubscriptionOutput::Status(ServerFrame::Gap { from, to, .. }) => (*from, *to),
                SubscriptionOutput::Status(other) => panic!("{other:?} in a range"),
            };
            assert!(from <= to && next.is_none_or(|next| next == from), "a hole in a range");
            next = Some(to + 1);
            if let SubscriptionOutput::Deliver(delivery) = event {
                self.look(delivery, Codec::Json);
            }
        }
        assert!(next.is_none_or(|next| next == page.next));
    }

    /// The delivery is the message that was acknowledged for this place.
    fn look(&self, delivery: &StreamDelivery, codec: Codec) {
        let frame = ServerFrame::read(codec, &delivery.frame(codec)).expect("what we write");
        let ServerFrame::Deliver(deliver) = frame else { panic!("{frame:?}") };
        let position = (deliver.stream, deliver.generation, deliver.offset);
        assert_eq!(position, (delivery.stream().clone(), delivery.generation(), delivery.offset()));
        assert_eq!(deliver.attempt, delivery.attempt());
        let Some(expected) = self.positions.get(&position) else { return };
        let envelope = sealane_codec::decode(codec, &deliver.envelope).expect("an envelope");
        let id = envelope.field("id").and_then(|id| id.as_text());
        assert_eq!(id, Some(expected.as_str()), "another message at {position:?}");
    }

    /// Reads once. A connection that ends leaves the other as it was.
    fn take(&mut self, who: usize, max: usize) {
        self.gathered();
        let Some(mut connection) = self.connections[who].take() else { return };
        let mut events = Vec::new();
        let before = connection.subscription.credit();
        assert_eq!(before, connection.granted - connection.delivered);
        let max = max.min(MAX_TAKEN);
        let took = connection.subscription.take(max, 1 << 20, &mut events);
        let took = coded(self.runtime.block_on(took));
        let given =
            events.iter().filter(|event| matches!(event, SubscriptionOutput::Deliver(_))).count();
        assert!(given as u64 <= before && given <= max, "more than was granted");
        connection.delivered += given as u64;
        events.iter().for_each(|event| self.event(&mut connection, event));
        match took {
            Ok(()) => {
                let left = connection.granted - connection.delivered;
                assert_eq!(connection.subscription.credit(), left);
                self.connections[who] = Some(connection);
            }
            Err(error) => {
                assert!(matches!(error, Error::StreamRemoved), "{error}");
            }
        }
    }

    fn event(&mut self, connection: &mut Connection, event: &SubscriptionOutput) {
        match event {
            SubscriptionOutput::Status(ServerFrame::Joined(joined)) => {
                connection.next.insert(joined.stream.clone(), joined.offset);
            }
            SubscriptionOutput::Status(ServerFrame::Gap { stream, from, to, .. }) => {
                assert!(from <= to, "a gap that ends before it begins");
                if let Some(next) = connection.next.get_mut(stream)
                    && connection.consumer.is_none()
                {
                    assert!(from <= next, "a gap leaves a hole");
                    *next = (*next).max(to + 1);
                }
            }
            SubscriptionOutput::Status(other) => panic!("{other:?} from a subscription"),
            SubscriptionOutput::Deliver(delivery) => self.delivery(connection, delivery),
        }
    }

    fn delivery(&mut self, connection: &mut Connection, delivery: &StreamDelivery) {
        let (topic, offset) = (delivery.stream(), delivery.offset());
        assert!(connection.pattern.matches(topic));
        self.look(delivery, connection.codec);
        let next = connection.next.get_mut(topic).expect("`joined` comes before");
        let Some(consumer) = &connection.consumer else {
            assert_eq!(delivery.attempt(), 1);
            assert_eq!(offset, *next, "a reader misses messages of {topic}, or has them twice");
            *next += 1;
            return;
        };
        let position = (delivery.generation(), offset);
        let first = self.firsts.entry((consumer.clone(), topic.clone()));
        if delivery.attempt() == 1 {
            let last = first.or_insert((0, 0));
            assert!(position > *last, "first deliveries of {topic} are out of order");
            *last = position;
        }
    }

    /// The connection has what it is granted credit for: each stream that it reads for itself, up
    /// to where that is now.
    fn works(&mut self, who: usize) {
        self.gathered();
        self.fail(false);
        for topic in TOPICS {
            let (envelopes, key, owner) = (self.envelopes(1, Codec::Json), None, "".into());
            let topic = topic.parse().expect("a topic");
            self.send(StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key, owner });
        }
        let ends = TOPICS.map(|topic| {
            let topic: Topic = topic.parse().expect("a topic");
            let end = self.hub.stream(&topic).map_or(0, |info| info.next);
            (topic, end)
        });
        let start = std::time::Instant::now();
        while let Some(connection) = &mut self.connections[who] {
            if connection.subscription.credit() < MAX_TAKEN as u64 {
                let more = MAX_TAKEN as u64;
                connection.subscription.apply(Op::Credit(more)).expect("credit");
                connection.granted += more;
            }
            let misses = |(topic, end): &&(Topic, u64)| {
                let next = connection.next.get(topic).copied().unwrap_or_default();
                connection.pattern.matches(topic) && next < *end
            };
            let missed = ends.iter().find(misses).filter(|_| connection.consumer.is_none());
            let Some(missed) = missed.cloned() else { break };
            assert!(start.elapsed() < PATIENCE, "a reader waits in vain for {missed:?}");
            let ready = connection.subscription.ready();
            let _ = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, ready).await });
            self.take(who, MAX_TAKEN);
        }
        self.take(who, MAX_TAKEN);
    }

    /// Lets the store fail, or work again.
    fn fail(&mut self, is_failing: bool) {
        self.gathered();
        if self.is_failing != is_failing {
            let change = if is_failing { FAIL } else { HEAL };
            self.store.execute_batch(change).expect("the store is ours to break");
            self.is_failing = is_failing;
        }
        if !is_failing {
            // The next commit stores what streams of level `memory` were answered for before.
            let (hub, nowhere) = (self.hub.clone(), "nowhere".parse().expect("a topic"));
            let answer = self.runtime.block_on(async { hub.remove(&nowhere).await });
            assert!(matches!(answer, Err(Error::UnknownStream(_))), "{answer:?}");
            assert!(self.hub.trouble().is_none(), "trouble behind a commit that stands");
        }
    }

    /// Closes the hub and opens it again.
    fn reopen(&mut self) {
        self.fail(false);
        self.connections = [None, None];
        self.hub.close().expect("the hub closes cleanly");
        self.hub = open(self.folder.path());
    }

    fn end(&mut self) {
        self.works(0);
        self.works(1);
        self.connections = [None, None];
    }
}

fn coded<T>(outcome: Result<T, Error>) -> Result<T, Error> {
    outcome.inspect_err(|error| assert!(error.info().code.starts_with("SL-")))
}

fn is_of_the_store(error: &Error) -> bool {
    matches!(error, Error::StorageFailed(_) | Error::StorageBusy | Error::StorageFull)
}
