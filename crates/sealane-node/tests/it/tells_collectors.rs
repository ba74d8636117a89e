//! A request whose trace is sampled becomes a span at the collector, whatever becomes of the
//! request; no other does, and no request waits for a collector.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sealane_node::{Config, HubNode, StartError};
use sealane_stream::Level;
use sealane_testing::until_async;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::http;
use crate::running::{Running, config};
use crate::socket::Socket;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A little collector: it keeps what it is handed, and answers with the status that it is set to.
struct Collector {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    handed: mpsc::UnboundedReceiver<Value>,
}

impl Collector {
    async fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, handed) = mpsc::unbounded_channel();
        let status = Arc::new(AtomicU16::new(200));
        let answer = status.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let said = serve(stream, answer.load(Ordering::Relaxed)).await;
                said.map(|body| sender.send(body));
            }
        });
        Collector { address, status, handed }
    }

    fn endpoint(&self) -> String {
        format!("http://{}/otlp", self.address)
    }

    /// The spans of the next list.
    async fn spans(&mut self) -> Vec<Value> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.handed.recv());
        let body = next.await.expect("spans come").unwrap();
        let resource = &body["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(service, &json!({"key": "service.name", "value": {"stringValue": "sealane"}}));
        resource["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    }
}

/// Reads one request and answers it; none where it is cut off.
async fn serve(mut stream: TcpStream, status: u16) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        if body.len() < length.parse::<usize>().unwrap() {
            continue;
        }
        assert!(head.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
        let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: 2\r\n\r\n{{}}");
        stream.write_all(answer.as_bytes()).await.ok()?;
        return Some(serde_json::from_str(body).unwrap());
    }
}

async fn node(endpoint: String) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { otlp: Some(endpoint), ..config(folder.path(), Level::Os) };
    Running::with(folder, config).await
}

fn sampled() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

async fn enqueue(hub: &Running, traceparent: &[&str]) -> u16 {
    let headers: Vec<_> = traceparent.iter().map(|text| ("traceparent", *text)).collect();
    let body = json!({"to": "secret/topic", "envelope": {}});
    hub.post_with("/v1/enqueue", &headers, body).await.status
}

/// The text or number of an attribute.
fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let of = all.iter().find(|attribute| attribute["key"] == key);
    of.map_or(Value::Null, |of| of["value"].as_object().unwrap().values().next().unwrap().clone())
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

#[tokio::test]
async fn requests_of_sampled_traces_become_spans_and_no_others() {
    let mut collector = Collector::start().await;
    let hub = node(collector.endpoint()).await;
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    let (upper, twice) = (sampled().to_uppercase(), sampled());
    let (unsampled, upper, twice) = (unsampled.as_str(), upper.as_str(), twice.as_str());
    for none in [&[][..], &[unsampled], &[upper], &["00-1-2-01"], &[twice, twice]] {
        assert_eq!(enqueue(&hub, none).await, 200, "{none:?}");
    }
    let before = now();
    assert_eq!(enqueue(&hub, &[&sampled()]).await, 200);
    let (traceparent, path) = (sampled(), "/v1/streams/secret/nothing");
    let headers = [("traceparent", &*traceparent)];
    assert_eq!(http::request(hub.address(), "GET", path, &headers, b"").await.status, 404);
    let query = "stream=secret/topic&from=first";
    let _reader = Socket::open(hub.address(), query, &[("traceparent", &traceparent)]).await;
    let after = now();
    let mut spans = Vec::new();
    while spans.len() < 3 {
        spans.extend(collector.spans().await);
    }
    assert_eq!(spans.len(), 3, "{spans:?}");
    for (span, (name, status, error)) in spans.iter().zip([
        ("POST /v1/enqueue", "200", Value::Null),
        ("GET /v1/streams/{*topic}", "404", json!("UnknownStream")),
        ("GET /v1/subscribe", "101", Value::Null),
    ]) {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &json!(PARENT)));
        assert_eq!((&span["name"], &span["kind"]), (&json!(name), &json!(2)));
        assert_eq!(attribute(span, "http.response.status_code"), status);
        assert_eq!(attribute(span, "error.type"), error);
        assert_eq!(span["status"], json!({}));
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        let (began, ended) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
        assert!(before <= began && began <= ended && ended <= after, "{span}");
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        assert!(!span.to_string().contains("secret"), "a topic is nobody else's: {span}");
    }
    assert!(spans[0]["spanId"] != spans[1]["spanId"] && spans[1]["spanId"] != spans[2]["spanId"]);
    // They count when the collector's answer has come.
    let told = async || hub.metric("sealane_carry_spans_total").await == 3;
    until_async("what was taken is counted", told).await;
    // A span that was not told before the node stops is told then.
    assert_eq!(enqueue(&hub, &[&sampled()]).await, 200);
    hub.stop().await;
    assert_eq!(collector.spans().await.len(), 1);
}

#[tokio::test]
async fn a_collector_that_refuses_or_stands_holds_up_nobody() {
    let mut collector = Collector::start().await;
    let hub = node(collector.endpoint()).await;
    collector.status.store(503, Ordering::Relaxed);
    assert_eq!(enqueue(&hub, &[&sampled()]).await, 200);
    collector.spans().await;
    let dropped = async || hub.metric("sealane_carry_spans_dropped_total").await == 1;
    until_async("a refused span is counted", dropped).await;
    // It comes back, and is told of what is new.
    collector.status.store(200, Ordering::Relaxed);
    assert_eq!(enqueue(&hub, &[&sampled()]).await, 200);
    assert_eq!(collector.spans().await.len(), 1);
    // One that takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hub = node(format!("http://{}", silent.local_addr().unwrap())).await;
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(enqueue(&hub, &[&sampled()]).await, 200);
    }
    let (_held, _) = silent.accept().await.unwrap();
    assert_eq!(enqueue(&hub, &[&sampled()]).await, 200);
    hub.stop().await;
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_told_is_named_at_the_start() {
    for endpoint in ["https://127.0.0.1:4318", "127.0.0.1:4318", "grpc"] {
        let folder = tempfile::tempdir().unwrap();
        let otlp = Some(endpoint.to_owned());
        let started = HubNode::start(Config { otlp, ..config(folder.path(), Level::Os) }).await;
        let refused = started.err().expect("it does not start");
        assert!(matches!(&refused, StartError::Collector { endpoint: e } if e == endpoint));
        assert!(refused.to_string().contains(endpoint), "{refused}");
    }
    // A variable that is set to nothing sets nothing.
    assert_eq!(enqueue(&node(String::new()).await, &[&sampled()]).await, 200);
}
