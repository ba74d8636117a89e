//! Room on the disk that is kept aside, so that what frees room always has some.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, FileControl};
use rustix::fs::{FallocateFlags, fallocate};

use super::{FolderLock, PAGE_BYTES, StoreFault};
use crate::checkpoint::CheckpointLog;
use crate::limits::{MAX_LOG_BYTES, MAX_STORE_CHUNK_BYTES, MIN_KEPT_ASIDE_BYTES};

/// The share of a disk that is kept aside for the log, and again for the database.
const KEPT_SHARE: u64 = 32;

/// Pages that a commit may add beside what it was estimated to.
const SPARE_PAGES: u64 = 16;

/// The unit of `st_blocks`, on every file system.
const BLOCK_BYTES: u64 = 512;

/// Blocks of the disk that belong to the database and its log before they are used.
///
/// The log is copied into the database by overwriting and by appending pages. Without room for the
/// appended ones the log cannot be copied and grows, and without room in the log nothing can be
/// removed either. So the database always owns blocks for all that a full log may append, and the
/// log owns its own: what frees room then never needs any.
///
/// SQLite cuts the database to its pages whenever it has copied the whole log, and blocks behind
/// the end of a file are given back by that. The blocks therefore lie within the file's size, and
/// SQLite cuts to whole chunks of a size that ends exactly there.
pub(crate) struct DiskRoom {
    /// The folder is another hub's to take when the last write is done. Has the database's file.
    lock: Arc<FolderLock>,
    log: PathBuf,
    /// The bytes kept aside for the log, and again for the database.
    kept_bytes: u64,
    /// The database's file reaches up to here, and owns all blocks before, as was measured last.
    owned_bytes: u64,
    /// Pages that may certainly still be added, half of what is kept left aside.
    free_pages: u64,
    /// With fewer pages more are asked for, if that holds nobody up.
    low_pages: u64,
    /// Whether the file system can set blocks aside.
    is_kept: bool,
    /// As on a file system whose files own nothing that was not written.
    #[cfg(test)]
    is_hollow: bool,
}

