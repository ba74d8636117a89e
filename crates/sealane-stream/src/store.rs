//! The log at rest: SQLite, one file, one writer (spec/store.md).

mod backup;
mod read;
mod schema;
mod write;

pub use backup::{Backup, backup, check, restore};
pub(crate) use read::Reads;
pub(crate) use schema::{ConsumerRow, PAGE_BYTES, StreamRow, open};
pub(crate) use write::{Key, KeyRow, Writes};

use crate::Error;

/// Bits of a block's key below the stream's number: the offset.
const OFFSET_BITS: u32 = 40;

/// The row key of the block of `stream` that begins at `offset`.
pub(crate) fn key(stream: u32, offset: u64) -> i64 {
    ((u64::from(stream) << OFFSET_BITS) | offset) as i64
}

pub(crate) fn offset_of(key: i64) -> u64 {
    key as u64 & ((1 << OFFSET_BITS) - 1)
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Error::StorageFull,
            _ => Error::StorageFailed(error.to_string()),
        }
    }
}
