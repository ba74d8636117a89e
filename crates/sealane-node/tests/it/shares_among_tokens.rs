//! Each token has a share: what one takes is refused to it by name, and to no other.

use std::path::Path;

use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_stream::limits::MAX_METRIC_SHARES;
use sealane_stream::{OwnShares, ShareKind};
use serde_json::json;

use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::{Ending, Socket};

fn secret(byte: u8) -> TokenSecret {
    TokenSecret::new([byte; 32])
}

fn rights(read: &str, publish: &str, manage: &str) -> TokenRights {
    let patterns = |text: &str| match text {
        "" => Vec::new(),
        text => vec![text.parse().unwrap()],
    };
    TokenRights {
        read: patterns(read),
        publish: patterns(publish),
        manage: patterns(manage),
        observe: true,
        ..TokenRights::default()
    }
}

fn add(folder: &Path, byte: u8, name: &str, rights: TokenRights, shares: &[(ShareKind, u64)]) {
    let own = shares.iter().fold(OwnShares::default(), |own, (kind, n)| own.with(*kind, *n));
    TokenFile::add_with(folder, name, &secret(byte), (rights, own), None).unwrap();
}

async fn ask(hub: &Running, byte: u8, method: &str, path: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {}", secret(byte).reveal());
    let headers = [("authorization", bearer.as_str())];
    http::request(hub.address(), method, path, &headers, body.as_bytes()).await
}

async fn enqueue(hub: &Running, byte: u8, to: &str, delay_ms: Option<u64>) -> Reply {
    let body = json!({"to": to, "envelope": {}, "delayMs": delay_ms.unwrap_or_default()});
    let plain = json!({"to": to, "envelope": {}});
    let body = if delay_ms.is_some() { body } else { plain };
    ask(hub, byte, "POST", "/v1/enqueue", &body.to_string()).await
}

async fn subscribe(hub: &Running, byte: u8, query: &str) -> Socket {
    let protocols = format!("json, sealane.token.{}", secret(byte).reveal());
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    Socket::open(hub.address(), query, &headers).await
}

/// A hub with a token of small shares, 1, and one of large ones, 2.
async fn shared() -> Running {
    let hub = Running::start().await;
    let small = [(ShareKind::Streams, 3), (ShareKind::Delayed, 2), (ShareKind::Consumers, 2)];
    add(hub.folder.path(), 1, "hostile", rights("**", "**", "**"), &small);
    add(hub.folder.path(), 2, "other", rights("**", "**", "**"), &[]);
    hub.node.reload().unwrap();
    hub
}

#[tokio::test]
async fn a_refusal_names_the_token_and_the_share_and_is_no_others() {
    let hub = shared().await;
    let far = Some(1 << 31);
    for n in 0..3 {
        assert_eq!(enqueue(&hub, 1, &format!("h/{n}"), None).await.status, 200);
    }
    for _ in 0..2 {
        assert_eq!(enqueue(&hub, 1, "h/0", far).await.status, 200);
    }
    let refused = [
        (enqueue(&hub, 1, "h/3", None).await, "the token `hostile` has 3 streams already"),
        (enqueue(&hub, 1, "h/0", far).await, "the token `hostile` has 2 delayed messages already"),
        (ask(&hub, 1, "PUT", "/v1/streams/h/3", "{}").await, "the token `hostile` has 3 streams"),
    ];
    for (reply, said) in refused {
        assert_eq!((reply.status, reply.error().as_str()), (429, "ShareTaken"), "{}", reply.text());
        assert!(reply.text().contains(said) && reply.text().contains("SL-HUB-36"), "{said}");
    }
    for n in 0..2 {
        subscribe(&hub, 1, &format!("stream=h/0&consumer=c{n}")).await;
    }
    let mut more = subscribe(&hub, 1, "stream=h/0&consumer=c3").await;
    assert_eq!(more.ending().await, Ending::new("ShareTaken", 1008));
    for n in 0..10 {
        assert_eq!(enqueue(&hub, 2, &format!("o/{n}"), None).await.status, 200);
        assert_eq!(enqueue(&hub, 2, "h/0", far).await.status, 200);
        let socket = subscribe(&hub, 2, &format!("stream=h/0&consumer=o{n}")).await;
        assert_eq!(socket.first["status"], "subscribed");
    }
    // After a start they count the same.
    let hub = hub.restart().await;
    assert_eq!(enqueue(&hub, 1, "h/3", None).await.error(), "ShareTaken");
    assert_eq!(enqueue(&hub, 1, "h/0", far).await.error(), "ShareTaken");
    assert_eq!(ask(&hub, 1, "DELETE", "/v1/streams/h/2", "").await.status, 200);
    assert_eq!(enqueue(&hub, 1, "h/3", None).await.status, 200);
}

