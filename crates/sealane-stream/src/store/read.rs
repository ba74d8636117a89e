use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rusqlite::{Connection, OptionalExtension, params};
use sealane_message::Topic;
use sealane_protocol::{DelayedMessage, DelayedPlace};

use super::schema::open_for_reading;
use super::{FolderLock, StoreFault, key, last_key, offset_of};
use crate::block::{BlockOffsets, StreamBlock, read_block};

/// Connections for readers, as many as read at the same time.
pub(crate) struct StoreReads {
    folder: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// Behind the connections, which close first. None: the hub has closed.
    lock: RwLock<Option<Arc<FolderLock>>>,
}

impl StoreReads {
    pub(crate) fn new(folder: PathBuf, lock: Arc<FolderLock>) -> Self {
        Self { folder, idle: Mutex::new(Vec::new()), lock: RwLock::new(Some(lock)) }
    }

    /// Closes the connections, once those who read are done, and lets go of the folder. Blocks.
    pub(crate) fn close(&self) {
        let mut lock = self.lock.write();
        self.idle.lock().clear();
        *lock = None;
    }

    /// The block that holds `offset`, or the first one after it; `None` at the end. Blocks.
    pub(crate) fn block(
        &self,
        topic: &Topic,
        stream: u32,
        offset: u64,
    ) -> Result<Option<StreamBlock>, StoreFault> {
        self.with(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT key, generation, count, data FROM block WHERE key >= coalesce(
                     (SELECT CASE WHEN key + count > ?2 THEN key END FROM block
                      WHERE key >= ?1 AND key <= ?2 ORDER BY key DESC LIMIT 1), ?2)
                 AND key <= ?3 ORDER BY key LIMIT 1",
            )?;
            let range = params![key(stream, 0), key(stream, offset), last_key(stream)];
            let row = query.query_row(range, |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, i64>(2)?,
                    row.get::<_, Vec<u8>>(3)?,
                ))
            });
            Ok(row.optional()?.map(|(key, generation, count, data)| {
                let stored = BlockOffsets { first: offset_of(key), count: count as u64 };
                read_block(topic.clone(), stream, generation as u64, stored, data)
            }))
        })
    }

    /// The first offset in `offsets` of the first block whose last message is not older than
    /// `time_ms`; the end where all are older. Blocks.
    pub(crate) fn offset_at(
        &self,
        stream: u32,
        offsets: Range<u64>,
        time_ms: u64,
    ) -> Result<u64, StoreFault> {
        let (mut low, mut high) = (offsets.start, offsets.end);
        self.with(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT key, count, last_ms FROM block WHERE key >= ?1 AND key < ?2
                 ORDER BY key DESC LIMIT 1",
            )?;
            // Times never decrease along a stream, so the blocks can be searched by halves: all
            // below `low` are older, and the answer is at most `high`.
            while low < high {
                let middle = low + (high - low) / 2;
                let range = params![key(stream, 0), key(stream, middle) + 1];
                let found = query
                    .query_row(range, |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
                    })
                    .optional()?;
                match found {
                    Some((key, _, last)) if last as u64 >= time_ms => {
                        // `min` and `max` make the range shrink even where a damaged row overlaps
                        // another, so that the search ends.
                        high = offset_of(key).max(low).min(middle);
                    }
                    Some((key, count, _)) => {
                        low = (offset_of(key) + count as u64).max(middle + 1);
                    }
                    None => low = middle + 1,
                }
            }
            Ok(high)
        })
    }

    /// When each of these messages was stored; 0 for those that are not there. Blocks.
    ///
    /// The messages of a block were stored together.
    pub(crate) fn times_of(&self, stream: u32, offsets: &[u64]) -> Result<Vec<u64>, StoreFault> {
        self.with(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT last_ms FROM block WHERE key >= ?1 AND key <= ?2
                 ORDER BY key DESC LIMIT 1",
            )?;
            let mut time_of = |offset: &u64| {
                let range = [key(stream, 0), key(stream, *offset)];
                let found = query.query_row(range, |row| row.get::<_, u64>(0));
                Ok(found.optional()?.unwrap_or(0))
            };
            offsets.iter().map(&mut time_of).collect()
        })
    }

    /// Messages of a stream that are held back, in the order in which they come, behind `after`;
    /// up to `limit` of them, and the place of the last where there are more. Blocks.
    pub(crate) fn delayed(
        &self,
        stream: u32,
        after: DelayedPlace,
        limit: usize,
    ) -> Result<(Vec<DelayedMessage>, Option<DelayedPlace>), StoreFault> {
        self.with(|connection| {
            let mut query = connection.prepare_cached(
                "SELECT due_ms, number, id, length(data) FROM delayed
                 WHERE stream = ?1 AND (due_ms, number) > (?2, ?3)
                 ORDER BY due_ms, number LIMIT ?4",
            )?;
            let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            let (due_ms, number) = (whole(after.due_ms), whole(after.number));
            let mut rows = query.query(params![stream, due_ms, number, limit + 1])?;
            let (mut messages, mut last) = (Vec::new(), DelayedPlace::default());
            while let Some(row) = rows.next()? {
                if messages.len() == limit {
                    return Ok((messages, Some(last)));
                }
                last = DelayedPlace { due_ms: row.get(0)?, number: row.get(1)? };
                let id = String::from_utf8_lossy(&row.get::<_, Vec<u8>>(2)?).into_owned();
                messages.push(DelayedMessage { id, due_ms: last.due_ms, bytes: row.get(3)? });
            }
            Ok((messages, None))
        })
    }

    fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        // The closing waits for those who read.
        let lock = self.lock.read();
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            // Readers have connections of their own: WAL lets them read while the writer commits.
            None => open_for_reading(&self.folder)?,
        };
        let result = read(&connection);
        let mut idle = self.idle.lock();
        // A crowd of readers opens many connections. Keeping all would hold their files and caches
        // for ever.
        if idle.len() < 8 && lock.is_some() {
            idle.push(connection);
        }
        result
    }
}
