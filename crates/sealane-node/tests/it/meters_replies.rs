//! Unread replies and deliveries cost the node a bounded memory, and clients that read nothing.

use std::time::Duration;

use sealane_codec::Codec;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_node::limits::{MAX_DELIVERIES_BYTES, MAX_LISTED_CONSUMERS, MAX_REPLIES_BYTES};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http;
use crate::running::Running;

/// A body that takes six times as much in JSON as in MessagePack.
async fn enqueue_wide(hub: &Running, to: &str) {
    let body = json!({"to": to, "envelope": {"id": "m", "x": "\u{1}".repeat((1 << 20) - 100)}});
    let body = http::from_json(&body, Codec::MsgPack);
    let headers = [("content-type", Codec::MsgPack.content_type())];
    let reply = http::request(hub.address(), "POST", "/v1/enqueue", &headers, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// A connection that asks, with a buffer of so many bytes for what it is sent.
async fn ask(hub: &Running, path: &str, bearer: &str, buffer: u32) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(buffer).unwrap();
    let mut stream = socket.connect(hub.address()).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{bearer}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Connections that ask, and read nothing.
async fn unread(hub: &Running, path: &str, bearer: &str, count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(ask(hub, path, bearer, 4096).await);
    }
    all
}

/// The first bytes of what a connection is answered, read late.
async fn status(stream: &mut TcpStream) -> String {
    let mut first = [0; 12];
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_exact(&mut first));
    let _ = read.await.expect("an answer in time");
    String::from_utf8_lossy(&first).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_nobody_reads_are_bounded_and_who_reads_goes_on() {
    let hub = Running::start().await;
    for _ in 0..3 {
        enqueue_wide(&hub, "rw").await;
    }
    hub.enqueue("small", json!({"n": 1})).await;
    let mut stuck = unread(&hub, "/v1/streams/rw?from=first", "", 60).await;
    for _ in 0..10 {
        // Each of these is as large as those that nobody reads.
        let page = hub.get("/v1/streams/rw?from=first").await;
        assert_eq!((page.status, page.json()["messages"].as_array().unwrap().len()), (200, 1));
        assert_eq!(hub.get("/v1/streams/small?from=first").await.status, 200);
        let large = hub.metric("sealane_carry_reply_bytes").await as usize;
        let held = hub.metric("sealane_read_held_bytes").await as usize;
        assert!(large <= MAX_REPLIES_BYTES && held <= MAX_DELIVERIES_BYTES, "{large} {held}");
    }
    let mut said = Vec::new();
    for stream in &mut stuck {
        said.push(status(stream).await);
    }
    assert!(said.iter().all(|said| said == "HTTP/1.1 200" || said == "HTTP/1.1 503"), "{said:?}");
    assert!(hub.metric("sealane_carry_replies_cut_total").await > 0);
    drop(stuck);
    for _ in 0..3000 {
        if hub.metric("sealane_carry_reply_bytes").await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the memory of replies comes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_replies_of_a_token_refuse_no_other_token_anything() {
    let hub = Running::start().await;
    for topic in ["a", "b"] {
        enqueue_wide(&hub, topic).await;
    }
    let all: Vec<_> = vec!["**".parse().unwrap()];
    for (byte, name) in [(1, "hostile"), (2, "other")] {
        let (read, publish, manage) = (all.clone(), all.clone(), all.clone());
        let rights = TokenRights { read, publish, manage, observe: true, ..TokenRights::default() };
        TokenFile::add(hub.folder.path(), name, &TokenSecret::new([byte; 32]), rights, None)
            .unwrap();
    }
    hub.node.reload().unwrap();
    let bearer = |byte| format!("Bearer {}", TokenSecret::new([byte; 32]).reveal());
    let head = format!("authorization: {}\r\n", bearer(1));
    let mut stuck = unread(&hub, "/v1/streams/a?from=first", &head, 40).await;
    for path in ["/metrics", "/v1/streams", "/v1/streams/a", "/v1/consumers/a"] {
        stuck.extend(unread(&hub, path, &head, 10).await);
    }
    let bearer = bearer(2);
    let headers = [("authorization", bearer.as_str())];
    for path in ["/v1/streams/b?from=first", "/v1/streams", "/metrics", "/v1/consumers/b"] {
        for _ in 0..5 {
            let reply = http::request(hub.address(), "GET", path, &headers, b"").await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn a_list_ends_before_it_is_large_and_says_where_to_go_on() {
    let hub = Running::start().await;
    const STREAMS: usize = 100;
    const EACH: usize = 120;
    for n in 0..STREAMS {
        hub.enqueue(&format!("s/{n:03}"), json!({})).await;
    }
    for n in 0..EACH {
        drop(hub.subscribe(&format!("stream=s/*&consumer=c{n}")).await);
    }
    let (mut after, mut seen, mut pages) = (String::new(), 0, 0);
    loop {
        let page: Value = hub.get(&format!("/v1/streams?limit=1000{after}")).await.json();
        let streams = page["streams"].as_array().unwrap();
        let consumers = |state: &Value| state["consumers"].as_array().unwrap().len();
        let of_page: usize = streams.iter().map(consumers).sum();
        assert!(of_page <= 2 * MAX_LISTED_CONSUMERS, "{of_page}");
        assert!(streams.iter().all(|state| consumers(state) == EACH));
        (seen, pages) = (seen + streams.len(), pages + 1);
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert!(seen == STREAMS && pages > 1, "{seen} {pages}");
}

/// A subscription that is given three messages, as [`ask`] asks.
async fn subscribe(hub: &Running, buffer: u32) -> TcpStream {
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut stream = ask(hub, "/v1/subscribe?stream=rw&from=first", upgrade, buffer).await;
    let credit = br#"{"credit":3}"#;
    let mut frame = vec![0x81, 0x80 | credit.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(credit);
    stream.write_all(&frame).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_reads_slowly_stays_while_others_read_nothing() {
    let hub = Running::start().await;
    for _ in 0..3 {
        enqueue_wide(&hub, "rw").await;
    }
    let mut stuck = unread(&hub, "/v1/streams/rw?from=first", "", 12).await;
    let mut reader = subscribe(&hub, 128 << 10).await;
    let (mut taken, mut piece, mut reads) = (0, vec![0; 64 << 10], 0);
    while taken < 3 * 6 * ((1 << 20) - 100) {
        let read = tokio::time::timeout(Duration::from_secs(30), reader.read(&mut piece)).await;
        let read = read.expect("more of it").unwrap();
        assert!(read > 0, "it was ended after {taken} bytes");
        (taken, reads) = (taken + read, reads + 1);
        if reads % 8 == 0 {
            // Each of these wants the room of those that stand still.
            stuck.extend(unread(&hub, "/v1/streams/rw?from=first", "", 1).await);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(hub.metric("sealane_carry_replies_cut_total").await > 0, "nobody was in need");
}

/// Subscriptions and event sources that are given what they ask for, and read nothing.
async fn unread_deliveries(hub: &Running, count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(subscribe(hub, 4096).await);
    }
    all.extend(unread(hub, "/v1/events?stream=rw&from=first", "", count).await);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn large_deliveries_that_nobody_reads_are_bounded_and_who_reads_goes_on() {
    let hub = Running::start().await;
    for _ in 0..3 {
        enqueue_wide(&hub, "rw").await;
    }
    let stuck = unread_deliveries(&hub, 20).await;
    let gone = async || {
        let refused = "sealane_carry_refused_total{code=\"RepliesUnread\"}";
        hub.metric("sealane_carry_replies_cut_total").await + hub.metric(refused).await
    };
    for _ in 0..3000 {
        let large = hub.metric("sealane_carry_reply_bytes").await as usize;
        let held = hub.metric("sealane_read_held_bytes").await as usize;
        assert!(large <= MAX_REPLIES_BYTES && held <= MAX_DELIVERIES_BYTES, "{large} {held}");
        if gone().await > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(gone().await > 0, "nobody had to go for the others");
    let mut reader = hub.subscribe("stream=rw&from=first").await;
    reader.credit(3).await;
    assert_eq!(reader.take(3).await.len(), 3);
    drop(stuck);
    for _ in 0..3000 {
        if hub.metric("sealane_carry_reply_bytes").await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the memory of deliveries comes back");
}