impl DiskRoom {
    /// Sets room aside in `folder`, as far as there is any.
    pub(crate) fn open(
        folder: &Path,
        lock: Arc<FolderLock>,
        connection: &Connection,
        log: &CheckpointLog,
    ) -> Result<Self, StoreFault> {
        let failed =
            |cause: io::Error| StoreFault::Failed(format!("{}: {cause}", folder.display()));
        let disk = rustix::fs::fstatvfs(&lock.store).map_err(|cause| failed(cause.into()))?;
        // A small disk cannot spare the whole bound of the log.
        let share = disk.f_blocks.saturating_mul(disk.f_frsize) / KEPT_SHARE;
        let kept_bytes = share.clamp(MIN_KEPT_ASIDE_BYTES, MAX_LOG_BYTES);
        let mut room = Self {
            lock,
            log: folder.join("streams.db-wal"),
            kept_bytes,
            owned_bytes: 0,
            free_pages: 0,
            low_pages: 0,
            is_kept: true,
            #[cfg(test)]
            is_hollow: false,
        };
        match room.fill_log() {
            // A full disk is no reason not to open a store: what is stored can be read and removed.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => return Err(failed(error)),
            _ => {}
        }
        room.free_pages = room.look(connection, log, 0)?;
        Ok(room)
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
    pub(crate) fn take(
        &mut self,
        connection: &Connection,
        log: &CheckpointLog,
        bytes: u64,
    ) -> Result<(), StoreFault> {
        let pages = bytes.div_ceil(PAGE_BYTES as u64) + SPARE_PAGES;
        if self.free_pages < pages {
            let _copying = log.copying.lock();
            self.free_pages = self.look(connection, log, pages)?;
        } else if self.free_pages < self.low_pages
            && let Some(_copying) = log.copying.try_lock()
        {
            // More is asked for ahead, while nobody copies the log: a commit that had to wait for
            // that would hold up everybody in it.
            self.free_pages = self.look(connection, log, pages)?;
            self.low_pages = self.low_pages.min(self.free_pages / 2);
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
    /// beyond what is kept aside. Takes blocks ahead where `wanted` is more. Nobody else may copy
    /// the log meanwhile, since that cuts the file.
    fn look(
        &mut self,
        connection: &Connection,
        log: &CheckpointLog,
        wanted: u64,
    ) -> Result<u64, StoreFault> {
        let ask = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let (pages, free) = (ask("page_count")? as u64, ask("freelist_count")? as u64);
        let page = PAGE_BYTES as u64;
        let used = pages * page + self.kept_bytes;
        let ahead = used + wanted.saturating_sub(free) * page;
        // Somebody else may have cut the file since, or copied it with holes.
        self.owned_bytes = self.measure();
        // A larger piece is asked for first, so that not every commit asks the file system.
        for end in [ahead + self.kept_bytes, ahead] {
            if self.owned_bytes >= ahead || !self.is_kept {
                break;
            }
            let (end, before) = (chunks(end).1, self.taken_bytes());
            match self.reach(end) {
                Ok(()) => {
                    self.owned_bytes = self.measure();
                    // Such as ZFS, which takes blocks when they are written, and others by then. A
                    // file that is longer than asked, with a hole at its end, is no such sign.
                    if end > before && self.taken_bytes() <= before {
                        self.give_up(&"it took no blocks of the disk");
                    }
                }
                Err(error) => self.note(&error),
            }
        }
        if self.is_kept {
            let size = self.lock.store.metadata().map_or(0, |found| found.len());
            set_chunk(connection, size)?;
            log.set_store_bytes(size);
        } else {
            // SQLite would cut the file to whole chunks, as large as the file was when it opened.
            set_chunk(connection, 0)?;
            log.set_store_bytes(0);
        }
        let left = self.owned_bytes.saturating_sub(used) / page;
        self.low_pages = left / 2;
        Ok(free + left)
    }

    /// The file's size, if it owns blocks for all of it; else nothing is certain.
    fn measure(&self) -> u64 {
        #[cfg(test)]
        if self.is_hollow {
            return 0;
        }
        let Ok(found) = self.lock.store.metadata() else { return 0 };
        let is_whole = found.blocks().saturating_mul(BLOCK_BYTES) >= found.len();
        if is_whole { found.len() } else { 0 }
    }

    /// The bytes of the blocks that the file has, wherever in it they are.
    fn taken_bytes(&self) -> u64 {
        #[cfg(test)]
        if self.is_hollow {
            return 0;
        }
        self.lock.store.metadata().map_or(0, |found| found.blocks().saturating_mul(BLOCK_BYTES))
    }

    /// Has the file reach up to `end` and own all blocks before.
    fn reach(&self, end: u64) -> io::Result<()> {
        // The file is looked at from where it is known to own everything: a walk over a large file
        // takes a while on some file systems.
        let from = self.owned_bytes;
        Ok(fallocate(&self.lock.store, FallocateFlags::empty(), from, end.saturating_sub(from))?)
    }

    fn note(&mut self, error: &io::Error) {
        if error.kind() != io::ErrorKind::StorageFull && self.is_kept {
            self.give_up(error);
        }
    }

    /// Sets nothing aside from now on. A full disk is then only noticed when a commit fails.
    fn give_up(&mut self, error: &dyn std::fmt::Display) {
        tracing::info!(%error, "this file system sets no room aside");
        self.is_kept = false;
    }
}

/// Has a connection leave the blocks of the database and of its log where they are: the log stays
/// when the last connection closes, and the database keeps its size when the log is copied.
pub(crate) fn keep_blocks(connection: &Connection, store_bytes: u64) -> Result<(), StoreFault> {
    // A log that was removed would have to be made again, for which a full disk has no room.
    connection.file_control(None::<&str>, FileControl::PersistWal(&mut 1))?;
    set_chunk(connection, store_bytes)
}

/// Has a connection cut the database to `store_bytes`, and never below.
pub(crate) fn set_chunk(connection: &Connection, store_bytes: u64) -> Result<(), StoreFault> {
    let mut chunk = i32::try_from(chunks(store_bytes).0).unwrap_or(0);
    Ok(connection.file_control(None::<&str>, FileControl::ChunkSize(&mut chunk))?)
}

/// A size of chunks of which the last one ends at about `bytes`, and where it ends. SQLite cuts a
/// file to whole chunks, so that a file whose pages end within the last chunk keeps all of it.
fn chunks(bytes: u64) -> (u64, u64) {
    let count = bytes.div_ceil(MAX_STORE_CHUNK_BYTES).max(1);
    let chunk = bytes.div_ceil(count).next_multiple_of(PAGE_BYTES as u64);
    (chunk, chunk * count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema::open;

    /// ZFS takes the call and no blocks. An empty disk must not look full by that.
    #[test]
    fn where_nothing_is_set_aside_messages_are_taken_and_the_file_ends_with_its_pages() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(folder.path(), 7_000).unwrap();
        let log = CheckpointLog::default();
        let mut room =
            DiskRoom::open(folder.path(), opened.lock.clone(), &opened.connection, &log).unwrap();
        room.is_hollow = true;
        room.free_pages = 0;
        assert_eq!(room.take(&opened.connection, &log, 1 << 20), Ok(()));
        assert!(!room.is_kept);
        assert_eq!(log.store_bytes(), 0);
        let ask = |pragma| {
            opened.connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).unwrap()
        };
        opened.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        opened.connection.execute("INSERT INTO meta VALUES ('x', 1)", []).unwrap();
        opened.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        let size = std::fs::metadata(folder.path().join("streams.db")).unwrap().len();
        assert_eq!(size, (ask("page_count") * PAGE_BYTES) as u64);
    }

    #[test]
    fn chunks_end_where_the_file_does_and_none_is_too_long_for_sqlite() {
        const MIB: u64 = 1 << 20;
        for mib in [1, 3, 64, 1023, 1024, 1025, 2047, 5000, 400_000] {
            let (chunk, end) = chunks(mib * MIB);
            assert!(i32::try_from(chunk).is_ok(), "{mib} MiB");
            let count = end / chunk;
            assert!(end >= mib * MIB && end - mib * MIB <= count * 8192, "{mib} MiB: {end}");
            assert_eq!(chunks(end), (chunk, end), "{mib} MiB");
            // The pages end before, by no more than what is kept aside and taken ahead.
            let pages_end = end.saturating_sub(3 * MAX_LOG_BYTES).max(1);
            assert_eq!(pages_end.div_ceil(chunk) * chunk, end, "{mib} MiB");
        }
    }
}
