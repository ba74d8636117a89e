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
}
