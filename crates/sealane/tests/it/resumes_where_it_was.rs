use std::time::Duration;

use sealane::{Client, ClientEvent, StartPosition};

use crate::wire::Wire;
use crate::{is_silent, next, node, number, numbered, numbers};

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_each_message_once_though_the_wire_is_cut() {
    let (_folder, node, direct) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    let mut reader = client.subscribe("a").credit(64).await.unwrap();
    let mut events = reader.events();
    let publisher = direct.publisher("a").unwrap();
    let (sent, read) = tokio::join!(
        async {
            for n in 0..3000 {
                publisher.send(&numbered(n)).await.unwrap();
                if n % 500 == 499 {
                    publisher.flush().await.unwrap();
                    wire.cut();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            publisher.flush().await.unwrap().messages
        },
        numbers(&mut reader, 3000)
    );
    assert_eq!(sent, 3000);
    assert!(read.into_iter().eq(0..3000));
    assert_eq!(events.next().await, Some(ClientEvent::Connected));
    // The next cut may come while it connects again: then it is told of both.
    let mut lost = 0;
    while let Some(ClientEvent::Disconnected { .. }) = events.next().await {
        lost += 1;
    }
    assert!((1..=6).contains(&lost), "{lost}");
}

#[tokio::test]
async fn a_pattern_misses_nothing_that_was_made_while_it_was_away() {
    let (_folder, node, direct) = node().await;
    direct.publish("a/old", &numbered(99)).await.unwrap();
    direct.publish("a/1", &numbered(98)).await.unwrap();
    // Whatever is new is so by the hub's clock in milliseconds.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    let mut reader = client.subscribe("a/*").await.unwrap();
    direct.publish("a/1", &numbered(0)).await.unwrap();
    assert_eq!(numbers(&mut reader, 1).await, [0]);
    wire.down(true);
    direct.publish("a/1", &numbered(1)).await.unwrap();
    direct.publish("a/2", &numbered(2)).await.unwrap();
    direct.publish("a/old", &numbered(3)).await.unwrap();
    wire.down(false);
    let mut all = numbers(&mut reader, 3).await;
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
    assert!(is_silent(&mut reader).await);
}

#[tokio::test]
async fn a_stream_that_is_made_later_is_waited_for() {
    let (_folder, node, direct) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    let mut reader = client.subscribe("a").await.unwrap();
    let mut events = reader.events();
    wire.down(true);
    direct.publish("a", &numbered(0)).await.unwrap();
    wire.down(false);
    assert_eq!(numbers(&mut reader, 1).await, [0]);
    reader.close().await;
    while let Some(event) = events.next().await {
        assert!(!matches!(event, ClientEvent::NotRecovered { .. }), "nothing was lost");
    }
}

#[tokio::test]
async fn a_place_that_is_no_more_is_told() {
    let (_folder, _node, client) = node().await;
    for n in 0..5 {
        client.publish("a", &numbered(n)).await.unwrap();
    }
    let resume = StartPosition::Resume { offset: 3, generation: 1 };
    let mut reader = client.subscribe("a").from(resume).await.unwrap();
    let mut events = reader.events();
    assert_eq!(events.next().await, Some(ClientEvent::Connected));
    assert!(matches!(events.next().await, Some(ClientEvent::NotRecovered { offset: 0, .. })));
    assert_eq!(numbers(&mut reader, 1).await, [0]);
    let generation = client.stream("a").await.unwrap().generation;
    let resume = StartPosition::Resume { offset: 3, generation };
    let mut reader = client.subscribe("a").from(resume).await.unwrap();
    assert_eq!(numbers(&mut reader, 2).await, [3, 4]);
}

#[tokio::test]
async fn a_member_that_was_cut_off_is_given_again_what_it_held() {
    let (_folder, node, direct) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    for n in 0..3 {
        direct.publish("a", &numbered(n)).await.unwrap();
    }
    let mut member = client.subscribe("a").consumer("c").await.unwrap();
    let mut events = member.events();
    let held = next(&mut member).await;
    wire.cut();
    assert_eq!(events.next().await, Some(ClientEvent::Connected));
    while events.next().await != Some(ClientEvent::Connected) {}
    // An acknowledgement of the old connection says nothing on the new one.
    held.ack();
    for n in 0..3 {
        let again = next(&mut member).await;
        assert_eq!((number(&again), again.attempt), (n, 2));
        again.ack();
    }
    assert!(is_silent(&mut member).await, "what waited here at the cut came once");
}

#[tokio::test]
async fn a_removed_stream_ends_its_readers_with_its_name() {
    let (_folder, _node, client) = node().await;
    client.publish("a", &numbered(0)).await.unwrap();
    let mut reader = client.subscribe("a").from(StartPosition::First).await.unwrap();
    assert_eq!(numbers(&mut reader, 1).await, [0]);
    client.remove("a").await.unwrap();
    let error = reader.next().await.unwrap().unwrap_err();
    assert_eq!(error.refusal(), Some("StreamRemoved"));
    assert!(reader.next().await.is_none());
}
