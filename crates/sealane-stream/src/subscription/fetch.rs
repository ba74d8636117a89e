//! How a subscription gets the messages of its turn: from memory, or from disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::slot::{Work, describe};
use super::{Delivery, Event, Subscription};
use crate::block::Block;
use crate::consumer::Handed;
use crate::protocol::ServerFrame;
use crate::registry::Registry;
use crate::stream::{Found, Shared, Stream};
use crate::writer::Command;
use crate::{Error, now_ms};

/// Bytes of envelopes that one turn of a stream takes, unless a single message is larger.
const TURN_BYTES: usize = 256 << 10;

/// How long a reader waits for a `memory` stream's messages to be stored, when they have left
/// memory before.
const STORING: Duration = Duration::from_millis(5);

impl Subscription {
    /// Takes up to `max` messages of one slot; returns whether there may be more.
    pub(super) async fn serve(
        &mut self,
        index: usize,
        max: usize,
        out: &mut Vec<Event>,
    ) -> Result<bool, Error> {
        let Some(slot) = self.slots.get_mut(index) else { return Ok(false) };
        let stream = slot.stream.clone();
        if stream.removed.load(Ordering::SeqCst) {
            return self.lose(index);
        }
        let at = out.len();
        let more = match &mut slot.work {
            Work::Reader { next } => {
                let mut place = *next;
                let more = read(&self.registry, &stream, &mut place, max, out).await;
                *next = place;
                let more = more?;
                if !more {
                    slot.queued = false;
                    slot.waiter.arm();
                    if !matches!(stream.find(place), Found::AtEnd)
                        || stream.removed.load(Ordering::SeqCst)
                    {
                        slot.waiter.wake();
                    }
                }
                more
            }
            Work::Member { shared } => {
                let shared = shared.clone();
                self.serve_member(index, &stream, &shared, max, out).await?
            }
        };
        self.announce(index, at, out);
        Ok(more)
    }

    async fn serve_member(
        &mut self,
        index: usize,
        stream: &Arc<Stream>,
        shared: &Arc<Shared>,
        max: usize,
        out: &mut Vec<Event>,
    ) -> Result<bool, Error> {
        let mut handed = Vec::new();
        let (visible, fitting) = {
            let state = stream.state.lock();
            (state.visible(), state.fitting(TURN_BYTES))
        };
        let skipped = {
            let mut consumer = shared.state.lock();
            // What is handed and does not fit goes back, and comes behind what another member was
            // handed meanwhile: that is to be rare.
            consumer.take(self.member, max.min(fitting), visible, now_ms(), &mut handed);
            consumer.take_skipped()
        };
        if let Some((from, to)) = skipped {
            out.push(gap(stream, from, to, "retention"));
        }
        if handed.is_empty() {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.queued = false;
                slot.waiter.arm();
                let visible = stream.state.lock().visible();
                if shared.state.lock().has_work(&visible) || stream.removed.load(Ordering::SeqCst) {
                    slot.waiter.wake();
                }
            }
            return Ok(false);
        }
        self.registry.mark_timed(stream, shared);
        self.registry.mark_dirty(stream, shared);
        let from = out.len();
        let result = fetch(&self.registry, stream, shared, &handed, out).await;
        for event in out.get(from..).unwrap_or_default() {
            if let Event::Deliver(delivery) = event {
                let redelivered = u64::from(delivery.attempt > 1);
                self.registry.metrics.redelivered.fetch_add(redelivered, Ordering::Relaxed);
                self.in_flight.insert(delivery.id(), (index, delivery.offset()));
            }
        }
        let (rest, failure) = match result {
            Ok(rest) => (rest, None),
            Err((error, rest)) => (rest, Some(error)),
        };
        if !rest.is_empty() {
            shared.state.lock().untake(self.member, &rest);
            shared.wake();
        }
        failure.map_or(Ok(true), Err)
    }

    /// Tells of the stream before its first delivery.
    fn announce(&mut self, index: usize, at: usize, out: &mut Vec<Event>) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.announced {
            return;
        }
        let Some(Event::Deliver(first)) =
            out.get(at..).and_then(|new| new.iter().find(|e| matches!(e, Event::Deliver(_))))
        else {
            return;
        };
        slot.announced = true;
        let joined = describe(&slot.stream, first.offset(), true);
        out.insert(at, Event::Status(ServerFrame::Joined(joined)));
    }

    /// The stream was removed: a pattern goes on without it.
    pub(super) fn lose(&mut self, index: usize) -> Result<bool, Error> {
        if self.pattern.topic().is_some() {
            return Err(Error::StreamRemoved);
        }
        if let Some(slot) = self.slots.take(index) {
            slot.close(&self.registry, self.member);
        }
        Ok(false)
    }
}

