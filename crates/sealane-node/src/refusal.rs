use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use sealane_codec::negotiate::Unknown;
use sealane_message::ErrorInfo;
use sealane_protocol::{Error, WireError};

/// Why a request is refused: the hub's reasons and those of HTTP.
#[derive(Debug)]
pub(crate) enum Refusal {
    Hub(Error),
    /// The codec of the body (415) or of the reply (406) is not known.
    Codec(StatusCode, Unknown),
    NotFound,
    MethodNotAllowed,
    UpgradeRequired,
    /// No token, or none that holds.
    Unauthorized,
    /// The token does not grant the right.
    Forbidden {
        right: &'static str,
        on: String,
    },
    /// A host or an origin of another site.
    Site(String),
    /// The body could not be read.
    Body(&'static str),
    /// The address has all the connections that it may have.
    Connections,
    /// A connection on which nothing was ever said.
    SilentConnection,
    /// A head that did not come to its end in time.
    SlowHead,
    /// What was said is not HTTP.
    NotHttp,
    /// A head that is HTTP, but not of a request that is served; the status, and why.
    Head(StatusCode, &'static str),
    /// A head over its limit.
    HeadTooLarge,
    /// What came on a WebSocket is not its protocol; why.
    WebSocket(String),
    /// A body that came too slowly.
    SlowBody,
    /// The memory for bodies, or the token's share of it, is taken.
    Crowded,
    /// More was enqueued than the token may; it may go on after this time.
    TooFast(Duration),
    /// The address has shown many tokens that are not known.
    Guesses(Duration),
    /// A handshake of TLS that failed or took too long.
    Handshake,
    /// HTTP on a port that speaks TLS.
    TlsRequired,
    /// TLS on a port that does not speak it.
    TlsNotServed,
}

/// The error codes of the daemon (spec/hub.md §9).
pub const ERRORS: &[ErrorInfo] = &[
    UNKNOWN_CODEC,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    UPGRADE_REQUIRED,
    BODY,
    UNAUTHORIZED,
    FORBIDDEN,
    SITE,
    CONNECTIONS,
    SILENT_CONNECTION,
    SLOW_HEAD,
    NOT_HTTP,
    SLOW_BODY,
    CROWDED,
    TOO_FAST,
    GUESSES,
    HANDSHAKE,
    TLS_REQUIRED,
    TLS_NOT_SERVED,
    HEAD_TOO_LARGE,
    WEB_SOCKET,
];

const UNKNOWN_CODEC: ErrorInfo = ErrorInfo::new(
    "SL-NODE-01",
    "UnknownCodec",
    "the codec asked for is not known here",
    "Name one that is known, for example with `Content-Type: application/json`.",
);
const NOT_FOUND: ErrorInfo = ErrorInfo::new(
    "SL-NODE-02",
    "NotFound",
    "there is nothing at this path",
    "The routes begin with /v1/; `GET /v1/openapi.json` describes them.",
);
const METHOD_NOT_ALLOWED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-03",
    "MethodNotAllowed",
    "the path exists, but not for this method",
    "The field `Allow` of the reply names the methods that there are.",
);
const UPGRADE_REQUIRED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-04",
    "UpgradeRequired",
    "a subscription is a WebSocket",
    "Connect with a WebSocket client, or read ranges from /v1/streams/TOPIC?from=OFFSET.",
);
const BODY: ErrorInfo = ErrorInfo::new(
    "SL-NODE-05",
    "BodyLost",
    "the request's body did not arrive whole",
    "Send the request again; nothing of it was kept.",
);

