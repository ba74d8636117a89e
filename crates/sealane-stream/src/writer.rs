//! The one thread that writes: it commits what waits in its queue together, so that one fsync
//! serves many, and makes a message readable only after its level is reached.
//!
//! ```text
//!  commands ─► plan (in memory: each is accepted or refused)
//!               ├─► StoreCommit (plain data) ─► apply (one transaction)
//!               └─► Plan ───────────────────────► settle, once that stands
//!                                              └─► fail: nothing counts
//! ```
//!
//! A `CommandRefusal` is of one command and stands in its answer. Only a [`StoreFault`] of the
//! store ends a commit, and nothing that one command asks for can be one.

mod changes;
mod command;
mod keys;
mod letters;
mod manage;
mod plan;
mod progress;
mod queue;
mod rule;
mod sessions;
mod settle;
mod staged;
mod upkeep;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

pub(crate) use command::{
    AppendCommand, CommandRefusal, ConfigureCommand, FindSessionCommand, PublishCommand,
    RemoveCommand, RuleCommand, WriterCommand, check_seal,
};
pub use command::{AppendedMessages, SessionItem};
pub(crate) use manage::{ManageCommand, ManageDeed};
pub(crate) use rule::RuleDeed;

use crate::Error;
use crate::commit::{ClockMark, ClockStep, StoreChange, StoreCommit};
use crate::limits::{ACK_FLUSH_MS, WRITER_IDLE_MS};
use crate::registry::StreamRegistry;
use crate::shares::ShareChanges;
use crate::store::{AppliedCounts, StoreFault, StoreNext, StoreWrites, StreamSettings};
use crate::stream::StreamEntry;
use plan::{CommitPlan, RoomPlan};
use progress::WriterProgress;
use queue::CommandQueue;
use sessions::RecentSessions;
use staged::{HOUR_MS, StagedStream};
use upkeep::WriterUpkeep;
use watch::ClockWatch;

/// Where the log could not be copied whole, it is tried again after so much more.
const COPY_AGAIN_BYTES: u64 = 4 << 20;

/// The bytes requested to see whether there is room again.
const PROBE_BYTES: u64 = 256 << 10;

/// How long acknowledgements wait for company. The model of the hub does not wait.
fn flush_interval() -> Duration {
    Duration::from_millis(if cfg!(test) { 1 } else { ACK_FLUSH_MS })
}

pub(crate) struct StoreWriter {
    registry: Arc<StreamRegistry>,
    queue: CommandQueue,
    writes: StoreWrites,
    upkeep: WriterUpkeep,
    progress: WriterProgress,
    next: StoreNext,
    defaults: StreamSettings,
    /// The messages that `memory` streams were answered for and the store has not got yet.
    unsaved: Vec<StagedStream>,
    /// The stored state of the sessions that published last.
    sessions: RecentSessions,
    /// When consumers were stored last.
    flushed: Option<Instant>,
    /// How long the log may become before its copying is tried again.
    copy_at_bytes: u64,
    /// Why the store takes nothing, as it was said last.
    said: Option<StoreFault>,
}

impl StoreWriter {
    pub(crate) fn new(
        registry: Arc<StreamRegistry>,
        queue: Receiver<WriterCommand>,
        writes: StoreWrites,
        defaults: StreamSettings,
        next: StoreNext,
        clock: (ClockMark, Vec<ClockStep>),
    ) -> Result<Self, StoreFault> {
        let watch = ClockWatch::new(registry.clock.clone(), clock.0, clock.1);
        let upkeep = WriterUpkeep::new(&writes, watch)?;
        let mut held = ShareChanges::default();
        writes.count_owned(&mut held)?;
        registry.shares.apply(&held);
        // Upkeep and progress count the store once here. From then on each commit changes the
        // numbers.
        let progress = WriterProgress::new(&registry, &next);
        Ok(Self {
            registry,
            queue: CommandQueue::new(queue),
            writes,
            upkeep,
            progress,
            next,
            defaults,
            unsaved: Vec::new(),
            sessions: RecentSessions::default(),
            flushed: None,
            copy_at_bytes: 0,
            said: None,
        })
    }

