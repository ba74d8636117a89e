//! One stream of a subscription.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sealane_protocol::Joined;

use super::Who;
use crate::consumer::Member;
use crate::registry::Registry;
use crate::signal::{Signal, Waiter};
use crate::stream::{ConsumerEntry, Stream};
use crate::{Error, Start, now_ms};

pub(super) struct Lane {
    pub(super) stream: Arc<Stream>,
    pub(super) waiter: Arc<Waiter>,
    /// Whether the lane is in its subscription's turn.
    pub(super) queued: bool,
    /// Whether the client was told of the stream.
    pub(super) announced: bool,
    pub(super) work: Work,
}

pub(super) enum Work {
    Reader { next: u64 },
    Member { entry: Arc<ConsumerEntry> },
}

impl Lane {
    pub(super) async fn open(
        registry: &Arc<Registry>,
        stream: Arc<Stream>,
        who: &Who,
        signal: &Arc<Signal>,
        member: Member,
        index: usize,
    ) -> Result<(Lane, Joined), Error> {
        match who {
            Who::Reader { start, generation } => {
                let (joined, next) = match *start {
                    Start::Offset(offset) => resume(&stream, offset, *generation),
                    start => {
                        let next = start_offset(registry, &stream, start).await?;
                        (describe(&stream, next, true), next)
                    }
                };
                Ok((Self::reader(stream, next, signal, member, index), joined))
            }
            Who::Member { name, owner, start, change } => {
                let first = start_offset(registry, &stream, *start).await?;
                let entry = stream.consumer(name, owner, first)?;
                registry.series.admit_consumer(&stream, &entry);
                let cursor = {
                    let mut consumer = entry.state.lock();
                    let before = consumer.settings;
                    consumer.settings.change(*change);
                    // Changed settings stand only in the consumer's whole row, which the next
                    // commit then writes.
                    entry.kept.lock().is_changed |= consumer.settings != before;
                    consumer.cursor()
                };
                let joined = describe(&stream, cursor, true);
                // There may be room for more by what has changed.
                entry.wake();
                registry.mark_dirty(&stream, &entry);
                registry.mark_timed(&stream, &entry);
                let lane = Self::new(stream, Work::Member { entry }, signal, member, index);
                if let Work::Member { entry } = &lane.work {
                    // The member is listed first and the removal looked at after. In the other
                    // order a removal could miss it.
                    entry.members.lock().insert(member, lane.waiter.clone());
                }
                if lane.is_consumer_gone() {
                    // The thread that removed the consumer may not have found this member among
                    // those to be told.
                    lane.close(registry, member);
                    return Err(Error::ConsumerRemoved);
                }
                Ok((lane, joined))
            }
        }
    }

    /// Whether the stream, or the consumer that this is a member of, was removed.
    pub(super) fn is_gone(&self) -> bool {
        self.stream.removed.load(Ordering::SeqCst) || self.is_consumer_gone()
    }

    /// Whether the consumer that this is a member of was removed.
    fn is_consumer_gone(&self) -> bool {
        matches!(&self.work, Work::Member { entry } if entry.removed.load(Ordering::SeqCst))
    }

    /// A reader's lane, from `next` on.
    pub(super) fn reader(
        stream: Arc<Stream>,
        next: u64,
        signal: &Arc<Signal>,
        member: Member,
        index: usize,
    ) -> Self {
        stream.readers.fetch_add(1, Ordering::Relaxed);
        Self::new(stream, Work::Reader { next }, signal, member, index)
    }

    fn new(
        stream: Arc<Stream>,
        work: Work,
        signal: &Arc<Signal>,
        member: Member,
        index: usize,
    ) -> Self {
        let waiter = Arc::new(Waiter::new(signal.clone(), index));
        // The waiter is there before the first look, so that no message falls between look and
        // registration.
        stream.waiters.lock().insert(member, waiter.clone());
        Self { stream, waiter, queued: true, announced: false, work }
    }

    pub(super) fn close(self, registry: &Registry, member: Member) {
        self.stream.waiters.lock().remove(&member);
        match self.work {
            Work::Reader { .. } => {
                self.stream.readers.fetch_sub(1, Ordering::Relaxed);
            }
            Work::Member { entry } => {
                // The member leaves the list before its messages come free, so that it is not woken
                // for them.
                entry.members.lock().remove(&member);
                entry.state.lock().leave(member, now_ms());
                registry.mark_dirty(&self.stream, &entry);
                entry.wake();
            }
        }
    }
}

/// Where a reader of `stream` goes on, and what it is told.
pub(super) fn resume(stream: &Stream, offset: u64, generation: Option<u64>) -> (Joined, u64) {
    let (next, recovered) = stream.state.lock().resume(offset, generation);
    (describe(stream, next, recovered), next)
}

pub(super) fn describe(stream: &Stream, offset: u64, recovered: bool) -> Joined {
    let state = stream.state.lock();
    Joined {
        stream: stream.topic.clone(),
        generation: state.generation(),
        offset,
        recovered,
        level: state.settings.level.into(),
        sealed: stream.sealed,
    }
}

/// The first offset that a reader gets which begins at `start`.
pub(crate) async fn start_offset(
    registry: &Arc<Registry>,
    stream: &Arc<Stream>,
    start: Start,
) -> Result<u64, Error> {
    let (first, stored, next) = {
        let state = stream.state.lock();
        (state.first, state.stored_next.max(state.first), state.next)
    };
    match start {
        Start::First => Ok(first),
        Start::New => Ok(next),
        // Below `first` there is a gap, which whoever reads there is told.
        Start::Offset(offset) => Ok(offset.min(next)),
        Start::Time(time_ms) => {
            let (registry, number) = (registry.clone(), stream.number);
            let search = move || Ok(registry.reads.offset_at(number, first..stored, time_ms)?);
            let found = super::fetch::blocking(search).await?;
            // Messages of `memory` streams may be newer than the store. Memory is asked only beyond
            // it.
            if found < stored {
                return Ok(found);
            }
            Ok(stream.state.lock().offset_at(stored, time_ms))
        }
    }
}
