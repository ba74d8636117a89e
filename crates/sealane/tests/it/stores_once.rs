use std::time::Duration;

use sealane::{Client, Codec, Error};

use crate::wire::Wire;
use crate::{node, numbered};

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_nothing_is_stored_twice() {
    let (_folder, node, direct) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    for n in 0..10 {
        wire.lose_answers(2);
        let published = client.publish("a", &numbered(n)).await.unwrap();
        assert_eq!(published.offset, n);
        assert!(published.replayed, "the answer that came is the third");
    }
    wire.lose_answers(1);
    let batch = client.publish_batch("a", Codec::Json, &[r#"{"n":10}"#, r#"{"n":11}"#]);
    assert_eq!(batch.await.unwrap().offset, 10);
    assert_eq!(wire.answers_to_lose(), 0);
    assert_eq!(direct.stream("a").await.unwrap().next, 12);
}

#[tokio::test]
async fn an_answer_that_never_comes_is_a_named_error() {
    let (_folder, node, _client) = node().await;
    let wire = Wire::to(node.address()).await;
    let client = Client::connect(&wire.address.to_string()).unwrap();
    wire.lose_answers(u32::MAX);
    // Long enough for a second attempt on a busy machine.
    let client = client.patience(Duration::from_secs(3));
    let error = client.publish("a", &numbered(0)).await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { attempts, .. } if attempts > 1), "{error:?}");
    assert_eq!(error.code(), "SL-CLIENT-03");
}
