//! A commit that becomes rows.
//!
//! This is the only way into the tables of a running hub, so that whatever carries commits to
//! another store carries all of it. It looks up nothing but the rows that a change is about.

use rusqlite::params;

use super::{OwnBounds, StoreFault, StoreWrites, StreamSettings, SweptRows, key};
use crate::commit::{
    ConsumerRecord, NewStream, RowExpiry, RuleRow, StoreChange, StoreCommit, StoreCounter,
    StreamExtent,
};
use crate::shares::{ShareChanges, ShareKind};
use crate::{Level, Retention};

/// A commit's effect on rows, as far as the hub counts by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AppliedCounts {
    /// Idempotency keys that were added.
    pub(crate) keys_added: u64,
    /// Idempotency keys that were too old, or more than their owner's share.
    pub(crate) keys_expired: u64,
    /// Sessions that had no row before.
    pub(crate) sessions_added: u64,
    /// Sessions that were too old, or more than their owner's share.
    pub(crate) sessions_expired: u64,
    /// Whether sessions were looked at, and none is left that is too old.
    pub(crate) has_aged_sessions: bool,
    /// Whether all rows were set right that a restamp is about.
    pub(crate) has_restamped: bool,
    /// Changes of what owners hold: delayed messages, keys and sessions.
    pub(crate) shares: ShareChanges,
    /// The removed stream of which something went.
    pub(crate) swept: Option<(u32, SweptRows)>,
    /// Bytes that purges took off streams.
    pub(crate) purged: Vec<(u32, u64)>,
}

impl StoreWrites {
    /// Applies a commit within a transaction that has begun. After a fault the transaction is to
    /// be rolled back: what was applied before it has no meaning alone.
    pub(crate) fn apply(&mut self, commit: &StoreCommit) -> Result<AppliedCounts, StoreFault> {
        debug_assert!(commit.holds_together(), "{commit:?}");
        // Counts are of this attempt alone: the one before it was rolled back.
        let mut counts = AppliedCounts::default();
        for change in &commit.changes {
            self.apply_change(change, &mut counts)?;
        }
        Ok(counts)
    }

    fn apply_change(
        &mut self,
        change: &StoreChange,
        counts: &mut AppliedCounts,
    ) -> Result<(), StoreFault> {
        match change {
            StoreChange::Raise { counter, value } => self.raise(*counter, *value),
            StoreChange::MakeStream(new) => self.make_stream(new),
            StoreChange::SetStream { stream, level, retention, own_bounds } => {
                self.set_stream(*stream, *level, retention, *own_bounds)
            }
            StoreChange::SetExtent(extent) => self.set_extent(*extent),
            StoreChange::RemoveStream { stream } => self.remove(*stream),
            StoreChange::SweepStream { stream, rows_max } => {
                let swept = self.sweep(*stream, *rows_max, &mut counts.shares)?;
                counts.swept = Some((*stream, swept));
                Ok(())
            }
            StoreChange::AddBlock { stream, generation, records, stored_ms } => {
                self.block(*stream, *generation, records, *stored_ms)
            }
            StoreChange::TrimStream { extent, through, generations_from } => {
                self.trim(*extent, *through, *generations_from)
            }
            StoreChange::PurgeStream(extent) => {
                counts.purged.push((extent.stream, self.purge(*extent)?));
                Ok(())
            }
            StoreChange::NoteDamage { stream, first, last, found_ms } => {
                self.damage(*stream, (*first, *last), *found_ms)
            }
            StoreChange::KeepConsumer(consumer) => self.consumer(consumer),
            StoreChange::RemoveConsumer { consumer } => self.remove_consumer(*consumer),
            StoreChange::AddProgress { row, data } => self.progress(*row, data),
            StoreChange::DropProgress { below } => self.drop_progress(*below),
            StoreChange::SetClockMark(mark) => self.set_clock(*mark),
            StoreChange::SetClockSteps { steps } => self.set_clock_steps(steps),
            StoreChange::KeepRule(rule) => self.rule(rule),
            StoreChange::RemoveRule { pattern } => {
                self.run("DELETE FROM rule WHERE pattern = ?1", [pattern])
            }
            change => self.apply_counted(change, counts),
        }
    }

