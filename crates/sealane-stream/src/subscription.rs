//! One connection's view of the streams it reads: credit, turns, acknowledgement.
//!
//! Nothing is pushed to a subscription: it takes what its credit allows when it is woken, so that
//! a slow connection costs a cursor and not a queue.

mod burst;
mod fetch;
mod in_flight;
mod lane;
mod lanes;
mod steered;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::limits::{MAX_JOINS_AT_ONCE, MAX_WAITING_ANSWERS};
use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::{Pattern, Topic};
use sealane_protocol::limits::MAX_CREDIT;
use sealane_protocol::{AckMark, HubLevel, Op, ServerFrame, StreamJoined};

use crate::block::StreamBlock;
use crate::consumer::ConsumerMember;
use crate::registry::StreamRegistry;
use crate::signal::{SignalHeard, StreamMet, SubscriptionSignal};
use crate::stream::StreamEntry;
use crate::{ConsumerChange, Error, ReadStart};
use in_flight::{DeliveredMessage, InFlight};
use lane::{LaneWork, SubscriptionLane};
use lanes::SubscriptionLanes;

pub(crate) use burst::part;
pub use burst::{DeliveryBurst, DeliveryPiece};
pub(crate) use fetch::{blocking, read};
pub(crate) use lane::start_offset;
pub use steered::SteeredTopics;

/// The kind of a subscription's reader.
#[derive(Debug, Clone)]
pub enum SubscriptionReader {
    /// This connection for itself.
    Reader {
        /// Where it begins.
        start: ReadStart,
        /// The generation in which an offset was seen.
        generation: Option<u64>,
    },
    /// A member of the consumer of this name; the inbox is the empty name.
    Member {
        /// The consumer.
        name: String,
        /// The token that a new consumer counts as made by; empty: none is needed.
        owner: String,
        /// Where a new consumer begins.
        start: ReadStart,
        /// The changes that this member makes to the consumer's settings.
        change: ConsumerChange,
        /// Where it may change those of a consumer that another token made.
        steers: SteeredTopics,
    },
}

/// The output of a subscription to its connection.
#[derive(Debug)]
pub enum SubscriptionOutput {
    /// A message.
    Deliver(StreamDelivery),
    /// Something to know: `joined` or `gap`.
    Status(ServerFrame),
}

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct StreamDelivery {
    block: Arc<StreamBlock>,
    index: usize,
    attempt: u32,
}

/// Deliveries that one stream may have before the next one's turn.
const TURN: usize = 256;

/// Bytes of envelopes that one turn of a stream takes, unless a single message is larger.
pub(crate) const TURN_BYTES: usize = 256 << 10;

