//! The bounds of the daemon.

sealane_message::limits! {
    /// Tokens of one node. More are refused.
    MAX_TOKENS: usize = 4096, "tokens";
    /// A token's name. A longer one is refused.
    MAX_TOKEN_NAME_BYTES: usize = 64, "bytes";
    /// Patterns of one right of a token. More are refused.
    MAX_TOKEN_PATTERNS: usize = 256, "patterns";
    /// Bytes in one batched delivery frame, unless a single message is larger.
    MAX_DELIVERY_BATCH_BYTES: usize = 256 << 10, "bytes";
    /// Bytes of deliveries that all connections together hold until their clients take them. A
    /// connection takes a share of what is left, and waits its turn where nothing is.
    MAX_DELIVERIES_BYTES: usize = 256 << 20, "bytes";
    /// Bytes of deliveries that one connection holds at most, unless a single one is larger.
    MAX_CONNECTION_DELIVERIES_BYTES: usize = 1 << 20, "bytes";
    /// Bytes of replies that are larger than the share of their connection, all together, until
    /// their clients take them: a part of `MAX_DELIVERIES_BYTES`, which nothing smaller takes. If a
    /// further one lacks room, those that stand still are cut off. A token may hold a quarter of
    /// it, and an only one all.
    MAX_REPLIES_BYTES: usize = MAX_DELIVERIES_BYTES / 4, "bytes";
    /// How long a reply waits for room, or for its turn to be made. Then it is refused.
    MAX_REPLY_WAIT_MS: u64 = 10_000, "milliseconds";
    /// How long a client may take nothing of a large reply while others lack room. Then it is cut
    /// off.
    MIN_REPLY_STALL_MS: u64 = 250, "milliseconds";
    /// Replies of unknown size that a node makes at once, and a quarter of it for one of several
    /// tokens. Further ones wait. As many event sources may wait for room for a large reply;
    /// further ones are refused.
    MAX_REPLIES_MADE: usize = 8, "replies";
    /// The piece in which a large reply leaves.
    REPLY_PIECE_BYTES: usize = 64 << 10, "bytes";
    /// Consumers that the streams of one list have, unless a single stream has more. The reply
    /// names where to go on.
    MAX_LISTED_CONSUMERS: usize = 4096, "consumers";
    /// Streams that one list looks at once it has found one that is asked for and may be read. The
    /// reply names where to go on.
    MAX_LIST_LOOKS: usize = 10_000, "streams";
    /// Connections of one node. A further one waits to be accepted.
    MAX_CONNECTIONS: usize = 100_000, "connections";
    /// Connections that are a crowd. If so many were there and an eighth is left, the node gives
    /// memory back.
    MIN_CROWD: usize = 256, "connections";
    /// How often the node looks whether a crowd has gone.
    CROWD_LOOK_MS: u64 = 1000, "milliseconds";
    /// How long a node that has given memory back leaves further crowds be, at least.
    MIN_GIVE_BACK_MS: u64 = 60_000, "milliseconds";
    /// It does so for so many times as long as giving back took, if that is longer.
    GIVE_BACK_REST: u32 = 1000, "times";
    /// How often a node looks whether the figures of an overview have changed.
    OVERVIEW_LOOK_MS: u64 = 1000, "milliseconds";
    /// A node rests so many times as long as its last look at an overview took, if that is longer.
    OVERVIEW_REST: u32 = 20, "times";
    /// The part of a topic by which an overview looks for streams. A longer one is refused.
    MAX_SEARCH_BYTES: usize = 1024, "bytes";
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
    /// Spans that wait for the collector. Further ones are dropped and counted.
    MAX_WAITING_SPANS: usize = 4096, "spans";
    /// Spans that the collector is handed at once. Further ones come with the next.
    MAX_SPANS_AT_ONCE: usize = 512, "spans";
    /// Messages that one publishing socket may have unanswered. It is asked for no more than that;
    /// more than it was asked for closes it.
    MAX_PUBLISH_CREDIT: u64 = 4096, "messages";
    /// Bytes that one publishing socket is asked for while the hub has not taken them, and one
    /// message.
    MAX_PUBLISH_CREDIT_BYTES: u64 = 1 << 20, "bytes";
    /// Messages that a publishing socket is asked for at first, and however many others there are.
    /// A client that sends more than one at a time is soon asked for more. One that does not needs
    /// no more, and what the hub keeps of its session stays short.
    FIRST_PUBLISH_CREDIT: u64 = 32, "messages";
    /// Bytes that it is asked for at first, and however many others there are.
    FIRST_PUBLISH_CREDIT_BYTES: u64 = 4 << 10, "bytes";
    /// The memory that counts for a message of a publishing socket, beside its own bytes.
    PUBLISHED_MESSAGE_BYTES: u64 = 512, "bytes";
    /// Room for what publishing sockets are asked for beyond their first credit, all together. None
    /// is asked for more than there is room for, nor for more than an equal part of it. A message
    /// that goes beyond its socket's credit counts here until the hub has taken it.
    MAX_ASKED_BYTES: u64 = 32 << 20, "bytes";
    /// Subscriptions and publishing sockets of one node, together. A further one is refused.
    MAX_SUBSCRIPTIONS: usize = 50_000, "subscriptions";
    /// WebSockets that are refused and are being told why, at once. A further one is refused by an
    /// answer of HTTP.
    MAX_TOLD_REFUSALS: usize = 256, "WebSockets";
    /// How long an event source is silent before the node sends a comment, so that proxies leave
    /// the connection.
    EVENT_COMMENT_MS: u64 = 15_000, "milliseconds";
    /// Connections that the equal half of all deliveries is parted among, however few there are.
    MIN_EQUAL_SHARES: usize = 256, "connections";
    /// Deliveries that a connection may hold if nothing is left.
    MIN_SHARE_KIB: usize = 2, "KiB";
    /// How often a node looks whether its files of tokens and certificates have changed.
    FILE_LOOK_MS: u64 = 250, "milliseconds";
    /// How often the hub pings a WebSocket.
    PING_INTERVAL_MS: u64 = 25_000, "milliseconds";
    /// How long a client may take to read why its WebSocket is closed. Then the connection is cut.
    MAX_FAREWELL_MS: u64 = 2000, "milliseconds";
    /// Bytes of its own answers that the WebSocket library keeps if a client takes none of them.
    MAX_LIBRARY_ANSWERS_BYTES: usize = 4096, "bytes";
    /// How long a stopping node waits for its clients to go. Then it closes their connections.
    MAX_DRAIN_MS: u64 = 5000, "milliseconds";
    /// How long a stopping node waits for the collector to take its last spans. Then they are lost.
    MAX_LAST_SPANS_MS: u64 = 2000, "milliseconds";
    /// Bytes that may wait on a WebSocket when the library adds its answers. Beyond it the library
    /// waits.
    MAX_BEFORE_ANSWERS_BYTES: usize = 64 << 10, "bytes";
    /// How long a node believes that the disk takes what it writes. Then a question about its
    /// health writes again.
    MAX_PROBE_AGE_MS: u64 = 2000, "milliseconds";
    /// The longest time between two looks for streams of answers that nobody reads.
    MAX_REPLY_LOOK_MS: u64 = 30_000, "milliseconds";
    /// Streams that such a look takes before others have their turn.
    MAX_REPLY_LOOKS: usize = 256, "streams";
    /// How much the time of day may differ from the time that passed between two such looks. Beyond
    /// it every answer has its whole time again.
    MAX_CLOCK_DRIFT_MS: u64 = 2000, "milliseconds";
    /// Bytes that the node reads of a client that it refuses by its first byte.
    MAX_REFUSED_HELLO_BYTES: usize = 4096, "bytes";
    /// Bytes that the system takes of a connection beyond those that it can send now.
    MAX_UNSENT_BYTES: u32 = 128 << 10, "bytes";
    /// How long a client that is turned away may take to read why. Then its connection is cut.
    MAX_REFUSAL_MS: u64 = 500, "milliseconds";
    /// How long spans wait for more of them.
    SPAN_GATHER_MS: u64 = 1000, "milliseconds";
    /// How often a list of spans is sent to a collector that asks for it again. Then its spans
    /// count as dropped.
    MAX_SPAN_ATTEMPTS: u32 = 3, "attempts";
    /// How long the node waits before it sends a list again, unless the collector says how long.
    /// The next time it waits twice as long.
    FIRST_SPAN_RETRY_MS: u64 = 500, "milliseconds";
    /// Bytes of a body that is too large, which the node reads and forgets so that its client comes
    /// to the refusal.
    MAX_DISCARDED_BYTES: usize = 64 << 20, "bytes";
    /// How long it does so.
    MAX_DISCARD_MS: u64 = 2000, "milliseconds";
    /// How long a collector may take to answer. Then the spans that it was handed count as dropped.
    MAX_COLLECTOR_MS: u64 = 5000, "milliseconds";
    /// How long a ticket stands for its token. Then it is worth nothing.
    MAX_TICKET_MS: u64 = 30_000, "milliseconds";
    /// Tickets of one token that are not used yet; all that come without a token count as one. A
    /// further one is refused.
    MAX_TOKEN_TICKETS: usize = 1024, "tickets";
    /// Tickets of one node that are not used yet. A further one is refused.
    MAX_TICKETS: usize = 65_536, "tickets";
    /// Records of one deed of one token in a second, over ten seconds. Further ones are counted in
    /// the next record.
    AUDITED_PER_SECOND: u64 = 20, "records per second";
    /// The same for each deed after which messages are gone.
    AUDITED_REMOVALS_PER_SECOND: u64 = 1000, "records per second";
    /// Records of one refusal of one token and address in a minute. Further ones are counted in the
    /// next record.
    MAX_REFUSALS_PER_MINUTE: u64 = 6, "records per minute";
    /// Records of refusals of all clients in a minute. Further ones are counted in the next record.
    MAX_ALL_REFUSALS_PER_MINUTE: u64 = 60, "records per minute";
    /// Records of the audit that wait to be stored. Further ones are counted, and stand in the log.
    MAX_WAITING_AUDIT: usize = 1024, "records";
    /// Records of the audit that are stored at once.
    MAX_AUDITED_AT_ONCE: usize = 256, "records";
    /// Bytes of what a record says that something was done to. The rest is left out.
    MAX_AUDITED_BYTES: usize = 320, "bytes";
    /// How long a stream of the audit keeps a record, unless its owner sets another time.
    MAX_AUDIT_AGE_MS: u64 = 90 * 24 * 3600 * 1000, "milliseconds";
    /// Bytes that a stream of the audit keeps, unless its owner sets another bound.
    MAX_AUDIT_BYTES: u64 = 64 << 20, "bytes";
    /// How long a node that stops waits until the last records of the audit are stored.
    MAX_LAST_AUDIT_MS: u64 = 5000, "milliseconds";
    /// How often the node looks whether its store takes messages, for the audit.
    AUDIT_LOOK_MS: u64 = 1000, "milliseconds";
    /// Bytes that the node reads of a WebSocket that it refuses. More ends it.
    MAX_REFUSED_SOCKET_BYTES: usize = 4096, "bytes";
}
