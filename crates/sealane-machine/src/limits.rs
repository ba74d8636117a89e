//! The bounds of a machine of the field, most of them of its gateway.

sealane_message::limits! {
    /// Frames that a gateway has heard and that its queue has not taken yet. A further one is
    /// dropped and counted (`busy`).
    MAX_FRAMES_WAITING: usize = 4096, "frames";
    /// Frames that a gateway's queue takes in one commit. More wait for the next one.
    MAX_QUEUE_COMMIT: usize = 512, "frames";
    /// What a frame in a gateway's queue counts beside its own bytes.
    QUEUED_FRAME_BYTES: u64 = 128, "bytes";
    /// Frames that a gateway knows again when they come once more. The oldest half is forgotten at
    /// once.
    MAX_FRAMES_KNOWN: usize = 1 << 15, "frames";
    /// Frames that a gateway reads from its queue at once, to bring them to the hub.
    MAX_UPLOAD_WINDOW: usize = 512, "frames";
    /// Frames of one origin that a gateway brings to the hub in one request.
    MAX_UPLOAD_BATCH: usize = 256, "frames";
    /// Bytes of those frames. A longer frame goes alone.
    MAX_UPLOAD_BATCH_BYTES: usize = 256 << 10, "bytes";
    /// Origins whose frames a gateway brings to the hub at the same time. Others wait.
    MAX_UPLOAD_LANES: usize = 32, "origins";
    /// How long frames of one origin are brought before a gateway looks for more urgent ones.
    MAX_UPLOAD_TURN_MS: u64 = 500, "milliseconds";
    /// How long a gateway waits for frames of an origin that seem to be missing before one that has
    /// come. Then they may come late.
    MAX_ORDER_WAIT_MS: u64 = 10_000, "milliseconds";
    /// Frames of an origin that wait for others. With one more, all go on: the log of an origin
    /// keeps 64.
    MAX_ORDER_HELD: usize = 56, "frames";
    /// How long a gateway waits, at most, before it tries its hub again.
    MAX_HUB_WAIT_MS: u64 = 30_000, "milliseconds";
    /// How long a gateway leaves a stream alone that the hub has refused to it.
    MAX_STREAM_HOLD_MS: u64 = 30_000, "milliseconds";
    /// Frames of the hub that a gateway puts into the mesh in a second. More wait in the hub.
    MAX_DOWN_PER_SECOND: u32 = 50, "frames a second";
    /// Frames that go into the mesh before a gateway stores how far it has read a stream.
    MAX_DOWN_UNSAVED: usize = 64, "frames";
    /// What the frames in the queue of a gateway may count, at least.
    MIN_GATEWAY_QUEUE_BYTES: u64 = 64 << 10, "bytes";
    /// What the frames in the queue of a gateway may count, at most.
    MAX_GATEWAY_QUEUE_BYTES: u64 = 1 << 40, "bytes";
    /// Data types that a gateway carries each way. A further one is refused.
    MAX_GATEWAY_TYPES: usize = 64, "data types";
}
