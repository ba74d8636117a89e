//! Step 2 of a message's way: *value to bytes and back*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!           ^^^^^^
//!                        ┌──────┐
//!    JSON ──┐            │      │  ┌─► JSON
//!    MessagePack ──read─►│ tape │──┼─► MessagePack
//!    CBOR ──┘            │      │  └─► CBOR
//!                        └──────┘
//! ```
//!
//! This crate takes values, or bytes of one codec, and gives bytes, of the same or another codec.
//! [`Transcoder`] checks and translates without allocating; [`fields`] and [`DatumWriter`] take a
//! datum apart and put one together around values that stay as they are; [`typed`] does both for
//! types that derive serde's traits; [`negotiate`] agrees on a codec; [`records`] keeps the key
//! dictionary of one connection; [`event`] reads and writes what happens in conversations. What is
//! outside the data model is refused on entry, with its place. `spec/codec.md` is the
//! specification.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`.
//!
//! ```
//! use sealane_codec::{Codec, Transcoder, decode};
//!
//! let mut packed = Vec::new();
//! Transcoder::new().transcode(Codec::Json, br#"{"credit": 10}"#, Codec::MsgPack, &mut packed)?;
//! assert_eq!(packed, b"\x81\xa6credit\x0a");
//! assert_eq!(decode(Codec::MsgPack, &packed)?.field("credit"), Some(&10_u64.into()));
//! # Ok::<(), sealane_codec::CodecError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod binary;
mod cbor;
mod codec;
pub mod document;
mod error;
pub mod event;
mod float;
mod head;
mod input;
mod json;
pub mod limits;
mod msgpack;
pub mod negotiate;
pub mod records;
mod shown;
mod tape;
mod transcoder;
pub mod typed;
mod view;
mod writer;

pub use codec::{Codec, DatumKind};
pub use error::{CodecError, ERRORS};
pub use shown::body_value;
pub use transcoder::{Transcoder, decode, encode};
pub use view::{
    MapField, Maps, elements, fields, fields_beside, kind, maps, read_bool, read_bytes, read_text,
    read_u64,
};
pub use writer::DatumWriter;
