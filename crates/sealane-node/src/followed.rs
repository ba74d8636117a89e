//! The files that a node reads again when they change: its tokens, its certificate.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::limits::FILE_LOOK_MS;

/// The marks of a file's version: its identity, its length, and the time when it or its mode was
/// last changed. No user can set that time back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp(Option<(u64, u64, u64, i64, i64)>);

impl FileStamp {
    /// Of a file as it is now, which may not be there.
    fn of(file: &Path) -> Self {
        let of = std::fs::metadata(file).ok();
        Self(of.map(|of| (of.dev(), of.ino(), of.size(), of.ctime(), of.ctime_nsec())))
    }
}

/// The content of some files, as it was last read whole.
#[derive(Debug)]
pub(crate) struct FollowedFiles<T> {
    files: Vec<PathBuf>,
    current: RwLock<Arc<T>>,
    /// Of the files that the current one is of.
    seen: Mutex<Vec<FileStamp>>,
}

impl<T> FollowedFiles<T> {
    /// Reads the files for the first time.
    pub(crate) fn open<E>(
        files: Vec<PathBuf>,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Self, E> {
        // Before the files are read: what changes from here on is seen later.
        let seen = Mutex::new(stamps(&files));
        Ok(Self { files, current: RwLock::new(Arc::new(read()?)), seen })
    }

    /// The content that is in use now.
    pub(crate) fn current(&self) -> Arc<T> {
        self.current.read().clone()
    }

    /// Reads the files again. What cannot be used changes nothing.
    pub(crate) fn reload<E>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<(), E> {
        // Held until what was read is in use: of two that read, the later one has the last word.
        let mut seen = self.seen.lock();
        let stamps = stamps(&self.files);
        // The stamps were taken before this read. A change in between is seen at the next look, and
        // never missed.
        *self.current.write() = Arc::new(read()?);
        *seen = stamps;
        Ok(())
    }

    /// Whether the files are others than those that the current one is of.
    pub(crate) fn has_changed(&self) -> bool {
        stamps(&self.files) != *self.seen.lock()
    }

    /// Follows the files until the node stops: where they have changed, `reload` is to read them
    /// again, and what fails is tried again as long as it is so. `look` is called at each look.
    pub(crate) async fn follow<E: Display>(
        &self,
        what: &'static str,
        mut stopping: watch::Receiver<bool>,
        mut look: impl FnMut(),
        reload: impl Fn() -> Result<(), E>,
    ) {
        let mut told = None;
        loop {
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(Duration::from_millis(FILE_LOOK_MS)) => {}
            }
            look();
            if !self.has_changed() {
                continue;
            }
            let stamps = stamps(&self.files);
            match reload() {
                Ok(()) => tracing::info!("{what}: read again"),
                // Certificate and key are written one after the other. A pair that does not fit yet
                // is told once.
                Err(error) if told.as_ref() != Some(&stamps) => {
                    tracing::error!(%error, "{what}: left as it was");
                    told = Some(stamps);
                }
                Err(_) => {}
            }
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<FileStamp> {
    files.iter().map(|file| FileStamp::of(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_changes_nothing_and_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("number");
        let read = || std::fs::read_to_string(&file).unwrap().parse::<u64>();
        std::fs::write(&file, "1").unwrap();
        let followed = FollowedFiles::open(vec![file.clone()], read).unwrap();
        assert!(!followed.has_changed());
        std::fs::write(&file, "two").unwrap();
        for _ in 0..3 {
            assert!(followed.has_changed());
            assert!(followed.reload(read).is_err());
            assert_eq!(*followed.current(), 1);
        }
        std::fs::write(&file, "222").unwrap();
        assert_eq!(followed.reload(read), Ok(()));
        assert!(!followed.has_changed());
        assert_eq!(*followed.current(), 222);
        std::fs::remove_file(&file).unwrap();
        assert!(followed.has_changed(), "a file that has gone is another one");
    }
}
