use rusqlite::ErrorCode;

use crate::Error;

/// Of a file that is no database, or another one's.
pub(super) const NO_STORE: &str = "this is no store of streams";
/// Of a database that is not whole.
pub(super) const DAMAGED: &str = "pages of the store are damaged";

/// A failure of the store itself. It ends a commit, and with it everything in the commit; the
/// refusal of one command is a `CommandRefusal` (`writer/command.rs`), and neither becomes the
/// other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoreFault {
    /// There is no room on the disk.
    Full,
    /// Another process holds the store.
    Busy,
    /// The folder is another hub's.
    InUse(String),
    /// The file is no store, or its pages are damaged.
    NotAStore(String),
    /// The store was written by a newer program.
    TooNew(i64),
    /// The message of the system or of SQLite.
    Failed(String),
}

impl From<rusqlite::Error> for StoreFault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreFault::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreFault::Busy,
            Some(ErrorCode::NotADatabase) => StoreFault::NotAStore(NO_STORE.to_owned()),
            Some(ErrorCode::DatabaseCorrupt) => StoreFault::NotAStore(DAMAGED.to_owned()),
            _ => StoreFault::Failed(error.to_string()),
        }
    }
}

impl From<StoreFault> for Error {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Full => Error::StorageFull,
            StoreFault::Busy => Error::StorageBusy,
            StoreFault::InUse(folder) => Error::FolderInUse(folder),
            StoreFault::NotAStore(cause) => Error::NotAStore(cause),
            StoreFault::TooNew(found) => {
                Error::StoreTooNew { found, known: super::schema::VERSION }
            }
            StoreFault::Failed(cause) => Error::StorageFailed(cause),
        }
    }
}
