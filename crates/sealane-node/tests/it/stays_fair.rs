//! No client takes what is for all: connections, time, bodies, rates. Each refusal is named and
//! counted.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_node::limits::{MAX_BODY_GRACE_MS, MAX_HEAD_MS, MAX_WAITING_MS};
use sealane_node::{ClientLimits, Config};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http;
use crate::running::Running;

async fn hub(limits: ClientLimits) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: folder.path().to_owned(),
        limits,
        ..Config::default()
    };
    Running::with(folder, config).await
}

/// How often something was refused by this name.
async fn refused(hub: &Running, name: &str) -> u64 {
    hub.metric(&format!("sealane_carry_refused_total{{code=\"{name}\"}}")).await
}

/// A connection from an address of this machine.
async fn from(source: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

/// All that comes until the node ends the connection, and when that was.
async fn until_end(stream: &mut TcpStream) -> (String, Instant) {
    let mut all = Vec::new();
    let reading = stream.read_to_end(&mut all);
    let _ = tokio::time::timeout(Duration::from_secs(60), reading).await.expect("an end");
    (String::from_utf8_lossy(&all).into_owned(), Instant::now())
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_others_are_not_concerned() {
    let hub = hub(ClientLimits { connections_per_address: 4, ..ClientLimits::default() }).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(from("127.0.0.2", hub.address()).await);
    }
    let (said, _) = until_end(&mut from("127.0.0.2", hub.address()).await).await;
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("\"TooManyConnections\""), "{said}");
    assert!(said.contains("\"hint\"") && said.contains("\r\nretry-after: "), "{said}");
    // Asked from 127.0.0.1.
    assert_eq!(refused(&hub, "TooManyConnections").await, 1);
    held.pop();
    let health = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    for _ in 0..3000 {
        let mut again = from("127.0.0.2", hub.address()).await;
        again.write_all(health).await.unwrap();
        let (said, _) = until_end(&mut again).await;
        if said.starts_with("HTTP/1.1 200 ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the place of a closed connection comes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_too_slow_gives_the_place_back() {
    let hub = hub(ClientLimits::default()).await;
    let began = Instant::now();
    let mut silent = TcpStream::connect(hub.address()).await.unwrap();
    let address = hub.address();
    let drip = |head: &'static str| async move {
        let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
        writer.write_all(head.as_bytes()).await.unwrap();
        let dripping = tokio::spawn(async move {
            while writer.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        let mut said = Vec::new();
        let _ = reader.read_to_end(&mut said).await;
        dripping.abort();
        (String::from_utf8_lossy(&said).into_owned(), Instant::now())
    };
    let slow_head = drip("GET /health HTTP/1.1\r\nx-slow: ");
    let slow_body =
        drip("POST /v1/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n");
    // An idle connection between two requests has done nothing wrong.
    let mut idle = TcpStream::connect(hub.address()).await.unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let (silent, head, body, idle) =
        tokio::join!(until_end(&mut silent), slow_head, slow_body, until_end(&mut idle));
    let lasted = |at: Instant, ms: u64| {
        let (lasted, limit) = (at - began, Duration::from_millis(ms));
        let longest = limit + Duration::from_secs(60);
        assert!((limit..longest).contains(&lasted), "{lasted:?} {limit:?}");
    };
    lasted(silent.1, MAX_WAITING_MS);
    lasted(head.1, MAX_HEAD_MS);
    lasted(body.1, MAX_BODY_GRACE_MS);
    assert!(body.0.starts_with("HTTP/1.1 408 ") && body.0.contains("\"SlowBody\""), "{}", body.0);
    assert!(idle.0.starts_with("HTTP/1.1 200 "), "{}", idle.0);
    for name in ["SilentConnection", "SlowHead", "SlowBody"] {
        assert_eq!(refused(&hub, name).await, 1, "{name}");
    }
    assert_eq!(hub.metric("sealane_carry_body_bytes").await, 0);
}

#[tokio::test]
async fn what_is_not_http_is_counted() {
    let hub = hub(ClientLimits::default()).await;
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(200_000));
    let what: [&[u8]; 3] = [b"\x00\x01\x02\x03\r\n\r\n", b"EHLO hub\r\n\r\n", long.as_bytes()];
    for bytes in what {
        let mut stream = TcpStream::connect(hub.address()).await.unwrap();
        let _ = stream.write_all(bytes).await;
        until_end(&mut stream).await;
    }
    assert_eq!(refused(&hub, "NotHttp").await, 2);
    assert_eq!(refused(&hub, "HeadTooLarge").await, 1);
    let mut stream = TcpStream::connect(hub.address()).await.unwrap();
    stream.write_all(b"\x16\x03\x01\x02\x00").await.unwrap();
    assert!(until_end(&mut stream).await.0.contains("\"TlsNotServed\""));
    assert_eq!(refused(&hub, "TlsNotServed").await, 1);
}

fn token(byte: u8) -> String {
    TokenSecret::new([byte; 32]).reveal().to_owned()
}

/// A hub with one token, `[1; 32]`, that may do all.
async fn guarded(limits: ClientLimits) -> Running {
    let hub = hub(limits).await;
    let all = vec!["**".parse().unwrap()];
    let (read, publish, manage) = (all.clone(), all.clone(), all);
    let rights = TokenRights { read, publish, manage, observe: true, ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "all", &TokenSecret::new([1; 32]), rights, None).unwrap();
    hub.node.reload().unwrap();
    hub
}

async fn ask(hub: &Running, byte: u8, method: &str, path: &str, body: &str) -> http::Reply {
    let bearer = format!("Bearer {}", token(byte));
    let headers = [("authorization", bearer.as_str())];
    http::request(hub.address(), method, path, &headers, body.as_bytes()).await
}

#[tokio::test]
async fn a_token_enqueues_at_its_rate() {
    let hub = guarded(ClientLimits { enqueue_rate: 10, ..ClientLimits::default() }).await;
    let batch = json!({"to": "a", "envelopes": vec![json!({}); 39]}).to_string();
    // A batch is taken while anything is left, and then owed: here for three seconds.
    assert_eq!(ask(&hub, 1, "POST", "/v1/enqueue/batch", &batch).await.status, 200);
    let one = json!({"to": "a", "envelope": {}}).to_string();
    let reply = ask(&hub, 1, "POST", "/v1/enqueue", &one).await;
    assert_eq!((reply.status, reply.error().as_str()), (429, "TooFast"));
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait), "{wait}");
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(ask(&hub, 1, "POST", "/v1/enqueue", &one).await.status, 200);
    let state = ask(&hub, 1, "GET", "/v1/streams/a", "").await.json();
    assert_eq!(state["next"], 40, "what was refused is not there");
}

