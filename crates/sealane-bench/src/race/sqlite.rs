//! SQLite without a node around it: the floor of a store that is made of it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};

use super::heat::{LapEffort, LapSetup, RaceLap};
use crate::failure::Result;
use crate::load::again_and_again;
use crate::load::worker::WorkerOutcome;
use crate::process::folder;

/// The rows that a node stores of one commit to one stream: a block, and where the stream goes on.
const TABLES: &str = "
    CREATE TABLE stream (number INTEGER PRIMARY KEY, next INTEGER NOT NULL, bytes INTEGER NOT NULL);
    CREATE TABLE block (
        key        INTEGER PRIMARY KEY,
        generation INTEGER NOT NULL,
        count      INTEGER NOT NULL,
        last_ms    INTEGER NOT NULL,
        data       BLOB NOT NULL
    );
    INSERT INTO stream VALUES (1, 0, 0);
";

/// Stores groups of the same bodies, each with a commit that is synced.
pub(super) fn insert(track: &LapSetup<'_>, group: usize, effort: LapEffort) -> Result<RaceLap> {
    Ok(RaceLap::of_groups(plain(track.data, group, track.body, effort.each)?, group))
}

/// The same for a while, in groups of messages of `body` bytes.
pub(crate) fn plain(
    data: Option<&Path>,
    group: usize,
    body: usize,
    each: Duration,
) -> Result<WorkerOutcome> {
    let data = folder(data)?;
    let mut connection = Connection::open(data.path().join("plain.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(TABLES)?;
    let bodies = vec![b'x'; group * body];
    let (count, bytes) = (group as i64, bodies.len() as i64);
    let mut next: i64 = 0;
    let commit = || -> Result<()> {
        let transaction = connection.transaction()?;
        let block = "INSERT INTO block VALUES (?1, 1, ?2, 0, ?3)";
        transaction.prepare_cached(block)?.execute(params![next, count, bodies])?;
        let stream = "UPDATE stream SET next = next + ?1, bytes = bytes + ?2 WHERE number = 1";
        transaction.prepare_cached(stream)?.execute(params![count, bytes])?;
        transaction.commit()?;
        next += count;
        Ok(())
    };
    let seen = again_and_again(each, commit)?;
    Ok(WorkerOutcome { count: seen.count * group as u64, ..seen })
}
