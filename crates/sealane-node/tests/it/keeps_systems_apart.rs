//! The streams that the hub and groups keep for themselves, `dead/` and `groups/`, are reached by
//! their name alone. This holds in patterns, lists, rights, and in the number of streams.

use std::time::{Duration, Instant};

use sealane_message::Pattern;
use sealane_node::Config;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_stream::Level;
use serde_json::{Value, json};

use crate::http;
use crate::running::{Running, config};
use crate::socket::Socket;

/// Each with one message of its own.
const TOPICS: [&str; 5] = ["a", "a/dead", "dead/a", "groups/0a1b2c3d", "deadline/a"];

async fn filled() -> Running {
    let hub = Running::start().await;
    for topic in TOPICS {
        hub.enqueue(topic, json!({"id": topic})).await;
    }
    hub
}

/// The streams that come by a pattern, and those that come to it later.
async fn heard(hub: &Running, pattern: &str) -> Vec<String> {
    let mut socket = hub.subscribe(&format!("stream={pattern}&from=first")).await;
    socket.credit(100).await;
    let later = ["b/later", "dead/later", "groups/later"];
    for topic in later {
        hub.enqueue(topic, json!({})).await;
    }
    let mut streams = Vec::new();
    while let Some(frame) = socket.frame_soon().await {
        if frame["deliver"].is_object() {
            streams.push(frame["stream"].as_str().unwrap().to_owned());
        }
    }
    socket.close().await;
    for topic in later {
        assert_eq!(hub.delete(&format!("/v1/streams/{topic}")).await.status, 200);
    }
    streams.sort();
    streams
}

async fn listed(hub: &Running, query: &str) -> Vec<String> {
    let list = hub.get(&format!("/v1/streams{query}")).await.json();
    let streams = list["streams"].as_array().unwrap().iter();
    streams.map(|state| state["stream"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn subscriptions_and_lists_reach_them_by_their_names() {
    let hub = filled().await;
    for (pattern, expected) in [
        ("**", &["a", "a/dead", "b/later", "deadline/a"][..]),
        ("*/**", &["a", "a/dead", "b/later", "deadline/a"]),
        ("*/a", &["deadline/a"]),
        ("dead/**", &["dead/a", "dead/later"]),
        ("groups/*", &["groups/0a1b2c3d", "groups/later"]),
    ] {
        assert_eq!(heard(&hub, pattern).await, expected, "{pattern}");
        let listed = listed(&hub, &format!("?pattern={pattern}")).await;
        let there: Vec<_> = expected.iter().filter(|topic| !topic.ends_with("later")).collect();
        assert_eq!(listed.iter().collect::<Vec<_>>(), there, "{pattern}");
    }
    // A list without a pattern names every stream.
    assert_eq!(listed(&hub, "").await.len(), TOPICS.len());
}

#[tokio::test]
async fn rights_on_everything_are_none_on_theirs() {
    let hub = filled().await;
    let of = |texts: &[&str]| -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    let rights = |texts: &[&str]| TokenRights {
        read: of(texts),
        publish: of(texts),
        manage: of(texts),
        ..TokenRights::default()
    };
    let (all, dead) = (TokenSecret::new([1; 32]), TokenSecret::new([2; 32]));
    let folder = hub.folder.path();
    TokenFile::add(folder, "all", &all, rights(&["**"]), None).unwrap();
    TokenFile::add(folder, "dead", &dead, rights(&["dead/**"]), None).unwrap();
    hub.node.reload().unwrap();
    for (secret, topic, expected) in [
        (&all, "a", 200),
        (&all, "dead/a", 403),
        (&all, "groups/0a1b2c3d", 403),
        (&dead, "a", 403),
        (&dead, "dead/a", 200),
        (&dead, "groups/0a1b2c3d", 403),
    ] {
        let bearer = format!("Bearer {}", secret.reveal());
        let headers = [("authorization", bearer.as_str())];
        let path = format!("/v1/streams/{topic}");
        let one = json!({"to": topic, "envelope": {}}).to_string();
        for (method, path, body) in [
            ("POST", "/v1/enqueue", one.as_str()),
            ("GET", path.as_str(), ""),
            ("PUT", path.as_str(), "{}"),
        ] {
            let address = hub.address();
            let reply = http::request(address, method, path, &headers, body.as_bytes()).await;
            assert_eq!(reply.status, expected, "{method} {topic}: {}", reply.text());
            if expected == 403 {
                let hint = reply.json()["error"]["hint"].to_string();
                assert!(hint.contains("`**` does not stand for"), "{hint}");
            }
        }
        let protocols = format!("json, sealane.token.{}", secret.reveal());
        let headers = [("sec-websocket-protocol", protocols.as_str())];
        let query = format!("stream={topic}&from=first");
        let first = Socket::open(hub.address(), &query, &headers).await.first;
        let is_granted = first["status"] == "subscribed";
        assert_eq!(is_granted, expected == 200, "{topic}: {first}");
    }
}

#[tokio::test]
async fn answers_that_nobody_fetches_go_where_the_node_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let ttl = Duration::from_secs(3);
    let reply_ttl = Some(ttl);
    let config = Config { reply_ttl, ..config(folder.path(), Level::Os) };
    let hub = Running::with(folder, config).await;
    hub.enqueue("reply/read", json!({})).await;
    let _reader = hub.subscribe("stream=reply/read&from=first").await;
    let start = Instant::now();
    for topic in ["reply/left", "reply/fresh", "a/reply/left", "replies"] {
        hub.enqueue(topic, json!({})).await;
    }
    let left = json!(["a/reply/left", "replies", "reply/fresh", "reply/read"]);
    loop {
        hub.enqueue("reply/fresh", json!({})).await;
        let now: Value = listed(&hub, "").await.into();
        if now == left {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{now}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(start.elapsed() >= ttl, "{:?}", start.elapsed());
}
