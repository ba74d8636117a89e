//! A commit of the hub as plain data: what one transaction changes in the store.
//!
//! ```text
//!  commands ─► plan ─┬─► StoreCommit ─► Writes::apply ─► rows of SQLite
//!                    └─► Plan: who is answered, and what takes effect once the commit stands
//! ```
//!
//! A change names streams and consumers by their numbers and owns its data. It holds no lock, no
//! live stream and no function, and applying it reads no clock and draws no random number. So two
//! stores with the same rows have the same rows after the same commit, and a log can carry it from
//! one to the other (docs/decisions/0014-a-commit-is-data.md).

use std::collections::HashSet;
use std::sync::Arc;

use sealane_frame::GroupTag;
use sealane_message::Topic;

use crate::block::{BlockRecord, stored_bytes};
use crate::store::{KeyRow, OwnBounds, SessionRow, StreamSettings};
use crate::{ConsumerSettings, Level, Retention};

/// The changes of one transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreCommit {
    /// In the order in which they are applied.
    pub(crate) changes: Vec<StoreChange>,
}

/// One change of the store (spec/store.md, section 2).
///
/// A change either says everything that it does, or what it does follows from the rows alone. The
/// second kind is marked: its effect comes back in [`crate::store::AppliedCounts`].
#[derive(Debug, Clone)]
pub(crate) enum StoreChange {
    /// Notes in `meta` where a counter of the hub goes on.
    Raise { counter: StoreCounter, value: u64 },
    /// Makes a stream, with its row and its first generation.
    MakeStream(Box<NewStream>),
    /// Sets what a stream's owner chooses. Level none: the stream keeps its own.
    SetStream { stream: u32, level: Option<Level>, retention: Retention, own_bounds: OwnBounds },
    /// Notes how far a stream reaches; the blocks behind `next` say the rest.
    SetExtent(StreamExtent),
    /// Removes a stream with its generations, damage and consumers, and notes that it has left
    /// blocks, keys, sessions and delayed messages.
    RemoveStream { stream: u32 },
    /// Removes some of what a removed stream has left: a 64th of so many blocks, or so many rows of
    /// each other kind. The rows decide how many there are.
    SweepStream { stream: u32, rows_max: u64 },
    /// Adds one block: messages whose offsets follow each other.
    ///
    /// `stored_ms` is the clock's time where the time of the last message is ahead of it; else 0.
    AddBlock { stream: u32, generation: u64, records: Arc<[BlockRecord]>, stored_ms: u64 },
    /// Removes a stream's blocks up to the one that begins at `through`, and the generations that
    /// begin before `generations_from`.
    TrimStream { extent: StreamExtent, through: u64, generations_from: u64 },
    /// Writes the block around `extent.first` again without the messages before that offset. The
    /// rows decide how many bytes go, which are then taken off `extent.bytes`, too.
    PurgeStream(StreamExtent),
    /// Notes that the offsets `first..=last` cannot be read.
    NoteDamage { stream: u32, first: u64, last: u64, found_ms: u64 },
    /// Holds messages back until `due_ms`. Their rows get the numbers behind the greatest one.
    DelayMessages { stream: u32, due_ms: u64, owner: Arc<str>, records: Vec<BlockRecord> },
    /// Ends the delay of the message in this row, which another change gives to its stream.
    ReleaseDelayed { number: i64 },
    /// Removes a delayed message, which never comes.
    CancelDelayed { number: i64 },
    /// Writes a consumer's own row.
    KeepConsumer(Box<ConsumerRecord>),
    /// Removes a consumer's own row. The pieces of `progress` that name it are passed over.
    RemoveConsumer { consumer: u64 },
    /// Adds a row of `progress`: what all consumers did in this commit.
    AddProgress { row: u64, data: Vec<u8> },
    /// Removes the rows of `progress` below this one, which are part of consumers' own rows.
    DropProgress { below: u64 },
    /// Remembers what was answered to an idempotency key.
    KeepKey { stream: u32, key: Vec<u8>, row: KeyRow, time_ms: u64 },
    /// Remembers what a publishing session has had stored in a stream.
    KeepSession { stream: u32, session: Arc<[u8]>, row: SessionRow },
    /// Forgets the idempotency keys that came before `before`, in Unix milliseconds. The rows
    /// decide how many those are.
    ExpireKeys(RowExpiry),
    /// Forgets the sessions that were written before `before`, in hours of Unix time. The rows
    /// decide how many those are.
    ExpireSessions(RowExpiry),
    /// Forgets so many of the oldest keys of an owner, which has more than its share. The rows
    /// decide which those are.
    TrimKeys { owner: Arc<str>, rows: u64 },
    /// The same of publishing sessions.
    TrimSessions { owner: Arc<str>, rows: u64 },
    /// Notes what is known of the clock.
    SetClockMark(ClockMark),
    /// Remembers these steps ahead of the clock, and no others.
    SetClockSteps { steps: Vec<ClockStep> },
    /// Sets the times of keys and sessions right. The rows decide how many those are.
    RestampRows(RowRestamp),
    /// Keeps a rule of retention; there may be one of its pattern already.
    KeepRule(Box<RuleRow>),
    /// Removes the rule of a pattern.
    RemoveRule { pattern: String },
}