const UNAUTHORIZED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-06",
    "Unauthorized",
    "the request brings no token that this node knows and that has not expired",
    "Set SEALANE_TOKEN, or make one with `sealane token new` on the node's machine.",
);
const FORBIDDEN: ErrorInfo = ErrorInfo::new(
    "SL-NODE-07",
    "Forbidden",
    "the token does not grant this",
    "`sealane explain access TOKEN TOPIC` on the node's machine says what it grants.",
);
const SITE: ErrorInfo = ErrorInfo::new(
    "SL-NODE-08",
    "OriginRefused",
    "the request names another host, or comes from a page of another site",
    "Use the node's own address, or start it with `--origin` and the page's origin.",
);
const CONNECTIONS: ErrorInfo = ErrorInfo::new(
    "SL-NODE-09",
    "TooManyConnections",
    "the address has as many connections as one may have",
    "Close some, share one client, or start the node with `--connections-per-address`.",
);
const SILENT_CONNECTION: ErrorInfo = ErrorInfo::new(
    "SL-NODE-10",
    "SilentConnection",
    "a connection was made and nothing was said on it",
    "Send the request within MAX_WAITING_MS.",
);
const SLOW_HEAD: ErrorInfo = ErrorInfo::new(
    "SL-NODE-11",
    "SlowHead",
    "the head of a request did not come to its end in time",
    "Send the head of a request within MAX_HEAD_MS.",
);
const NOT_HTTP: ErrorInfo = ErrorInfo::new(
    "SL-NODE-12",
    "NotHttp",
    "what was sent is no request of HTTP/1.1, or is one to some and another to others",
    "Check what the client, and each proxy on the way, sends to this port.",
);
const SLOW_BODY: ErrorInfo = ErrorInfo::new(
    "SL-NODE-13",
    "SlowBody",
    "the body of a request came too slowly",
    "Send at least MIN_BODY_RATE without long pauses, or smaller batches; nothing was kept.",
);
const CROWDED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-14",
    "Crowded",
    "the memory for bodies of requests, or the token's share of it, is taken",
    "Send the request again in a moment; nothing of it was kept.",
);
const TOO_FAST: ErrorInfo = ErrorInfo::new(
    "SL-NODE-15",
    "TooFast",
    "the token has enqueued more messages than it may",
    "Wait as `Retry-After` says, or start the node with `--enqueue-rate`.",
);
const GUESSES: ErrorInfo = ErrorInfo::new(
    "SL-NODE-16",
    "TooManyGuesses",
    "the address has shown too many tokens that are not known",
    "Wait as `Retry-After` says; tokens that hold are taken all the same.",
);
const HANDSHAKE: ErrorInfo = ErrorInfo::new(
    "SL-NODE-17",
    "HandshakeFailed",
    "a client did not agree on TLS, or not within MAX_HANDSHAKE_MS",
    "Speak TLS 1.3, and trust the node's certificate.",
);
const TLS_REQUIRED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-18",
    "TlsRequired",
    "the port speaks TLS, and was sent something else",
    "Begin the address with https:// or wss://.",
);
const TLS_NOT_SERVED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-19",
    "TlsNotServed",
    "the port does not speak TLS, and was asked to",
    "Begin the address with http:// or ws://, or start the node with `--tls-cert`.",
);

const HEAD_TOO_LARGE: ErrorInfo = ErrorInfo::new(
    "SL-NODE-20",
    "HeadTooLarge",
    "the head of a request is over MAX_HEAD_BYTES, or has more than 100 fields",
    "Send fewer or shorter header fields.",
);
const WEB_SOCKET: ErrorInfo = ErrorInfo::new(
    "SL-NODE-21",
    "WebSocketProtocol",
    "a client sent what is no frame of the WebSocket protocol",
    "Use a WebSocket library; frames are masked, whole, and without extensions.",
);

/// What was refused, by name.
pub(crate) struct Refused(Mutex<BTreeMap<&'static str, u64>>);

impl Refused {
    /// Every name from the beginning, so that nobody has to wait for the first one.
    pub(crate) fn new() -> Self {
        let all = ERRORS.iter().chain(sealane_protocol::ERRORS);
        Self(Mutex::new(all.map(|info| (info.name, 0)).collect()))
    }

    pub(crate) fn note(&self, refusal: &Refusal) {
        self.count(refusal.info().name);
    }

    pub(crate) fn count(&self, name: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(name).or_default() += 1;
    }

    pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| (*name, *count)).collect()
    }
}