    /// Works until it is told to stop, or nobody is left to tell it.
    pub(crate) fn run(mut self) {
        // A hub that opens on a full disk says so before anybody has to try in vain.
        if self.writes.take_room(&self.registry.log, PROBE_BYTES) == Err(StoreFault::Full) {
            self.note_fault(&StoreFault::Full);
        }
        loop {
            let Some(mut batch) = self.queue.next(self.patience()) else { break };
            if batch.is_empty() {
                self.look_again();
            }
            // The commands that came with the stop are committed before it is obeyed.
            let stop = batch.iter().position(|command| matches!(command, WriterCommand::Stop(_)));
            let stop = stop.map(|index| batch.remove(index));
            self.commit(batch);
            if let Some(WriterCommand::Stop(reply)) = stop {
                let _ = reply.send(self.stop().map_err(Error::from));
                return;
            }
        }
        if let Err(fault) = self.stop() {
            tracing::error!(error = %Error::from(fault), "the store did not close cleanly");
        }
    }

    /// How long nothing has to be done if nobody asks.
    fn patience(&self) -> Duration {
        let mut patience = Duration::from_millis(WRITER_IDLE_MS);
        if self.registry.has_dirty() || !self.unsaved.is_empty() || self.upkeep.is_sweeping() {
            // Acknowledgements may be lost without harm, since their messages come again. So they
            // wait 25 ms for company.
            let flush = self.flushed.map(|flushed| flushed + flush_interval());
            let now = Instant::now();
            patience = flush.map_or(Duration::ZERO, |flush| flush.saturating_duration_since(now));
        }
        if let Some(due_ms) = self.upkeep.next_due_ms {
            // A delayed message wakes the writer by itself. Nothing else may ask for a commit at
            // that time.
            patience = patience
                .min(Duration::from_millis(due_ms.saturating_sub(self.registry.clock.day_ms())));
        }
        patience
    }

    fn commit(&mut self, batch: Vec<WriterCommand>) {
        let began = Instant::now();
        let Some((mut plan, commit)) = self.plan(batch) else { return };
        // Nobody has seen anything of the plan yet, so that storing can be tried again.
        let result = commit.and_then(|mut commit| self.transact(&mut plan, &mut commit));
        match result {
            Ok(counts) => self.settle(plan, &counts),
            Err(fault) => self.fail(plan, &fault),
        }
        self.registry.timings.commit.note(began.elapsed());
        debug_assert!(self.unsaved.iter().all(|staged| !staged.blocks.is_empty()));
    }

    /// Plans what the commands ask for and what is due; none where that is nothing. The fault is
    /// one of looking something up.
    fn plan(
        &mut self,
        batch: Vec<WriterCommand>,
    ) -> Option<(CommitPlan, Result<StoreCommit, StoreFault>)> {
        let now_ms = self.registry.clock.day_ms();
        self.upkeep.look();
        let flush = self.flushed.is_none_or(|flushed| flushed.elapsed() >= flush_interval());
        // Consumers are taken before the plan, so that a change made meanwhile marks them anew for
        // the next commit.
        let dirty = if flush { self.registry.take_dirty() } else { Vec::new() };
        let is_idle = batch.iter().all(|command| matches!(command, WriterCommand::Dirty))
            && dirty.is_empty()
            && self.unsaved.is_empty()
            && !self.upkeep.wants_a_commit(&self.registry, now_ms, flush);
        if is_idle {
            return None;
        }
        let mut plan = CommitPlan::new(now_ms, self.upkeep.stamp_ms(now_ms));
        plan.room = self.room(&batch, now_ms, !dirty.is_empty());
        // Almost always empty. Planning what the clock asks for changes the rest of it.
        let sweeping = self.upkeep.sweeping.clone();
        let mut planner = plan::CommitPlanner {
            registry: &self.registry,
            writes: &self.writes,
            defaults: self.defaults,
            next: &mut self.next,
            unsaved: &self.unsaved,
            sessions: &self.sessions,
            sweeping: &sweeping,
        };
        let mut result = Ok(());
        for command in batch {
            match &result {
                Ok(()) => result = plan.add(&mut planner, command),
                // The lookup failed, and the commit will not be made. The rest of the batch is told
                // at once.
                Err(fault) => command.fail(fault),
            }
        }
        let result = result.and_then(|()| self.upkeep.release(&mut plan, &planner));
        // Retention knows by now which streams go and which are purged.
        let result = result.and_then(|()| self.upkeep.plan(&mut plan, &planner, flush));
        if let Err(fault) = result {
            // Consumers that were taken and not planned would otherwise never be stored.
            self.registry.give_back(dirty);
            return Some((plan, Err(fault)));
        }
        // A consumer that is steered is stored whole. Its members' changes wait for the commit
        // after.
        let dirty = plan.managed.spare(&self.registry, dirty);
        letters::plan(&mut plan, &mut planner, &dirty);
        self.progress.plan(&mut plan, planner.next, dirty);
        let commit = plan.commit(&mut self.unsaved, &self.next);
        Some((plan, Ok(commit)))
    }

