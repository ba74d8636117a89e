//! The bounds of frames, fragments and rings.

/// A frame in the full form. A longer one is neither made nor read.
pub const MAX_FRAME_BYTES: usize = 1 << 20;
/// A frame's body: the longest frame less what may stand around it. A longer one is refused.
pub const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - 256;
/// Hops that a frame may still travel. A larger value is read as this one.
pub const MAX_HOP_LIMIT: u8 = 15;
/// Fragments of one frame. A frame that needs more is refused.
pub const MAX_FRAGMENTS: usize = 8192;
/// Frames of one peer that are being put together. The oldest goes first.
pub const MAX_PARTIAL_FRAMES: usize = 8;
/// Bytes of one peer's frames that are being put together. The oldest go first.
pub const MAX_PARTIAL_BYTES: usize = 1 << 20;
/// Peers whose frames are being put together. A further one is refused.
pub const MAX_PARTIAL_PEERS: usize = 64;
/// How long a frame may be incomplete, in milliseconds. Then it is given up.
pub const MAX_PARTIAL_AGE_MS: u64 = 5000;
/// A frame or fragment within a batch. A longer one travels alone.
pub const MAX_BATCHED_BYTES: usize = 0x7fff;
/// Slots of which a link knows the member, all groups together. A further one is refused.
pub const MAX_ROSTER_SLOTS: usize = 65_536;
