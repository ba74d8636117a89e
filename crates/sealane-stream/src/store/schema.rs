use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use sealane_frame::GroupTag;
use sealane_message::Topic;

use super::{key, offset_of};
use crate::{ConsumerSettings, Error, Level, Retention};

/// The version of the data format; a store of a newer one is refused.
pub(super) const VERSION: i64 = 2;

/// Bytes of a database page: larger than SQLite's default because blocks are, measured in
/// docs/decisions/0002-blocks-in-sqlite.md.
pub(crate) const PAGE_BYTES: i64 = 8192;

const SCHEMA: &str = "
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE stream (
    number     INTEGER PRIMARY KEY,
    topic      TEXT NOT NULL UNIQUE,
    level      INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    max_age_ms INTEGER NOT NULL,
    max_count  INTEGER NOT NULL,
    max_bytes  INTEGER NOT NULL,
    first      INTEGER NOT NULL,
    next       INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    sealed     BLOB CHECK (length(sealed) = 4)
) STRICT;

CREATE TABLE generation (
    stream     INTEGER NOT NULL,
    first      INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (stream, first, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE block (
    key        INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    last_ms    INTEGER NOT NULL,
    data       BLOB NOT NULL
) STRICT;

CREATE TABLE damage (
    stream   INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    found_ms INTEGER NOT NULL,
    PRIMARY KEY (stream, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE consumer (
    stream        INTEGER NOT NULL,
    name          TEXT NOT NULL,
    max_in_flight INTEGER NOT NULL,
    ack_wait_ms   INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    dead_lettered INTEGER NOT NULL,
    state         BLOB NOT NULL,
    PRIMARY KEY (stream, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE delayed (
    number INTEGER PRIMARY KEY,
    due_ms INTEGER NOT NULL,
    stream INTEGER NOT NULL,
    data   BLOB NOT NULL
) STRICT;
CREATE INDEX delayed_due ON delayed (due_ms);

CREATE TABLE idempotency (
    stream     INTEGER NOT NULL,
    key        BLOB NOT NULL,
    body       BLOB NOT NULL,
    generation INTEGER NOT NULL,
    offset     INTEGER NOT NULL,
    due_ms     INTEGER NOT NULL,
    ids        BLOB NOT NULL,
    time_ms    INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_time ON idempotency (time_ms);
";

/// What each earlier version lacks: the first is what brings version 1 to version 2.
const MIGRATIONS: [&str; VERSION as usize - 1] =
    ["ALTER TABLE stream ADD COLUMN sealed BLOB CHECK (length(sealed) = 4)"];

/// A store as it was found.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    /// Keeps others out of the folder for as long as it is held.
    pub(crate) lock: File,
    pub(crate) streams: Vec<StreamRow>,
    /// No new stream has a generation below.
    pub(crate) generation_floor: u64,
}

/// A stream as it was found.
pub(crate) struct StreamRow {
    pub(crate) number: u32,
    pub(crate) topic: Topic,
    pub(crate) level: Level,
    pub(crate) created_ms: u64,
    pub(crate) retention: Retention,
    pub(crate) sealed: Option<GroupTag>,
    pub(crate) first: u64,
    pub(crate) next: u64,
    pub(crate) last_ms: u64,
    pub(crate) bytes: u64,
    /// (first offset, generation), ascending; the last one is being written.
    pub(crate) generations: Vec<(u64, u64)>,
    pub(crate) damaged: Vec<(u64, u64)>,
    pub(crate) consumers: Vec<ConsumerRow>,
}

pub(crate) struct ConsumerRow {
    pub(crate) name: String,
    pub(crate) settings: ConsumerSettings,
    pub(crate) dead_lettered: u64,
    pub(crate) state: Vec<u8>,
}

/// Opens or makes the store in `folder`, and gives streams whose acknowledged messages may have
/// been lost a new generation.
pub(crate) fn open(folder: &Path, now_ms: u64) -> Result<Opened, Error> {
    let failed =
        |cause: std::io::Error| Error::StorageFailed(format!("{}: {cause}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join("streams.db");
    let connection = Connection::open(&path)?;
    let lock = lock(&connection, folder)?;
    create(&connection)?;
    let place = place(&path);
    let mut streams = read_streams(&connection)?;
    renew_generations(&connection, &mut streams, &place, now_ms)?;
    let floor: Option<i64> = connection
        .query_row("SELECT value FROM meta WHERE name = 'generation'", [], |row| row.get(0))
        .optional()?;
    let generation_floor = floor.unwrap_or_default() as u64;
    Ok(Opened { connection, lock, streams, generation_floor })
}

/// Opens the store for reading beside its writer.
pub(super) fn open_for_reading(folder: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join("streams.db"), flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// Takes the folder for this hub: SQLite would let two hubs share the file, and each would give
/// out offsets of its own. A killed process leaves no lock behind.
fn lock(connection: &Connection, folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let failed =
        |cause: std::io::Error| Error::StorageFailed(format!("{}: {cause}", path.display()));
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let cause = format!("{}: another node uses this folder", folder.display());
            return Err(Error::StorageFailed(cause));
        }
        Err(std::fs::TryLockError::Error(cause)) => return Err(failed(cause)),
    }
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(file)
}

fn create(connection: &Connection) -> Result<(), Error> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > VERSION {
        let cause = format!("the data format is {version}, this program knows up to {VERSION}");
        return Err(Error::StorageFailed(cause));
    }
    if version == 0 {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if version == 0 {
        let all = format!("BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&all)?;
    } else if version < VERSION {
        migrate(connection, version)?;
    }
    Ok(())
}

/// Brings a store of an earlier version to this one, all or nothing.
fn migrate(connection: &Connection, version: i64) -> Result<(), Error> {
    let transaction = connection.unchecked_transaction()?;
    for step in MIGRATIONS.iter().skip(usize::try_from(version - 1).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    tracing::info!(from = version, to = VERSION, "the store was brought to this version");
    Ok(())
}

fn read_streams(connection: &Connection) -> Result<Vec<StreamRow>, Error> {
    let mut query = connection.prepare(
        "SELECT number, topic, level, created_ms, max_age_ms, max_count, max_bytes, first, next,
                bytes, sealed FROM stream ORDER BY number",
    )?;
    let mut rows = query.query([])?;
    let mut streams = Vec::new();
    while let Some(row) = rows.next()? {
        let number: u32 = row.get(0)?;
        let topic: String = row.get(1)?;
        let retention = Retention {
            max_age_ms: row.get::<_, i64>(4)? as u64,
            max_count: row.get::<_, i64>(5)? as u64,
            max_bytes: row.get::<_, i64>(6)? as u64,
        };
        let mut stream = StreamRow {
            number,
            topic: topic.parse()?,
            level: Level::from_id(row.get(2)?).unwrap_or_default(),
            created_ms: row.get::<_, i64>(3)? as u64,
            retention,
            sealed: row.get::<_, Option<[u8; 4]>>(10)?.map(GroupTag::from_bytes),
            first: row.get::<_, i64>(7)? as u64,
            next: row.get::<_, i64>(8)? as u64,
            last_ms: 0,
            bytes: row.get::<_, i64>(9)? as u64,
            generations: read_pairs(connection, number, "first, generation FROM generation")?,
            damaged: read_pairs(connection, number, "first, last FROM damage")?,
            consumers: read_consumers(connection, number)?,
        };
        read_extent(connection, &mut stream)?;
        streams.push(stream);
    }
    Ok(streams)
}

/// The stream row is only brought up to date now and then; the blocks from its `next` on say the
/// rest.
fn read_extent(connection: &Connection, stream: &mut StreamRow) -> Result<(), Error> {
    let (from, end) = (key(stream.number, stream.next), key(stream.number + 1, 0));
    let bytes: i64 = connection
        .prepare_cached(
            "SELECT coalesce(sum(length(data)), 0) FROM block WHERE key >= ?1 AND key < ?2",
        )?
        .query_row([from, end], |row| row.get(0))?;
    stream.bytes += bytes as u64;
    let last = connection
        .prepare_cached(
            "SELECT key, count, last_ms FROM block WHERE key >= ?1 AND key < ?2
             ORDER BY key DESC LIMIT 1",
        )?
        .query_row([key(stream.number, 0), end], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })
        .optional()?;
    if let Some((key, count, last_ms)) = last {
        stream.next = stream.next.max(offset_of(key) + count as u64);
        stream.last_ms = last_ms as u64;
    }
    Ok(())
}

fn read_pairs(connection: &Connection, stream: u32, what: &str) -> Result<Vec<(u64, u64)>, Error> {
    let query = format!("SELECT {what} WHERE stream = ?1 ORDER BY 1, 2");
    let mut query = connection.prepare_cached(&query)?;
    let rows = query.query_map([stream], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_consumers(connection: &Connection, stream: u32) -> Result<Vec<ConsumerRow>, Error> {
    let mut query = connection.prepare_cached(
        "SELECT name, max_in_flight, ack_wait_ms, max_attempts, dead_lettered, state
         FROM consumer WHERE stream = ?1",
    )?;
    let rows = query.query_map([stream], |row| {
        Ok(ConsumerRow {
            name: row.get(0)?,
            settings: ConsumerSettings {
                max_in_flight: row.get(1)?,
                ack_wait_ms: row.get::<_, i64>(2)? as u64,
                max_attempts: row.get(3)?,
            },
            dead_lettered: row.get::<_, i64>(4)? as u64,
            state: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// After an unclean stop a `memory` stream may have lost what it acknowledged; an `os` stream
/// too, unless it can be shown that only the process ended: same boot, same file. In a copy, each
/// stream may lack what came after.
fn renew_generations(
    connection: &Connection,
    streams: &mut [StreamRow],
    place: &str,
    now_ms: u64,
) -> Result<(), Error> {
    let running: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE name = 'running'", [], |row| row.get(0))
        .optional()?;
    let transaction = connection.unchecked_transaction()?;
    let copied = transaction.execute("DELETE FROM meta WHERE name = 'copied'", [])? > 0;
    for stream in streams {
        let lost = match (&running, stream.level) {
            _ if copied => true,
            (None, _) | (_, Level::Disk) => false,
            (Some(before), Level::Os) => before != place,
            (Some(_), Level::Memory) => true,
        };
        if lost || stream.generations.is_empty() {
            let last = stream.generations.last().map_or(0, |(_, generation)| *generation);
            let generation = (now_ms / 1000).max(last + 1);
            transaction.execute(
                "INSERT INTO generation VALUES (?1, ?2, ?3)",
                params![stream.number, stream.next as i64, generation as i64],
            )?;
            stream.generations.push((stream.next, generation));
        }
    }
    if running.is_some() || copied {
        // A stream that was acknowledged and never stored may be made again within this second.
        transaction.execute(
            "INSERT INTO meta VALUES ('generation', ?1)
             ON CONFLICT (name) DO UPDATE SET value = max(value + 1, ?1)",
            [(now_ms / 1000 + 1) as i64],
        )?;
    }
    transaction.execute("INSERT OR REPLACE INTO meta VALUES ('running', ?1)", [place])?;
    transaction.commit()?;
    Ok(())
}

/// Names this boot of the system and this file: when both are as they were, whatever the system
/// had been given is still there.
fn place(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let file = std::fs::metadata(path).map(|m| (m.dev(), m.ino())).unwrap_or_default();
    if boot.is_empty() {
        // Nothing shows that the system did not restart: a place that never comes again.
        return format!("unknown at process {}", std::process::id());
    }
    format!("{} {} {}", boot.trim(), file.0, file.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_crash_new_streams_have_generations_that_no_lost_one_had() {
        let folder = tempfile::tempdir().unwrap();
        let floor = || open(folder.path(), 7_000).unwrap().generation_floor;
        assert_eq!(floor(), 0, "a fresh store");
        assert_eq!(floor(), 8, "a stream may have been made in second 7");
        assert_eq!(floor(), 9, "a stream may have been made after the first crash");
    }
}
