//! Spans of traced requests on their way to a collector: OTLP 1.0 over HTTP, as JSON
//! (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>). No request waits for a collector: what
//! it does not take in time is dropped, and counted.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{Method, Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use sealane_codec::{Codec, DatumWriter};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::limits::{
    FIRST_SPAN_RETRY_MS, MAX_COLLECTOR_MS, MAX_SPAN_ATTEMPTS, MAX_SPANS_AT_ONCE, MAX_WAITING_SPANS,
    SPAN_GATHER_MS,
};
use crate::trace::{HexBytes, TraceContext};

/// `SPAN_KIND_SERVER`.
const SERVER: u64 = 2;
/// `STATUS_CODE_ERROR`.
const FAILED: u64 = 2;

/// A request that a trace is told of.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    pub(crate) context: TraceContext,
    pub(crate) method: Method,
    pub(crate) route: &'static str,
    pub(crate) began: SystemTime,
    pub(crate) ended: SystemTime,
    pub(crate) status: StatusCode,
    /// The name of the refusal.
    pub(crate) error: Option<&'static str>,
}

/// Where the spans of a node go.
#[derive(Debug, Default)]
pub(crate) struct SpanQueue {
    waiting: Mutex<Option<mpsc::Sender<RequestSpan>>>,
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// The address of a collector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanCollector {
    /// The collector's address, as `host:port`.
    authority: String,
    path: String,
}

impl SpanCollector {
    /// Reads what OpenTelemetry calls an endpoint, `http://127.0.0.1:4318`. None: it is no such
    /// address, or asks for TLS.
    pub(crate) fn read(endpoint: &str) -> Option<Self> {
        let uri: Uri = endpoint.parse().ok()?;
        let host = uri.host().filter(|host| !host.is_empty())?;
        // Only plain HTTP is spoken to a collector. An address with TLS has to fail at the start,
        // not at the first span.
        let is_plain = uri.scheme_str() == Some("http") && uri.query().is_none();
        // A port beyond 65535 is left out by the parser, as if none were named.
        let named = uri.authority()?.as_str().rsplit(['@', ']']).next().unwrap_or_default();
        let is_named = named.contains(':');
        let port = uri.port_u16().filter(|port| *port > 0).or((!is_named).then_some(80))?;
        let authority = format!("{host}:{port}");
        let path = format!("{}/v1/traces", uri.path().trim_end_matches('/'));
        is_plain.then_some(Self { authority, path })
    }

    /// Hands a list of spans over.
    async fn take(&self, body: Bytes) -> io::Result<CollectorAnswer> {
        let stream = TcpStream::connect(&self.authority).await?;
        // Each list has a connection of its own: one a second costs little, and no idle one can die
        // unseen.
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(io::Error::other)?;
        let request = Request::post(&self.path)
            .header("host", &self.authority)
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(io::Error::other)?;
        let mut answer = pin!(sender.send_request(request));
        let answer = tokio::select! {
            answer = &mut answer => answer,
            // One that ends has answered, or does not any more.
            _ = connection => answer.await,
        };
        let answer = answer.map_err(io::Error::other)?;
        let status = answer.status();
        // Those that OTLP over HTTP names as to be repeated; all others are for good.
        let is_later = [429, 502, 503, 504].contains(&status.as_u16());
        let wait =
            answer.headers().get("retry-after").and_then(|wait| wait.to_str().ok()?.parse().ok());
        match status.is_success() {
            true => Ok(CollectorAnswer::Taken),
            false if is_later => Ok(CollectorAnswer::Later { status, wait_s: wait }),
            false => Err(io::Error::other(format!("it answers {status}"))),
        }
    }

    /// Hands a list over, again after a while if the collector asks for that.
    async fn take_in_time(&self, body: Bytes) -> io::Result<()> {
        let mut wait = Duration::from_millis(FIRST_SPAN_RETRY_MS);
        let mut answer = String::new();
        for attempt in 1..=MAX_SPAN_ATTEMPTS {
            // A collector that hangs would let the queue fill until every span is dropped.
            let patience = Duration::from_millis(MAX_COLLECTOR_MS);
            let taken = tokio::time::timeout(patience, self.take(body.clone())).await;
            match taken.unwrap_or_else(|_| Err(io::Error::other("it does not answer")))? {
                CollectorAnswer::Taken => return Ok(()),
                CollectorAnswer::Later { status, wait_s } => {
                    answer = format!("it answers {status}");
                    let asked = wait_s.map_or(wait, Duration::from_secs);
                    if attempt < MAX_SPAN_ATTEMPTS {
                        tokio::time::sleep(asked.min(patience)).await;
                    }
                    wait *= 2;
                }
            }
        }
        Err(io::Error::other(answer))
    }
}

