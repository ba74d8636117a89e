use sealane::{Client, Error, StartPosition, Value};

use crate::scripted::{Script, Scripted};
use crate::wire::Wire;
use crate::{node, numbered, numbers};

const COUNT: u64 = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn all_arrive_in_order_though_the_wire_is_cut() {
    let (_folder, node, direct) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    let publisher = client.publisher("a").unwrap();
    for n in 0..COUNT {
        if n % 3000 == 2999 {
            wire.cut();
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        publisher.send(&numbered(n)).await.unwrap();
    }
    let stored = publisher.flush().await.unwrap();
    assert_eq!((stored.messages, stored.next), (COUNT, Some(COUNT)));
    let mut reader = direct.subscribe("a").from(StartPosition::First).await.unwrap();
    let all = numbers(&mut reader, COUNT as usize).await;
    assert!(all.iter().copied().eq(0..COUNT));
}

#[tokio::test]
async fn the_first_failure_ends_it_and_is_told() {
    let (_folder, _node, client) = node().await;
    let publisher = client.publisher("a").unwrap();
    publisher.send(&numbered(0)).await.unwrap();
    publisher.flush().await.unwrap();
    publisher.send(&Value::from(1_u64)).await.unwrap();
    publisher.send(&numbered(2)).await.unwrap();
    let error = publisher.flush().await.unwrap_err();
    assert_eq!(error.refusal(), Some("InvalidEnvelope"), "{error:?}");
    let _: Result<(), Error> = publisher.send(&numbered(3)).await;
    let error = publisher.flush().await.unwrap_err();
    assert_eq!(error.refusal(), Some("InvalidEnvelope"), "{error:?}");
    assert_eq!(client.stream("a").await.unwrap().next, 1);
}

#[tokio::test]
async fn a_stream_that_is_made_anew_takes_what_comes_next() {
    let (_folder, _node, client) = node().await;
    let publisher = client.publisher("a").unwrap();
    for round in 1..=3 {
        for n in 0..10 {
            publisher.send(&numbered(n)).await.unwrap();
        }
        let stored = publisher.flush().await.unwrap();
        assert_eq!((stored.messages, stored.next), (round * 10, Some(10)));
        client.remove("a").await.unwrap();
    }
}

#[tokio::test]
async fn a_hub_that_is_away_while_nothing_is_sent_is_not_missed() {
    let (_folder, node, _) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    let publisher = client.patience(std::time::Duration::from_secs(1)).publisher("a").unwrap();
    for round in 1..=3 {
        publisher.send(&numbered(0)).await.unwrap();
        assert_eq!(publisher.flush().await.unwrap().messages, round);
        wire.cut();
        tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    }
}

#[tokio::test]
async fn a_hub_without_publishing_sockets_is_sent_requests() {
    let unknown = r#"{"error":{"code":"NotFound","message":"no such path"}}"#;
    let stored = r#"{"ids":["x"],"stream":"a","offset":7,"generation":1,"level":"os","count":1}"#;
    let answers = [("/v1/publish", (404, unknown)), ("/v1/enqueue/batch", (200, stored))];
    let answers = answers.map(|(path, (code, body))| (path.to_owned(), (code, body.to_owned())));
    let script = Script { by_path: answers.into(), ..Script::default() };
    let hub = Scripted::start(script).await;
    let client = Client::connect(&hub.address.to_string()).unwrap();
    let publisher = client.with_codec(sealane::Codec::Json).unwrap().publisher("a").unwrap();
    publisher.send(&numbered(0)).await.unwrap();
    let stored = publisher.flush().await.unwrap();
    assert_eq!((stored.messages, stored.next), (1, Some(8)));
}

/// The publisher's task runs in the runtime that made it, and ends with that runtime.
#[test]
fn a_publisher_whose_runtime_is_gone_has_ended() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let own = runtime();
    let made = own.block_on(async { Client::connect("127.0.0.1:1").unwrap().publisher("a") });
    let publisher = made.unwrap();
    drop(own);
    let other = runtime();
    let sent = other.block_on(publisher.send(&numbered(0)));
    let flushed = other.block_on(publisher.flush()).map(drop);
    for outcome in [sent, flushed] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Ended("publisher")), "{error:?}");
        assert_eq!(error.code(), "SL-CLIENT-07");
        assert!(error.hint().contains("make a new one"));
    }
}
