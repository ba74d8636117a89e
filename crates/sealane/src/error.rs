use sealane_codec::CodecError;
use sealane_message::{ErrorInfo, TopicError};
use sealane_protocol::{Malformed, WireError};
use sealane_seal::policy::Refusal as PolicyRefusal;

/// Why a client could not do something.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that is no address of a hub.
    #[error("`{address}` {cause}")]
    Address {
        /// The text.
        address: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// No connection could be made: nothing of the request has reached the hub.
    #[error("no hub answers at {address}: {cause}")]
    NotReachable {
        /// The hub's address.
        address: String,
        /// What the system said.
        cause: String,
    },
    /// The connection was lost before the answer came, each time: the hub may have done it.
    #[error("{address} did not answer (asked {attempts}x): {cause}")]
    NoAnswer {
        /// The hub's address.
        address: String,
        /// How often it was asked.
        attempts: u32,
        /// What ended the last attempt.
        cause: String,
    },
    /// The hub refused; the error is its own.
    #[error("{}", .0.message)]
    Refused(WireError),
    /// The hub said something that is not the protocol.
    #[error("the hub's answer is not the protocol: {0}")]
    Protocol(String),
    /// A value that cannot be encoded, or bytes that cannot be decoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A name that is no topic or pattern.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A message over the limit of an envelope.
    #[error("the envelope has {bytes} bytes, {limit} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Keys or orders of a group, a seal or a frame.
    #[error("{message}")]
    Group {
        /// The row of an error table.
        info: &'static ErrorInfo,
        /// What was wrong.
        message: String,
    },
    /// The policy does not let a message be sealed so.
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
    /// What is to be sealed, or was, is no envelope.
    #[error("the sealed body is no map within the limits of an envelope")]
    NoEnvelope,
    /// The publisher or subscription has ended.
    #[error("the {0} has ended")]
    Ended(&'static str),
    /// `msgpack-records` belongs to one connection; messages of this library outlive theirs.
    #[error("msgpack-records cannot be used here")]
    RecordsCodec,
    /// A text that cannot be a token.
    #[error("the token holds what no token holds")]
    Token,
    /// Certificates that cannot be trusted, because there are none.
    #[error("no certificate to trust: {0}")]
    Trust(String),
    /// The hub's certificate is not trusted, or it does not speak the TLS that is asked for.
    #[error("{address} is not trusted: {cause}")]
    Untrusted {
        /// The hub's address.
        address: String,
        /// What is wrong.
        cause: String,
    },
    /// Nobody answered a request in time.
    #[error("no answer to the request on {topic} came within {waited:?}")]
    NoReply {
        /// Where it was asked.
        topic: String,
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// What does not ask for an answer, or cannot be asked.
    #[error("no request: {0}")]
    NotARequest(&'static str),
}

impl Error {
    /// The row of an error table for this error. For [`Error::Refused`] see [`Error::code`].
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            Error::Address { .. } => &ADDRESS,
            Error::NotReachable { .. } => &NOT_REACHABLE,
            Error::NoAnswer { .. } => &NO_ANSWER,
            Error::Refused(_) => &REFUSED,
            Error::Protocol(_) => &PROTOCOL,
            Error::Codec(error) => error.info(),
            Error::Topic(error) => error.info(),
            Error::TooLarge { .. } => &TOO_LARGE,
            Error::Group { info, .. } => info,
            Error::Policy(refusal) => refusal.info(),
            Error::NoEnvelope => &NO_ENVELOPE,
            Error::Ended(_) => &ENDED,
            Error::RecordsCodec => &RECORDS_CODEC,
            Error::Token => &TOKEN,
            Error::Trust(_) => &TRUST,
            Error::Untrusted { .. } => &UNTRUSTED,
            Error::NoReply { .. } => &NO_REPLY,
            Error::NotARequest(_) => &NOT_A_REQUEST,
        }
    }

    /// The stable code: the hub's where it refused, otherwise this library's.
    pub fn code(&self) -> &str {
        match self {
            Error::Refused(wire) if !wire.reference.is_empty() => &wire.reference,
            other => other.info().code,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Error::Refused(wire) if !wire.hint.is_empty() => &wire.hint,
            other => other.info().hint,
        }
    }

    /// The hub's name for its refusal, for example `OffsetMismatch`.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Error::Refused(wire) => Some(&wire.code),
            _ => None,
        }
    }
}

/// The error codes of the client library.
pub const ERRORS: &[ErrorInfo] = &[
    ADDRESS,
    NOT_REACHABLE,
    NO_ANSWER,
    REFUSED,
    PROTOCOL,
    TOO_LARGE,
    ENDED,
    RECORDS_CODEC,
    NO_ENVELOPE,
    NOT_SEALED,
    OTHER_GROUP,
    REPEATED,
    POSTHUMOUS,
    TOKEN,
    TRUST,
    UNTRUSTED,
    NO_REPLY,
    NOT_A_REQUEST,
];

