use std::fs::File;

use bytes::BytesMut;
use rusqlite::{Connection, OptionalExtension, params};

use super::{PAGE_BYTES, key, offset_of};
use crate::block::{Record, write_record};
use crate::stream::Stream;
use crate::{ConsumerSettings, Error, Retention};

/// The writer's connection. Every call but [`Writes::begin`] and [`Writes::commit`] belongs into a
/// transaction.
pub(crate) struct Writes {
    connection: Connection,
    synced: bool,
    buffer: BytesMut,
    /// The folder is another hub's to take when the last write is done.
    _lock: File,
}

/// What an idempotency key is found by.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The token's and the client's key.
    pub(crate) key: Vec<u8>,
    /// A hash of the body that came with it.
    pub(crate) body: [u8; 16],
}

/// What was answered when an idempotency key came first.
pub(crate) struct KeyRow {
    pub(crate) body: Vec<u8>,
    pub(crate) generation: u64,
    pub(crate) offset: u64,
    pub(crate) due_ms: u64,
    pub(crate) ids: Vec<u8>,
}

/// A message that is held back.
pub(crate) struct DelayedRow {
    pub(crate) number: i64,
    pub(crate) stream: u32,
    pub(crate) data: Vec<u8>,
}

impl Writes {
    pub(crate) fn new(connection: Connection, lock: File) -> Self {
        connection.set_prepared_statement_cache_capacity(64);
        Self { connection, synced: true, buffer: BytesMut::new(), _lock: lock }
    }

    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.run("BEGIN IMMEDIATE", [])
    }

    pub(crate) fn commit(&self) -> Result<(), Error> {
        self.run("COMMIT", [])
    }

    /// Says whether the next transaction is synced when it commits; not allowed within one.
    pub(crate) fn set_sync(&mut self, sync: bool) -> Result<(), Error> {
        if sync != self.synced {
            let level = if sync { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.synced = sync;
        }
        Ok(())
    }

    pub(crate) fn rollback(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.run("ROLLBACK", [])
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }

    /// Stores `records`, whose offsets follow each other, as one block; returns about how many
    /// bytes the log gains: pages are written whole.
    pub(crate) fn block(
        &mut self,
        stream: u32,
        generation: u64,
        records: &[Record],
    ) -> Result<u64, Error> {
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(0) };
        self.buffer.clear();
        records.iter().for_each(|record| write_record(stream, record, &mut self.buffer));
        self.connection.prepare_cached("INSERT INTO block VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
            params![
                key(stream, first.offset),
                generation as i64,
                records.len() as i64,
                last.time_ms as i64,
                &self.buffer[..],
            ],
        )?;
        Ok(self.buffer.len() as u64 + PAGE_BYTES as u64)
    }

    /// Stores a stream's name and settings.
    pub(crate) fn stream(&self, stream: &Stream) -> Result<(), Error> {
        let state = stream.state.lock();
        self.run(
            "INSERT INTO stream VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (number) DO UPDATE SET level = ?3, max_age_ms = ?5, max_count = ?6,
                 max_bytes = ?7, first = ?8, next = ?9, bytes = ?10",
            params![
                stream.number,
                stream.topic.as_str(),
                state.level as u8,
                stream.created_ms as i64,
                state.retention.max_age_ms as i64,
                state.retention.max_count as i64,
                state.retention.max_bytes as i64,
                state.first as i64,
                state.next as i64,
                state.bytes as i64,
                stream.sealed.map(|group| group.to_bytes()),
            ],
        )?;
        for (first, generation) in &state.generations {
            self.run(
                "INSERT OR IGNORE INTO generation VALUES (?1, ?2, ?3)",
                params![stream.number, *first as i64, *generation as i64],
            )?;
        }
        Ok(())
    }

    /// Removes everything of a stream; no new one has a generation below `generation_floor`.
    pub(crate) fn remove(&self, stream: u32, generation_floor: u64) -> Result<(), Error> {
        self.run(
            "INSERT INTO meta VALUES ('generation', ?1)
             ON CONFLICT (name) DO UPDATE SET value = max(value, ?1)",
            [generation_floor as i64],
        )?;
        for table in ["generation", "damage", "consumer", "delayed", "idempotency"] {
            self.run(&format!("DELETE FROM {table} WHERE stream = ?1"), [stream])?;
        }
        self.run("DELETE FROM stream WHERE number = ?1", [stream])?;
        let range = params![key(stream, 0), key(stream + 1, 0)];
        self.run("DELETE FROM block WHERE key >= ?1 AND key < ?2", range)
    }

    /// Stores a consumer's settings and state.
    pub(crate) fn consumer(
        &self,
        stream: u32,
        name: &str,
        settings: &ConsumerSettings,
        dead_lettered: u64,
        state: &[u8],
    ) -> Result<(), Error> {
        self.run(
            "INSERT OR REPLACE INTO consumer VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                stream,
                name,
                settings.max_in_flight,
                settings.ack_wait_ms as i64,
                settings.max_attempts,
                dead_lettered as i64,
                state,
            ],
        )
    }

    /// Notes that the offsets `first..=last` cannot be read.
    pub(crate) fn damage(&self, stream: u32, range: (u64, u64), now_ms: u64) -> Result<(), Error> {
        self.run(
            "INSERT OR REPLACE INTO damage VALUES (?1, ?2, ?3, ?4)",
            params![stream, range.0 as i64, range.1 as i64, now_ms as i64],
        )
    }

    /// What was answered to `key` before.
    pub(crate) fn find_key(&self, stream: u32, key: &[u8]) -> Result<Option<KeyRow>, Error> {
        let mut query = self.connection.prepare_cached(
            "SELECT body, generation, offset, due_ms, ids FROM idempotency
             WHERE stream = ?1 AND key = ?2",
        )?;
        let row = query.query_row(params![stream, key], |row| {
            Ok(KeyRow {
                body: row.get(0)?,
                generation: row.get::<_, i64>(1)? as u64,
                offset: row.get::<_, i64>(2)? as u64,
                due_ms: row.get::<_, i64>(3)? as u64,
                ids: row.get(4)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Remembers what was answered to `key`.
    pub(crate) fn keep_key(
        &self,
        stream: u32,
        key: &Key,
        answer: (u64, u64, u64),
        ids: &[u8],
        now_ms: u64,
    ) -> Result<(), Error> {
        let (generation, offset, due_ms) = answer;
        self.run(
            "INSERT OR REPLACE INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                stream,
                key.key,
                &key.body[..],
                generation as i64,
                offset as i64,
                due_ms as i64,
                ids,
                now_ms as i64,
            ],
        )
    }

    /// How many idempotency keys there are.
    pub(crate) fn count_keys(&self) -> Result<u64, Error> {
        let count = self
            .connection
            .query_row("SELECT count(*) FROM idempotency", [], |row| row.get::<_, i64>(0));
        Ok(count? as u64)
    }

    /// Forgets up to `limit` of the oldest keys that came before `before_ms`; returns how many.
    pub(crate) fn drop_keys(&self, before_ms: u64, limit: u64) -> Result<u64, Error> {
        let count = self
            .connection
            .prepare_cached(
                "DELETE FROM idempotency WHERE (stream, key) IN (SELECT stream, key
                 FROM idempotency WHERE time_ms < ?1 ORDER BY time_ms LIMIT ?2)",
            )?
            .execute(params![before_ms.min(i64::MAX as u64) as i64, limit as i64])?;
        Ok(count as u64)
    }

    /// Holds a message back until `due_ms`.
    pub(crate) fn delay(&mut self, stream: u32, due_ms: u64, record: &Record) -> Result<(), Error> {
        self.buffer.clear();
        write_record(stream, record, &mut self.buffer);
        let row = params![due_ms as i64, stream, &self.buffer[..]];
        self.connection
            .prepare_cached("INSERT INTO delayed (due_ms, stream, data) VALUES (?1, ?2, ?3)")?
            .execute(row)?;
        Ok(())
    }

    /// When the next delayed message is due, and how many there are.
    pub(crate) fn next_delayed(&self) -> Result<(Option<u64>, u64), Error> {
        let query = "SELECT min(due_ms), count(*) FROM delayed";
        let row = self
            .connection
            .query_row(query, [], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?)));
        let (due, count) = row?;
        Ok((due.map(|due| due as u64), count as u64))
    }

    /// The delayed messages that are due, oldest first.
    pub(crate) fn due(&self, now_ms: u64, limit: usize) -> Result<Vec<DelayedRow>, Error> {
        let mut query = self.connection.prepare_cached(
            "SELECT number, stream, data FROM delayed WHERE due_ms <= ?1
             ORDER BY due_ms, number LIMIT ?2",
        )?;
        let rows = query.query_map(params![now_ms as i64, limit as i64], |row| {
            Ok(DelayedRow { number: row.get(0)?, stream: row.get(1)?, data: row.get(2)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(crate) fn drop_delayed(&self, number: i64) -> Result<(), Error> {
        self.run("DELETE FROM delayed WHERE number = ?1", [number])
    }

    /// Removes blocks of `stream` from its oldest on, at most `limit`, while `expired` says so of
    /// (last offset, last time, bytes). Returns the last offset removed, and the bytes.
    pub(crate) fn trim(
        &self,
        stream: u32,
        limit: usize,
        mut expired: impl FnMut(u64, u64, u64) -> bool,
    ) -> Result<Option<(u64, u64)>, Error> {
        let mut query = self.connection.prepare_cached(
            "SELECT key, count, last_ms, length(data) FROM block WHERE key >= ?1 AND key < ?2
             ORDER BY key LIMIT ?3",
        )?;
        let range = params![key(stream, 0), key(stream + 1, 0), limit as i64];
        let mut rows = query.query(range)?;
        let (mut last_key, mut last_offset, mut bytes) = (None, 0, 0);
        while let Some(row) = rows.next()? {
            let block: i64 = row.get(0)?;
            let last = offset_of(block) + row.get::<_, i64>(1)? as u64 - 1;
            let size = row.get::<_, i64>(3)? as u64;
            if !expired(last, row.get::<_, i64>(2)? as u64, size) {
                break;
            }
            (last_key, last_offset) = (Some(block), last);
            bytes += size;
        }
        drop(rows);
        let Some(last_key) = last_key else { return Ok(None) };
        let range = params![key(stream, 0), last_key];
        self.run("DELETE FROM block WHERE key >= ?1 AND key <= ?2", range)?;
        Ok(Some((last_offset, bytes)))
    }

    /// Forgets generations that ended before `first`.
    pub(crate) fn drop_generations(&self, stream: u32, before: u64) -> Result<(), Error> {
        let range = params![stream, before as i64];
        self.run("DELETE FROM generation WHERE stream = ?1 AND first < ?2", range)
    }

    /// Copies the write-ahead log into the database; returns its pages and how many were copied.
    pub(crate) fn checkpoint(&self) -> Result<(i64, i64), Error> {
        let row = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        Ok(row?)
    }

    /// Notes that everything acknowledged is stored, and closes.
    pub(crate) fn close(self) -> Result<(), Error> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.run("DELETE FROM meta WHERE name = 'running'", [])?;
        self.connection.close().map_err(|(_, error)| error.into())
    }

    fn run(&self, query: &str, params: impl rusqlite::Params) -> Result<(), Error> {
        self.connection.prepare_cached(query)?.execute(params)?;
        Ok(())
    }
}

impl Retention {
    /// Whether there is nothing to remove, ever.
    pub fn keeps_all(&self) -> bool {
        *self == Retention::default()
    }
}
