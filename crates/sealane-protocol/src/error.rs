use std::borrow::Cow;

use sealane_codec::{Codec, CodecError};
use sealane_frame::{FrameError, GroupTag};
use sealane_message::{ErrorInfo, TopicError};

/// Why the hub refused or could not do something.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A body or frame that its codec does not allow.
    #[error("the {codec} could not be read: {cause}")]
    Decode {
        /// The codec's name.
        codec: &'static str,
        /// What was wrong.
        cause: CodecError,
    },
    /// An envelope that cannot be carried.
    #[error("the envelope {0}")]
    InvalidEnvelope(&'static str),
    /// A name that is no topic or pattern.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A parameter or field whose value it cannot have.
    #[error("`{name}` {cause}")]
    InvalidParameter {
        /// The parameter's name.
        name: Cow<'static, str>,
        /// What it should have been.
        cause: &'static str,
    },
    /// A frame with an unknown field or a wrong type.
    #[error("a frame's `{0}` is unknown or has the wrong type{form}", form = form(.0))]
    UnknownOp(String),
    /// A body of a request with an unknown field.
    #[error("the body has an unknown field `{field}`; expected {expected}")]
    UnknownField {
        /// The field, shortened.
        field: String,
        /// The form that the body should have.
        expected: &'static str,
    },
    /// A pattern without `consumer` or `from`.
    #[error("a pattern needs `consumer` or `from`")]
    PatternNeedsReader,
    /// `nack` by a reader, `seek` by a consumer.
    #[error("`{0}` is not for this kind of subscription")]
    NotAConsumer(&'static str),
    /// No stream of that name.
    #[error("there is no stream {0}")]
    UnknownStream(String),
    /// A conditional append that came too late or too early.
    #[error("the next offset is {next}")]
    OffsetMismatch {
        /// The offset that the next append gets.
        next: u64,
    },
    /// An idempotency key that came with another body before.
    #[error("the idempotency key was used with another body")]
    KeyReused,
    /// Something over its limit.
    #[error("the {what} is over {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// One more than a limit allows.
    #[error("there are {limit} {what} already")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The disk is full.
    #[error("the disk is full; nothing of the request was kept")]
    StorageFull,
    /// The store failed.
    #[error("the store failed: {0}")]
    StorageFailed(String),
    /// Another process holds the store.
    #[error("another process holds the store; nothing of the request was kept")]
    StorageBusy,
    /// Another node uses the folder.
    #[error("{0}: another node uses this folder")]
    FolderInUse(String),
    /// The file is no store, or its pages are damaged.
    #[error("{0}")]
    NotAStore(String),
    /// The store was written by a newer program.
    #[error("the data format is {found}, this program knows up to {known}")]
    StoreTooNew {
        /// The version that was found.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// There is a store already where one was to be made.
    #[error("{0}: there is a store already, or what is left of one")]
    TargetExists(String),
    /// There is no store, or no backup, to read from.
    #[error("{0}")]
    NoStore(String),
    /// The stream was deleted while it was used.
    #[error("the stream was removed")]
    StreamRemoved,
    /// The hub is closing.
    #[error("the hub is closing")]
    Draining,
    /// An open message for a sealed stream.
    #[error("the stream is sealed for group {group} and takes no open message")]
    NotSealed {
        /// The stream's group.
        group: GroupTag,
    },
    /// A sealed message, or a wish, that is not for what the stream is.
    #[error("the stream is {}, not sealed for group {asked}", described(stream))]
    SealMismatch {
        /// The stream's group; none: it is open.
        stream: Option<GroupTag>,
        /// The group of the message, or that was asked for.
        asked: GroupTag,
    },
    /// The bytes of a sealed message are no frame in the full form.
    #[error("the sealed bytes are no frame: {0}")]
    FrameMalformed(FrameError),
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
    /// A parameter or field `name` whose value it cannot have, and why.
    pub fn parameter(name: impl Into<Cow<'static, str>>, cause: &'static str) -> Self {
        Error::InvalidParameter { name: name.into(), cause }
    }

    /// The row of [`ERRORS`], or of the topics' table, for this error.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            Error::Decode { codec: "json", .. } => &INVALID_JSON,
            Error::Decode { .. } => &DECODE,
            Error::InvalidEnvelope(_) => &INVALID_ENVELOPE,
            Error::Topic(error) => error.info(),
            Error::InvalidParameter { .. } => &INVALID_PARAMETER,
            Error::UnknownOp(_) => &UNKNOWN_OP,
            Error::UnknownField { .. } => &UNKNOWN_FIELD,
            Error::PatternNeedsReader => &PATTERN_NEEDS_READER,
            Error::NotAConsumer(_) => &NOT_A_CONSUMER,
            Error::UnknownStream(_) => &UNKNOWN_STREAM,
            Error::OffsetMismatch { .. } => &OFFSET_MISMATCH,
            Error::KeyReused => &KEY_REUSED,
            Error::TooLarge { .. } => &TOO_LARGE,
            Error::TooMany { .. } => &TOO_MANY,
            Error::StorageFull => &STORAGE_FULL,
            Error::StorageFailed(_) => &STORAGE_FAILED,
            Error::StorageBusy => &STORAGE_BUSY,
            Error::FolderInUse(_) => &FOLDER_IN_USE,
            Error::NotAStore(_) => &NOT_A_STORE,
            Error::StoreTooNew { .. } => &STORE_TOO_NEW,
            Error::TargetExists(_) => &TARGET_EXISTS,
            Error::NoStore(_) => &NO_STORE,
            Error::StreamRemoved => &STREAM_REMOVED,
            Error::Draining => &DRAINING,
            Error::NotSealed { .. } => &NOT_SEALED,
            Error::SealMismatch { .. } => &SEAL_MISMATCH,
            Error::FrameMalformed(_) => &FRAME_MALFORMED,
        }
    }
}

