//! One more than a limit allows is refused by name, and the node goes on serving.

use sealane_codec::Codec;
use sealane_codec::limits::MAX_DEPTH;
use sealane_message::limits::{MAX_TOPIC_BYTES, MAX_TOPIC_SEGMENTS};
use sealane_protocol::limits::{
    MAX_BATCH_MESSAGES, MAX_ENVELOPE_BYTES, MAX_ID_BYTES, MAX_IDEMPOTENCY_KEY_BYTES,
    MAX_REQUEST_BYTES,
};
use sealane_stream::limits::MAX_TOKEN_CONSUMERS;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{self, Reply};
use crate::running::Running;
use crate::socket::Ending;

/// The status and error name of a reply.
fn said(reply: &Reply) -> (u16, String) {
    let name = if reply.status == 200 { String::new() } else { reply.error() };
    (reply.status, name)
}

fn refused(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

fn granted() -> (u16, String) {
    (200, String::new())
}

async fn enqueue(hub: &Running, to: &str, envelope: Value) -> (u16, String) {
    said(&hub.post("/v1/enqueue", json!({"to": to, "envelope": envelope})).await)
}

#[tokio::test]
async fn messages_of_a_batch() {
    let hub = Running::start().await;
    let batch = async |count: usize| {
        let body = json!({"to": "a", "envelopes": vec![json!({}); count]});
        said(&hub.post("/v1/enqueue/batch", body).await)
    };
    assert_eq!(batch(MAX_BATCH_MESSAGES + 1).await, refused(429, "TooMany"));
    assert_eq!(hub.get("/v1/streams/a").await.status, 404);
    assert_eq!(batch(MAX_BATCH_MESSAGES).await, granted());
    assert_eq!(hub.state("a").await["next"], MAX_BATCH_MESSAGES);
}

#[tokio::test]
async fn bytes_of_an_envelope() {
    let hub = Running::start().await;
    let sized = |size: usize| json!({"id": "m", "text": "x".repeat(size - 20)});
    assert_eq!(sized(1000).to_string().len(), 1000);
    let largest = sized(MAX_ENVELOPE_BYTES);
    let envelope = sized(MAX_ENVELOPE_BYTES + 1);
    assert_eq!(enqueue(&hub, "a", envelope.clone()).await, refused(413, "TooLarge"));
    let body = json!({"to": "a", "envelopes": [{}, envelope]});
    assert_eq!(said(&hub.post("/v1/enqueue/batch", body).await), refused(413, "TooLarge"));
    assert_eq!(enqueue(&hub, "a", largest.clone()).await, granted());
    // The largest message reaches everybody, alone or in a batch.
    for query in ["codec=json", "codec=cbor", "codec=msgpack&batch=8", "codec=msgpack-records"] {
        let mut reader = hub.subscribe(&format!("stream=a&from=first&{query}")).await;
        reader.credit(1).await;
        let frame = reader.frame().await;
        let one = frame.get("batch").map_or(&frame, |batch| &batch[0]);
        assert!(one["deliver"] == largest, "{query}");
    }
}

#[tokio::test]
async fn bytes_of_a_body() {
    let hub = Running::start().await;
    let path = "/v1/enqueue";
    let huge = vec![b' '; MAX_REQUEST_BYTES + 1];
    let reply = http::request(hub.address(), "POST", path, &[], &huge).await;
    assert_eq!(said(&reply), refused(413, "TooLarge"));
    let reply = http::request_in_chunks(hub.address(), path, &huge).await;
    assert_eq!(said(&reply), refused(413, "TooLarge"));
    // A client that reads nothing before all is sent comes to the refusal as well.
    let mut stream = TcpStream::connect(hub.address()).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        huge.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&huge).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
    // It is refused by what it declares, before any of it is sent.
    let head =
        "POST /v1/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    let reply = http::exchange(hub.address(), head.as_bytes()).await;
    assert_eq!(said(&reply), refused(413, "TooLarge"));
    let mut body = br#"{"to":"a","envelope":{"n":1}}"#.to_vec();
    body.resize(MAX_REQUEST_BYTES, b' ');
    let reply = http::request_in_chunks(hub.address(), path, &body).await;
    assert_eq!(said(&reply), granted());
    assert_eq!(hub.state("a").await["next"], 1);
}

/// Maps within maps: `levels` of them.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn levels_of_an_envelope() {
    let hub = Running::start().await;
    for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
        let enqueue = async |levels: usize| {
            // Written as text: what is too deep cannot be translated.
            let (open, close) = (r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
            let json = format!(r#"{{"to":"{}","envelope":{open}{{}}{close}}}"#, codec.name());
            let body = match codec {
                Codec::Json => json.into_bytes(),
                codec => {
                    let to = http::from_json(&json!(codec.name()), codec);
                    deep(codec, &to, levels)
                }
            };
            let headers = [("content-type", codec.content_type())];
            http::request(hub.address(), "POST", "/v1/enqueue", &headers, &body).await
        };
        for levels in [MAX_DEPTH + 1, 1000, 100_000] {
            let reply = enqueue(levels).await;
            assert!((400..=422).contains(&reply.status), "{levels} in {codec:?}");
            assert!(["InvalidJSON", "DecodeError", "InvalidEnvelope"].contains(&&*reply.error()));
        }
        assert_eq!(enqueue(MAX_DEPTH - 4).await.status, 200, "{codec:?}");
        let query = format!("stream={}&from=first&batch=4", codec.name());
        let mut reader = hub.subscribe(&query).await;
        reader.credit(1).await;
        let frame = reader.frame().await;
        let mut expected = nested(MAX_DEPTH - 4);
        expected["id"] = frame["batch"][0]["deliver"]["id"].clone();
        assert_eq!(frame["batch"][0]["deliver"], expected);
    }
}

