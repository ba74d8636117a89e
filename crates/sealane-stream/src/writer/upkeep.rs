//! The writer's work by the clock: delayed messages, retention, old idempotency keys, and the rows
//! that removed streams have left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::limits::{
    CLOCK_STEP_MS, MAX_COMMIT_RELEASED, MAX_COMMIT_TRIMMED, MAX_IDEMPOTENCY_AGE_MS,
    MAX_SESSION_AGE_HOURS, RELEASE_RETRY_MS, RETENTION_INTERVAL_MS,
};
use sealane_protocol::limits::MAX_OFFSET;

use super::plan::{CommitPlan, CommitPlanner};
use super::staged::HOUR_MS;
use super::watch::ClockWatch;
use crate::block::{BlockOffsets, read_block};
use crate::commit::{RowExpiry, StoreChange, StoreCommit};
use crate::envelope::StreamEnvelope;
use crate::registry::StreamRegistry;
use crate::shares::{ShareBook, ShareKind, stored_key_owner};
use crate::store::{
    AppliedCounts, DelayedRow, ExpiredBlocks, OldBlock, StoreFault, StoreWrites, TrimmedBlocks,
};
use crate::stream::StreamEntry;

/// Blocks of one stream that one commit removes, so that no commit takes long.
const TRIM_BLOCKS: usize = 256;
/// The same of a stream that was purged, since it may have a block for each message.
const PURGE_BLOCKS: usize = 4096;
/// Bytes of one stream's blocks that one commit removes, and one block more.
const TRIM_BYTES: u64 = 64 << 20;
/// Keys that one commit forgets, and rows of removed streams; of their blocks a 64th.
const ROWS_DROPPED: u64 = 4096;
/// Bytes of delayed messages that one commit releases, unless a single one is larger.
pub(super) const RELEASE_BYTES: u64 = 4 << 20;

pub(super) struct WriterUpkeep {
    /// When the next delayed message is due.
    pub(super) next_due_ms: Option<u64>,
    /// Idempotency keys.
    keys: u64,
    /// Rows of publishing sessions.
    sessions: u64,
    /// The hour for which old sessions were forgotten last.
    aged_hour: u64,
    /// Numbers of removed streams that have left something in the store.
    pub(super) sweeping: BTreeSet<u32>,
    retained: Instant,
    /// Whether owners have more keys or sessions than they may, which the last look left.
    has_excess: bool,
    /// Whether all keys and sessions have their right times, since the clock was calm.
    is_restamped: bool,
    /// The latest time that a key or a session was stored with.
    last_stamp_ms: u64,
    pub(super) watch: ClockWatch,
}

/// The work that a commit does by the clock.
#[derive(Default)]
pub(super) struct UpkeepPlan {
    /// Delayed messages that are delayed no more, by the numbers of their rows.
    released: Vec<i64>,
    /// When the next delayed message is due, behind those that are released.
    next_due_ms: Option<u64>,
    /// Whether retention has looked at the streams.
    retains: bool,
    /// The blocks that retention takes off streams.
    trimmed: Vec<(Arc<StreamEntry>, TrimmedBlocks)>,
    /// Whether it was looked at what owners have beyond their shares, and whether some of that
    /// stays for the next commit.
    excess: Option<bool>,
    /// The removals, as the store is to do them.
    changes: Vec<StoreChange>,
}

impl UpkeepPlan {
    /// Whether delayed messages are given to their streams. They must not be in both places after
    /// a power failure.
    pub(super) fn is_synced(&self) -> bool {
        !self.released.is_empty()
    }

    /// The blocks that retention takes off streams.
    pub(super) fn trimmed(&self) -> &[(Arc<StreamEntry>, TrimmedBlocks)] {
        &self.trimmed
    }

    pub(super) fn add_to(&mut self, commit: &mut StoreCommit) {
        let released = self.released.iter();
        commit.changes.extend(released.map(|row| StoreChange::ReleaseDelayed { number: *row }));
        commit.changes.append(&mut self.changes);
    }

