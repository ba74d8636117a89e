//! A reader begins where it says, goes on where it was, and is told when something is missing.

use std::time::{Duration, UNIX_EPOCH};

use sealane_testing::{now_ms, until_async};
use serde_json::{Value, json};

use crate::running::Running;
use crate::socket::{Socket, offsets};

async fn reader(hub: &Running, query: &str) -> Socket {
    let mut reader = hub.subscribe(&format!("stream=log&{query}")).await;
    assert_eq!(reader.first["status"], "subscribed", "{}", reader.first);
    reader.credit(100).await;
    reader
}

/// The place in the first frame: the offset, and whether everything is there.
fn place(reader: &Socket) -> (u64, bool) {
    let first = &reader.first;
    (first["offset"].as_u64().unwrap(), first["recovered"].as_bool().unwrap())
}

#[tokio::test]
async fn reading_begins_at_the_named_place() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 4).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let between_ms = now_ms();
    tokio::time::sleep(Duration::from_millis(20)).await;
    hub.enqueue_numbered("log", 4, 4).await;
    let between = UNIX_EPOCH + Duration::from_millis(between_ms);
    let places = [
        ("first".to_owned(), 0),
        ("new".to_owned(), 8),
        ("0".to_owned(), 0),
        ("5".to_owned(), 5),
        ("8".to_owned(), 8),
        (format!("@{between_ms}"), 4),
        (humantime::format_rfc3339_millis(between).to_string(), 4),
        ("1970-01-01T00:00:00Z".to_owned(), 0),
        ("@99999999999999".to_owned(), 8),
    ];
    for (from, offset) in places {
        let mut reader = reader(&hub, &format!("from={from}")).await;
        assert_eq!(place(&reader), (offset, true), "from={from}");
        let count = 8 - offset as usize;
        assert_eq!(offsets(&reader.take(count).await), (offset..8).collect::<Vec<_>>());
        let page = hub.get(&format!("/v1/streams/log?from={from}")).await.json();
        assert_eq!(page["messages"].as_array().unwrap().len(), count, "from={from}");
        assert_eq!((&page["next"], &page["end"]), (&json!(8), &json!(true)));
    }
}

#[tokio::test]
async fn a_new_consumer_begins_where_its_first_member_says() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 4).await;
    for (name, from, first) in [("a", "&from=first", 0), ("b", "", 0), ("c", "&from=2", 2)] {
        let mut member = reader(&hub, &format!("consumer={name}{from}")).await;
        assert_eq!(member.deliver().await.offset, first);
    }
    let mut late = reader(&hub, "consumer=d&from=new").await;
    late.is_silent().await;
    // The consumer is there already: the place is no longer the members' to say.
    let mut again = reader(&hub, "consumer=d&from=first").await;
    again.is_silent().await;
}

#[tokio::test]
async fn a_range_is_read_page_by_page() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 25).await;
    let (mut next, mut seen) = (json!(0), Vec::new());
    for round in 0..3 {
        let page = hub.get(&format!("/v1/streams/log?from={next}&limit=10")).await.json();
        let messages = page["messages"].as_array().unwrap();
        seen.extend(messages.iter().map(|frame| frame["deliver"]["n"].as_u64().unwrap()));
        assert_eq!(page["end"], json!(round == 2), "{round}");
        next = page["next"].clone();
    }
    assert_eq!(seen, (0..25).collect::<Vec<_>>());
}

#[tokio::test]
async fn resuming_within_a_generation_recovers_what_is_still_there() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 10).await;
    let generation = hub.state("log").await["generation"].as_u64().unwrap();
    assert!(generation < 1 << 32);
    let recovers = [
        (format!("from=4&generation={generation}"), (4, true)),
        (format!("from=10&generation={generation}"), (10, true)),
        (format!("from=12&generation={generation}"), (10, false)),
        (format!("from=4&generation={}", generation - 1), (0, false)),
        ("from=4".to_owned(), (4, true)),
    ];
    for (query, expected) in &recovers {
        let reader = reader(&hub, query).await;
        assert_eq!(place(&reader), *expected, "{query}");
        assert_eq!(reader.first["generation"], generation);
    }
    let hub = hub.restart().await;
    for (query, expected) in &recovers {
        assert_eq!(place(&reader(&hub, query).await), *expected, "{query} after a restart");
    }
}

