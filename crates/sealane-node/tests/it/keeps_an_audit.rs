//! Changes, removals and refusals stand in `audit/node`, by token and address. Only a
//! token that may observe reads it, and nobody but the node writes it.

use std::time::Duration;

use sealane_message::Pattern;
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_stream::Level;
use serde_json::{Value, json};

use crate::http::{self, Reply};
use crate::running::Running;

fn secret(byte: u8) -> TokenSecret {
    TokenSecret::new([byte; 32])
}

/// A hub with a stream, and then with a token that may do all but observe, and one that observes.
async fn guarded() -> Running {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 3).await;
    hub.subscribe("stream=a&consumer=c&from=first").await.close().await;
    let all: Vec<Pattern> =
        ["**", "audit/**"].iter().map(|pattern| pattern.parse().unwrap()).collect();
    let (read, publish, manage) = (all.clone(), all.clone(), all);
    let all = TokenRights { read, publish, manage, ..TokenRights::default() };
    let observer = TokenRights { observe: true, ..TokenRights::default() };
    for (byte, name, rights) in [(1, "ops", all), (2, "watch", observer)] {
        TokenFile::add(hub.folder.path(), name, &secret(byte), rights, None).unwrap();
    }
    hub.node.reload().unwrap();
    hub
}

async fn ask(hub: &Running, byte: u8, method: &str, path: &str, body: &str) -> Reply {
    let bearer = format!("Bearer {}", secret(byte).reveal());
    let headers = [("authorization", bearer.as_str())];
    http::request(hub.address(), method, path, &headers, body.as_bytes()).await
}

