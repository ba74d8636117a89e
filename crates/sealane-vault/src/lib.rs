//! Step 7 of a message's way, for files: *files to sealed objects and back*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                                        ^^^^
//!
//!   files ─► chunks ─► ids ─► compressed, sealed ─► packs ─► index ─► snapshot ─► store
//! ```
//!
//! This crate takes files, readers and folders, and keeps them as sealed objects in a [`Store`]: a
//! folder, or a bucket. `spec/vault.md` is the specification, down to the byte.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod care;
mod chunker;
mod compress;
mod error;
mod format;
mod get;
mod keys;
pub mod limits;
mod listing;
mod manifest;
pub mod n2s;
mod put;
mod store;
mod vault;
mod wire;

pub use care::{
    DrillOptions, DrillReport, Fact, Found, Keep, LeakGroup, Leaks, PruneOptions, PruneReport,
    Recovered, VerifyReport, leaks,
};
pub use error::{ERRORS, Error};
pub use format::chunk::{Compression, Id};
pub use format::config::Metadata;
pub use format::page::{Entry, Node, Piece};
pub use format::snapshot::Counts;
pub use get::{Entries, GetOptions, GetReport, StoredFile};
pub use keys::{Cost, RecoveryCode, Secret, SlotKind, WriterKey};
pub use put::{Progress, PutOptions, PutReport, Skipped, measure};
pub use store::{Folder, Object, Put, S3, Store};
pub use vault::{OpenOptions, SlotInfo, Snapshot, Vault};
