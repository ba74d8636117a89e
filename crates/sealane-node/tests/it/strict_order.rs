//! `max_in_flight=1` gives strict order, whoever does the work and whatever fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::running::Running;
use crate::socket::{Delivered, Socket};

const MEMBERS: usize = 5;
const MESSAGES: u64 = 300;
/// Deliveries after which a member pauses and lets others work.
const TURN: u64 = 4;

#[tokio::test]
async fn many_members_work_one_after_the_other() {
    let hub = Running::start().await;
    hub.enqueue_numbered("line", 0, MESSAGES).await;
    let expected = Arc::new(AtomicU64::new(0));
    let mut members = Vec::new();
    for index in 0..MEMBERS {
        let mut member = hub.subscribe("stream=line&consumer=c&max_in_flight=1").await;
        member.credit(TURN).await;
        let expected = Arc::clone(&expected);
        members.push(tokio::spawn(async move { work(&mut member, index as u64, &expected).await }));
    }
    let mut worked = 0;
    for member in members {
        worked += u64::from(member.await.unwrap() > 0);
    }
    assert_eq!(expected.load(Ordering::SeqCst), MESSAGES);
    assert!(worked > 1, "the work was not shared");
    let state = hub.consumer("line", "c").await;
    assert!(state["redelivered"].as_u64().unwrap() >= MESSAGES / 7);
}

/// Works until all is done; now and then a message fails once. Returns how many it finished.
async fn work(member: &mut Socket, index: u64, expected: &AtomicU64) -> u64 {
    let (mut finished, mut taken) = (0, 0);
    while expected.load(Ordering::SeqCst) < MESSAGES {
        let Some(frame) = member.frame_soon().await else { continue };
        let delivered = Delivered::read(frame);
        // Nothing else is out: the next message has not been given to anyone.
        assert_eq!(delivered.offset, expected.load(Ordering::SeqCst));
        if delivered.offset.is_multiple_of(7) && delivered.attempt == 1 {
            let delay_ms = (delivered.offset + index) % 3;
            member.send(json!({"nack": delivered.id(), "delayMs": delay_ms})).await;
        } else {
            expected.fetch_add(1, Ordering::SeqCst);
            finished += 1;
            member.ack(json!({"offset": delivered.offset})).await;
        }
        taken += 1;
        if taken % TURN == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            member.credit(TURN).await;
        }
    }
    finished
}

#[tokio::test]
async fn a_message_whose_worker_leaves_is_not_overtaken() {
    let hub = Running::start().await;
    hub.enqueue_numbered("line", 0, 3).await;
    let query = "stream=line&consumer=c&max_in_flight=1";
    let (mut leaves, mut stays) = (hub.subscribe(query).await, hub.subscribe(query).await);
    leaves.credit(5).await;
    assert_eq!(leaves.deliver().await.offset, 0);
    stays.credit(5).await;
    stays.is_silent().await;
    leaves.close().await;
    for (offset, attempt) in [(0, 2), (1, 1), (2, 1)] {
        let delivered = stays.deliver().await;
        assert_eq!((delivered.offset, delivered.attempt), (offset, attempt));
        stays.is_silent().await;
        stays.ack(json!({"offset": offset})).await;
    }
}