    /// Whether there is room for what these commands add, and for what the hub itself gives.
    fn room(&mut self, batch: &[WriterCommand], now_ms: u64, has_dirty: bool) -> RoomPlan {
        let mut room = RoomPlan::default();
        let bytes: u64 = batch.iter().map(WriterCommand::bytes).sum();
        if bytes > 0 {
            room.unstorable = self.unstorable(bytes);
            room.has_room = room.unstorable.is_none();
        }
        if self.upkeep.is_due(now_ms) || has_dirty {
            // That is more than many a request adds, so that it says nothing of those.
            room.is_ungivable =
                self.writes.take_room(&self.registry.log, upkeep::RELEASE_BYTES).is_err();
        }
        room
    }

    /// Why nothing can be added to the store now.
    fn unstorable(&mut self, bytes: u64) -> Option<StoreFault> {
        match self.writes.take_room(&self.registry.log, bytes) {
            Err(StoreFault::Full) => {
                self.note_fault(&StoreFault::Full);
                Some(StoreFault::Full)
            }
            // Whatever else it is, the commit meets it again.
            Ok(()) | Err(_) => None,
        }
    }

    /// Stores the commit. Without room for it, the log is copied and it is tried again; then what
    /// removes is stored without what adds.
    fn transact(
        &mut self,
        plan: &mut CommitPlan,
        commit: &mut StoreCommit,
    ) -> Result<AppliedCounts, StoreFault> {
        // Copying needs the log, which belongs to the transaction once that has begun.
        self.keep_log_short(commit.bytes());
        // The level of sync cannot be changed within a transaction.
        self.writes.set_sync(plan.is_synced())?;
        let mut result = self.attempt(plan, commit);
        if result == Err(StoreFault::Full) {
            // Copying the log gives its pages back. Often that is all the room that was missing.
            self.copy_log(true);
            result = self.attempt(plan, commit);
        }
        if result == Err(StoreFault::Full) {
            self.note_fault(&StoreFault::Full);
            plan.strip(commit, &self.registry, &StoreFault::Full);
            result = self.attempt(plan, commit);
        }
        result
    }

    fn attempt(
        &mut self,
        plan: &mut CommitPlan,
        commit: &StoreCommit,
    ) -> Result<AppliedCounts, StoreFault> {
        let (before_bytes, _) = self.writes.log();
        let stored = self.writes.begin().and_then(|()| {
            // Nobody is answered early by a store that does not even begin: what it was answered
            // for would have to wait for the next commit, and be lost with the process.
            self.unsaved.append(&mut plan.publish_memory(&self.registry));
            let counts = self.writes.apply(commit)?;
            self.writes.commit()?;
            #[cfg(test)]
            self.writes.trouble.note_commit(commit);
            Ok(counts)
        });
        match stored {
            Ok(_) => self.registry.log.note(before_bytes, self.writes.log().0),
            // The store is as before. Memory has not moved either, since only `settle` moves it.
            Err(_) => self.writes.rollback(),
        }
        stored
    }

