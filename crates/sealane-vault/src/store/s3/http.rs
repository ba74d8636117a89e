//! The HTTP client of a bucket: requests over connections that stay open, to a server that may be
//! silent for so long.

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpResponseBody, HttpService,
};
use tokio::time::{Sleep, sleep, timeout};

use super::dial::{S3DialConfig, S3Dialer};
use super::limit::{S3RequestBody, UploadLimit};
use crate::limits::{MAX_S3_CONNECT_MS, MAX_S3_LIMITED_UPLOADS, MAX_S3_SILENCE_MS};

const OWN_NAME: HeaderValue =
    HeaderValue::from_static(concat!("sealane/", env!("CARGO_PKG_VERSION")));

/// An error, or what it came of.
type S3ErrorSource = dyn StdError + 'static;

/// Makes the clients of one bucket: for its objects, and for whoever gives out credentials.
#[derive(Debug)]
pub(super) struct S3Connector {
    pub(super) road: S3DialConfig,
    /// The bound on what is sent.
    pub(super) limit: Arc<UploadLimit>,
}

impl HttpConnector for S3Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let within = time(options, &ClientConfigKey::ConnectTimeout, MAX_S3_CONNECT_MS);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(S3Dialer::new(self.road.clone(), within));
        Ok(HttpClient::new(S3HttpService {
            client,
            plain: plain.as_deref() == Some("true"),
            limit: Arc::clone(&self.limit),
            silence: time(options, &ClientConfigKey::ReadTimeout, MAX_S3_SILENCE_MS),
        }))
    }
}

/// The options hold times as text.
fn time(options: &ClientOptions, key: &ClientConfigKey, otherwise_ms: u64) -> Duration {
    let text = options.get_config_value(key).unwrap_or_default();
    humantime::parse_duration(&text).unwrap_or(Duration::from_millis(otherwise_ms))
}

#[derive(Debug)]
struct S3HttpService {
    client: Client<S3Dialer, S3RequestBody>,
    limit: Arc<UploadLimit>,
    /// Whether HTTP is spoken without TLS too.
    plain: bool,
    silence: Duration,
}

#[async_trait]
impl HttpService for S3HttpService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !self.plain && request.uri().scheme() != Some(&Scheme::HTTPS) {
            let cause = io::Error::other("plain HTTP is spoken with this machine alone");
            return Err(HttpError::new(HttpErrorKind::Unknown, cause));
        }
        request.headers_mut().entry(USER_AGENT).or_insert(OWN_NAME);
        // A body that is sent slowly on purpose is no silence of the server.
        let sent = self.limit.time_for(request.body().content_length() as u64);
        let request = request.map(|body| S3RequestBody::new(body, Arc::clone(&self.limit)));
        let patience = self.silence.saturating_add(sent.saturating_mul(MAX_S3_LIMITED_UPLOADS));
        let answer = timeout(patience, self.client.request(request)).await;
        let answer = answer.map_err(|_| silent(patience))?.map_err(|error| failed(&error))?;
        let silence = self.silence;
        Ok(answer.map(|body| HttpResponseBody::new(S3ResponseBody { body, silence, waits: None })))
    }
}

/// The body of an answer, of which more must come in time.
struct S3ResponseBody {
    body: Incoming,
    silence: Duration,
    waits: Option<Pin<Box<Sleep>>>,
}

impl Body for S3ResponseBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = pin!(&mut self.body).poll_frame(context) {
            self.waits = None;
            return Poll::Ready(frame.map(|frame| {
                frame.map_err(|error| HttpError::new_boxed(kind(&error), said(&error).into()))
            }));
        }
        let silence = self.silence;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(silence)));
        match waits.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(silent(silence)))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn silent(silence: Duration) -> HttpError {
    let cause = format!("the server was silent for {}", humantime::format_duration(silence));
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, cause))
}

fn failed(error: &legacy::Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind(error) };
    HttpError::new_boxed(kind, said(error).into())
}

/// The kind of a failed request, by which the store knows whether to send it again. Only the
/// innermost causes tell it.
fn kind(error: &S3ErrorSource) -> HttpErrorKind {
    causes(error)
        .find_map(|cause| {
            let http = cause.downcast_ref::<hyper::Error>().and_then(|http| {
                let cut = http.is_closed()
                    || http.is_incomplete_message()
                    || http.is_body_write_aborted();
                cut.then_some(HttpErrorKind::Request)
            });
            http.or_else(|| match cause.downcast_ref::<io::Error>()?.kind() {
                io::ErrorKind::TimedOut => Some(HttpErrorKind::Timeout),
                io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof => Some(HttpErrorKind::Interrupted),
                _ => None,
            })
        })
        .unwrap_or(HttpErrorKind::Unknown)
}

/// The error with all its causes: alone it says that a request failed.
fn said(error: &S3ErrorSource) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn causes(error: &S3ErrorSource) -> impl Iterator<Item = &S3ErrorSource> {
    std::iter::successors(Some(error), |&cause| cause.source())
}
