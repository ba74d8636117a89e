//! Whatever is removed, trimmed, changed or opened again: those who read go on, and are told the
//! truth.

use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use sealane_protocol::{AckMark, Op, ServerFrame};
use sealane_stream::{
    ConsumerChange, HubConfig, Level, ReadStart, Retention, StreamChange, StreamEnqueue,
    StreamEnvelope, StreamHub, StreamSubscription, SubscriptionOutput, SubscriptionReader,
};
use sealane_testing::until_async;

fn open(folder: &tempfile::TempDir) -> StreamHub {
    let (folder, level) = (folder.path().to_owned(), Level::Os);
    StreamHub::open(HubConfig { folder, level, retention: Retention::default() }).unwrap()
}

async fn enqueue(hub: &StreamHub, topic: &str, id: &str) {
    let body = format!(r#"{{"id":"{id}"}}"#);
    let mut scratch = Transcoder::new();
    let envelope =
        StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, body.as_bytes()).unwrap();
    let (topic, envelopes) = (topic.parse().unwrap(), vec![envelope]);
    let enqueue = StreamEnqueue {
        topic,
        envelopes,
        expect: None,
        delay_ms: None,
        key: None,
        owner: "".into(),
    };
    hub.enqueue(enqueue).await.unwrap();
}

async fn member(hub: &StreamHub, pattern: &str, max_in_flight: Option<u32>) -> StreamSubscription {
    let change = ConsumerChange { max_in_flight, ..ConsumerChange::default() };
    let who = SubscriptionReader::Member {
        name: "x".into(),
        owner: String::new(),
        start: ReadStart::First,
        change,
        steers: Default::default(),
    };
    hub.subscribe(pattern.parse().unwrap(), who).await.unwrap().0
}

/// Takes what comes within a second.
async fn take(subscription: &mut StreamSubscription) -> Vec<SubscriptionOutput> {
    let mut events = Vec::new();
    let second = Duration::from_secs(1);
    if tokio::time::timeout(second, subscription.ready()).await.is_ok() {
        subscription.take(100, 1 << 20, &mut events).await.unwrap();
    }
    events
}

fn offsets(events: &[SubscriptionOutput]) -> Vec<(String, u64)> {
    let place = |event: &SubscriptionOutput| match event {
        SubscriptionOutput::Deliver(one) => Some((one.stream().to_string(), one.offset())),
        SubscriptionOutput::Status(_) => None,
    };
    events.iter().filter_map(place).collect()
}

/// Waits until retention has taken everything below `first`.
async fn trimmed(hub: &StreamHub, topic: &str, first: u64) {
    let topic = topic.parse().unwrap();
    until_async("the first ones go", async || hub.stream(&topic).unwrap().first >= first).await;
}

/// The place in which a member remembers a message's id names a slot, and the slot of a removed
/// stream goes to the next stream that is met.
#[tokio::test]
async fn an_acknowledgement_of_a_removed_stream_is_none_of_another_stream() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let mut first = member(&hub, "p/*", None).await;
    first.apply(Op::Credit(10)).unwrap();
    enqueue(&hub, "p/a", "of-a").await;
    assert_eq!(offsets(&take(&mut first).await), [("p/a".into(), 0)]);
    hub.remove(&"p/a".parse().unwrap()).await.unwrap();
    assert!(take(&mut first).await.is_empty());
    enqueue(&hub, "p/b", "of-b").await;
    assert_eq!(offsets(&take(&mut first).await), [("p/b".into(), 0)]);
    first.apply(Op::Ack(vec![AckMark::Id("of-a".into())])).unwrap();
    drop(first);
    let mut second = member(&hub, "p/*", None).await;
    second.apply(Op::Credit(10)).unwrap();
    let again = offsets(&take(&mut second).await);
    assert_eq!(again, [("p/b".into(), 0)], "it was never acknowledged");
}

/// Offsets are of a stream: the same range of another one of the pattern stays in flight.
#[tokio::test]
async fn a_range_is_acknowledged_in_the_stream_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    enqueue(&hub, "p/a", "of-a").await;
    enqueue(&hub, "p/b", "of-b").await;
    for (done, left) in [("p/b", "p/a"), ("p/a", "p/b")] {
        let name = format!("done-with-{}", &done[2..]);
        let member = || async {
            let change = ConsumerChange::default();
            let (name, owner) = (name.clone(), String::new());
            let who = SubscriptionReader::Member {
                name,
                owner,
                start: ReadStart::First,
                change,
                steers: Default::default(),
            };
            hub.subscribe("p/*".parse().unwrap(), who).await.unwrap().0
        };
        let mut first = member().await;
        first.apply(Op::Credit(10)).unwrap();
        assert_eq!(offsets(&take(&mut first).await).len(), 2);
        let stream = Some(done.parse().unwrap());
        first.apply(Op::Ack(vec![AckMark::Range { stream, from: 0, to: 0 }])).unwrap();
        drop(first);
        let mut second = member().await;
        second.apply(Op::Credit(10)).unwrap();
        assert_eq!(offsets(&take(&mut second).await), [(left.into(), 0)]);
    }
}

