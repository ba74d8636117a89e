//! The bounds of the hub.

sealane_message::limits! {
    /// Answers to `seek` that a connection has not read. One that asks for more is closed.
    MAX_WAITING_ANSWERS: usize = 1024, "answers";
    /// Streams of one hub, those of systems not counted. A further one is refused.
    MAX_STREAMS: usize = 100_000, "streams";
    /// Streams below `dead/`. Letters that would take a further one are counted as dropped.
    MAX_DEAD_STREAMS: usize = 100_000, "streams";
    /// Streams below `groups/`. A further one is refused.
    MAX_GROUP_STREAMS: usize = 10_000, "streams";
    /// Rules of retention. A further one is refused.
    MAX_RULES: usize = 256, "rules";
    /// Streams below `audit/`. A further one is refused.
    MAX_AUDIT_STREAMS: usize = 16, "streams";
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
    /// Idempotency keys that clients name. If a token has more than its share, its own oldest ones
    /// go.
    MAX_IDEMPOTENCY_KEYS: usize = 1_000_000, "keys";
    /// Idempotency keys that the hub makes of messages (`Idempotency-Scope`). If a token has more
    /// than its share, its own oldest ones go.
    MAX_MESSAGE_KEYS: usize = 1_000_000, "keys";
    /// The parts of what a hub has of which a token has one, where there is more than one token and
    /// none was chosen for it. An only token has all, and so have clients without tokens.
    SHARE_PARTS: u64 = 4, "parts";
    /// Consumers of one hub, those of all streams together. A further one is refused. Each takes
    /// about 1.1 KiB.
    MAX_HUB_CONSUMERS: usize = 250_000, "consumers";
    /// Messages that the consumers of one hub were given and have not finished. At the limit
    /// nothing new is given until some are finished. Each takes about 80 bytes.
    MAX_HUB_IN_FLIGHT: usize = 2_000_000, "messages";
    /// Streams that a token may have, those of systems not counted, whatever others have.
    MIN_OWNER_STREAMS: u64 = 24, "streams";
    /// Streams below `groups/` that a token may have, whatever others have.
    MIN_OWNER_GROUP_STREAMS: u64 = 2, "streams";
    /// Messages that a token may have held back, whatever others have.
    MIN_OWNER_DELAYED: u64 = 240, "messages";
    /// Consumers that a token may have, whatever others have.
    MIN_OWNER_CONSUMERS: u64 = 60, "consumers";
    /// Messages that the consumers of a token may have in flight, whatever others have.
    MIN_OWNER_IN_FLIGHT: u64 = 1024, "messages";
    /// Shares that have series of their own in `/metrics`, the fullest ones.
    MAX_METRIC_SHARES: usize = 64, "shares";
    /// How long an idempotency key is kept.
    MAX_IDEMPOTENCY_AGE_MS: u64 = 24 * 3600 * 1000, "milliseconds";
    /// Streams that have series of their own in `/metrics`. Further ones are summed as `*other*`.
    MAX_METRIC_STREAMS: usize = 256, "streams";
    /// Consumers that have series of their own in `/metrics`. Further ones are summed as `*other*`.
    MAX_METRIC_CONSUMERS: usize = 512, "consumers";
    /// Of those further ones, the consumers with most unfinished messages, which have gauges of
    /// their own all the same.
    MAX_METRIC_BEHIND: usize = 64, "consumers";
    /// Publishing sessions that are remembered, each counted for every stream. If a token has more
    /// than its share, its own oldest ones go.
    MAX_SESSIONS: usize = 1_000_000, "sessions";
    /// How long a publishing session is remembered in a stream that it publishes to no more, and up
    /// to an hour longer.
    MAX_SESSION_AGE_HOURS: u64 = 24, "hours";
    /// The write-ahead log of the store, and less on a small disk. It is copied into the database
    /// before it grows beyond this.
    MAX_LOG_BYTES: u64 = 32 << 20, "bytes";
    /// A chunk of the database is no longer, since SQLite takes its size as 31 bits.
    MAX_STORE_CHUNK_BYTES: u64 = 1 << 30, "bytes";
    /// The index of the log, which is as long as a full log needs: two pieces of SQLite's.
    LOG_INDEX_BYTES: usize = 64 << 10, "bytes";
    /// How long the thread that copies the log sleeps before it looks whether the hub closes.
    CHECKPOINT_LOOK_MS: u64 = 250, "milliseconds";
    /// Ranges of offsets of one consumer that are remembered as changed. Beyond it all of the
    /// consumer is stored.
    MAX_CHANGED_RANGES: usize = 8192, "ranges";
    /// Connections of one commit that the writer answers itself, on a machine of one processor.
    /// Workers answer further ones. With more processors it answers fewer, since the next commit
    /// waits meanwhile.
    MAX_DIRECT_ANSWERS: usize = 128, "connections";
    /// The least that is kept aside on a disk for the log, and again for the database.
    MIN_KEPT_ASIDE_BYTES: u64 = 1 << 20, "bytes";
    /// How long after a line about a fault of the store, such as a full disk, the next is said.
    STORE_NOTICE_MS: u64 = 10_000, "milliseconds";
    /// How long the writer waits while another process holds the store. Then the commit fails.
    MAX_STORE_WAIT_MS: u64 = 5000, "milliseconds";
    /// How long it waits for the store once it has waited in vain.
    MAX_STORE_RETRY_WAIT_MS: u64 = 100, "milliseconds";
    /// How long a reader waits for the commit that is about to store or to remove a message. Then
    /// it looks again.
    COMMIT_WAIT_MS: u64 = 5, "milliseconds";
    /// How long the writer sleeps if there is nothing to do.
    WRITER_IDLE_MS: u64 = 250, "milliseconds";
    /// How long acknowledgements wait to be stored together. If the hub is killed, messages whose
    /// acknowledgements waited come again.
    ACK_FLUSH_MS: u64 = 25, "milliseconds";
    /// Idempotency keys and sessions that one commit forgets, all owners together, since their
    /// owners have more than their shares; or twice as many as the commit adds. Further ones go
    /// with the next.
    MAX_COMMIT_TRIMMED: u64 = 8192, "rows";
    /// Dead letters of one commit. Further ones come with the next.
    MAX_COMMIT_LETTERS: usize = 1024, "messages";
    /// Bytes of them, unless a single one is larger. Further ones come with the next commit.
    MAX_COMMIT_LETTER_BYTES: usize = 2 << 20, "bytes";
    /// Blocks that one commit reads from the disk for dead letters.
    MAX_LETTER_BLOCKS: usize = 32, "blocks";
    /// Dead letters that each consumer may have in a commit, however many consumers there are.
    MIN_CONSUMER_LETTERS: usize = 16, "messages";
    /// Delayed messages of one id that one command cancels.
    MAX_CANCELLED: usize = 1024, "messages";
    /// Rows of progress that may stand. Beyond it the consumers of the oldest are written whole.
    MAX_PROGRESS_ROWS: u64 = 4096, "rows";
    /// Changes of one consumer that may stand beside its row, however small that row is.
    MIN_CHANGES_BYTES: u64 = 4096, "bytes";
    /// Runs of places in one half of the sessions kept in memory, about 8 MiB. Beyond it the older
    /// half is dropped, and its sessions are read from the store.
    MAX_SESSION_RUNS: usize = 1 << 18, "runs";
    /// How long after a start, or after a step of the time of day, nothing goes for its age.
    CLOCK_CALM_MS: u64 = 600_000, "milliseconds";
    /// How much the time of day may differ from the time that passed, between two looks. More is a
    /// step.
    CLOCK_STEP_MS: u64 = 2000, "milliseconds";
    /// How often it is looked for a step.
    CLOCK_LOOK_MS: u64 = 250, "milliseconds";
    /// The greatest generation (spec/hub.md). Beyond it no stream is made.
    MAX_GENERATION: u64 = (1 << 32) - 1, "generations";
    /// The greatest generation that the clock alone gives, in the year 2097. The rest is for those
    /// that follow, by one, where the clock does not.
    MAX_CLOCK_GENERATION: u64 = (1 << 32) - (1 << 28), "generations";
    /// How far the generations of a copy of a store go on beyond the original's at most, where the
    /// clock has not come so far.
    MAX_COPY_STEP: u64 = 1 << 20, "generations";
    /// Generations that run ahead of the clock by more than this, a day, are told.
    MAX_GENERATION_AHEAD: u64 = 86_400, "seconds";
    /// How far the time of day goes on before the store is told.
    CLOCK_MARK_MS: u64 = 60_000, "milliseconds";
    /// A time of day before this one, in November 2023, is of a clock that nobody has set.
    CLOCK_SENSE_MS: u64 = 1_700_000_000_000, "milliseconds";
    /// Steps ahead that are remembered. The oldest go first.
    MAX_CLOCK_STEPS: usize = 16, "steps";
    /// How often retention looks at the streams that have bounds.
    RETENTION_INTERVAL_MS: u64 = 250, "milliseconds";
    /// Delayed messages that one commit releases. Further ones come with the next.
    MAX_COMMIT_RELEASED: usize = 4096, "messages";
    /// How long after a failed commit delayed messages are released again.
    RELEASE_RETRY_MS: u64 = 250, "milliseconds";
    /// Streams of a pattern that a subscription joins before others have their turn.
    MAX_JOINS_AT_ONCE: usize = 256, "streams";
}
