//! A message that is not acknowledged comes again. An acknowledged message does not.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::running::Running;
use crate::socket::{Ending, Socket, offsets, places};

/// Acknowledgements are durable within 50 ms; a busy machine is given longer.
const DURABLE: Duration = Duration::from_secs(60);

async fn member(hub: &Running, query: &str) -> Socket {
    hub.subscribe(&format!("stream=work&consumer=c{query}")).await
}

#[tokio::test]
async fn a_nack_comes_again_after_its_delay_and_not_before() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 3).await;
    let mut member = member(&hub, "").await;
    member.credit(10).await;
    assert_eq!(offsets(&member.take(3).await), [0, 1, 2]);
    let began = Instant::now();
    member.send(json!({"nack": "m0", "delayMs": 400, "ack": {"offset": 1}})).await;
    member.send(json!({"nack": {"offset": 2}})).await;
    assert_eq!(places(&member.take(2).await), [(2, 2), (0, 2)]);
    let waited = began.elapsed();
    // The hub counts whole milliseconds.
    assert!(waited > Duration::from_millis(399), "{waited:?}");
    // A delay that never ends would pass the line above; a busy machine takes seconds.
    assert!(waited < Duration::from_secs(20), "{waited:?}");
}

#[tokio::test]
async fn every_form_of_ack_and_nack_is_honoured() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 8).await;
    let mut member = member(&hub, "").await;
    member.credit(100).await;
    member.take(8).await;
    member.ack(json!("m0")).await;
    member.ack(json!(["m1", "m2"])).await;
    member.ack(json!({"offset": 3})).await;
    member.ack(json!({"stream": "work", "from": 4, "to": 5})).await;
    member.send(json!({"nack": ["m6"], "delayMs": 0})).await;
    member.send(json!({"nack": {"from": 7, "to": 7}})).await;
    assert_eq!(places(&member.take(2).await), [(6, 2), (7, 2)]);
    assert_eq!(hub.consumer("work", "c").await["inFlight"], 2);
    assert_eq!(hub.metric("sealane_stream_acked_total").await, 6);
}

#[tokio::test]
async fn every_frame_of_a_burst_is_honoured() {
    const COUNT: u64 = 3000;
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, COUNT).await;
    let mut member = member(&hub, "").await;
    member.credit(COUNT).await;
    member.take(COUNT as usize).await;
    for offset in 0..COUNT {
        member.feed(json!({"ack": {"offset": offset}})).await;
    }
    member.close().await;
    assert_eq!(hub.consumer("work", "c").await["inFlight"], 0);
    assert_eq!(hub.metric("sealane_stream_acked_total").await, COUNT);
}

#[tokio::test]
async fn what_is_not_acknowledged_in_time_comes_again() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 2).await;
    // The acknowledgement has to be there in that time, on a busy machine too.
    let mut member = member(&hub, "&ack_wait_ms=1500").await;
    member.credit(4).await;
    let began = Instant::now();
    assert_eq!(places(&member.take(2).await), [(0, 1), (1, 1)]);
    member.ack(json!("m0")).await;
    assert_eq!(places(&member.take(2).await), [(1, 2), (1, 3)]);
    assert!(began.elapsed() >= Duration::from_millis(3000), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_late_ack_of_what_went_to_another_member_is_ignored() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 1).await;
    let mut slow = member(&hub, "&ack_wait_ms=200").await;
    slow.credit(1).await;
    slow.deliver().await;
    let mut quick = member(&hub, "&ack_wait_ms=60000").await;
    quick.credit(1).await;
    assert_eq!(places(&quick.take(1).await), [(0, 2)]);
    slow.ack(json!("m0")).await;
    slow.ack(json!({"offset": 0})).await;
    slow.ack(json!("never sent")).await;
    slow.is_silent().await;
    assert_eq!(hub.consumer("work", "c").await["inFlight"], 1);
    assert_eq!(hub.metric("sealane_stream_acked_in_vain_total").await, 3);
    quick.ack(json!("m0")).await;
    quick.is_silent().await;
    assert_eq!(hub.consumer("work", "c").await["inFlight"], 0);
}

#[tokio::test]
async fn what_a_member_had_comes_to_the_others_when_it_goes() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 10).await;
    let (mut goes, mut stays) = (member(&hub, "").await, member(&hub, "").await);
    goes.credit(6).await;
    assert_eq!(offsets(&goes.take(6).await), [0, 1, 2, 3, 4, 5]);
    goes.ack(json!({"from": 1, "to": 2})).await;
    goes.close().await;
    // Redeliveries come before further first deliveries.
    stays.credit(100).await;
    let expected = [(0, 2), (3, 2), (4, 2), (5, 2), (6, 1), (7, 1), (8, 1), (9, 1)];
    assert_eq!(places(&stays.take(8).await), expected);
    stays.ack(json!({"from": 0, "to": 9})).await;
    stays.is_silent().await;
    let state = hub.consumer("work", "c").await;
    assert_eq!((&state["inFlight"], &state["redelivered"]), (&json!(0), &json!(4)));
}

