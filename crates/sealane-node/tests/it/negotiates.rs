//! The codec is agreed on by stated rules, and whatever cannot be done is refused by name.

use sealane_codec::Codec;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::{Ending, Socket};

const PROTOCOL: &str = "sec-websocket-protocol";
/// One value of each kind that all codecs carry alike.
fn envelope() -> Value {
    json!({
        "id": "m1", "null": null, "yes": true, "small": 7, "negative": -5, "float": 0.5,
        "large": 18_446_744_073_709_551_615_u64, "text": "Grüße \u{1f600} \"quoted\"\n",
        "array": [1, [2.25], {"deep": "x"}], "empty": {}
    })
}

async fn send(hub: &Running, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    http::request(hub.address(), "POST", "/v1/enqueue", headers, body).await
}

#[tokio::test]
async fn every_codec_reaches_every_reader() {
    let hub = Running::start().await;
    for from in Codec::ALL {
        let topic = format!("from/{}", from.name());
        let body = http::from_json(&json!({"to": topic, "envelope": envelope()}), from);
        for accept in Codec::ALL {
            let headers =
                [("content-type", from.content_type()), ("accept", accept.content_type())];
            let reply = send(&hub, &headers, &body).await;
            assert_eq!(reply.status, 200);
            // A reply stands alone: records, which need a connection, are written plainly.
            assert_eq!(reply.header("content-type"), Some(accept.at_rest().content_type()));
            assert_eq!(reply.value(accept.at_rest())["id"], "m1");
        }
        for to in Codec::ALL {
            let query = format!("stream={topic}&from=first&codec={}", to.name());
            let mut reader = hub.subscribe(&query).await;
            assert_eq!(reader.first["codec"], to.name());
            reader.credit(4).await;
            for delivered in reader.take(4).await {
                assert_eq!(delivered.envelope, envelope(), "{} to {}", from.name(), to.name());
            }
        }
    }
}

#[tokio::test]
async fn batches_come_to_those_who_ask_in_every_codec() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 100).await;
    for codec in Codec::ALL {
        let query = format!("stream=log&from=first&batch=30&codec={}", codec.name());
        let mut reader = hub.subscribe(&query).await;
        reader.credit(95).await;
        let mut offsets = Vec::new();
        while offsets.len() < 95 {
            let frame = reader.frame().await;
            let batch = frame["batch"].as_array().unwrap();
            assert!(batch.len() <= 30);
            offsets.extend(batch.iter().map(|one| one["offset"].as_u64().unwrap()));
        }
        assert_eq!(offsets, (0..95).collect::<Vec<_>>());
        reader.is_silent().await;
    }
}

