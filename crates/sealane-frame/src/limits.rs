//! The bounds of frames, fragments and rings, which stand in the one table of `sealane-message`.

pub use sealane_message::limits::{
    MAX_BATCHED_BYTES, MAX_FRAGMENTS, MAX_FRAME_BODY_BYTES, MAX_FRAME_BYTES, MAX_HOP_LIMIT,
    MAX_PARTIAL_AGE_MS, MAX_PARTIAL_BYTES, MAX_PARTIAL_FRAMES, MAX_PARTIAL_PEERS, MAX_ROSTER_SLOTS,
};
