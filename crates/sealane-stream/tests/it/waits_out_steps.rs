//! The clock of the machine is set, ahead and back, an hour and forty days and to 1970 and 2053: no
//! message of a member is buried or held back by it, and none goes for its age (spec/store.md §11).

use std::path::Path;
use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_protocol::{AckMark, Op};
use sealane_stream::{
    ConsumerChange, HubClock, HubConfig, IdempotencyKey, Level, ReadStart, Retention,
    SteeredTopics, StreamChange, StreamEnqueue, StreamEnvelope, StreamHub, StreamSubscription,
    SubscriptionOutput, SubscriptionReader,
};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// An hour and forty days ahead and back, from now to 1970, and to 2053.
const STEPS: [i64; 6] =
    [HOUR_MS, -HOUR_MS, 40 * DAY_MS, -40 * DAY_MS, -56 * 365 * DAY_MS, 27 * 365 * DAY_MS];

fn open(folder: &Path, clock: &HubClock) -> StreamHub {
    let (level, retention) = (Level::Disk, Retention::default());
    let config = HubConfig { folder: folder.to_owned(), level, retention };
    StreamHub::open_by(config, clock.clone()).unwrap()
}

fn messages(hub: &StreamHub, topic: &str, count: usize) -> StreamEnqueue {
    let read =
        |_| StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, b"{}").unwrap();
    let (topic, envelopes) = (topic.parse().unwrap(), (0..count).map(read).collect());
    StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner: "".into() }
}

async fn member(hub: &StreamHub, topic: &str, change: ConsumerChange) -> StreamSubscription {
    let (start, owner) = (ReadStart::First, String::new());
    let (name, steers) = ("c".into(), SteeredTopics::default());
    let who = SubscriptionReader::Member { name, owner, start, change, steers };
    let (mut member, _) = hub.subscribe(topic.parse().unwrap(), who).await.unwrap();
    member.apply(Op::Credit(100)).unwrap();
    member
}

/// The attempts of what comes within this time.
async fn attempts(member: &mut StreamSubscription, time: Duration) -> Vec<u32> {
    let mut out: Vec<SubscriptionOutput> = Vec::new();
    let until = tokio::time::Instant::now() + time;
    while out.is_empty() && tokio::time::Instant::now() < until {
        let _ = tokio::time::timeout_at(until, member.take(100, 1 << 20, &mut out)).await;
    }
    let attempt = |one: &SubscriptionOutput| match one {
        SubscriptionOutput::Deliver(delivery) => Some(delivery.attempt()),
        SubscriptionOutput::Status(_) => None,
    };
    out.iter().filter_map(attempt).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_holds_comes_again_in_its_time_whatever_the_clock_does() {
    for step in STEPS {
        let (folder, clock) = (tempfile::tempdir().unwrap(), HubClock::system());
        let hub = open(folder.path(), &clock);
        hub.enqueue(messages(&hub, "a", 2)).await.unwrap();
        let change = ConsumerChange {
            ack_wait_ms: Some(600_000),
            max_attempts: Some(1),
            ..ConsumerChange::default()
        };
        let mut first = member(&hub, "a", change).await;
        assert_eq!(attempts(&mut first, Duration::from_secs(5)).await, [1, 1]);
        clock.step(step);
        tokio::time::sleep(Duration::from_millis(150)).await;
        let state = hub.stream(&"a".parse().unwrap()).unwrap();
        let consumer = &state.consumers[0];
        let counts = (consumer.in_flight, consumer.dead_lettered);
        assert_eq!(counts, (2, 0), "{step}: held for no time");
        // The time that they may be held for passes.
        clock.pass(Duration::from_secs(601));
        for _ in 0..200 {
            let state = hub.stream(&"a".parse().unwrap()).unwrap();
            if state.consumers[0].dead_lettered == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        let state = hub.stream(&"a".parse().unwrap()).unwrap();
        assert_eq!(state.consumers[0].dead_lettered, 2, "{step}: after the time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_comes_again_after_its_delay_whatever_the_clock_does() {
    for step in STEPS {
        let (folder, clock) = (tempfile::tempdir().unwrap(), HubClock::system());
        let hub = open(folder.path(), &clock);
        hub.enqueue(messages(&hub, "a", 1)).await.unwrap();
        let mut one = member(&hub, "a", ConsumerChange::default()).await;
        assert_eq!(attempts(&mut one, Duration::from_secs(5)).await, [1]);
        let mark = AckMark::Range { stream: None, from: 0, to: 0 };
        one.apply(Op::Nack(vec![mark], 60_000)).unwrap();
        clock.step(step);
        let early = attempts(&mut one, Duration::from_millis(300)).await;
        assert!(early.is_empty(), "{step}: at once");
        clock.pass(Duration::from_secs(61));
        assert_eq!(attempts(&mut one, Duration::from_secs(20)).await, [2], "{step}: in time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_for_its_age_by_a_step_of_the_clock() {
    for step in STEPS {
        let (folder, clock) = (tempfile::tempdir().unwrap(), HubClock::system());
        let hub = open(folder.path(), &clock);
        let topic: Topic = "a".parse().unwrap();
        let day = StreamChange { max_age_ms: Some(DAY_MS as u64), ..StreamChange::default() };
        hub.configure(&topic, day).await.unwrap();
        clock.pass(Duration::from_secs(700));
        hub.enqueue(messages(&hub, "a", 5)).await.unwrap();
        let key = || Some(IdempotencyKey::new(b"", b"once", b"{}").unwrap());
        hub.enqueue(StreamEnqueue { key: key(), ..messages(&hub, "a", 1) }).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        clock.step(step);
        tokio::time::sleep(Duration::from_millis(300)).await;
        hub.enqueue(messages(&hub, "a", 1)).await.unwrap();
        let first = |hub: &StreamHub| hub.stream(&topic).unwrap().first;
        // Before the clock is calm, when it is, and in a hub that starts then.
        for time in [300, 400, 3600] {
            clock.pass(Duration::from_secs(time));
            tokio::time::sleep(Duration::from_millis(600)).await;
            assert_eq!(first(&hub), 0, "{step}: {time} s later");
        }
        let again = hub.enqueue(StreamEnqueue { key: key(), ..messages(&hub, "a", 1) }).await;
        assert!(again.unwrap().replayed, "{step}: the key is there");
        hub.close().unwrap();
        let hub = open(folder.path(), &clock);
        clock.pass(Duration::from_secs(700));
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(first(&hub), 0, "{step}: after a start");
        // A day on, all of it has been there for a day.
        clock.pass(Duration::from_secs(25 * 3600));
        for _ in 0..400 {
            if first(&hub) == 7 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert_eq!(first(&hub), 7, "{step}: a day later");
    }
}
