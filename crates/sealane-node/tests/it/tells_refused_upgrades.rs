//! An upgrade that is refused opens all the same, to say why in the agreed codec and with the
//! code of its name; it does nothing else, and a flood of them is bounded.

use std::time::{Duration, Instant};

use sealane_codec::Codec;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_node::limits::MAX_TOLD_REFUSALS;
use sealane_node::{ClientLimits, Config};
use sealane_testing::until_told_async;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http;
use crate::running::Running;
use crate::socket::{Ending, Socket};

const PROTOCOL: &str = "sec-websocket-protocol";
const QUERY: &str = "stream=orders&from=first";

/// A token that reads `orders`.
fn reader() -> TokenSecret {
    TokenSecret::new([1; 32])
}

/// A hub with a stream `orders` and a token for it, which takes so many unknown ones a minute.
async fn guarded(guesses_per_minute: u64) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: folder.path().to_owned(),
        limits: ClientLimits { guesses_per_minute, ..ClientLimits::default() },
        ..Config::default()
    };
    let hub = Running::with(folder, config).await;
    hub.enqueue("orders", json!({"id": "first"})).await;
    let read = vec!["orders".parse().unwrap()];
    let rights = TokenRights { read, observe: true, ..TokenRights::default() };
    TokenFile::add(hub.folder.path(), "reader", &reader(), rights, None).unwrap();
    hub.node.reload().unwrap();
    hub
}

fn bearer(secret: &TokenSecret) -> String {
    format!("Bearer {}", secret.reveal())
}

/// A metric, asked for with the token.
async fn metric(hub: &Running, name: &str) -> u64 {
    let bearer = bearer(&reader());
    let headers = [("authorization", bearer.as_str())];
    let text = http::request(hub.address(), "GET", "/metrics", &headers, b"").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name}")).parse().unwrap()
}

async fn refused(hub: &Running, name: &str) -> u64 {
    metric(hub, &format!("sealane_carry_refused_total{{code=\"{name}\"}}")).await
}

/// A request that is refused.
struct Case<'a> {
    what: &'static str,
    query: &'static str,
    headers: &'a [(&'static str, &'a str)],
    name: &'static str,
    close: u16,
}

#[tokio::test]
async fn each_reason_is_told_in_the_agreed_codec_with_its_code_and_counted_once() {
    let hub = guarded(1000).await;
    let (known, unknown) = (bearer(&reader()), bearer(&TokenSecret::new([9; 32])));
    let known = [("authorization", known.as_str())];
    let unknown = [("authorization", unknown.as_str())];
    let elsewhere = [known[0], ("origin", "http://evil.example")];
    let case = |what, query, headers, name, close| Case { what, query, headers, name, close };
    let table = [
        case("no token", QUERY, &[], "Unauthorized", 1008),
        case("unknown", QUERY, &unknown, "Unauthorized", 1008),
        case("another site", QUERY, &elsewhere, "OriginRefused", 1008),
        case("no right", "stream=fleet&consumer=c", &known, "Forbidden", 1008),
        case("a parameter", "stream=orders&colour=blue", &known, "InvalidParameter", 1003),
        case("a query", "stream=orders&colour=%ff", &known, "InvalidParameter", 1003),
    ];
    for Case { what, query, headers, name, close } in table {
        let expected = Ending::new(name, close);
        for codec in Codec::ALL {
            let before = refused(&hub, name).await;
            let by_query = format!("{query}&codec={}", codec.name());
            let offered = [headers, &[(PROTOCOL, codec.name())]].concat();
            // A query that cannot be read names no codec.
            let by_query = if query.contains("%ff") { query } else { &by_query };
            for (query, headers) in [(by_query, headers), (query, &offered)] {
                let mut socket = Socket::open(hub.address(), query, headers).await;
                assert_eq!(socket.ending().await, expected, "{what} in {}", codec.name());
                let is_offered = headers.len() == offered.len();
                let agreed =
                    if is_offered || query.contains("codec=") { codec } else { Codec::Json };
                assert_eq!(socket.first_in, agreed, "{what} in {}", codec.name());
                let echoed = is_offered.then(|| codec.name().to_owned());
                assert_eq!(socket.protocol, echoed, "{what}");
            }
            assert_eq!(refused(&hub, name).await, before + 2, "{what}");
        }
    }
}

