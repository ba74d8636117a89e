//! The one thread that writes: it commits what waits in its queue together, so that one fsync
//! serves many, and makes a message readable only after its level is reached.
//!
//! ```text
//!  commands ─► plan (in memory: each is accepted or refused) ─► store (one transaction) ─► settle
//!                                                                    └─► fail: nothing counts
//! ```
//!
//! A [`Refusal`] is of one command and stands in its answer. Only a [`Fault`] of the store ends a
//! commit, and nothing that one command asks for can be one.

mod command;
mod keys;
mod letters;
mod manage;
mod plan;
mod progress;
mod sessions;
mod settle;
mod staged;
mod store;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use crate::limits::{MAX_COMMIT_BYTES, MAX_COMMIT_MESSAGES};

pub(crate) use command::{Append, Command, Configure, Publish, Remove, check_seal};
pub use command::{Appended, Item};
pub(crate) use manage::{Deed, Manage};

use crate::registry::Registry;
use crate::store::{Fault, Next, Settings, Writes};
use crate::{Error, now_ms};
use plan::Plan;
use progress::Progress;
use sessions::Sessions;
use staged::{HOUR_MS, Staged};
use upkeep::Upkeep;

/// How long acknowledgements wait to be stored together. The model of the hub does not wait.
const FLUSH_EVERY: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 25 });

/// How long the writer sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_millis(250);

/// Where the log could not be copied whole, it is tried again after so much more.
const COPY_AGAIN_BYTES: u64 = 4 << 20;

/// What is asked for to see whether there is room again.
const PROBE_BYTES: u64 = 256 << 10;

pub(crate) struct Writer {
    registry: Arc<Registry>,
    queue: Receiver<Command>,
    writes: Writes,
    upkeep: Upkeep,
    progress: Progress,
    next: Next,
    defaults: Settings,
    /// What `memory` streams were answered for and the store has not got yet.
    unsaved: Vec<Staged>,
    /// What the store holds of the sessions that published last.
    sessions: Sessions,
    /// Commands for streams that the last commit was removing: they are the first of the next one.
    deferred: Vec<Command>,
    /// When consumers were stored last.
    flushed: Option<Instant>,
    /// Whether the last commit served several commands.
    is_shared: bool,
    /// How long the log may become before its copying is tried again.
    copy_at_bytes: u64,
}

impl Writer {
    pub(crate) fn new(
        registry: Arc<Registry>,
        queue: Receiver<Command>,
        writes: Writes,
        defaults: Settings,
        next: Next,
    ) -> Result<Self, Fault> {
        let upkeep = Upkeep::new(&writes)?;
        let progress = Progress::new(&registry, &next);
        Ok(Self {
            registry,
            queue,
            writes,
            upkeep,
            progress,
            next,
            defaults,
            unsaved: Vec::new(),
            sessions: Sessions::default(),
            deferred: Vec::new(),
            flushed: None,
            is_shared: false,
            copy_at_bytes: 0,
        })
    }