    /// Copies the log before it grows beyond its bound by `bytes` more. Most pages were copied by
    /// the checkpointer already, and others are waited for only at the bound itself.
    fn keep_log_short(&mut self, bytes: u64) {
        let (log_bytes, log_bytes_max) = self.writes.log();
        let next = log_bytes + bytes + bytes / 8;
        // The copier usually keeps the log short. From three quarters on the writer helps, before
        // it has to wait.
        if next >= (log_bytes_max / 4 * 3).max(self.copy_at_bytes) {
            self.copy_log(next >= log_bytes_max);
        }
    }

    fn copy_log(&mut self, wait: bool) {
        let copying = match wait {
            true => Some(self.registry.log.copying.lock()),
            // If the copier is at work, the writer goes on: waiting would cost every client of this
            // commit.
            false => self.registry.log.copying.try_lock(),
        };
        let (log_bytes, log_bytes_max) = self.writes.log();
        // A copy that a reader blocked is not tried at each commit. The log grows by 4 MiB first.
        self.copy_at_bytes = again_at(log_bytes, log_bytes_max, wait);
        if copying.is_none() {
            return;
        }
        // Nobody reads for long but a backup, and that is not waited for.
        self.writes.set_patient(false);
        match self.writes.checkpoint(wait) {
            Ok(true) => self.copy_at_bytes = 0,
            Ok(false) => tracing::debug!(log_bytes, "the log could not be copied whole"),
            Err(fault) if self.registry.log.may_say() => {
                tracing::warn!(error = %Error::from(fault), "the log could not be copied");
            }
            Err(_) => {}
        }
        self.writes.set_patient(self.registry.fault.lock().is_none());
    }

    /// Sees whether the store takes something again, so that nobody has to try in vain.
    fn look_again(&mut self) {
        let fault = self.registry.fault.lock().clone();
        self.say(fault.as_ref());
        if fault.is_none() {
            return;
        }
        // Begun and rolled back: that takes the lock which a commit needs, and leaves nothing.
        let room = self.writes.take_room(&self.registry.log, PROBE_BYTES);
        let begun = room.and_then(|()| self.writes.begin());
        self.writes.rollback();
        match begun {
            Ok(()) => self.clear_fault(),
            Err(fault) => self.note_fault(&fault),
        }
    }

    /// Notes why the store takes nothing; it is said once, and not each time it is tried again.
    fn note_fault(&mut self, fault: &StoreFault) {
        *self.registry.fault.lock() = Some(fault.clone());
        self.say(Some(fault));
        self.writes.set_patient(false);
    }

    fn clear_fault(&mut self) {
        if self.registry.fault.lock().take().is_some() {
            self.writes.set_patient(true);
        }
        self.say(None);
    }

    /// Says whether the store takes something, where that is not what was said last.
    fn say(&mut self, fault: Option<&StoreFault>) {
        // Where somebody else fills the disk it changes many times a second. What holds in the end
        // is said when it is looked for room again.
        if self.said.as_ref() == fault || !self.registry.log.may_say() {
            return;
        }
        match fault.cloned().map(Error::from) {
            Some(error) => {
                tracing::error!(%error, "the store takes nothing; nothing of it is acknowledged");
            }
            None => tracing::info!("the store takes messages again"),
        }
        self.said = fault.cloned();
    }

    /// Stores everything that is known, and closes.
    fn stop(mut self) -> Result<(), StoreFault> {
        loop {
            let batch = self.queue.take_deferred();
            if batch.is_empty() {
                break;
            }
            self.commit(batch);
        }
        // Without a last flush every acknowledgement counts as due, so that the next commit stores
        // all of them.
        self.flushed = None;
        self.commit(vec![WriterCommand::Dirty]);
        let fault = self.registry.fault.lock().clone();
        // A fault that left nothing behind is no reason to say that the close has failed.
        if let Some(fault) = fault.filter(|_| !self.unsaved.is_empty() || self.registry.has_dirty())
        {
            return Err(fault);
        }
        self.writes.set_sync(true)?;
        self.writes.begin()?;
        let streams = self.registry.streams();
        let extent = |stream: &Arc<StreamEntry>| stream.state.lock().extent(stream.number, None);
        let changes = streams.iter().map(|stream| StoreChange::SetExtent(extent(stream))).collect();
        let commit = StoreCommit { changes };
        self.writes.apply(&commit)?;
        self.writes.commit()?;
        #[cfg(test)]
        self.writes.trouble.note_commit(&commit);
        // The next commit begins the log anew, so that little of it is read at the next opening.
        self.writes.set_patient(false);
        {
            let _copying = self.registry.log.copying.lock();
            self.writes.checkpoint(true)?;
        }
        // The last one who closes the store copies the log. Readers would leave it to nobody.
        self.registry.reads.close();
        // Closing takes away the mark `running`. If it stayed, the next start would give `memory`
        // streams a new generation.
        self.writes.close()
    }
}

