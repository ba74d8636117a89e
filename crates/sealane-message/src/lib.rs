//! Step 1 of a message's way: *what is carried*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!  ^^^^^
//! ```
//!
//! This crate takes nothing and gives the types that every later step speaks: [`Value`], the one
//! data model that all codecs carry; [`DataType`], what a body is; [`Topic`] and [`Pattern`], the
//! names of streams; [`event`], what happens in conversations; [`document`], what members in the
//! field know about each other; [`mod@limits`], the bounds of those; [`bytes`], how fields are
//! read; [`hex`] and [`time`], how bytes and spans are shown; [`ErrorInfo`], what an error code
//! means, and [`errors!`], the one table in which a crate writes its errors.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`.
//!
//! ```
//! use sealane_message::{Pattern, Topic, Value};
//!
//! let topic: Topic = "fleet/7/location".parse()?;
//! let pattern: Pattern = "fleet/*/location".parse()?;
//! assert!(pattern.matches(&topic));
//! assert_eq!(Value::from(7_u64), Value::from(7_i64));
//! # Ok::<(), sealane_message::TopicError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod bytes;
mod data_type;
pub mod document;
mod error;
pub mod event;
pub mod hex;
mod input_error;
pub mod limits;
pub mod time;
mod topic;
mod value;

pub use data_type::{DataType, UnknownDataType};
pub use error::{ErrorInfo, Exit, Retry};
pub use input_error::InputError;
pub use topic::{ERRORS, Pattern, PatternExactness, System, Topic, TopicError};
pub use value::Value;
