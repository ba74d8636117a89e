//! Requests over a small set of connections that stay open.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HOST, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use sealane_codec::Codec;
use sealane_message::Retry;
use sealane_protocol::{ServerFrame, WireError};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::address::HubAddress;
use crate::backoff::RetryBackoff;
use crate::limits::{MAX_ANSWER_BYTES, MAX_ANSWER_MS, MAX_OPEN_REQUESTS};
use crate::wire::{ConnectFailure, TlsTrust, open};
use crate::{Error, HubError};

/// How the hub recognises a repeated request.
#[derive(Debug, Clone)]
pub(crate) enum RequestIdempotency {
    /// An idempotency key.
    Key(String),
    /// The messages themselves, in their stream.
    Content,
    /// Each message by itself, in its stream.
    Each,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct ClientRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<(Codec, Bytes)>,
    pub(crate) accept: Codec,
    pub(crate) once: Option<RequestIdempotency>,
    /// Whether it may be sent again when its answer was lost.
    pub(crate) repeatable: bool,
}

impl ClientRequest {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            accept: Codec::Json,
            once: None,
            repeatable: true,
        }
    }

    pub(crate) fn post(path: &str, codec: Codec, body: Bytes, once: RequestIdempotency) -> Self {
        let (body, once) = (Some((codec, body)), Some(once));
        Self { method: Method::POST, body, once, ..Self::get(path) }
    }

    fn request(
        &self,
        address: &HubAddress,
        token: Option<&HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header(HOST, address.to_string())
            .header(ACCEPT, self.accept.content_type());
        if let Some((codec, _)) = &self.body {
            request = request.header(CONTENT_TYPE, codec.content_type());
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        request = match &self.once {
            Some(RequestIdempotency::Key(key)) => request.header("idempotency-key", key),
            Some(RequestIdempotency::Content) => request.header("idempotency-scope", "stream"),
            Some(RequestIdempotency::Each) => request.header("idempotency-scope", "message"),
            None => request,
        };
        let body = self.body.as_ref().map(|(_, body)| body.clone()).unwrap_or_default();
        request.body(Full::new(body)).map_err(|error| Error::Protocol(error.to_string()))
    }
}

/// The hub's answer.
#[derive(Debug)]
pub(crate) struct HubResponse {
    pub(crate) status: StatusCode,
    pub(crate) codec: Codec,
    pub(crate) body: Bytes,
    /// The time by the hub's clock, to the second.
    pub(crate) date: Option<SystemTime>,
    /// When the hub asks to be asked again.
    retry_after: Option<Duration>,
}

/// Why a hub that did nothing of a request may do it later.
enum RetryReason {
    /// It is stopping, and its successor may.
    Reconnect,
    /// After this time.
    After(Duration),
}

impl HubResponse {
    /// The answer itself, or the error that it is.
    fn check(self) -> Result<HubResponse, Error> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(match self.refusal() {
            Some(wire) => Error::Refused(wire),
            None => Error::Protocol(format!("status {} without an error", self.status.as_u16())),
        })
    }

    fn refusal(&self) -> Option<WireError> {
        match ServerFrame::read(self.codec, &self.body) {
            Ok(ServerFrame::Error(wire)) => Some(wire),
            _ => None,
        }
    }

    /// Whether the hub did nothing of the request, and may do it later.
    fn later(&self) -> Option<RetryReason> {
        let busy = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        if !busy.contains(&self.status) {
            return None;
        }
        match HubError::named(&self.refusal()?.code)?.retry() {
            Retry::Never => None,
            Retry::Later => self.retry_after.map(RetryReason::After),
            Retry::Reconnect => Some(RetryReason::Reconnect),
        }
    }
}

/// How an attempt without an answer ended.
enum AttemptFailure {
    /// Nothing was sent.
    NotReachable(String),
    /// It may have been received.
    NoAnswer(String),
    /// Nothing was sent, and nothing will be.
    Failed(Error),
}

/// The connections of a client to its hub.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    address: HubAddress,
    /// The value of the header that brings the token.
    token: Option<HeaderValue>,
    trust: TlsTrust,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    open: Semaphore,
}

impl ConnectionPool {
    pub(crate) fn new(address: HubAddress, token: Option<HeaderValue>, trust: TlsTrust) -> Self {
        let open = Semaphore::new(MAX_OPEN_REQUESTS);
        Self { address, token, trust, idle: Mutex::default(), open }
    }

    pub(crate) fn trust(&self) -> &TlsTrust {
        &self.trust
    }

    pub(crate) fn address(&self) -> &HubAddress {
        &self.address
    }