    /// Works until it is told to stop, or nobody is left to tell it.
    pub(crate) fn run(mut self) {
        loop {
            let mut batch = std::mem::take(&mut self.deferred);
            if batch.is_empty() {
                match self.queue.recv_timeout(self.patience()) {
                    Ok(command) => batch.push(command),
                    Err(RecvTimeoutError::Timeout) => self.look_again(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            self.gather(&mut batch);
            let stop = batch.iter().position(|command| matches!(command, Command::Stop(_)));
            let stop = stop.map(|index| batch.remove(index));
            self.commit(batch);
            if let Some(Command::Stop(reply)) = stop {
                let _ = reply.send(self.stop().map_err(Error::from));
                return;
            }
        }
        if let Err(fault) = self.stop() {
            tracing::error!(error = %Error::from(fault), "the store did not close cleanly");
        }
    }

    /// Takes what waits in the queue, up to one commit's worth.
    fn gather(&mut self, batch: &mut Vec<Command>) {
        let mut has_waited = !self.is_shared;
        let mut messages: usize = batch.iter().map(Command::messages).sum();
        let mut bytes: u64 = batch.iter().map(Command::bytes).sum();
        while messages < MAX_COMMIT_MESSAGES && bytes < MAX_COMMIT_BYTES {
            match self.queue.try_recv() {
                Ok(command) => {
                    messages += command.messages();
                    bytes += command.bytes();
                    batch.push(command);
                }
                // Where many ask at once, others are about to: one commit serves them too.
                Err(TryRecvError::Empty) if !has_waited => {
                    has_waited = true;
                    std::thread::yield_now();
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        self.is_shared = batch.len() > 1;
    }

    /// How long nothing has to be done if nobody asks.
    fn patience(&self) -> Duration {
        let mut patience = IDLE;
        if self.registry.has_dirty() || !self.unsaved.is_empty() || self.upkeep.is_sweeping() {
            let flush = self.flushed.map(|flushed| flushed + FLUSH_EVERY);
            let now = Instant::now();
            patience = flush.map_or(Duration::ZERO, |flush| flush.saturating_duration_since(now));
        }
        if let Some(due_ms) = self.upkeep.next_due_ms {
            patience = patience.min(Duration::from_millis(due_ms.saturating_sub(now_ms())));
        }
        patience
    }

    fn commit(&mut self, batch: Vec<Command>) {
        let began = Instant::now();
        let Some((mut plan, result)) = self.plan(batch) else { return };
        let result = result.and_then(|()| self.transact(&mut plan));
        match result {
            Ok(()) => self.settle(plan),
            Err(fault) => self.fail(plan, &fault),
        }
        self.registry.timings.commit.note(began.elapsed());
        debug_assert!(self.unsaved.iter().all(|staged| !staged.blocks.is_empty()));
    }

    /// Plans what the commands ask for and what is due; none where that is nothing. The fault is
    /// one of looking something up.
    fn plan(&mut self, batch: Vec<Command>) -> Option<(Plan, Result<(), Fault>)> {
        let now_ms = now_ms();
        let flush = self.flushed.is_none_or(|flushed| flushed.elapsed() >= FLUSH_EVERY);
        let dirty = if flush { self.registry.take_dirty() } else { Vec::new() };
        let is_idle = batch.iter().all(|command| matches!(command, Command::Dirty))
            && dirty.is_empty()
            && self.unsaved.is_empty()
            && !self.upkeep.wants_a_commit(&self.registry, now_ms, flush);
        if is_idle {
            return None;
        }
        let mut plan = Plan::new(now_ms);
        let bytes: u64 = batch.iter().map(Command::bytes).sum();
        if bytes > 0 {
            plan.unstorable = self.unstorable(bytes);
            plan.has_room = plan.unstorable.is_none();
        }
        if self.upkeep.is_due(now_ms) || !dirty.is_empty() {
            // That is more than many a request adds, so that it says nothing of those.
            plan.ungivable = self.writes.take_room(upkeep::RELEASE_BYTES).is_err();
        }
        let mut planner = plan::Planner {
            registry: &self.registry,
            writes: &self.writes,
            defaults: self.defaults,
            next: &mut self.next,
            unsaved: &self.unsaved,
            sessions: &self.sessions,
            delayed: self.upkeep.delayed,
            sweeping: &self.upkeep.sweeping,
        };
        let mut result = Ok(());
        for command in batch {
            match &result {
                Ok(()) => result = plan.add(&mut planner, command),
                Err(fault) => command.fail(fault),
            }
        }
        let result = result.and_then(|()| self.upkeep.release(&mut plan, &planner));
        if result.is_ok() {
            let dirty = plan.managed.spare(&self.registry, dirty);
            let buried = letters::plan(&mut plan, &mut planner, &dirty);
            self.progress.plan(&mut plan, planner.next, dirty, buried);
            self.upkeep.plan(&mut plan, &self.registry, flush);
        } else {
            self.registry.give_back(dirty);
        }
        Some((plan, result))
    }

    /// Why nothing can be added to the store now.
    fn unstorable(&mut self, bytes: u64) -> Option<Fault> {
        match self.writes.take_room(bytes) {
            Err(Fault::Full) => {
                self.note_fault(&Fault::Full);
                Some(Fault::Full)
            }
            // Whatever else it is, the commit meets it again.
            Ok(()) | Err(_) => None,
        }
    }

    /// Stores the plan. Where there is no room, the log is copied and it is tried again; then what
    /// removes is stored without what adds.
    fn transact(&mut self, plan: &mut Plan) -> Result<(), Fault> {
        self.keep_log_short(plan.bytes());
        self.writes.set_sync(plan.is_synced())?;
        let mut result = self.attempt(plan);
        if result == Err(Fault::Full) {
            self.copy_log(true);
            result = self.attempt(plan);
        }
        if result == Err(Fault::Full) {
            self.note_fault(&Fault::Full);
            plan.strip(&self.registry, &Fault::Full);
            result = self.attempt(plan);
        }
        result
    }

    fn attempt(&mut self, plan: &mut Plan) -> Result<(), Fault> {
        let (before_bytes, _) = self.writes.log();
        let stored = self.writes.begin().and_then(|()| {
            self.unsaved.append(&mut plan.publish_memory(&self.registry));
            let (unsaved, progress) = (&self.unsaved, &self.progress);
            store::store(plan, &mut self.writes, unsaved, progress, &self.next)?;
            self.upkeep.store(plan, &mut self.writes, &self.registry)?;
            self.writes.commit()
        });
        match stored {
            Ok(()) => self.registry.log.note(before_bytes, self.writes.log().0),
            Err(_) => self.writes.rollback(),
        }
        stored
    }

    /// Copies the log before it grows beyond its bound by `bytes` more. Most pages were copied by
    /// the checkpointer already, and others are waited for only at the bound itself.
    fn keep_log_short(&mut self, bytes: u64) {
        let (log_bytes, log_bytes_max) = self.writes.log();
        let next = log_bytes + bytes + bytes / 8;
        if next >= (log_bytes_max / 4 * 3).max(self.copy_at_bytes) {
            self.copy_log(next >= log_bytes_max);
        }
    }

    fn copy_log(&mut self, wait: bool) {
        let copying = match wait {
            true => Some(self.registry.log.copying.lock()),
            false => self.registry.log.copying.try_lock(),
        };
        let (log_bytes, log_bytes_max) = self.writes.log();
        self.copy_at_bytes = again_at(log_bytes, log_bytes_max, wait);
        if copying.is_none() {
            return;
        }
        // Nobody reads for long but a backup, and that is not waited for.
        self.writes.set_patient(false);
        match self.writes.checkpoint(wait) {
            Ok(true) => self.copy_at_bytes = 0,
            Ok(false) => tracing::debug!(log_bytes, "the log could not be copied whole"),
            Err(fault) => {
                tracing::warn!(error = %Error::from(fault), "the log could not be copied");
            }
        }
        self.writes.set_patient(self.registry.fault.lock().is_none());
    }

    /// Sees whether the store takes something again, so that nobody has to try in vain.
    fn look_again(&mut self) {
        if self.registry.fault.lock().is_none() {
            return;
        }
        let begun = self.writes.take_room(PROBE_BYTES).and_then(|()| self.writes.begin());
        self.writes.rollback();
        match begun {
            Ok(()) => self.clear_fault(),
            Err(fault) => self.note_fault(&fault),
        }
    }

    /// Notes why the store takes nothing; it is said once, and not each time it is tried again.
    fn note_fault(&self, fault: &Fault) {
        let before = self.registry.fault.lock().replace(fault.clone());
        if before.as_ref() != Some(fault) {
            let error = Error::from(fault.clone());
            tracing::error!(%error, "the store takes nothing; nothing of it is acknowledged");
        }
        self.writes.set_patient(false);
    }

    fn clear_fault(&self) {
        if self.registry.fault.lock().take().is_some() {
            tracing::info!("the store takes messages again");
            self.writes.set_patient(true);
        }
    }

    /// Stores everything that is known, and closes.
    fn stop(mut self) -> Result<(), Fault> {
        while !self.deferred.is_empty() {
            let batch = std::mem::take(&mut self.deferred);
            self.commit(batch);
        }
        self.flushed = None;
        self.commit(vec![Command::Dirty]);
        let fault = self.registry.fault.lock().clone();
        if let Some(fault) = fault.filter(|_| !self.unsaved.is_empty() || self.registry.has_dirty())
        {
            return Err(fault);
        }
        self.writes.set_sync(true)?;
        self.writes.begin()?;
        for stream in self.registry.streams() {
            self.writes.stream(&stream, stream.settings(), None)?;
        }
        self.writes.commit()?;
        self.writes.checkpoint(false)?;
        self.writes.close()
    }
}

/// How long the log is when it is tried again to copy it: at the bound at the latest, unless others
/// were waited for in vain.
fn again_at(log_bytes: u64, log_bytes_max: u64, has_waited: bool) -> u64 {
    let again = log_bytes + COPY_AGAIN_BYTES;
    if has_waited { again } else { again.min(log_bytes_max) }
}

impl Writer {
    /// The commit stands.
    fn settle(&mut self, mut plan: Plan) {
        let is_full = *self.registry.fault.lock() == Some(Fault::Full);
        if !plan.is_stripped && (plan.has_room || !is_full) {
            self.clear_fault();
        }
        // What a stream was answered for goes with it.
        self.unsaved.retain(|staged| !plan.removing.contains_key(&staged.stream.topic));
        self.keep_sessions(&mut plan);
        if !plan.is_stripped {
            for staged in self.unsaved.drain(..) {
                staged.note_stored(&self.registry);
            }
        }
        if plan.has_flushed {
            self.flushed = Some(Instant::now());
        }
        self.registry.metrics.commits.fetch_add(1, Ordering::Relaxed);
        self.upkeep.settle(&plan);
        self.progress.settle(&plan);
        self.next.generation = self.next.generation.max(plan.generation_floor());
        self.deferred = settle::settle(plan, &self.registry);
    }

    /// Keeps what the commit has stored of sessions, unless rows of others went with it.
    fn keep_sessions(&mut self, plan: &mut Plan) {
        let (hour, is_stripped) = (plan.now_ms / HOUR_MS, plan.is_stripped);
        let unsaved = self.unsaved.iter_mut().filter(|_| !is_stripped);
        for staged in unsaved.chain(plan.gains.values_mut()) {
            for (key, session) in std::mem::take(&mut staged.sessions) {
                self.sessions.keep(staged.stream.number, key, session.stored(hour));
            }
        }
        if self.upkeep.has_dropped_sessions() || !plan.removing.is_empty() {
            self.sessions.clear();
        }
    }

    /// The commit was given up.
    fn fail(&mut self, plan: Plan, fault: &Fault) {
        self.note_fault(fault);
        self.registry.metrics.failed_commits.fetch_add(1, Ordering::Relaxed);
        self.flushed = Some(Instant::now());
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
