//! Nothing is readable or writable that a rule does not grant: every right on every topic, over
//! every transport, with every token; and a right that is taken back ends what it allowed.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use sealane_message::Pattern;
use sealane_node::access::{TokenFile, TokenRight, TokenRights, TokenSecret};
use sealane_node::{Config, HubNode, StartError};
use serde_json::json;

use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::{Ending, Socket};

const TOPICS: [&str; 4] = ["fleet/7/location", "fleet/8/location", "fleet", "orders"];

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Tokens of every kind, by the byte that their random bytes repeat.
fn rights() -> Vec<(u8, TokenRights)> {
    let of = |read: &[&str], publish: &[&str], manage: &[&str]| TokenRights {
        read: patterns(read),
        publish: patterns(publish),
        manage: patterns(manage),
        ..TokenRights::default()
    };
    vec![
        (1, of(&["**"], &["**"], &["**"])),
        (2, of(&["fleet/**"], &[], &[])),
        (3, of(&[], &["fleet/*/location"], &[])),
        (4, of(&["fleet/7/location"], &["orders"], &["fleet"])),
        (5, of(&["*"], &[], &["fleet/7/**"])),
        (6, TokenRights { observe: true, ..TokenRights::default() }),
    ]
}

fn secret(byte: u8) -> TokenSecret {
    TokenSecret::new([byte; 32])
}

/// A hub with streams of all topics, and then with tokens.
async fn guarded() -> Running {
    let hub = Running::start().await;
    for topic in TOPICS {
        hub.enqueue(topic, json!({"id": "first"})).await;
        hub.subscribe(&format!("stream={topic}")).await.close().await;
    }
    for (byte, rights) in rights() {
        TokenFile::add(hub.folder.path(), &byte.to_string(), &secret(byte), rights, None).unwrap();
    }
    hub.node.reload().unwrap();
    hub
}

async fn ask(hub: &Running, token: &str, method: &str, path: &str, body: &[u8]) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    http::request(hub.address(), method, path, &headers, body).await
}