#[tokio::test]
async fn a_changed_share_counts_at_once() {
    let hub = shared().await;
    for n in 0..3 {
        assert_eq!(enqueue(&hub, 1, &format!("h/{n}"), None).await.status, 200);
    }
    assert_eq!(enqueue(&hub, 1, "h/3", None).await.error(), "ShareTaken");
    let path = hub.folder.path().join("tokens.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("streams = 3", "streams = 4")).unwrap();
    hub.node.reload().unwrap();
    assert_eq!(enqueue(&hub, 1, "h/3", None).await.status, 200);
    // A file with a wrong share changes nothing, and is named with its line.
    std::fs::write(&path, text.replace("streams = 3", "streams = -3")).unwrap();
    let said = hub.node.reload().unwrap_err().to_string();
    assert!(said.contains("line 10: token `hostile`: `share.streams` is -3"), "{said}");
    assert_eq!(enqueue(&hub, 1, "h/4", None).await.error(), "ShareTaken");
}

#[tokio::test]
async fn shares_are_shown_and_few_of_them() {
    let hub = shared().await;
    enqueue(&hub, 1, "h/0", None).await;
    for byte in 3..90 {
        add(hub.folder.path(), byte, &format!("t{byte}"), rights("**", "**", "**"), &[]);
    }
    hub.node.reload().unwrap();
    for byte in 3..90 {
        assert_eq!(enqueue(&hub, byte, &format!("t/{byte}"), None).await.status, 200);
    }
    let text = ask(&hub, 2, "GET", "/metrics", "").await.text();
    for line in [
        "sealane_stream_share_all{kind=\"streams\"} 88\n",
        "sealane_stream_share_held{token=\"hostile\",kind=\"streams\"} 1\n",
        "sealane_stream_share_limit{token=\"hostile\",kind=\"streams\"} 3\n",
        "sealane_stream_share_refused_total{kind=\"streams\"} 0\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let shown = text.matches("\nsealane_stream_share_held{").count();
    assert_eq!(shown, MAX_METRIC_SHARES);
}

#[tokio::test]
async fn who_may_only_read_changes_no_settings_of_others() {
    let hub = Running::start().await;
    let folder = hub.folder.path();
    add(folder, 1, "alice", rights("orders", "orders", ""), &[]);
    add(folder, 2, "bob", rights("orders", "", ""), &[]);
    add(folder, 3, "boss", rights("orders", "", "orders"), &[]);
    hub.node.reload().unwrap();
    assert_eq!(enqueue(&hub, 1, "orders", None).await.status, 200);
    let billing = "stream=orders&consumer=billing";
    let _alice = subscribe(&hub, 1, &format!("{billing}&max_in_flight=9")).await;
    // He takes part, and with the settings that there are too.
    for query in [billing.to_owned(), format!("{billing}&max_in_flight=9")] {
        assert_eq!(subscribe(&hub, 2, &query).await.first["status"], "subscribed");
    }
    let mut bob = subscribe(&hub, 2, &format!("{billing}&max_attempts=1&max_in_flight=1")).await;
    assert_eq!(bob.ending().await, Ending::new("ConsumerNotYours", 1008));
    let settings = async || {
        let info = ask(&hub, 1, "GET", "/v1/consumers/orders?consumer=billing", "").await.json();
        (info["maxInFlight"].clone(), info["maxAttempts"].clone())
    };
    assert_eq!(settings().await, (json!(9), json!(0)));
    let boss = subscribe(&hub, 3, &format!("{billing}&max_in_flight=1")).await;
    assert_eq!(boss.first["status"], "subscribed");
    assert_eq!(settings().await.0, json!(1));
}
