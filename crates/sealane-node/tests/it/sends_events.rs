//! Server-sent events bring each message once, also across connections, and to no one else.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_node::limits::MAX_EVENT_STREAMS;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::http;
use crate::running::Running;

/// An expected event comes within this time.
const PATIENCE: Duration = Duration::from_secs(60);

struct Source {
    body: Incoming,
    text: String,
    /// The last `id`.
    id: String,
}

impl Source {
    /// Opens an event source, as a browser does when it has had an event with this id.
    async fn open(address: SocketAddr, query: &str, headers: &[(&str, &str)]) -> Source {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get(format!("/v1/events?{query}")).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Source { body: response.into_body(), text: String::new(), id: String::new() }
    }

    /// The next event: its name and its data; none at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let Some((event, rest)) = self.text.split_once("\n\n") else {
                let piece = self.body.frame().await?.unwrap();
                self.text += std::str::from_utf8(&piece.into_data().unwrap()).unwrap();
                continue;
            };
            let (event, rest) = (event.to_owned(), rest.to_owned());
            self.text = rest;
            let (mut name, mut data) = ("message", Vec::new());
            for line in event.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => self.id = id.to_owned(),
                    Some(("event", said)) => name = said,
                    Some(("data", line)) => data.push(line),
                    _ => assert!(line.starts_with(':'), "{line}"),
                }
            }
            if !data.is_empty() {
                let data = serde_json::from_str(&data.join("\n")).unwrap();
                return Some((name.to_owned(), data));
            }
        }
    }

    /// The id that comes before anything else.
    async fn first_id(&mut self) {
        let piece = self.body.frame().await.unwrap().unwrap().into_data().unwrap();
        let piece = std::str::from_utf8(&piece).unwrap();
        let (first, _) = piece.split_once("\n\n").unwrap();
        self.id = first.strip_prefix("id: ").unwrap().to_owned();
    }

    /// The next messages, as stream and offset.
    async fn messages(&mut self, count: usize) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        while all.len() < count {
            let next = tokio::time::timeout(PATIENCE, self.next()).await;
            let (name, data) = next.expect("an event in time").expect("no end");
            if name == "message" {
                let stream = data["stream"].as_str().unwrap().to_owned();
                all.push((stream, data["offset"].as_u64().unwrap()));
            }
        }
        all
    }

    async fn again(self, address: SocketAddr, query: &str) -> Source {
        Source::open(address, query, &[("last-event-id", &self.id)]).await
    }
}

fn of(stream: &str, offsets: std::ops::Range<u64>) -> Vec<(String, u64)> {
    offsets.map(|offset| (stream.to_owned(), offset)).collect()
}

#[tokio::test]
async fn a_source_goes_on_where_it_was() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 100).await;
    let mut source = Source::open(hub.address(), "stream=a&from=first", &[]).await;
    assert_eq!(source.messages(40).await, of("a", 0..40));
    let mut source = source.again(hub.address(), "stream=a&from=first").await;
    assert_eq!(source.messages(60).await, of("a", 40..100));
    hub.enqueue_numbered("a", 100, 10).await;
    assert_eq!(source.messages(10).await, of("a", 100..110));
    // From an offset, and before any message came.
    let mut source = Source::open(hub.address(), "stream=a&from=105", &[]).await;
    source.first_id().await;
    let mut source = source.again(hub.address(), "stream=a&from=105").await;
    assert_eq!(source.messages(5).await, of("a", 105..110));
    let data = hub.restart().await;
    let mut source = source.again(data.address(), "stream=a&from=first").await;
    data.enqueue_numbered("a", 110, 1).await;
    assert_eq!(source.messages(1).await, of("a", 110..111));
}

