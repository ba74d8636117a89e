//! Identities to epoch secrets: invitations, rosters, revocation.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod crypto;
mod document;
mod error;
mod identity;
pub mod limits;
mod wire;

pub use document::Document;
pub use error::{ERRORS, Error};
pub use identity::{Fingerprint, Identity, PublicKey, seal_to};
