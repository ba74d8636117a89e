//! Step 7 of a message's way, for files: *files to sealed objects and back*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                                        ^^^^
//!
//!   files ─► chunks ─► ids ─► compressed, sealed ─► packs ─► index ─► snapshot ─► store
//! ```
//!
//! This crate takes files, readers and folders, and keeps them as sealed objects in a
//! [`VaultStore`]: a folder, or a bucket. `spec/vault.md` is the specification, down to the byte.
//!
//! It has threads of its own and no async; its memory is bounded by the number of threads, whatever
//! the size of a file. Nothing that was not verified is handed out.
//!
//! ```
//! use sealane_vault::*;
//! # let folder = tempfile::tempdir().unwrap();
//! # let (url, state) = (folder.path().join("vault"), Some(folder.path().join("state")));
//! # let options = OpenOptions { state, ..OpenOptions::default() };
//! # let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
//!
//! let store = VaultStore::open(url.to_str().unwrap())?;
//! let vault = Vault::init(store, b"a passphrase", cost, VaultMetadata::Sealed, &options)?;
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
    DifferenceKind, DrillOptions, DrillReport, DumpReport, LeakGroup, PruneOptions, PruneReport,
    RecoveryReport, RepairReport, RetentionGroupBy, RetentionPlan, RetentionRules,
    RetentionVerdict, SnapshotDifference, SnapshotGroup, SnapshotMatch, SnapshotSelector,
    VaultLeaks, VaultObjectField, VerifyData, VerifyPart, VerifyReport, leaks,
};
pub use error::{ERRORS, Error};
pub use format::chunk::{ChunkCompression, ChunkId};
pub use format::config::VaultMetadata;
pub use format::page::{
    DeviceKind, DeviceNode, EntryAttribute, FilePiece, SnapshotEntry, SnapshotEntryKind,
};
pub use format::snapshot::SnapshotCounts;
pub use get::{GetOptions, GetReport, SnapshotEntries, StoredFile};
pub use keys::{Argon2Cost, RecoveryCode, SlotKind, SlotSecret, WriterKey};
pub use put::{PutOptions, PutProgress, PutReport, SkippedItem, measure};
pub use store::{CreateOutcome, FolderStore, ListedObject, S3Store, StoreRetry, VaultStore};
pub use vault::{OpenOptions, RotateOptions, RotatedVault, SlotInfo, Snapshot, Vault};
