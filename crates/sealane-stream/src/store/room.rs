//! Room on the disk that is kept aside, so that what frees room always has some.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::fs::{FallocateFlags, fallocate};

use super::{PAGE_BYTES, StoreFault};
use crate::limits::{MAX_LOG_BYTES, MIN_KEPT_ASIDE_BYTES};

/// The share of a disk that is kept aside for the log, and again for the database.
const KEPT_SHARE: u64 = 32;

/// Pages that a commit may add beside what it was estimated to.
const SPARE_PAGES: u64 = 16;

/// Blocks of the disk that belong to the database and its log before they are used.
///
/// The log is copied into the database by overwriting and by appending pages. Without room for the
/// appended ones the log cannot be copied and grows, and without room in the log nothing can be
/// removed either. So the database always owns blocks for all that a full log may append, and the
/// log owns its own: what frees room then never needs any.
pub(crate) struct DiskRoom {
    /// Held as long as SQLite has the file open: closing it would drop SQLite's locks.
    store: File,
    log: PathBuf,
    /// The bytes kept aside for the log, and again for the database.
    kept_bytes: u64,
    /// The database's file owns blocks up to here.
    owned_bytes: u64,
    /// Pages that may certainly still be added, half of what is kept left aside.
    free_pages: u64,
    /// Whether the file system can set blocks aside.
    is_kept: bool,
}

impl DiskRoom {
    /// Sets room aside in `folder`, as far as there is any.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join("streams.db");
        let store = OpenOptions::new().read(true).write(true).open(path)?;
        let disk = rustix::fs::fstatvfs(&store)?;
        // A small disk cannot spare the whole bound of the log.
        let share = disk.f_blocks.saturating_mul(disk.f_frsize) / KEPT_SHARE;
        let kept_bytes = share.clamp(MIN_KEPT_ASIDE_BYTES, MAX_LOG_BYTES);
        let room = Self {
            store,
            log: folder.join("streams.db-wal"),
            kept_bytes,
            owned_bytes: 0,
            free_pages: 0,
            is_kept: true,
        };
        match room.fill_log() {
            // A full disk is no reason not to open a store: what is stored can be read and removed.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => Err(error),
            _ => Ok(room),
        }
    }

    /// How long the log may become.
    pub(crate) fn log_bytes_max(&self) -> u64 {
        self.kept_bytes
    }

    /// Gives the log all its blocks, by writing zeros behind what is in it. SQLite takes zeros for
    /// the end of the log. A sync of bytes that are there already need not write where they are.
    /// Nobody else may write to the log meanwhile.
    fn fill_log(&self) -> io::Result<()> {
        let mut log = OpenOptions::new().append(true).open(&self.log)?;
        let size = log.metadata()?.len();
        // Zeros are written, since a hole would take room only when the disk may be full. SQLite
        // reads zeros as no log.
        io::copy(&mut io::repeat(0).take(self.kept_bytes.saturating_sub(size)), &mut log)?;
        Ok(())
    }

    /// Takes room for `bytes` more in the database.
    ///
    /// # Errors
    /// [`StoreFault::Full`] where there is none; what was kept aside for removing is not touched.
    pub(crate) fn take(&mut self, connection: &Connection, bytes: u64) -> Result<(), StoreFault> {
        let pages = bytes.div_ceil(PAGE_BYTES as u64) + SPARE_PAGES;
        if self.free_pages < pages {
            self.free_pages = self.look(connection, pages)?;
        }
        match self.free_pages.checked_sub(pages) {
            // This file system sets nothing aside. A full disk then shows at the commit.
            _ if !self.is_kept => Ok(()),
            Some(left) => {
                self.free_pages = left;
                Ok(())
            }
            None => Err(StoreFault::Full),
        }
    }

    /// Pages that may be added: those that the database has free, and those of blocks that it owns
    /// beyond what is kept aside. Takes blocks ahead where `wanted` is more.
    fn look(&mut self, connection: &Connection, wanted: u64) -> Result<u64, StoreFault> {
        let ask = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let (pages, free) = (ask("page_count")? as u64, ask("freelist_count")? as u64);
        let page = PAGE_BYTES as u64;
        let used = pages * page + self.kept_bytes;
        let ahead = used + wanted.saturating_sub(free) * page;
        // A larger piece is asked for first, so that not every commit asks the file system.
        for end in [ahead + self.kept_bytes, ahead] {
            if self.owned_bytes >= ahead || !self.is_kept {
                break;
            }
            match keep(&self.store, end) {
                Ok(()) => self.owned_bytes = end,
                Err(error) => self.note(&error),
            }
        }
        Ok(free + self.owned_bytes.saturating_sub(used) / page)
    }

    fn note(&mut self, error: &io::Error) {
        if error.kind() != io::ErrorKind::StorageFull && self.is_kept {
            // Without it a full disk is only noticed when a commit fails.
            tracing::info!(%error, "this file system sets no room aside");
            self.is_kept = false;
        }
    }
}

/// Gives `file` blocks up to `end`; its size stays.
fn keep(file: &File, end: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, 0, end)?)
}
