use std::time::Duration;

use futures_util::StreamExt;
use sealane::StartPosition;
use sealane_testing::until_told_async;

use crate::{next, node, number, numbered, numbers};

#[tokio::test]
async fn no_more_than_the_window_is_under_way() {
    let (_folder, _node, client) = node().await;
    for n in 0..100 {
        client.publish("a", &numbered(n)).await.unwrap();
    }
    let mut member = client.subscribe("a").consumer("c").credit(10).await.unwrap();
    let in_flight = async || client.stream("a").await.unwrap().consumers[0].in_flight;
    until_told_async(&in_flight, |count| *count == 10).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(in_flight().await, 10);
    let all = numbers(&mut member, 100).await;
    assert!(all.into_iter().eq(0..100));
    member.close().await;
    let consumer = client.stream("a").await.unwrap().consumers[0].clone();
    assert_eq!((consumer.in_flight, consumer.redelivered), (0, 0));
}

#[tokio::test]
async fn a_limit_ends_the_subscription_and_asks_for_no_more() {
    let (_folder, _node, client) = node().await;
    for n in 0..10 {
        client.publish("a", &numbered(n)).await.unwrap();
    }
    let mut member = client.subscribe("a").consumer("c").limit(3).await.unwrap();
    let mut given = Vec::new();
    while let Some(message) = member.next().await {
        given.push(message.unwrap());
    }
    assert_eq!(given.iter().map(number).collect::<Vec<_>>(), [0, 1, 2]);
    // Long after the end is still in time.
    tokio::time::sleep(Duration::from_millis(50)).await;
    given.iter().for_each(sealane::ReceivedMessage::ack);
    member.close().await;
    let mut member = client.subscribe("a").consumer("c").await.unwrap();
    let message = next(&mut member).await;
    assert_eq!((number(&message), message.attempt), (3, 1));
}

#[tokio::test]
async fn it_is_a_stream_too() {
    let (_folder, _node, client) = node().await;
    for n in 0..5 {
        client.publish("a", &numbered(n)).await.unwrap();
    }
    let reader =
        client.subscribe("a").from(StartPosition::First).batch(1).credit(1).limit(5).await.unwrap();
    let all: Vec<u64> = reader.map(|message| number(&message.unwrap())).collect().await;
    assert_eq!(all, [0, 1, 2, 3, 4]);
}
