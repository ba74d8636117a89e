//! The bounds of what both ends of the hub protocol send.

use sealane_codec::limits::{MAX_DEPTH, MAX_VALUES};

sealane_message::limits! {
    /// One message's envelope, encoded. A larger one is refused.
    MAX_ENVELOPE_BYTES: usize = 1 << 20, "bytes";
    /// Nesting of an envelope; the envelope itself is level 1. A deeper one is refused. Frames,
    /// batches and dead letters add four levels around it.
    MAX_ENVELOPE_DEPTH: usize = MAX_DEPTH - 4, "levels";
    /// Values in one envelope. More are refused. Frames and dead letters add a few around it.
    MAX_ENVELOPE_VALUES: usize = MAX_VALUES - 64, "values";
    /// A message's id. A longer one is refused.
    MAX_ID_BYTES: usize = 128, "bytes";
    /// Messages of one batch enqueue. A larger batch is refused whole.
    MAX_BATCH_MESSAGES: usize = 10_000, "messages";
    /// An HTTP request's body. A larger one is refused with 413 before it is read.
    MAX_REQUEST_BYTES: usize = 16 << 20, "bytes";
    /// A frame that a WebSocket client sends. A larger one closes the connection with 1009.
    MAX_CLIENT_FRAME_BYTES: usize = 1 << 20, "bytes";
    /// Credit that one connection may hold. A grant beyond it closes the connection with 1008.
    MAX_CREDIT: u64 = 1 << 32, "messages";
    /// Messages in one batched delivery frame.
    MAX_DELIVERY_BATCH: usize = 1024, "messages";
    /// Messages that one consumer may have delivered and not yet acknowledged. At the limit no
    /// further message is delivered to it until one is acknowledged. Each takes about 160 bytes of
    /// the node's memory.
    MAX_IN_FLIGHT: usize = 65_536, "messages";
    /// A consumer's name. A longer one is refused.
    MAX_CONSUMER_NAME_BYTES: usize = 64, "bytes";
    /// Messages that one range request returns. The reply names where to go on.
    MAX_RANGE_MESSAGES: usize = 1000, "messages";
    /// The longest delay of an enqueue or a nack.
    MAX_DELAY_MS: u64 = 30 * 24 * 3600 * 1000, "milliseconds";
    /// An idempotency key. A longer one is refused.
    MAX_IDEMPOTENCY_KEY_BYTES: usize = 128, "bytes";
    /// A frame that a publishing socket takes: an envelope of the largest size and what stands
    /// around it, or many small ones. A larger one closes the connection with 1009.
    MAX_PUBLISH_FRAME_BYTES: usize = MAX_ENVELOPE_BYTES + (64 << 10), "bytes";
    /// The name of a publishing session. A longer one is refused.
    MAX_SESSION_NAME_BYTES: usize = 64, "bytes";
    /// Offsets of one stream: 2^40, a million a second for twelve days, or a thousand for 34 years.
    MAX_OFFSET: u64 = (1 << 40) - 1, "offset";
}