#[tokio::test]
async fn a_page_that_offers_nothing_but_its_token_is_told_too() {
    let hub = guarded(1000).await;
    let offered = format!("sealane.token.{}", TokenSecret::new([9; 32]).reveal());
    let mut socket = Socket::open(hub.address(), QUERY, &[(PROTOCOL, &offered)]).await;
    assert_eq!(socket.protocol.as_deref(), Some(offered.as_str()));
    assert_eq!(socket.ending().await, Ending::new("Unauthorized", 1008));
}

#[tokio::test]
async fn who_guesses_too_often_is_told_to_come_back() {
    let hub = guarded(2).await;
    let unknown = bearer(&TokenSecret::new([9; 32]));
    let headers = [("authorization", unknown.as_str())];
    for _ in 0..2 {
        let mut socket = Socket::open(hub.address(), QUERY, &headers).await;
        assert_eq!(socket.ending().await, Ending::new("Unauthorized", 1008));
    }
    let mut socket = Socket::open(hub.address(), QUERY, &headers).await;
    let message = socket.first["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("wait "), "{message}");
    assert_eq!(socket.ending().await, Ending::new("TooManyGuesses", 1013));
    let reply = http::request(hub.address(), "GET", "/v1/subscribe", &headers, b"").await;
    assert_eq!((reply.status, reply.error().as_str()), (429, "TooManyGuesses"));
}

#[tokio::test]
async fn a_refused_socket_serves_nothing() {
    let hub = guarded(1000).await;
    let known = bearer(&reader());
    let headers = [("authorization", known.as_str()), ("origin", "http://evil.example")];
    for place in ["from=first", "consumer=c"] {
        let query = format!("stream=orders&{place}");
        let mut socket = Socket::open(hub.address(), &query, &headers).await;
        socket.send(json!({"credit": 10, "ack": {"from": 0, "to": 9}})).await;
        assert_eq!(socket.ending().await, Ending::new("OriginRefused", 1008));
    }
    let state = "/v1/streams/orders";
    let state = http::request(hub.address(), "GET", state, &headers[..1], b"").await.json();
    assert_eq!((&state["consumers"], &state["readers"]), (&json!([]), &json!(0)));
    assert_eq!(metric(&hub, "sealane_read_connections").await, 0);
}

/// Asks for a socket without a token; the status of the answer, and the connection, on which
/// nothing more is read.
async fn knock(hub: &Running) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(hub.address()).await.unwrap();
    let head = format!(
        "GET /v1/subscribe?{QUERY} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n") {
        said.push(stream.read_u8().await.unwrap());
    }
    let status = String::from_utf8(said).unwrap();
    (status.split(' ').nth(1).unwrap().parse().unwrap(), stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_told_by_http_and_leaves_nothing() {
    let hub = guarded(1000).await;
    let connections = "sealane_carry_connections";
    let before = metric(&hub, connections).await;
    let (began, mut held, mut plain) = (Instant::now(), Vec::new(), 0);
    for _ in 0..MAX_TOLD_REFUSALS + 50 {
        let (status, stream) = knock(&hub).await;
        match status {
            101 => held.push(stream),
            401 => plain += 1,
            status => panic!("{status}"),
        }
    }
    let took = began.elapsed();
    assert!(took > Duration::from_secs(2) || held.len() == MAX_TOLD_REFUSALS, "{}", held.len());
    assert!(took > Duration::from_secs(2) || plain == 50, "{plain}");
    assert_eq!(refused(&hub, "Unauthorized").await, (MAX_TOLD_REFUSALS + 50) as u64);
    // The node lets go of those who read nothing, and then tells others again.
    until_told_async(async || metric(&hub, connections).await, |held| *held <= before).await;
    assert_eq!(knock(&hub).await.0, 101);
}
