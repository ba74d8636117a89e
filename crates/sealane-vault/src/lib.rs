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
//!
//! It has threads of its own and no async; its memory is bounded by the number of threads, whatever
//! the size of a file. Nothing that was not verified is handed out.
//!
//! ```
//! use sealane_vault::*;
//! # let folder = tempfile::tempdir().unwrap();
//! # let (url, state) = (folder.path().join("vault"), Some(folder.path().join("state")));
//! # let options = OpenOptions { state, ..OpenOptions::default() };
//! # let cost = Cost { memory_kib: 64, passes: 1, lanes: 1 };
//!
//! let store = Store::open(url.to_str().unwrap())?;
//! let vault = Vault::init(store, b"a passphrase", cost, Metadata::Sealed, &options)?;
//! vault.put_reader("notes/today", &mut &b"hello"[..], &PutOptions::default())?;
//! let mut part = Vec::new();
//! vault.file(&vault.snapshot(None)?, b"notes/today")?.read_range(1, 3, &mut part)?;
//! assert_eq!(part, b"ell");
//! # Ok::<(), Error>(())
//! ```
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
#[doc(hidden)]
pub mod hostile;
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
    DrillOptions, DrillReport, Fact, Found, Group, GroupBy, Keep, LeakGroup, Leaks, PruneOptions,
    PruneReport, Recovered, RepairReport, Retention, Verdict, VerifyReport, Whose, leaks,
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
pub use vault::{OpenOptions, RotateOptions, Rotated, SlotInfo, Snapshot, Vault};
