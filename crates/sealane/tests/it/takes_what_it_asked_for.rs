//! A hub that mixes up streams: what was not asked for is refused, counted and told.

use sealane::{Client, ClientEvent, Codec, StartPosition};

use crate::scripted::{Script, Scripted, subscribed};
use crate::{is_silent, next, number};

fn deliver(stream: &str, offset: u64) -> String {
    format!(
        r#"{{"deliver":{{"n":{offset}}},"stream":"{stream}","offset":{offset},"generation":7,
            "attempt":1}}"#
    )
}

/// A hub that delivers messages of the stream `b` to whoever subscribes to `a`.
async fn mixed_up() -> (Scripted, Client) {
    let batch = format!(r#"{{"count":2,"batch":[{},{}]}}"#, deliver("b", 1), deliver("a", 1));
    let frames = vec![
        subscribed(Codec::Json, r#","features":["seek"]"#),
        "null".to_owned(),
        deliver("b", 0),
        deliver("a", 0),
        batch,
        r#"{"status":"gap","stream":"b","from":2,"to":9,"reason":"retention"}"#.to_owned(),
        deliver("a", 2),
        "null".to_owned(),
    ];
    let hub = Scripted::start(Script { frames, ..Script::default() }).await;
    let client = Client::connect(&hub.address.to_string()).unwrap();
    (hub, client)
}

#[tokio::test]
async fn a_reader_is_shown_nothing_of_another_stream() {
    let (_hub, client) = mixed_up().await;
    let mut subscription = client.subscribe("a").from(StartPosition::First).await.unwrap();
    let mut events = subscription.events();
    for n in 0..3 {
        let message = next(&mut subscription).await;
        assert_eq!((message.stream.as_str(), number(&message)), ("a", n));
    }
    assert!(is_silent(&mut subscription).await);
    assert_eq!(subscription.seal_counts().unasked, 2);
    let mut told = vec![];
    while told.len() < 2 {
        match events.next().await.unwrap() {
            ClientEvent::Refused { stream, offset, name, .. } => {
                told.push((stream.to_string(), offset, name));
            }
            ClientEvent::Gap { stream, .. } => panic!("a gap of {stream}"),
            _ => {}
        }
    }
    assert_eq!(told, [("b".to_owned(), 0, "NotAskedFor"), ("b".to_owned(), 1, "NotAskedFor")]);
}

#[tokio::test]
async fn a_consumer_acknowledges_nothing_of_another_stream() {
    let (hub, client) = mixed_up().await;
    let mut subscription = client.subscribe("a").consumer("c").await.unwrap();
    // None of them is acknowledged, and so nothing may be.
    for n in 0..3 {
        assert_eq!(number(&next(&mut subscription).await), n);
    }
    subscription.close().await;
    let heard = hub.heard();
    assert!(!heard.iter().any(|said| said.contains("ack")), "{heard:?}");
}

#[tokio::test]
async fn a_page_of_another_stream_is_refused() {
    let answer = |stream: &str, of: &str| {
        let page = format!(
            r#"{{"stream":"{stream}","generation":7,"messages":[{}],"gaps":[],"next":1,
                "end":true}}"#,
            deliver(of, 0)
        );
        Script { answer: (200, page), ..Script::default() }
    };
    for (stream, of, is_taken) in [("a", "a", true), ("a", "b", false), ("b", "b", false)] {
        let hub = Scripted::start(answer(stream, of)).await;
        let client = Client::connect(&hub.address.to_string()).unwrap();
        let read = client.read("a", StartPosition::First, 10).await;
        assert_eq!(read.is_ok(), is_taken, "{stream} {of}: {read:?}");
        let code = read.err().map(|error| error.code().to_owned());
        assert!(code.is_none_or(|code| code == "SL-CLIENT-05"));
    }
}