/// The most that one stream's turn may take.
#[derive(Clone, Copy)]
pub(crate) struct LaneTurn {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

static MEMBERS: AtomicU64 = AtomicU64::new(1);

/// One connection's subscription. Dropping it ends it: what it had in flight comes to others.
pub struct StreamSubscription {
    registry: Arc<StreamRegistry>,
    member: ConsumerMember,
    pattern: Pattern,
    who: SubscriptionReader,
    signal: Arc<SubscriptionSignal>,
    /// Lanes that were signalled and are not in turn yet.
    signalled: Vec<usize>,
    lanes: SubscriptionLanes,
    /// Lanes that may have something, in turn.
    turn: VecDeque<usize>,
    /// Lanes whose stream or consumer was removed, to be told of without credit.
    removed: Vec<usize>,
    credit: u64,
    /// Status frames that wait to be taken.
    notes: Vec<ServerFrame>,
    in_flight: InFlight,
}

impl StreamSubscription {
    /// Subscribes; returns what the first frame says, which for a pattern is nothing.
    pub(crate) async fn open(
        registry: Arc<StreamRegistry>,
        pattern: Pattern,
        who: SubscriptionReader,
    ) -> Result<(Self, Option<StreamJoined>), Error> {
        let member = MEMBERS.fetch_add(1, Ordering::Relaxed);
        let mut this = Self {
            registry,
            member,
            pattern,
            who,
            signal: Arc::default(),
            signalled: Vec::new(),
            lanes: SubscriptionLanes::default(),
            turn: VecDeque::new(),
            removed: Vec::new(),
            credit: 0,
            notes: Vec::new(),
            in_flight: InFlight::default(),
        };
        let single = this.pattern.topic().cloned();
        match &this.who {
            SubscriptionReader::Member { name, .. } if name.is_empty() && single.is_none() => {
                return Err(Error::PatternNeedsReader);
            }
            SubscriptionReader::Reader { start: ReadStart::Offset(_), .. }
            | SubscriptionReader::Member { start: ReadStart::Offset(_), .. }
                if single.is_none() =>
            {
                let cause = "of a pattern is first, new or a time";
                return Err(Error::parameter("from", cause));
            }
            _ => {}
        }
        // The watch begins before the streams are listed. One that is made in between is found
        // twice and joined once.
        let found = this.registry.watch(member, &this.pattern, &this.signal);
        let mut joined = None;
        for (number, stream) in found.into_iter().enumerate() {
            // An error here drops `this`, which takes back every lane that was joined.
            joined = this.join(stream, None).await?;
            if number % MAX_JOINS_AT_ONCE == MAX_JOINS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
        match single {
            Some(topic) if joined.is_none() => Ok((this, Some(Self::unmade(topic)))),
            Some(_) => Ok((this, joined)),
            None => Ok((this, None)),
        }
    }

    /// The `joined` of a stream that does not exist yet.
    fn unmade(stream: Topic) -> StreamJoined {
        let level = HubLevel::Other(String::new());
        StreamJoined { stream, generation: 0, offset: 0, recovered: true, level, sealed: None }
    }

    /// Honours a client's operation.
    ///
    /// # Errors
    /// An operation that [`Op`] does not allow here; the connection is to be closed.
    pub fn apply(&mut self, op: Op) -> Result<(), Error> {
        match op {
            Op::Credit(n) => {
                let credit = self.credit.checked_add(n).filter(|sum| *sum <= MAX_CREDIT);
                let error = Error::TooMany { what: "credits", limit: MAX_CREDIT };
                self.credit = credit.ok_or(error)?;
                Ok(())
            }
            // One client serves readers and members. An acknowledgement that has no effect is no
            // mistake of its.
            Op::Ack(_) if matches!(self.who, SubscriptionReader::Reader { .. }) => Ok(()),
            Op::Nack(..) if matches!(self.who, SubscriptionReader::Reader { .. }) => {
                Err(Error::NotAConsumer("nack"))
            }
            Op::Ack(marks) => self.finish(marks, None),
            Op::Nack(marks, delay_ms) => {
                let max = sealane_protocol::limits::MAX_DELAY_MS;
                if delay_ms > max {
                    let cause = "is longer than 30 days";
                    return Err(Error::parameter("delayMs", cause));
                }
                self.finish(marks, Some(delay_ms))
            }
            Op::Seek { stream, offset, generation } => self.seek(stream, offset, generation),
        }
    }

    /// The number of this connection, which no other of this process has.
    pub fn member(&self) -> u64 {
        self.member
    }

    /// How many messages may still be sent.
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// Resolves when [`StreamSubscription::take`] may have something. May be dropped at any time.
    pub async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // One lock says why and registers the waker. A signal between two locks could be lost.
            let heard = self.signal.listen(cx.waker(), &mut self.signalled);
            self.queue_signalled();
            if heard == SignalHeard::Streams
                || !self.notes.is_empty()
                || !self.removed.is_empty()
                || (self.credit > 0 && !self.turn.is_empty())
            {
                return Poll::Ready(());
            }
            // Lanes that wait for credit alone are not ready. Credit comes by `apply`, and the
            // caller polls again.
            if heard == SignalHeard::Nothing {
                return Poll::Pending;
            }
        }
    }

    /// Takes what there is, up to `max` deliveries and within the credit, and about `max_bytes` of
    /// envelopes, unless a single one is larger.
    ///
    /// # Errors
    /// [`Error::StreamRemoved`], [`Error::ConsumerRemoved`] and failures of the store; the
    /// connection is to be closed.
    pub async fn take(
        &mut self,
        max: usize,
        max_bytes: usize,
        out: &mut Vec<SubscriptionOutput>,
    ) -> Result<(), Error> {
        let mut pieces = Vec::new();
        let taken = self.take_pieces(max, max_bytes, &mut pieces).await;
        part(pieces, out);
        taken
    }