/// The answer of a collector to a list of spans.
enum CollectorAnswer {
    Taken,
    /// It is to be sent again, after so many seconds if it says how many.
    Later {
        status: StatusCode,
        wait_s: Option<u64>,
    },
}

impl SpanQueue {
    /// Begins to send spans to a collector, until [`SpanQueue::end`].
    pub(crate) fn begin(self: &Arc<Self>, collector: SpanCollector) -> JoinHandle<()> {
        let (sender, waiting) = mpsc::channel(MAX_WAITING_SPANS);
        *self.waiting.lock() = Some(sender);
        tokio::spawn(self.clone().send(collector, waiting))
    }

    /// No further span is taken; what waits is sent.
    pub(crate) fn end(&self) {
        self.waiting.lock().take();
    }

    /// Sends a span to the collector, if there is one.
    pub(crate) fn note(&self, span: RequestSpan) {
        let waiting = self.waiting.lock();
        // A request never waits for a collector. A lost span is counted instead.
        if waiting.as_ref().is_some_and(|waiting| waiting.try_send(span).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spans that a collector has taken.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Spans that no collector took.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    async fn send(
        self: Arc<Self>,
        collector: SpanCollector,
        mut waiting: mpsc::Receiver<RequestSpan>,
    ) {
        let mut is_well = true;
        loop {
            let mut spans = Vec::new();
            if waiting.recv_many(&mut spans, MAX_SPANS_AT_ONCE).await == 0 {
                return;
            }
            // A second of gathering makes one request of many spans. A trace is not read sooner
            // than that.
            gather(&mut waiting, &mut spans).await;
            let taken = collector.take_in_time(write(&spans).into()).await;
            let count = if taken.is_ok() { &self.sent } else { &self.dropped };
            count.fetch_add(spans.len() as u64, Ordering::Relaxed);
            match (&taken, is_well) {
                // Only the change is logged. A collector that is down for a day is one line.
                (Err(cause), true) => tracing::warn!(%cause, "the collector takes no spans"),
                (Ok(()), false) => tracing::info!("the collector takes spans again"),
                _ => {}
            }
            is_well = taken.is_ok();
        }
    }
}

/// Waits for more spans, as long as a list may wait, or until it is full or no more come.
async fn gather(waiting: &mut mpsc::Receiver<RequestSpan>, spans: &mut Vec<RequestSpan>) {
    let more = async {
        while let Some(room) = MAX_SPANS_AT_ONCE.checked_sub(spans.len()).filter(|room| *room > 0) {
            if waiting.recv_many(spans, room).await == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(SPAN_GATHER_MS), more).await;
}

/// An `ExportTraceServiceRequest`.
fn write(spans: &[RequestSpan]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = DatumWriter::new(Codec::Json, &mut body);
    writer.map(1);
    writer.key("resourceSpans");
    writer.array(1);
    writer.map(2);
    writer.key("resource");
    writer.map(1);
    writer.key("attributes");
    writer.array(2);
    attribute(&mut writer, "service.name", "stringValue", "sealane");
    attribute(&mut writer, "service.version", "stringValue", env!("CARGO_PKG_VERSION"));
    writer.end();
    writer.end();
    writer.key("scopeSpans");
    writer.array(1);
    writer.map(2);
    writer.key("scope");
    writer.map(1);
    writer.key("name");
    writer.text("sealane");
    writer.end();
    writer.key("spans");
    writer.array(spans.len());
    // Ids of spans need to differ, and not to be secret, so that the standard library's keys
    // suffice.
    let random = RandomState::new();
    for (number, span) in spans.iter().enumerate() {
        // Of all zeros there is none.
        span.write(&mut writer, HexBytes(random.hash_one(number).max(1).to_be_bytes()));
    }
    // The list, its scope, the list of scopes, the resource, the list of resources, the whole.
    (0..6).for_each(|_| writer.end());
    body
}

impl RequestSpan {
    fn write(&self, writer: &mut DatumWriter<'_>, id: HexBytes<8>) {
        writer.map(9);
        for (key, text) in [
            ("traceId", self.context.trace.to_string()),
            ("spanId", id.to_string()),
            ("parentSpanId", self.context.parent.to_string()),
            ("name", format!("{} {}", self.method, self.route)),
            // Whole numbers of 64 bits are text in the JSON of OTLP.
            ("startTimeUnixNano", nanoseconds(self.began)),
            ("endTimeUnixNano", nanoseconds(self.ended)),
        ] {
            writer.key(key);
            writer.text(&text);
        }
        writer.key("kind");
        writer.u64(SERVER);
        writer.key("attributes");
        writer.array(3 + usize::from(self.error.is_some()));
        attribute(writer, "http.request.method", "stringValue", self.method.as_str());
        attribute(writer, "http.route", "stringValue", self.route);
        attribute(writer, "http.response.status_code", "intValue", self.status.as_str());
        if let Some(name) = self.error {
            attribute(writer, "error.type", "stringValue", name);
        }
        writer.end();
        writer.key("status");
        // A refusal is the client's error and not the span's, by OpenTelemetry's conventions.
        let is_failed = self.status.is_server_error();
        writer.map(usize::from(is_failed));
        if is_failed {
            writer.key("code");
            writer.u64(FAILED);
        }
        writer.end();
        writer.end();
    }
}

fn attribute(writer: &mut DatumWriter<'_>, key: &str, kind: &str, value: &str) {
    writer.map(2);
    writer.key("key");
    writer.text(key);
    writer.key("value");
    writer.map(1);
    writer.key(kind);
    writer.text(value);
    writer.end();
    writer.end();
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use axum::response::Response;

    use super::*;
    use crate::trace::TracedRequest;

    #[test]
    fn an_endpoint_is_the_beginning_of_an_address() {
        for (endpoint, authority, path) in [
            ("http://127.0.0.1:4318", "127.0.0.1:4318", "/v1/traces"),
            ("http://collector/", "collector:80", "/v1/traces"),
            ("http://[::1]:4318/otlp/", "[::1]:4318", "/otlp/v1/traces"),
        ] {
            let (authority, path) = (authority.to_owned(), path.to_owned());
            assert_eq!(SpanCollector::read(endpoint), Some(SpanCollector { authority, path }));
        }
        for none in [
            "",
            "collector:4318",
            "https://collector:4318",
            "http://",
            "/v1",
            "http://a?b",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:0",
            "http://[::1]:65536",
        ] {
            assert_eq!(SpanCollector::read(none), None, "{none}");
        }
    }

    #[tokio::test]
    async fn a_collector_that_asks_for_it_is_sent_the_list_again() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", port.local_addr().unwrap());
        let answers = ["503 Service Unavailable\r\nretry-after: 0", "200 OK", "400 Bad Request"];
        let collector = tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = port.accept().await.unwrap();
                let mut head = vec![0; 4096];
                assert!(stream.read(&mut head).await.unwrap() > 0);
                let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let reads = SpanCollector::read(&endpoint).unwrap();
        assert!(reads.take_in_time(Bytes::from_static(b"{}")).await.is_ok());
        assert!(reads.take_in_time(Bytes::from_static(b"{}")).await.is_err(), "400 is for good");
        collector.await.unwrap();
    }

    #[tokio::test]
    async fn what_waits_for_a_collector_is_bounded_and_the_rest_counted() {
        let spans = Arc::new(SpanQueue::default());
        let sending = spans.begin(SpanCollector::read("http://127.0.0.1:9").unwrap());
        let named = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let span = || {
            let request = Request::get("/").header("traceparent", named);
            let request = request.body(axum::body::Body::empty()).unwrap();
            TracedRequest::begin(&request, "/").unwrap().end(&Response::default()).unwrap()
        };
        // Nobody sends before this test waits for something.
        (0..MAX_WAITING_SPANS + 5).for_each(|_| spans.note(span()));
        assert_eq!(spans.dropped(), 5);
        spans.end();
        sending.await.unwrap();
        assert_eq!((spans.sent(), spans.dropped()), (0, MAX_WAITING_SPANS as u64 + 5));
    }
}
