//! The bounds of this step, with their units.

/// The largest slot: 10 bits of the key id.
pub const MAX_SLOT: u16 = 1023;
/// The largest counter, 40 bits: with the largest bodies AES-256-GCM stays far below its limits.
pub const MAX_COUNTER: u64 = (1 << 40) - 1;
/// Bytes of an SFrame header in the full form: config, 3 of key id, 5 of counter.
pub const MAX_HEADER_BYTES: usize = 9;
/// Bytes of an SFrame header in the compact form: config, 2 of key id, 5 of counter.
pub const MAX_COMPACT_HEADER_BYTES: usize = 8;
/// Bytes of an authentication tag, of either suite.
pub const TAG_BYTES: usize = 16;
/// Bytes of a signature of class S, inside the ciphertext.
pub const SIGNATURE_BYTES: usize = 64;
/// Bytes of a body. A larger one is refused.
pub const MAX_BODY_BYTES: usize = 16 << 20;
/// Bytes of the authenticated header that the frame gives. More are refused.
pub const MAX_META_BYTES: usize = 256;
/// Counters of one sender that may arrive out of order.
pub const WINDOW_BITS: u64 = 1024;
/// Epochs that a receiver ratchets ahead on a trial, and that an order may skip.
pub const MAX_EPOCHS_AHEAD: u64 = 1024;
/// Epochs behind the newest of which live messages are still taken.
pub const MAX_LIVE_EPOCHS_BEHIND: u64 = 1;
/// Epoch secrets that one group holds. More are refused until some are forgotten.
pub const MAX_EPOCHS_HELD: usize = 4096;
/// Counters of one reservation. A larger one is cut to this.
pub const MAX_RESERVED_COUNTERS: u64 = 1 << 20;
