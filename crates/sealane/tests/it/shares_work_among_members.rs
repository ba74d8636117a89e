use std::collections::BTreeSet;
use std::time::Duration;

use crate::{is_silent, next, node, number, numbered, numbers};

#[tokio::test]
async fn each_message_goes_to_one_member() {
    let (_folder, _node, client) = node().await;
    let join = || client.subscribe("a/*").consumer("c").credit(8);
    let (mut one, mut two) = (join().await.unwrap(), join().await.unwrap());
    for n in 0..200 {
        client.publish(&format!("a/{}", n % 3), &numbered(n)).await.unwrap();
    }
    let mut all = BTreeSet::new();
    while all.len() < 200 {
        let message = tokio::select! {
            message = one.next() => message,
            message = two.next() => message,
        };
        let message = message.unwrap().unwrap();
        message.ack();
        assert!(all.insert(number(&message)), "twice: {message:?}");
        assert_eq!(message.attempt, 1);
    }
    one.close().await;
    two.close().await;
    let mut three = join().await.unwrap();
    assert!(is_silent(&mut three).await, "all were acknowledged");
}

#[tokio::test]
async fn what_is_not_acknowledged_comes_to_another() {
    let (_folder, _node, client) = node().await;
    for n in 0..3 {
        client.publish("a", &numbered(n)).await.unwrap();
    }
    let mut one = client.subscribe("a").inbox().await.unwrap();
    let first = next(&mut one).await;
    first.ack();
    let _second = next(&mut one).await;
    one.close().await;
    let mut two = client.subscribe("a").inbox().await.unwrap();
    let again = next(&mut two).await;
    assert_eq!((number(&again), again.attempt), (1, 2));
    again.nack(Duration::from_millis(50));
    assert_eq!(number(&next(&mut two).await), 2);
    let again = next(&mut two).await;
    assert_eq!((number(&again), again.attempt), (1, 3));
}

#[tokio::test]
async fn a_consumer_can_be_told_how_to_redeliver() {
    let (_folder, _node, client) = node().await;
    client.publish("a", &numbered(0)).await.unwrap();
    let member = client.subscribe("a").consumer("c").max_in_flight(1);
    let mut member = member.ack_wait(Duration::from_millis(200)).max_attempts(2).await.unwrap();
    assert_eq!(next(&mut member).await.attempt, 1);
    assert_eq!(next(&mut member).await.attempt, 2);
    let mut dead = client.subscribe("dead/a").consumer("c").await.unwrap();
    let letter = next(&mut dead).await.value().unwrap();
    assert_eq!(letter.field("attempts"), Some(&2_u64.into()));
    client.publish("a", &numbered(1)).await.unwrap();
    assert_eq!(numbers(&mut member, 1).await, [1]);
}
