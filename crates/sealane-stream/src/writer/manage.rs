//! The operator's actions on consumers, on delayed messages, and on the messages that streams keep.
//!
//! Each deed is planned like any other command, stored, and takes effect once the commit stands. A
//! commit does only one deed to a stream; the next deed waits for the next commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use sealane_message::Topic;

use super::command::{CommandAnswer, CommandRefusal, CommandReply, WriterCommand};
use super::plan::{CommitPlan, CommitPlanner, StreamTarget};
use crate::commit::{StoreChange, StoreCommit};
use crate::consumer::ConsumerSteer;
use crate::limits::MAX_CANCELLED;
use crate::registry::StreamRegistry;
use crate::store::{AppliedCounts, StoreFault, TrimmedBlocks};
use crate::stream::{ConsumerEntry, StreamEntry};

/// A deed, and who is told how many messages it was done to.
pub(crate) struct ManageCommand {
    pub(crate) topic: Topic,
    pub(crate) deed: ManageDeed,
    pub(crate) reply: CommandReply<u64>,
}

/// The action.
pub(crate) enum ManageDeed {
    /// To this consumer.
    Steer { consumer: String, steer: ConsumerSteer },
    /// The consumer goes, with all that it has not finished.
    RemoveConsumer(String),
    /// The delayed messages of this id never come.
    Cancel { id: String },
    /// The messages before this offset go.
    Purge { before: u64 },
}

/// The effect of these deeds on a commit.
#[derive(Default)]
pub(super) struct ManagedChanges {
    pub(super) steered: Vec<ConsumerSteering>,
    /// Consumers that go.
    pub(super) lost: Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)>,
    /// The rows of delayed messages that never come.
    pub(super) cancelled: Vec<i64>,
    /// By the stream's number.
    pub(super) purged: BTreeMap<u32, StreamPurging>,
}

pub(super) struct ConsumerSteering {
    pub(super) stream: Arc<StreamEntry>,
    pub(super) entry: Arc<ConsumerEntry>,
    pub(super) steer: ConsumerSteer,
}

pub(super) struct StreamPurging {
    stream: Arc<StreamEntry>,
    before: u64,
}

impl ManagedChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.steered.is_empty()
            && self.lost.is_empty()
            && self.cancelled.is_empty()
            && self.purged.is_empty()
    }

    /// Whether something is done to this stream or a consumer of it.
    fn concerns(&self, stream: u32) -> bool {
        self.purged.contains_key(&stream)
            || self.steered.iter().any(|steering| steering.stream.number == stream)
            || self.lost.iter().any(|(of, _)| of.number == stream)
    }

    /// Gives back the consumers that something is done to: what they themselves did is not stored
    /// by the same commit, but by the one after.
    pub(super) fn spare(
        &self,
        registry: &StreamRegistry,
        dirty: Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)>,
    ) -> Vec<(Arc<StreamEntry>, Arc<ConsumerEntry>)> {
        let is_concerned =
            |entry: &Arc<ConsumerEntry>| self.consumers().any(|other| Arc::ptr_eq(other, entry));
        let (concerned, others): (Vec<_>, Vec<_>) =
            dirty.into_iter().partition(|(_, entry)| is_concerned(entry));
        // A steered consumer is stored as it is going to be. Its members' acknowledgements would be
        // stored on top of that, as changes to what no longer is.
        registry.give_back(concerned);
        others
    }

    /// The consumers that something is done to.
    pub(super) fn consumers(&self) -> impl Iterator<Item = &Arc<ConsumerEntry>> {
        let steered = self.steered.iter().map(|steering| &steering.entry);
        steered.chain(self.lost.iter().map(|(_, entry)| entry))
    }

    /// The stream is removed by the same commit, and its consumers with it.
    pub(super) fn forget(&mut self, stream: u32) {
        self.steered.retain(|steering| steering.stream.number != stream);
        self.lost.retain(|(of, _)| of.number != stream);
        self.purged.remove(&stream);
    }

    /// The commit stands.
    pub(super) fn settle(&self, counts: &AppliedCounts, registry: &StreamRegistry) {
        for ConsumerSteering { stream, entry, steer } in &self.steered {
            // Members went on since the plan. The stored state is not copied back, or their work
            // would be lost.
            entry.state.lock().steer(steer, registry.clock.steady_ms());
            // The next commit stores what members did between plan and commit.
            registry.mark_dirty(stream, entry);
            registry.mark_timed(stream, entry);
            entry.wake();
        }
        for (stream, entry) in &self.lost {
            stream.lose_consumer(entry);
            registry.series.dismiss_consumer(entry);
        }
        for StreamPurging { stream, before } in self.purged.values() {
            let cut = counts.purged.iter().find(|(of, _)| *of == stream.number);
            debug_assert!(cut.is_some(), "a purge that was not applied");
            let trimmed = TrimmedBlocks {
                last: before.saturating_sub(1),
                bytes: cut.map_or(0, |(_, bytes)| *bytes),
            };
            stream.state.lock().has_purged = true;
            registry.bounded.store(true, std::sync::atomic::Ordering::Relaxed);
            super::settle::trim(stream, trimmed, registry);
        }
    }

    /// Adds what is stored of it to a commit, but for consumers that are steered: those are stored
    /// with all others.
    pub(super) fn add_to(&self, commit: &mut StoreCommit) {
        for number in &self.cancelled {
            commit.push(StoreChange::CancelDelayed { number: *number });
        }
        for (_, entry) in &self.lost {
            let consumer = entry.kept.lock().number;
            commit.push(StoreChange::RemoveConsumer { consumer });
        }
        for StreamPurging { stream, before } in self.purged.values() {
            let mut state = stream.state.lock();
            // A reader that finds nothing there from now on does not take it for damage.
            state.leaving = state.leaving.max(*before);
            let gone = TrimmedBlocks { last: before.saturating_sub(1), bytes: 0 };
            commit.push(StoreChange::PurgeStream(state.extent(stream.number, Some(gone))));
        }
    }

    /// The commit was given up.
    pub(super) fn fail(&self) {
        for StreamPurging { stream, .. } in self.purged.values() {
            let mut state = stream.state.lock();
            // The messages are still there. A reader that finds one missing has to take it for
            // damage again.
            state.leaving = state.first;
        }
    }
}

