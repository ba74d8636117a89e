//! What the writer does by the clock: delayed messages, retention, old idempotency keys, and what
//! removed streams have left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::limits::{
    MAX_IDEMPOTENCY_AGE_MS, MAX_IDEMPOTENCY_KEYS, MAX_SESSION_AGE_HOURS, MAX_SESSIONS,
};
use sealane_protocol::limits::MAX_OFFSET;

use super::plan::{Plan, Planner};
use super::staged::HOUR_MS;
use crate::block::{Offsets, read_block};
use crate::envelope::Envelope;
use crate::now_ms;
use crate::registry::Registry;
use crate::store::{DelayedRow, Fault, Settings, Swept, Writes};
use crate::stream::Stream;

/// How often retention looks at the streams that have bounds.
const RETAIN_EVERY: Duration = Duration::from_millis(250);
/// Blocks of one stream that one commit removes, so that no commit takes long.
const TRIM_BLOCKS: usize = 256;
/// The same of a stream that was purged, since it may have a block for each message.
const PURGE_BLOCKS: usize = 4096;
/// Bytes of one stream's blocks that one commit removes, and one block more.
const TRIM_BYTES: u64 = 64 << 20;
/// Keys that one commit forgets, and rows of removed streams; of their blocks a 64th.
const ROWS_DROPPED: u64 = 4096;
/// Delayed messages that one commit releases.
const RELEASE_MESSAGES: usize = 4096;
/// Bytes of them, unless a single one is larger.
pub(super) const RELEASE_BYTES: u64 = 4 << 20;
/// How long after a failed commit delayed messages are tried again.
pub(super) const RELEASE_AGAIN_MS: u64 = 250;

pub(super) struct Upkeep {
    /// When the next delayed message is due.
    pub(super) next_due_ms: Option<u64>,
    /// Delayed messages.
    pub(super) delayed: u64,
    /// Idempotency keys.
    keys: u64,
    /// Rows of publishing sessions.
    sessions: u64,
    /// The hour for which old sessions were forgotten last.
    aged_hour: u64,
    /// Numbers of removed streams that have left something in the store.
    pub(super) sweeping: BTreeSet<u32>,
    retained: Instant,
    /// What the last attempt to commit has removed.
    removed: Removed,
}

#[derive(Default)]
struct Removed {
    keys: u64,
    sessions: u64,
    /// Whether no more sessions are too old.
    aged: bool,
    swept: Option<(u32, Swept)>,
}

impl Upkeep {
    pub(super) fn new(writes: &Writes) -> Result<Self, Fault> {
        Ok(Self {
            next_due_ms: writes.delayed(0, 0, 0)?.1,
            delayed: writes.count_delayed()?,
            keys: writes.count_keys()?,
            sessions: writes.count_sessions()?,
            aged_hour: 0,
            sweeping: writes.removed()?.into_iter().collect(),
            retained: Instant::now(),
            removed: Removed::default(),
        })
    }

    /// Whether a delayed message is due.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        self.next_due_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }

    /// Whether removed streams have left something.
    pub(super) fn is_sweeping(&self) -> bool {
        !self.sweeping.is_empty()
    }

    /// Whether there is something to do by the clock.
    pub(super) fn wants_a_commit(&self, registry: &Registry, now_ms: u64, flush: bool) -> bool {
        let retains = self.wants_retention(registry, now_ms);
        self.is_due(now_ms) || retains || (flush && self.is_sweeping())
    }

    fn wants_retention(&self, registry: &Registry, now_ms: u64) -> bool {
        let is_wanted = self.keys > 0
            || self.has_old_sessions(now_ms)
            || registry.bounded.load(Ordering::Relaxed);
        is_wanted && self.retained.elapsed() >= RETAIN_EVERY
    }

    /// Whether sessions may have to go: once an hour, and when there are too many.
    fn has_old_sessions(&self, now_ms: u64) -> bool {
        let is_due = self.sessions > 0 && now_ms / HOUR_MS > self.aged_hour;
        is_due || self.sessions > MAX_SESSIONS as u64
    }

    /// Plans what the clock asks for.
    pub(super) fn plan(&self, plan: &mut Plan, registry: &Registry, flush: bool) {
        plan.retains = self.wants_retention(registry, plan.now_ms);
        plan.sweeps = self.sweeping.first().copied().filter(|_| flush);
        plan.has_flushed |= plan.sweeps.is_some();
    }

