//! Room on the disk that is kept aside, so that what frees room always has some.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, FileControl};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::{FolderLock, PAGE_BYTES, StoreFault, StoreWrites};
use crate::checkpoint::CheckpointLog;
use crate::limits::{MAX_LOG_BYTES, MAX_STORE_CHUNK_BYTES, MIN_KEPT_ASIDE_BYTES};

/// The share of a disk that is kept aside for the log, and again for the database.
const KEPT_SHARE: u64 = 32;

/// Pages that a commit may add beside what it was estimated to.
const SPARE_PAGES: u64 = 16;

/// The file that shows whether the file system gives blocks before they are written.
const TRIAL: &str = "streams.db-room";

/// The size of that file.
const TRIAL_BYTES: u64 = 256 << 10;

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
    folder: PathBuf,
    /// The bytes kept aside for the log, and again for the database.
    kept_bytes: u64,
    /// The database's file reaches up to here, and owns all blocks before, as was measured last.
    owned_bytes: u64,
    /// Pages that may certainly still be added, half of what is kept left aside.
    free_pages: u64,
    /// With fewer pages more are asked for, if that holds nobody up.
    low_pages: u64,
    /// Whether the file system sets blocks aside; nothing, as long as that is not found out.
    gives_blocks: Option<bool>,
    #[cfg(test)]
    trouble: RoomTrouble,
}

/// The answers of a file system, as a test plans them.
#[cfg(test)]
#[derive(Default)]
struct RoomTrouble {
    /// The errors of the next calls for blocks.
    errors: std::collections::VecDeque<Errno>,
    /// As where blocks are being moved: the count of a file's blocks is too low.
    is_miscounted: bool,
    /// As on a file system whose files own nothing that was not written.
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
            folder: folder.to_owned(),
            kept_bytes,
            owned_bytes: 0,
            free_pages: 0,
            low_pages: 0,
            gives_blocks: None,
            #[cfg(test)]
            trouble: RoomTrouble::default(),
        };
        match room.fill_log() {
            // A full disk is no reason not to open a store: what is stored can be read and removed.
            Err(error) if !is_full(&error) => return Err(failed(error)),
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
        let mut log = OpenOptions::new().append(true).open(self.folder.join("streams.db-wal"))?;
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
            _ if !self.is_kept() => Ok(()),
            Some(left) => {
                self.free_pages = left;
                Ok(())
            }
            None => Err(StoreFault::Full),
        }
    }

    /// Finds out whether `bytes` more can be written, and not only whether nothing speaks against
    /// it.
    ///
    /// # Errors
    /// [`StoreFault::Full`], [`StoreFault::Failed`].
    pub(crate) fn find(
        &mut self,
        connection: &Connection,
        log: &CheckpointLog,
        bytes: u64,
    ) -> Result<(), StoreFault> {
        self.take(connection, log, bytes)?;
        if self.is_kept() {
            return Ok(());
        }
        // Where no block is set aside, only bytes that were written and synced show that they fit.
        let written = self.with_trial(|file| {
            io::copy(&mut io::repeat(0).take(bytes), &mut &*file)?;
            file.sync_data()
        });
        written.map_err(|cause| match is_full(&cause) {
            true => StoreFault::Full,
            false => StoreFault::Failed(format!("{}: {cause}", self.folder.join(TRIAL).display())),
        })
    }

    /// Whether blocks are set aside, as far as that is known.
    fn is_kept(&self) -> bool {
        self.gives_blocks != Some(false)
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
        let size = self.lock.store.metadata().map_or(0, |found| found.len());
        // A larger piece is asked for first, so that not every commit asks the file system. It
        // covers the whole file, which SQLite may have made longer than the blocks that it has.
        for end in [(ahead + self.kept_bytes).max(size), ahead] {
            if self.owned_bytes >= ahead || !self.is_kept() {
                break;
            }
            let end = chunks(end).1;
            match self.reach(end) {
                Ok(()) => self.own(end),
                Err(error) => self.note(error, log),
            }
        }
        if self.is_kept() {
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

    /// The file's size, if it owns blocks for all of it; else nothing is certain. While the system
    /// writes the file back, the count may be too low for a moment.
    fn measure(&self) -> u64 {
        #[cfg(test)]
        if self.trouble.is_hollow || self.trouble.is_miscounted {
            return 0;
        }
        let Ok(found) = self.lock.store.metadata() else { return 0 };
        if owns_all(&found) { found.len() } else { 0 }
    }

    /// Has the file reach up to `end` and own all blocks before.
    fn reach(&mut self, end: u64) -> Result<(), Errno> {
        // The file is looked at from where it is known to own everything: a walk over a large file
        // takes a while on some file systems.
        let from = self.owned_bytes;
        let bytes = end.saturating_sub(from);
        loop {
            #[cfg(test)]
            let planned = self.trouble.errors.pop_front().map_or(Ok(()), Err);
            #[cfg(not(test))]
            let planned = Ok(());
            let called = planned
                .and_then(|()| fallocate(&self.lock.store, FallocateFlags::empty(), from, bytes));
            // A signal ends the call halfway, and says nothing of the file system.
            if called != Err(Errno::INTR) {
                return called;
            }
        }
    }

    /// The file system says that the file owns all blocks up to `end`.
    fn own(&mut self, end: u64) {
        if self.gives_blocks.is_none() {
            self.gives_blocks = self.try_blocks();
        }
        // Its word counts, and not the count of the file's blocks. Pages that the system writes
        // back at this moment, and the tree of the file's extents, move that count both ways.
        match self.gives_blocks {
            Some(false) => tracing::info!("this file system sets no room aside"),
            Some(true) | None => self.owned_bytes = end,
        }
    }

    /// Whether a file has blocks that it asked for and that nobody wrote. ZFS takes them when they
    /// are written, and others may have by then. A file of its own tells, since nobody else writes
    /// to it or cuts it meanwhile. Nothing, where there is no room to find out.
    fn try_blocks(&self) -> Option<bool> {
        #[cfg(test)]
        if self.trouble.is_hollow {
            return Some(false);
        }
        let found = self.with_trial(|file| {
            fallocate(file, FallocateFlags::empty(), 0, TRIAL_BYTES)?;
            file.metadata()
        });
        found.ok().map(|found| owns_all(&found))
    }

    /// Has `work` use an empty file on the disk of the store, which is gone afterwards.
    fn with_trial<T>(&self, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let path = self.folder.join(TRIAL);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let worked = work(&file);
        drop(file);
        fs::remove_file(path).and(worked)
    }

    /// The file system gave no more, or not all of it.
    fn note(&mut self, error: Errno, log: &CheckpointLog) {
        match error {
            // It may have given a part, up to where there was room.
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
                self.owned_bytes = self.owned_bytes.max(self.measure());
            }
            // It does not know the call, or a sandbox forbids it: a full disk is then only noticed
            // when a commit fails.
            Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM => {
                tracing::info!(%error, "this file system sets no room aside");
                self.gives_blocks = Some(false);
            }
            // That says nothing of the next call.
            _ if log.may_say() => tracing::warn!(%error, "no room could be set aside"),
            _ => {}
        }
    }
}

