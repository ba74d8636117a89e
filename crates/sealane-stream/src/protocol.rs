//! The frames of the hub protocol (spec/hub.md §5), as both ends read and write them.
//!
//! Envelopes are never decoded here: they are spliced into frames and cut out of them.

mod features;
mod op;
mod sealed;
mod server;

pub use features::{FEATURES, Features};
pub use op::{Mark, Op, read_ops};
pub use sealed::Sealed;
pub(crate) use sealed::write_sealed;
pub use server::{Deliver, Joined, ServerFrame, WireError, read_frame, write_batch, write_deliver};
