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
    /// Events of a subscription that wait for a slow listener. Beyond it the oldest are dropped;
    /// the log has them all.
    MAX_EVENTS: usize = 256, "events";
    /// Acknowledgements that are sent together. Further ones go at once.
    MAX_ACKS_WAITING: usize = 256, "acknowledgements";
}
