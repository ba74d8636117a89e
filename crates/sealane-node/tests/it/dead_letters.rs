//! A message that cannot be processed is set aside, verbatim, and the consumer goes on.

use sealane_codec::Codec;
use serde_json::json;

use crate::http;
use crate::running::Running;
use crate::socket::{offsets, places};

#[tokio::test]
async fn after_its_last_attempt_a_message_becomes_a_dead_letter() {
    let hub = Running::start().await;
    hub.enqueue_numbered("jobs/7", 0, 3).await;
    let generation = hub.state("jobs/7").await["generation"].clone();
    let mut member = hub.subscribe("stream=jobs/7&consumer=c&max_attempts=2").await;
    let mut grave = hub.subscribe("stream=dead/jobs/7&from=first").await;
    grave.credit(10).await;
    member.credit(10).await;
    assert_eq!(offsets(&member.take(3).await), [0, 1, 2]);
    member.send(json!({"ack": ["m0", "m2"], "nack": "m1"})).await;
    assert_eq!(places(&member.take(1).await), [(1, 2)]);
    member.send(json!({"nack": "m1"})).await;
    assert_eq!(grave.frame().await["status"], "joined");
    let letter = grave.deliver().await;
    let expected = json!({
        "id": "m1", "type": "dead-letter", "stream": "jobs/7", "offset": 1,
        "generation": generation, "consumer": "c", "attempts": 2,
        "envelope": {"id": "m1", "n": 1},
    });
    assert_eq!(letter.envelope, expected);
    // The consumer goes on, and the message is done for it.
    hub.enqueue_numbered("jobs/7", 3, 1).await;
    assert_eq!(places(&member.take(1).await), [(3, 1)]);
    member.is_silent().await;
    let state = hub.consumer("jobs/7", "c").await;
    assert_eq!((&state["deadLettered"], &state["inFlight"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn silence_and_leaving_are_attempts_too() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 2).await;
    let query = "stream=work&consumer=c&max_attempts=1&ack_wait_ms=200";
    let mut member = hub.subscribe(query).await;
    member.credit(1).await;
    member.take(1).await;
    let mut grave = hub.subscribe("stream=dead/work&consumer=c").await;
    grave.credit(10).await;
    assert_eq!(grave.frame().await["status"], "joined");
    assert_eq!(grave.deliver().await.envelope["offset"], 0);
    member.credit(1).await;
    assert_eq!(offsets(&member.take(1).await), [1]);
    member.close().await;
    assert_eq!(grave.deliver().await.envelope["offset"], 1);
    grave.is_silent().await;
}

#[tokio::test]
async fn the_envelope_of_a_dead_letter_is_verbatim_in_its_codec() {
    let hub = Running::start().await;
    // MessagePack with a long map head and a long integer, as no shortest form would be.
    let envelope = b"\xde\x00\x02\xa2id\xa1x\xa1n\xcf\x00\x00\x00\x00\x00\x00\x00\x07".to_vec();
    let body = [b"\x82\xa2to\xa4work\xa8envelope".as_slice(), &envelope].concat();
    let msgpack = [("content-type", "application/msgpack"), ("accept", "application/msgpack")];
    let path = "/v1/enqueue";
    let reply = http::request(hub.address(), "POST", path, &msgpack, &body).await;
    assert_eq!(reply.status, 200);
    let mut member = hub.subscribe("stream=work&consumer=c&max_attempts=1").await;
    member.credit(1).await;
    member.deliver().await;
    let mut grave = hub.subscribe("stream=dead/work&from=first").await;
    grave.credit(1).await;
    member.send(json!({"nack": {"offset": 0}})).await;
    assert_eq!(grave.frame().await["status"], "joined");
    assert_eq!(grave.deliver().await.offset, 0);
    let path = "/v1/streams/dead/work?from=first";
    let page = http::request(hub.address(), "GET", path, &msgpack, b"").await;
    let page = page.body;
    assert!(page.windows(envelope.len()).any(|part| part == envelope), "{page:?}");
    let read = http::to_json(Codec::MsgPack, &page);
    assert_eq!(read["messages"][0]["deliver"]["envelope"], json!({"id": "x", "n": 7}));
}

#[tokio::test]
async fn dead_letters_and_their_count_outlive_a_restart() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 3).await;
    let mut member = hub.subscribe("stream=work&consumer=c&max_attempts=1").await;
    member.credit(3).await;
    member.take(3).await;
    member.send(json!({"nack": {"from": 0, "to": 1}, "ack": "m2"})).await;
    member.close().await;
    let hub = hub.restart().await;
    assert_eq!(hub.consumer("work", "c").await["deadLettered"], 2);
    assert_eq!(hub.state("dead/work").await["next"], 2);
    let mut member = hub.subscribe("stream=work&consumer=c").await;
    member.credit(10).await;
    member.is_silent().await;
}