    /// No delayed message is given to its stream: it is tried again soon.
    pub(super) fn strip(&mut self, now_ms: u64) {
        if !std::mem::take(&mut self.released).is_empty() {
            self.next_due_ms = Some(now_ms + RELEASE_RETRY_MS);
        }
    }
}

impl WriterUpkeep {
    pub(super) fn new(writes: &StoreWrites, watch: ClockWatch) -> Result<Self, StoreFault> {
        Ok(Self {
            next_due_ms: writes.delayed(0, 0, 0)?.1,
            keys: writes.count_keys()?,
            sessions: writes.count_sessions()?,
            aged_hour: 0,
            sweeping: writes.removed()?.into_iter().collect(),
            retained: Instant::now(),
            has_excess: false,
            is_restamped: false,
            last_stamp_ms: writes.last_stamp_ms()?,
            watch,
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
    pub(super) fn wants_a_commit(
        &self,
        registry: &StreamRegistry,
        now_ms: u64,
        flush: bool,
    ) -> bool {
        let retains = self.wants_retention(registry, now_ms);
        self.is_due(now_ms) || retains || (flush && self.is_sweeping())
    }

    fn wants_retention(&self, registry: &StreamRegistry, now_ms: u64) -> bool {
        // Retention walks all bounded streams. Four times a second bounds that walk, whatever the
        // rate of commits is.
        if self.retained.elapsed() < Duration::from_millis(RETENTION_INTERVAL_MS) {
            return false;
        }
        self.keys > 0
            || self.has_old_sessions(now_ms)
            || registry.bounded.load(Ordering::Relaxed)
            || !registry.shares.beyond(ShareKind::Sessions).is_empty()
    }

    /// Whether sessions may have to go: once an hour.
    fn has_old_sessions(&self, now_ms: u64) -> bool {
        let is_due = self.sessions > 0 && now_ms / HOUR_MS != self.aged_hour;
        is_due && self.watch.is_calm()
    }

    /// Plans what the clock asks for.
    pub(super) fn plan(
        &mut self,
        plan: &mut CommitPlan,
        planner: &CommitPlanner,
        flush: bool,
    ) -> Result<(), StoreFault> {
        if self.wants_retention(planner.registry, plan.now_ms) {
            plan.upkeep.retains = true;
            planner.writes.look(|| {
                let mut streams = planner.registry.streams().into_iter();
                streams.try_for_each(|stream| retain(plan, planner, stream, &mut self.watch))
            })?;
            self.expire(&mut plan.upkeep.changes, plan.now_ms);
        }
        if plan.upkeep.retains || self.has_excess {
            // A commit that adds many takes as many again, so that no owner outruns its share.
            let rows_max = MAX_COMMIT_TRIMMED.max(2 * plan.added_rows());
            let shares = &planner.registry.shares;
            plan.upkeep.excess = Some(trim_shares(&mut plan.upkeep.changes, shares, rows_max));
        }
        self.watch.plan(&mut plan.upkeep.changes);
        if let Some(stream) = self.sweeping.first().copied().filter(|_| flush) {
            let rows_max = ROWS_DROPPED;
            plan.upkeep.changes.push(StoreChange::SweepStream { stream, rows_max });
            // So that the next piece goes with the next flush, and not with each commit between.
            plan.has_flushed = true;
        }
        Ok(())
    }

    /// The time that keys and sessions of a commit at this time of day are stored with. It never
    /// runs back: the oldest go first where an owner has too many, and a clock that was set back
    /// would make the newest the oldest.
    pub(super) fn stamp_ms(&self, now_ms: u64) -> u64 {
        // Behind a step each commit still comes after the one before. All are set right later.
        let is_set_back = now_ms.saturating_add(CLOCK_STEP_MS) < self.last_stamp_ms;
        now_ms.max(self.last_stamp_ms.saturating_add(u64::from(is_set_back)))
    }

    /// Looks at the clock. After a step the times of rows are to be looked at again.
    pub(super) fn look(&mut self) {
        self.watch.look();
        self.is_restamped &= self.watch.is_calm();
    }

    /// Plans which idempotency keys and sessions are forgotten.
    fn expire(&self, changes: &mut Vec<StoreChange>, now_ms: u64) {
        let rows_max = ROWS_DROPPED;
        let is_calm = self.watch.is_calm();
        // Rows whose times are wrong are set right before any goes for its age.
        let is_right = is_calm && self.is_restamped;
        if is_calm && !self.is_restamped {
            changes.push(self.watch.restamp(rows_max));
        }
        let aged = |before: u64| if is_right { before } else { 0 };
        if self.keys > 0 {
            let before = aged(now_ms.saturating_sub(MAX_IDEMPOTENCY_AGE_MS));
            changes.push(StoreChange::ExpireKeys(RowExpiry { before, rows_max }));
        }
        if self.has_old_sessions(now_ms) {
            let before = aged((now_ms / HOUR_MS).saturating_sub(MAX_SESSION_AGE_HOURS));
            changes.push(StoreChange::ExpireSessions(RowExpiry { before, rows_max }));
        }
    }

    /// Plans the release of delayed messages that are due.
    pub(super) fn release(
        &self,
        plan: &mut CommitPlan,
        planner: &CommitPlanner,
    ) -> Result<(), StoreFault> {
        plan.upkeep.next_due_ms = self.next_due_ms;
        if !self.is_due(plan.now_ms) {
            return Ok(());
        }
        if plan.room.is_ungivable {
            plan.upkeep.next_due_ms = Some(plan.now_ms + RELEASE_RETRY_MS);
            return Ok(());
        }
        let (due, next_due_ms) =
            planner.writes.delayed(plan.now_ms, MAX_COMMIT_RELEASED, RELEASE_BYTES)?;
        plan.upkeep.next_due_ms = next_due_ms;
        for row in due {
            // It never comes, by this very commit.
            if plan.managed.cancelled.contains(&row.number) {
                continue;
            }
            plan.upkeep.released.push(row.number);
            let stream = planner.registry.by_number(row.stream);
            // A message that was held back for a stream that is gone goes with it.
            if let Some(stream) = stream.filter(|s| !plan.streams.removes(&s.topic)) {
                give(plan, &stream, row);
            }
        }
        Ok(())
    }

    /// The commit stands.
    pub(super) fn settle(&mut self, plan: &CommitPlan, counts: &AppliedCounts) {
        if plan.upkeep.retains {
            self.retained = Instant::now();
        }
        self.has_excess = plan.upkeep.excess.unwrap_or(self.has_excess);
        let earliest = plan.delayed.iter().map(|delayed| delayed.due_ms).min();
        self.next_due_ms = plan.upkeep.next_due_ms.into_iter().chain(earliest).min();
        self.keys = (self.keys + counts.keys_added).saturating_sub(counts.keys_expired);
        let sessions = self.sessions + counts.sessions_added;
        self.sessions = sessions.saturating_sub(counts.sessions_expired);
        self.last_stamp_ms = plan.stamp_ms;
        // A commit that has set rows right has removed none for its age.
        let was_right = self.is_restamped;
        if counts.has_restamped {
            // Rows of each step, and then those ahead of the clock.
            self.is_restamped = !self.watch.has_restamped();
            if self.is_restamped {
                // No row is ahead of the clock any more.
                self.last_stamp_ms = plan.now_ms;
            }
        }
        if counts.has_aged_sessions && was_right {
            // Old sessions are looked for once an hour, since their rows say no more than the hour.
            self.aged_hour = plan.now_ms / HOUR_MS;
        }
        self.sweeping.extend(plan.streams.removing().map(|stream| stream.number));
        if let Some((stream, swept)) = counts.swept {
            self.keys = self.keys.saturating_sub(swept.keys);
            self.sessions = self.sessions.saturating_sub(swept.sessions);
            if swept.done {
                self.sweeping.remove(&stream);
            }
        }
    }

    /// The commit was given up: what it should have released is tried again soon.
    pub(super) fn fail(&mut self) {
        self.watch.fail();
        self.has_excess = false;
        let soon = self.watch.day_ms() + RELEASE_RETRY_MS;
        // A message that is due would otherwise wake the writer at once, into the same failure.
        self.next_due_ms = self.next_due_ms.map(|due_ms| due_ms.max(soon));
        // Retention waits for its turn after a failure, too, instead of being tried again at once.
        self.retained = Instant::now();
    }
}

/// Plans which keys and sessions go since their owners have more than their shares, up to
/// `rows_max` in all. Nobody else's go for it. Returns whether some of the excess stays.
fn trim_shares(changes: &mut Vec<StoreChange>, shares: &ShareBook, rows_max: u64) -> bool {
    let kinds = [ShareKind::Keys, ShareKind::MessageKeys, ShareKind::Sessions];
    let each = kinds.into_iter().flat_map(|kind| {
        shares.beyond(kind).into_iter().map(move |(owner, excess)| (excess, kind, owner))
    });
    let mut each: Vec<_> = each.collect();
    // An owner with a little beyond its share leaves the rest of its part to those with much.
    each.sort_by_key(|(excess, _, _)| *excess);
    let (mut rows_left, mut has_more) = (rows_max, false);
    for (count, (excess, kind, owner)) in (1..=each.len() as u64).rev().zip(each) {
        // One commit that took out all of a large excess would hold up everybody in it.
        let rows = excess.min(rows_left.div_ceil(count));
        rows_left -= rows;
        has_more |= rows < excess;
        if rows == 0 {
            continue;
        }
        changes.push(match kind {
            ShareKind::Sessions => StoreChange::TrimSessions { owner, rows },
            kind => StoreChange::TrimKeys { owner: stored_key_owner(&owner, kind), rows },
        });
    }
    has_more
}

/// Gives a stream the delayed message `row`.
fn give(plan: &mut CommitPlan, stream: &Arc<StreamEntry>, row: DelayedRow) {
    let block = read_block(
        stream.topic.clone(),
        row.stream,
        0,
        BlockOffsets { first: 0, count: 1 },
        row.data,
    );
    let record = block.records.first().cloned();
    let now_ms = plan.now_ms;
    let staged = plan.staged(stream);
    match record {
        // An offset beyond the key's 40 bits would fall into the next stream's blocks.
        Some(record) if staged.next < MAX_OFFSET => {
            let envelope =
                StreamEnvelope { content: record.content, id: record.id, body: record.body };
            staged.waits = true;
            staged.push(vec![envelope], now_ms);
        }
        Some(_) => tracing::error!(stream = %stream.topic, "has no offset for a delayed message"),
        None => tracing::error!(stream = %stream.topic, "a delayed message is damaged"),
    }
}

/// Plans what one stream need not keep.
fn retain(
    plan: &mut CommitPlan,
    planner: &CommitPlanner,
    stream: Arc<StreamEntry>,
    watch: &mut ClockWatch,
) -> Result<(), StoreFault> {
    let (retention, first, next, mut left, has_purged) = {
        let state = stream.state.lock();
        if state.bounds.retention.max_age_ms > 0 && watch.is_calm() {
            watch.saw_ahead(state.last_ms);
        }
        (state.bounds.retention, state.first, state.next, state.bytes, state.has_purged)
    };
    let is_bounded = !retention.keeps_all() || has_purged;
    let is_leaving = plan.streams.removes(&stream.topic);
    // A purge stores the extent of its stream itself.
    if !is_bounded || is_leaving || plan.managed.purged.contains_key(&stream.number) {
        return Ok(());
    }
    // A bound for each stream and commit, so that removing a long backlog holds nobody up.
    let limit = if has_purged { PURGE_BLOCKS } else { TRIM_BLOCKS };
    let mut taken = 0;
    let too_old = plan.now_ms.saturating_sub(retention.max_age_ms);
    // Whole blocks go, so that a stream keeps up to a block more than it must (decision 2).
    let too_many = next.saturating_sub(retention.max_count);
    let (is_calm, now_ms) = (watch.is_calm(), plan.now_ms);
    let found = planner.writes.find_expired(stream.number, limit, |block| {
        let OldBlock { last, last_ms, stored_ms, bytes } = block;
        // Count and bytes need no clock, and so wait for none.
        let by_age = retention.max_age_ms > 0
            && is_calm
            && watch.ages().stored_at(last_ms, stored_ms, now_ms) < too_old;
        let by_count = retention.max_count > 0 && last < too_many;
        let by_bytes = retention.max_bytes > 0 && left.saturating_sub(bytes) >= retention.max_bytes;
        let was_purged = last < first;
        // A block that is not readable yet stays: its stream would seem to begin behind its end.
        let expired = last < next && (was_purged || by_age || by_count || by_bytes);
        let has_room = taken < TRIM_BYTES;
        taken += bytes;
        left -= if expired { bytes.min(left) } else { 0 };
        expired && has_room
    })?;
    let Some(ExpiredBlocks { through, trimmed }) = found else {
        // Messages that were answered and not stored yet may have been purged, too. Their blocks
        // come with this commit, and nobody else would look for them below `first`.
        let is_stored = planner.unsaved.iter().all(|staged| staged.stream.number != stream.number);
        stream.state.lock().has_purged &= !is_stored;
        return Ok(());
    };
    let (extent, generations_from) = {
        let mut state = stream.state.lock();
        // From now on a reader that finds nothing there does not take it for damage.
        state.leaving = state.leaving.max(trimmed.last + 1);
        let ended = state.generations.partition_point(|(at, _)| *at <= trimmed.last + 1);
        let from = state.generations.get(ended.saturating_sub(1)).map_or(0, |(first, _)| *first);
        (state.extent(stream.number, Some(trimmed)), from)
    };
    let change = StoreChange::TrimStream { extent, through, generations_from };
    plan.upkeep.changes.push(change);
    plan.upkeep.trimmed.push((stream, trimmed));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::ShareRules;

    /// The sessions that owners with so many beyond their share lose by a commit, in order.
    fn trimmed(excesses: &[(&str, u64)], rows_max: u64) -> (Vec<(String, u64)>, bool) {
        let (shares, kind) = (ShareBook::default(), ShareKind::Sessions);
        shares.set_rules(ShareRules::new(4, Default::default()));
        let part = shares.of("a").limit(kind);
        for (owner, excess) in excesses {
            shares.of(owner).add(kind, part + excess);
        }
        let mut changes = Vec::new();
        let has_more = trim_shares(&mut changes, &shares, rows_max);
        let rows = |change: &StoreChange| match change {
            StoreChange::TrimSessions { owner, rows } => (owner.to_string(), *rows),
            other => panic!("{other:?}"),
        };
        let mut rows: Vec<_> = changes.iter().map(rows).collect();
        rows.sort();
        (rows, has_more)
    }

    #[test]
    fn each_owner_loses_a_part_of_what_is_too_much_whatever_others_lose() {
        let excesses = [("a", 400_000), ("b", 100_000), ("c", 5)];
        let lost = [("a", 4093), ("b", 4094), ("c", 5)];
        let lost = lost.map(|(owner, rows)| (owner.to_owned(), rows));
        assert_eq!(trimmed(&excesses, 8192), (lost.to_vec(), true));
        assert_eq!(trimmed(&[("a", 8192)], 8192), (vec![("a".to_owned(), 8192)], false));
    }

    #[test]
    fn no_commit_takes_out_more_rows_than_it_may_however_many_are_too_many() {
        let names: Vec<String> = (0..40).map(|n| format!("{n:02}")).collect();
        for (count, excess) in [(1, 700_000), (3, 700_000), (40, 20_000), (40, 1)] {
            let excesses: Vec<_> =
                names.iter().take(count).map(|name| (name.as_str(), excess)).collect();
            for rows_max in [16, MAX_COMMIT_TRIMMED] {
                let (rows, has_more) = trimmed(&excesses, rows_max);
                let sum: u64 = rows.iter().map(|(_, rows)| rows).sum();
                let all = count as u64 * excess;
                assert_eq!(sum, all.min(rows_max), "{count} {excess}");
                assert_eq!(has_more, sum < all, "{count} {excess}");
            }
        }
    }
}
