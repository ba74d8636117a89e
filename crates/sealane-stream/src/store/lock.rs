//! The locks that keep a second hub out of a folder.
//!
//! SQLite would let two hubs share the file, and each would give out offsets of its own. A killed
//! process leaves no lock behind.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::{HeldIndex, StoreFault};

/// The file that is locked beside the folder itself.
const LOCK: &str = "lock";

/// The locks that a hub holds of its folder: held by each who has the store open, until the last
/// one has closed it.
pub(crate) struct FolderLock {
    /// Held as long as SQLite has the file open: closing it would drop SQLite's locks.
    pub(super) store: File,
    /// The folder itself. A `lock` that was deleted is another file when the next hub makes it,
    /// and the folder stays the same one. None: the file system locks no folders.
    _folder: Option<File>,
    _lock: File,
    _index: Option<HeldIndex>,
}

impl FolderLock {
    /// Takes the folder for this hub, before SQLite looks at the log of the store for the first
    /// time.
    ///
    /// # Errors
    /// [`StoreFault::InUse`] where another hub has it; [`StoreFault::Failed`].
    pub(super) fn take(folder: &Path, store: &Path) -> Result<Self, StoreFault> {
        let failed = |path: &Path, cause: std::io::Error| {
            StoreFault::Failed(format!("{}: {cause}", path.display()))
        };
        let in_use = || StoreFault::InUse(folder.display().to_string());
        // First, so that a hub that is refused makes no `lock` beside the deleted one.
        let of_folder = File::open(folder).map_err(|cause| failed(folder, cause))?;
        let of_folder = match of_folder.try_lock() {
            Ok(()) => Some(of_folder),
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            // Some network file systems lock files alone, and `lock` below is one.
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, "the folder itself cannot be locked");
                None
            }
        };
        let path = folder.join(LOCK);
        let lock = File::create(&path).map_err(|cause| failed(&path, cause))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(cause)) => return Err(failed(&path, cause)),
        }
        let opened = OpenOptions::new().read(true).write(true).open(store);
        let opened = opened.map_err(|cause| failed(store, cause))?;
        let index = HeldIndex::hold(folder);
        Ok(Self { store: opened, _folder: of_folder, _lock: lock, _index: index })
    }
}

/// Whether a hub runs on a folder, as its locks say.
pub fn is_in_use(folder: &Path) -> bool {
    let is_locked = |path: &Path| {
        let opened = File::open(path);
        opened.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    is_locked(folder) || is_locked(&folder.join(LOCK))
}