    /// The same, with the messages together that all who read them are sent as the same bytes.
    ///
    /// # Errors
    /// Those of [`StreamSubscription::take`].
    pub async fn take_pieces(
        &mut self,
        max: usize,
        max_bytes: usize,
        out: &mut Vec<DeliveryPiece>,
    ) -> Result<(), Error> {
        // New streams are joined before the turn, so that they take part in this very round.
        for StreamMet { stream, offset } in self.signal.take(&mut self.signalled) {
            self.join(stream, Some(offset)).await?;
        }
        self.queue_signalled();
        for index in std::mem::take(&mut self.removed) {
            // A lane that is gone loses its turn, since its index may soon be another stream's.
            self.turn.retain(|other| *other != index);
            self.lose(index)?;
        }
        out.extend(self.notes.drain(..).map(DeliveryPiece::Status));
        // The credit bounds this round before anything is read, so that nothing has to be put back.
        let mut left = max.min(usize::try_from(self.credit).unwrap_or(usize::MAX));
        let mut bytes = 0;
        while left > 0
            && bytes < max_bytes
            && let Some(index) = self.turn.pop_front()
        {
            let before = out.len();
            let turn =
                LaneTurn { messages: left.min(TURN), bytes: TURN_BYTES.min(max_bytes - bytes) };
            let more = self.serve(index, turn, out).await?;
            let given = out.get(before..).unwrap_or_default();
            bytes += given.iter().map(DeliveryPiece::bytes).sum::<usize>();
            let given: usize = given.iter().map(DeliveryPiece::messages).sum();
            debug_assert!(given <= turn.messages, "a delivery beyond the turn or the credit");
            left -= given.min(left);
            self.credit -= given as u64;
            self.registry.metrics.delivered.fetch_add(given as u64, Ordering::Relaxed);
            // A stream that has more goes to the end. A busy one cannot starve the others.
            if more {
                self.turn.push_back(index);
            }
        }
        Ok(())
    }

    /// Gives the lanes that were signalled their turn.
    fn queue_signalled(&mut self) {
        for index in self.signalled.drain(..) {
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            if lane.is_gone() {
                self.removed.push(index);
            } else if !std::mem::replace(&mut lane.queued, true) {
                self.turn.push_back(index);
            }
        }
    }

    /// Begins to read a stream; from `met` on where the subscription was there before what is
    /// there. A reader by pattern does not hold on to a stream that has nothing for it: it is told
    /// when there is something.
    async fn join(
        &mut self,
        stream: Arc<StreamEntry>,
        met: Option<u64>,
    ) -> Result<Option<StreamJoined>, Error> {
        // A stream can be signalled and listed at once. The second look finds its lane.
        if self.lanes.has(&stream) || stream.removed.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let is_pattern = self.pattern.topic().is_none();
        if let (Some(offset), SubscriptionReader::Reader { .. }) = (met, &self.who) {
            self.read_from(stream, offset)?;
            return Ok(None);
        }
        let mut who = self.who.clone();
        if let (Some(_), SubscriptionReader::Member { start, .. }) = (met, &mut who) {
            // The stream came after the subscription, so that all in it is new to this consumer.
            *start = ReadStart::First;
        }
        if let (true, None, SubscriptionReader::Reader { start, .. }) = (is_pattern, met, &who) {
            let next = start_offset(&self.registry, &stream, *start).await?;
            // A pattern matches many streams with nothing new. A lane for each would cost memory
            // for nothing.
            if next == stream.state.lock().next {
                return Ok(None);
            }
        }
        self.registry.follow(self.lanes.len())?;
        let index = self.lanes.next();
        let opened =
            SubscriptionLane::open(&self.registry, stream, &who, &self.signal, self.member, index)
                .await;
        // The place was counted before the lane opened, which can wait for the disk.
        let (lane, joined) = opened.inspect_err(|_| self.registry.unfollow(1))?;
        let announced = !is_pattern && met.is_none();
        self.lanes.insert(SubscriptionLane { announced, ..lane });
        self.turn.push_back(index);
        Ok(Some(joined))
    }

