//! A client that sends a wrong body or frame is told the form that is expected there.

use serde_json::{Value, json};

use crate::running::Running;

/// Message and hint of an error.
fn told(error: &Value) -> String {
    format!("{} {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap())
}

#[tokio::test]
async fn of_a_request_the_body_and_not_a_frame() {
    let hub = Running::start().await;
    let wrong = json!({"topic": "a", "value": 1});
    for (path, form) in [
        ("/v1/enqueue", r#"{"to": TOPIC, "envelope": {…}}"#),
        ("/v1/enqueue/batch", r#"{"to": TOPIC, "envelopes": [{…}, …]}"#),
    ] {
        let reply = hub.post(path, wrong.clone()).await;
        assert_eq!((reply.status, reply.error().as_str()), (400, "UnknownField"), "{path}");
        let told = told(&reply.json()["error"]);
        assert!(told.contains("`topic`") && told.contains(form), "{told}");
        assert!(!told.contains("ack") && !told.contains("credit"), "{told}");
    }
    let reply = hub.put("/v1/streams/a", json!({"max_count": 1})).await;
    assert_eq!((reply.status, reply.error().as_str()), (400, "UnknownField"));
    let told = told(&reply.json()["error"]);
    assert!(told.contains("`max_count`") && told.contains(r#""maxCount": N"#), "{told}");
}

#[tokio::test]
async fn of_a_frame_its_field() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    for (frame, form) in [
        (json!({"credit": "5"}), r#"{"credit": N}"#),
        (json!({"ack": 7}), r#"{"ack": {"from": N, "to": N}}"#),
        (json!({"nack": {"from": 1}}), r#"{"nack": {"from": N, "to": N}}"#),
        (json!({"delayMs": 1}), r#""delayMs": N"#),
        (json!({"seek": 7}), r#"{"seek": {"offset": N}}"#),
        (json!({"credits": 7}), "credit, ack, nack (with delayMs) and seek"),
    ] {
        let mut socket = hub.subscribe("stream=a&consumer=c").await;
        socket.send(frame.clone()).await;
        let told = told(&socket.frame().await["error"]);
        assert!(told.contains(form), "{frame}: {told}");
    }
}
