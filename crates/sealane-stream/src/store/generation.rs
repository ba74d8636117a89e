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
        // The store learns of the time once a minute, while a hub commits.
        let seen = if of_clock(seen_ms) > self.now { seen_ms + CLOCK_MARK_MS } else { 0 };
        let last = before.max(of_clock(seen));
        Ok(if self.now < last { last + self.step } else { self.now + 1 })
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
}
