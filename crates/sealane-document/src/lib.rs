//! What a team in the field ends up with, over links that lose much: documents.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                                                       ^^^^
//! ```
//!
//! Each frame is sealed once, by the member that it tells about, and passed on as it is.
//! [`Registers`] keep, of each origin and data type, the newest frames: whatever order they come
//! in, however often, whoever brings them, all who have heard of the same frames keep the same.
//! [`mod@exchange`] finds out what a neighbour lacks. `spec/document.md` is the specification.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod entry;
mod error;
pub mod exchange;
pub mod limits;
mod registers;

pub use entry::{Entry, Mark, Stamp};
pub use error::{ERRORS, ExchangeError};
pub use registers::{Registers, Taken};