/// The known state of the time of day, in Unix milliseconds (spec/store.md §11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClockMark {
    /// The time that the clock said when a hub looked last.
    pub(crate) seen_ms: u64,
    /// The greatest time that was found to be ahead.
    pub(crate) ahead_ms: u64,
    /// When the clock was seen right after that.
    pub(crate) right_ms: u64,
}

/// A step ahead: the times from `since_ms` to `until_ms` are of a clock that was behind, and that
/// said `shown_ms` when it would have said `until_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockStep {
    pub(crate) since_ms: u64,
    pub(crate) until_ms: u64,
    pub(crate) shown_ms: u64,
}

/// Rows whose time lies from `from_ms` to `until_ms` get the time `to_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowRestamp {
    pub(crate) from_ms: u64,
    pub(crate) until_ms: u64,
    pub(crate) to_ms: u64,
    /// Rows of each kind that are set right at once.
    pub(crate) rows_max: u64,
}

impl RowRestamp {
    /// For rows that came while the clock was behind.
    pub(crate) fn of_step(step: &ClockStep) -> Self {
        let ClockStep { since_ms, until_ms, shown_ms } = *step;
        Self { from_ms: since_ms, until_ms, to_ms: shown_ms, rows_max: 0 }
    }

    /// For rows from a time that has not come yet.
    pub(crate) fn ahead_of(now_ms: u64) -> Self {
        Self { from_ms: now_ms + 1, until_ms: i64::MAX as u64, to_ms: now_ms, rows_max: 0 }
    }
}

/// A rule of retention for the streams whose topics a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleRow {
    pub(crate) pattern: String,
    pub(crate) retention: Retention,
    pub(crate) created_ms: u64,
    /// The token that made it; empty: none was needed.
    pub(crate) maker: String,
}

/// A number that the hub counts by, in `meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreCounter {
    /// The number of the next stream.
    Stream,
    /// The least generation of streams that are made from now on.
    Generation,
}

/// A stream that is made.
#[derive(Debug, Clone)]
pub(crate) struct NewStream {
    pub(crate) number: u32,
    pub(crate) topic: Topic,
    /// The owner of the share that it counts to; empty: nobody.
    pub(crate) owner: Arc<str>,
    pub(crate) settings: StreamSettings,
    pub(crate) created_ms: u64,
    /// The group whose keys open its messages; none: it is open.
    pub(crate) sealed: Option<GroupTag>,
    /// The generation that begins at offset 0.
    pub(crate) generation: u64,
}

/// How far a stream reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamExtent {
    pub(crate) stream: u32,
    /// The lowest offset that can be read.
    pub(crate) first: u64,
    /// Everything below is in the store.
    pub(crate) next: u64,
    /// Bytes at rest.
    pub(crate) bytes: u64,
}

/// A consumer, stored whole.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerRecord {
    pub(crate) number: u64,
    pub(crate) stream: u32,
    pub(crate) name: Arc<str>,
    /// The token that made it; empty: none was needed.
    pub(crate) owner: Arc<str>,
    pub(crate) settings: ConsumerSettings,
    /// Since when it is paused, in Unix milliseconds; 0: it is not.
    pub(crate) paused_ms: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) dead_dropped: u64,
    /// Rows of `progress` up to this one are part of `state`.
    pub(crate) since: u64,
    pub(crate) state: Vec<u8>,
}

/// Which rows are too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowExpiry {
    /// Rows from before are too old.
    pub(crate) before: u64,
    /// Rows that go at once.
    pub(crate) rows_max: u64,
}

/// Bytes of the log that a stream costs that is made or gains a block: the pages that it touches.
const STREAM_BYTES: u64 = 16 << 10;
/// The same of a consumer's own row.
const CONSUMER_BYTES: u64 = 4 << 10;
/// The same of a delayed message beside its body.
const DELAYED_BYTES: u64 = 64;
/// Bytes that the block may have which a purge makes shorter, unless a message is larger.
const CUT_BYTES: u64 = 512 << 10;

impl StoreCommit {
    pub(crate) fn push(&mut self, change: StoreChange) {
        self.changes.push(change);
    }

    /// About how many bytes it adds to the write-ahead log.
    pub(crate) fn bytes(&self) -> u64 {
        self.changes.iter().map(StoreChange::bytes).sum()
    }

