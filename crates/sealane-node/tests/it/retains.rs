//! Streams keep what they are told to keep, in whole commits, and say what has gone.

use std::time::Duration;

use sealane_testing::until_told_async;
use serde_json::{Value, json};

use crate::running::Running;
use crate::socket::offsets;

/// Retention looks at the streams several times a second.
async fn settles(hub: &Running, topic: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until_told_async(async || hub.state(topic).await, is_so).await
}

#[tokio::test]
async fn by_count_whole_commits_go_and_at_least_so_many_stay() {
    let hub = Running::start().await;
    let made = hub.put("/v1/streams/log", json!({"maxCount": 25})).await;
    assert_eq!((made.status, &made.json()["maxCount"]), (201, &json!(25)));
    for commit in 0..10 {
        hub.enqueue_numbered("log", commit * 10, 10).await;
        assert!(hub.state("log").await["count"].as_u64().unwrap() >= 25.min(commit * 10));
    }
    let state = settles(&hub, "log", |state| state["first"] == 70).await;
    assert_eq!((&state["next"], &state["count"]), (&json!(100), &json!(30)));
    assert_eq!(hub.metric("sealane_stream_retired_total").await, 70);
    let hub = hub.restart().await;
    let state = hub.state("log").await;
    assert_eq!((&state["first"], &state["next"]), (&json!(70), &json!(100)));
    let mut reader = hub.subscribe("stream=log&from=first").await;
    reader.credit(100).await;
    assert_eq!(offsets(&reader.take(30).await), (70..100).collect::<Vec<_>>());
}

/// The clock may be wrong after a start. What goes by age later stands in the stream's tests, where
/// time can be passed, and in `keeps_a_day` with a real node.
#[tokio::test]
async fn by_age_nothing_goes_in_the_first_minutes_and_offsets_continue() {
    let hub = Running::start().await;
    hub.put("/v1/streams/log", json!({"maxAgeMs": 500})).await;
    hub.enqueue_numbered("log", 0, 5).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let state = hub.state("log").await;
    assert_eq!((&state["first"], &state["next"]), (&json!(0), &json!(5)));
    assert_eq!(hub.enqueue("log", json!({})).await["offset"], 5);
    let hub = hub.restart().await;
    assert_eq!(hub.enqueue("log", json!({})).await["offset"], 6);
}

#[tokio::test]
async fn by_bytes_at_least_so_many_stay() {
    let hub = Running::start().await;
    hub.put("/v1/streams/log", json!({"maxBytes": 50_000})).await;
    for n in 0..40 {
        hub.enqueue("log", json!({"id": format!("m{n}"), "text": "x".repeat(5000)})).await;
    }
    let kept = |state: &Value| state["bytes"].as_u64().unwrap();
    let state = settles(&hub, "log", |state| kept(state) < 56_000).await;
    assert!(kept(&state) >= 50_000, "{state}");
    assert_eq!(state["count"], 40 - state["first"].as_u64().unwrap());
}

#[tokio::test]
async fn bounds_can_be_lifted_and_are_kept_over_a_restart() {
    let hub = Running::start().await;
    hub.put("/v1/streams/log", json!({"maxCount": 1, "maxAgeMs": 86_400_000})).await;
    let hub = hub.restart().await;
    let state = hub.put("/v1/streams/log", json!({"maxCount": 0})).await;
    assert_eq!(state.status, 200);
    assert_eq!(state.json()["maxAgeMs"], 86_400_000);
    for n in 0..5 {
        hub.enqueue_numbered("log", n, 1).await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(hub.state("log").await["first"], 0);
}

#[tokio::test]
async fn the_file_stays_bounded_however_much_is_written() {
    // The file has the room that is set aside as well: much more is written than both.
    const ROUNDS: usize = 120;
    const ROUND_BYTES: usize = 2 << 20;
    let hub = Running::start().await;
    hub.put("/v1/streams/log", json!({"maxBytes": 1 << 20})).await;
    let text = "x".repeat(ROUND_BYTES / 64);
    let envelopes: Vec<Value> = (0..64).map(|_| json!({"text": text})).collect();
    let size = || {
        let files = std::fs::read_dir(hub.folder.path()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let mut largest = 0;
    for _ in 0..ROUNDS {
        let body = json!({"to": "log", "envelopes": envelopes});
        assert_eq!(hub.post("/v1/enqueue/batch", body).await.status, 200);
        largest = largest.max(size());
    }
    let written = (ROUNDS * ROUND_BYTES) as u64;
    println!("written {written}, at most {largest} on disk");
    assert!(largest < written * 3 / 4, "{largest} of {written}");
}

#[tokio::test]
async fn a_slow_reader_is_told_what_has_gone() {
    let hub = Running::start().await;
    for commit in 0..10 {
        hub.enqueue_numbered("log", commit * 10, 10).await;
    }
    let mut slow = hub.subscribe("stream=log&from=first").await;
    slow.credit(3).await;
    assert_eq!(offsets(&slow.take(3).await), [0, 1, 2]);
    hub.put("/v1/streams/log", json!({"maxCount": 20})).await;
    settles(&hub, "log", |state| state["first"] == 80).await;
    slow.credit(2).await;
    let gap = slow.frame().await;
    let expected = json!({
        "status": "gap", "stream": "log", "from": 3, "to": 79, "reason": "retention",
    });
    assert_eq!(gap, expected);
    assert_eq!(offsets(&slow.take(2).await), [80, 81]);
    // A reader that comes back to an offset that has gone is told so at once.
    let late = hub.subscribe("stream=log&from=5").await;
    assert_eq!((&late.first["offset"], &late.first["recovered"]), (&json!(80), &json!(false)));
}

#[tokio::test]
async fn a_consumer_goes_on_behind_what_has_gone() {
    let hub = Running::start().await;
    for commit in 0..10 {
        hub.enqueue_numbered("log", commit * 10, 10).await;
    }
    let mut member = hub.subscribe("stream=log&consumer=c").await;
    member.credit(5).await;
    assert_eq!(offsets(&member.take(5).await), [0, 1, 2, 3, 4]);
    hub.put("/v1/streams/log", json!({"maxCount": 20})).await;
    settles(&hub, "log", |state| state["first"] == 80).await;
    // The messages in flight are forgotten: they can be delivered to nobody again.
    assert_eq!(hub.consumer("log", "c").await["inFlight"], 0);
    assert_eq!(hub.metric("sealane_stream_expired_total").await, 5);
    member.send(json!({"nack": {"from": 0, "to": 4}, "credit": 100})).await;
    let mut frames = Vec::new();
    while frames.len() < 20 {
        let frame = member.frame().await;
        if frame["status"].is_null() {
            frames.push(frame["offset"].as_u64().unwrap());
        }
    }
    assert_eq!(frames, (80..100).collect::<Vec<_>>());
    member.is_silent().await;
}
