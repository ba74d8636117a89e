use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use sealane_frame::GroupTag;
use sealane_message::Topic;

use super::clock::read_clock;
use super::identity::StoreId;
use super::lock::FolderLock;
use super::opening::OpeningRows;
use super::write::{OwnBounds, StreamSettings};
use super::{StoreFault, keep_blocks, key, last_key, migrate, offset_of};
use crate::commit::{ClockMark, ClockStep, RuleRow};
use crate::consumer::pieces;
use crate::limits::MAX_STORE_WAIT_MS;
use crate::{ConsumerSettings, Level, Retention};

/// The version of the data format; a store of a newer one is refused.
pub(super) const VERSION: i64 = 5;

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

/// A store as it was found.
pub(crate) struct OpenedStore {
    pub(crate) connection: Connection,
    /// Keeps others out of the folder for as long as it is held.
    pub(crate) lock: Arc<FolderLock>,
    /// The store's own name, which no copy of it shares.
    pub(crate) id: StoreId,
    /// The rows of the opening that found no room, to be written before the first transaction.
    pub(crate) opening: Option<OpeningRows>,
    pub(crate) streams: Vec<StreamRow>,
    /// The rules of retention, by pattern.
    pub(crate) rules: Vec<RuleRow>,
    pub(crate) next: StoreNext,
    /// The clock as the store knows it, and its steps ahead.
    pub(crate) clock: (ClockMark, Vec<ClockStep>),
}

/// The counters at which the hub goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreNext {
    /// No new stream has a generation below.
    pub(crate) generation: u64,
    /// The number of the next stream.
    pub(crate) stream: u32,
    /// The number of the next consumer.
    pub(crate) consumer: u64,
    /// The first row of `progress` that stands, or the next one.
    pub(crate) progress_first: u64,
    /// The next row of `progress`.
    pub(crate) progress: u64,
}

/// A stream as it was found.
pub(crate) struct StreamRow {
    pub(crate) number: u32,
    pub(crate) topic: Topic,
    /// The token that its share is counted for; empty: none was needed, or it is not known.
    pub(crate) owner: String,
    pub(crate) settings: StreamSettings,
    pub(crate) created_ms: u64,
    pub(crate) sealed: Option<GroupTag>,
    pub(crate) first: u64,
    pub(crate) next: u64,
    pub(crate) last_ms: u64,
    pub(crate) bytes: u64,
    /// (first offset, generation), ascending; the last one is being written.
    pub(crate) generations: Vec<(u64, u64)>,
    pub(crate) damaged: Vec<(u64, u64)>,
    /// Whether there are blocks below `first`.
    pub(crate) has_purged: bool,
    pub(crate) consumers: Vec<ConsumerRow>,
}

pub(crate) struct ConsumerRow {
    pub(crate) number: u64,
    pub(crate) name: String,
    /// The token that made it; empty: none was needed.
    pub(crate) owner: String,
    pub(crate) settings: ConsumerSettings,
    pub(crate) paused_ms: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) dead_dropped: u64,
    pub(crate) state: Vec<u8>,
    /// The changes since `state` was written.
    pub(crate) changes: ConsumerChanges,
}

/// The changes of a consumer since its row was written, a piece for each commit, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ConsumerChanges {
    pub(crate) pieces: Vec<Vec<u8>>,
    /// The row of `progress` that holds the first piece; 0: there is none.
    pub(crate) first: u64,
}

/// Opens or makes the store in `folder`, and gives streams whose acknowledged messages may have
/// been lost a new generation.
pub(crate) fn open(folder: &Path, now_ms: u64) -> Result<OpenedStore, StoreFault> {
    let path = folder.join("streams.db");
    open_file(folder, &path, now_ms).map_err(|fault| match fault {
        StoreFault::NotAStore(what) => StoreFault::NotAStore(format!("{}: {what}", path.display())),
        other => other,
    })
}

fn open_file(folder: &Path, path: &Path, now_ms: u64) -> Result<OpenedStore, StoreFault> {
    make_private(folder, path)?;
    let connection = Connection::open(path)?;
    // The lock is taken before the first pragma, which would already change a store in use.
    let lock = Arc::new(FolderLock::take(folder, path)?);
    connection.busy_timeout(std::time::Duration::from_millis(MAX_STORE_WAIT_MS))?;
    // Before anything is copied: an opening that fails would else give the reserve away.
    let size = std::fs::metadata(path).map_or(0, |found| found.len());
    keep_blocks(&connection, size)?;
    create(&connection)?;
    let mut streams = read_streams(&connection)?;
    let progress = read_progress(&connection, &mut streams)?;
    let opening = OpeningRows::find(&connection, path, &mut streams, now_ms)?;
    let rules = read_rules(&connection)?;
    let clock = read_clock(&connection)?;
    let next = StoreNext {
        generation: opening.generation,
        stream: read_number(&connection, "SELECT value FROM meta WHERE name = 'stream'")? as u32,
        consumer: 1 + read_number(
            &connection,
            "SELECT seq FROM sqlite_sequence WHERE name = 'consumer'",
        )?,
        progress_first: progress.0,
        progress: progress.1,
    };
    let id = opening.id();
    let opening = match opening.write(&connection) {
        Ok(()) => None,
        // A full disk is no reason not to open a store. They are written before the first commit.
        Err(StoreFault::Full) => Some(opening),
        Err(fault) => return Err(fault),
    };
    Ok(OpenedStore { connection, lock, id, opening, streams, rules, next, clock })
}

