//! The bounds of the client library.

sealane_message::limits! {
    /// Runs of counters by which a subscription knows what it has shown. Beyond it the oldest gaps
    /// count as seen.
    MAX_SEEN_RANGES: usize = 65_536, "ranges";
    /// Requests of one client that are on their way at once, each on a connection. More wait.
    MAX_OPEN_REQUESTS: usize = 32, "requests";
    /// An answer of a hub. A longer one is not read.
    MAX_ANSWER_BYTES: usize = 64 << 20, "bytes";
    /// Messages that wait in a publisher. At the limit sending waits.
    MAX_QUEUED_MESSAGES: usize = 16_384, "messages";
    /// Bytes that wait in a publisher. At the limit sending waits.
    MAX_QUEUED_BYTES: usize = 16 << 20, "bytes";
    /// Sealed messages of the last time that a client keeps, to seal them again if they fell behind
    /// a removal.
    MAX_SENT_HELD: usize = 1_024, "messages";
    /// Bytes of those messages.
    MAX_SENT_HELD_BYTES: usize = 1 << 20, "bytes";
    /// Streams of a group that a client remembers to have met. Further ones get no mark of its own.
    MAX_STREAMS_MET: usize = 1_024, "streams";
    /// The age from which an urgent message is old. It is shown, and triggers nothing any more.
    MAX_URGENT_AGE_MS: u64 = 300_000, "milliseconds";
    /// Events of a subscription that wait for a slow listener. Beyond it the oldest are dropped;
    /// the log has them all.
    MAX_EVENTS: usize = 256, "events";
    /// Acknowledgements that are sent together. Further ones go at once.
    MAX_ACKS_WAITING: usize = 256, "acknowledgements";
    /// An answer about documents. A longer one is not read.
    MAX_DOCUMENT_ANSWER_BYTES: u64 = 64 << 20, "bytes";
    /// How long a client waits before its second attempt. Later waits double.
    MIN_RETRY_WAIT_MS: u64 = 50, "milliseconds";
    /// How long a client waits between two attempts.
    MAX_RETRY_WAIT_MS: u64 = 5000, "milliseconds";
    /// How long a client repeats a request without an answer, unless it is told another time.
    MAX_PATIENCE_MS: u64 = 10_000, "milliseconds";
    /// Notices of a control stream that a client reads with one request.
    MAX_NOTICES_READ: usize = 500, "notices";
    /// Notices that a client publishes with one request.
    MAX_NOTICES_PUBLISHED: usize = 64, "notices";
    /// The least time between two looks at the end of a control stream.
    MIN_CONTROL_LOOK_MS: u64 = 100, "milliseconds";
    /// How long a client waits before it follows a control stream again that it lost for good.
    CONTROL_REJOIN_MS: u64 = 1000, "milliseconds";
    /// The least time between two looks for orders that another sender knows.
    MIN_ORDERS_LOOK_MS: u64 = 1000, "milliseconds";
    /// How long a hub may take for a whole answer. Then the answer counts as lost.
    MAX_ANSWER_MS: u64 = 30_000, "milliseconds";
    /// Messages of one request of a publisher. A hub takes more, but many publishers shall take
    /// turns.
    MAX_REQUEST_MESSAGES: usize = 4096, "messages";
    /// How long a hub may take to answer that a session stands. Then the connection counts as lost.
    MAX_SESSION_ANSWER_MS: u64 = 30_000, "milliseconds";
    /// How long a request without a reply waits for the removal of its stream. Then the stream
    /// stays.
    MAX_REPLY_REMOVAL_MS: u64 = 1000, "milliseconds";
    /// How long a hub may be silent on a WebSocket: three heartbeats and a little. Then the
    /// connection counts as lost.
    MAX_HUB_SILENCE_MS: u64 = 35_000, "milliseconds";
    /// How often a client asks the hub to say that it is still there.
    HEARTBEAT_INTERVAL_MS: u64 = 10_000, "milliseconds";
    /// How long a client waits for the end of a connection that it has closed. Then it cuts it.
    MAX_CLOSE_WAIT_MS: u64 = 2000, "milliseconds";
    /// How long a hub may take to answer a subscription. Then the connection counts as lost.
    MAX_SUBSCRIBE_ANSWER_MS: u64 = 30_000, "milliseconds";
    /// When a message of an unknown epoch comes again to a consumer.
    EPOCH_RETRY_MS: u64 = 1000, "milliseconds";
    /// How long an acknowledgement waits for others. Then all leave together.
    MAX_ACK_DELAY_MS: u64 = 5, "milliseconds";
    /// How long a connection may take to be made, and TLS upon it. Then it counts as refused.
    MAX_CONNECT_MS: u64 = 5000, "milliseconds";
}
