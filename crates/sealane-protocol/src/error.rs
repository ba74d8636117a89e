use std::borrow::Cow;

use sealane_codec::{Codec, CodecError};
use sealane_frame::{FrameError, GroupTag};
use sealane_message::{ErrorInfo, TopicError};

sealane_message::errors! {
    /// The error codes of the hub (spec/hub.md §9).
    pub const ERRORS;

    /// Why the hub refused or could not do something.
    #[derive(Debug, Clone, PartialEq, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// A body or frame that its codec does not allow.
        #[error("the {codec} could not be read: {cause}")]
        #[chosen_by(unread)]
        Decode {
            /// The codec's name.
            codec: &'static str,
            /// The codec's error.
            cause: CodecError,
        },
        /// An envelope that cannot be carried.
        #[error("the envelope {0}")]
        #[code("SL-HUB-03", "InvalidEnvelope")]
        #[cause("the envelope cannot be carried")]
        #[hint("Send a map; its id, if it has one, is text of 1 to 128 bytes.")]
        InvalidEnvelope(&'static str),
        /// A name that is no topic or pattern.
        #[error(transparent)]
        #[inner(0)]
        Topic(#[from] TopicError),
        /// A parameter or field whose value it cannot have.
        #[error("`{name}` {cause}")]
        #[code("SL-HUB-04", "InvalidParameter")]
        #[cause("a parameter has a value it cannot have")]
        #[hint("The message says which; `GET /v1/openapi.json` of a hub describes all parameters.")]
        InvalidParameter {
            /// The parameter's name.
            name: Cow<'static, str>,
            /// The form that it should have had.
            cause: Cow<'static, str>,
        },
        /// A frame with an unknown field or a wrong type.
        #[error("a frame's `{0}` is unknown or has the wrong type{form}", form = form(.0))]
        #[code("SL-HUB-05", "UnknownOp")]
        #[cause("a frame has an unknown field or a wrong type")]
        #[hint("Readers send credit, ack, nack (with delayMs) and seek, publishers send publish; \
                numbers are integers from 0.")]
        UnknownOp(String),
        /// A body of a request with an unknown field.
        #[error("the body has an unknown field `{field}`; expected {expected}")]
        #[code("SL-HUB-26", "UnknownField")]
        #[cause("the body of a request has an unknown field")]
        #[hint("Send the fields that the message shows, spelled as they stand there.")]
        UnknownField {
            /// The field, shortened.
            field: String,
            /// The form that the body should have.
            expected: &'static str,
        },
        /// A pattern without `consumer` or `from`.
        #[error("a pattern needs `consumer` or `from`")]
        #[code("SL-HUB-06", "PatternNeedsReader")]
        #[cause("a pattern was subscribed to without saying who reads")]
        #[hint("Add consumer=NAME to share the work or from=new to read for yourself.")]
        PatternNeedsReader,
        /// `nack` by a reader, `seek` by a consumer.
        #[error("`{0}` is not for this kind of subscription")]
        #[code("SL-HUB-07", "NotAConsumer")]
        #[cause("nack is for consumers and the inbox, seek is for readers")]
        #[hint("Subscribe with consumer=NAME to nack, with from=OFFSET to seek.")]
        NotAConsumer(&'static str),
        /// No stream of that name.
        #[error("there is no stream {0}")]
        #[code("SL-HUB-08", "UnknownStream")]
        #[cause("there is no stream of that name")]
        #[hint("A stream is made by its first message; list them with `sealane stream ls`.")]
        UnknownStream(String),
        /// A conditional append that came too late or too early.
        #[error("the next offset is {next}")]
        #[code("SL-HUB-09", "OffsetMismatch")]
        #[cause("the stream is not where `expect` says")]
        #[hint("Read on from your last offset, decide again, and repeat with the new `next`.")]
        OffsetMismatch {
            /// The offset that the next append gets.
            next: u64,
        },
        /// An idempotency key, or a number of a publishing session, that came with another message.
        #[error("the key, or the number in its session, was used with another message")]
        #[code("SL-HUB-10", "KeyReused")]
        #[cause("the idempotency key, or the number in its session, had another message before")]
        #[hint("Use a new key or number for a new message; repeat the same bytes with the old.")]
        KeyReused,
        /// Something over its limit.
        #[error("the {what} is over {limit} bytes")]
        #[code("SL-HUB-11", "TooLarge")]
        #[cause("a body, envelope or frame is over its limit")]
        #[hint("Split the data, or send a reference to it; the message names the limit.")]
        TooLarge {
            /// The thing that is too large.
            what: &'static str,
            /// The limit in bytes.
            limit: usize,
        },
        /// One more than a limit allows.
        #[error("there are {limit} {what} already")]
        #[code("SL-HUB-12", "TooMany", retry = Later)]
        #[cause("a limit is reached")]
        #[hint("Remove what is no longer used; the message names the limit.")]
        TooMany {
            /// The things of which there are too many.
            what: &'static str,
            /// The limit.
            limit: u64,
        },
        /// An owner has its share of what the hub has.
        #[error("{} {limit} {what} already, which is the share", sharer(owner))]
        #[code("SL-HUB-36", "ShareTaken", retry = Later)]
        #[cause("a token has its share of what the hub has")]
        #[hint("Remove what is no longer used, or give the token a larger share in tokens.toml; \
                the message names both.")]
        ShareTaken {
            /// The token; empty: no token was needed.
            owner: String,
            /// The things of which it has its share.
            what: &'static str,
            /// The share.
            limit: u64,
        },
        /// Other settings for a consumer that another token made.
        #[error("{stream} has the {} with other settings", called(consumer))]
        #[code("SL-HUB-37", "ConsumerNotYours")]
        #[cause("another token made the consumer, and its settings are others")]
        #[hint("Join it without settings, take another name, or bring a token with `manage` on the \
                stream.")]
        ConsumerNotYours {
            /// The stream.
            stream: String,
            /// The consumer.
            consumer: String,
        },
        /// The disk is full.
        #[error("the disk is full; nothing of the request was kept")]
        #[code("SL-HUB-13", "StorageFull", retry = Later, exit = Storage)]
        #[cause("the disk is full; nothing of the request was kept")]
        #[hint("Free space or set retention; the hub goes on as soon as there is room.")]
        StorageFull,
        /// The store failed.
        #[error("the store failed: {0}")]
        #[code("SL-HUB-14", "StorageFailed", retry = Later, exit = Storage)]
        #[cause("the store could not be read or written")]
        #[hint("See the node's log for the system's error; nothing was acknowledged.")]
        StorageFailed(String),
        /// Another process holds the store.
        #[error("another process holds the store; nothing of the request was kept")]
        #[code("SL-HUB-20", "StorageBusy", retry = Later, exit = Storage)]
        #[cause("another process holds the store; nothing of the request was kept")]
        #[hint("Send it again; the hub goes on when the other process lets go. `fuser streams.db` \
                names that process.")]
        StorageBusy,
        /// Another node uses the folder.
        #[error("{0}: another node uses this folder")]
        #[code("SL-HUB-21", "FolderInUse", exit = Usage)]
        #[cause("another node uses this data folder")]
        #[hint("Stop the other node, or name another folder with `--data`.")]
        FolderInUse(String),
        /// The file is no store, or its pages are damaged.
        #[error("{0}")]
        #[code("SL-HUB-22", "NotAStore", exit = Storage)]
        #[cause("the file is no store of streams, or its pages are damaged")]
        #[hint("Name the data folder of a node, or a backup of one. If it is damaged, keep it as \
                it is and `sealane restore` a backup into a new folder.")]
        NotAStore(String),
        /// The store was written by a newer program.
        #[error("the data format is {found}, this program knows up to {known}")]
        #[code("SL-HUB-23", "StoreTooNew", exit = Storage)]
        #[cause("the store was written by a newer program")]
        #[hint("Start it with the program that wrote it, or a newer one; nothing was changed.")]
        StoreTooNew {
            /// The version that was found.
            found: i64,
            /// The newest version that is known.
            known: i64,
        },
        /// There is a store already where one was to be made.
        #[error("{0}: there is a store already, or what is left of one")]
        #[code("SL-HUB-24", "TargetExists", exit = Usage)]
        #[cause("there is a store already where one was to be made")]
        #[hint("Name a new or an empty folder; nothing was changed.")]
        TargetExists(String),
        /// There is no store, or no backup, to read from.
        #[error("{0}")]
        #[code("SL-HUB-25", "NoStore", exit = Usage)]
        #[cause("there is no store, or no backup, in the folder")]
        #[hint("Name the folder that holds `streams.db`.")]
        NoStore(String),
        /// The stream was deleted while it was used.
        #[error("the stream was removed")]
        #[code("SL-HUB-15", "StreamRemoved")]
        #[cause("the stream was deleted while it was used")]
        #[hint("Subscribe again; the stream is made anew by its next message.")]
        StreamRemoved,
        /// No consumer of that name.
        #[error("{stream} has no {}", called(consumer))]
        #[code("SL-HUB-35", "UnknownConsumer")]
        #[cause("the stream has no consumer of that name")]
        #[hint("A consumer is made by its first member; `sealane consumer ls TOPIC` lists them.")]
        UnknownConsumer {
            /// The stream.
            stream: String,
            /// The name that was asked for.
            consumer: String,
        },
        /// The consumer was removed while it was used.
        #[error("the consumer was removed")]
        #[code("SL-HUB-32", "ConsumerRemoved")]
        #[cause("the consumer was removed while it was used")]
        #[hint("Subscribe again to make it anew, from the first message or from where you say.")]
        ConsumerRemoved,
        /// A place that no message has yet.
        #[error("the stream's next offset is {next}, which is before that")]
        #[code("SL-HUB-33", "BeyondEnd")]
        #[cause("the place that was asked for is beyond the end of the stream")]
        #[hint("Name an offset up to the stream's `next`, as `sealane stream info` shows it, or \
                `new`.")]
        BeyondEnd {
            /// The offset of the next message.
            next: u64,
        },
        /// No delayed message of that id.
        #[error("{stream} holds no message `{id}` back")]
        #[code("SL-HUB-34", "NotDelayed")]
        #[cause("no message of that id is held back for the stream")]
        #[hint("It may have come already; `sealane delayed ls TOPIC` lists what is held back.")]
        NotDelayed {
            /// The stream.
            stream: String,
            /// The id that was asked for.
            id: String,
        },
        /// The hub is closing.
        #[error("the hub is closing")]
        #[code("SL-HUB-16", "Draining", retry = Reconnect, exit = NotReachable)]
        #[cause("the node is stopping")]
        #[hint("Connect again later; clients of the library do so by themselves.")]
        Draining,
        /// An open message for a sealed stream.
        #[error("the stream is sealed for group {group} and takes no open message")]
        #[code("SL-HUB-17", "NotSealed")]
        #[cause("an open message was sent to a sealed stream")]
        #[hint("Publish with the group's keys, or to another stream; a sealed stream stays \
                sealed.")]
        NotSealed {
            /// The stream's group.
            group: GroupTag,
        },
        /// A sealed message, or a wish, that is not for what the stream is.
        #[error("the stream is {}, not sealed for group {asked}", described(stream))]
        #[code("SL-HUB-18", "SealMismatch")]
        #[cause("the stream is open or sealed for another group")]
        #[hint("See `sealane stream info TOPIC`. This does not change as long as the stream lives, \
                so take another topic.")]
        SealMismatch {
            /// The stream's group; none: it is open.
            stream: Option<GroupTag>,
            /// The group of the message, or that was asked for.
            asked: GroupTag,
        },
        /// A number of a publishing session before which others are missing.
        #[error("the next n of this session in this stream is {next}")]
        #[code("SL-HUB-27", "NumberSkipped")]
        #[cause("a message's n is not the next one of its session and stream")]
        #[hint("A refused message takes no n: go on from `next`, which stands beside the code.")]
        NumberSkipped {
            /// The number that comes next.
            next: u64,
        },
        /// A number of a publishing session that is too low for its place to be known.
        #[error("n {n} came before, and where it is stored is not known any more")]
        #[code("SL-HUB-28", "NumberForgotten")]
        #[cause("a message's n is lower than what the hub remembers of its session")]
        #[hint("Repeat only what was not answered; numbers begin with 1 and grow by 1.")]
        NumberForgotten {
            /// The number that was sent.
            n: u64,
        },
        /// A publishing session that goes on on another connection.
        #[error("the session goes on on another connection")]
        #[code("SL-HUB-29", "SessionTaken")]
        #[cause("another connection has named the same publishing session")]
        #[hint("Give each publisher a session of its own, or let the hub name it.")]
        SessionTaken,
        /// More was published on a connection than the hub asked for.
        #[error("more {what} were published than the hub has given credit for")]
        #[code("SL-HUB-30", "CreditExceeded")]
        #[cause("more was published on a connection than the hub has given credit for")]
        #[hint("Count what you send against the hub's `credit` frames, and wait for more.")]
        CreditExceeded {
            /// The unit in which the credit was exceeded.
            what: &'static str,
        },
        /// A condition that this hub does not know.
        #[error("the condition `{0}` is not known here")]
        #[code("SL-HUB-31", "UnknownCondition")]
        #[cause("a message is to be stored under a condition that this hub does not know")]
        #[hint("Conditions are: `expect`.")]
        UnknownCondition(String),
        /// A rule that is as exact as another one for the same topics.
        #[error("for some topics `{pattern}` is as exact as the rule `{other}`")]
        #[code("SL-HUB-38", "RuleTie")]
        #[cause("two rules of retention would hold for the same topics, and neither is more exact")]
        #[hint("Name more segments in one of the two patterns, or remove the other rule: \
                `sealane stream rules` lists them.")]
        RuleTie {
            /// The pattern of the rule that was to be made.
            pattern: String,
            /// That of the rule that is there.
            other: String,
        },
        /// No rule of this pattern.
        #[error("there is no rule `{0}`")]
        #[code("SL-HUB-39", "UnknownRule")]
        #[cause("no rule of retention has that pattern")]
        #[hint("`sealane stream rules` lists the rules.")]
        UnknownRule(String),
        /// The bytes of a sealed message are no frame in the full form.
        #[error("the sealed bytes are no frame: {0}")]
        #[code("SL-HUB-19", "FrameMalformed")]
        #[cause("the bytes of a sealed message are no frame")]
        #[hint("`sealed` is one frame in the full form, as `sealane inspect` explains it.")]
        FrameMalformed(FrameError),
    }

    /// The codec that could not be read. JSON, which most clients begin with, has a row of its own.
    enum Unread {
        /// A body or frame in JSON.
        #[code("SL-HUB-01", "InvalidJSON")]
        #[cause("the body or frame is not JSON")]
        #[hint("Send one JSON value in UTF-8, or name the codec you use.")]
        Json,
        /// A body or frame in another codec.
        #[code("SL-HUB-02", "DecodeError")]
        #[cause("the body or frame is not what its codec says")]
        #[hint("Check the codec; floats must be finite, map keys unique text, integers within 64 \
                bits.")]
        Other,
    }
}

fn described(stream: &Option<GroupTag>) -> String {
    stream.map_or("open".to_owned(), |group| format!("sealed for group {group}"))
}

/// The forms that a frame's field can have, where it is one that clients send.
fn form(field: &str) -> &'static str {
    match field {
        "credit" => r#"; expected {"credit": N}"#,
        "ack" => concat!(
            r#"; expected {"ack": ID}, {"ack": [ID, …]} or {"ack": {"from": N, "to": N}}, "#,
            r#"with "stream": TOPIC beside "from" if the subscription names a pattern"#
        ),
        "nack" | "delayMs" => concat!(
            r#"; expected {"nack": ID} or {"nack": {"from": N, "to": N}}, "#,
            r#"with "delayMs": N beside "nack" if you like"#
        ),
        "seek" => concat!(
            r#"; expected {"seek": {"offset": N}}, with "generation": N beside "offset" if you "#,
            r#"like, and "stream": TOPIC if the subscription names a pattern"#
        ),
        "publish" => concat!(
            r#"; expected {"publish": {"to": TOPIC, "n": N, "envelope": {…}}} or an array of "#,
            r#"such items"#
        ),
        _ => "",
    }
}

/// A field that the body of a request does not have.
pub(crate) fn unknown_field(field: &str, expected: &'static str) -> Error {
    const SHOWN_CHARS: usize = 64;
    Error::UnknownField { field: field.chars().take(SHOWN_CHARS).collect(), expected }
}

/// The integer that a field of a request is.
pub(crate) fn parameter_number(codec: Codec, raw: &[u8], name: &'static str) -> Result<u64, Error> {
    let cause = "is not an integer from 0";
    sealane_codec::read_u64(codec, raw).map_err(|_| Error::parameter(name, cause))
}

impl Error {
    fn unread(&self) -> &'static ErrorInfo {
        match self {
            Error::Decode { codec: "json", .. } => Unread::Json.info(),
            _ => Unread::Other.info(),
        }
    }

    /// A parameter or field `name` whose value it cannot have, and why.
    pub fn parameter(
        name: impl Into<Cow<'static, str>>,
        cause: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::InvalidParameter { name: name.into(), cause: cause.into() }
    }
}

/// The owner of a share, as people call it.
fn sharer(owner: &str) -> String {
    match owner {
        "" => "clients without a token have".to_owned(),
        owner => format!("the token `{owner}` has"),
    }
}

/// A consumer as people call it: the inbox has the empty name.
fn called(consumer: &str) -> String {
    if consumer.is_empty() { "inbox".to_owned() } else { format!("consumer `{consumer}`") }
}
