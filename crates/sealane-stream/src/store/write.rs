use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use rusqlite::{Connection, OptionalExtension, params};

use super::opening::OpeningRows;
use super::{DiskRoom, FolderLock, PAGE_BYTES, StoreFault, key, last_key, offset_of};
use crate::block::{BlockRecord, write_record};
use crate::checkpoint::CheckpointLog;
use crate::limits::{MAX_STORE_RETRY_WAIT_MS, MAX_STORE_WAIT_MS};
use crate::shares::{ShareChanges, ShareKind};
use crate::{Level, Retention, StreamChange};

/// The writer's connection. Every call but [`StoreWrites::begin`], [`StoreWrites::commit`] and
/// those that look something up belongs into a transaction.
pub(crate) struct StoreWrites {
    pub(super) connection: Connection,
    synced: bool,
    buffer: BytesMut,
    /// Pages of the write-ahead log, as the last commit left it.
    log_pages: Arc<AtomicU64>,
    room: DiskRoom,
    /// The rows of the opening, until they stand.
    opening: Option<OpeningRows>,
    #[cfg(test)]
    pub(crate) trouble: super::trouble::PlannedTrouble,
}

/// The fields by which an idempotency key is found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StoredRequestKey {
    /// The token's and the client's key.
    pub(crate) key: Vec<u8>,
    /// A hash of the body that came with it.
    pub(crate) body: [u8; 16],
}

impl StoredRequestKey {
    /// The share that it counts for.
    pub(crate) fn share_kind(&self) -> ShareKind {
        // No token's name is so long as the length says that a key of a message begins with.
        let is_of_message = self.key.starts_with(&u32::MAX.to_le_bytes());
        if is_of_message { ShareKind::MessageKeys } else { ShareKind::Keys }
    }
}

/// The answer that an idempotency key got when it came first.
#[derive(Debug, Clone)]
pub(crate) struct KeyRow {
    pub(crate) body: Vec<u8>,
    pub(crate) generation: u64,
    pub(crate) offset: u64,
    pub(crate) due_ms: u64,
    pub(crate) ids: Vec<u8>,
    /// The owner of the share that it counts to; empty: nobody.
    pub(crate) owner: Arc<str>,
}

/// A message that is held back.
pub(crate) struct DelayedRow {
    pub(crate) number: i64,
    pub(crate) stream: u32,
    pub(crate) data: Vec<u8>,
}

/// The settings that a stream's owner chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamSettings {
    pub(crate) level: Level,
    pub(crate) retention: Retention,
    pub(crate) own_bounds: OwnBounds,
}

/// The bounds of a stream's retention that were set for this stream, and for no other. All others
/// are the hub's default, or of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OwnBounds {
    pub(crate) max_age: bool,
    pub(crate) max_count: bool,
    pub(crate) max_bytes: bool,
}

impl OwnBounds {
    /// As the column holds it.
    pub(super) fn bits(self) -> u8 {
        let Self { max_age, max_count, max_bytes } = self;
        u8::from(max_age) | u8::from(max_count) << 1 | u8::from(max_bytes) << 2
    }

    pub(super) fn from_bits(bits: u8) -> Self {
        let has = |bit| bits & bit != 0;
        Self { max_age: has(1), max_count: has(2), max_bytes: has(4) }
    }
}

impl StreamSettings {
    /// Takes what an owner changes.
    pub(crate) fn change(&mut self, change: StreamChange) {
        self.level = change.level.unwrap_or(self.level);
        if change.follow_rules {
            (self.retention, self.own_bounds) = Default::default();
        }
        let retention = &mut self.retention;
        retention.max_age_ms = change.max_age_ms.unwrap_or(retention.max_age_ms);
        retention.max_count = change.max_count.unwrap_or(retention.max_count);
        retention.max_bytes = change.max_bytes.unwrap_or(retention.max_bytes);
        let own = &mut self.own_bounds;
        own.max_age |= change.max_age_ms.is_some();
        own.max_count |= change.max_count.is_some();
        own.max_bytes |= change.max_bytes.is_some();
    }
}

/// The blocks that go off a stream's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrimmedBlocks {
    /// The last offset that was removed.
    pub(crate) last: u64,
    /// Bytes at rest.
    pub(crate) bytes: u64,
}