impl CommitPlan {
    /// Plans a deed, or notes its refusal.
    pub(super) fn manage(
        &mut self,
        planner: &mut CommitPlanner,
        manage: ManageCommand,
    ) -> Result<(), StoreFault> {
        let stream = match self.target(planner, &manage.topic) {
            StreamTarget::Known(stream) => stream,
            StreamTarget::Leaving => {
                self.replies.defer(WriterCommand::Manage(manage));
                return Ok(());
            }
            StreamTarget::New => {
                let refusal = CommandRefusal::UnknownStream(manage.topic);
                let (reply, result) = (manage.reply, Err(refusal));
                self.replies.push(None, CommandAnswer::Manage { reply, result, removes: false });
                return Ok(());
            }
        };
        // Two deeds to one stream would each have to be planned on what the other leaves.
        if self.streams.makes(&manage.topic) || self.managed.concerns(stream.number) {
            self.replies.defer(WriterCommand::Manage(manage));
            return Ok(());
        }
        let ManageCommand { deed, reply, .. } = manage;
        let removes = !matches!(deed, ManageDeed::Steer { .. });
        let result = match deed {
            ManageDeed::Steer { consumer, steer } => self.steer(&stream, &consumer, steer),
            ManageDeed::RemoveConsumer(consumer) => find(&stream, &consumer).map(|entry| {
                self.managed.lost.push((stream, entry));
                1
            }),
            ManageDeed::Purge { before } => self.purge(&stream, before),
            ManageDeed::Cancel { id } => {
                let found =
                    planner.writes.find_delayed(stream.number, id.as_bytes(), MAX_CANCELLED);
                match found {
                    Ok(rows) => self.cancel(&stream, id, rows),
                    Err(fault) => {
                        let result = Err(CommandRefusal::Unstorable(fault.clone()));
                        // The store failed under this very look-up, so that the answer cannot wait
                        // for a commit.
                        CommandAnswer::Manage { reply, result, removes }.send();
                        return Err(fault);
                    }
                }
            }
        };
        self.replies.push(None, CommandAnswer::Manage { reply, result, removes });
        Ok(())
    }

    fn steer(
        &mut self,
        stream: &Arc<StreamEntry>,
        name: &str,
        steer: ConsumerSteer,
    ) -> Result<u64, CommandRefusal> {
        let entry = find(stream, name)?;
        let next = stream.state.lock().next;
        match &steer {
            ConsumerSteer::Reset(offset) if *offset > next => {
                return Err(CommandRefusal::BeyondEnd { next });
            }
            // A skip beyond the end would pass over messages that nobody has written yet.
            ConsumerSteer::Skip(offsets) if *offsets.end() >= next => {
                return Err(CommandRefusal::BeyondEnd { next });
            }
            ConsumerSteer::Skip(offsets) if *offsets.start() > entry.state.lock().cursor() => {
                return Err(CommandRefusal::NotGivenYet);
            }
            _ => {}
        }
        self.managed.steered.push(ConsumerSteering { stream: stream.clone(), entry, steer });
        Ok(1)
    }

    fn purge(&mut self, stream: &Arc<StreamEntry>, before: u64) -> Result<u64, CommandRefusal> {
        let (first, next) = {
            let state = stream.state.lock();
            (state.first, state.next)
        };
        if before > next {
            return Err(CommandRefusal::BeyondEnd { next });
        }
        // A purge that asks for nothing is answered, and costs no sync.
        if before > first {
            let purging = StreamPurging { stream: stream.clone(), before };
            self.managed.purged.insert(stream.number, purging);
        }
        Ok(before.saturating_sub(first))
    }

    fn cancel(
        &mut self,
        stream: &StreamEntry,
        id: String,
        rows: Vec<i64>,
    ) -> Result<u64, CommandRefusal> {
        // Another command of this commit may cancel the same id. Each message counts once.
        let is_new = |row: &i64| !self.managed.cancelled.contains(row);
        let rows: Vec<i64> = rows.into_iter().filter(is_new).collect();
        if rows.is_empty() {
            return Err(CommandRefusal::NotDelayed { stream: stream.topic.clone(), id });
        }
        let count = rows.len() as u64;
        self.managed.cancelled.extend(rows);
        Ok(count)
    }
}

fn find(stream: &StreamEntry, name: &str) -> Result<Arc<ConsumerEntry>, CommandRefusal> {
    stream.known_consumer(name).ok_or_else(|| {
        let (stream, consumer) = (stream.topic.clone(), name.to_owned());
        CommandRefusal::UnknownConsumer { stream, consumer }
    })
}