/// Retention makes room below `max_in_flight` and wakes nobody.
#[tokio::test]
async fn a_member_goes_on_when_retention_takes_what_it_had_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    for id in ["0", "1", "2", "3"] {
        enqueue(&hub, "s", id).await;
    }
    let mut member = member(&hub, "s", Some(1)).await;
    member.apply(Op::Credit(10)).unwrap();
    assert_eq!(offsets(&take(&mut member).await), [("s".into(), 0)]);
    let change = StreamChange { max_count: Some(2), ..StreamChange::default() };
    hub.configure(&"s".parse().unwrap(), change).await.unwrap();
    trimmed(&hub, "s", 2).await;
    member.apply(Op::Ack(vec![AckMark::Id("0".into())])).unwrap();
    let next = offsets(&take(&mut member).await);
    assert_eq!(next, [("s".into(), 2)], "nothing is in flight, and there is credit");
}

/// A reader by pattern is told of a stream, and looks at it later. If retention takes messages in
/// between, a gap or `recovered` tells the reader.
#[tokio::test]
async fn a_reader_by_pattern_is_told_of_what_retention_took_before_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let who = SubscriptionReader::Reader { start: ReadStart::New, generation: None };
    let (mut reader, _) = hub.subscribe("p/*".parse().unwrap(), who).await.unwrap();
    reader.apply(Op::Credit(10)).unwrap();
    for id in ["0", "1", "2", "3"] {
        enqueue(&hub, "p/a", id).await;
    }
    let change = StreamChange { max_count: Some(2), ..StreamChange::default() };
    hub.configure(&"p/a".parse().unwrap(), change).await.unwrap();
    trimmed(&hub, "p/a", 2).await;
    let events = take(&mut reader).await;
    assert_eq!(offsets(&events), [("p/a".into(), 2), ("p/a".into(), 3)]);
    let is_told = events.iter().any(|event| match event {
        SubscriptionOutput::Status(ServerFrame::Joined(joined)) => !joined.recovered,
        SubscriptionOutput::Status(ServerFrame::Gap { from: 0, to: 1, .. }) => true,
        _ => false,
    });
    assert!(is_told, "two messages that came since it was there are gone: {events:?}");
}

/// A member that raises `max_in_flight` changes it for all, and wakes nobody.
#[tokio::test]
async fn a_member_goes_on_when_another_raises_what_may_be_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    for id in ["0", "1", "2"] {
        enqueue(&hub, "s", id).await;
    }
    let mut first = member(&hub, "s", Some(1)).await;
    first.apply(Op::Credit(10)).unwrap();
    assert_eq!(offsets(&take(&mut first).await), [("s".into(), 0)]);
    let _second = member(&hub, "s", Some(10)).await;
    let next = offsets(&take(&mut first).await);
    assert_eq!(next, [("s".into(), 1), ("s".into(), 2)], "the other has no credit");
}

/// A consumer whose row is damaged begins anew, and what it does then is stored as changes of the
/// damaged row.
#[tokio::test]
async fn a_damaged_consumer_begins_anew_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    for id in ["0", "1", "2"] {
        enqueue(&hub, "s", id).await;
    }
    let all = || Op::Ack(vec![AckMark::Range { stream: None, from: 0, to: 2 }]);
    let mut before = member(&hub, "s", None).await;
    before.apply(Op::Credit(10)).unwrap();
    assert_eq!(take(&mut before).await.len(), 3);
    before.apply(all()).unwrap();
    drop(before);
    hub.close().unwrap();
    let store = rusqlite::Connection::open(folder.path().join("streams.db")).unwrap();
    store.execute("UPDATE consumer SET state = x'ff'", []).unwrap();
    drop(store);

    let hub = open(&folder);
    let mut again = member(&hub, "s", None).await;
    again.apply(Op::Credit(10)).unwrap();
    assert_eq!(take(&mut again).await.len(), 3, "it begins anew");
    again.apply(all()).unwrap();
    drop(again);
    hub.close().unwrap();

    let hub = open(&folder);
    let topic = "s".parse().unwrap();
    let consumer = hub.stream(&topic).unwrap().consumers[0].clone();
    assert_eq!((consumer.next, consumer.in_flight), (3, 0), "all were acknowledged");
}

/// If a message was in flight for the last time when the hub ended, it is dead after the restart.
/// The clock does not look after a consumer that no member has joined since.
#[tokio::test]
async fn a_message_out_of_attempts_becomes_a_dead_letter_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    enqueue(&hub, "s", "0").await;
    let change = ConsumerChange { max_attempts: Some(1), ..ConsumerChange::default() };
    let who = SubscriptionReader::Member {
        name: "x".into(),
        owner: String::new(),
        start: ReadStart::First,
        change,
        steers: Default::default(),
    };
    let (mut member, _) = hub.subscribe("s".parse().unwrap(), who).await.unwrap();
    member.apply(Op::Credit(1)).unwrap();
    assert_eq!(take(&mut member).await.len(), 1);
    hub.close().unwrap();
    drop((member, hub));

    let hub = open(&folder);
    let letters = || hub.stream(&"dead/s".parse().unwrap()).map_or(0, |info| info.next);
    // It was delivered once, and may not be again.
    until_async("there is a letter", async || letters() == 1).await;
}