/// Every verb on a topic: its method, its path behind the topic's, its body, and the right.
fn verbs(name: &str) -> Vec<(&'static str, String, String, TokenRight, String)> {
    let path = format!("/v1/streams/{name}");
    let one = json!({"to": name, "envelope": {}}).to_string();
    let many = json!({"to": name, "envelopes": [{}]}).to_string();
    let of = |method, path: &str, body: &str, right, topic: &str| {
        (method, path.to_owned(), body.to_owned(), right, topic.to_owned())
    };
    let below = format!("{name}/gone");
    let gone = format!("{path}/gone");
    let (consumers, delayed) = (format!("/v1/consumers/{name}"), format!("/v1/delayed/{name}"));
    let inbox = format!("{consumers}?consumer=");
    vec![
        of("POST", "/v1/enqueue", &one, TokenRight::Publish, name),
        of("POST", "/v1/enqueue/batch", &many, TokenRight::Publish, name),
        of("GET", &path, "", TokenRight::Read, name),
        of("GET", &format!("{path}?from=first"), "", TokenRight::Read, name),
        of("PUT", &path, r#"{"maxCount": 100000}"#, TokenRight::Manage, name),
        of("PUT", &gone, "{}", TokenRight::Manage, &below),
        of("GET", &consumers, "", TokenRight::Read, name),
        of("GET", &inbox, "", TokenRight::Read, name),
        of("POST", &inbox, r#"{"pause": true}"#, TokenRight::Manage, name),
        of("POST", &inbox, r#"{"pause": false}"#, TokenRight::Manage, name),
        of("POST", &inbox, r#"{"reset": "first"}"#, TokenRight::Manage, name),
        of("POST", &inbox, r#"{"skip": {"offset": 0}}"#, TokenRight::Manage, name),
        of("POST", &inbox, r#"{"redeliver": true}"#, TokenRight::Manage, name),
        of("DELETE", &format!("{consumers}?consumer=gone"), "", TokenRight::Manage, name),
        of("GET", &delayed, "", TokenRight::Read, name),
        of("DELETE", &format!("{delayed}?id=later"), "", TokenRight::Manage, name),
        of("POST", &format!("/v1/purge/{name}"), r#"{"before": 0}"#, TokenRight::Manage, name),
        of("DELETE", &gone, "", TokenRight::Manage, &below),
    ]
}

/// How a subscription with these headers ends.
async fn refused(hub: &Running, headers: &[(&'static str, &str)]) -> Ending {
    Socket::open(hub.address(), "stream=orders&from=new", headers).await.ending().await
}

/// Whether the request was let through; what it would remove may be gone already.
pub(crate) fn is_done(reply: &Reply) -> bool {
    let is_gone = || ["UnknownConsumer", "NotDelayed"].contains(&reply.error().as_str());
    reply.status < 300 || (reply.status == 404 && is_gone())
}

/// 403 where the right is missing, and never where it is there.
fn check(reply: &Reply, granted: bool, what: &str) {
    if granted {
        assert!(is_done(reply), "{what}: {} {}", reply.status, reply.text());
    } else {
        assert_eq!((reply.status, reply.error().as_str()), (403, "Forbidden"), "{what}");
    }
}

#[tokio::test]
async fn requests_do_what_is_granted_and_nothing_else() {
    let hub = guarded().await;
    for (byte, rights) in rights() {
        let token = secret(byte);
        let token = token.reveal();
        let bearer = format!("Bearer {token}");
        let protocol = format!("sealane.token.{token}");
        let transports = [("authorization", &bearer), ("sec-websocket-protocol", &protocol)];
        for (header, name) in transports.iter().flat_map(|t| TOPICS.map(|name| (t, name))) {
            for (method, path, body, right, topic) in verbs(name) {
                let headers = [(header.0, header.1.as_str())];
                let (address, bytes) = (hub.address(), body.as_bytes());
                let reply = http::request(address, method, &path, &headers, bytes).await;
                let granted = rights.grants(right, &topic.parse().unwrap());
                check(&reply, granted, &format!("token {byte} by {}: {method} {path}", header.0));
            }
        }
        check(&ask(&hub, token, "GET", "/metrics", b"").await, rights.observe, "metrics");
        let list = ask(&hub, token, "GET", "/v1/streams?limit=2", b"").await.json();
        let listed: Vec<&str> = list["streams"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["stream"].as_str().unwrap())
            .collect();
        let readable = |name: &&str| rights.grants(TokenRight::Read, &name.parse().unwrap());
        assert!(listed.iter().all(readable), "token {byte} lists {listed:?}");
        let next = list["next"].as_str();
        assert!(next.is_none_or(|next| readable(&next)), "token {byte} is told of {next:?}");
    }
}

#[tokio::test]
async fn subscriptions_read_what_is_granted_as_a_whole() {
    let hub = guarded().await;
    let asked = ["fleet/**", "fleet/*/location", "fleet/7/location", "fleet", "orders", "*", "**"];
    for (byte, rights) in rights() {
        let token = secret(byte);
        let bearer = format!("Bearer {}", token.reveal());
        let protocols = format!("json, sealane.token.{}", token.reveal());
        let transports =
            [("authorization", bearer.as_str()), ("sec-websocket-protocol", &protocols)];
        let places = ["from=first", "consumer=c", ""];
        for (transport, pattern) in transports.iter().flat_map(|t| asked.map(|p| (t, p))) {
            let granted = rights.reads_all(&pattern.parse().unwrap());
            for place in places {
                let what = format!("token {byte} by {}: {pattern} {place}", transport.0);
                let query = format!("stream={pattern}&{place}");
                let query = query.trim_end_matches('&');
                let frame = Socket::open(hub.address(), query, &[*transport]).await.first;
                let code = frame["error"]["code"].as_str();
                if !granted {
                    assert_eq!(code, Some("Forbidden"), "{what}");
                } else if place.is_empty() && pattern.contains('*') {
                    assert_eq!(code, Some("PatternNeedsReader"), "{what}");
                } else {
                    assert_eq!(frame["status"], "subscribed", "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn publishing_sockets_take_what_is_granted_item_by_item() {
    let hub = guarded().await;
    for (byte, rights) in rights() {
        let bearer = format!("Bearer {}", secret(byte).reveal());
        let headers = [("authorization", bearer.as_str())];
        let mut socket = Socket::open_at(hub.address(), "/v1/publish", &headers).await;
        if rights.publish.is_empty() {
            assert_eq!(socket.ending().await, Ending::new("Forbidden", 1008), "token {byte}");
            continue;
        }
        let item = |name| json!({"to": name, "n": 1, "envelope": {}});
        socket.send(json!({"publish": TOPICS.map(item)})).await;
        let mut answered = 0;
        while answered < TOPICS.len() {
            let frame = socket.frame().await;
            let (place, refusal) = (&frame["published"]["stream"], &frame["refused"]);
            let Some(name) = place.as_str().or(refusal["stream"].as_str()) else { continue };
            let granted = rights.grants(TokenRight::Publish, &name.parse().unwrap());
            assert_eq!(place.is_string(), granted, "token {byte}: {frame}");
            assert!(granted || refusal["error"]["code"] == "Forbidden", "token {byte}: {frame}");
            answered += 1;
        }
        TokenFile::revoke(hub.folder.path(), &byte.to_string()).unwrap();
        assert_eq!(socket.ending().await, Ending::new("Unauthorized", 1008), "token {byte}");
    }
}

#[tokio::test]
async fn a_patterns_reader_gets_the_messages_of_no_other_stream() {
    let hub = guarded().await;
    let protocols = format!("json, sealane.token.{}", secret(2).reveal());
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let mut socket = Socket::open(hub.address(), "stream=fleet/**&from=first", &headers).await;
    socket.credit(100).await;
    ask(&hub, secret(1).reveal(), "POST", "/v1/enqueue", br#"{"to": "fleeting", "envelope": {}}"#)
        .await;
    let mut read = Vec::new();
    while let Some(frame) = socket.frame_soon().await {
        if frame.get("deliver").is_some() {
            read.push(frame["stream"].as_str().unwrap().to_owned());
        }
    }
    let granted: Pattern = "fleet/**".parse().unwrap();
    assert!(read.iter().all(|name| granted.matches(&name.parse().unwrap())), "{read:?}");
    assert!(read.len() >= 2, "{read:?}");
}

#[tokio::test]
async fn without_a_token_nothing_but_health_and_the_console_answers() {
    let hub = guarded().await;
    let unknown = TokenSecret::new([99; 32]);
    let wrong = [None, Some("Bearer "), Some("Basic YTpi"), Some("Bearer sealane_x")];
    let known = format!("Bearer {}", unknown.reveal());
    for value in wrong.into_iter().chain([Some(known.as_str())]) {
        let headers: Vec<_> = value.iter().map(|value| ("authorization", *value)).collect();
        let ask = |method, path| http::request(hub.address(), method, path, &headers, b"");
        for (method, path) in [
            ("GET", "/v1/streams"),
            ("GET", "/v1/streams/orders"),
            ("GET", "/v1/streams/orders?from=first"),
            ("PUT", "/v1/streams/orders"),
            ("DELETE", "/v1/streams/orders"),
            ("POST", "/v1/enqueue"),
            ("POST", "/v1/enqueue/batch"),
            ("GET", "/v1/consumers/orders"),
            ("POST", "/v1/consumers/orders?consumer="),
            ("DELETE", "/v1/consumers/orders?consumer="),
            ("GET", "/v1/delayed/orders"),
            ("DELETE", "/v1/delayed/orders?id=m"),
            ("POST", "/v1/purge/orders"),
            ("GET", "/metrics"),
        ] {
            let reply = ask(method, path).await;
            assert_eq!((reply.status, reply.error().as_str()), (401, "Unauthorized"), "{path}");
        }
        assert_eq!(ask("GET", "/health").await.status, 200);
        assert_eq!(ask("GET", "/").await.status, 200);
    }
    assert_eq!(refused(&hub, &[]).await, Ending::new("Unauthorized", 1008));
}

#[tokio::test]
async fn what_is_taken_back_ends_by_itself() {
    let hub = guarded().await;
    let protocols = format!("json, sealane.token.{}", secret(2).reveal());
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let mut socket = Socket::open(hub.address(), "stream=fleet/**&from=new", &headers).await;
    assert_eq!(socket.first["status"], "subscribed");
    let began = Instant::now();
    TokenFile::revoke(hub.folder.path(), "2").unwrap();
    assert_eq!(socket.ending().await, Ending::new("Unauthorized", 1008));
    // The promise is a second, which the pause between two looks keeps; a busy machine adds to it.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(ask(&hub, secret(2).reveal(), "GET", "/v1/streams", b"").await.status, 401);
}

#[tokio::test]
async fn a_token_ends_at_its_time_and_the_last_one_leaves_nothing_open() {
    let hub = Running::start().await;
    hub.enqueue("orders", json!({})).await;
    let soon = Some(SystemTime::now() + Duration::from_secs(2));
    let all = TokenRights { read: patterns(&["**"]), ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "short", &secret(7), all, soon).unwrap();
    hub.node.reload().unwrap();
    let protocols = format!("json, sealane.token.{}", secret(7).reveal());
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let mut socket = Socket::open(hub.address(), "stream=orders&from=first", &headers).await;
    assert_eq!(socket.first["status"], "subscribed");
    assert_eq!(socket.ending().await, Ending::new("Unauthorized", 1008));
    // An expired token is still a token: the node is not open to everybody.
    let ask = || http::request(hub.address(), "GET", "/v1/streams", &[], b"");
    assert_eq!(ask().await.status, 401);
    // Nor is it when the last one is taken back.
    TokenFile::revoke(hub.folder.path(), "short").unwrap();
    hub.node.reload().unwrap();
    assert_eq!(ask().await.status, 401);
    assert_eq!(ask_with(&hub, &secret(7)).await, 401);
}

/// Takes a file of the data folder away, where it is there.
fn take_away(hub: &Running, name: &str) {
    let _ = std::fs::remove_file(hub.folder.path().join(name));
}

#[tokio::test]
async fn a_node_that_had_tokens_is_opened_by_nothing_but_the_owner_of_its_folder() {
    let ask = async |hub: &Running| {
        http::request(hub.address(), "GET", "/v1/streams", &[], b"").await.status
    };
    let mut hub = Running::start().await;
    assert_eq!(ask(&hub).await, 200);
    // A file that was put there by hand counts as one that was made by the program.
    TokenFile::add(hub.folder.path(), "all", &secret(1), TokenRights::default(), None).unwrap();
    take_away(&hub, "guarded");
    hub.node.reload().unwrap();
    assert_eq!(ask(&hub).await, 401);
    assert!(hub.folder.path().join("guarded").exists());
    // Its loss opens nothing, whether the node is told of it, sees it, or starts with it.
    take_away(&hub, "tokens.toml");
    hub.node.reload().unwrap();
    assert_eq!(ask(&hub).await, 401);
    hub = hub.restart().await;
    assert_eq!(ask(&hub).await, 401);
    // Nor does the loss of both while it runs.
    take_away(&hub, "guarded");
    hub.node.reload().unwrap();
    assert_eq!(ask(&hub).await, 401);
    // A token that is made again is known.
    let all = TokenRights { read: patterns(&["**"]), ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "again", &secret(2), all, None).unwrap();
    hub.node.reload().unwrap();
    assert_eq!((ask(&hub).await, ask_with(&hub, &secret(2)).await), (401, 200));
    let folder = hub.stop().await;
    for name in ["tokens.toml", "guarded"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    hub = Running::over(folder, sealane_stream::Level::Os).await;
    assert_eq!(ask(&hub).await, 200);
}

#[tokio::test]
async fn a_file_of_tokens_that_goes_closes_the_node() {
    let hub = guarded().await;
    assert_eq!(ask_with(&hub, &secret(1)).await, 200);
    let protocols = format!("json, sealane.token.{}", secret(2).reveal());
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let mut socket = Socket::open(hub.address(), "stream=fleet/**&from=new", &headers).await;
    let began = Instant::now();
    take_away(&hub, "tokens.toml");
    assert_eq!(socket.ending().await, Ending::new("Unauthorized", 1008));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(ask_with(&hub, &secret(1)).await, 401);
    assert_eq!(http::request(hub.address(), "GET", "/v1/streams", &[], b"").await.status, 401);
}

async fn ask_with(hub: &Running, token: &TokenSecret) -> u16 {
    ask(hub, token.reveal(), "GET", "/v1/streams", b"").await.status
}

#[tokio::test]
async fn a_file_that_cannot_be_read_changes_nothing() {
    let hub = guarded().await;
    std::fs::write(TokenFile::path(hub.folder.path()), "version = 2\n").unwrap();
    assert!(hub.node.reload().is_err());
    assert_eq!(ask(&hub, secret(1).reveal(), "GET", "/v1/streams", b"").await.status, 200);
    assert_eq!(http::request(hub.address(), "GET", "/v1/streams", &[], b"").await.status, 401);
}

#[tokio::test]
async fn idempotency_keys_belong_to_their_token() {
    let hub = guarded().await;
    let body = json!({"to": "orders", "envelope": {"n": 1}}).to_string();
    let mut offsets = Vec::new();
    for byte in [1, 4, 1] {
        let bearer = format!("Bearer {}", secret(byte).reveal());
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", "k")];
        let reply =
            http::request(hub.address(), "POST", "/v1/enqueue", &headers, body.as_bytes()).await;
        offsets.push(reply.json()["offset"].as_u64().unwrap());
    }
    assert!(offsets[0] != offsets[1] && offsets[0] == offsets[2], "{offsets:?}");
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let hub = Running::start().await;
    let own = "http://localhost".to_owned();
    let ask = |headers: Vec<(&'static str, String)>| {
        let address = hub.address();
        async move {
            let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
            let body = br#"{"to": "orders", "envelope": {}}"#;
            http::request(address, "POST", "/v1/enqueue", &headers, body).await
        }
    };
    assert_eq!(ask(vec![("origin", own)]).await.status, 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let reply = ask(vec![("origin", origin.to_owned())]).await;
        assert_eq!((reply.status, reply.error().as_str()), (403, "OriginRefused"), "{origin}");
    }
    let elsewhere = refused(&hub, &[("origin", "http://evil.example")]).await;
    assert_eq!(elsewhere, Ending::new("OriginRefused", 1008));
    // A name that somebody else had point here.
    let raw = "GET /v1/streams HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert_eq!(http::exchange(hub.address(), raw.as_bytes()).await.status, 403);
}

#[tokio::test]
async fn a_listed_site_may_read_answers() {
    let folder = tempfile::tempdir().unwrap();
    let origins = vec!["https://fleet.example".to_owned()];
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: folder.path().to_owned(),
        origins,
        ..Config::default()
    };
    let node = HubNode::start(config).await.unwrap();
    let headers = [("origin", "https://fleet.example")];
    let allowed = |reply: &Reply| reply.header("access-control-allow-origin").map(str::to_owned);
    let asked = http::request(node.address(), "OPTIONS", "/v1/enqueue", &headers, b"").await;
    assert_eq!((asked.status, allowed(&asked).as_deref()), (204, Some("https://fleet.example")));
    let may_send = asked.header("access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "idempotency-key", "last-event-id"] {
        assert!(may_send.split(", ").any(|allowed| allowed == name), "{name} of {may_send}");
    }
    let list = http::request(node.address(), "GET", "/v1/streams", &headers, b"").await;
    assert_eq!((list.status, allowed(&list).as_deref()), (200, Some("https://fleet.example")));
    assert_eq!(list.header("access-control-expose-headers"), Some("retry-after"));
    let other = [("origin", "https://other.example")];
    let asked = http::request(node.address(), "OPTIONS", "/v1/enqueue", &other, b"").await;
    assert_eq!(allowed(&asked), None);
}

#[tokio::test]
async fn a_node_that_others_reach_does_not_start_without_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config {
        listen: "0.0.0.0:0".parse().unwrap(),
        data: folder.path().to_owned(),
        ..Config::default()
    };
    assert!(matches!(HubNode::start(config()).await, Err(StartError::Unguarded { .. })));
    let (_, rights) = rights().swap_remove(0);
    TokenFile::add(folder.path(), "all", &secret(1), rights, None).unwrap();
    let node = HubNode::start(config()).await.unwrap();
    // Whatever becomes of the file: others are not let in, whichever host they name.
    let address = format!("127.0.0.1:{}", node.address().port()).parse().unwrap();
    for change in [
        |file: &Path| std::fs::remove_file(file),
        |file: &Path| {
            std::fs::write(file, "version = 1\n")?;
            std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        },
    ] {
        change(&TokenFile::path(folder.path())).unwrap();
        node.reload().unwrap();
        assert_eq!(http::request(address, "GET", "/v1/streams", &[], b"").await.status, 401);
    }
    node.stop().await.unwrap();
    assert!(matches!(HubNode::start(config()).await, Err(StartError::Unguarded { .. })));
}