/// A block at the beginning of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldBlock {
    /// Its last offset.
    pub(crate) last: u64,
    /// The time of its last message.
    pub(crate) last_ms: u64,
    /// The clock's time when it was stored, where that is another one; else 0.
    pub(crate) stored_ms: u64,
    /// Bytes at rest.
    pub(crate) bytes: u64,
}

/// Blocks of a stream that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpiredBlocks {
    /// Where the last of them begins.
    pub(crate) through: u64,
    /// The last offset and the bytes that go with them.
    pub(crate) trimmed: TrimmedBlocks,
}

impl StoreWrites {
    pub(crate) fn new(
        mut connection: Connection,
        lock: Arc<FolderLock>,
        opening: Option<OpeningRows>,
        folder: &Path,
        log: &CheckpointLog,
    ) -> Result<Self, StoreFault> {
        // The default keeps 16 statements, fewer than a commit's changes use in turn.
        connection.set_prepared_statement_cache_capacity(64);
        let log_pages = Arc::new(AtomicU64::new(0));
        let counted = log_pages.clone();
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            counted.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        // The log is this connection's as long as the transaction lasts.
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let room = DiskRoom::open(folder, lock, &connection, log);
        connection.execute_batch("ROLLBACK")?;
        let room = room?;
        // A log that a long reader has made longer is cut to its bound when it begins anew.
        connection.pragma_update(None, "journal_size_limit", room.log_bytes_max())?;
        Ok(Self {
            connection,
            synced: true,
            buffer: BytesMut::new(),
            log_pages,
            room,
            opening,
            #[cfg(test)]
            trouble: Default::default(),
        })
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self) -> Result<(), StoreFault> {
        #[cfg(test)]
        if let Some(pages) = self.trouble.take_pages() {
            self.connection.pragma_update(None, "max_page_count", pages)?;
        }
        self.write_opening()?;
        self.run("BEGIN IMMEDIATE", [])
    }

    /// Writes the rows of an opening that found no room. `memory` messages are answered before
    /// their commit, and a commit of the level `os` is not synced: neither may come before the rows
    /// that say that the hub may have been killed.
    fn write_opening(&mut self) -> Result<(), StoreFault> {
        let Some(opening) = self.opening.take() else { return Ok(()) };
        let was_synced = self.synced;
        let written = self.set_sync(true).and_then(|()| {
            #[cfg(test)]
            self.trouble.statement()?;
            opening.write(&self.connection)
        });
        if written.is_err() {
            self.opening = Some(opening);
        }
        // Where this fails, the commit is synced more than it needs.
        self.set_sync(was_synced)?;
        written
    }

    pub(crate) fn commit(&mut self) -> Result<(), StoreFault> {
        self.run("COMMIT", [])?;
        #[cfg(test)]
        self.trouble.committed(self.synced);
        Ok(())
    }

