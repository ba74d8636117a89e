//! How a subscription gets the messages of its turn: from memory, or from disk.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sealane_protocol::ServerFrame;

use super::burst::{self, DeliveryBurst, DeliveryPiece};
use super::in_flight::DeliveredMessage;
use super::lane::{LaneWork, SubscriptionLane, describe};
use super::{LaneTurn, StreamDelivery, StreamSubscription};
use crate::Error;
use crate::block::StreamBlock;
use crate::consumer::{ConsumerMember, HandedMessage};
use crate::limits::COMMIT_WAIT_MS;
use crate::metrics::TimingHistogram;
use crate::registry::StreamRegistry;
use crate::stream::{ConsumerEntry, OffsetPlace, StreamEntry};
use crate::writer::WriterCommand;

impl StreamSubscription {
    /// Takes a turn of one lane; returns whether there may be more.
    pub(super) async fn serve(
        &mut self,
        index: usize,
        turn: LaneTurn,
        out: &mut Vec<DeliveryPiece>,
    ) -> Result<bool, Error> {
        let Some(lane) = self.lanes.get_mut(index) else { return Ok(false) };
        let stream = lane.stream.clone();
        if lane.is_gone() {
            return self.lose(index);
        }
        let at = out.len();
        let more = match &mut lane.work {
            LaneWork::Reader { next } => {
                let mut from = *next;
                let more = read(&self.registry, &stream, &mut from, turn, out).await;
                // The place moves even if the read failed halfway: what is in `out` has been
                // delivered.
                *next = from;
                let more = more?;
                if !more {
                    lane.queued = false;
                    lane.waiter.arm();
                    // The lane asked for a wake first and looks again after. A message between the
                    // two is not missed.
                    if !matches!(stream.find(from), OffsetPlace::AtEnd)
                        || stream.removed.load(Ordering::SeqCst)
                    {
                        lane.waiter.wake();
                    }
                }
                more
            }
            LaneWork::Member { entry } => {
                let entry = entry.clone();
                self.serve_member(index, &stream, &entry, turn, out).await?
            }
        };
        self.note_delivered(index, &stream, out.get(at..).unwrap_or_default());
        self.announce(index, at, out);
        Ok(more)
    }

    /// Counts what a stream gave, and how long after its storing.
    fn note_delivered(&self, index: usize, stream: &StreamEntry, given: &[DeliveryPiece]) {
        let timings = &self.registry.timings;
        let (is_reader, now_ms) = match self.lanes.get(index).map(|lane| &lane.work) {
            Some(LaneWork::Reader { .. }) => (true, self.registry.clock.day_ms()),
            Some(LaneWork::Member { .. }) => (false, self.registry.clock.day_ms()),
            None => return,
        };
        let timing = if is_reader { &timings.reader_delivery } else { &timings.consumer_delivery };
        let (mut count, mut first) = (0, StoredRun::default());
        for piece in given {
            count += piece.messages() as u64;
            let DeliveryPiece::Burst(burst) = piece else { continue };
            for record in burst.records() {
                if let Some(ended) = first.add(record.time_ms) {
                    ended.note(timing, now_ms);
                }
            }
        }
        first.note(timing, now_ms);
        self.registry.series.of(stream).delivered.fetch_add(count, Ordering::Relaxed);
    }