#[tokio::test]
async fn a_crash_gives_streams_that_may_have_lost_something_a_new_generation() {
    let hub = Running::start().await;
    for level in ["memory", "os", "disk"] {
        let made = hub.put(&format!("/v1/streams/{level}"), json!({"level": level})).await;
        assert_eq!(made.status, 201);
        hub.enqueue_numbered(level, 0, 10).await;
    }
    let generation =
        async |hub: &Running, topic: &str| hub.state(topic).await["generation"].as_u64().unwrap();
    let stored = async || hub.metric("sealane_stream_stored_total").await >= 30;
    until_async("`memory` is stored", stored).await;
    let after = hub.crashed().await;
    // The copy is another file, so nothing shows that the system kept what `os` relies on.
    for (level, renewed) in [("memory", true), ("os", true), ("disk", false)] {
        let (old, new) = (generation(&hub, level).await, generation(&after, level).await);
        assert_eq!(new > old, renewed, "{level}: {old}, {new}");
        let resume = |offset: u64| format!("stream={level}&from={offset}&generation={old}");
        // Everything that the reader can have seen is still there.
        let mut reader = after.subscribe(&resume(10)).await;
        assert_eq!(place(&reader), (10, true), "{level}");
        // It has seen what is lost: what comes at that offset is another message.
        let ahead = after.subscribe(&resume(13)).await;
        assert_eq!(place(&ahead), (10, false), "{level}");
        after.enqueue_numbered(level, 10, 1).await;
        reader.credit(1).await;
        let delivered = reader.deliver().await;
        assert_eq!((delivered.offset, delivered.generation), (10, new), "{level}");
    }
    // A message that was stored before keeps the generation in which it was appended.
    let mut reader = after.subscribe("stream=memory&from=9").await;
    reader.credit(2).await;
    let both = reader.take(2).await;
    assert_eq!(both[0].generation, generation(&hub, "memory").await);
    assert!(both[1].generation > both[0].generation);
}

#[tokio::test]
async fn a_removed_stream_comes_back_in_another_generation() {
    let hub = Running::start().await;
    let mut before = 0;
    for _ in 0..3 {
        hub.enqueue_numbered("log", 0, 2).await;
        let generation = hub.state("log").await["generation"].as_u64().unwrap();
        assert!(generation > before);
        let resumed = reader(&hub, &format!("from=1&generation={before}")).await;
        assert_eq!(place(&resumed), (0, false));
        before = generation;
        assert_eq!(hub.delete("/v1/streams/log").await.status, 200);
    }
    let hub = hub.restart().await;
    hub.enqueue_numbered("log", 0, 1).await;
    assert!(hub.state("log").await["generation"].as_u64().unwrap() > before);
}

#[tokio::test]
async fn a_reader_waits_for_a_stream_that_is_not_there_yet() {
    let hub = Running::start().await;
    for from in ["first", "new", "7"] {
        let topic = format!("later/{from}");
        let mut reader = hub.subscribe(&format!("stream={topic}&from={from}")).await;
        assert_eq!(place(&reader), (0, true), "{from}");
        reader.credit(10).await;
        assert_eq!(hub.get(&format!("/v1/streams/{topic}")).await.status, 404);
        hub.enqueue_numbered(&topic, 0, 2).await;
        let joined = reader.frame().await;
        assert_eq!((&joined["status"], &joined["offset"]), (&json!("joined"), &json!(0)));
        assert_eq!(offsets(&reader.take(2).await), [0, 1], "{from}");
    }
}