    /// Plans the release of delayed messages that are due.
    pub(super) fn release(&self, plan: &mut Plan, planner: &Planner) -> Result<(), Fault> {
        plan.next_due_ms = self.next_due_ms;
        if !self.is_due(plan.now_ms) {
            return Ok(());
        }
        if plan.ungivable {
            plan.next_due_ms = Some(plan.now_ms + RELEASE_AGAIN_MS);
            return Ok(());
        }
        let (due, next_due_ms) =
            planner.writes.delayed(plan.now_ms, RELEASE_MESSAGES, RELEASE_BYTES)?;
        plan.next_due_ms = next_due_ms;
        for row in due {
            // It never comes, by this very commit.
            if plan.managed.cancelled.contains(&row.number) {
                continue;
            }
            plan.released.push(row.number);
            let stream = planner.registry.by_number(row.stream);
            // What was held back for a stream that is gone goes with it.
            if let Some(stream) = stream.filter(|s| !plan.removing.contains_key(&s.topic)) {
                give(plan, &stream, row);
            }
        }
        Ok(())
    }

    /// Stores what is planned, and finds what retention removes.
    pub(super) fn store(
        &mut self,
        plan: &mut Plan,
        writes: &mut Writes,
        registry: &Registry,
    ) -> Result<(), Fault> {
        self.removed = Removed::default();
        for (stream, _) in plan.trimmed.drain(..) {
            let mut state = stream.state.lock();
            state.leaving = state.first;
        }
        if plan.retains {
            for stream in registry.streams() {
                retain(plan, writes, &stream)?;
            }
            self.removed.keys = self.drop_keys(plan.now_ms, writes)?;
            if self.has_old_sessions(plan.now_ms) {
                self.drop_sessions(plan.now_ms / HOUR_MS, writes)?;
            }
        }
        if let Some(stream) = plan.sweeps {
            self.removed.swept = Some((stream, writes.sweep(stream, ROWS_DROPPED)?));
        }
        Ok(())
    }

    /// Whether the last attempt to commit has removed rows of sessions.
    pub(super) fn has_dropped_sessions(&self) -> bool {
        self.removed.sessions > 0
    }

    fn drop_keys(&self, now_ms: u64, writes: &Writes) -> Result<u64, Fault> {
        if self.keys == 0 {
            return Ok(0);
        }
        let before_ms = now_ms.saturating_sub(MAX_IDEMPOTENCY_AGE_MS);
        let old = writes.drop_keys(before_ms, ROWS_DROPPED)?;
        let excess = (self.keys - old.min(self.keys)).saturating_sub(MAX_IDEMPOTENCY_KEYS as u64);
        let more = match excess {
            0 => 0,
            excess => writes.drop_keys(u64::MAX, excess.min(ROWS_DROPPED))?,
        };
        Ok(old + more)
    }

    fn drop_sessions(&mut self, hour: u64, writes: &Writes) -> Result<(), Fault> {
        let old = writes.drop_sessions(hour.saturating_sub(MAX_SESSION_AGE_HOURS), ROWS_DROPPED)?;
        let excess = self.sessions.saturating_sub(old).saturating_sub(MAX_SESSIONS as u64);
        let more = match excess {
            0 => 0,
            excess => writes.drop_sessions(u64::MAX, excess.min(ROWS_DROPPED))?,
        };
        (self.removed.sessions, self.removed.aged) = (old + more, old < ROWS_DROPPED);
        Ok(())
    }

    /// The commit stands.
    pub(super) fn settle(&mut self, plan: &Plan) {
        self.next_due_ms = plan.next_due_ms;
        if plan.retains {
            self.retained = Instant::now();
        }
        let delayed = plan.delayed.iter();
        let earliest = delayed.clone().map(|delayed| delayed.due_ms).min();
        self.next_due_ms = self.next_due_ms.into_iter().chain(earliest).min();
        self.delayed += delayed.map(|delayed| delayed.records.len() as u64).sum::<u64>();
        let gone = plan.released.len() + plan.managed.cancelled.len();
        self.delayed = self.delayed.saturating_sub(gone as u64);
        self.keys = (self.keys + plan.keys_stored).saturating_sub(self.removed.keys);
        let sessions = self.sessions + plan.sessions_stored;
        self.sessions = sessions.saturating_sub(self.removed.sessions);
        if self.removed.aged {
            self.aged_hour = plan.now_ms / HOUR_MS;
        }
        self.sweeping.extend(plan.removing.values().map(|stream| stream.number));
        if let Some((stream, swept)) = self.removed.swept.take() {
            self.keys = self.keys.saturating_sub(swept.keys);
            self.delayed = self.delayed.saturating_sub(swept.delayed);
            self.sessions = self.sessions.saturating_sub(swept.sessions);
            if swept.done {
                self.sweeping.remove(&stream);
            }
        }
    }

