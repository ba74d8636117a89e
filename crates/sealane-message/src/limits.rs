//! Every bound of the system, in one table.
//!
//! `docs/LIMITS.md` is generated from [`TABLE`]; `cargo xtask check` fails when they differ.

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $value:expr, $unit:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: $type = $value;)+

        /// All limits, for the documentation.
        pub const TABLE: &[Limit] = &[
            $(Limit {
                name: stringify!($name),
                value: $name as u64,
                unit: $unit,
                meaning: concat!($($doc),+),
            },)+
        ];
    };
}

/// One row of [`TABLE`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limit {
    /// The constant's name in this module.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// What it counts.
    pub unit: &'static str,
    /// What is bounded, and what happens beyond it.
    pub meaning: &'static str,
}

limits! {
    /// A topic's length. A longer one is refused.
    MAX_TOPIC_BYTES: usize = 255, "bytes";
    /// Segments of a topic or pattern. More are refused.
    MAX_TOPIC_SEGMENTS: usize = 16, "segments";
    /// One message's envelope, encoded. A larger one is refused.
    MAX_ENVELOPE_BYTES: usize = 1 << 20, "bytes";
    /// Nesting of an envelope; the envelope itself is level 1. A deeper one is refused. Frames,
    /// batches and dead letters add four levels around it.
    MAX_ENVELOPE_DEPTH: usize = MAX_DEPTH - 4, "levels";
    /// Values in one envelope. More are refused. Frames and dead letters add a few around it.
    MAX_ENVELOPE_VALUES: usize = MAX_VALUES - 64, "values";
    /// A message's id. A longer one is refused.
    MAX_ID_BYTES: usize = 128, "bytes";
    /// Nesting of arrays and maps; the outermost is level 1. Deeper values are refused.
    MAX_DEPTH: usize = 32, "levels";
    /// Values in one encoded datum, each map key and each element counted. More are refused, so
    /// that a small input cannot become a large structure.
    MAX_VALUES: usize = 1 << 18, "values";
    /// Record structures of one `msgpack-records` connection. Later shapes travel as plain maps.
    MAX_RECORDS: usize = 64, "structures";
    /// Keys of one record structure. Wider maps travel as plain maps.
    MAX_RECORD_KEYS: usize = 64, "keys";
    /// All keys of one record structure together. Longer ones travel as plain maps.
    MAX_STRUCTURE_BYTES: usize = 4096, "bytes";
    /// How people call a member, in an event. A longer handle is refused.
    MAX_HANDLE_BYTES: usize = 64, "bytes";
    /// Members whom one event mentions. More are refused.
    MAX_MENTIONS: usize = 256, "mentions";
    /// Attachments of one event. More are refused.
    MAX_ATTACHMENTS: usize = 64, "attachments";
    /// Named facts of one attachment. More are refused.
    MAX_ATTACHMENT_FACTS: usize = 64, "facts";
    /// Options of one poll, and choices of one vote. More are refused.
    MAX_POLL_OPTIONS: usize = 64, "options";
    /// Links of one rich text. More are refused.
    MAX_LINKS: usize = 256, "links";
    /// Tokens of one node. More are refused.
    MAX_TOKENS: usize = 4096, "tokens";
    /// A token's name. A longer one is refused.
    MAX_TOKEN_NAME_BYTES: usize = 64, "bytes";
    /// Patterns of one right of a token. More are refused.
    MAX_TOKEN_PATTERNS: usize = 256, "patterns";
    /// Slots of a group within one epoch: 10 bits of the key id.
    MAX_SLOT: u16 = 1023, "slot";
    /// Counters of one sender and epoch, 40 bits. Beyond it nothing is sealed until the next epoch.
    MAX_COUNTER: u64 = (1 << 40) - 1, "counter";
    /// A body that is sealed. A larger one is refused.
    MAX_SEALED_BODY_BYTES: usize = 16 << 20, "bytes";
    /// The authenticated part of a header that is sealed with a body. More is refused.
    MAX_META_BYTES: usize = 256, "bytes";
    /// Counters of one sender that may arrive out of order. Older messages are refused as replays.
    WINDOW_BITS: u64 = 1024, "messages";
    /// Epochs that a receiver ratchets ahead on a trial, and that an order may skip.
    MAX_EPOCHS_AHEAD: u64 = 1024, "epochs";
    /// Epochs behind the newest of which live messages are still taken.
    MAX_LIVE_EPOCHS_BEHIND: u64 = 1, "epochs";
    /// Epoch secrets that one group holds. More are refused until some are forgotten.
    MAX_EPOCHS_HELD: usize = 4096, "secrets";
    /// Counters of one reservation. A larger one is cut to this.
    MAX_RESERVED_COUNTERS: u64 = 1 << 20, "counters";
    /// A policy file. A larger one is refused.
    MAX_POLICY_BYTES: usize = 64 << 10, "bytes";
    /// The reason that a policy file gives for weakening a rule. A longer one is refused.
    MAX_REASON_BYTES: usize = 200, "bytes";
    /// The smallest fragment that a policy may ask for. A smaller one is refused.
    MIN_POLICY_FRAGMENT_BYTES: u16 = 32, "bytes";
    /// How long a policy may gather messages before they are sent. More is refused.
    MAX_POLICY_BATCH_MS: u32 = 60_000, "milliseconds";
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
    /// Peers whose frames are being put together. A further one is refused.
    MAX_PARTIAL_PEERS: usize = 64, "peers";
    /// How long a frame may be incomplete. Then it is given up.
    MAX_PARTIAL_AGE_MS: u64 = 5000, "milliseconds";
    /// A frame or fragment within a batch of a link. A longer one travels alone.
    MAX_BATCHED_BYTES: usize = 0x7fff, "bytes";
    /// Slots of which a link knows the member, all groups together. A further one is refused.
    MAX_ROSTER_SLOTS: usize = 65_536, "slots";
    /// Members of one group, removed ones included: the slots that its key ids can name.
    MAX_ROSTER_MEMBERS: usize = 1 << 10, "members";
    /// The name of an identity, a member or a group. A longer one is refused.
    MAX_NAME_BYTES: usize = 64, "bytes";
    /// Secrets that one order carries. An order for more members is split.
    MAX_ORDER_WRAPS: usize = 256, "members";
    /// Cards of one key folder that wait for an invitation. A further one replaces the oldest.
    MAX_CARDS_WAITING: usize = 64, "cards";
    /// A group's file in the key folder, or an invitation. A longer one is neither kept nor read.
    MAX_GROUP_FILE_BYTES: usize = 4 << 20, "bytes";
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
    /// Bytes in one batched delivery frame, unless a single message is larger.
    MAX_DELIVERY_BATCH_BYTES: usize = 256 << 10, "bytes";
    /// Messages that one consumer may have delivered and not yet acknowledged. At the limit no
    /// further message is delivered to it until one is acknowledged. Each takes about 160 bytes of
    /// the node's memory.
    MAX_IN_FLIGHT: usize = 65_536, "messages";
    /// Runs of counters by which a subscription knows what it has shown. Beyond it the oldest gaps
    /// count as seen.
    MAX_SEEN_RANGES: usize = 65_536, "ranges";
    /// Answers to `seek` that a connection has not read. One that asks for more is closed.
    MAX_WAITING_ANSWERS: usize = 1024, "answers";
    /// Streams of one hub. A further one is refused.
    MAX_STREAMS: usize = 100_000, "streams";
    /// Consumers of one stream, its inbox included. A further one is refused.
    MAX_CONSUMERS: usize = 4096, "consumers";
    /// Consumers of one stream that one token made; all that come without a token count as one. A
    /// further one is refused.
    MAX_TOKEN_CONSUMERS: usize = 256, "consumers";
    /// A consumer's name. A longer one is refused.
    MAX_CONSUMER_NAME_BYTES: usize = 64, "bytes";
    /// Streams that all subscriptions together follow, each counted as often as it is followed. At
    /// the limit a subscription that follows more than its share is closed. Each takes about 180
    /// bytes of the node's memory.
    MAX_FOLLOWED_STREAMS: usize = 2_000_000, "streams";
    /// Bytes of deliveries that all connections together hold until their clients take them. A
    /// connection takes a share of what is left, and waits its turn where nothing is.
    MAX_DELIVERIES_BYTES: usize = 256 << 20, "bytes";
    /// Bytes of deliveries that one connection holds at most, unless a single one is larger.
    MAX_CONNECTION_DELIVERIES_BYTES: usize = 1 << 20, "bytes";
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
    /// Messages that a catching-up reader takes from disk at once.
    MAX_READ_BATCH: usize = 4096, "messages";
    /// Messages that one range request returns. The reply names where to go on.
    MAX_RANGE_MESSAGES: usize = 1000, "messages";
    /// Streams that one list looks at once it has found one that is asked for and may be read. The
    /// reply names where to go on.
    MAX_LIST_LOOKS: usize = 10_000, "streams";
    /// Delayed messages of one hub. A further one is refused.
    MAX_DELAYED: usize = 1_000_000, "messages";
    /// The longest delay of an enqueue or a nack.
    MAX_DELAY_MS: u64 = 30 * 24 * 3600 * 1000, "milliseconds";
    /// An idempotency key. A longer one is refused.
    MAX_IDEMPOTENCY_KEY_BYTES: usize = 128, "bytes";
    /// Idempotency keys kept. The oldest go first.
    MAX_IDEMPOTENCY_KEYS: usize = 1_000_000, "keys";
    /// How long an idempotency key is kept.
    MAX_IDEMPOTENCY_AGE_MS: u64 = 24 * 3600 * 1000, "milliseconds";
    /// Offsets of one stream: 2^40, a million a second for twelve days, or a thousand for 34 years.
    MAX_OFFSET: u64 = (1 << 40) - 1, "offset";
    /// A chunk's plaintext in a vault. A longer one is neither made nor read.
    MAX_CHUNK_BYTES: usize = 4 << 20, "bytes";
    /// The size at which a vault's pack is closed.
    PACK_TARGET_BYTES: u64 = 32 << 20, "bytes";
    /// A pack. A larger one is not read.
    MAX_PACK_BYTES: u64 = 64 << 20, "bytes";
    /// A pack's trailer. A longer one is refused before memory is taken.
    MAX_TRAILER_BYTES: usize = 32 << 20, "bytes";
    /// An index object. A put whose trailers are longer writes several.
    MAX_INDEX_BYTES: usize = 32 << 20, "bytes";
    /// A snapshot object. A put that would need a larger one is refused.
    MAX_SNAPSHOT_BYTES: usize = 32 << 20, "bytes";
    /// A vault's config object.
    MAX_CONFIG_BYTES: usize = 256, "bytes";
    /// A key slot object.
    MAX_SLOT_BYTES: usize = 4096, "bytes";
    /// Key slots of one vault. A further one is refused.
    MAX_VAULT_SLOTS: usize = 256, "slots";
    /// A report of a proven restore.
    MAX_REPORT_BYTES: usize = 64 << 10, "bytes";
    /// Memory that a passphrase slot may ask for. One that asks for more is refused.
    MAX_KDF_MEMORY_KIB: u32 = 1 << 20, "KiB";
    /// Passes over that memory that a passphrase slot may ask for.
    MAX_KDF_PASSES: u32 = 16, "passes";
    /// Lanes that a passphrase slot may ask for.
    MAX_KDF_LANES: u32 = 16, "lanes";
    /// A key slot's label. A longer one is refused.
    MAX_LABEL_BYTES: usize = 64, "bytes";
    /// A snapshot's note. A longer one is refused.
    MAX_NOTE_BYTES: usize = 4096, "bytes";
    /// A path within a vault, and a link's target. A longer one is refused.
    MAX_PATH_BYTES: usize = 4096, "bytes";
    /// Entries of one page of a snapshot.
    MAX_PAGE_ENTRIES: usize = 1024, "entries";
    /// Pieces of one file that stand in its entry, or in one list. More are written as lists.
    MAX_PIECES: usize = 1024, "pieces";
    /// Threads that compress and seal. More are not started.
    MAX_VAULT_THREADS: usize = 64, "threads";
    /// Connections of one node. A further one waits to be accepted.
    MAX_CONNECTIONS: usize = 100_000, "connections";
    /// Connections of one address to a node, unless it is started with another number. A further
    /// one is refused. 64 bits of an IPv6 address count as one.
    MAX_CONNECTIONS_PER_ADDRESS: usize = 4096, "connections";
    /// Connections that a node accepts in a second. Whoever comes faster waits in the system's
    /// queue, so that a crowd takes no more of the machine than this.
    MAX_ACCEPT_RATE: u64 = 4000, "connections a second";
    /// How long a connection may be silent before its first byte. Then it is closed.
    MAX_WAITING_MS: u64 = 10_000, "milliseconds";
    /// How long the head of a request may take, and a connection be idle between two requests. Then
    /// it is closed.
    MAX_HEAD_MS: u64 = 30_000, "milliseconds";
    /// The head of a request, and what is read of a connection at once. A larger head is refused.
    MAX_HEAD_BYTES: usize = 64 << 10, "bytes";
    /// How long the handshake of TLS may take. Then the connection is closed.
    MAX_HANDSHAKE_MS: u64 = 10_000, "milliseconds";
    /// How far the body of a request may fall behind `MIN_BODY_RATE`, and how long it may stand
    /// still, however fast it came before. Then it is refused.
    MAX_BODY_GRACE_MS: u64 = 10_000, "milliseconds";
    /// The slowest body of a request: but for the grace, so much must come every second. A slower
    /// one is refused.
    MIN_BODY_RATE: usize = 8192, "bytes per second";
    /// Bodies of requests that a node holds at once, all together. One more is refused.
    MAX_BODIES_BYTES: usize = 256 << 20, "bytes";
    /// Bodies of requests that a node holds at once for one token. One more is refused.
    MAX_TOKEN_BODIES_BYTES: usize = MAX_BODIES_BYTES / 8, "bytes";
    /// How long a client may take nothing of what it is sent, or send nothing on a WebSocket. Then
    /// its connection is closed.
    MAX_SILENCE_MS: u64 = 90_000, "milliseconds";
    /// Messages that one token may enqueue in a second, unless the node is started with another
    /// number. Beyond it enqueuing is refused with the time to wait.
    MAX_ENQUEUE_RATE: u64 = 100_000, "messages per second";
    /// Unknown tokens that one address may show in a minute. Beyond it they are refused with the
    /// time to wait, and the connection is closed.
    MAX_GUESSES_PER_MINUTE: u64 = 60, "tokens";
    /// Addresses whose rates are followed. Beyond it any of them is forgotten.
    MAX_RATE_KEYS: usize = 65_536, "addresses";
    /// Streams whose messages one event source has had: its `id` names them all. One more ends it.
    MAX_EVENT_STREAMS: usize = 64, "streams";
    /// Connections that the state of a stream shows. Further ones are counted and not shown.
    MAX_SHOWN_CONNECTIONS: usize = 100, "connections";
    /// Subscriptions of one node. A further one is refused.
    MAX_SUBSCRIPTIONS: usize = 50_000, "subscriptions";
    /// The file of one n2s blob, which is read whole. A larger one is refused.
    MAX_N2S_BLOB_BYTES: u64 = 6 << 30, "bytes";
    /// A file in an n2s blob, which is held whole in memory. A larger one is refused.
    MAX_N2S_FILE_BYTES: u64 = 4 << 30, "bytes";
    /// An object that is sent to a bucket in one request. A larger one goes in parts.
    S3_SINGLE_PUT_BYTES: u64 = 8 << 20, "bytes";
    /// A part of an object that is sent to a bucket; the last may be shorter.
    S3_PART_BYTES: u64 = 8 << 20, "bytes";
    /// Parts that are on their way to a bucket at once. Further ones wait.
    MAX_S3_PARTS_IN_FLIGHT: usize = 2, "parts";
    /// Times that a request is sent to a bucket again. Then its error is reported.
    MAX_S3_RETRIES: usize = 6, "requests";
    /// How long a request is tried again. Then its error is reported.
    MAX_S3_RETRY_MS: u64 = 60_000, "milliseconds";
    /// How long it may take to reach a bucket. Then the request has failed.
    MAX_S3_CONNECT_MS: u64 = 10_000, "milliseconds";
    /// How long a bucket may be silent, from the first byte that it is sent. Then the request has
    /// failed: a part takes a link of 0.6 Mbit/s.
    MAX_S3_SILENCE_MS: u64 = 120_000, "milliseconds";
    /// The journal of an upload in parts. A longer file is none.
    MAX_UPLOAD_JOURNAL_BYTES: u64 = 1 << 20, "bytes";
    /// A message that the bench looks at. A larger one is counted as broken.
    MAX_BENCH_MESSAGE_BYTES: usize = MAX_FRAME_BODY_BYTES / 2, "bytes";
    /// Messages that the bench measures with. Of more, so many are drawn at random.
    MAX_BENCH_SAMPLE_MESSAGES: usize = 1024, "messages";
    /// Bytes of those messages. Beyond it, fewer are kept.
    MAX_BENCH_SAMPLE_BYTES: usize = 16 << 20, "bytes";
    /// How long an unfinished upload or pack waits to be continued. Then it is given up.
    MAX_SPOOL_AGE_MS: u64 = 24 * 3600 * 1000, "milliseconds";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_named_once_and_positive() {
        for (index, limit) in TABLE.iter().enumerate() {
            assert!(limit.value > 0, "{}", limit.name);
            assert!(TABLE[..index].iter().all(|other| other.name != limit.name));
        }
    }
}
