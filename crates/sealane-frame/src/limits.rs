//! The bounds of frames, fragments and rings.

sealane_message::limits! {
    /// A frame in the full form. A longer one is neither made nor read.
    MAX_FRAME_BYTES: usize = 1 << 20, "bytes";
    /// A frame's body: the longest frame less what may stand around it. A longer one is refused.
    MAX_FRAME_BODY_BYTES: usize = MAX_FRAME_BYTES - 256, "bytes";
    /// Hops that a frame may still travel. A larger value is read as this one.
    MAX_HOP_LIMIT: u8 = 15, "hops";
    /// Fragments of one frame. A frame that needs more is refused.
    MAX_FRAGMENTS: usize = 8192, "fragments";
    /// Frames of one peer that are being put together. The oldest goes first.
    MAX_PARTIAL_FRAMES: usize = 8, "frames";
    /// Bytes of one peer's frames that are being put together. The oldest go first.
    MAX_PARTIAL_BYTES: usize = 1 << 20, "bytes";
    /// Bytes of all peers' frames that are being put together, unless their room is said to be
    /// less. The oldest of the peer with the most bytes go first.
    MAX_PARTIAL_TOTAL_BYTES: usize = 8 << 20, "bytes";
    /// Peers whose frames are being put together. A further one is refused.
    MAX_PARTIAL_PEERS: usize = 64, "peers";
    /// How long a frame may be incomplete. Then it is given up.
    MAX_PARTIAL_AGE_MS: u64 = 5000, "milliseconds";
    /// A frame or fragment within a batch of a link. A longer one travels alone.
    MAX_BATCHED_BYTES: usize = 0x7fff, "bytes";
    /// Bytes that a link carries at once, at most, where fragments are short.
    MAX_SHORT_UNIT_BYTES: usize = 63, "bytes";
    /// Short fragments of one frame. A frame that needs more is refused.
    MAX_SHORT_PARTS: usize = 64, "fragments";
    /// Frames of all peers that are being put together from short fragments. The oldest goes first.
    MAX_SHORT_PARTIALS: usize = 128, "frames";
    /// How soon a dictionary byte is asked for or told again.
    MIN_DEFINE_INTERVAL_MS: u64 = 10_000, "milliseconds";
    /// How long an entry of a medium keeps its byte from another one while no frame of it opens.
    MAX_ENTRY_IDLE_MS: u64 = 600_000, "milliseconds";
    /// Slots of which a link knows the member, all groups together. A further one is refused.
    MAX_ROSTER_SLOTS: usize = 65_536, "slots";
}