const NO_REPLY: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-17",
    "NoReply",
    "no answer to a request came before its deadline",
    "See with `sealane stream info` whether anybody reads the topic; the request is kept there.",
);
const NOT_A_REQUEST: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-18",
    "NotARequest",
    "a message asks for no answer, or a body is no map",
    "A request is a map with `id` and `replyTo`, as `Client::request` publishes it.",
);

const TRUST: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-15",
    "NothingToTrust",
    "there is no certificate by which a hub could be trusted",
    "Name a PEM file of certificates with SEALANE_CA, or install the system's.",
);
const UNTRUSTED: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-16",
    "Untrusted",
    "the hub's certificate is not trusted, or it does not speak TLS 1.3",
    "Use the name that the certificate is for, or name its issuer with SEALANE_CA.",
);

const TOKEN: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-14",
    "Token",
    "the token has characters that no token has",
    "A token is `sealane_` and 43 letters, digits, `-` and `_`, on one line.",
);

const ADDRESS: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-01",
    "InvalidAddress",
    "the text is no address of a hub",
    "Write HOST:PORT or http://HOST:PORT, for example 127.0.0.1:9087.",
);
const NOT_REACHABLE: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-02",
    "NotReachable",
    "no connection to the hub could be made",
    "Start a hub with `sealane up`, or name the one to use with --server or SEALANE_SERVER.",
);
const NO_ANSWER: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-03",
    "NoAnswer",
    "the connection was lost before the hub answered",
    "Repeat it with the same idempotency key: what was stored already is not stored twice.",
);
const REFUSED: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-04",
    "Refused",
    "the hub refused the request",
    "The hub's own code and hint stand beside it.",
);
const PROTOCOL: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-05",
    "NotTheProtocol",
    "what answered does not speak version 1 of the hub protocol",
    "Check that the address is a Sealane hub, not a proxy or another service.",
);
const TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-06",
    "EnvelopeTooLarge",
    "the envelope is over MAX_ENVELOPE_BYTES",
    "Split the data, or send a reference to it.",
);
const ENDED: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-07",
    "Ended",
    "the publisher or subscription has ended",
    "Its first error says why; make a new one to go on.",
);
const RECORDS_CODEC: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-08",
    "RecordsCodec",
    "msgpack-records has a dictionary that belongs to one connection",
    "Use msgpack, which the hub translates to and from.",
);
pub(crate) const NO_ENVELOPE: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-09",
    "NoEnvelope",
    "what was sealed is no message: no map of its codec within the limits of an envelope",
    "Seal maps of JSON, MessagePack or CBOR; other frames are for links, not for streams.",
);
pub(crate) const NOT_SEALED: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-10",
    "ReadOpen",
    "an open message came where only sealed ones are read",
    "Read open streams without a group; the hub, or who reaches it, may have put it there.",
);
pub(crate) const OTHER_GROUP: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-11",
    "ReadOtherGroup",
    "a frame is of another group",
    "Read it with the keys of its group; `sealane stream info` shows the stream's.",
);
pub(crate) const REPEATED: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-12",
    "Repeated",
    "a message that was shown came again at another place, and was dropped",
    "One may be a retry after the hub lost its memory; many show a hub that replays.",
);
pub(crate) const POSTHUMOUS: ErrorInfo = ErrorInfo::new(
    "SL-CLIENT-13",
    "AfterRemoval",
    "a message of a removed member stands behind messages of after its removal",
    "Drop it; a removed member still has the keys of the past, and reaches the hub.",
);

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Self {
        Error::Protocol(error.to_string())
    }
}

impl From<sealane_group::Error> for Error {
    fn from(error: sealane_group::Error) -> Self {
        Error::Group { info: error.info(), message: error.to_string() }
    }
}

impl From<sealane_seal::Error> for Error {
    fn from(error: sealane_seal::Error) -> Self {
        Error::Group { info: error.info(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique() {
        for (index, info) in ERRORS.iter().enumerate() {
            let others = &ERRORS[..index];
            assert!(others.iter().all(|o| o.code != info.code && o.name != info.name));
        }
    }

    #[test]
    fn a_refusal_speaks_with_the_words_of_the_hub() {
        let wire = WireError::from(&sealane_protocol::Error::KeyReused);
        let error = Error::Refused(wire);
        assert_eq!(error.code(), "SL-HUB-10");
        assert_eq!(error.refusal(), Some("KeyReused"));
        assert!(error.hint().starts_with("Use a new key"));
    }
}