#[tokio::test]
async fn a_pattern_misses_nothing_of_streams_that_came_meanwhile() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a/old", 0, 5).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let query = "stream=a/**&from=new";
    let mut source = Source::open(hub.address(), query, &[]).await;
    hub.enqueue_numbered("a/1", 0, 3).await;
    assert_eq!(source.messages(3).await, of("a/1", 0..3));
    let id = source.id.clone();
    drop(source);
    hub.enqueue_numbered("a/1", 3, 2).await;
    hub.enqueue_numbered("a/2", 0, 2).await;
    hub.enqueue_numbered("a/old", 5, 1).await;
    let mut source = Source::open(hub.address(), query, &[("last-event-id", &id)]).await;
    let mut all = source.messages(5).await;
    all.sort();
    assert_eq!(all, [of("a/1", 3..5), of("a/2", 0..2), of("a/old", 5..6)].concat());
}

#[tokio::test]
async fn an_envelope_with_line_ends_is_one_event() {
    let hub = Running::start().await;
    let body = "{\"to\": \"a\", \"envelope\": {\n  \"id\": \"x\",\r\n  \"n\":\r 1\n}}";
    let path = "/v1/enqueue";
    let reply = http::request(hub.address(), "POST", path, &[], body.as_bytes()).await;
    assert_eq!(reply.status, 200);
    let mut source = Source::open(hub.address(), "stream=a&from=first", &[]).await;
    let (name, data) = source.next().await.unwrap();
    assert_eq!((name.as_str(), &data["deliver"]), ("message", &json!({"id": "x", "n": 1})));
}

#[tokio::test]
async fn what_cannot_be_resumed_is_refused_and_too_many_streams_end_it() {
    let hub = Running::start().await;
    for (query, headers) in [
        ("stream=a", [("last-event-id", "nonsense")].as_slice()),
        ("", &[]),
        ("stream=a&consumer=c", &[]),
        ("stream=a&from=yesterday", &[]),
    ] {
        let path = format!("/v1/events?{query}");
        let reply = http::request(hub.address(), "GET", &path, headers, b"").await;
        assert_eq!((reply.status, reply.error().as_str()), (400, "InvalidParameter"), "{query}");
    }
    for stream in 0..=MAX_EVENT_STREAMS {
        hub.enqueue(&format!("s/{stream}"), json!({})).await;
    }
    let mut source = Source::open(hub.address(), "stream=s/*&from=first", &[]).await;
    let mut last = None;
    while let Some((name, data)) = source.next().await {
        last = Some((name, data["error"]["code"].clone()));
    }
    assert_eq!(last, Some(("refused".to_owned(), json!("TooMany"))));
}

#[tokio::test]
async fn only_who_may_read_is_sent_anything_and_only_as_long() {
    let hub = Running::start().await;
    hub.enqueue("fleet/1", json!({})).await;
    let secret = TokenSecret::new([1; 32]);
    let rights = TokenRights { read: vec!["fleet/**".parse().unwrap()], ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "reader", &secret, rights, None).unwrap();
    hub.node.reload().unwrap();
    let bearer = format!("Bearer {}", secret.reveal());
    let headers = [("authorization", bearer.as_str())];
    let ask = |path, headers| http::request(hub.address(), "GET", path, headers, b"");
    assert_eq!(ask("/v1/events?stream=fleet/1", &[]).await.status, 401);
    for wider in ["/v1/events?stream=**", "/v1/events?stream=orders", "/v1/events?stream=*/1"] {
        assert_eq!(ask(wider, &headers).await.status, 403, "{wider}");
    }
    let mut source = Source::open(hub.address(), "stream=fleet/**&from=first", &headers).await;
    assert_eq!(source.messages(1).await, of("fleet/1", 0..1));
    TokenFile::revoke(hub.folder.path(), "reader").unwrap();
    let (name, data) = source.next().await.unwrap();
    assert_eq!((name.as_str(), &data["error"]["code"]), ("refused", &json!("Unauthorized")));
    assert!(source.next().await.is_none());
}

#[tokio::test]
async fn a_page_opens_a_source_by_a_ticket_which_is_good_once() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 4).await;
    let rights = TokenRights { read: vec!["a".parse().unwrap()], ..TokenRights::default() };
    let secret = TokenSecret::new([1; 32]);
    TokenFile::add(hub.folder.path(), "page", &secret, rights, None).unwrap();
    hub.node.reload().unwrap();
    let bearer = format!("Bearer {}", secret.reveal());
    let with_token = [("authorization", bearer.as_str())];
    let ticket = async || {
        let made = http::request(hub.address(), "POST", "/v1/ticket", &with_token, b"").await;
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["ticket"].as_str().unwrap().to_owned()
    };
    let none = http::request(hub.address(), "POST", "/v1/ticket", &[], b"").await;
    assert_eq!(none.status, 401);
    let first = ticket().await;
    let query = format!("stream=a&from=first&ticket={first}&lastEventId=");
    let mut source = Source::open(hub.address(), &query, &[]).await;
    assert_eq!(source.messages(2).await, of("a", 0..2));
    // A second use, another route, and another topic.
    for (path, status) in [
        (format!("/v1/events?stream=a&ticket={first}"), 401),
        (format!("/v1/streams/a?ticket={}", ticket().await), 401),
        (format!("/v1/events?stream=b&ticket={}", ticket().await), 403),
        ("/v1/events?stream=a&ticket=".to_owned(), 401),
    ] {
        assert_eq!(hub.get(&path).await.status, status, "{path}");
    }
    // The next source goes on where the first one was, by a ticket of its own.
    let id: String = source.id.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let query = format!("stream=a&from=first&ticket={}&lastEventId={id}", ticket().await);
    let mut source = Source::open(hub.address(), &query, &[]).await;
    assert_eq!(source.messages(2).await, of("a", 2..4));
    // A ticket is worth no more than its token.
    let left = ticket().await;
    TokenFile::revoke(hub.folder.path(), "page").unwrap();
    hub.node.reload().unwrap();
    assert_eq!(hub.get(&format!("/v1/events?stream=a&ticket={left}")).await.status, 401);
}
