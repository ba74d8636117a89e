//! Copies SQLite's write-ahead log into the database beside the writer, so that the writer
//! itself only ever has a little left to copy.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::Error;
use crate::store::PAGE_BYTES;

/// The log is looked at so often.
const EVERY: Duration = Duration::from_millis(250);
/// The log is copied when this much of it may be new.
const GROWN_BYTES: u64 = 8 << 20;

pub(crate) struct Checkpointer {
    connection: Connection,
    log: PathBuf,
}

impl Checkpointer {
    pub(crate) fn new(folder: PathBuf) -> Result<Self, Error> {
        let connection = Connection::open(folder.join("streams.db"))?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(Self { connection, log: folder.join("streams.db-wal") })
    }

    /// Works until `closing`; notes in `log_bytes` how long the log is.
    pub(crate) fn run(self, closing: &AtomicBool, log_bytes: &AtomicU64) {
        let mut rest = 0;
        while !closing.load(Ordering::Relaxed) {
            std::thread::sleep(EVERY);
            let size = std::fs::metadata(&self.log).map_or(0, |log| log.len());
            if size.abs_diff(rest) < GROWN_BYTES && size < GROWN_BYTES {
                continue;
            }
            match self.copy() {
                Ok(bytes) => {
                    rest = size;
                    log_bytes.store(bytes, Ordering::Relaxed);
                }
                Err(error) => tracing::warn!(%error, "the log could not be copied"),
            }
        }
    }

    /// Returns the bytes of the log, copied or not, up to its last page: the file is longer where
    /// the log has begun anew.
    fn copy(&self) -> Result<u64, Error> {
        let query = "PRAGMA wal_checkpoint(PASSIVE)";
        let pages = self.connection.query_row(query, [], |row| row.get::<_, i64>(1))?;
        Ok((pages.max(0) * PAGE_BYTES) as u64)
    }
}
