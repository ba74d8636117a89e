//! One stream of a subscription.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sealane_protocol::StreamJoined;

use super::SubscriptionReader;
use crate::consumer::ConsumerMember;
use crate::registry::StreamRegistry;
use crate::signal::{LaneWaiter, SubscriptionSignal};
use crate::stream::{ConsumerEntry, StreamEntry};
use crate::{Error, ReadStart};

pub(super) struct SubscriptionLane {
    pub(super) stream: Arc<StreamEntry>,
    pub(super) waiter: Arc<LaneWaiter>,
    /// Whether the lane is in its subscription's turn.
    pub(super) queued: bool,
    /// Whether the client was told of the stream.
    pub(super) announced: bool,
    pub(super) work: LaneWork,
}

pub(super) enum LaneWork {
    Reader { next: u64 },
    Member { entry: Arc<ConsumerEntry> },
}

impl SubscriptionLane {
    pub(super) async fn open(
        registry: &Arc<StreamRegistry>,
        stream: Arc<StreamEntry>,
        who: &SubscriptionReader,
        signal: &Arc<SubscriptionSignal>,
        member: ConsumerMember,
        index: usize,
    ) -> Result<(SubscriptionLane, StreamJoined), Error> {
        match who {
            SubscriptionReader::Reader { start, generation } => {
                let (joined, next) = match *start {
                    ReadStart::Offset(offset) => resume(&stream, offset, *generation),
                    start => {
                        let next = start_offset(registry, &stream, start).await?;
                        (describe(&stream, next, true), next)
                    }
                };
                Ok((Self::reader(stream, next, signal, member, index), joined))
            }
            SubscriptionReader::Member { name, owner, start, change, steers } => {
                let first = start_offset(registry, &stream, *start).await?;
                let entry = stream.consumer(name, owner, first, &registry.shares)?;
                registry.series.admit_consumer(&entry);
                // All members share the settings: one who may only read must not change what the
                // others work by.
                let may_change = || *entry.owner == **owner || steers.may(&stream.topic);
                let cursor = {
                    let mut consumer = entry.state.lock();
                    let before = consumer.settings;
                    let mut settings = before;
                    settings.change(*change);
                    if settings != before && !may_change() {
                        let (stream, consumer) = (stream.topic.to_string(), name.clone());
                        return Err(Error::ConsumerNotYours { stream, consumer });
                    }
                    consumer.settings = settings;
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
                let lane = Self::new(stream, LaneWork::Member { entry }, signal, member, index);
                if let LaneWork::Member { entry } = &lane.work {
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
        matches!(&self.work, LaneWork::Member { entry } if entry.removed.load(Ordering::SeqCst))
    }

    /// A reader's lane, from `next` on.
    pub(super) fn reader(
        stream: Arc<StreamEntry>,
        next: u64,
        signal: &Arc<SubscriptionSignal>,
        member: ConsumerMember,
        index: usize,
    ) -> Self {
        stream.readers.fetch_add(1, Ordering::Relaxed);
        Self::new(stream, LaneWork::Reader { next }, signal, member, index)
    }

    fn new(
        stream: Arc<StreamEntry>,
        work: LaneWork,
        signal: &Arc<SubscriptionSignal>,
        member: ConsumerMember,
        index: usize,
    ) -> Self {
        let waiter = Arc::new(LaneWaiter::new(signal.clone(), index));
        // The waiter is there before the first look, so that no message falls between look and
        // registration.
        stream.waiters.lock().insert(member, waiter.clone());
        Self { stream, waiter, queued: true, announced: false, work }
    }

    pub(super) fn close(self, registry: &StreamRegistry, member: ConsumerMember) {
        self.stream.waiters.lock().remove(&member);
        match self.work {
            LaneWork::Reader { .. } => {
                self.stream.readers.fetch_sub(1, Ordering::Relaxed);
            }
            LaneWork::Member { entry } => {
                // The member leaves the list before its messages come free, so that it is not woken
                // for them.
                entry.members.lock().remove(&member);
                entry.state.lock().leave(member, registry.clock.steady_ms());
                registry.mark_dirty(&self.stream, &entry);
                entry.wake();
            }
        }
    }
}

/// Where a reader of `stream` goes on, and what it is told.
pub(super) fn resume(
    stream: &StreamEntry,
    offset: u64,
    generation: Option<u64>,
) -> (StreamJoined, u64) {
    let (next, recovered) = stream.state.lock().resume(offset, generation);
    (describe(stream, next, recovered), next)
}

pub(super) fn describe(stream: &StreamEntry, offset: u64, recovered: bool) -> StreamJoined {
    let state = stream.state.lock();
    StreamJoined {
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
    registry: &Arc<StreamRegistry>,
    stream: &Arc<StreamEntry>,
    start: ReadStart,
) -> Result<u64, Error> {
    let (first, stored, next) = {
        let state = stream.state.lock();
        (state.first, state.stored_next.max(state.first), state.next)
    };
    match start {
        ReadStart::First => Ok(first),
        ReadStart::New => Ok(next),
        // Below `first` there is a gap, which whoever reads there is told.
        ReadStart::Offset(offset) => Ok(offset.min(next)),
        ReadStart::Time(time_ms) => {
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
