//! Step 8 of a message's way, in the field: *what a team ends up with, over links that lose much*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                                       ^^^^
//! ```
//!
//! Each frame is sealed once, by the member that it tells about, and passed on as it is.
//! [`RegisterSet`] keep, of each origin and data type, the newest frames: whatever order they come
//! in, however often, whoever brings them, all who have heard of the same frames keep the same.
//! [`mod@exchange`] finds out what a neighbour lacks. A [`DocumentStore`] keeps it all in one file,
//! with keys or without. `spec/document.md` is the specification.
//!
//! But for the store it has no I/O; it has no clock, no randomness and no `unsafe`.
//!
//! ```
//! use sealane_document::*;
//!
//! let mut store = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default())?;
//! assert!(store.take(b"no frame", sealane_frame::PeerTag::NOBODY).is_err());
//! assert!(store.since(DocumentCursor::START, 10).is_empty());
//! # Ok::<(), StoreError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod agent;
mod class;
mod entry;
mod error;
pub mod exchange;
pub mod limits;
mod pace;
mod registers;
mod shelf;
mod status;
mod store;

use sealane_frame::GroupTag;
use sealane_message::DataType;

pub use agent::DocumentAgent;
pub use class::class_of;
pub use entry::{DocumentStamp, FrameDigest, RegisterEntry};
pub use error::{ERRORS, ExchangeError, StoreError};
pub use pace::{DocumentPacer, DueDocument, PacerCounters};
pub use registers::{RegisterSet, TakeOutcome};
pub use shelf::{
    DocumentCursor, DocumentQuota, RegisterName, ShelfFrame, ShelfKeeper, StoreCounters,
};
pub use status::{DocumentsStatus, RegisterConflict};
pub use store::{DocumentDelivery, DocumentStore, entry_of};

/// The stream that frames of a group and a data type land in, and that their seals are bound to
/// from their origins on: `mesh/<group tag>/<data type>`.
pub fn stream_name(group: GroupTag, data_type: DataType) -> String {
    format!("mesh/{group}/{}", data_type.number())
}