/// How long the log is when it is tried again to copy it: at the bound at the latest, unless others
/// were waited for in vain.
fn again_at(log_bytes: u64, log_bytes_max: u64, has_waited: bool) -> u64 {
    let again = log_bytes + COPY_AGAIN_BYTES;
    if has_waited { again } else { again.min(log_bytes_max) }
}

impl StoreWriter {
    /// The commit stands.
    fn settle(&mut self, mut plan: CommitPlan, counts: &AppliedCounts) {
        // A commit that adds nothing succeeds on a full disk, and says nothing about room.
        let is_full = *self.registry.fault.lock() == Some(StoreFault::Full);
        if !plan.is_stripped && (plan.room.has_room || !is_full) {
            self.clear_fault();
        }
        // If a stream goes, its acknowledged messages that are not stored go with it.
        self.unsaved.retain(|staged| !plan.streams.removes(&staged.stream.topic));
        self.keep_sessions(&mut plan, counts);
        if !plan.is_stripped {
            for staged in self.unsaved.drain(..) {
                staged.note_stored(&self.registry);
            }
        }
        if plan.has_flushed {
            self.flushed = Some(Instant::now());
        }
        self.registry.metrics.commits.fetch_add(1, Ordering::Relaxed);
        self.upkeep.settle(&plan, counts);
        self.registry.shares.apply(&counts.shares);
        self.progress.settle(&plan);
        self.next.generation = self.next.generation.max(plan.streams.generation_floor());
        self.queue.defer(settle::settle(plan, counts, &self.registry));
    }

    /// Keeps what the commit has stored of sessions, unless rows of others went with it.
    fn keep_sessions(&mut self, plan: &mut CommitPlan, counts: &AppliedCounts) {
        let (hour, is_stripped) = (plan.stamp_ms / HOUR_MS, plan.is_stripped);
        let unsaved = self.unsaved.iter_mut().filter(|_| !is_stripped);
        for staged in unsaved.chain(plan.gains.values_mut()) {
            for (key, session) in std::mem::take(&mut staged.sessions) {
                self.sessions.keep(staged.stream.number, key, session.stored(hour));
            }
        }
        if counts.sessions_expired > 0 || plan.streams.removes_some() {
            self.sessions.clear();
        }
    }

    /// The commit was given up.
    fn fail(&mut self, plan: CommitPlan, fault: &StoreFault) {
        self.note_fault(fault);
        self.registry.metrics.failed_commits.fetch_add(1, Ordering::Relaxed);
        // Consumers are tried again with the next flush. At once, a broken store would be asked
        // without a pause.
        self.flushed = Some(Instant::now());
        // A failing store is not met again at once by acknowledgements, which would come back 40
        // times a second.
        self.upkeep.fail();
        settle::fail(plan, &self.registry, fault);
    }
}

#[cfg(test)]
mod tests {
    use super::again_at;

    #[test]
    fn others_are_waited_for_before_the_log_is_beyond_its_bound() {
        const BOUND: u64 = 32 << 20;
        const COMMIT: u64 = 12_360;
        for start in (BOUND / 2..BOUND / 4 * 3).step_by(997) {
            // Another thread copies the log whenever it could be copied without waiting.
            let (mut log, mut at, mut has_waited) = (start, BOUND / 4 * 3, false);
            while !has_waited {
                log += COMMIT;
                if log >= at {
                    has_waited = log >= BOUND;
                    at = again_at(log, BOUND, has_waited);
                }
            }
            assert!(log < BOUND + COMMIT, "from {start} to {log}");
        }
    }
}