/// `{to, envelope: {a: {a: …}}}` in MessagePack or CBOR, by hand.
fn deep(codec: Codec, to: &[u8], levels: usize) -> Vec<u8> {
    let (map, text) = if codec == Codec::Cbor { (0xa0, 0x60) } else { (0x80, 0xa0) };
    let mut body = vec![map | 2, text | 2];
    body.extend_from_slice(b"to");
    body.extend_from_slice(to);
    body.push(text | 8);
    body.extend_from_slice(b"envelope");
    for _ in 1..levels {
        body.extend_from_slice(&[map | 1, text | 1, b'a']);
    }
    body.push(map);
    body
}

#[tokio::test]
async fn bytes_of_ids_keys_topics_and_names() {
    let hub = Running::start().await;
    let id = |len: usize| json!({"id": "x".repeat(len)});
    assert_eq!(enqueue(&hub, "a", id(MAX_ID_BYTES)).await, granted());
    let refusal = enqueue(&hub, "a", id(MAX_ID_BYTES + 1)).await;
    assert_eq!(refusal, refused(422, "InvalidEnvelope"));
    let keyed = async |len: usize| {
        let key = "k".repeat(len);
        let body = json!({"to": "a", "envelope": {}});
        said(&hub.post_with("/v1/enqueue", &[("idempotency-key", &key)], body).await)
    };
    assert_eq!(keyed(MAX_IDEMPOTENCY_KEY_BYTES).await, granted());
    let refusal = keyed(MAX_IDEMPOTENCY_KEY_BYTES + 1).await;
    assert_eq!(refusal, refused(400, "InvalidParameter"));
    let longest = "t".repeat(MAX_TOPIC_BYTES);
    assert_eq!(enqueue(&hub, &longest, json!({})).await, granted());
    let refusal = enqueue(&hub, &format!("{longest}t"), json!({})).await;
    assert_eq!(refusal, refused(400, "InvalidTopic"));
    let deepest = vec!["s"; MAX_TOPIC_SEGMENTS].join("/");
    assert_eq!(enqueue(&hub, &deepest, json!({})).await, granted());
    let refusal = enqueue(&hub, &format!("{deepest}/s"), json!({})).await;
    assert_eq!(refusal, refused(400, "InvalidTopic"));
    let name = "c".repeat(65);
    let mut socket = hub.subscribe(&format!("stream=a&consumer={name}")).await;
    assert_eq!(socket.ending().await, Ending::new("InvalidParameter", 1003));
}

#[tokio::test]
async fn characters_of_a_consumers_name() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    for character in ["%00", "%0A", "%1B", "%1F", "%7F", "%C2%80", "%C2%9B", "%C2%9F"] {
        let mut socket = hub.subscribe(&format!("stream=a&consumer=c{character}c")).await;
        let refused = Ending::new("InvalidParameter", 1003);
        assert_eq!(socket.ending().await, refused, "{character}");
    }
    for name in ["c%20c", "%C2%A0", "%C3%BC/*,", "~"] {
        let socket = hub.subscribe(&format!("stream=a&consumer={name}")).await;
        assert_eq!(socket.first["status"], "subscribed", "{name}");
    }
    assert_eq!(hub.state("a").await["consumers"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn consumers_of_a_stream() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    for index in 0..MAX_TOKEN_CONSUMERS {
        let socket = hub.subscribe(&format!("stream=a&consumer=c{index}")).await;
        assert_eq!(socket.first["status"], "subscribed", "{index}");
    }
    for more in ["&consumer=more", ""] {
        let mut socket = hub.subscribe(&format!("stream=a{more}")).await;
        assert_eq!(socket.ending().await, Ending::new("TooMany", 1008));
    }
    // Those that are there, other streams, and readers are not concerned.
    for query in ["stream=a&consumer=c7", "stream=b&consumer=more", "stream=a&from=first"] {
        let socket = hub.subscribe(query).await;
        assert_eq!(socket.first["status"], "subscribed", "{query}");
    }
    let state = hub.state("a").await;
    assert_eq!(state["consumers"].as_array().unwrap().len(), MAX_TOKEN_CONSUMERS);
}

#[tokio::test]
async fn messages_in_flight_of_a_consumer() {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, 10).await;
    let mut first = hub.subscribe("stream=a&consumer=c&max_in_flight=4").await;
    let mut second = hub.subscribe("stream=a&consumer=c").await;
    first.credit(10).await;
    first.take(4).await;
    second.credit(10).await;
    second.is_silent().await;
    first.ack(json!({"from": 0, "to": 1})).await;
    let mut more = Vec::new();
    while more.len() < 2 {
        let either = [first.frame_soon().await, second.frame_soon().await];
        more.extend(either.into_iter().flatten().map(|frame| frame["offset"].clone()));
    }
    more.sort_by_key(|offset| offset.as_u64());
    assert_eq!(more, [json!(4), json!(5)]);
    second.is_silent().await;
    first.is_silent().await;
}

#[tokio::test]
async fn an_id_that_came_often_is_acknowledged_as_often() {
    const COUNT: usize = 2000;
    let hub = Running::start().await;
    let body = json!({"to": "a", "envelopes": vec![json!({"id": "same"}); COUNT]});
    assert_eq!(hub.post("/v1/enqueue/batch", body).await.status, 200);
    let mut member = hub.subscribe("stream=a&consumer=c").await;
    member.credit(COUNT as u64).await;
    member.take(COUNT).await;
    member.ack(json!("same")).await;
    member.is_silent().await;
    assert_eq!(hub.consumer("a", "c").await["inFlight"], 0);
    assert_eq!(hub.metric("sealane_stream_acked_total").await, COUNT as u64);
}