    /// Gives a member what comes next, a block at a time: what it is given is at hand by then, so
    /// that nothing has to go back and come behind what others were given meanwhile.
    async fn serve_member(
        &mut self,
        index: usize,
        stream: &Arc<StreamEntry>,
        entry: &Arc<ConsumerEntry>,
        turn: LaneTurn,
        out: &mut Vec<DeliveryPiece>,
    ) -> Result<bool, Error> {
        let mut left = turn;
        while left.messages > 0 && left.bytes > 0 {
            let visible = stream.state.lock().visible();
            let (next, skipped) = {
                let mut consumer = entry.state.lock();
                (consumer.next(&visible), consumer.take_skipped())
            };
            if let Some((from, to)) = skipped {
                out.push(gap(stream, from, to, "retention"));
            }
            let Some(offset) = next else {
                self.rest(index, stream, entry);
                return Ok(false);
            };
            // The block is read before messages are handed out. Handed first, they would go back
            // behind others (decision 8).
            let Some(block) = locate(&self.registry, stream, entry, offset, out).await? else {
                if stream.removed.load(Ordering::SeqCst) {
                    return self.lose(index);
                }
                continue;
            };
            // A block may reach below a purge. Messages there are gone for everybody.
            let offsets = block.first.max(visible.start)..(block.last + 1).min(visible.end);
            let now_ms = self.registry.clock.steady_ms();
            let handed = hand(entry, self.member, &block, offsets, now_ms, &mut left);
            if !handed.is_empty() {
                // From here on the clock watches the deadlines, even if this connection never
                // answers.
                self.registry.mark_timed(stream, entry);
                self.registry.mark_dirty(stream, entry);
            }
            self.deliver(index, stream, entry, &block, handed, out);
        }
        Ok(true)
    }

    /// Nothing is left for this lane until it is woken.
    fn rest(&mut self, index: usize, stream: &StreamEntry, entry: &Arc<ConsumerEntry>) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        lane.queued = false;
        lane.waiter.arm();
        let visible = stream.state.lock().visible();
        let (has_work, wants_more) = {
            let consumer = entry.state.lock();
            (consumer.has_work(&visible), consumer.wants_more(&visible))
        };
        // Work that came between the look and `arm` was signalled to nobody.
        if has_work || lane.is_gone() {
            lane.waiter.wake();
        } else if wants_more {
            // The share alone is in the way, and had no room just now. It is not asked again: the
            // answer may have changed, and then nobody would wake the lane.
            self.registry.mark_starved(entry);
        }
    }

    fn deliver(
        &mut self,
        index: usize,
        stream: &StreamEntry,
        entry: &ConsumerEntry,
        block: &Arc<StreamBlock>,
        handed: Vec<HandedMessage>,
        out: &mut Vec<DeliveryPiece>,
    ) {
        let start = out.len();
        for HandedMessage { offset, attempt } in handed {
            let at = block.index_of(offset);
            if block.records.get(at).is_none_or(|record| record.offset != offset) {
                // A damaged message would come back to every member for ever. It is named as a gap
                // and passed.
                entry.state.lock().pass_over(offset..offset + 1);
                out.push(gap(stream, offset, offset, "damaged"));
                continue;
            }
            let delivery = StreamDelivery { block: block.clone(), index: at, attempt };
            let redelivered = u64::from(attempt > 1);
            self.registry.metrics.redelivered.fetch_add(redelivered, Ordering::Relaxed);
            let counts = self.registry.series.of_consumer(entry);
            counts.redelivered.fetch_add(redelivered, Ordering::Relaxed);
            // The id is known here before the message leaves, so that no acknowledgement can come
            // too early.
            self.in_flight.insert(delivery.id(), DeliveredMessage { lane: index, offset });
            burst::push(out, start, delivery);
        }
        self.in_flight.bound(self.member, &self.lanes);
    }

    /// Tells of the stream before its first delivery.
    fn announce(&mut self, index: usize, at: usize, out: &mut Vec<DeliveryPiece>) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        if lane.announced {
            return;
        }
        let given = out.get(at..).unwrap_or_default();
        let Some(first) = given.iter().find_map(|piece| piece.records().first()) else { return };
        lane.announced = true;
        let joined = describe(&lane.stream, first.offset, true);
        // Before the first message, and not when the pattern begins to match: most streams that
        // match never have anything for this subscription.
        out.insert(at, DeliveryPiece::Status(ServerFrame::Joined(joined)));
    }

    /// The stream, or its consumer, was removed: a pattern goes on without it.
    pub(super) fn lose(&mut self, index: usize) -> Result<bool, Error> {
        if self.pattern.topic().is_some() {
            let of_stream = |lane: &SubscriptionLane| lane.stream.removed.load(Ordering::SeqCst);
            let is_stream = self.lanes.get(index).is_none_or(of_stream);
            return Err(if is_stream { Error::StreamRemoved } else { Error::ConsumerRemoved });
        }
        if let Some(lane) = self.lanes.take(index) {
            self.registry.unfollow(1);
            // The index is free from now on. An old id must not acknowledge in another stream.
            self.in_flight.lose(index);
            lane.close(&self.registry, self.member);
        }
        Ok(false)
    }
}

