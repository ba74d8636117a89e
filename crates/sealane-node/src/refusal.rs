use axum::http::StatusCode;
use sealane_codec::negotiate::Unknown;
use sealane_message::ErrorInfo;
use sealane_stream::Error;
use sealane_stream::protocol::WireError;

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
}

/// The error codes of the daemon (spec/hub.md §8).
pub const ERRORS: &[ErrorInfo] = &[
    UNKNOWN_CODEC,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    UPGRADE_REQUIRED,
    BODY,
    UNAUTHORIZED,
    FORBIDDEN,
    SITE,
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
    "The routes are in spec/hub.md; they begin with /v1/.",
);
const METHOD_NOT_ALLOWED: ErrorInfo = ErrorInfo::new(
    "SL-NODE-03",
    "MethodNotAllowed",
    "the path exists, but not for this method",
    "See the table of requests in spec/hub.md.",
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

impl Refusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Refusal::Hub(error) => status(error),
            Refusal::Codec(status, _) => *status,
            Refusal::NotFound => StatusCode::NOT_FOUND,
            Refusal::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::UpgradeRequired => StatusCode::UPGRADE_REQUIRED,
            Refusal::Body(_) => StatusCode::BAD_REQUEST,
            Refusal::Unauthorized => StatusCode::UNAUTHORIZED,
            Refusal::Forbidden { .. } | Refusal::Site(_) => StatusCode::FORBIDDEN,
        }
    }

    pub(crate) fn wire(&self) -> WireError {
        let plain = |info: &'static ErrorInfo| WireError::new(info, info.cause.to_owned());
        match self {
            Refusal::Hub(error) => WireError::from(error),
            Refusal::Codec(_, unknown) => WireError::new(&UNKNOWN_CODEC, unknown.to_string()),
            Refusal::NotFound => plain(&NOT_FOUND),
            Refusal::MethodNotAllowed => plain(&METHOD_NOT_ALLOWED),
            Refusal::UpgradeRequired => plain(&UPGRADE_REQUIRED),
            Refusal::Body(cause) => WireError::new(&BODY, (*cause).to_owned()),
            Refusal::Unauthorized => plain(&UNAUTHORIZED),
            Refusal::Forbidden { right, on } => {
                WireError::new(&FORBIDDEN, format!("the token does not grant {right} on {on}"))
            }
            Refusal::Site(cause) => WireError::new(&SITE, cause.clone()),
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
                Error::StorageFull | Error::StorageFailed(_) => 1011,
                _ => 1003,
            },
            Refusal::Unauthorized | Refusal::Forbidden { .. } => 1008,
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
        Error::StorageFailed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        Error::Draining => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}