impl Refusal {
    /// The row of an error table.
    pub(crate) fn info(&self) -> &'static ErrorInfo {
        match self {
            Refusal::Hub(error) => error.info(),
            Refusal::Codec(..) => &UNKNOWN_CODEC,
            Refusal::NotFound => &NOT_FOUND,
            Refusal::MethodNotAllowed => &METHOD_NOT_ALLOWED,
            Refusal::UpgradeRequired => &UPGRADE_REQUIRED,
            Refusal::Body(_) => &BODY,
            Refusal::Unauthorized => &UNAUTHORIZED,
            Refusal::Forbidden { .. } => &FORBIDDEN,
            Refusal::Site(_) => &SITE,
            Refusal::Connections => &CONNECTIONS,
            Refusal::SilentConnection => &SILENT_CONNECTION,
            Refusal::SlowHead => &SLOW_HEAD,
            Refusal::NotHttp | Refusal::Head(..) => &NOT_HTTP,
            Refusal::HeadTooLarge => &HEAD_TOO_LARGE,
            Refusal::WebSocket(_) => &WEB_SOCKET,
            Refusal::SlowBody => &SLOW_BODY,
            Refusal::Crowded => &CROWDED,
            Refusal::TooFast(_) => &TOO_FAST,
            Refusal::Guesses(_) => &GUESSES,
            Refusal::Handshake => &HANDSHAKE,
            Refusal::TlsRequired => &TLS_REQUIRED,
            Refusal::TlsNotServed => &TLS_NOT_SERVED,
        }
    }

    /// How many seconds the client is to wait before it tries again: whole ones
    /// (RFC 9110 §10.2.3), rounded up.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Refusal::TooFast(wait) | Refusal::Guesses(wait) => Some(wait.as_secs() + 1),
            Refusal::Crowded | Refusal::Connections | Refusal::Hub(Error::StorageBusy) => Some(2),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Refusal::Hub(error) => status(error),
            Refusal::Codec(status, _) | Refusal::Head(status, _) => *status,
            Refusal::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Refusal::NotFound => StatusCode::NOT_FOUND,
            Refusal::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::UpgradeRequired => StatusCode::UPGRADE_REQUIRED,
            Refusal::Body(_) => StatusCode::BAD_REQUEST,
            Refusal::Unauthorized => StatusCode::UNAUTHORIZED,
            Refusal::Forbidden { .. } | Refusal::Site(_) => StatusCode::FORBIDDEN,
            Refusal::Connections | Refusal::TooFast(_) | Refusal::Guesses(_) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Refusal::SilentConnection | Refusal::SlowHead | Refusal::SlowBody => {
                StatusCode::REQUEST_TIMEOUT
            }
            Refusal::Crowded => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::NotHttp
            | Refusal::WebSocket(_)
            | Refusal::Handshake
            | Refusal::TlsRequired
            | Refusal::TlsNotServed => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn wire(&self) -> WireError {
        let info = self.info();
        match self {
            Refusal::Hub(error) => WireError::from(error),
            Refusal::Codec(_, unknown) => WireError::new(info, unknown.to_string()),
            Refusal::Body(cause) | Refusal::Head(_, cause) => {
                WireError::new(info, (*cause).to_owned())
            }
            Refusal::WebSocket(cause) => WireError::new(info, cause.clone()),
            Refusal::Forbidden { right, on } => {
                WireError::new(info, format!("the token does not grant {right} on {on}"))
            }
            Refusal::Site(cause) => WireError::new(info, cause.clone()),
            _ => WireError::new(info, info.cause.to_owned()),
        }
    }

    /// The code that a WebSocket is closed with.
    pub(crate) fn close(&self) -> u16 {
        match self {
            Refusal::Hub(error) => match error {
                Error::Decode { .. } => 1007,
                Error::TooLarge { .. } => 1009,
                Error::TooMany { .. } => 1008,
                Error::StreamRemoved | Error::Draining => 1001,
                Error::StorageBusy => 1013,
                Error::StorageFull
                | Error::StorageFailed(_)
                | Error::FolderInUse(_)
                | Error::NotAStore(_)
                | Error::StoreTooNew { .. }
                | Error::TargetExists(_)
                | Error::NoStore(_) => 1011,
                _ => 1003,
            },
            Refusal::Unauthorized | Refusal::Forbidden { .. } => 1008,
            Refusal::WebSocket(_) => 1002,
            _ => 1003,
        }
    }
}

impl<E: Into<Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Hub(error.into())
    }
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::InvalidEnvelope(_) | Error::FrameMalformed(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Error::UnknownStream(_) => StatusCode::NOT_FOUND,
        Error::OffsetMismatch { .. } | Error::KeyReused => StatusCode::CONFLICT,
        Error::NotSealed { .. } | Error::SealMismatch { .. } => StatusCode::CONFLICT,
        Error::StreamRemoved => StatusCode::CONFLICT,
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        Error::StorageFailed(_)
        | Error::FolderInUse(_)
        | Error::NotAStore(_)
        | Error::StoreTooNew { .. }
        | Error::TargetExists(_)
        | Error::NoStore(_) => StatusCode::INTERNAL_SERVER_ERROR,
        Error::Draining | Error::StorageBusy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_busy_is_to_be_tried_again_and_a_wrong_one_is_not() {
        let said = |error: Error| {
            let refusal = Refusal::Hub(error);
            (refusal.status().as_u16(), refusal.close(), refusal.retry_after().is_some())
        };
        assert_eq!(said(Error::StorageBusy), (503, 1013, true));
        for error in [
            Error::StorageFailed(String::new()),
            Error::FolderInUse(String::new()),
            Error::NotAStore(String::new()),
            Error::StoreTooNew { found: 9, known: 2 },
            Error::TargetExists(String::new()),
            Error::NoStore(String::new()),
        ] {
            assert_eq!(said(error), (500, 1011, false));
        }
    }
    #[test]
    fn no_hint_sends_anybody_to_a_page_of_the_source() {
        for info in ERRORS.iter().chain(sealane_protocol::ERRORS) {
            let pages = ["spec/", "docs/", ".md"];
            assert!(!pages.iter().any(|page| info.hint.contains(page)), "{}", info.hint);
        }
    }
}