/// Makes the folder and the file for their owner alone: the bodies of open streams are in it. If
/// the owner has widened an existing folder by hand, it stays so. The file is made private again,
/// since no other user needs it.
fn make_private(folder: &Path, path: &Path) -> Result<(), StoreFault> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    let failed =
        |cause: std::io::Error| StoreFault::Failed(format!("{}: {cause}", folder.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let mut options = std::fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        // SQLite would make the file readable for others. Made here first, it never is.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            // SQLite gives its log and index the same mode.
            for end in ["", "-wal", "-shm"] {
                let mut file = path.as_os_str().to_owned();
                file.push(end);
                let private = std::fs::Permissions::from_mode(0o600);
                match std::fs::set_permissions(file, private) {
                    Err(error) if end.is_empty() => return Err(failed(error)),
                    _ => {}
                }
            }
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}

pub(super) fn read_number(connection: &Connection, query: &str) -> Result<u64, StoreFault> {
    let number: Option<i64> = connection.query_row(query, [], |row| row.get(0)).optional()?;
    Ok(number.unwrap_or_default() as u64)
}

/// Opens the store for reading beside its writer.
pub(super) fn open_for_reading(folder: &Path) -> Result<Connection, StoreFault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join("streams.db"), flags)?;
    connection.busy_timeout(std::time::Duration::from_millis(MAX_STORE_WAIT_MS))?;
    Ok(connection)
}

fn create(connection: &Connection) -> Result<(), StoreFault> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // A newer store may mean something else by the same tables. It is not even read.
    if version > VERSION {
        return Err(StoreFault::TooNew(version));
    }
    if version == 0 {
        // The page size counts only before the first table is written.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if version == 0 {
        let since = migrate::SINCE_2.concat();
        let all = format!("BEGIN; {SCHEMA} {since} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&all)?;
    } else if version < VERSION {
        migrate::run(connection, version)?;
    }
    Ok(())
}

fn read_streams(connection: &Connection) -> Result<Vec<StreamRow>, StoreFault> {
    let mut query = connection.prepare(
        "SELECT number, topic, level, created_ms, max_age_ms, max_count, max_bytes, first, next,
                bytes, sealed, owner, own_bounds FROM stream ORDER BY number",
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
        // A row without a topic is no damage of one message. The whole file is somebody else's.
        let mut stream = StreamRow {
            number,
            topic: topic
                .parse()
                .map_err(|_| StoreFault::NotAStore(format!("stream {number}: no topic")))?,
            owner: row.get(11)?,
            settings: StreamSettings {
                level: Level::from_id(row.get(2)?).unwrap_or_default(),
                retention,
                own_bounds: OwnBounds::from_bits(row.get(12)?),
            },
            created_ms: row.get::<_, u64>(3)?,
            sealed: row.get::<_, Option<[u8; 4]>>(10)?.map(GroupTag::from_bytes),
            first: row.get::<_, u64>(7)?,
            next: row.get::<_, u64>(8)?,
            last_ms: 0,
            bytes: row.get::<_, u64>(9)?,
            generations: read_pairs(connection, number, "first, generation FROM generation")?,
            damaged: read_pairs(connection, number, "first, last FROM damage")?,
            has_purged: false,
            consumers: read_consumers(connection, number)?,
        };
        read_extent(connection, &mut stream)?;
        streams.push(stream);
    }
    Ok(streams)
}

