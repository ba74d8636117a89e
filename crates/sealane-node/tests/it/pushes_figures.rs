//! A page that watches a node is told its figures when they change, and asks for nothing.

use std::time::Duration;

use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_testing::PATIENCE;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::http;
use crate::running::Running;

/// A client of `/v1/overview`.
struct Watcher(BufReader<TcpStream>);

impl Watcher {
    async fn open(hub: &Running, query: &str) -> Watcher {
        let mut stream = TcpStream::connect(hub.address()).await.unwrap();
        let head = format!("GET /v1/overview{query} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut watcher = Watcher(BufReader::new(stream));
        let status = watcher.line().await;
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        watcher
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.0.read_line(&mut line)).await.unwrap().unwrap();
        line
    }

    /// The next event: its name, and its data.
    async fn event(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let line = self.line().await;
            assert!(!line.is_empty(), "it ended");
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).unwrap());
            }
        }
    }

    async fn told(&mut self) -> Value {
        let (name, data) = self.event().await;
        assert_eq!(name, "", "{data}");
        data
    }

    /// Whether nothing is pushed for longer than between two looks.
    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(2200), self.event()).await.is_err()
    }
}

fn topics(told: &Value) -> Vec<&str> {
    let streams = told["streams"].as_array().unwrap();
    streams.iter().map(|stream| stream["stream"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn figures_are_pushed_when_they_change_and_else_nothing_is() {
    let hub = Running::start().await;
    let mut watcher = Watcher::open(&hub, "").await;
    let first = watcher.told().await;
    assert_eq!((&first["node"]["status"], &first["streams"]), (&json!("healthy"), &json!([])));
    assert_eq!(first["node"], hub.get("/health").await.json());
    hub.enqueue_numbered("a", 0, 3).await;
    let mut told = watcher.told().await;
    // The look may have been between the commit and the counters.
    while told["counters"]["stored"] != 3 {
        told = watcher.told().await;
    }
    let list = hub.get("/v1/streams").await.json();
    assert_eq!((&told["streams"], &told["counters"]["acked"]), (&list["streams"], &json!(0)));
    assert!(watcher.is_silent().await, "nothing has changed");
}

#[tokio::test]
async fn a_part_of_a_topic_or_a_page_is_asked_for_and_what_is_wrong_is_refused() {
    let hub = Running::start().await;
    for topic in ["a/one", "a/two", "b/one"] {
        hub.enqueue_numbered(topic, 0, 1).await;
    }
    for (query, expected, next) in [
        ("?contains=one", ["a/one", "b/one"].as_slice(), Value::Null),
        ("?contains=one&pattern=b/*", &["b/one"], Value::Null),
        ("?limit=1&after=a/one", &["a/two"], json!("a/two")),
        ("?contains=", &["a/one", "a/two", "b/one"], Value::Null),
    ] {
        let told = Watcher::open(&hub, query).await.told().await;
        assert_eq!((topics(&told), &told["next"]), (expected.to_vec(), &next), "{query}");
    }
    let long = format!("contains={}", "x".repeat(1025));
    for (query, code) in [
        ("from=first", "InvalidParameter"),
        ("limit=0", "InvalidParameter"),
        ("pattern=a//b", "InvalidTopic"),
        (&long, "InvalidParameter"),
        ("ticket=none", "TicketSpent"),
    ] {
        let reply = hub.get(&format!("/v1/overview?{query}")).await;
        assert_eq!(reply.error(), code, "{query}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_ticket_shows_what_its_token_may_see_until_it_is_taken_back() {
    let hub = Running::start().await;
    for topic in ["a", "secret"] {
        hub.enqueue_numbered(topic, 0, 1).await;
    }
    let secret = TokenSecret::new([1; 32]);
    let rights = TokenRights { read: vec!["a".parse().unwrap()], ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "reader", &secret, rights, None).unwrap();
    hub.node.reload().unwrap();
    assert_eq!(hub.get("/v1/overview").await.status, 401);
    let bearer = format!("Bearer {}", secret.reveal());
    let headers = [("authorization", bearer.as_str())];
    let ticket = http::request(hub.address(), "POST", "/v1/ticket", &headers, b"").await.json();
    let query = format!("?ticket={}", ticket["ticket"].as_str().unwrap());
    let mut watcher = Watcher::open(&hub, &query).await;
    let told = watcher.told().await;
    assert_eq!((topics(&told), told.get("counters")), (vec!["a"], None));
    let reply = hub.get(&format!("/v1/overview{query}")).await;
    assert_eq!(reply.error(), "TicketSpent", "{}", reply.text());
    TokenFile::revoke(hub.folder.path(), "reader").unwrap();
    hub.node.reload().unwrap();
    let (name, refused) = watcher.event().await;
    assert_eq!((name.as_str(), &refused["error"]["code"]), ("refused", &json!("Unauthorized")));
}