/// The query, sub-protocols and `Accept`; the codec agreed on, and the sub-protocol echoed.
type Offer =
    (&'static str, Option<&'static str>, Option<&'static str>, &'static str, Option<&'static str>);

#[tokio::test]
async fn the_query_goes_before_sub_protocols_and_these_before_accept() {
    let hub = Running::start().await;
    let table: [Offer; 12] = [
        ("", None, None, "json", None),
        ("&codec=cbor", None, None, "cbor", None),
        ("", Some("msgpack"), None, "msgpack", Some("msgpack")),
        ("", None, Some("application/cbor"), "cbor", None),
        ("", Some("msgpack"), Some("application/cbor"), "msgpack", Some("msgpack")),
        ("&codec=cbor", Some("msgpack, cbor"), None, "cbor", Some("cbor")),
        ("", Some("json, cbor"), None, "json", Some("json")),
        ("", Some("avro, cbor, json"), None, "cbor", Some("cbor")),
        ("", Some("msgpack-records, msgpack"), None, "msgpack-records", Some("msgpack-records")),
        ("", None, Some("application/json;q=0.5, application/msgpack"), "msgpack", None),
        ("", None, Some("application/json;q=0, */*"), "msgpack", None),
        ("", None, Some("text/html, */*;q=0.1"), "json", None),
    ];
    for (query, protocols, accept, codec, echoed) in table {
        let mut headers = Vec::new();
        headers.extend(protocols.map(|value| (PROTOCOL, value)));
        headers.extend(accept.map(|value| ("accept", value)));
        let query = format!("stream=a&from=new{query}");
        let socket = Socket::open(hub.address(), &query, &headers).await;
        assert_eq!(socket.first["codec"], codec, "{query} {headers:?}");
        assert_eq!(socket.protocol.as_deref(), echoed, "{query} {headers:?}");
    }
}

#[tokio::test]
async fn an_unknown_codec_is_told_in_json_with_those_known() {
    let hub = Running::start().await;
    let table: [(&str, &[(&str, &str)]); 4] = [
        ("&codec=avro", &[]),
        ("&codec=JSON", &[]),
        ("", &[(PROTOCOL, "avro")]),
        ("", &[("accept", "text/html")]),
    ];
    for (query, headers) in table {
        let query = format!("stream=a&from=new{query}");
        let mut socket = Socket::open(hub.address(), &query, headers).await;
        let message = socket.first["error"]["message"].as_str().unwrap().to_owned();
        for codec in Codec::ALL {
            assert!(message.contains(codec.name()), "{message}");
        }
        assert_eq!(socket.ending().await, Ending::new("UnknownCodec", 1003), "{query}");
    }
}

#[tokio::test]
async fn http_bodies_and_replies_are_negotiated_too() {
    let hub = Running::start().await;
    let body = br#"{"to":"a","envelope":{}}"#;
    for kind in ["application/json", "text/json; charset=utf-8", "application/cloud+json"] {
        assert_eq!(send(&hub, &[("content-type", kind)], body).await.status, 200, "{kind}");
    }
    for kind in ["text/plain", "application/xml", "avro"] {
        let reply = send(&hub, &[("content-type", kind)], body).await;
        assert_eq!((reply.status, reply.error().as_str()), (415, "UnknownCodec"), "{kind}");
        assert!(reply.text().contains("cbor"), "{}", reply.text());
    }
    let before = hub.state("a").await["next"].clone();
    for accept in ["text/html", "application/json;q=0", "*/*;q=0"] {
        let reply = send(&hub, &[("accept", accept)], body).await;
        assert_eq!((reply.status, reply.error().as_str()), (406, "UnknownCodec"), "{accept}");
        let accept = [("accept", accept)];
        let listed = http::request(hub.address(), "GET", "/v1/streams", &accept, b"").await;
        assert_eq!(listed.status, 406);
    }
    assert_eq!(hub.state("a").await["next"], before, "what was refused was appended");
    for (accept, codec) in
        [("application/cbor", Codec::Cbor), ("application/x-msgpack", Codec::MsgPack)]
    {
        let missing = "/v1/streams/missing";
        let reply = http::request(hub.address(), "GET", missing, &[("accept", accept)], b"").await;
        assert_eq!(reply.value(codec)["error"]["code"], "UnknownStream");
    }
}

#[tokio::test]
async fn requests_that_cannot_be_done_have_their_status_and_name() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    let posts: [(&str, &[u8], u16, &str); 15] = [
        ("/v1/enqueue", b"{", 400, "InvalidJSON"),
        ("/v1/enqueue", b"", 400, "InvalidJSON"),
        ("/v1/enqueue", br#"{"to":"a","envelope":{"x":1,"x":2}}"#, 400, "InvalidJSON"),
        ("/v1/enqueue", br#"{"to":"a","envelope":{"x":1e999}}"#, 400, "InvalidJSON"),
        ("/v1/enqueue", br#"{"to":"a","envelope":[]}"#, 422, "InvalidEnvelope"),
        ("/v1/enqueue", br#"{"to":"a","envelope":{"id":7}}"#, 422, "InvalidEnvelope"),
        ("/v1/enqueue", br#"{"to":"a//b","envelope":{}}"#, 400, "InvalidTopic"),
        ("/v1/enqueue", br#"{"to":"a/*","envelope":{}}"#, 400, "InvalidTopic"),
        ("/v1/enqueue", br#"{"envelope":{}}"#, 400, "InvalidParameter"),
        ("/v1/enqueue", br#"{"to":"a"}"#, 400, "InvalidParameter"),
        ("/v1/enqueue", br#"{"to":"a","envelope":{},"more":1}"#, 400, "UnknownField"),
        (
            "/v1/enqueue",
            br#"{"to":"a","envelope":{},"expect":1,"delayMs":1}"#,
            400,
            "InvalidParameter",
        ),
        ("/v1/enqueue", br#"{"to":"a","envelope":{},"delayMs":-1}"#, 400, "InvalidParameter"),
        ("/v1/enqueue", br#"{"to":"a","envelope":{},"expect":9}"#, 409, "OffsetMismatch"),
        ("/v1/enqueue/batch", br#"{"to":"a","envelopes":[]}"#, 400, "InvalidParameter"),
    ];
    for (path, body, status, name) in posts {
        let reply = http::request(hub.address(), "POST", path, &[], body).await;
        let body = String::from_utf8_lossy(body);
        assert_eq!((reply.status, reply.error().as_str()), (status, name), "{body}");
        let error = &reply.json()["error"];
        assert!(error["ref"].as_str().unwrap().starts_with("SL-"), "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty() && error["hint"].is_string());
    }
    let cbor = [("content-type", "application/cbor")];
    assert_eq!(send(&hub, &cbor, b"\xa1\x61").await.error(), "DecodeError");
    let gets = [
        ("/v1/streams/missing", 404, "UnknownStream"),
        ("/v1/streams/missing?from=first", 404, "UnknownStream"),
        ("/v1/streams/a?from=yesterday", 400, "InvalidParameter"),
        ("/v1/streams/a?from=0&limit=0", 400, "InvalidParameter"),
        ("/v1/streams/a?from=0&limit=1001", 400, "InvalidParameter"),
        ("/v1/streams/a?limit=5", 400, "InvalidParameter"),
        ("/v1/streams?patern=a", 400, "InvalidParameter"),
        ("/v1/streams/a*", 400, "InvalidTopic"),
        ("/v1/subscribe?stream=a", 426, "UpgradeRequired"),
        ("/v1/enqueue", 405, "MethodNotAllowed"),
        ("/nothing", 404, "NotFound"),
    ];
    for (path, status, name) in gets {
        let reply = hub.get(path).await;
        assert_eq!((reply.status, reply.error().as_str()), (status, name), "{path}");
    }
    assert_eq!(hub.delete("/v1/streams/missing").await.error(), "UnknownStream");
    assert_eq!(hub.put("/v1/streams/a", json!({"level": "ssd"})).await.error(), "InvalidParameter");
    assert_eq!(hub.put("/v1/streams/a", json!({"colour": 1})).await.error(), "UnknownField");
    assert_eq!(hub.state("a").await["next"], 1);
}

#[tokio::test]
async fn a_body_that_ends_early_is_refused() {
    let hub = Running::start().await;
    let lost = http::request_cut_off(hub.address(), "/v1/enqueue", br#"{"to":"a","#).await;
    assert!(lost.is_none_or(|reply| (reply.status, reply.error().as_str()) == (400, "BodyLost")));
    assert_eq!(hub.get("/health").await.json()["streams"], 0);
}

#[tokio::test]
async fn subscriptions_that_cannot_be_made_are_closed_with_their_code() {
    let hub = Running::start().await;
    let table = [
        ("", "InvalidParameter"),
        ("stream=a//b", "InvalidTopic"),
        ("stream=a&from=7x", "InvalidParameter"),
        ("stream=a&batch=0", "InvalidParameter"),
        ("stream=a&batch=1025", "InvalidParameter"),
        ("stream=a&from=new&heartbeat_ms=10", "InvalidParameter"),
        ("stream=a&consumer=c&ack_wait_ms=10", "InvalidParameter"),
        ("stream=a&consumer=c&max_in_flight=0", "InvalidParameter"),
        ("stream=a&from=new&max_attempts=1", "InvalidParameter"),
        ("stream=a&colour=blue", "InvalidParameter"),
        ("stream=a/*", "PatternNeedsReader"),
        ("stream=**", "PatternNeedsReader"),
        ("stream=a/*&from=7", "InvalidParameter"),
    ];
    for (query, name) in table {
        for codec in ["", "&codec=cbor"] {
            let query = format!("{query}{codec}");
            let mut socket = hub.subscribe(query.trim_start_matches('&')).await;
            assert_eq!(socket.ending().await, Ending::new(name, 1003), "{query}");
        }
    }
}

#[tokio::test]
async fn frames_that_cannot_be_honoured_end_the_connection_with_their_code() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    let text = |text: &str| Message::text(text.to_owned());
    let bytes = |bytes: &[u8]| Message::binary(bytes.to_vec());
    let table = [
        ("from=new", text("{"), "InvalidJSON", 1007),
        ("from=new", bytes(b"\xff\xfe"), "InvalidJSON", 1007),
        ("from=new&codec=msgpack", bytes(b"\xc1"), "DecodeError", 1007),
        ("from=new&codec=cbor", bytes(b"\xa1"), "DecodeError", 1007),
        ("from=new&codec=msgpack-records", bytes(b"\x41\x01"), "DecodeError", 1007),
        ("from=new", text("[]"), "UnknownOp", 1003),
        ("from=new", text("{}"), "UnknownOp", 1003),
        ("from=new", text(r#"{"credits":1}"#), "UnknownOp", 1003),
        ("from=new", text(r#"{"credit":-1}"#), "UnknownOp", 1003),
        ("from=new", text(r#"{"credit":1.5}"#), "UnknownOp", 1003),
        ("consumer=c", text(r#"{"ack":7}"#), "UnknownOp", 1003),
        ("consumer=c", text(r#"{"ack":{"from":2,"to":1}}"#), "UnknownOp", 1003),
        ("consumer=c", text(r#"{"nack":"x","delayMs":9999999999}"#), "InvalidParameter", 1003),
        ("from=new", text(r#"{"nack":"x"}"#), "NotAConsumer", 1003),
        ("consumer=c", text(r#"{"seek":{"offset":0}}"#), "NotAConsumer", 1003),
        ("from=new", text(r#"{"credit":4294967297}"#), "TooMany", 1008),
        ("from=new", text(&" ".repeat((1 << 20) + 1)), "TooLarge", 1009),
    ];
    for (query, message, name, code) in table {
        let mut socket = hub.subscribe(&format!("stream=a&{query}")).await;
        assert_eq!(socket.first["status"], "subscribed");
        let shown = format!("{message:.60?}");
        socket.send_raw(message).await;
        assert_eq!(socket.ending().await, Ending::new(name, code), "{query} {shown}");
    }
    // The sum of the credit counts, and the hub still serves others.
    let mut socket = hub.subscribe("stream=a&from=new").await;
    socket.credit(1 << 32).await;
    socket.is_silent().await;
    socket.credit(1).await;
    assert_eq!(socket.ending().await, Ending::new("TooMany", 1008));
    let mut socket = hub.subscribe("stream=a&from=first").await;
    socket.credit(1).await;
    assert_eq!(socket.deliver().await.offset, 0);
}

#[tokio::test]
async fn both_frame_types_are_read() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    let mut socket = hub.subscribe("stream=a&from=first").await;
    socket.send_raw(Message::binary(br#"{"credit":1}"#.to_vec())).await;
    assert_eq!(socket.deliver().await.offset, 0);
}

#[tokio::test]
async fn text_that_is_no_unicode_ends_the_connection_with_1007() {
    let hub = Running::start().await;
    let mut socket = hub.subscribe("stream=a&from=new").await;
    // A masked text frame of two bytes, written past the library, which would refuse to.
    socket.write_past(&[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe]).await;
    assert_eq!(socket.ending().await.code, Some(1007));
}

#[tokio::test]
async fn a_stopping_node_and_a_removed_stream_are_told_with_1001() {
    let hub = Running::start().await;
    for topic in ["kept", "removed"] {
        hub.enqueue(topic, json!({})).await;
    }
    let mut sockets = Vec::new();
    for (topic, credit) in [("removed", 10), ("removed", 0), ("kept", 10), ("kept", 0)] {
        for who in ["from=new", "consumer=c"] {
            let mut socket = hub.subscribe(&format!("stream={topic}&{who}")).await;
            socket.credit(credit).await;
            sockets.push((topic, credit, who, socket));
        }
    }
    assert_eq!(hub.delete("/v1/streams/removed").await.json()["removed"], true);
    for (topic, credit, who, socket) in &mut sockets {
        if *topic == "removed" {
            let ending = socket.ending().await;
            assert_eq!(ending, Ending::new("StreamRemoved", 1001), "{who} with credit {credit}");
        }
    }
    let stopping = tokio::spawn(hub.stop());
    for (topic, _, _, socket) in &mut sockets {
        if *topic == "kept" {
            assert_eq!(socket.ending().await.code, Some(1001));
        }
    }
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_heartbeat_comes_to_those_who_ask() {
    let hub = Running::start().await;
    let mut socket = hub.subscribe("stream=a&from=new&heartbeat_ms=1000").await;
    let mut before = socket.first["time"].as_u64().unwrap();
    for _ in 0..2 {
        let time = socket.frame().await["heartbeat"].as_u64().unwrap();
        assert!(time >= before + 900, "{before} to {time}");
        before = time;
    }
}
