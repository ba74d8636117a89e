use std::time::Duration;

use sealane::{Client, Error, StartPosition, Value};
use sealane_testing::until_told_async;

use crate::{next, node, number, numbered};

const LONG: Duration = Duration::from_secs(60);

/// Answers each request with its number and one more.
async fn serve(client: Client) {
    let mut requests = client.subscribe("sum").consumer("server").await.unwrap();
    while let Some(request) = requests.next().await {
        let request = request.unwrap();
        client.reply(&request, &numbered(number(&request) + 1)).await.unwrap();
        request.ack();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_gets_its_own_answer() {
    let (_folder, _node, client) = node().await;
    for _ in 0..2 {
        tokio::spawn(serve(client.clone()));
    }
    let asking = (0..20).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let answer = client.request("sum", &numbered(n), LONG).await.unwrap();
            assert_eq!(number(&answer), n + 1);
        })
    });
    for one in asking.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    no_answer_is_left(&client).await;
}

/// Waits until nothing is left of the streams of answers.
async fn no_answer_is_left(client: &Client) {
    let streams = async || client.health().await.unwrap().streams;
    until_told_async(streams, |streams| *streams == 1).await;
}

#[tokio::test]
async fn whoever_waits_in_vain_is_told_and_is_not_answered_later() {
    let (_folder, _node, client) = node().await;
    let wait = Duration::from_millis(300);
    let error = client.request("sum", &numbered(1), wait).await.unwrap_err();
    assert!(matches!(error, Error::NoReply { .. }), "{error}");
    assert_eq!(error.code(), "SL-CLIENT-17");
    // The request is there, durable, and nobody waits for its answer any more.
    let mut requests = client.subscribe("sum").from(StartPosition::First).await.unwrap();
    let request = next(&mut requests).await;
    assert!(!client.reply(&request, &numbered(2)).await.unwrap());
    no_answer_is_left(&client).await;
}

#[tokio::test]
async fn what_is_no_request_is_named() {
    let (_folder, _node, client) = node().await;
    let error = client.request("sum", &Value::from("text"), LONG).await.unwrap_err();
    assert!(matches!(error, Error::NotARequest(_)), "{error}");
    client.publish("sum", &numbered(1)).await.unwrap();
    let mut all = client.subscribe("sum").from(StartPosition::First).await.unwrap();
    let error = client.reply(&next(&mut all).await, &numbered(1)).await.unwrap_err();
    assert!(matches!(error, Error::NotARequest(_)), "{error}");
}