/// The error codes of the hub (spec/hub.md §9).
pub const ERRORS: &[ErrorInfo] = &[
    INVALID_JSON,
    DECODE,
    INVALID_ENVELOPE,
    INVALID_PARAMETER,
    UNKNOWN_OP,
    PATTERN_NEEDS_READER,
    NOT_A_CONSUMER,
    UNKNOWN_STREAM,
    OFFSET_MISMATCH,
    KEY_REUSED,
    TOO_LARGE,
    TOO_MANY,
    STORAGE_FULL,
    STORAGE_FAILED,
    STREAM_REMOVED,
    DRAINING,
    NOT_SEALED,
    SEAL_MISMATCH,
    FRAME_MALFORMED,
    STORAGE_BUSY,
    FOLDER_IN_USE,
    NOT_A_STORE,
    STORE_TOO_NEW,
    TARGET_EXISTS,
    NO_STORE,
    UNKNOWN_FIELD,
];

const INVALID_JSON: ErrorInfo = ErrorInfo::new(
    "SL-HUB-01",
    "InvalidJSON",
    "the body or frame is not JSON",
    "Send one JSON value in UTF-8, or name the codec you use.",
);
const DECODE: ErrorInfo = ErrorInfo::new(
    "SL-HUB-02",
    "DecodeError",
    "the body or frame is not what its codec says",
    "Check the codec; floats must be finite, map keys unique text, integers within 64 bits.",
);
const INVALID_ENVELOPE: ErrorInfo = ErrorInfo::new(
    "SL-HUB-03",
    "InvalidEnvelope",
    "the envelope cannot be carried",
    "Send a map; its id, if it has one, is text of 1 to 128 bytes.",
);
const INVALID_PARAMETER: ErrorInfo = ErrorInfo::new(
    "SL-HUB-04",
    "InvalidParameter",
    "a parameter has a value it cannot have",
    "The message says which; `GET /v1/openapi.json` of a hub describes all parameters.",
);
const UNKNOWN_OP: ErrorInfo = ErrorInfo::new(
    "SL-HUB-05",
    "UnknownOp",
    "a frame has an unknown field or a wrong type",
    "Clients send credit, ack, nack (with delayMs) and seek; numbers are integers from 0.",
);
const PATTERN_NEEDS_READER: ErrorInfo = ErrorInfo::new(
    "SL-HUB-06",
    "PatternNeedsReader",
    "a pattern was subscribed to without saying who reads",
    "Add consumer=NAME to share the work or from=new to read for yourself.",
);
const NOT_A_CONSUMER: ErrorInfo = ErrorInfo::new(
    "SL-HUB-07",
    "NotAConsumer",
    "nack is for consumers and the inbox, seek is for readers",
    "Subscribe with consumer=NAME to nack, with from=OFFSET to seek.",
);
const UNKNOWN_STREAM: ErrorInfo = ErrorInfo::new(
    "SL-HUB-08",
    "UnknownStream",
    "there is no stream of that name",
    "A stream is made by its first message; list them with `sealane stream ls`.",
);
const OFFSET_MISMATCH: ErrorInfo = ErrorInfo::new(
    "SL-HUB-09",
    "OffsetMismatch",
    "the stream is not where `expect` says",
    "Read on from your last offset, decide again, and repeat with the new `next`.",
);
const KEY_REUSED: ErrorInfo = ErrorInfo::new(
    "SL-HUB-10",
    "KeyReused",
    "the idempotency key came with another body before",
    "Use a new key for a new message; repeat the same bytes with the same key.",
);
const TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-HUB-11",
    "TooLarge",
    "a body, envelope or frame is over its limit",
    "Split the data, or send a reference to it; the message names the limit.",
);
const TOO_MANY: ErrorInfo = ErrorInfo::new(
    "SL-HUB-12",
    "TooMany",
    "one more than a limit allows",
    "Remove what is no longer used; the message names the limit.",
);
const STORAGE_FULL: ErrorInfo = ErrorInfo::new(
    "SL-HUB-13",
    "StorageFull",
    "the disk is full; nothing of the request was kept",
    "Free space or set retention; the hub goes on as soon as there is room.",
);
const STORAGE_FAILED: ErrorInfo = ErrorInfo::new(
    "SL-HUB-14",
    "StorageFailed",
    "the store could not be read or written",
    "See the node's log for the system's error; nothing was acknowledged.",
);
const STREAM_REMOVED: ErrorInfo = ErrorInfo::new(
    "SL-HUB-15",
    "StreamRemoved",
    "the stream was deleted while it was used",
    "Subscribe again; the stream is made anew by its next message.",
);
const DRAINING: ErrorInfo = ErrorInfo::new(
    "SL-HUB-16",
    "Draining",
    "the node is stopping",
    "Connect again later; clients of the library do so by themselves.",
);
const NOT_SEALED: ErrorInfo = ErrorInfo::new(
    "SL-HUB-17",
    "NotSealed",
    "an open message was sent to a sealed stream",
    "Publish with the group's keys, or to another stream; a stream stays what it was made.",
);
const SEAL_MISMATCH: ErrorInfo = ErrorInfo::new(
    "SL-HUB-18",
    "SealMismatch",
    "the stream is open or sealed for another group",
    "See `sealane stream info TOPIC`; a stream stays what it was made, so take another topic.",
);
const FRAME_MALFORMED: ErrorInfo = ErrorInfo::new(
    "SL-HUB-19",
    "FrameMalformed",
    "the bytes of a sealed message are no frame",
    "`sealed` is one frame in the full form, as `sealane inspect` explains it.",
);
const STORAGE_BUSY: ErrorInfo = ErrorInfo::new(
    "SL-HUB-20",
    "StorageBusy",
    "another process holds the store; nothing of the request was kept",
    "Send it again; the hub goes on when the other lets go. `fuser streams.db` names it.",
);
const FOLDER_IN_USE: ErrorInfo = ErrorInfo::new(
    "SL-HUB-21",
    "FolderInUse",
    "another node uses this data folder",
    "Stop the other node, or name another folder with `--data`.",
);
const NOT_A_STORE: ErrorInfo = ErrorInfo::new(
    "SL-HUB-22",
    "NotAStore",
    "the file is no store of streams, or its pages are damaged",
    "Keep the folder as it is and `sealane restore` a backup into a new one.",
);
const STORE_TOO_NEW: ErrorInfo = ErrorInfo::new(
    "SL-HUB-23",
    "StoreTooNew",
    "the store was written by a newer program",
    "Start it with the program that wrote it, or a newer one; nothing was changed.",
);
const TARGET_EXISTS: ErrorInfo = ErrorInfo::new(
    "SL-HUB-24",
    "TargetExists",
    "there is a store already where one was to be made",
    "Name a new or an empty folder; nothing was changed.",
);
const NO_STORE: ErrorInfo = ErrorInfo::new(
    "SL-HUB-25",
    "NoStore",
    "there is no store, or no backup, in the folder",
    "Name the folder that holds `streams.db`.",
);
const UNKNOWN_FIELD: ErrorInfo = ErrorInfo::new(
    "SL-HUB-26",
    "UnknownField",
    "the body of a request has an unknown field",
    "Send the fields that the message shows, spelled as they stand there.",
);