/// The records of a topic, once there are so many.
async fn records(hub: &Running, topic: &str, count: usize) -> Vec<Value> {
    loop {
        let path = format!("/v1/streams/{topic}?from=first");
        let page = ask(hub, 2, "GET", &path, "").await;
        if page.status == 200 {
            let page = page.json();
            let messages = page["messages"].as_array().unwrap();
            if messages.len() >= count {
                return messages.iter().map(|message| message["deliver"].clone()).collect();
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn each_deed_and_refusal_has_one_record_by_name_and_address() {
    let hub = guarded().await;
    let done = [
        ("PUT", "/v1/streams/new", r#"{"maxCount": 9}"#),
        ("PUT", "/v1/streams/a", r#"{"maxCount": 9}"#),
        ("POST", "/v1/consumers/a?consumer=c", r#"{"reset": "new"}"#),
        ("DELETE", "/v1/consumers/a?consumer=c", ""),
        ("POST", "/v1/purge/a", r#"{"before": 2}"#),
        ("DELETE", "/v1/streams/a", ""),
    ];
    for (method, path, body) in done {
        let reply = ask(&hub, 1, method, path, body).await;
        assert!(reply.status < 300, "{method} {path}: {}", reply.text());
    }
    // A request that only looks or publishes, or is refused for its own sake, leaves no record.
    assert_eq!(ask(&hub, 1, "GET", "/v1/streams", "").await.status, 200);
    let one = json!({"to": "new", "envelope": {}}).to_string();
    assert_eq!(ask(&hub, 1, "POST", "/v1/enqueue", &one).await.status, 200);
    assert_eq!(ask(&hub, 1, "DELETE", "/v1/streams/none", "").await.status, 404);
    assert_eq!(ask(&hub, 2, "DELETE", "/v1/streams/new", "").await.status, 403);
    assert_eq!(ask(&hub, 9, "GET", "/v1/streams", "").await.status, 401);
    let mut told = records(&hub, "audit/node", done.len()).await;
    told.extend(records(&hub, "audit/refused", 2).await);
    let said: Vec<String> = told
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            assert_eq!(text("address"), "127.0.0.1");
            let said = [text("token"), text("deed"), text("on"), text("detail")];
            said.join(" ").trim().to_owned()
        })
        .collect();
    assert_eq!(
        said,
        [
            "ops made a stream new",
            "ops changed a stream a",
            "ops steered a consumer a consumer=c reset new",
            "ops removed a consumer a consumer=c",
            "ops purged a stream a 2 of 3",
            "ops removed a stream a",
            "watch was refused new Forbidden: DELETE /v1/streams/{*topic}",
            "was refused /v1/streams Unauthorized: GET /v1/streams",
        ]
    );
}

#[tokio::test]
async fn only_who_may_observe_reads_it_and_nobody_writes_it() {
    let hub = guarded().await;
    assert_eq!(ask(&hub, 1, "DELETE", "/v1/streams/a", "").await.status, 200);
    records(&hub, "audit/node", 1).await;
    let forbidden = |reply: Reply| assert_eq!(reply.error(), "Forbidden", "{}", reply.text());
    for path in ["/v1/streams/audit/node", "/v1/events?stream=audit/**"] {
        forbidden(ask(&hub, 1, "GET", path, "").await);
    }
    for byte in [1, 2] {
        let one = json!({"to": "audit/node", "envelope": {}}).to_string();
        forbidden(ask(&hub, byte, "POST", "/v1/enqueue", &one).await);
        // Neither lists it: the one may not read it, and the other has no pattern of streams.
        let list = ask(&hub, byte, "GET", "/v1/streams?pattern=audit/**", "").await;
        assert_eq!(list.json()["streams"], json!([]));
    }
    forbidden(ask(&hub, 2, "DELETE", "/v1/streams/audit/node", "").await);
}

#[tokio::test]
async fn nobody_makes_its_streams_beforehand_and_they_are_bounded_and_open() {
    let hub = guarded().await;
    for body in [r#"{"maxAgeMs": 1}"#, r#"{"sealed": "0a1b2c3d"}"#] {
        let made = ask(&hub, 1, "PUT", "/v1/streams/audit/node", body).await;
        assert_eq!((made.status, made.error().as_str()), (403, "Forbidden"), "{body}");
    }
    records(&hub, "audit/refused", 1).await;
    assert_eq!(ask(&hub, 1, "DELETE", "/v1/streams/a", "").await.status, 200);
    records(&hub, "audit/node", 1).await;
    // Its owner may bound it otherwise, but not leave it without any bound.
    let free = r#"{"maxAgeMs": 0, "maxBytes": 0}"#;
    assert_eq!(ask(&hub, 1, "PUT", "/v1/streams/audit/node", free).await.status, 200);
    records(&hub, "audit/node", 2).await;
    let state = ask(&hub, 2, "GET", "/v1/streams/audit/node", "").await.json();
    assert!(state["maxAgeMs"].as_u64().unwrap() > 0 && state["maxBytes"].as_u64().unwrap() > 0);
}

/// The writer may be told when a client hangs up. What was done is recorded all the same.
#[tokio::test]
async fn a_deed_is_recorded_when_its_client_hangs_up_or_the_node_stops() {
    use tokio::io::AsyncWriteExt;
    let hub = guarded().await;
    let bearer = format!("Bearer {}", secret(1).reveal());
    for n in 0..20 {
        let mut client = tokio::net::TcpStream::connect(hub.address()).await.unwrap();
        let head = format!(
            "PUT /v1/streams/left/{n} HTTP/1.1\r\nhost: {}\r\nauthorization: {bearer}\r\n\
             content-type: application/json\r\ncontent-length: 15\r\n\r\n{{\"maxCount\": 9}}",
            hub.address()
        );
        client.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_micros(200 * n)).await;
        drop(client);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let made = ask(&hub, 1, "GET", "/v1/streams?pattern=left/*", "").await.json();
    let made = made["streams"].as_array().unwrap().len();
    let told = records(&hub, "audit/node", made).await;
    assert_eq!(told.len(), made);
}

#[tokio::test]
async fn a_deed_that_is_done_while_the_node_stops_is_recorded() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let hub = guarded().await;
    let (address, bearer) = (hub.address(), format!("Bearer {}", secret(1).reveal()));
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "PUT /v1/streams/late HTTP/1.1\r\nhost: {address}\r\nauthorization: {bearer}\r\n\
         content-type: application/json\r\ncontent-length: 15\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopped = tokio::spawn(hub.stop());
    tokio::time::sleep(Duration::from_millis(400)).await;
    client.write_all(b"{\"maxCount\": 9}").await.unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    drop(client);
    let hub = Running::over(stopped.await.unwrap(), Level::Os).await;
    let told = records(&hub, "audit/node", 1).await;
    assert_eq!(
        (told[0]["deed"].as_str(), told[0]["on"].as_str()),
        (Some("made a stream"), Some("late"))
    );
}

#[tokio::test]
async fn a_node_without_tokens_makes_no_stream_of_its_own_and_lets_nobody_write_one() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    assert_eq!(hub.delete("/v1/streams/a").await.status, 200);
    let forged = hub.post("/v1/enqueue", json!({"to": "audit/node", "envelope": {}})).await;
    assert_eq!((forged.status, forged.error().as_str()), (403, "Forbidden"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(hub.get("/health").await.json()["streams"], 0);
}
