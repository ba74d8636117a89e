//! Copies SQLite's write-ahead log into the database beside the writer, so that the writer
//! itself only ever has a little left to copy.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::Error;
use crate::store::Fault;

/// The log is looked at so often.
const EVERY: Duration = Duration::from_millis(250);
/// The log is copied when this much of it may be new.
const GROWN_BYTES: u64 = 8 << 20;

pub(crate) struct Checkpointer {
    connection: Connection,
    log: PathBuf,
}

impl Checkpointer {
    pub(crate) fn new(folder: PathBuf) -> Result<Self, Fault> {
        let connection = Connection::open(folder.join("streams.db"))?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(Self { connection, log: folder.join("streams.db-wal") })
    }

    /// Works until `closing`; holds `copying` while it copies.
    pub(crate) fn run(self, closing: &AtomicBool, copying: &Mutex<()>) {
        let mut rest = 0;
        while !closing.load(Ordering::Relaxed) {
            // Whoever closes the hub does not wait for the next look.
            std::thread::park_timeout(EVERY);
            let size = std::fs::metadata(&self.log).map_or(0, |log| log.len());
            if size.abs_diff(rest) < GROWN_BYTES && size < GROWN_BYTES {
                continue;
            }
            let _copying = copying.lock();
            match self.copy() {
                Ok(()) => rest = size,
                Err(fault) => {
                    tracing::warn!(error = %Error::from(fault), "the log could not be copied");
                }
            }
        }
    }

    fn copy(&self) -> Result<(), Fault> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }
}