    fn seek(
        &mut self,
        stream: Option<Topic>,
        offset: u64,
        generation: Option<u64>,
    ) -> Result<(), Error> {
        let index = self.lane_of(stream.as_ref(), "seek")?;
        // Each seek has an answer that waits here until it is taken. Without a bound they would be
        // a client's memory in the hub.
        if self.notes.len() >= MAX_WAITING_ANSWERS {
            // A client that asks and does not read the answers.
            let limit = MAX_WAITING_ANSWERS as u64;
            return Err(Error::TooMany { what: "answers to `seek`", limit });
        }
        let index = match index {
            Some(index) => Some(index),
            None => self.meet(stream.as_ref(), offset)?,
        };
        let Some(lane) = index.and_then(|index| self.lanes.get_mut(index)) else {
            return Ok(());
        };
        let LaneWork::Reader { next } = &mut lane.work else {
            return Err(Error::NotAConsumer("seek"));
        };
        let (joined, at) = lane::resume(&lane.stream, offset, generation);
        *next = at;
        self.notes.push(ServerFrame::Joined(joined));
        lane.announced = true;
        if !std::mem::replace(&mut lane.queued, true) {
            self.turn.extend(index);
        }
        Ok(())
    }

    /// Begins to follow a stream of the pattern that had nothing for this reader before; none where
    /// there is no such stream.
    fn meet(&mut self, topic: Option<&Topic>, offset: u64) -> Result<Option<usize>, Error> {
        let Some(topic) = topic.filter(|topic| self.pattern.matches(topic)) else {
            return Ok(None);
        };
        let is_reader = matches!(self.who, SubscriptionReader::Reader { .. });
        let Some(stream) = self.registry.find(topic).filter(|_| is_reader) else {
            return Ok(None);
        };
        let index = self.read_from(stream, offset)?;
        Ok(Some(index))
    }

    /// Follows a stream as a reader, from `offset` on: of what is gone by now it is told as a gap.
    fn read_from(&mut self, stream: Arc<StreamEntry>, offset: u64) -> Result<usize, Error> {
        self.registry.follow(self.lanes.len())?;
        let index = self.lanes.next();
        let lane = SubscriptionLane::reader(stream, offset, &self.signal, self.member, index);
        self.lanes.insert(lane);
        self.turn.push_back(index);
        Ok(index)
    }

    /// The lane of a stream that an op names, or of the only one.
    fn lane_of(&self, stream: Option<&Topic>, op: &'static str) -> Result<Option<usize>, Error> {
        match stream.or(self.pattern.topic()) {
            Some(topic) => Ok(self.lanes.find(topic)),
            None => Err(Error::UnknownOp(op.into())),
        }
    }

