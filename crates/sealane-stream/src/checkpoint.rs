//! Copies SQLite's write-ahead log into the database beside the writer, so that the writer
//! itself only ever has a little left to copy.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::Error;
use crate::limits::CHECKPOINT_LOOK_MS;
use crate::store::StoreFault;

/// The log is copied each time it has grown by so much.
const COPY_EVERY_BYTES: u64 = 8 << 20;

/// The log, as the writer and whoever copies it share it.
#[derive(Default)]
pub(crate) struct CheckpointLog {
    /// Held by the one who copies.
    pub(crate) copying: Mutex<()>,
    has_grown: AtomicBool,
    copier: OnceLock<Thread>,
}

impl CheckpointLog {
    /// Notes that a commit has made the log longer, and has it copied where that is much.
    pub(crate) fn note(&self, before_bytes: u64, bytes: u64) {
        // The copier is woken once for each 8 MiB, and not for each commit.
        if bytes / COPY_EVERY_BYTES > before_bytes / COPY_EVERY_BYTES {
            self.has_grown.store(true, Ordering::Relaxed);
            self.copier.get().inspect(|copier| copier.unpark());
        }
    }
}

pub(crate) struct LogCheckpointer {
    connection: Connection,
}

impl LogCheckpointer {
    pub(crate) fn new(folder: &Path) -> Result<Self, StoreFault> {
        let connection = Connection::open(folder.join("streams.db"))?;
        // By itself SQLite would copy within a commit, and hold up all clients of that commit.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(Self { connection })
    }

    /// Works until `closing`.
    pub(crate) fn run(self, closing: &AtomicBool, log: &CheckpointLog) {
        // The thread is known before its first look, so that a commit in between finds it.
        log.copier.get_or_init(std::thread::current);
        while !closing.load(Ordering::Relaxed) {
            // The closing of the hub wakes this thread too.
            std::thread::park_timeout(Duration::from_millis(CHECKPOINT_LOOK_MS));
            if !log.has_grown.swap(false, Ordering::Relaxed) {
                continue;
            }
            let _copying = log.copying.lock();
            if let Err(fault) = self.copy() {
                tracing::warn!(error = %Error::from(fault), "the log could not be copied");
            }
        }
    }

    fn copy(&self) -> Result<(), StoreFault> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }
}
