//! The log at rest: SQLite, one file, one writer (spec/store.md).

mod apply;
mod backup;
mod clock;
mod fault;
mod generation;
mod identity;
mod index;
mod lock;
mod migrate;
mod opening;
mod owned;
mod purge;
mod read;
mod room;
mod schema;
mod session;
#[cfg(test)]
pub(crate) mod trouble;
mod write;

pub(crate) use apply::AppliedCounts;
pub use backup::{StoreBackup, backup, check, newest_ms, restore};
pub(crate) use fault::StoreFault;
pub use generation::newest_generation;
pub(crate) use generation::of_clock;
pub use identity::{StoreId, store_id};
pub(crate) use index::HeldIndex;
pub(crate) use lock::FolderLock;
pub use lock::is_in_use;
pub use owned::{OwnedRows, owned};
pub(crate) use read::StoreReads;
use room::DiskRoom;
pub(crate) use room::{keep_blocks, set_chunk};
pub(crate) use schema::{ConsumerRow, PAGE_BYTES, StoreNext, StreamRow, open};
pub(crate) use session::{SessionNext, SessionRow, StoredSession};
pub(crate) use write::{
    DelayedRow, ExpiredBlocks, KeyRow, OldBlock, OwnBounds, StoreWrites, StoredRequestKey,
    StreamSettings, SweptRows, TrimmedBlocks,
};

/// Bits of a block's key below the stream's number: the offset.
const OFFSET_BITS: u32 = 40;

/// Numbers of streams: what is left of a key's 64 bits. A number is given out again only after all
/// others were, and when nothing in the store has it.
pub(crate) const STREAM_NUMBERS: u32 = 1 << (64 - OFFSET_BITS);

/// The row key of the block of `stream` that begins at `offset`.
pub(crate) fn key(stream: u32, offset: u64) -> i64 {
    ((u64::from(stream) << OFFSET_BITS) | offset) as i64
}

/// The greatest row key that a block of `stream` can have.
pub(crate) fn last_key(stream: u32) -> i64 {
    key(stream, (1 << OFFSET_BITS) - 1)
}

pub(crate) fn offset_of(key: i64) -> u64 {
    key as u64 & ((1 << OFFSET_BITS) - 1)
}