#[tokio::test]
async fn nothing_is_read_of_who_may_publish_nowhere() {
    let hub = guarded(ClientLimits::default()).await;
    let rights = TokenRights { read: vec!["**".parse().unwrap()], ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "reader", &TokenSecret::new([2; 32]), rights, None).unwrap();
    hub.node.reload().unwrap();
    // Nothing of the body is sent. An answer that waited for it would be 408.
    for path in ["/v1/enqueue", "/v1/enqueue/batch"] {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-length: 16000000\r\n\r\n",
            token(2)
        );
        let reply = http::exchange(hub.address(), request.as_bytes()).await;
        assert_eq!((reply.status, reply.error().as_str()), (403, "Forbidden"), "{path}");
    }
}

#[tokio::test]
async fn who_guesses_is_slowed_down_and_who_knows_is_not() {
    let hub = guarded(ClientLimits { guesses_per_minute: 5, ..ClientLimits::default() }).await;
    for guess in 10..15 {
        assert_eq!(ask(&hub, guess, "GET", "/v1/streams", "").await.status, 401);
    }
    let reply = ask(&hub, 15, "GET", "/v1/streams", "").await;
    assert_eq!((reply.status, reply.error().as_str()), (429, "TooManyGuesses"));
    assert!(reply.header("retry-after").is_some());
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(ask(&hub, 1, "GET", "/v1/streams", "").await.status, 200);
    // Without a token nothing is guessed.
    assert_eq!(http::request(hub.address(), "GET", "/v1/streams", &[], b"").await.status, 401);
    let text = ask(&hub, 1, "GET", "/metrics", "").await.text();
    for (name, count) in [("TooManyGuesses", 1), ("Unauthorized", 6)] {
        let line = format!("sealane_carry_refused_total{{code=\"{name}\"}} {count}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}
