//! A newer hub may say what this library does not know: it goes on, and hands on names as text.

use std::time::Duration;

use sealane::{Client, ClientEvent, Codec, Level, StartPosition, Subscription};
use sealane_testing::until_told_async;

use crate::scripted::{Script, Scripted, deliver, strangers, subscribed};
use crate::{next, number};

const CODECS: [Codec; 3] = [Codec::Json, Codec::MsgPack, Codec::Cbor];

async fn client(script: Script) -> (Scripted, Client) {
    let hub = Scripted::start(script).await;
    let client = Client::connect(&hub.address.to_string()).unwrap().patience(Duration::ZERO);
    (hub, client)
}

async fn reader(frames: Vec<String>, codec: Codec) -> (Scripted, Subscription) {
    let (hub, client) = client(Script { frames, ..Script::default() }).await;
    let reader = client.subscribe("a").from(StartPosition::First).codec(codec).await.unwrap();
    (hub, reader)
}

#[tokio::test]
async fn frames_fields_reasons_and_errors_that_nobody_knows_stop_nothing() {
    for codec in CODECS {
        let (_hub, mut reader) = reader(strangers(codec), codec).await;
        let mut events = reader.events();
        assert!(reader.has("teleport") && reader.has("seek") && !reader.has("batch"));
        for n in [0, 3, 4] {
            assert_eq!(number(&next(&mut reader).await), n, "{codec:?}");
        }
        let error = reader.next().await.unwrap().unwrap_err();
        assert_eq!(error.refusal(), Some("OutOfOrbit"));
        assert_eq!(error.to_string(), "the hub has left its orbit");
        assert_eq!((error.code(), error.hint()), ("SL-HUB-99", "Wait for its return."));
        assert_eq!(events.next().await, Some(ClientEvent::Connected));
        let gap = events.next().await.unwrap();
        let ClientEvent::Gap { from: 1, to: 2, reason, .. } = gap else { panic!("{gap:?}") };
        assert_eq!(reason, "meteor");
    }
}

#[tokio::test]
async fn a_hub_that_lists_no_features_has_those_of_version_1() {
    for codec in CODECS {
        let frames = vec![subscribed(codec, ""), "null".into(), deliver(0)];
        let (_hub, mut reader) = reader(frames, codec).await;
        assert!(["batch", "nack-delay", "seek", "sealed"].iter().all(|name| reader.has(name)));
        assert!(!reader.has("teleport"));
        assert_eq!(number(&next(&mut reader).await), 0);
    }
}

#[tokio::test]
async fn what_the_hub_does_not_list_is_not_asked() {
    let frames = [&subscribed(Codec::Json, r#","features":[]"#), "null", &deliver(0), "null"];
    let frames = frames.map(str::to_owned).into();
    let (hub, client) = client(Script { frames, ..Script::default() }).await;
    let reading = client.subscribe("a").consumer("c").codec(Codec::Json);
    let mut member = reading.await.unwrap();
    let message = next(&mut member).await;
    let began = std::time::Instant::now();
    message.nack(Duration::from_millis(200));
    until_told_async(async || hub.heard(), |heard| heard.len() >= 2).await;
    assert!(began.elapsed() >= Duration::from_millis(150), "it is held back on this side");
    assert_eq!(hub.heard()[1], r#"{"nack":{"from":0,"to":0}}"#);
}

#[tokio::test]
async fn a_pattern_is_read_again_where_the_hub_takes_no_seek() {
    for (features, asked) in
        [(r#","features":["batch"]"#, false), (r#","features":["seek"]"#, true)]
    {
        let head = r#"{"status":"subscribed","stream":"**","codec":"json","time":1"#;
        let frames = vec![format!("{head}{features}}}"), "null".into(), deliver(0)];
        // The connection ends after whatever is said next, and then everything begins again.
        let (hub, client) = client(Script { frames, ..Script::default() }).await;
        let reading =
            client.subscribe("**").from(StartPosition::First).codec(Codec::Json).credit(1);
        let mut reader = reading.await.unwrap();
        assert_eq!(number(&next(&mut reader).await), 0);
        let began = std::time::Instant::now();
        while hub.heard().len() < 4 {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", hub.heard());
            let next = tokio::time::timeout(Duration::from_millis(20), reader.next()).await;
            assert!(next.is_err(), "what was given does not come again");
        }
        let seeks = hub.heard().iter().any(|frame| frame.contains("seek"));
        assert_eq!(seeks, asked, "{:?}", hub.heard());
    }
}

const STATE: &str = r#"{"stream":"a","generation":7,"first":0,"next":3,"count":3,"bytes":9,
    "level":"orbit","sealed":null,"moons":["io"],"consumers":[{"consumer":"c","next":1,"mood":2}],
    "damaged":[{"from":1,"to":2,"by":"meteor"}]}"#;

#[tokio::test]
async fn answers_with_levels_and_fields_that_nobody_knows_are_read() {
    let stored = r#"{"id":"m","stream":"a","offset":3,"generation":7,"level":"orbit","orbit":2}"#;
    let (_hub, client) = client(Script { answer: (200, stored.into()), ..Script::default() }).await;
    let published = client.publish("a", &crate::numbered(1)).await.unwrap();
    assert_eq!((published.level.name(), published.level.known()), ("orbit", None));
    assert!(published.level != Level::Disk && published.offset == 3);
    let (_hub, client) =
        self::client(Script { answer: (200, STATE.into()), ..Script::default() }).await;
    let state = client.stream("a").await.unwrap();
    assert_eq!((state.level.to_string().as_str(), state.next), ("orbit", 3));
    assert_eq!((state.consumers.len(), state.damaged), (1, vec![1..=2]));
    let gap = r#"{"status":"gap","stream":"a","from":1,"to":2,"reason":"meteor"}"#;
    let page = format!(
        r#"{{"stream":"a","generation":7,"messages":[{}],"gaps":[{gap}],"next":1,"end":true,
            "tide":"low"}}"#,
        deliver(0)
    );
    let (_hub, client) = self::client(Script { answer: (200, page), ..Script::default() }).await;
    for codec in CODECS {
        let client = client.clone().with_codec(codec).unwrap();
        let page = client.read("a", StartPosition::First, 10).await.unwrap();
        assert_eq!((page.messages.len(), page.next, page.end), (1, 1, true), "{codec:?}");
    }
}

#[tokio::test]
async fn refusals_that_nobody_knows_keep_their_words() {
    let refused = r#"{"error":{"code":"OutOfOrbit","message":"too far","hint":"Wait.",
        "ref":"SL-HUB-99","by":{"km":7}},"moon":1}"#;
    let (_hub, client) =
        client(Script { answer: (418, refused.into()), ..Script::default() }).await;
    let error = client.publish("a", &crate::numbered(1)).await.unwrap_err();
    assert_eq!((error.refusal(), error.code()), (Some("OutOfOrbit"), "SL-HUB-99"));
    assert_eq!((error.to_string().as_str(), error.hint()), ("too far", "Wait."));
}
