// `cargo xtask docs` makes this list: each error that a hub answers, from the tables of `errors!`.

hub_errors! {
    /// `SL-HUB-01`: the body or frame is not JSON.
    InvalidJSON: Never,
    /// `SL-HUB-02`: the body or frame is not what its codec says.
    DecodeError: Never,
    /// `SL-HUB-03`: the envelope cannot be carried.
    InvalidEnvelope: Never,
    /// `SL-HUB-04`: a parameter has a value it cannot have.
    InvalidParameter: Never,
    /// `SL-HUB-05`: a frame has an unknown field or a wrong type.
    UnknownOp: Never,
    /// `SL-HUB-06`: a pattern was subscribed to without saying who reads.
    PatternNeedsReader: Never,
    /// `SL-HUB-07`: nack is for consumers and the inbox, seek is for readers.
    NotAConsumer: Never,
    /// `SL-HUB-08`: there is no stream of that name.
    UnknownStream: Never,
    /// `SL-HUB-09`: the stream is not where `expect` says.
    OffsetMismatch: Never,
    /// `SL-HUB-10`: the idempotency key, or the number in its session, had another message before.
    KeyReused: Never,
    /// `SL-HUB-11`: a body, envelope or frame is over its limit.
    TooLarge: Never,
    /// `SL-HUB-12`: a limit is reached.
    TooMany: Later,
    /// `SL-HUB-13`: the disk is full; nothing of the request was kept.
    StorageFull: Later,
    /// `SL-HUB-14`: the store could not be read or written.
    StorageFailed: Later,
    /// `SL-HUB-15`: the stream was deleted while it was used.
    StreamRemoved: Never,
    /// `SL-HUB-16`: the node is stopping.
    Draining: Reconnect,
    /// `SL-HUB-17`: an open message was sent to a sealed stream.
    NotSealed: Never,
    /// `SL-HUB-18`: the stream is open or sealed for another group.
    SealMismatch: Never,
    /// `SL-HUB-19`: the bytes of a sealed message are no frame.
    FrameMalformed: Never,
    /// `SL-HUB-20`: another process holds the store; nothing of the request was kept.
    StorageBusy: Later,
    /// `SL-HUB-21`: another node uses this data folder.
    FolderInUse: Never,
    /// `SL-HUB-22`: the file is no store of streams, or its pages are damaged.
    NotAStore: Never,
    /// `SL-HUB-23`: the store was written by a newer program.
    StoreTooNew: Never,
    /// `SL-HUB-24`: there is a store already where one was to be made.
    TargetExists: Never,
    /// `SL-HUB-25`: there is no store, or no backup, in the folder.
    NoStore: Never,
    /// `SL-HUB-26`: the body of a request has an unknown field.
    UnknownField: Never,
    /// `SL-HUB-27`: a message's n is not the next one of its session and stream.
    NumberSkipped: Never,
    /// `SL-HUB-28`: a message's n is lower than what the hub remembers of its session.
    NumberForgotten: Never,
    /// `SL-HUB-29`: another connection has named the same publishing session.
    SessionTaken: Never,
    /// `SL-HUB-30`: more was published on a connection than the hub has given credit for.
    CreditExceeded: Never,
    /// `SL-HUB-31`: a message is to be stored under a condition that this hub does not know.
    UnknownCondition: Never,
    /// `SL-HUB-32`: the consumer was removed while it was used.
    ConsumerRemoved: Never,
    /// `SL-HUB-33`: the place that was asked for is beyond the end of the stream.
    BeyondEnd: Never,
    /// `SL-HUB-34`: no message of that id is held back for the stream.
    NotDelayed: Never,
    /// `SL-HUB-35`: the stream has no consumer of that name.
    UnknownConsumer: Never,
    /// `SL-HUB-36`: a token has its share of what the hub has.
    ShareTaken: Later,
    /// `SL-HUB-37`: another token made the consumer, and its settings are others.
    ConsumerNotYours: Never,
    /// `SL-HUB-38`: two rules of retention would hold for the same topics, and neither is more
    /// exact.
    RuleTie: Never,
    /// `SL-HUB-39`: no rule of retention has that pattern.
    UnknownRule: Never,
    /// `SL-NODE-01`: the codec asked for is not known here.
    UnknownCodec: Never,
    /// `SL-NODE-02`: there is nothing at this path.
    NotFound: Never,
    /// `SL-NODE-03`: the path exists, but not for this method.
    MethodNotAllowed: Never,
    /// `SL-NODE-04`: a subscription is a WebSocket.
    UpgradeRequired: Never,
    /// `SL-NODE-05`: the request's body did not arrive whole.
    BodyLost: Reconnect,
    /// `SL-NODE-06`: the token is missing, unknown or expired.
    Unauthorized: Never,
    /// `SL-NODE-07`: the token does not grant this.
    Forbidden: Never,
    /// `SL-NODE-08`: the request names another host, or comes from a page of another site.
    OriginRefused: Never,
    /// `SL-NODE-09`: the address has as many connections as one may have.
    TooManyConnections: Later,
    /// `SL-NODE-10`: a connection was made and nothing was said on it.
    SilentConnection: Never,
    /// `SL-NODE-11`: the head of a request did not come to its end in time.
    SlowHead: Never,
    /// `SL-NODE-12`: what was sent is no request of HTTP/1.1, or can be read as two different
    /// ones.
    NotHttp: Never,
    /// `SL-NODE-13`: the body of a request came too slowly.
    SlowBody: Later,
    /// `SL-NODE-14`: the memory for bodies of requests, or the token's share of it, is taken.
    Crowded: Later,
    /// `SL-NODE-15`: the token has enqueued more messages than it may.
    TooFast: Later,
    /// `SL-NODE-16`: the address has shown too many tokens that are not known.
    TooManyGuesses: Never,
    /// `SL-NODE-17`: a client did not agree on TLS, or not within MAX_HANDSHAKE_MS.
    HandshakeFailed: Never,
    /// `SL-NODE-18`: the port speaks TLS, and was sent something else.
    TlsRequired: Never,
    /// `SL-NODE-19`: the port does not speak TLS, and was asked to.
    TlsNotServed: Never,
    /// `SL-NODE-20`: the head of a request is over MAX_HEAD_BYTES, or has more than 100 fields.
    HeadTooLarge: Never,
    /// `SL-NODE-21`: a client sent what is no frame of the WebSocket protocol.
    WebSocketProtocol: Never,
    /// `SL-NODE-22`: the memory for replies, or this client's share of it, is taken by unread
    /// ones.
    RepliesUnread: Later,
    /// `SL-NODE-23`: the ticket is unknown, was used before, or is too old.
    TicketSpent: Never,
    /// `SL-TOPIC-01`: the topic or pattern is not well formed.
    InvalidTopic: Never,
}
