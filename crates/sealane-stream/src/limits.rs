//! The bounds of the hub.

sealane_message::limits! {
    /// Answers to `seek` that a connection has not read. One that asks for more is closed.
    MAX_WAITING_ANSWERS: usize = 1024, "answers";
    /// Streams of one hub, those below `dead/` and `groups/` not counted. A further one is refused.
    MAX_STREAMS: usize = 100_000, "streams";
    /// Streams below `dead/`. Letters that would take a further one are counted as dropped.
    MAX_DEAD_STREAMS: usize = 100_000, "streams";
    /// Streams below `groups/`. A further one is refused.
    MAX_GROUP_STREAMS: usize = 10_000, "streams";
    /// Consumers of one stream, its inbox included. A further one is refused.
    MAX_CONSUMERS: usize = 4096, "consumers";
    /// Consumers of one stream that one token made; all that come without a token count as one. A
    /// further one is refused.
    MAX_TOKEN_CONSUMERS: usize = 256, "consumers";
    /// Streams that all subscriptions together follow, each counted as often as it is followed. At
    /// the limit a subscription that follows more than its share is closed. Each takes about 180
    /// bytes of the node's memory.
    MAX_FOLLOWED_STREAMS: usize = 2_000_000, "streams";
    /// Unfinished messages that the state of a consumer shows, the oldest ones. Further ones are
    /// counted and not shown.
    MAX_SHOWN_PENDING: usize = 1000, "messages";
    /// Messages that wait for the writer. At the limit enqueuing waits.
    MAX_WRITE_QUEUE_MESSAGES: usize = 65_536, "messages";
    /// Bytes that wait for the writer. At the limit enqueuing waits.
    MAX_WRITE_QUEUE_BYTES: usize = 64 << 20, "bytes";
    /// Messages of one commit.
    MAX_COMMIT_MESSAGES: usize = 16_384, "messages";
    /// Bytes of messages from which on a commit takes no further request.
    MAX_COMMIT_BYTES: u64 = 8 << 20, "bytes";
    /// The recent messages of one stream that are kept in memory for live readers.
    MAX_TAIL_BYTES: usize = 4 << 20, "bytes";
    /// The recent messages of all streams that are kept in memory for live readers.
    MAX_TAILS_BYTES: usize = 256 << 20, "bytes";
    /// Delayed messages of one hub. A further one is refused.
    MAX_DELAYED: usize = 1_000_000, "messages";
    /// Idempotency keys kept. The oldest go first.
    MAX_IDEMPOTENCY_KEYS: usize = 1_000_000, "keys";
    /// How long an idempotency key is kept.
    MAX_IDEMPOTENCY_AGE_MS: u64 = 24 * 3600 * 1000, "milliseconds";
    /// Streams that have series of their own in `/metrics`. Further ones are summed as `*other*`.
    MAX_METRIC_STREAMS: usize = 256, "streams";
    /// Consumers that have series of their own in `/metrics`. Further ones are summed as `*other*`.
    MAX_METRIC_CONSUMERS: usize = 512, "consumers";
    /// Publishing sessions that are remembered, each counted for every stream. The oldest go first.
    MAX_SESSIONS: usize = 1_000_000, "sessions";
    /// How long a publishing session is remembered in a stream that it publishes to no more, and up
    /// to an hour longer.
    MAX_SESSION_AGE_HOURS: u64 = 24, "hours";
    /// The write-ahead log of the store, and less on a small disk. It is copied into the database
    /// before it grows beyond this.
    MAX_LOG_BYTES: u64 = 32 << 20, "bytes";
}