#[tokio::test]
async fn a_consumer_of_a_pattern_names_the_stream_of_an_offset() {
    let hub = Running::start().await;
    for topic in ["t/1", "t/2"] {
        hub.enqueue_numbered(topic, 0, 3).await;
    }
    let mut member = hub.subscribe("stream=t/*&consumer=c").await;
    member.credit(6).await;
    let mut frames = Vec::new();
    while frames.len() < 8 {
        frames.push(member.frame().await);
    }
    assert_eq!(frames.iter().filter(|frame| frame["status"] == "joined").count(), 2);
    // An id is that of every message in flight that has it.
    member.ack(json!("m0")).await;
    member
        .ack(json!([{"stream": "t/1", "offset": 1}, {"stream": "t/2", "from": 1, "to": 2}]))
        .await;
    member.is_silent().await;
    assert_eq!(hub.consumer("t/1", "c").await["inFlight"], 1);
    assert_eq!(hub.consumer("t/2", "c").await["inFlight"], 0);
    member.send(json!({"nack": {"offset": 2}})).await;
    assert_eq!(member.ending().await, Ending::new("UnknownOp", 1003));
    let mut next = hub.subscribe("stream=t/*&consumer=c").await;
    next.credit(6).await;
    assert_eq!(next.frame().await["status"], "joined");
    let again = next.deliver().await;
    assert_eq!((again.stream.as_str(), again.offset, again.attempt), ("t/1", 2, 2));
    next.is_silent().await;
}

#[tokio::test]
async fn what_is_acknowledged_in_the_inbox_comes_to_nobody_again() {
    let hub = Running::start().await;
    let id = hub.enqueue("work", json!({"n": 1})).await["id"].clone();
    let mut first = hub.subscribe("stream=work").await;
    first.credit(1).await;
    assert_eq!(first.deliver().await.id(), id);
    first.ack(json!(id)).await;
    first.close().await;
    let mut second = hub.subscribe("stream=work").await;
    second.credit(10).await;
    second.is_silent().await;
    hub.enqueue("work", json!({"id": "second"})).await;
    assert_eq!(second.deliver().await.id(), "second");
    // Without an acknowledgement the next connection gets it.
    second.close().await;
    let mut third = hub.subscribe("stream=work").await;
    third.credit(10).await;
    assert_eq!(places(&third.take(1).await), [(1, 2)]);
}

#[tokio::test]
async fn readers_consumers_and_the_inbox_do_not_disturb_each_other() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 5).await;
    for query in ["", "&consumer=a", "&consumer=b", "&from=first", "&from=first"] {
        let mut socket = hub.subscribe(&format!("stream=work{query}")).await;
        socket.credit(10).await;
        assert_eq!(offsets(&socket.take(5).await), [0, 1, 2, 3, 4], "{query}");
        // A reader may acknowledge too; it means nothing to it.
        socket.ack(json!({"from": 0, "to": 4})).await;
        socket.is_silent().await;
    }
    let mut again = hub.subscribe("stream=work&from=first").await;
    again.credit(5).await;
    assert_eq!(places(&again.take(5).await), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
}

#[tokio::test]
async fn a_consumer_keeps_its_place_without_members_and_over_a_restart() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 6).await;
    let mut socket = member(&hub, "").await;
    socket.credit(4).await;
    socket.take(4).await;
    socket.ack(json!(["m0", "m2"])).await;
    socket.send(json!({"nack": "m3", "delayMs": 0})).await;
    socket.close().await;
    let hub = hub.restart().await;
    let state = hub.consumer("work", "c").await;
    assert_eq!((&state["next"], &state["members"]), (&json!(4), &json!(0)));
    let mut socket = member(&hub, "").await;
    socket.credit(10).await;
    // Attempts are counted over the restart.
    assert_eq!(places(&socket.take(4).await), [(1, 2), (3, 2), (4, 1), (5, 1)]);
    socket.ack(json!({"from": 0, "to": 5})).await;
    socket.close().await;
    let hub = hub.restart().await;
    let mut socket = member(&hub, "").await;
    socket.credit(10).await;
    socket.is_silent().await;
}

#[tokio::test]
async fn a_nack_keeps_its_delay_over_a_restart() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 1).await;
    let mut socket = member(&hub, "").await;
    socket.credit(1).await;
    socket.deliver().await;
    let began = Instant::now();
    socket.send(json!({"nack": "m0", "delayMs": 1500})).await;
    socket.close().await;
    let hub = hub.restart().await;
    let mut socket = member(&hub, "").await;
    socket.credit(1).await;
    assert_eq!(places(&socket.take(1).await), [(0, 2)]);
    assert!(began.elapsed() >= Duration::from_millis(1500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn acknowledgements_are_durable_soon_after() {
    let hub = Running::start().await;
    hub.enqueue_numbered("work", 0, 100).await;
    let mut socket = member(&hub, "").await;
    socket.credit(100).await;
    socket.take(100).await;
    socket.ack(json!({"from": 0, "to": 89})).await;
    let began = Instant::now();
    let after = loop {
        let after = hub.crashed().await;
        if after.consumer("work", "c").await["inFlight"] == 10 {
            break after;
        }
        assert!(began.elapsed() < DURABLE, "nothing is durable");
    };
    let mut socket = member(&after, "").await;
    socket.credit(1000).await;
    let again = socket.take(10).await;
    assert_eq!(offsets(&again), (90..100).collect::<Vec<_>>());
    assert!(again.iter().all(|delivered| delivered.attempt == 2));
    socket.is_silent().await;
}
