//! The index of SQLite's log, whose blocks stay where they are.
//!
//! The first process that opens a store cuts the index to nothing and lets it grow again. On a disk
//! that others fill, the blocks are gone between the two, and the store cannot be opened. SQLite
//! leaves the index as it is if another process has it open, which a lock on one byte says. The hub
//! takes that lock first, empties the index in place, and so has SQLite build it anew.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::limits::LOG_INDEX_BYTES;

/// The byte that is locked as long as the index is open (SQLite's `UNIX_SHM_DMS`).
const OPEN_BYTE: libc::off_t = 128;

/// The index, held as long as SQLite has it open: closing it would drop SQLite's locks.
pub(crate) struct HeldIndex {
    _file: File,
}

impl HeldIndex {
    /// Holds the index of the store in `folder`. None: another process has it open, or there is no
    /// room for it, and SQLite does as it always does.
    pub(super) fn hold(folder: &Path) -> Option<Self> {
        match Self::try_hold(folder) {
            Ok(held) => Some(held),
            Err(error) => {
                tracing::debug!(%error, "the index of the log is left to SQLite");
                None
            }
        }
    }

    fn try_hold(folder: &Path) -> io::Result<Self> {
        let path = folder.join("streams.db-shm");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path)?;
        // Nobody else may look into the index while it is emptied.
        lock(&file, libc::F_WRLCK)?;
        // SQLite takes zeros for an index that has to be built from the log.
        let zeros = vec![0; LOG_INDEX_BYTES];
        file.rewind()?;
        file.write_all(&zeros)?;
        lock(&file, libc::F_RDLCK)?;
        Ok(Self { _file: file })
    }
}

/// Locks the byte for this file, and not for the process: SQLite's locks are the process's, and so
/// it sees this one as another's.
fn lock(file: &File, kind: libc::c_int) -> io::Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: OPEN_BYTE,
        l_len: 1,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop).map_err(io::Error::from)
}