/// Messages that follow each other and were stored at the same time: most of a commit's.
#[derive(Default)]
struct StoredRun {
    time_ms: u64,
    count: u64,
}

impl StoredRun {
    /// Adds a message; returns the run that ended with the one before.
    fn add(&mut self, time_ms: u64) -> Option<StoredRun> {
        let ended = (self.time_ms != time_ms).then(|| std::mem::take(self));
        self.time_ms = time_ms;
        self.count += 1;
        ended
    }

    fn note(&self, timing: &TimingHistogram, now_ms: u64) {
        if self.count > 0 {
            let age_ms = now_ms.saturating_sub(self.time_ms);
            timing.note_many(Duration::from_millis(age_ms), self.count);
        }
    }
}

/// Takes a turn from `next` on, in bursts; returns whether there may be more.
pub(crate) async fn read(
    registry: &Arc<StreamRegistry>,
    stream: &Arc<StreamEntry>,
    next: &mut u64,
    turn: LaneTurn,
    out: &mut Vec<DeliveryPiece>,
) -> Result<bool, Error> {
    let (mut left, mut bytes) = (turn.messages, 0);
    while left > 0 && bytes < turn.bytes {
        let block = match stream.find(*next) {
            OffsetPlace::Block(block) => block,
            OffsetPlace::AtEnd => return Ok(false),
            OffsetPlace::Trimmed(first) => {
                out.push(gap(stream, *next, first - 1, "retention"));
                *next = first;
                continue;
            }
            OffsetPlace::Damaged(after) => {
                out.push(gap(stream, *next, after - 1, "damaged"));
                *next = after;
                continue;
            }
            OffsetPlace::Behind => match load(registry, stream, *next).await? {
                Some(block) => block,
                // Without this look a removed stream would be asked for again and again.
                None if stream.removed.load(Ordering::SeqCst) => return Ok(false),
                None => continue,
            },
        };
        let from = block.index_of(*next);
        let mut end = from;
        while left > 0
            && bytes < turn.bytes
            && let Some(record) = block.records.get(end)
            && record.offset == *next
        {
            *next += 1;
            left -= 1;
            end += 1;
            bytes += record.body.len();
        }
        if end > from {
            out.push(DeliveryPiece::Burst(DeliveryBurst::new(block, from..end)));
        }
    }
    Ok(true)
}

/// Takes what comes next of a block for a member, as much as a turn may have.
fn hand(
    entry: &ConsumerEntry,
    member: ConsumerMember,
    block: &StreamBlock,
    offsets: Range<u64>,
    now_ms: u64,
    left: &mut LaneTurn,
) -> Vec<HandedMessage> {
    let mut bytes = left.bytes;
    let fits = |offset| {
        let fits = bytes > 0;
        if fits && let Some(record) = block.records.get(block.index_of(offset)) {
            bytes = bytes.saturating_sub(record.body.len());
        }
        fits
    };
    let handed = entry.state.lock().take(member, offsets, left.messages, now_ms, fits);
    *left = LaneTurn { messages: left.messages - handed.len(), bytes };
    handed
}