impl StoreWrites {
    /// Takes room for so many bytes more, which a commit is going to add.
    pub(crate) fn take_room(&mut self, log: &CheckpointLog, bytes: u64) -> Result<(), StoreFault> {
        #[cfg(test)]
        self.trouble.room(bytes)?;
        self.room.take(&self.connection, log, bytes)
    }

    /// Finds out whether so many bytes more are taken.
    pub(crate) fn find_room(&mut self, log: &CheckpointLog, bytes: u64) -> Result<(), StoreFault> {
        #[cfg(test)]
        self.trouble.room(bytes)?;
        self.room.find(&self.connection, log, bytes)
    }

    /// Shows that so many bytes more are taken: there is room for them, and a commit stands.
    pub(crate) fn prove_room(&mut self, log: &CheckpointLog, bytes: u64) -> Result<(), StoreFault> {
        self.find_room(log, bytes)?;
        self.set_sync(true)?;
        self.begin()?;
        // A row that is written as it was takes a page of the log, where a full disk shows first.
        self.run("UPDATE meta SET value = value WHERE name = 'running'", [])?;
        self.commit()
    }
}

/// Whether there is no room, be it for this hub alone.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether a file has blocks for all its bytes.
fn owns_all(found: &fs::Metadata) -> bool {
    found.blocks().saturating_mul(BLOCK_BYTES) >= found.len()
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
    use crate::store::schema::{OpenedStore, open};

    /// A store, and its room as it is before the first look of a commit.
    struct RoomScene {
        _folder: tempfile::TempDir,
        opened: OpenedStore,
        log: CheckpointLog,
        room: DiskRoom,
    }

    impl RoomScene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let (opened, log) = (open(folder.path(), 7_000).unwrap(), CheckpointLog::default());
            let lock = opened.lock.clone();
            let room = DiskRoom::open(folder.path(), lock, &opened.connection, &log).unwrap();
            let mut scene = Self { _folder: folder, opened, log, room };
            (scene.room.free_pages, scene.room.gives_blocks) = (0, None);
            scene
        }

        fn take(&mut self, bytes: u64) -> Result<(), StoreFault> {
            self.room.take(&self.opened.connection, &self.log, bytes)
        }

        /// A request that needs blocks which the file does not have.
        fn take_more(&mut self) -> Result<(), StoreFault> {
            let bytes = self.room.owned_bytes + (1 << 20);
            self.take(bytes)
        }
    }

    #[test]
    fn a_signal_during_a_call_says_nothing_of_the_file_system() {
        let mut scene = RoomScene::new();
        scene.room.trouble.errors.extend([Errno::INTR; 3]);
        assert_eq!(scene.take_more(), Ok(()));
        assert_eq!(scene.room.gives_blocks, Some(true));
        assert!(scene.room.trouble.errors.is_empty(), "the call was made again");
    }

    /// The system counts a file's blocks too low while it writes the file back.
    #[test]
    fn a_count_of_blocks_that_is_too_low_says_neither_full_nor_that_nothing_is_set_aside() {
        let mut scene = RoomScene::new();
        scene.room.trouble.is_miscounted = true;
        for _ in 0..3 {
            assert_eq!(scene.take_more(), Ok(()));
            assert!(scene.room.is_kept());
        }
    }

    #[test]
    fn a_file_that_is_longer_than_its_blocks_does_not_look_full() {
        let mut scene = RoomScene::new();
        let size = scene.room.owned_bytes + (9 << 20);
        scene.opened.lock.store.set_len(size).unwrap();
        assert_eq!(scene.take(100_000), Ok(()));
        assert!(scene.room.measure() >= size, "the hole at its end is filled");
    }

    #[test]
    fn a_disk_that_is_full_for_this_hub_alone_is_full_and_not_one_that_sets_nothing_aside() {
        for error in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::IO, Errno::NOMEM] {
            let mut scene = RoomScene::new();
            scene.room.trouble.errors.extend([error; 2]);
            assert_eq!(scene.take_more(), Err(StoreFault::Full), "{error}");
            assert!(scene.room.is_kept(), "{error}");
            assert_eq!(scene.take_more(), Ok(()), "{error}: there is room again");
        }
    }

    #[test]
    fn where_the_call_is_not_known_messages_are_taken() {
        for error in [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL, Errno::PERM] {
            let mut scene = RoomScene::new();
            scene.room.trouble.errors.extend([error; 1]);
            assert_eq!(scene.take_more(), Ok(()), "{error}");
            assert!(!scene.room.is_kept(), "{error}");
        }
    }

    /// Where no block can be set aside, a full disk must not look healthy for that.
    #[test]
    fn where_nothing_is_set_aside_room_is_found_by_writing() {
        let mut scene = RoomScene::new();
        scene.room.gives_blocks = Some(false);
        let find =
            |scene: &mut RoomScene| scene.room.find(&scene.opened.connection, &scene.log, 1 << 20);
        assert_eq!(find(&mut scene), Ok(()));
        let trial = scene.room.folder.join(TRIAL);
        assert!(!trial.exists(), "it is taken away");
        // Each write to this device says that there is no room.
        std::os::unix::fs::symlink("/dev/full", &trial).unwrap();
        assert_eq!(find(&mut scene), Err(StoreFault::Full));
        assert_eq!(scene.take(1 << 20), Ok(()), "a commit finds out by itself");
    }

    /// ZFS takes the call and no blocks. An empty disk must not look full by that.
    #[test]
    fn where_nothing_is_set_aside_messages_are_taken_and_the_file_ends_with_its_pages() {
        let mut scene = RoomScene::new();
        scene.room.trouble.is_hollow = true;
        assert_eq!(scene.take(1 << 20), Ok(()));
        assert!(!scene.room.is_kept());
        assert_eq!(scene.log.store_bytes(), 0);
        let (opened, folder) = (&scene.opened, &scene._folder);
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
