//! The clock as a store knows it, and the times of its rows that are set right.

use rusqlite::{Connection, params};

use super::schema::read_number;
use super::{StoreFault, StoreWrites};
use crate::commit::{ClockMark, ClockStep, RowRestamp};

/// The unit of a session's time.
const HOUR_MS: u64 = 3_600_000;

/// The clock as the store knows it, and its steps ahead.
pub(super) fn read_clock(
    connection: &Connection,
) -> Result<(ClockMark, Vec<ClockStep>), StoreFault> {
    let mark = ClockMark {
        seen_ms: read_number(connection, "SELECT value FROM meta WHERE name = 'clock_seen'")?,
        ahead_ms: read_number(connection, "SELECT value FROM meta WHERE name = 'clock_ahead'")?,
        right_ms: read_number(connection, "SELECT value FROM meta WHERE name = 'clock_right'")?,
    };
    let mut query = connection
        .prepare("SELECT since_ms, until_ms, shown_ms FROM clock_step ORDER BY shown_ms")?;
    let steps = query.query_map([], |row| {
        let (since_ms, until_ms, shown_ms) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(ClockStep { since_ms, until_ms, shown_ms })
    })?;
    let steps: Vec<ClockStep> = steps.collect::<Result<_, _>>()?;
    // A step that leads back would make ages out of nothing.
    Ok((mark, steps.into_iter().filter(|step| step.until_ms <= step.shown_ms).collect()))
}

impl StoreWrites {
    pub(super) fn set_clock(&self, mark: ClockMark) -> Result<(), StoreFault> {
        let ClockMark { seen_ms, ahead_ms, right_ms } = mark;
        self.run(
            "INSERT OR REPLACE INTO meta VALUES
             ('clock_seen', ?1), ('clock_ahead', ?2), ('clock_right', ?3)",
            params![seen_ms as i64, ahead_ms as i64, right_ms as i64],
        )
    }

    pub(super) fn set_clock_steps(&self, steps: &[ClockStep]) -> Result<(), StoreFault> {
        self.run("DELETE FROM clock_step", [])?;
        for ClockStep { since_ms, until_ms, shown_ms } in steps {
            let row = params![*since_ms as i64, *until_ms as i64, *shown_ms as i64];
            self.run("INSERT OR REPLACE INTO clock_step VALUES (?1, ?2, ?3)", row)?;
        }
        Ok(())
    }

    /// The latest time that a key or a session has.
    pub(crate) fn last_stamp_ms(&self) -> Result<u64, StoreFault> {
        let key = self.number("SELECT coalesce(max(time_ms), 0) FROM idempotency")?;
        let hour = self.number("SELECT coalesce(max(hour), 0) FROM session")?;
        Ok(key.max(hour.saturating_mul(HOUR_MS)))
    }

    /// Sets the times of some keys and sessions right; returns how many rows those were of the kind
    /// that had more.
    pub(super) fn restamp(&self, restamp: RowRestamp) -> Result<u64, StoreFault> {
        let RowRestamp { from_ms, until_ms, to_ms, rows_max } = restamp;
        let keys = self.change(
            "UPDATE idempotency SET time_ms = ?3 WHERE (stream, key) IN (SELECT stream, key
             FROM idempotency WHERE time_ms BETWEEN ?1 AND ?2 ORDER BY time_ms LIMIT ?4)",
            params![from_ms as i64, until_ms as i64, to_ms as i64, rows_max as i64],
        )?;
        // An hour that has begun by the right clock is none of the future. A clock that was behind
        // has begun in the middle of an hour, whose sessions are all of it.
        let is_ahead = until_ms == i64::MAX as u64;
        let from = if is_ahead { from_ms.div_ceil(HOUR_MS) } else { from_ms / HOUR_MS };
        let (until, to) = (until_ms / HOUR_MS, to_ms / HOUR_MS);
        let sessions = self.change(
            "UPDATE session SET hour = ?3 WHERE (stream, session) IN (SELECT stream, session
             FROM session WHERE hour BETWEEN ?1 AND ?2 AND hour <> ?3 ORDER BY hour LIMIT ?4)",
            params![from as i64, until as i64, to as i64, rows_max as i64],
        )?;
        Ok(keys.max(sessions))
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::open;
    use super::*;
    use crate::checkpoint::CheckpointLog;

    #[test]
    fn sessions_of_the_hour_in_which_a_hub_starts_become_younger_with_a_step_ahead() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(folder.path(), 7_000).unwrap();
        let log = CheckpointLog::default();
        let writes =
            StoreWrites::new(opened.connection, opened.lock, None, folder.path(), &log).unwrap();
        for hour in [99, 100, 101] {
            let row = "INSERT INTO session (stream, session, n, places, hour)
                 VALUES (1, CAST(?1 AS BLOB), 1, x'', ?1)";
            writes.run(row, [hour]).unwrap();
        }
        let hours = || -> Vec<u64> {
            let mut query =
                writes.connection.prepare("SELECT hour FROM session ORDER BY 1").unwrap();
            let hours = query.query_map([], |row| row.get(0)).unwrap();
            hours.collect::<Result<_, _>>().unwrap()
        };
        // The hub starts a quarter into hour 100, and an hour later the clock steps.
        let since_ms = 100 * HOUR_MS + HOUR_MS / 4;
        let (until_ms, shown_ms) = (since_ms + HOUR_MS, 500 * HOUR_MS);
        let step = RowRestamp::of_step(&ClockStep { since_ms, until_ms, shown_ms });
        let step = RowRestamp { rows_max: 10, ..step };
        assert_eq!(writes.restamp(step).unwrap(), 2);
        assert_eq!(hours(), [99, 500, 500]);
        // The hour of now is none of the future.
        let ahead = RowRestamp { rows_max: 10, ..RowRestamp::ahead_of(500 * HOUR_MS + 1) };
        assert_eq!(writes.restamp(ahead).unwrap(), 0);
    }
}