    pub(crate) fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    /// Sends the call until it is answered or `patience` has passed; the first attempt is always
    /// made. Between attempts it waits as [`RetryBackoff`] says.
    pub(crate) async fn call(
        &self,
        call: &ClientRequest,
        patience: Duration,
    ) -> Result<HubResponse, Error> {
        // The hub's word, and a caller's longest patience, may be beyond what a clock can show.
        let begun = Instant::now();
        let left = || patience.saturating_sub(begun.elapsed());
        let mut backoff = RetryBackoff::new();
        let mut attempts = 1;
        loop {
            let lost = match self.attempt(call).await? {
                Ok(answer) => match answer.later() {
                    Some(RetryReason::Reconnect) if !left().is_zero() => {
                        // Its successor is reached by new connections only.
                        self.idle.lock().clear();
                        AttemptFailure::NotReachable("the hub is stopping".into())
                    }
                    Some(RetryReason::After(wait)) if wait < left() => {
                        tokio::time::sleep(wait).await;
                        continue;
                    }
                    _ => return answer.check(),
                },
                Err(AttemptFailure::Failed(error)) => return Err(error),
                Err(lost) => lost,
            };
            let wait = backoff.wait();
            let again = call.repeatable || matches!(lost, AttemptFailure::NotReachable(_));
            if !again || wait > left() {
                return Err(self.failed(lost, attempts));
            }
            attempts += 1;
            tokio::time::sleep(wait).await;
        }
    }

    fn failed(&self, lost: AttemptFailure, attempts: u32) -> Error {
        let address = self.address.to_string();
        match lost {
            AttemptFailure::NotReachable(cause) => Error::NotReachable { address, cause },
            AttemptFailure::NoAnswer(cause) => Error::NoAnswer { address, attempts, cause },
            AttemptFailure::Failed(error) => error,
        }
    }

    async fn attempt(
        &self,
        call: &ClientRequest,
    ) -> Result<Result<HubResponse, AttemptFailure>, Error> {
        let request = call.request(&self.address, self.token())?;
        let _open = self.open.acquire().await.map_err(|_| Error::Ended("client"))?;
        // A connection that has been idle may have been closed by the hub in the meantime; what
        // fails on it says nothing about the hub, so that a fresh one follows at once.
        if let Some(sender) = self.take_idle().await {
            match self.send(sender, request.clone()).await {
                Err(AttemptFailure::NoAnswer(_)) if call.repeatable => {}
                outcome => return Ok(outcome),
            }
        }
        match self.connect().await {
            Ok(sender) => Ok(self.send(sender, request).await),
            Err(lost) => Ok(Err(lost)),
        }
    }

    async fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        loop {
            let mut sender = self.idle.lock().pop()?;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, AttemptFailure> {
        let opened = open(&self.address, &self.trust).await;
        let stream = opened.map_err(|unopened| match unopened {
            ConnectFailure::Lost(cause) => AttemptFailure::NotReachable(cause),
            ConnectFailure::Failed(error) => AttemptFailure::Failed(error),
        })?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| AttemptFailure::NotReachable(error.to_string()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a request connection ended");
            }
        });
        Ok(sender)
    }

    async fn send(
        &self,
        mut sender: SendRequest<Full<Bytes>>,
        request: Request<Full<Bytes>>,
    ) -> Result<HubResponse, AttemptFailure> {
        let patience = Duration::from_millis(MAX_ANSWER_MS);
        let answer = timeout(patience, async {
            let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let codec = codec_of(head.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()));
            let retry_after = head.headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok());
            let retry_after = retry_after.and_then(|v| v.parse().ok()).map(Duration::from_secs);
            let date = head.headers.get(DATE).and_then(|v| v.to_str().ok());
            let date = date.and_then(|v| httpdate::parse_http_date(v).ok());
            Ok(HubResponse { status: head.status, codec, body, date, retry_after })
        });
        match answer.await {
            Ok(Ok(answer)) => {
                self.idle.lock().push(sender);
                Ok(answer)
            }
            Ok(Err(cause)) => Err(AttemptFailure::NoAnswer(cause)),
            Err(_) => Err(AttemptFailure::NoAnswer(format!("nothing came for {patience:?}"))),
        }
    }
}

fn codec_of(content_type: Option<&str>) -> Codec {
    let media = content_type.and_then(|text| text.split(';').next()).unwrap_or("").trim();
    let all = [Codec::Json, Codec::MsgPack, Codec::Cbor];
    all.into_iter().find(|codec| codec.content_type() == media).unwrap_or(Codec::Json)
}