    /// Applies a change of which the hub counts the rows.
    fn apply_counted(
        &mut self,
        change: &StoreChange,
        counts: &mut AppliedCounts,
    ) -> Result<(), StoreFault> {
        match change {
            StoreChange::DelayMessages { stream, due_ms, owner, records } => {
                counts.shares.add(owner, ShareKind::Delayed, records.len() as u64);
                let mut records = records.iter();
                records.try_for_each(|record| self.delay(*stream, *due_ms, owner, record))?;
            }
            StoreChange::ReleaseDelayed { number } | StoreChange::CancelDelayed { number } => {
                self.drop_delayed(*number, &mut counts.shares)?;
            }
            StoreChange::KeepKey { stream, key, row, time_ms } => {
                if self.keep_key(*stream, key, row, *time_ms)? {
                    counts.keys_added += 1;
                    counts.shares.add_key(&row.owner);
                }
            }
            StoreChange::KeepSession { stream, session, row } => {
                if self.keep_session(*stream, session, row)? {
                    counts.sessions_added += 1;
                    counts.shares.add(row.owner(), ShareKind::Sessions, 1);
                }
            }
            StoreChange::ExpireKeys(expiry) => {
                let RowExpiry { before, rows_max } = *expiry;
                counts.keys_expired += self.drop_keys(before, rows_max, &mut counts.shares)?;
            }
            StoreChange::ExpireSessions(expiry) => {
                let RowExpiry { before, rows_max } = *expiry;
                let old = self.drop_sessions(before, rows_max, &mut counts.shares)?;
                counts.sessions_expired += old;
                counts.has_aged_sessions = old < rows_max;
            }
            StoreChange::TrimKeys { owner, rows } => {
                counts.keys_expired += self.trim_keys(owner, *rows, &mut counts.shares)?;
            }
            StoreChange::TrimSessions { owner, rows } => {
                counts.sessions_expired += self.trim_sessions(owner, *rows, &mut counts.shares)?;
            }
            StoreChange::RestampRows(restamp) => {
                counts.has_restamped = self.restamp(*restamp)? < restamp.rows_max;
            }
            other => debug_assert!(false, "a change without effect: {other:?}"),
        }
        Ok(())
    }

    fn raise(&self, counter: StoreCounter, value: u64) -> Result<(), StoreFault> {
        let name = match counter {
            StoreCounter::Stream => "stream",
            StoreCounter::Generation => "generation",
        };
        self.run(
            "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            params![name, value],
        )
    }

    fn make_stream(&self, new: &NewStream) -> Result<(), StoreFault> {
        let StreamSettings { level, retention, own_bounds } = new.settings;
        self.run(
            "INSERT INTO stream VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, 0, ?8, ?9, ?10)",
            params![
                new.number,
                new.topic.as_str(),
                level as u8,
                new.created_ms,
                retention.max_age_ms as i64,
                retention.max_count as i64,
                retention.max_bytes as i64,
                new.sealed.map(|group| group.to_bytes()),
                &*new.owner,
                own_bounds.bits(),
            ],
        )?;
        self.run("INSERT INTO generation VALUES (?1, 0, ?2)", params![new.number, new.generation])
    }

    fn set_stream(
        &self,
        stream: u32,
        level: Option<Level>,
        retention: &Retention,
        own_bounds: OwnBounds,
    ) -> Result<(), StoreFault> {
        self.run(
            // The extent stays: another change of the same commit may set it.
            "UPDATE stream SET level = coalesce(?2, level), max_age_ms = ?3, max_count = ?4,
                 max_bytes = ?5, own_bounds = ?6 WHERE number = ?1",
            params![
                stream,
                level.map(|level| level as u8),
                retention.max_age_ms as i64,
                retention.max_count as i64,
                retention.max_bytes as i64,
                own_bounds.bits(),
            ],
        )
    }

    fn rule(&self, rule: &RuleRow) -> Result<(), StoreFault> {
        let RuleRow { pattern, retention, created_ms, maker } = rule;
        self.run(
            "INSERT OR REPLACE INTO rule VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                pattern,
                retention.max_age_ms as i64,
                retention.max_count as i64,
                retention.max_bytes as i64,
                created_ms,
                maker,
            ],
        )
    }

    pub(super) fn set_extent(&self, extent: StreamExtent) -> Result<(), StoreFault> {
        let StreamExtent { stream, first, next, bytes } = extent;
        self.run(
            "UPDATE stream SET first = ?2, next = ?3, bytes = ?4 WHERE number = ?1",
            params![stream, first, next, bytes],
        )
    }

    fn trim(&self, extent: StreamExtent, through: u64, from: u64) -> Result<(), StoreFault> {
        // A range of keys, and not the age or count that led to it: those depend on a clock and on
        // what was in memory.
        let blocks = [key(extent.stream, 0), key(extent.stream, through)];
        self.run("DELETE FROM block WHERE key BETWEEN ?1 AND ?2", blocks)?;
        let ended = params![extent.stream, from];
        self.run("DELETE FROM generation WHERE stream = ?1 AND first < ?2", ended)?;
        self.set_extent(extent)
    }

    fn consumer(&self, consumer: &ConsumerRecord) -> Result<(), StoreFault> {
        self.run(
            // Name and owner are as they were made: a consumer never changes them.
            "INSERT INTO consumer VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (number) DO UPDATE SET max_in_flight = ?5, ack_wait_ms = ?6,
                 max_attempts = ?7, dead_lettered = ?8, dead_dropped = ?9, since = ?10,
                 state = ?11, paused_ms = ?12",
            params![
                consumer.number,
                consumer.stream,
                &*consumer.name,
                &*consumer.owner,
                consumer.settings.max_in_flight,
                consumer.settings.ack_wait_ms,
                consumer.settings.max_attempts,
                consumer.dead_lettered,
                consumer.dead_dropped,
                consumer.since,
                consumer.state,
                consumer.paused_ms,
            ],
        )
    }
}