    /// Says whether the next transaction is synced when it commits; not allowed within one.
    pub(crate) fn set_sync(&mut self, sync: bool) -> Result<(), StoreFault> {
        // The pragma costs a statement. Commits of one level follow each other.
        if sync != self.synced {
            let level = if sync { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.synced = sync;
        }
        Ok(())
    }

    /// Waits for less long while the store is held by somebody else, so that nobody's answer is
    /// held up by those before it.
    pub(crate) fn set_patient(&self, patient: bool) {
        // While the store fails, each wait is in vain and holds up clients that could be refused.
        let patience_ms = if patient { MAX_STORE_WAIT_MS } else { MAX_STORE_RETRY_WAIT_MS };
        if let Err(error) = self.connection.busy_timeout(Duration::from_millis(patience_ms)) {
            tracing::error!(%error, "the store's patience could not be set");
        }
    }

    pub(crate) fn rollback(&self) {
        // SQLite rolls back by itself after some faults. A second rollback would be an error.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }

    /// Takes room for so many bytes more, which a commit is going to add.
    pub(crate) fn take_room(&mut self, log: &CheckpointLog, bytes: u64) -> Result<(), StoreFault> {
        #[cfg(test)]
        self.trouble.room()?;
        self.room.take(&self.connection, log, bytes)
    }

    /// Bytes of the write-ahead log, and how many they may become.
    pub(crate) fn log(&self) -> (u64, u64) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        (pages * PAGE_BYTES as u64, self.room.log_bytes_max())
    }

    /// Stores `records`, whose offsets follow each other, as one block.
    pub(super) fn block(
        &mut self,
        stream: u32,
        generation: u64,
        records: &[BlockRecord],
        stored_ms: u64,
    ) -> Result<(), StoreFault> {
        #[cfg(test)]
        self.trouble.block()?;
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(()) };
        // SQLite copies what it is given. So one buffer serves all blocks, and keeps its memory.
        self.buffer.clear();
        records.iter().for_each(|record| write_record(stream, record, &mut self.buffer));
        self.run(
            "INSERT INTO block VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                key(stream, first.offset),
                generation,
                records.len(),
                last.time_ms,
                &self.buffer[..],
                stored_ms,
            ],
        )
    }

    /// Removes a stream. Its messages, keys and delayed messages belong to nobody from now on, and
    /// [`StoreWrites::sweep`] removes them little by little.
    pub(super) fn remove(&self, stream: u32) -> Result<(), StoreFault> {
        for table in ["generation", "damage", "consumer"] {
            self.run(&format!("DELETE FROM {table} WHERE stream = ?1"), [stream])?;
        }
        self.run("DELETE FROM stream WHERE number = ?1", [stream])?;
        // Blocks of a large stream go later, bit by bit. Until then the number must not be given
        // again.
        self.run("INSERT OR IGNORE INTO removed VALUES (?1)", [stream])
    }

    /// Removes up to `limit` rows that a removed stream has left; returns how many idempotency
    /// keys and sessions were among them, and whether nothing is left. Each look has an order:
    /// without one, two stores with the same rows might remove others.
    pub(super) fn sweep(
        &self,
        stream: u32,
        limit: u64,
        shares: &mut ShareChanges,
    ) -> Result<SweptRows, StoreFault> {
        let range = params![key(stream, 0), last_key(stream), (limit / 64).max(1)];
        let blocks = self.change(
            "DELETE FROM block WHERE key IN (SELECT key FROM block
             WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3)",
            range,
        )?;
        // Blocks are the large part, and one commit that removed all kinds would hold others up.
        if blocks > 0 {
            return Ok(SweptRows::default());
        }
        let keys = self.remove_owned(
            "DELETE FROM idempotency WHERE stream = ?1 AND key IN
             (SELECT key FROM idempotency WHERE stream = ?1 ORDER BY key LIMIT ?2)
             RETURNING owner",
            params![stream, limit],
            |owner| shares.remove_key(owner),
        )?;
        let delayed = self.remove_owned(
            "DELETE FROM delayed WHERE number IN
             (SELECT number FROM delayed WHERE stream = ?1 ORDER BY due_ms, number LIMIT ?2)
             RETURNING owner",
            params![stream, limit],
            |owner| shares.remove(owner, ShareKind::Delayed, 1),
        )?;
        let sessions = self.sweep_sessions(stream, limit, shares)?;
        let done = keys < limit && delayed < limit && sessions < limit;
        if done {
            self.run("DELETE FROM removed WHERE stream = ?1", [stream])?;
        }
        Ok(SweptRows { keys, sessions, done })
    }

    /// Streams that were removed and have left something.
    pub(crate) fn removed(&self) -> Result<Vec<u32>, StoreFault> {
        let mut query = self.connection.prepare_cached("SELECT stream FROM removed")?;
        let rows = query.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Stores what consumers did since their rows were written.
    pub(super) fn progress(&self, number: u64, data: &[u8]) -> Result<(), StoreFault> {
        self.run("INSERT INTO progress VALUES (?1, ?2)", params![number, data])
    }

    /// Removes the rows of `progress` below `number`, which are part of consumers' rows by now.
    pub(super) fn drop_progress(&self, number: u64) -> Result<(), StoreFault> {
        self.run("DELETE FROM progress WHERE number < ?1", [number])
    }

    /// Notes that the offsets `first..=last` cannot be read.
    pub(super) fn damage(
        &self,
        stream: u32,
        range: (u64, u64),
        now_ms: u64,
    ) -> Result<(), StoreFault> {
        self.run(
            "INSERT OR REPLACE INTO damage VALUES (?1, ?2, ?3, ?4)",
            params![stream, range.0, range.1, now_ms],
        )
    }

    /// The earlier answer to `key`.
    pub(crate) fn find_key(&self, stream: u32, key: &[u8]) -> Result<Option<KeyRow>, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let mut query = self.connection.prepare_cached(
            "SELECT body, generation, offset, due_ms, ids, owner FROM idempotency
             WHERE stream = ?1 AND key = ?2",
        )?;
        let row = query.query_row(params![stream, key], |row| {
            Ok(KeyRow {
                body: row.get(0)?,
                generation: row.get::<_, u64>(1)?,
                offset: row.get::<_, u64>(2)?,
                due_ms: row.get::<_, u64>(3)?,
                ids: row.get(4)?,
                owner: row.get_ref(5)?.as_str()?.into(),
            })
        });
        Ok(row.optional()?)
    }

    /// Remembers what was answered to a key; returns whether it had no row.
    pub(super) fn keep_key(
        &self,
        stream: u32,
        key: &[u8],
        row: &KeyRow,
        now_ms: u64,
    ) -> Result<bool, StoreFault> {
        let KeyRow { body, generation, offset, due_ms, ids, owner } = row;
        let made = self.change(
            "INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO NOTHING",
            params![stream, key, body, generation, offset, due_ms, ids, now_ms, &**owner],
        )?;
        if made == 0 {
            // The row stays its owner's: it was counted for that one.
            self.run(
                "UPDATE idempotency SET body = ?3, generation = ?4, offset = ?5, due_ms = ?6,
                     ids = ?7, time_ms = ?8 WHERE stream = ?1 AND key = ?2",
                params![stream, key, body, generation, offset, due_ms, ids, now_ms],
            )?;
        }
        Ok(made > 0)
    }

    /// How many idempotency keys there are.
    pub(crate) fn count_keys(&self) -> Result<u64, StoreFault> {
        self.number("SELECT count(*) FROM idempotency")
    }

    /// Forgets up to `limit` of the oldest keys that came before `before_ms`; returns how many.
    pub(super) fn drop_keys(
        &self,
        before_ms: u64,
        limit: u64,
        shares: &mut ShareChanges,
    ) -> Result<u64, StoreFault> {
        self.remove_owned(
            "DELETE FROM idempotency WHERE (stream, key) IN (SELECT stream, key
             FROM idempotency WHERE time_ms < ?1 ORDER BY time_ms LIMIT ?2) RETURNING owner",
            params![before_ms.min(i64::MAX as u64) as i64, limit as i64],
            |owner| shares.remove_key(owner),
        )
    }

    /// Holds a message back until `due_ms`.
    pub(super) fn delay(
        &mut self,
        stream: u32,
        due_ms: u64,
        owner: &str,
        record: &BlockRecord,
    ) -> Result<(), StoreFault> {
        self.buffer.clear();
        write_record(stream, record, &mut self.buffer);
        self.run(
            "INSERT INTO delayed (due_ms, stream, data, id, owner) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![due_ms, stream, &self.buffer[..], &record.id[..], owner],
        )
    }

    /// The delayed messages that are due at `now_ms`, oldest first, up to `limit` of them and about
    /// `max_bytes`; and when the next one behind them is due.
    pub(crate) fn delayed(
        &self,
        now_ms: u64,
        limit: usize,
        max_bytes: u64,
    ) -> Result<(Vec<DelayedRow>, Option<u64>), StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let mut query = self.connection.prepare_cached(
            "SELECT number, due_ms, stream, data FROM delayed ORDER BY due_ms, number",
        )?;
        let mut rows = query.query([])?;
        let (mut due, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let due_ms = row.get::<_, u64>(1)?;
            // The row that does not fit says when to come again, which would take a query of its
            // own.
            if due_ms > now_ms || due.len() >= limit || bytes > max_bytes {
                return Ok((due, Some(due_ms)));
            }
            let data: Vec<u8> = row.get(3)?;
            bytes += data.len() as u64;
            due.push(DelayedRow { number: row.get(0)?, stream: row.get(2)?, data });
        }
        Ok((due, None))
    }

    /// Ends the delay of a message; returns how many rows that were.
    pub(super) fn drop_delayed(
        &self,
        number: i64,
        shares: &mut ShareChanges,
    ) -> Result<u64, StoreFault> {
        let query = "DELETE FROM delayed WHERE number = ?1 RETURNING owner";
        self.remove_owned(query, [number], |owner| shares.remove(owner, ShareKind::Delayed, 1))
    }

    /// Blocks of `stream` that may go from its oldest on, at most `limit`, while `expired` says so
    /// of them.
    pub(crate) fn find_expired(
        &self,
        stream: u32,
        limit: usize,
        mut expired: impl FnMut(OldBlock) -> bool,
    ) -> Result<Option<ExpiredBlocks>, StoreFault> {
        let mut query = self.connection.prepare_cached(
            "SELECT key, count, last_ms, length(data), stored_ms FROM block
             WHERE key BETWEEN ?1 AND ?2
             ORDER BY key LIMIT ?3",
        )?;
        let range = params![key(stream, 0), last_key(stream), limit];
        let mut rows = query.query(range)?;
        let mut found = None::<ExpiredBlocks>;
        while let Some(row) = rows.next()? {
            let through = offset_of(row.get(0)?);
            let last = through + row.get::<_, u64>(1)? - 1;
            let size = row.get::<_, u64>(3)?;
            let (last_ms, stored_ms) = (row.get::<_, u64>(2)?, row.get::<_, u64>(4)?);
            if !expired(OldBlock { last, last_ms, stored_ms, bytes: size }) {
                break;
            }
            let bytes = found.map_or(0, |found| found.trimmed.bytes) + size;
            found = Some(ExpiredBlocks { through, trimmed: TrimmedBlocks { last, bytes } });
        }
        Ok(found)
    }

    /// Has several looks see the same rows. Each look by itself would take and give back a lock of
    /// the file, which costs more than the look.
    pub(crate) fn look<T>(
        &self,
        look: impl FnOnce() -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let _looking = self.connection.unchecked_transaction()?;
        look()
    }

    /// Copies the write-ahead log into the database, so that it begins anew; waits for those who
    /// read it where `wait` says so. Returns whether all of it was copied.
    pub(crate) fn checkpoint(&mut self, wait: bool) -> Result<bool, StoreFault> {
        // RESTART waits for readers, and lets the next commit begin the log anew. PASSIVE copies
        // what it can, and never waits.
        let mode = if wait { "RESTART" } else { "PASSIVE" };
        let query = format!("PRAGMA wal_checkpoint({mode})");
        let (busy, pages, copied) = self.connection.query_row(&query, [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })?;
        // Only a log that was copied whole begins anew. Its counted length would be wrong
        // otherwise.
        let whole = busy == 0 && pages == copied;
        if whole {
            self.log_pages.store(0, Ordering::Relaxed);
        }
        Ok(whole)
    }

    /// Notes that everything acknowledged is stored, and closes.
    pub(crate) fn close(self) -> Result<(), StoreFault> {
        // The mark says that nothing was lost. It must not be gone before that is on the disk.
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        // With a bound SQLite would empty the log that it leaves, and its blocks would be gone.
        self.connection.pragma_update(None, "journal_size_limit", -1)?;
        self.run("DELETE FROM meta WHERE name = 'running'", [])?;
        self.connection.close().map_err(|(_, error)| error.into())
    }

    pub(super) fn number(&self, query: &str) -> Result<u64, StoreFault> {
        let number: i64 = self.connection.query_row(query, [], |row| row.get(0))?;
        Ok(number as u64)
    }

    pub(super) fn run(&self, query: &str, params: impl rusqlite::Params) -> Result<(), StoreFault> {
        self.change(query, params).map(|_| ())
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) fn change(
        &self,
        query: &str,
        params: impl rusqlite::Params,
    ) -> Result<u64, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        Ok(self.connection.prepare_cached(query)?.execute(params)? as u64)
    }
}

/// The rows of a removed stream that one sweep has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SweptRows {
    pub(crate) keys: u64,
    pub(crate) sessions: u64,
    /// Whether nothing of the stream is left.
    pub(crate) done: bool,
}