#[tokio::test]
async fn a_pattern_reads_old_streams_from_its_place_and_new_ones_from_their_first() {
    let hub = Running::start().await;
    hub.enqueue_numbered("fleet/1", 0, 3).await;
    hub.enqueue_numbered("other/1", 0, 3).await;
    let mut reader = hub.subscribe("stream=fleet/*&from=new").await;
    assert_eq!(reader.first["stream"], "fleet/*");
    assert_eq!(reader.first["offset"], Value::Null);
    reader.credit(3).await;
    hub.enqueue_numbered("fleet/2", 0, 2).await;
    let joined = reader.frame().await;
    assert_eq!((&joined["status"], &joined["stream"]), (&json!("joined"), &json!("fleet/2")));
    assert_eq!(offsets(&reader.take(2).await), [0, 1]);
    hub.enqueue_numbered("fleet/1", 3, 2).await;
    let joined = reader.frame().await;
    assert_eq!((&joined["stream"], &joined["offset"]), (&json!("fleet/1"), &json!(3)));
    assert_eq!(reader.deliver().await.offset, 3);
    // The credit is one pool, and it is used up.
    reader.is_silent().await;
    reader.credit(1).await;
    assert_eq!(reader.deliver().await.offset, 4);
}

#[tokio::test]
async fn the_credit_of_a_pattern_is_shared_in_turn() {
    let hub = Running::start().await;
    for topic in ["t/1", "t/2", "t/3"] {
        hub.enqueue_numbered(topic, 0, 2000).await;
    }
    let mut reader = hub.subscribe("stream=t/*&from=first").await;
    reader.credit(1500).await;
    let (mut counts, mut left) = (std::collections::HashMap::new(), 1500);
    while left > 0 {
        let frame = reader.frame().await;
        if frame["status"].is_null() {
            *counts.entry(frame["stream"].to_string()).or_insert(0) += 1;
            left -= 1;
        }
    }
    assert_eq!(counts.len(), 3, "{counts:?}");
    assert!(counts.values().all(|count| *count >= 250), "{counts:?}");
}

#[tokio::test]
async fn a_reader_may_seek_and_a_consumer_may_not() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 6).await;
    let mut reader = reader(&hub, "from=4").await;
    assert_eq!(offsets(&reader.take(2).await), [4, 5]);
    let generation = reader.first["generation"].clone();
    let seeks = [
        (json!({"offset": 2}), (2, true)),
        (json!({"stream": "log", "offset": 5, "generation": generation}), (5, true)),
        (json!({"offset": 1, "generation": 1}), (0, false)),
        (json!({"offset": 99}), (6, false)),
    ];
    for (seek, (offset, recovered)) in seeks {
        reader.send(json!({"seek": seek})).await;
        let joined = reader.frame().await;
        assert_eq!((&joined["status"], &joined["offset"]), (&json!("joined"), &json!(offset)));
        assert_eq!(joined["recovered"], recovered, "{seek}");
        let rest = reader.take(6 - offset as usize).await;
        assert_eq!(offsets(&rest), (offset..6).collect::<Vec<_>>(), "{seek}");
    }
    let mut member = hub.subscribe("stream=log&consumer=c").await;
    member.send(json!({"seek": {"offset": 0}})).await;
    assert_eq!(member.ending().await, crate::socket::Ending::new("NotAConsumer", 1003));
}

#[tokio::test]
async fn a_place_in_a_stream_that_was_not_there_yet_is_gone_on_from() {
    let hub = Running::start().await;
    let waiting = reader(&hub, "from=first").await;
    let (offset, generation) = (&waiting.first["offset"], &waiting.first["generation"]);
    assert_eq!((offset, generation), (&json!(0), &json!(0)));
    waiting.close().await;
    hub.enqueue_numbered("log", 0, 2).await;
    let mut again = reader(&hub, "from=0&generation=0").await;
    assert_eq!(place(&again), (0, true));
    assert_eq!(offsets(&again.take(2).await), [0, 1]);
    // Messages that were removed meanwhile are missing to it.
    assert_eq!(hub.post("/v1/purge/log", json!({"before": 1})).await.status, 200);
    assert_eq!(place(&reader(&hub, "from=0&generation=0").await), (1, false));
}
