use sealane::{Client, Error, Start, Value};

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
    let mut reader = direct.subscribe("a").from(Start::First).await.unwrap();
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
    assert!(publisher.flush().await.is_err());
    assert_eq!(client.stream("a").await.unwrap().next, 1);
}