    /// Takes out all that adds to the store; what removes stays. Returns the streams that are not
    /// made, or do not change their level.
    ///
    /// A full disk refuses what adds. What removes must go on then, since nothing else makes room.
    pub(crate) fn strip(&mut self) -> HashSet<u32> {
        let given_up = self.changes.iter().filter_map(|change| match change {
            StoreChange::MakeStream(new) => Some(new.number),
            // A `memory` stream was answered for messages that this commit no longer stores. If
            // its level rose without them, a crash would not begin a new generation.
            StoreChange::SetStream { stream, level: Some(_), .. } => Some(*stream),
            _ => None,
        });
        let given_up: HashSet<u32> = given_up.collect();
        self.changes.retain(|change| match change {
            StoreChange::SetStream { stream, .. } => !given_up.contains(stream),
            change => !change.adds(),
        });
        debug_assert!(self.holds_together());
        given_up
    }

    /// Whether the rules of every commit hold.
    pub(crate) fn holds_together(&self) -> bool {
        let mut removed = HashSet::new();
        let (mut made, mut trimmed) = (HashSet::new(), HashSet::new());
        let mut progress_rows = 0;
        for change in &self.changes {
            let is_new = match change {
                StoreChange::RemoveStream { stream } => removed.insert(*stream),
                StoreChange::MakeStream(new) => made.insert(new.number),
                // A purge and retention would each write an extent without the other's bytes.
                StoreChange::TrimStream { extent, .. } | StoreChange::PurgeStream(extent) => {
                    trimmed.insert(extent.stream)
                }
                StoreChange::AddProgress { .. } => {
                    progress_rows += 1;
                    progress_rows == 1
                }
                StoreChange::AddBlock { records, .. } => {
                    let follows = |pair: &[BlockRecord]| match pair {
                        [a, b] => a.offset + 1 == b.offset && a.time_ms <= b.time_ms,
                        _ => true,
                    };
                    !records.is_empty() && records.windows(2).all(follows)
                }
                _ => true,
            };
            if !is_new {
                return false;
            }
        }
        // A removed stream's gain would outlive it, and become a stranger's with its number.
        let mut gains = self.changes.iter().filter_map(StoreChange::gaining);
        gains.all(|stream| !removed.contains(&stream))
    }
}

impl StoreChange {
    /// Whether it adds to the store for somebody, who is told if it cannot be.
    fn adds(&self) -> bool {
        match self {
            StoreChange::Raise { counter, .. } => *counter == StoreCounter::Stream,
            StoreChange::MakeStream(_)
            | StoreChange::AddBlock { .. }
            | StoreChange::DelayMessages { .. }
            // The message would be in neither place: the block that it goes to is taken out.
            | StoreChange::ReleaseDelayed { .. }
            // A consumer's state may rest on dead letters, which are taken out, too.
            | StoreChange::KeepConsumer(_)
            | StoreChange::AddProgress { .. }
            | StoreChange::KeepKey { .. }
            | StoreChange::KeepSession { .. }
            | StoreChange::KeepRule(_) => true,
            StoreChange::SetStream { .. }
            | StoreChange::SetExtent(_)
            | StoreChange::RemoveStream { .. }
            | StoreChange::SweepStream { .. }
            | StoreChange::TrimStream { .. }
            | StoreChange::PurgeStream(_)
            | StoreChange::NoteDamage { .. }
            | StoreChange::CancelDelayed { .. }
            | StoreChange::RemoveConsumer { .. }
            | StoreChange::DropProgress { .. }
            | StoreChange::ExpireKeys(_)
            | StoreChange::ExpireSessions(_)
            | StoreChange::TrimKeys { .. }
            | StoreChange::TrimSessions { .. }
            | StoreChange::SetClockMark(_)
            | StoreChange::SetClockSteps { .. }
            | StoreChange::RestampRows(_)
            | StoreChange::RemoveRule { .. } => false,
        }
    }

    /// The stream that has more by it.
    fn gaining(&self) -> Option<u32> {
        match self {
            StoreChange::MakeStream(new) => Some(new.number),
            StoreChange::KeepConsumer(consumer) => Some(consumer.stream),
            StoreChange::SetStream { stream, .. }
            | StoreChange::AddBlock { stream, .. }
            | StoreChange::DelayMessages { stream, .. }
            | StoreChange::KeepKey { stream, .. }
            | StoreChange::KeepSession { stream, .. }
            | StoreChange::NoteDamage { stream, .. } => Some(*stream),
            _ => None,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            StoreChange::MakeStream(_) => STREAM_BYTES,
            StoreChange::AddBlock { records, .. } => STREAM_BYTES + stored_bytes(records),
            StoreChange::DelayMessages { records, .. } => {
                records.iter().map(|record| record.body.len() as u64 + DELAYED_BYTES).sum()
            }
            StoreChange::KeepConsumer(consumer) => consumer.state.len() as u64 + CONSUMER_BYTES,
            StoreChange::AddProgress { data, .. } => data.len() as u64,
            StoreChange::PurgeStream(_) => CUT_BYTES,
            StoreChange::KeepSession { row, .. } => row.bytes(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
