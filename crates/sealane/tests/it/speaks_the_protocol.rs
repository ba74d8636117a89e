use std::time::Duration;

use sealane::{Client, Codec, Error, GroupTag, Level, StartPosition, Value};

use crate::{node, number, numbered};

#[tokio::test]
async fn what_is_published_in_one_codec_is_read_in_every_other() {
    let (_folder, _node, client) = node().await;
    // In the order of deterministic CBOR, which sorts keys.
    let all = Value::Map(vec![
        ("id".into(), "m1".into()),
        ("big".into(), Value::U64(u64::MAX)),
        ("half".into(), Value::F64(0.5)),
        ("less".into(), Value::I64(-7)),
        ("list".into(), Value::Array(vec![Value::Null, true.into(), "ü".into()])),
    ]);
    let codecs = [Codec::Json, Codec::MsgPack, Codec::Cbor];
    for (offset, codec) in codecs.into_iter().enumerate() {
        let writer = client.clone().with_codec(codec).unwrap();
        let published = writer.publish("a/b", &all).await.unwrap();
        assert_eq!((published.id.as_str(), published.offset), ("m1", offset as u64));
        assert_eq!((published.level, published.replayed), (Level::Disk.into(), false));
    }
    for codec in codecs {
        let mut reader =
            client.subscribe("a/b").from(StartPosition::First).codec(codec).await.unwrap();
        for offset in 0..3 {
            let message = crate::next(&mut reader).await;
            assert_eq!((message.offset, message.attempt, message.codec), (offset, 1, codec));
            assert_eq!(message.value().unwrap(), all);
        }
        let page = client.clone().with_codec(codec).unwrap();
        let page = page.read("a/b", StartPosition::Offset(1), 1).await.unwrap();
        assert_eq!(page.messages[0].value().unwrap(), all);
        assert_eq!((page.messages.len(), page.next, page.end), (1, 2, false));
    }
}

#[tokio::test]
async fn a_batch_takes_offsets_in_order_and_repeats_as_it_was() {
    let (_folder, _node, client) = node().await;
    let envelopes = [r#"{"n":0}"#, r#"{"n":1,"id":"x"}"#];
    let publish = || client.publish_batch("a", Codec::Json, &envelopes).key("k");
    let first = publish().await.unwrap();
    assert_eq!((first.offset, first.count, first.replayed), (0, 2, false));
    assert_eq!(first.ids[1], "x");
    let again = publish().await.unwrap();
    assert_eq!((again.offset, again.replayed), (0, true));
    assert_eq!(again.ids, first.ids);
    assert_eq!(client.stream("a").await.unwrap().next, 2);
}

#[tokio::test]
async fn refusals_keep_the_words_of_the_hub() {
    let (_folder, _node, client) = node().await;
    let error = client.publish("a", &numbered(1)).expect(5).await.unwrap_err();
    assert_eq!(error.refusal(), Some("OffsetMismatch"));
    assert_eq!(error.code(), "SL-HUB-09");
    assert!(matches!(&error, Error::Refused(wire) if wire.next == Some(0)), "{error:?}");
    client.publish("a", &numbered(1)).expect(0).key("k").await.unwrap();
    let error = client.publish("a", &numbered(2)).key("k").await.unwrap_err();
    assert_eq!(error.refusal(), Some("KeyReused"));
    let error = client.stream("none").await.unwrap_err();
    assert_eq!(error.refusal(), Some("UnknownStream"));
    let error = client.publish("a", &Value::Null).await.unwrap_err();
    assert_eq!(error.refusal(), Some("InvalidEnvelope"));
    let error = client.publish("a//b", &numbered(1)).await.unwrap_err();
    assert_eq!(error.code(), "SL-TOPIC-01");
    let error = client.subscribe("a/*").inbox().await.unwrap_err();
    assert_eq!(error.refusal(), Some("PatternNeedsReader"));
    let large = Value::Map(vec![("x".into(), Value::Bytes(vec![0; 1 << 20]))]);
    let error = client.publish("a", &large).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn a_delayed_message_comes_when_it_is_due() {
    let (_folder, _node, client) = node().await;
    let mut reader = client.subscribe("a").await.unwrap();
    // Longer than a busy machine takes for the message behind it.
    let delay = Duration::from_secs(3);
    let scheduled = client.publish("a", &numbered(1)).delay(delay).await.unwrap();
    client.publish("a", &numbered(2)).await.unwrap();
    assert_eq!(number(&crate::next(&mut reader).await), 2);
    let delayed = crate::next(&mut reader).await;
    assert_eq!((number(&delayed), delayed.offset), (1, 1));
    let id = delayed.value().unwrap().field("id").and_then(Value::as_text).map(str::to_owned);
    assert_eq!(id, Some(scheduled.id));
}

#[tokio::test]
async fn streams_are_made_listed_changed_and_removed() {
    let (_folder, _node, client) = node().await;
    let made = client.configure("a/1").level(Level::Os).max_count(2).await.unwrap();
    assert_eq!((made.level, made.retention.max_count, made.next), (Level::Os.into(), 2, 0));
    let changed = client.configure("a/1").max_age(Duration::from_secs(60)).await.unwrap();
    assert_eq!(
        (changed.level, changed.retention.max_count, changed.retention.max_age_ms),
        (Level::Os.into(), 2, 60_000)
    );
    client.publish("b ü/2", &numbered(1)).await.unwrap();
    assert_eq!(client.stream("b ü/2").await.unwrap().count, 1);
    let page = client.streams().limit(1).await.unwrap();
    assert_eq!((page.streams.len(), page.streams[0].stream.as_str()), (1, "a/1"));
    let page = client.streams().after(page.next.unwrap()).await.unwrap();
    assert_eq!((page.streams.len(), page.next), (1, None));
    assert_eq!(client.streams().matching("a/*").await.unwrap().streams.len(), 1);
    client.remove("a/1").await.unwrap();
    assert_eq!(client.stream("a/1").await.unwrap_err().refusal(), Some("UnknownStream"));
    let health = client.health().await.unwrap();
    assert_eq!((health.level, health.streams), (Level::Disk.into(), 1));
}

#[tokio::test]
async fn a_stream_is_made_sealed_and_says_so() {
    let (_folder, _node, client) = node().await;
    let (group, other) = (GroupTag::from_bytes([1; 4]), GroupTag::from_bytes([2; 4]));
    let made = client.configure("s").sealed(group).level(Level::Os).await.unwrap();
    assert_eq!((made.sealed, made.level), (Some(group), Level::Os.into()));
    assert_eq!(client.stream("s").await.unwrap().sealed, Some(group));
    let error = client.configure("s").sealed(other).await.unwrap_err();
    assert_eq!(error.refusal(), Some("SealMismatch"));
    let error = client.publish("s", &numbered(1)).await.unwrap_err();
    assert_eq!(error.refusal(), Some("NotSealed"));
    client.publish("open", &numbered(1)).await.unwrap();
    assert_eq!(client.stream("open").await.unwrap().sealed, None);
}

#[tokio::test]
async fn a_hub_that_is_not_there_is_said_at_once_if_asked() {
    let client = Client::connect("127.0.0.1:1").unwrap().patience(Duration::ZERO);
    let error = client.publish("a", &numbered(1)).await.unwrap_err();
    assert!(matches!(error, Error::NotReachable { .. }), "{error:?}");
    let error = client.subscribe("a").await.unwrap_err();
    assert!(matches!(error, Error::NotReachable { .. }), "{error:?}");
}
