//! The rows that each opening of a store writes: that it is in use, and what an earlier end of it
//! has made necessary.
//!
//! They are found first and written afterwards. A full disk may have no room for them, and the
//! store opens all the same: nothing is acknowledged before they stand.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreFault;
use super::generation::NextGeneration;
use super::identity::{OpenedId, StoreId};
use super::schema::{StreamRow, read_number};
use crate::Level;

/// The rows of one opening.
pub(crate) struct OpeningRows {
    id: OpenedId,
    /// Names the boot and the file for the next opening.
    running_at: String,
    is_copy: bool,
    /// Streams that begin a new generation: number, first offset, generation.
    generations: Vec<(u32, u64, u64)>,
    /// No new stream has a generation below.
    pub(super) generation: u64,
    /// The time of day.
    now_ms: u64,
}

impl OpeningRows {
    /// Finds what is to be written, and gives `streams` their new generations.
    ///
    /// After an unclean stop a `memory` stream may have lost what it acknowledged; an `os` stream
    /// too, unless it can be shown that only the process ended: same boot, same file. In a copy,
    /// each stream may lack what came after.
    pub(super) fn find(
        connection: &Connection,
        path: &Path,
        streams: &mut [StreamRow],
        now_ms: u64,
    ) -> Result<Self, StoreFault> {
        let id = StoreId::of_opened(connection, path)?;
        let running_at = boot_and_file(path);
        let running: Option<String> = connection
            .query_row("SELECT value FROM meta WHERE name = 'running'", [], |row| row.get(0))
            .optional()?;
        let copied = "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'copied')";
        let is_copy: bool = connection.query_row(copied, [], |row| row.get(0))?;
        let next = NextGeneration::of_opened(now_ms, is_copy.then_some(id.id));
        let mut generations = Vec::new();
        for stream in streams.iter_mut() {
            let lost = match (&running, stream.settings.level) {
                // Messages after the copy exist elsewhere. Their offsets will be given again here,
                // to other messages.
                _ if is_copy => true,
                (None, _) | (_, Level::Disk) => false,
                (Some(before), Level::Os) => *before != running_at,
                (Some(_), Level::Memory) => true,
            };
            if lost || stream.generations.is_empty() {
                let last = stream.generations.last().map_or(0, |(_, generation)| *generation);
                // The clock alone could repeat a generation after it was set back.
                let generation = next.after(last);
                generations.push((stream.number, stream.next, generation));
                stream.generations.push((stream.next, generation));
            }
        }
        let before = "SELECT value FROM meta WHERE name = 'generation'";
        let mut generation = read_number(connection, before)?;
        if running.is_some() || is_copy {
            // A stream that was acknowledged and never stored may be made again within this second.
            generation = next.floor(connection, generation)?;
        }
        let of_streams = streams.iter().filter_map(|stream| stream.generations.last());
        next.tell(of_streams.map(|(_, newest)| *newest).fold(generation, u64::max));
        Ok(Self { id, running_at, is_copy, generations, generation, now_ms })
    }

    pub(super) fn id(&self) -> StoreId {
        self.id.id
    }

    /// Writes them in a transaction of their own.
    pub(super) fn write(&self, connection: &Connection) -> Result<(), StoreFault> {
        let transaction = connection.unchecked_transaction()?;
        self.add_to(&transaction)?;
        Ok(transaction.commit()?)
    }

    fn add_to(&self, connection: &Connection) -> Result<(), StoreFault> {
        self.id.write(connection)?;
        if self.is_copy {
            connection.execute("DELETE FROM meta WHERE name = 'copied'", [])?;
        }
        for (stream, first, generation) in &self.generations {
            let row = params![stream, first, generation];
            connection.execute("INSERT INTO generation VALUES (?1, ?2, ?3)", row)?;
        }
        if self.generation > 0 {
            let row = "INSERT OR REPLACE INTO meta VALUES ('generation', ?1)";
            connection.execute(row, [self.generation])?;
        }
        let row = "INSERT OR REPLACE INTO meta VALUES ('running', ?1), ('clock_opened', ?2)";
        connection.execute(row, params![self.running_at, self.now_ms])?;
        Ok(())
    }
}

/// Names this boot of the system and this file: when both are as they were, whatever the system
/// had been given is still there.
fn boot_and_file(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let file = std::fs::metadata(path).map(|m| (m.dev(), m.ino())).unwrap_or_default();
    if boot.is_empty() {
        // Nothing shows that the system did not restart: a name that never comes again.
        return format!("unknown at process {}", std::process::id());
    }
    format!("{} {} {}", boot.trim(), file.0, file.1)
}

#[cfg(test)]
mod tests {
    use super::super::StoreWrites;
    use super::super::schema::OpenedStore;
    use super::super::schema::open;
    use super::*;
    use crate::checkpoint::CheckpointLog;

    #[test]
    fn the_rows_of_an_opening_stand_before_anything_is_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("streams.db");
        let OpenedStore { connection, lock, mut streams, .. } = open(folder.path(), 7_000).unwrap();
        // As a full disk leaves it: the rows are known, and do not stand.
        connection.execute("DELETE FROM meta WHERE name = 'running'", []).unwrap();
        let rows = OpeningRows::find(&connection, &path, &mut streams, 7_000).unwrap();
        let log = CheckpointLog::default();
        let mut writes =
            StoreWrites::new(connection, lock, Some(rows), folder.path(), &log).unwrap();
        let other = Connection::open(&path).unwrap();
        let is_running = || {
            let query = "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'running')";
            other.query_row(query, [], |row| row.get::<_, bool>(0)).unwrap()
        };
        writes.set_sync(false).unwrap();
        writes.trouble.fail_at(1, StoreFault::Full, false);
        assert_eq!(writes.begin(), Err(StoreFault::Full));
        writes.rollback();
        assert!(!is_running());
        // `memory` messages are answered once this has succeeded, whatever becomes of the commit.
        writes.begin().unwrap();
        writes.rollback();
        assert!(is_running());
        let level = writes.connection.pragma_query_value(None, "synchronous", |row| row.get(0));
        assert_eq!(level, Ok(1_i64), "what follows is synced as it was");
    }
}