    /// Acknowledges, or sets back with a delay.
    fn finish(&mut self, marks: Vec<AckMark>, delay_ms: Option<u64>) -> Result<(), Error> {
        for mark in merged(marks) {
            let count = match mark {
                AckMark::Id(id) => {
                    let mut all = Vec::new();
                    self.in_flight.remove(id.as_bytes(), &mut all);
                    let each = |DeliveredMessage { lane, offset }| {
                        self.finish_range(lane, offset..=offset, delay_ms)
                    };
                    all.into_iter().map(each).sum()
                }
                AckMark::Range { stream, from, to } => {
                    let op = if delay_ms.is_some() { "nack" } else { "ack" };
                    let index = self.lane_of(stream.as_ref(), op)?;
                    let finish = |index| self.finish_range(index, from..=to, delay_ms);
                    let count = index.map_or(0, finish);
                    self.in_flight.prune(count as usize, self.member, &self.lanes);
                    count
                }
            };
            if count == 0 {
                self.registry.metrics.acked_in_vain.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn finish_range(
        &self,
        index: usize,
        offsets: RangeInclusive<u64>,
        delay_ms: Option<u64>,
    ) -> u64 {
        let (from, to) = offsets.into_inner();
        let Some(lane) = self.lanes.get(index) else { return 0 };
        let LaneWork::Member { entry } = &lane.work else { return 0 };
        let mut consumer = entry.state.lock();
        // Only a full consumer kept others from work, so that an acknowledgement rarely wakes
        // anybody.
        let was_full = consumer.is_full();
        let (metrics, now) = (&self.registry.metrics, self.registry.clock.steady_ms());
        let count = match delay_ms {
            None => {
                // The time is looked up before the acknowledgement forgets it.
                let given_ms = consumer.given_ms(self.member, from).unwrap_or(now);
                let count = consumer.ack(self.member, from, to);
                metrics.acked.fetch_add(count, Ordering::Relaxed);
                let counts = self.registry.series.of_consumer(entry);
                counts.acked.fetch_add(count, Ordering::Relaxed);
                let took = Duration::from_millis(now.saturating_sub(given_ms));
                self.registry.timings.acknowledgement.note_many(took, count);
                count
            }
            Some(delay_ms) => {
                let count = consumer.nack(self.member, from, to, now + delay_ms, now);
                metrics.nacked.fetch_add(count, Ordering::Relaxed);
                count
            }
        };
        // The consumer is free before its members are woken, since each of them takes this lock at
        // once.
        drop(consumer);
        if count > 0 {
            self.registry.mark_dirty(&lane.stream, entry);
        }
        if was_full || delay_ms.is_some() {
            entry.wake();
        }
        count
    }
}

/// The marks with ranges that overlap made one, so that a frame of many ranges looks at each
/// message once.
fn merged(mut marks: Vec<AckMark>) -> Vec<AckMark> {
    if marks.len() < 2 {
        return marks;
    }
    // Stable: ids, which come first, stay in order.
    marks.sort_by(|a, b| match (a, b) {
        (AckMark::Id(_), AckMark::Id(_)) => std::cmp::Ordering::Equal,
        (AckMark::Id(_), _) => std::cmp::Ordering::Less,
        (_, AckMark::Id(_)) => std::cmp::Ordering::Greater,
        (AckMark::Range { stream: a, from: x, .. }, AckMark::Range { stream: b, from: y, .. }) => {
            (a, x).cmp(&(b, y))
        }
    });
    marks.dedup_by(|next, kept| match (next, kept) {
        (
            AckMark::Range { stream: next, from, to },
            AckMark::Range { stream: kept, to: end, .. },
        ) if next == kept && *from <= *end => {
            *end = (*end).max(*to);
            true
        }
        _ => false,
    });
    marks
}

impl Drop for StreamSubscription {
    fn drop(&mut self) {
        // The watch ends first, so that no stream joins a subscription whose lanes are going.
        self.registry.unwatch(self.member);
        self.registry.unfollow(self.lanes.len());
        for lane in self.lanes.drain() {
            lane.close(&self.registry, self.member);
        }
    }
}

impl StreamDelivery {
    /// The deliver frame in `codec`. Records are written from the frame in MessagePack.
    pub fn frame(&self, codec: Codec) -> Bytes {
        // The attempt stands in the frame. Only a first delivery is the same for all readers.
        if self.attempt == 1 {
            return self.block.frame(self.index, codec);
        }
        self.block.frame_again(self.index, codec, self.attempt)
    }

    /// The stream that it is of.
    pub fn stream(&self) -> &Topic {
        &self.block.topic
    }

    /// The generation that its offset is of.
    pub fn generation(&self) -> u64 {
        self.block.generation
    }

    /// The message's offset.
    pub fn offset(&self) -> u64 {
        self.block.records.get(self.index).map_or(0, |record| record.offset)
    }

    /// How often the message has been delivered, counting this time.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    fn id(&self) -> &[u8] {
        self.block.records.get(self.index).map_or(&[], |record| &record.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_are_looked_at_once() {
        let range = |stream: Option<&str>, from, to| AckMark::Range {
            stream: stream.map(|topic| topic.parse().unwrap()),
            from,
            to,
        };
        let id = || AckMark::Id("m".into());
        let marks = vec![range(None, 5, 9), id(), range(Some("a"), 0, 3), range(None, 0, 5)];
        let expected = vec![id(), range(None, 0, 9), range(Some("a"), 0, 3)];
        assert_eq!(merged(marks), expected);
        let many = (0..40_000).map(|_| range(None, 0, 65_535)).collect();
        assert_eq!(merged(many), [range(None, 0, 65_535)]);
        let apart = vec![range(None, 0, 1), range(None, 3, 4)];
        assert_eq!(merged(apart.clone()), apart);
    }
}
