//! A request that could be read in two ways, here and by a proxy on the way, is refused by name.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::Ending;

fn said(reply: &Reply) -> (u16, String) {
    (reply.status, if reply.status == 200 { String::new() } else { reply.error() })
}

async fn refused(hub: &Running, name: &str) -> u64 {
    hub.metric(&format!("sealane_carry_refused_total{{code=\"{name}\"}}")).await
}

#[tokio::test]
async fn a_head_over_its_limit_at_once_or_in_pieces() {
    let hub = Running::start().await;
    let sized = |size: usize| {
        let head = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ";
        format!("{head}{}\r\n\r\n", "x".repeat(size - head.len() - 4)).into_bytes()
    };
    for size in [60_000, 64 << 10] {
        assert_eq!(http::exchange(hub.address(), &sized(size)).await.status, 200, "{size}");
    }
    let sizes = [(64 << 10) + 1, 66_000, 80_000, 90_000];
    for size in sizes {
        assert_eq!(http::exchange(hub.address(), &sized(size)).await.status, 431, "{size}");
    }
    assert_eq!(refused(&hub, "HeadTooLarge").await, sizes.len() as u64);
}

#[tokio::test]
async fn a_path_with_a_hidden_slash() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a/b", 0, 1).await;
    for path in ["/v1/streams/a%2Fb", "/v1/streams/a%2fb?from=first", "/v1%2Fstreams"] {
        assert_eq!(said(&hub.get(path).await), (400, "NotHttp".to_owned()), "{path}");
    }
    // Any other letter may be written so, and a slash in a query.
    for path in ["/v1/streams/%61/b", "/v1/streams?pattern=a%2Fb"] {
        assert_eq!(hub.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_handshake_with_a_short_key_or_two() {
    let hub = Running::start().await;
    let ask = async |keys: &str| {
        let head = format!(
            "GET /v1/subscribe?stream=a&from=new HTTP/1.1\r\nhost: localhost\r\n\
             connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             {keys}\r\n"
        );
        let mut stream = TcpStream::connect(hub.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    let good = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert_eq!(ask(good).await, "HTTP/1.1 101");
    for keys in [
        String::new(),
        "sec-websocket-key: AAAA\r\n".to_owned(),
        "sec-websocket-key: not base64 at all!!!!!!!\r\n".to_owned(),
        format!("{good}{good}"),
    ] {
        assert_eq!(ask(&keys).await, "HTTP/1.1 426", "{keys}");
    }
}

#[tokio::test]
async fn a_head_that_names_two_hosts_or_none() {
    let hub = Running::start().await;
    let ask = async |head: &str| {
        let bytes = format!("{head}\r\nconnection: close\r\n\r\n");
        said(&http::exchange(hub.address(), bytes.as_bytes()).await)
    };
    let wrong = (400, "NotHttp".to_owned());
    for head in [
        "GET /v1/streams HTTP/1.1\r\nhost: localhost\r\nhost: localhost",
        "GET /v1/streams HTTP/1.1\r\nhost: localhost\r\nHost: evil.example",
        "GET http://evil.example/v1/streams HTTP/1.1\r\nhost: localhost",
        "GET /v1/streams HTTP/1.1\r\naccept: */*",
        // A path that needs no token is not served either.
        "GET /health HTTP/1.1\r\nhost: localhost\r\nhost: localhost",
    ] {
        assert_eq!(ask(head).await, wrong, "{head}");
    }
    assert_eq!(refused(&hub, "NotHttp").await, 5);
    for head in [
        "GET http://LOCALHOST/v1/streams HTTP/1.1\r\nhost: localhost",
        "GET /health HTTP/1.0\r\naccept: */*",
    ] {
        assert_eq!(ask(head).await.0, 200, "{head}");
    }
}

#[tokio::test]
async fn a_body_that_is_packed_or_of_a_type_that_is_no_text() {
    let hub = Running::start().await;
    let body = br#"{"to":"a","envelope":{}}"#;
    let post = async |fields: &[u8], body: &[u8]| {
        let head = b"POST /v1/enqueue HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        let bytes = [&head[..], fields, b"\r\n\r\n", body].concat();
        said(&http::exchange(hub.address(), &bytes).await)
    };
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    assert_eq!(post(b"transfer-encoding: chunked", &chunk).await.0, 200);
    for codings in ["gzip, chunked", "chunked, chunked", "identity, chunked"] {
        let fields = format!("transfer-encoding: {codings}");
        let expected = (501, "NotHttp".to_owned());
        assert_eq!(post(fields.as_bytes(), &chunk).await, expected, "{codings}");
    }
    let twice = b"transfer-encoding: gzip\r\ntransfer-encoding: chunked";
    assert_eq!(post(twice, &chunk).await, (501, "NotHttp".to_owned()));
    let length = format!("content-length: {}\r\n", body.len());
    let typed = |kind: &[u8]| [length.as_bytes(), b"content-type: ", kind].concat();
    for kind in [&b"\xff\xff"[..], b"application/json; x=\xff", b"\xffapplication/json"] {
        let expected = (415, "UnknownCodec".to_owned());
        assert_eq!(post(&typed(kind), body).await, expected, "{kind:?}");
    }
    assert_eq!(post(&typed(b"application/json; charset=utf-8"), body).await.0, 200);
}

#[tokio::test]
async fn a_body_of_two_lengths_ends_its_connection() {
    let hub = Running::start().await;
    let body = br#"{"to":"a","envelope":{}}"#;
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    let fields = ["transfer-encoding: chunked", "content-length: 6"];
    for (first, second) in [(fields[0], fields[1]), (fields[1], fields[0])] {
        let head =
            format!("POST /v1/enqueue HTTP/1.1\r\nhost: localhost\r\n{first}\r\n{second}\r\n\r\n");
        // A server that believed the other length would take this for the next request.
        let behind = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let bytes = [head.as_bytes(), &chunk, behind].concat();
        let mut stream = TcpStream::connect(hub.address()).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut said = Vec::new();
        // Reset or not, the connection ends.
        let _ = stream.read_to_end(&mut said).await;
        let said = String::from_utf8_lossy(&said);
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{said}");
        assert!(said.contains("connection: close"), "{said}");
    }
}

#[tokio::test]
async fn a_parameter_that_comes_twice_or_is_no_text() {
    let hub = Running::start().await;
    hub.enqueue("a", serde_json::json!({})).await;
    let wrong = (400, "InvalidParameter".to_owned());
    for path in [
        "/v1/streams?pattern=%ff",
        "/v1/streams?limit=1&limit=2",
        "/v1/streams/a?from=first&from=first",
        "/v1/streams/a?from=first&limit=%f",
        "/v1/events?stream=%ff",
        "/v1/events?stream=a&stream=b",
    ] {
        assert_eq!(said(&hub.get(path).await), wrong, "{path}");
    }
    for query in ["stream=%ff", "stream=a&stream=a", "stream=a&codec=json&codec=cbor"] {
        let mut socket = hub.subscribe(query).await;
        assert_eq!(socket.ending().await, Ending::new("InvalidParameter", 1003), "{query}");
    }
    assert_eq!(hub.get("/v1/streams?pattern=%61&limit=1").await.status, 200);
}
