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

mod error;
pub mod limits;
pub mod n2s;
mod store;

pub use error::{ERRORS, Error};
pub use store::{Folder, Object, Put, S3, Store};
