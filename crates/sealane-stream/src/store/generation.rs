//! The numbers of generations (spec/store.md): the time where it has come so far, and otherwise one
//! more than the last.
//!
//! A store that was used under a clock ahead has generations that run ahead of the clock. They
//! still rise and never repeat. They are told, since nobody can read the time from them.

use std::path::Path;

use rusqlite::Connection;

use super::StoreFault;
use super::backup::{STORE, known, no_store, unreadable};
use super::identity::StoreId;
use super::schema::{open_for_reading, read_number};
use crate::Error;
use crate::limits::{CLOCK_MARK_MS, MAX_CLOCK_GENERATION, MAX_COPY_STEP, MAX_GENERATION_AHEAD};

/// A store is ahead of its clock if it is so by more marks than this: the last one, and the one
/// that the kill before has added.
const NEAR_MARKS: u64 = 2;
/// The longest step of a copy of a store that is not ahead.
const NEAR_STEP: u64 = MAX_GENERATION_AHEAD / 2;

/// The generation that the time alone gives. 0 stands for no generation, and a clock beyond all
/// sense leaves room for those that follow.
pub(crate) fn of_clock(now_ms: u64) -> u64 {
    (now_ms / 1000).clamp(1, MAX_CLOCK_GENERATION)
}

/// How the generations of one opening follow those before it.
pub(super) struct NextGeneration {
    now: u64,
    /// How far the next one is from the last, where the time has not come so far.
    step: u64,
}

impl NextGeneration {
    /// The step of a copy is its own. The original goes on from the same number, by one: both would
    /// give the same generation, and one of its offsets would name two messages.
    pub(super) fn of_opened(now_ms: u64, copy: Option<StoreId>) -> Self {
        Self { now: of_clock(now_ms), step: copy.map_or(1, |id| 1 + id.drawn() % MAX_COPY_STEP) }
    }

    /// The generation after `last`.
    pub(super) fn after(&self, last: u64) -> u64 {
        if self.now > last { self.now } else { last.saturating_add(self.step) }
    }

    /// The least generation of streams that are made from now on, where a hub did not end cleanly.
    /// A stream may have been acknowledged and never stored, under a clock that was ahead.
    pub(super) fn floor(&self, connection: &Connection, before: u64) -> Result<u64, StoreFault> {
        let seen = "SELECT coalesce(max(value), 0) FROM meta
             WHERE name IN ('clock_opened', 'clock_seen', 'clock_ahead')";
        let seen_ms = read_number(connection, seen)?;
        // The store learns of the time once a minute, while a hub commits. A clock that is beyond
        // the last mark may have been set back all the same: within that minute nobody knows.
        let seen = if seen_ms > 0 { seen_ms.saturating_add(CLOCK_MARK_MS) } else { 0 };
        let last = before.max(of_clock(seen));
        let Some(ahead_s) = last.checked_sub(self.now).filter(|ahead_s| *ahead_s > 0) else {
            return Ok(self.now + 1);
        };
        // A copy that is opened within that minute is under no wrong clock. Its step stays within
        // half a day, so that it is not told to run ahead.
        let is_near = ahead_s <= NEAR_MARKS * CLOCK_MARK_MS / 1000;
        let step = if is_near { 1 + (self.step - 1) % NEAR_STEP } else { self.step };
        Ok(last + step)
    }

    /// Says so if the generations run ahead of the clock.
    pub(super) fn tell(&self, newest: u64) {
        let ahead_s = newest.saturating_sub(self.now);
        if ahead_s > MAX_GENERATION_AHEAD {
            tracing::warn!(
                ahead_s,
                "generations run ahead of the clock, which was ahead once: each is one more than \
                 the last, and none says when it began"
            );
        }
    }
}

/// The newest generation of a store, or the least that its next stream has; 0: there is none. A hub
/// may run on the store.
///
/// # Errors
/// [`Error::NoStore`], [`Error::NotAStore`], [`Error::StoreTooNew`], [`Error::StorageFailed`].
pub fn newest_generation(folder: &Path) -> Result<u64, Error> {
    let store = folder.join(STORE);
    if !store.is_file() {
        return Err(no_store(folder));
    }
    let connection = open_for_reading(folder)?;
    known(&connection, &store)?;
    let newest = "SELECT max(coalesce((SELECT max(generation) FROM generation), 0),
         coalesce((SELECT value FROM meta WHERE name = 'generation'), 0))";
    let newest = connection.query_row(newest, [], |row| row.get(0));
    newest.map_err(|error| unreadable(&store, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_the_time_or_one_more_than_the_last() {
        let next = NextGeneration::of_opened(5_000, None);
        assert_eq!([0, 3, 4, 5, 9].map(|last| next.after(last)), [5, 5, 5, 6, 10]);
        assert_eq!((of_clock(0), of_clock(999)), (1, 1), "0 stands for none");
        let room = (1 << 32) - MAX_CLOCK_GENERATION;
        assert_eq!(of_clock(u64::MAX), MAX_CLOCK_GENERATION);
        assert!(room >= 1 << 28, "room for those that follow: {room}");
    }

    #[test]
    fn a_copy_steps_far_only_where_its_clock_is_behind() {
        let connection = Connection::open_in_memory().unwrap();
        let meta = "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT;
             INSERT INTO meta VALUES ('clock_seen', 1000000)";
        connection.execute_batch(meta).unwrap();
        let floor = |now, step| NextGeneration { now, step }.floor(&connection, 0).unwrap();
        // Within the minute behind the mark the clock may have been anywhere.
        assert_eq!([1000, 1020, 1060, 1061].map(|now| floor(now, 1)), [1061, 1061, 1061, 1062]);
        let near = floor(1020, MAX_COPY_STEP);
        assert!((1061..1020 + MAX_GENERATION_AHEAD).contains(&near), "{near} is not told as ahead");
        assert_eq!(floor(7, MAX_COPY_STEP), 1060 + MAX_COPY_STEP);
    }
}