    /// The commit was given up: what it should have released is tried again soon.
    pub(super) fn fail(&mut self) {
        let soon = now_ms() + RELEASE_AGAIN_MS;
        self.next_due_ms = self.next_due_ms.map(|due_ms| due_ms.max(soon));
        self.retained = Instant::now();
    }
}

/// Gives a stream the delayed message `row`.
fn give(plan: &mut Plan, stream: &Arc<Stream>, row: DelayedRow) {
    let block =
        read_block(stream.topic.clone(), row.stream, 0, Offsets { first: 0, count: 1 }, row.data);
    let record = block.records.first().cloned();
    let now_ms = plan.now_ms;
    let staged = plan.staged(stream);
    match record {
        Some(record) if staged.next < MAX_OFFSET => {
            let envelope = Envelope { content: record.content, id: record.id, body: record.body };
            staged.waits = true;
            staged.push(vec![envelope], now_ms);
        }
        Some(_) => tracing::error!(stream = %stream.topic, "has no offset for a delayed message"),
        None => tracing::error!(stream = %stream.topic, "a delayed message is damaged"),
    }
}

/// Removes what one stream need not keep.
fn retain(plan: &mut Plan, writes: &Writes, stream: &Arc<Stream>) -> Result<(), Fault> {
    let (retention, first, next, mut left, has_purged) = {
        let state = stream.state.lock();
        (state.retention, state.first, state.next, state.bytes, state.has_purged)
    };
    let is_bounded = !retention.keeps_all() || has_purged;
    let is_leaving = plan.removing.contains_key(&stream.topic);
    // A purge stores the extent of its stream itself.
    if !is_bounded || is_leaving || plan.managed.purged.contains_key(&stream.number) {
        return Ok(());
    }
    let limit = if has_purged { PURGE_BLOCKS } else { TRIM_BLOCKS };
    let mut taken = 0;
    let too_old = plan.now_ms.saturating_sub(retention.max_age_ms);
    let too_many = next.saturating_sub(retention.max_count);
    let trimmed = writes.trim(stream.number, limit, |last, last_ms, bytes| {
        let by_age = retention.max_age_ms > 0 && last_ms < too_old;
        let by_count = retention.max_count > 0 && last < too_many;
        let by_bytes = retention.max_bytes > 0 && left.saturating_sub(bytes) >= retention.max_bytes;
        let was_purged = last < first;
        // What is not readable yet stays: it is being stored by this very commit.
        let expired = last < next && (was_purged || by_age || by_count || by_bytes);
        let has_room = taken < TRIM_BYTES;
        taken += bytes;
        left -= if expired { bytes.min(left) } else { 0 };
        expired && has_room
    })?;
    let Some(trimmed) = trimmed else {
        stream.state.lock().has_purged = false;
        return Ok(());
    };
    // From now on a reader that finds nothing there does not take it for damage.
    plan.trimmed.push((stream.clone(), trimmed));
    let ended = {
        let mut state = stream.state.lock();
        state.leaving = state.leaving.max(trimmed.last + 1);
        let ended = state.generations.partition_point(|(at, _)| *at <= trimmed.last + 1);
        state.generations.get(ended.saturating_sub(1)).map_or(0, |(first, _)| *first)
    };
    writes.drop_generations(stream.number, ended)?;
    writes.stream(stream, planned(plan, stream), Some(trimmed))
}

/// The settings that the stream is to have once the commit stands.
fn planned(plan: &Plan, stream: &Stream) -> Settings {
    let planned = plan.settings.get(&stream.number);
    planned.map_or_else(|| stream.settings(), |(_, settings)| *settings)
}
