use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use parking_lot::Mutex;
use sealane_codec::negotiate::Unknown;
use sealane_protocol::{Error, WireError};

sealane_message::errors! {
    /// The error codes of the daemon (spec/hub.md §9).
    pub const ERRORS;

    /// Why a request is refused: the hub's reasons and those of HTTP.
    #[derive(Debug, thiserror::Error)]
    #[error("{}", self.info().cause)]
    pub(crate) enum HttpRefusal {
        /// A refusal of the hub.
        #[error(transparent)]
        #[inner(0)]
        Hub(Error),
        /// The codec of the body (415) or of the reply (406) is not known.
        #[error("{1}")]
        #[code("SL-NODE-01", "UnknownCodec")]
        #[cause("the codec asked for is not known here")]
        #[hint("Name one that is known, for example with `Content-Type: application/json`.")]
        Codec(StatusCode, Unknown),
        /// No such route.
        #[code("SL-NODE-02", "NotFound")]
        #[cause("there is nothing at this path")]
        #[hint("The routes begin with /v1/; `GET /v1/openapi.json` describes them.")]
        NotFound,
        /// The route has other methods.
        #[code("SL-NODE-03", "MethodNotAllowed")]
        #[cause("the path exists, but not for this method")]
        #[hint("The field `Allow` of the reply names the methods that there are.")]
        MethodNotAllowed,
        /// A subscription that is no WebSocket.
        #[code("SL-NODE-04", "UpgradeRequired")]
        #[cause("a subscription is a WebSocket")]
        #[hint("Connect with a WebSocket client, or read ranges from \
                /v1/streams/TOPIC?from=OFFSET.")]
        UpgradeRequired,
        /// The body could not be read.
        #[error("{0}")]
        #[code("SL-NODE-05", "BodyLost", retry = Reconnect)]
        #[cause("the request's body did not arrive whole")]
        #[hint("Send the request again; nothing of it was kept.")]
        Body(&'static str),
        /// No token, or none that holds.
        #[code("SL-NODE-06", "Unauthorized")]
        #[cause("the token is missing, unknown or expired")]
        #[hint("Set SEALANE_TOKEN, or make one with `sealane token new` on the node's machine.")]
        Unauthorized,
        /// A ticket that stands for no token any more, or never did.
        #[code("SL-NODE-23", "TicketSpent")]
        #[cause("the ticket is unknown, was used before, or is too old")]
        #[hint("Ask for a new one for each connection: `POST /v1/ticket` with the token.")]
        Ticket,
        /// The token does not grant the right.
        #[error("the token does not grant {right} on {on}")]
        #[code("SL-NODE-07", "Forbidden")]
        #[cause("the token does not grant this")]
        #[hint("`sealane explain access TOKEN TOPIC` on the node's machine says what it grants; \
                `**` does not stand for `dead/…` and `groups/…`.")]
        Forbidden {
            right: &'static str,
            on: String,
        },
        /// A host or an origin of another site.
        #[error("{0}")]
        #[code("SL-NODE-08", "OriginRefused")]
        #[cause("the request names another host, or comes from a page of another site")]
        #[hint("Use the node's own address, or start it with `--origin` and the page's origin.")]
        Site(String),
        /// The address has all the connections that it may have.
        #[code("SL-NODE-09", "TooManyConnections", retry = Later)]
        #[cause("the address has as many connections as one may have")]
        #[hint("Close some, share one client, or start the node with `--connections-per-address`.")]
        Connections,
        /// A connection on which nothing was ever said.
        #[code("SL-NODE-10", "SilentConnection")]
        #[cause("a connection was made and nothing was said on it")]
        #[hint("Send the request within MAX_WAITING_MS.")]
        SilentConnection,
        /// A head that did not come to its end in time.
        #[code("SL-NODE-11", "SlowHead")]
        #[cause("the head of a request did not come to its end in time")]
        #[hint("Send the head of a request within MAX_HEAD_MS.")]
        SlowHead,
        /// The bytes are not HTTP.
        #[code("SL-NODE-12", "NotHttp")]
        #[cause("what was sent is no request of HTTP/1.1, or can be read as two different ones")]
        #[hint("Check what the client, and each proxy on the way, sends to this port.")]
        NotHttp,
        /// A head that is HTTP, but not of a request that is served; the status, and why.
        #[error("{1}")]
        #[same_as(NotHttp)]
        Head(StatusCode, &'static str),
        /// A body that came too slowly.
        #[code("SL-NODE-13", "SlowBody", retry = Later)]
        #[cause("the body of a request came too slowly")]
        #[hint("Send at least MIN_BODY_RATE without long pauses, or smaller batches; nothing was \
                kept.")]
        SlowBody,
        /// The memory for bodies, or the token's share of it, is taken.
        #[code("SL-NODE-14", "Crowded", retry = Later)]
        #[cause("the memory for bodies of requests, or the token's share of it, is taken")]
        #[hint("Send the request again in a moment; nothing of it was kept.")]
        Crowded,
        /// More was enqueued than the token may; it may go on after this time.
        #[code("SL-NODE-15", "TooFast", retry = Later)]
        #[cause("the token has enqueued more messages than it may")]
        #[hint("Wait as `Retry-After` says, or start the node with `--enqueue-rate`.")]
        TooFast(Duration),
        /// The address has shown many tokens that are not known; it may go on after this time.
        #[error("the address has shown too many tokens that are not known; wait {} s", seconds(.0))]
        #[code("SL-NODE-16", "TooManyGuesses")]
        #[cause("the address has shown too many tokens that are not known")]
        #[hint("Wait as `Retry-After` says; valid tokens are accepted all the same.")]
        Guesses(Duration),
        /// A handshake of TLS that failed or took too long.
        #[code("SL-NODE-17", "HandshakeFailed")]
        #[cause("a client did not agree on TLS, or not within MAX_HANDSHAKE_MS")]
        #[hint("Speak TLS 1.3, and trust the node's certificate.")]
        Handshake,
        /// HTTP on a port that speaks TLS.
        #[code("SL-NODE-18", "TlsRequired")]
        #[cause("the port speaks TLS, and was sent something else")]
        #[hint("Begin the address with https:// or wss://.")]
        TlsRequired,
        /// TLS on a port that does not speak it.
        #[code("SL-NODE-19", "TlsNotServed")]
        #[cause("the port does not speak TLS, and was asked to")]
        #[hint("Begin the address with http:// or ws://, or start the node with `--tls-cert`.")]
        TlsNotServed,
        /// A head over its limit.
        #[code("SL-NODE-20", "HeadTooLarge")]
        #[cause("the head of a request is over MAX_HEAD_BYTES, or has more than 100 fields")]
        #[hint("Send fewer or shorter header fields.")]
        HeadTooLarge,
        /// The bytes on a WebSocket are not its protocol; why.
        #[error("{0}")]
        #[code("SL-NODE-21", "WebSocketProtocol")]
        #[cause("a client sent what is no frame of the WebSocket protocol")]
        #[hint("Use a WebSocket library; frames are masked, whole, and without extensions.")]
        WebSocket(String),
        /// The memory for replies, or the client's share of it, is taken.
        #[code("SL-NODE-22", "RepliesUnread", retry = Later)]
        #[cause("the memory for replies, or this client's share of it, is taken by unread ones")]
        #[hint("Read the replies that you ask for, and fewer at once; then ask again. Nothing was \
                done.")]
        RepliesUnread,
    }
}

/// Whole seconds, rounded up.
fn seconds(wait: &Duration) -> u64 {
    wait.as_secs() + 1
}

/// The counts of refusals, by name.
pub(crate) struct RefusalCounts(Mutex<BTreeMap<&'static str, u64>>);

impl RefusalCounts {
    /// Every name from the beginning, so that nobody has to wait for the first one.
    pub(crate) fn new() -> Self {
        let all = ERRORS.iter().chain(sealane_protocol::ERRORS);
        Self(Mutex::new(all.map(|info| (info.name, 0)).collect()))
    }

    pub(crate) fn note(&self, refusal: &HttpRefusal) {
        self.count(refusal.info().name);
    }

    pub(crate) fn count(&self, name: &'static str) {
        let mut counts = self.0.lock();
        *counts.entry(name).or_default() += 1;
    }

    pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.lock();
        counts.iter().map(|(name, count)| (*name, *count)).collect()
    }
}

impl HttpRefusal {
    /// How many seconds the client is to wait before it tries again: whole ones
    /// (RFC 9110 §10.2.3).
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            HttpRefusal::TooFast(wait) | HttpRefusal::Guesses(wait) => Some(seconds(wait)),
            // These pass by themselves within seconds. A client that comes back at once would
            // prolong them.
            HttpRefusal::Crowded
            | HttpRefusal::RepliesUnread
            | HttpRefusal::Connections
            | HttpRefusal::Hub(Error::StorageBusy) => Some(2),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            HttpRefusal::Hub(error) => status(error),
            HttpRefusal::Codec(status, _) | HttpRefusal::Head(status, _) => *status,
            HttpRefusal::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            HttpRefusal::NotFound => StatusCode::NOT_FOUND,
            HttpRefusal::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            HttpRefusal::UpgradeRequired => StatusCode::UPGRADE_REQUIRED,
            HttpRefusal::Body(_) => StatusCode::BAD_REQUEST,
            HttpRefusal::Unauthorized | HttpRefusal::Ticket => StatusCode::UNAUTHORIZED,
            HttpRefusal::Forbidden { .. } | HttpRefusal::Site(_) => StatusCode::FORBIDDEN,
            HttpRefusal::Connections | HttpRefusal::TooFast(_) | HttpRefusal::Guesses(_) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            HttpRefusal::SilentConnection | HttpRefusal::SlowHead | HttpRefusal::SlowBody => {
                StatusCode::REQUEST_TIMEOUT
            }
            HttpRefusal::Crowded | HttpRefusal::RepliesUnread => StatusCode::SERVICE_UNAVAILABLE,
            HttpRefusal::NotHttp
            | HttpRefusal::WebSocket(_)
            | HttpRefusal::Handshake
            | HttpRefusal::TlsRequired
            | HttpRefusal::TlsNotServed => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn wire(&self) -> WireError {
        match self {
            HttpRefusal::Hub(error) => WireError::from(error),
            other => WireError::new(other.info(), other.to_string()),
        }
    }

    /// The code that a WebSocket is closed with.
    pub(crate) fn close(&self) -> u16 {
        match self {
            HttpRefusal::Hub(error) => match error {
                Error::Decode { .. } => 1007,
                Error::TooLarge { .. } => 1009,
                Error::TooMany { .. } | Error::CreditExceeded { .. } => 1008,
                Error::ShareTaken { .. } | Error::ConsumerNotYours { .. } => 1008,
                Error::SessionTaken => 1008,
                Error::StreamRemoved | Error::ConsumerRemoved | Error::Draining => 1001,
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
            HttpRefusal::Unauthorized | HttpRefusal::Forbidden { .. } | HttpRefusal::Site(_) => {
                1008
            }
            HttpRefusal::Guesses(_) | HttpRefusal::RepliesUnread => 1013,
            HttpRefusal::WebSocket(_) => 1002,
            _ => 1003,
        }
    }
}

impl<E: Into<Error>> From<E> for HttpRefusal {
    fn from(error: E) -> Self {
        HttpRefusal::Hub(error.into())
    }
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::InvalidEnvelope(_) | Error::FrameMalformed(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Error::UnknownStream(_) | Error::UnknownConsumer { .. } | Error::NotDelayed { .. } => {
            StatusCode::NOT_FOUND
        }
        Error::UnknownRule(_) => StatusCode::NOT_FOUND,
        Error::OffsetMismatch { .. } | Error::KeyReused => StatusCode::CONFLICT,
        Error::RuleTie { .. } => StatusCode::CONFLICT,
        Error::NotSealed { .. } | Error::SealMismatch { .. } => StatusCode::CONFLICT,
        Error::StreamRemoved | Error::ConsumerRemoved => StatusCode::CONFLICT,
        Error::BeyondEnd { .. } => StatusCode::CONFLICT,
        Error::NumberSkipped { .. } | Error::NumberForgotten { .. } => StatusCode::CONFLICT,
        Error::SessionTaken => StatusCode::CONFLICT,
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::TooMany { .. } | Error::ShareTaken { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::ConsumerNotYours { .. } => StatusCode::FORBIDDEN,
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
            let refusal = HttpRefusal::Hub(error);
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
