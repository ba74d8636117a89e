//! The features that the operator of a node relies on: readiness, draining, and traces that are
//! left alone.

use std::time::Duration;

use sealane_codec::Codec;
use sealane_testing::until_told_async;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::{self, from_json};
use crate::running::Running;
use crate::socket::Ending;

#[tokio::test]
async fn a_node_is_ready_while_its_disk_takes_messages() {
    let hub = Running::start().await;
    let reply = hub.get("/ready").await;
    assert_eq!((reply.status, reply.json()), (200, json!({"ready": true, "status": "ready"})));
    // The id of its store is for tools of this node, and stands in `/health` alone.
    let id = sealane_stream::store_id(hub.folder.path()).unwrap().unwrap().to_string();
    let health = hub.get("/health").await.json();
    assert_eq!(health["store"], json!(id));
    let page: serde_json::Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    let described = |name: &str| page["components"]["schemas"][name]["properties"].clone();
    let (ready, of_health) = (described("Ready"), described("Health"));
    assert_eq!(ready.as_object().unwrap().keys().collect::<Vec<_>>(), ["ready", "status"]);
    for field in health.as_object().unwrap().keys() {
        assert!(of_health[field].is_object(), "the page does not describe {field} of /health");
    }
    // It looks at the disk every two seconds.
    let status = async || hub.get("/ready").await.status;
    std::fs::remove_dir_all(hub.folder.path()).unwrap();
    until_told_async(status, |status| *status == 503).await;
    let not_ready = json!({"ready": false, "status": "storage"});
    assert_eq!(hub.get("/ready").await.json(), not_ready);
    // A node that stores nothing is still this one.
    assert_eq!(hub.get("/health").await.json()["store"], json!(id));
    std::fs::create_dir_all(hub.folder.path()).unwrap();
    until_told_async(status, |status| *status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_node_tells_everybody_and_finishes_what_it_began() {
    let hub = Running::start().await;
    let address = hub.address();
    let mut reader = hub.subscribe("stream=a&from=new").await;
    // A request whose body is on its way, and a client that does not answer its close.
    let body = json!({"to": "a", "envelope": {"n": 1}}).to_string();
    let mut begun = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    begun.write_all(head.as_bytes()).await.unwrap();
    begun.write_all(&body.as_bytes()[..5]).await.unwrap();
    let _deaf = hub.subscribe("stream=a&from=new").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let stopping = tokio::spawn(hub.stop());
    assert_eq!(reader.ending().await, Ending { error: None, code: Some(1001) });
    let reply = http::request(address, "GET", "/ready", &[], b"").await;
    assert_eq!((reply.status, reply.json()["status"].clone()), (503, json!("draining")));
    assert_eq!(http::request(address, "GET", "/health", &[], b"").await.status, 503);
    let one = json!({"to": "a", "envelope": {}}).to_string();
    let reply = http::request(address, "POST", "/v1/enqueue", &[], one.as_bytes()).await;
    assert_eq!((reply.status, reply.error().as_str()), (503, "Draining"));
    begun.write_all(&body.as_bytes()[5..]).await.unwrap();
    let mut said = String::new();
    let reading = tokio::io::AsyncReadExt::read_to_string(&mut begun, &mut said);
    let _ = tokio::time::timeout(Duration::from_secs(60), reading).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let folder = stopping.await.unwrap();
    let hub = Running::over(folder, sealane_stream::Level::Os).await;
    assert_eq!(hub.state("a").await["next"], 1);
}

#[tokio::test]
async fn trace_context_is_carried_as_it_was_written() {
    let hub = Running::start().await;
    let envelope = json!({
        "id": "m",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "tracestate": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
    });
    for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
        let body = from_json(&json!({"to": "a", "envelope": envelope}), codec);
        // The header describes the request that carries the message, and stays behind.
        let other = "00-11111111111111111111111111111111-2222222222222222-00";
        let headers = [("content-type", codec.content_type()), ("traceparent", other)];
        let reply = http::request(hub.address(), "POST", "/v1/enqueue", &headers, &body).await;
        assert_eq!(reply.status, 200);
    }
    for query in ["codec=json&from=first", "codec=cbor&consumer=c&ack_wait_ms=100"] {
        let mut socket = hub.subscribe(&format!("stream=a&{query}")).await;
        socket.credit(6).await;
        // The consumer gets them again, unacknowledged as they are.
        let count = if query.contains("consumer") { 6 } else { 3 };
        for delivered in socket.take(count).await {
            assert_eq!(delivered.envelope, envelope, "{query}, attempt {}", delivered.attempt);
        }
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let hub = Running::start().await;
    let reply = http::request(hub.address(), "PATCH", "/v1/streams/a", &[], b"").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, PUT, DELETE")));
    let reply = hub.get("/v1/openapi.json").await;
    assert_eq!((reply.status, reply.json()["openapi"].clone()), (200, json!("3.1.0")));
}

#[tokio::test]
async fn a_streams_state_shows_who_reads_it() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a/1", 0, 10).await;
    let mut member = hub.subscribe("stream=a/1&consumer=c").await;
    member.credit(7).await;
    member.take(7).await;
    member.ack(json!({"from": 0, "to": 1})).await;
    let reader = hub.subscribe("stream=a/**&from=first&codec=cbor").await;
    let _elsewhere = hub.subscribe("stream=b&from=first").await;
    member.is_silent().await;
    let shown = async || {
        let state = hub.state("a/1").await;
        let all = state["connections"].as_array().unwrap().clone();
        let brief = |one: &serde_json::Value| {
            let keys = ["consumer", "pattern", "codec", "credit", "inFlight", "delivered"];
            keys.map(|key| one[key].clone())
        };
        all.iter().map(brief).collect::<Vec<_>>()
    };
    let of = |one: serde_json::Value| -> [serde_json::Value; 6] {
        one.as_array().unwrap().clone().try_into().unwrap()
    };
    let expected =
        [of(json!(["c", "a/1", "json", 0, 5, 7])), of(json!([null, "a/**", "cbor", 0, 0, 0]))];
    assert_eq!(shown().await, expected);
    reader.close().await;
    assert_eq!(shown().await, expected[..1]);
    let list = hub.get("/v1/streams").await.json();
    assert!(list["streams"][0].get("connections").is_none());
}
