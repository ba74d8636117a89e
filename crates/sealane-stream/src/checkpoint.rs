//! Copies SQLite's write-ahead log into the database beside the writer, so that the writer
//! itself only ever has a little left to copy.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::Error;
use crate::limits::{CHECKPOINT_LOOK_MS, STORE_NOTICE_MS};
use crate::store::{FolderLock, StoreFault, keep_blocks, set_chunk};

/// The log is copied each time it has grown by so much.
const COPY_EVERY_BYTES: u64 = 8 << 20;

/// The log, as the writer and whoever copies it share it.
#[derive(Default)]
pub(crate) struct CheckpointLog {
    /// Held by the one who copies.
    pub(crate) copying: Mutex<()>,
    has_grown: AtomicBool,
    copier: OnceLock<Thread>,
    /// The size that the database keeps when the log is copied.
    store_bytes: AtomicU64,
    /// When something was said of the store last.
    said: Mutex<Option<Instant>>,
}

impl CheckpointLog {
    /// Notes the size that the database keeps.
    pub(crate) fn set_store_bytes(&self, bytes: u64) {
        self.store_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The size that the database keeps.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.store_bytes.load(Ordering::Relaxed)
    }

    /// Whether a line may be said of the store, which is then said: on a full disk each line takes
    /// room, and the same is found many times a second.
    pub(crate) fn may_say(&self) -> bool {
        let mut said = self.said.lock();
        let pause = Duration::from_millis(STORE_NOTICE_MS);
        let is_due = said.is_none_or(|said| said.elapsed() >= pause);
        if is_due {
            *said = Some(Instant::now());
        }
        is_due
    }

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
    /// Behind the connection, which closes first: no other hub comes while the log is copied.
    _lock: Arc<FolderLock>,
}

impl LogCheckpointer {
    pub(crate) fn new(
        folder: &Path,
        lock: Arc<FolderLock>,
        log: &CheckpointLog,
    ) -> Result<Self, StoreFault> {
        let connection = Connection::open(folder.join("streams.db"))?;
        // By itself SQLite would copy within a commit, and hold up all clients of that commit.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        keep_blocks(&connection, log.store_bytes())?;
        Ok(Self { connection, _lock: lock })
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
            if let Err(fault) = self.copy(log)
                && log.may_say()
            {
                tracing::warn!(error = %Error::from(fault), "the log could not be copied");
            }
        }
        // The last connection that closes cuts the file once more.
        if let Err(fault) = set_chunk(&self.connection, log.store_bytes()) {
            tracing::warn!(error = %Error::from(fault), "the database may lose its reserve");
        }
    }

    fn copy(&self, log: &CheckpointLog) -> Result<(), StoreFault> {
        // A connection that has copied the whole log cuts the database, and not below this.
        set_chunk(&self.connection, log.store_bytes())?;
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
    }
}