/// The block that holds `offset`; none where it is gone, which the consumer is told, or where its
/// stream is.
async fn locate(
    registry: &Arc<StreamRegistry>,
    stream: &Arc<StreamEntry>,
    entry: &Arc<ConsumerEntry>,
    offset: u64,
    out: &mut Vec<DeliveryPiece>,
) -> Result<Option<Arc<StreamBlock>>, Error> {
    loop {
        let (end, reason) = match stream.find(offset) {
            OffsetPlace::Block(block) => return Ok(Some(block)),
            OffsetPlace::Behind => match load(registry, stream, offset).await? {
                Some(block) => return Ok(Some(block)),
                None if stream.removed.load(Ordering::SeqCst) => return Ok(None),
                None => continue,
            },
            OffsetPlace::Trimmed(_) => (offset + 1, "retention"),
            OffsetPlace::Damaged(_) => (offset + 1, "damaged"),
            OffsetPlace::AtEnd => return Ok(None),
        };
        entry.state.lock().pass_over(offset..end);
        out.push(gap(stream, offset, end - 1, reason));
        return Ok(None);
    }
}

/// Reads the block that holds `offset` from disk. `None`: look again, more is known now.
async fn load(
    registry: &Arc<StreamRegistry>,
    stream: &Arc<StreamEntry>,
    offset: u64,
) -> Result<Option<Arc<StreamBlock>>, Error> {
    let (reader, topic, number) = (registry.clone(), stream.topic.clone(), stream.number);
    // The disk may take long. On a worker of the runtime every connection there would wait.
    let read = blocking(move || Ok(reader.reads.block(&topic, number, offset)?)).await;
    registry.metrics.blocks_read.fetch_add(1, Ordering::Relaxed);
    let (first, leaving, stored, next) = {
        let state = stream.state.lock();
        (state.first, state.leaving, state.stored_next, state.next)
    };
    // Looked at after the read, since retention may have come between. A missing row is only damage
    // if nobody was about to remove or to store it.
    if offset < first || stream.removed.load(Ordering::SeqCst) {
        return Ok(None);
    }
    if offset >= stored || offset < leaving {
        // The commit that stores or removes it has not been told of yet.
        tokio::time::sleep(Duration::from_millis(COMMIT_WAIT_MS)).await;
        return Ok(None);
    }
    let block = read?;
    match block {
        Some(block) if block.first <= offset => {
            for (from, to) in holes(&block) {
                note_damage(registry, stream, from, to);
            }
            let block = Arc::new(block);
            // Readers who catch up are often close together: the next one finds it in memory.
            stream.share(&block);
            let index = block.index_of(offset);
            let here = block.records.get(index).is_some_and(|record| record.offset == offset);
            Ok(here.then_some(block))
        }
        Some(block) => {
            note_damage(registry, stream, offset, block.first - 1);
            Ok(None)
        }
        None => {
            note_damage(registry, stream, offset, next.min(stored) - 1);
            Ok(None)
        }
    }
}

/// The ranges of offsets that a block should hold and does not.
fn holes(block: &StreamBlock) -> Vec<(u64, u64)> {
    let (mut holes, mut expected) = (Vec::new(), block.first);
    for record in block.records.iter() {
        if record.offset > expected {
            holes.push((expected, record.offset - 1));
        }
        expected = record.offset + 1;
    }
    // A block with its last records damaged ends early. Its row still says how far it went.
    if expected <= block.last {
        holes.push((expected, block.last));
    }
    holes
}

/// Damage is named and kept where it is; it is never a reason to delete.
fn note_damage(registry: &StreamRegistry, stream: &Arc<StreamEntry>, from: u64, to: u64) {
    // Many readers meet the same damage. Only the first one logs, counts and stores it.
    if stream.note_damage(from, to) {
        tracing::error!(stream = %stream.topic, from, to, "stored messages are damaged");
        registry.metrics.damaged.fetch_add(to - from + 1, Ordering::Relaxed);
        if let Err(error) = registry.send(WriterCommand::Damage(stream.clone(), (from, to))) {
            tracing::error!(%error, "the damage could not be noted");
        }
    }
}

fn gap(stream: &StreamEntry, from: u64, to: u64, reason: &str) -> DeliveryPiece {
    let stream = stream.topic.clone();
    DeliveryPiece::Status(ServerFrame::Gap { stream, from, to, reason: reason.into() })
}

/// Runs what waits for the disk where it holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|cause| Err(Error::StorageFailed(cause.to_string())))
}