/// Takes up to `max` messages from `next` on; returns whether there may be more.
pub(crate) async fn read(
    registry: &Arc<Registry>,
    stream: &Arc<Stream>,
    next: &mut u64,
    max: usize,
    out: &mut Vec<Event>,
) -> Result<bool, Error> {
    let (mut left, mut bytes) = (max, 0);
    while left > 0 && bytes < TURN_BYTES {
        let block = match stream.find(*next) {
            Found::Block(block) => block,
            Found::AtEnd => return Ok(false),
            Found::Trimmed(first) => {
                out.push(gap(stream, *next, first - 1, "retention"));
                *next = first;
                continue;
            }
            Found::Damaged(after) => {
                out.push(gap(stream, *next, after - 1, "damaged"));
                *next = after;
                continue;
            }
            Found::Behind => match load(registry, stream, *next).await? {
                Some(block) => block,
                None => continue,
            },
        };
        let from = block.index_of(*next);
        for index in from..block.records.len().min(from.saturating_add(left)) {
            match block.records.get(index) {
                Some(record) if record.offset == *next && bytes < TURN_BYTES => {
                    *next += 1;
                    left -= 1;
                    bytes += record.body.len();
                }
                _ => break,
            }
            out.push(Event::Deliver(Delivery { block: block.clone(), index, attempt: 1 }));
        }
    }
    Ok(true)
}

/// Gets what a consumer was handed; returns what was not reached, by size or by a failure.
async fn fetch(
    registry: &Arc<Registry>,
    stream: &Arc<Stream>,
    shared: &Arc<Shared>,
    handed: &[Handed],
    out: &mut Vec<Event>,
) -> Result<Vec<Handed>, (Error, Vec<Handed>)> {
    let mut block: Option<Arc<Block>> = None;
    let mut rest = handed.iter().copied();
    let mut bytes = 0;
    while bytes < TURN_BYTES
        && let Some(Handed { offset, attempt }) = rest.next()
    {
        if !block.as_ref().is_some_and(|b| (b.first..=b.last).contains(&offset)) {
            block = locate(registry, stream, shared, offset, out).await.map_err(|error| {
                let handed = Handed { offset, attempt };
                (error, std::iter::once(handed).chain(rest.clone()).collect())
            })?;
        }
        let Some(found) = &block else { continue };
        let index = found.index_of(offset);
        let record = found.records.get(index).filter(|record| record.offset == offset);
        if let Some(record) = record {
            bytes += record.body.len();
            out.push(Event::Deliver(Delivery { block: found.clone(), index, attempt }));
        } else {
            shared.state.lock().forget(offset..offset + 1);
            out.push(gap(stream, offset, offset, "damaged"));
        }
    }
    Ok(rest.collect())
}

/// The block that holds `offset`; none where it is gone, which the consumer is told.
async fn locate(
    registry: &Arc<Registry>,
    stream: &Arc<Stream>,
    shared: &Arc<Shared>,
    offset: u64,
    out: &mut Vec<Event>,
) -> Result<Option<Arc<Block>>, Error> {
    loop {
        let (end, reason) = match stream.find(offset) {
            Found::Block(block) => return Ok(Some(block)),
            Found::Behind => match load(registry, stream, offset).await? {
                Some(block) => return Ok(Some(block)),
                None => continue,
            },
            Found::Trimmed(_) => (offset + 1, "retention"),
            Found::Damaged(_) => (offset + 1, "damaged"),
            Found::AtEnd => return Ok(None),
        };
        shared.state.lock().forget(offset..end);
        out.push(gap(stream, offset, end - 1, reason));
        return Ok(None);
    }
}

/// Reads the block that holds `offset` from disk. `None`: look again, more is known now.
async fn load(
    registry: &Arc<Registry>,
    stream: &Arc<Stream>,
    offset: u64,
) -> Result<Option<Arc<Block>>, Error> {
    let (reader, topic, number) = (registry.clone(), stream.topic.clone(), stream.number);
    let block = blocking(move || reader.reads.block(&topic, number, offset)).await?;
    registry.metrics.blocks_read.fetch_add(1, Ordering::Relaxed);
    let (first, stored, next) = {
        let state = stream.state.lock();
        (state.first, state.stored_next, state.next)
    };
    if offset < first {
        return Ok(None);
    }
    if offset >= stored {
        tokio::time::sleep(STORING).await;
        return Ok(None);
    }
    match block {
        Some(block) if block.first <= offset => {
            for (from, to) in holes(&block) {
                note_damage(registry, stream, from, to);
            }
            let block = Arc::new(block);
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
fn holes(block: &Block) -> Vec<(u64, u64)> {
    let (mut holes, mut expected) = (Vec::new(), block.first);
    for record in &block.records {
        if record.offset > expected {
            holes.push((expected, record.offset - 1));
        }
        expected = record.offset + 1;
    }
    if expected <= block.last {
        holes.push((expected, block.last));
    }
    holes
}

/// Damage is named and kept where it is; it is never a reason to delete.
fn note_damage(registry: &Registry, stream: &Arc<Stream>, from: u64, to: u64) {
    if stream.note_damage(from, to) {
        tracing::error!(stream = %stream.topic, from, to, "stored messages are damaged");
        registry.metrics.damaged.fetch_add(to - from + 1, Ordering::Relaxed);
        if let Err(error) = registry.send(Command::Damage(stream.clone(), (from, to))) {
            tracing::error!(%error, "the damage could not be noted");
        }
    }
}

fn gap(stream: &Stream, from: u64, to: u64, reason: &str) -> Event {
    let stream = stream.topic.clone();
    Event::Status(ServerFrame::Gap { stream, from, to, reason: reason.into() })
}

/// Runs what waits for the disk where it holds nobody up.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|cause| Err(Error::StorageFailed(cause.to_string())))
}
