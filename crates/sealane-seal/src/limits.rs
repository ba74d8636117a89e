//! The bounds of this step, which stand in the one table of `sealane-message`, and the sizes that
//! its format fixes.

pub use sealane_message::limits::{
    MAX_COUNTER, MAX_EPOCHS_AHEAD, MAX_EPOCHS_HELD, MAX_LIVE_EPOCHS_BEHIND, MAX_META_BYTES,
    MAX_RESERVED_COUNTERS, MAX_SEALED_BODY_BYTES, MAX_SLOT, WINDOW_BITS,
};

/// Bytes of an SFrame header in the full form: config, 3 of key id, 5 of counter.
pub const MAX_HEADER_BYTES: usize = 9;
/// Bytes of an SFrame header in the compact form: config, 2 of key id, 5 of counter.
pub const MAX_COMPACT_HEADER_BYTES: usize = 8;
/// Bytes of an authentication tag, of either suite.
pub const TAG_BYTES: usize = 16;
/// Bytes of a signature of class S, inside the ciphertext.
pub const SIGNATURE_BYTES: usize = 64;