fn read_rules(connection: &Connection) -> Result<Vec<RuleRow>, StoreFault> {
    let mut query = connection.prepare(
        "SELECT pattern, max_age_ms, max_count, max_bytes, created_ms, maker FROM rule
         ORDER BY pattern",
    )?;
    let rows = query.query_map([], |row| {
        Ok(RuleRow {
            pattern: row.get(0)?,
            retention: Retention {
                max_age_ms: row.get::<_, i64>(1)? as u64,
                max_count: row.get::<_, i64>(2)? as u64,
                max_bytes: row.get::<_, i64>(3)? as u64,
            },
            created_ms: row.get::<_, u64>(4)?,
            maker: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The stream row is only brought up to date now and then; the blocks from its `next` on say the
/// rest.
fn read_extent(connection: &Connection, stream: &mut StreamRow) -> Result<(), StoreFault> {
    let (from, end) = (key(stream.number, stream.next), last_key(stream.number));
    let bytes: i64 = connection
        .prepare_cached(
            "SELECT coalesce(sum(length(data)), 0) FROM block WHERE key BETWEEN ?1 AND ?2",
        )?
        .query_row([from, end], |row| row.get(0))?;
    stream.bytes += bytes as u64;
    let purged = [key(stream.number, 0), key(stream.number, stream.first)];
    stream.has_purged = connection
        .prepare_cached("SELECT 1 FROM block WHERE key >= ?1 AND key < ?2 LIMIT 1")?
        .exists(purged)?;
    let last = connection
        .prepare_cached(
            "SELECT key, count, last_ms FROM block WHERE key BETWEEN ?1 AND ?2
             ORDER BY key DESC LIMIT 1",
        )?
        .query_row([key(stream.number, 0), end], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })
        .optional()?;
    if let Some((key, count, last_ms)) = last {
        // The stored `next` may be ahead, where retention removed all blocks. Offsets never go
        // back.
        stream.next = stream.next.max(offset_of(key) + count as u64);
        stream.last_ms = last_ms as u64;
    }
    Ok(())
}

fn read_pairs(
    connection: &Connection,
    stream: u32,
    what: &str,
) -> Result<Vec<(u64, u64)>, StoreFault> {
    let query = format!("SELECT {what} WHERE stream = ?1 ORDER BY 1, 2");
    let mut query = connection.prepare_cached(&query)?;
    let rows =
        query.query_map([stream], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_consumers(connection: &Connection, stream: u32) -> Result<Vec<ConsumerRow>, StoreFault> {
    let mut query = connection.prepare_cached(
        "SELECT number, name, owner, max_in_flight, ack_wait_ms, max_attempts, dead_lettered,
                dead_dropped, state, paused_ms FROM consumer WHERE stream = ?1",
    )?;
    let rows = query.query_map([stream], |row| {
        Ok(ConsumerRow {
            number: row.get::<_, u64>(0)?,
            name: row.get(1)?,
            owner: row.get(2)?,
            settings: ConsumerSettings {
                max_in_flight: row.get(3)?,
                ack_wait_ms: row.get::<_, u64>(4)?,
                max_attempts: row.get(5)?,
            },
            paused_ms: row.get::<_, u64>(9)?,
            dead_lettered: row.get::<_, u64>(6)?,
            dead_dropped: row.get::<_, u64>(7)?,
            state: row.get(8)?,
            changes: ConsumerChanges::default(),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Gives consumers what they did since their rows were written; returns the first row of
/// `progress` that stands and the number of the next one.
fn read_progress(
    connection: &Connection,
    streams: &mut [StreamRow],
) -> Result<(u64, u64), StoreFault> {
    let since = read_since(connection)?;
    let mut changes: HashMap<u64, ConsumerChanges> = HashMap::new();
    let (mut first, mut last) = (None, since.values().copied().max().unwrap_or_default());
    let mut query = connection.prepare("SELECT number, data FROM progress ORDER BY number")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (number, data) = (row.get::<_, u64>(0)?, row.get::<_, Vec<u8>>(1)?);
        first = first.or(Some(number));
        last = last.max(number);
        for (consumer, piece) in pieces(&data) {
            // A consumer that is gone has no row, and what its row holds already is passed over.
            if since.get(&consumer).is_some_and(|since| number > *since) {
                let changes = changes.entry(consumer).or_default();
                changes.first = if changes.pieces.is_empty() { number } else { changes.first };
                changes.pieces.push(piece.to_vec());
            }
        }
    }
    for consumer in streams.iter_mut().flat_map(|stream| &mut stream.consumers) {
        consumer.changes = changes.remove(&consumer.number).unwrap_or_default();
    }
    Ok((first.unwrap_or(last + 1), last + 1))
}

/// The last row of `progress` that each consumer's state holds.
fn read_since(connection: &Connection) -> Result<HashMap<u64, u64>, StoreFault> {
    let mut query = connection.prepare("SELECT number, since FROM consumer")?;
    let rows = query.query_map([], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_crash_new_streams_have_generations_that_no_lost_one_had() {
        let folder = tempfile::tempdir().unwrap();
        let floor = || open(folder.path(), 7_000).unwrap().next.generation;
        assert_eq!(floor(), 0, "a fresh store");
        assert_eq!(floor(), 68, "a stream may have been made in the minute from second 7 on");
        assert_eq!(floor(), 69, "a stream may have been made after the first crash");
    }

    #[test]
    fn after_a_crash_a_step_back_within_the_last_minute_repeats_no_generation() {
        let folder = tempfile::tempdir().unwrap();
        let floor = |now_ms| open(folder.path(), now_ms).unwrap().next.generation;
        assert_eq!(floor(1_000_000), 0, "a fresh store");
        // The clock went on to second 1,050, and no mark of that was stored. There a stream was
        // acknowledged that is lost. Then the clock was set back by 30 s.
        assert_eq!(floor(1_020_000), 1061);
        // A clock that is beyond the minute gives the generation alone.
        assert_eq!(floor(1_200_000), 1201);
    }
}
