//! An owner takes its own share: another is refused nothing and forgets nothing for it.
//! The hub counts the same after a start as before.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use sealane_protocol::{AckMark, Op};
use sealane_stream::{
    Error, HubClock, HubConfig, IdempotencyKey, Level, OwnShares, ReadStart, Retention,
    SessionItem, ShareKind, ShareRules, SteeredTopics, StreamEnqueue, StreamEnvelope, StreamHub,
    StreamSubscription, SubscriptionReader,
};

fn open(folder: &Path) -> StreamHub {
    open_by(folder, HubClock::system())
}

fn open_by(folder: &Path, clock: HubClock) -> StreamHub {
    let (level, retention) = (Level::Os, Retention::default());
    let hub = HubConfig { folder: folder.to_owned(), level, retention };
    let hub = StreamHub::open_by(hub, clock).unwrap();
    let small = [
        (ShareKind::Streams, 3),
        (ShareKind::GroupStreams, 1),
        (ShareKind::Delayed, 4),
        (ShareKind::Keys, 5),
        (ShareKind::MessageKeys, 5),
        (ShareKind::Sessions, 3),
        (ShareKind::Consumers, 2),
        (ShareKind::InFlight, 4),
    ];
    let small = small.into_iter().fold(OwnShares::default(), |own, (kind, n)| own.with(kind, n));
    hub.set_shares(ShareRules::new(2, HashMap::from([("a".to_owned(), small)])));
    hub
}

/// The holdings of each owner, in order.
fn held(hub: &StreamHub) -> Vec<(String, ShareKind, u64)> {
    let shares = hub.shares().into_iter().filter(|share| share.held > 0);
    let mut all: Vec<_> = shares.map(|share| (share.owner, share.kind, share.held)).collect();
    all.sort();
    all
}

fn held_of(hub: &StreamHub, owner: &str, kind: ShareKind) -> u64 {
    let all = held(hub);
    let found = all.iter().find(|(of, held, _)| of == owner && *held == kind);
    found.map_or(0, |(_, _, count)| *count)
}

fn enqueue_of(hub: &StreamHub, owner: &str, topic: &str, body: &str) -> StreamEnqueue {
    let read =
        StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, body.as_bytes());
    let (topic, envelopes, owner) = (topic.parse().unwrap(), vec![read.unwrap()], owner.into());
    StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner }
}

async fn enqueue(hub: &StreamHub, owner: &str, topic: &str) -> Result<(), Error> {
    hub.enqueue(enqueue_of(hub, owner, topic, "{}")).await.map(drop)
}

async fn delay(hub: &StreamHub, owner: &str, topic: &str, ms: u64) -> Result<(), Error> {
    let one = enqueue_of(hub, owner, topic, r#"{"id": "d"}"#);
    hub.enqueue(StreamEnqueue { delay_ms: Some(ms), ..one }).await.map(drop)
}

/// Enqueues with a key; returns whether it was a repetition.
async fn keyed(hub: &StreamHub, owner: &str, topic: &str, key: &str) -> bool {
    let one = enqueue_of(hub, owner, topic, "{}");
    let key = IdempotencyKey::new(owner.as_bytes(), key.as_bytes(), b"{}").unwrap();
    hub.enqueue(StreamEnqueue { key: Some(key), ..one }).await.unwrap().replayed
}

/// The same with the key that the hub makes of the message.
async fn by_content(hub: &StreamHub, owner: &str, topic: &str, body: &str) -> bool {
    let one = enqueue_of(hub, owner, topic, body);
    let key = IdempotencyKey::of_each(&[body.as_bytes()], &one.envelopes);
    hub.enqueue(StreamEnqueue { key: Some(key), ..one }).await.unwrap().replayed
}

fn taken(what: &'static str, limit: u64) -> Error {
    Error::ShareTaken { owner: "a".to_owned(), what, limit }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

#[tokio::test]
async fn streams_are_their_makers_and_places_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    for topic in ["a/1", "a/2", "groups/0a1b2c3d"] {
        enqueue(&hub, "a", topic).await.unwrap();
    }
    hub.configure_for("a".into(), &"a/3".parse().unwrap(), Default::default()).await.unwrap();
    let refused = enqueue(&hub, "a", "a/4").await;
    assert_eq!(refused, Err(taken("streams", 3)));
    let topic = "a/4".parse().unwrap();
    let refused = hub.configure_for("a".into(), &topic, Default::default()).await.unwrap_err();
    assert_eq!(refused, taken("streams", 3));
    let refused = enqueue(&hub, "a", "groups/0a1b2c3e").await;
    assert_eq!(refused, Err(taken("streams below `groups/`", 1)));
    // Streams that are there take from everybody who may publish there, and count for their makers.
    enqueue(&hub, "a", "a/1").await.unwrap();
    for n in 0..10 {
        enqueue(&hub, "b", &format!("b/{n}")).await.unwrap();
    }
    enqueue(&hub, "a", "b/1").await.unwrap();
    let before = held(&hub);
    assert_eq!(held_of(&hub, "b", ShareKind::Streams), 10);
    hub.close().unwrap();
    let hub = open(folder.path());
    assert_eq!(held(&hub), before);
    hub.remove(&"a/2".parse().unwrap()).await.unwrap();
    enqueue(&hub, "a", "a/4").await.unwrap();
    assert_eq!(enqueue(&hub, "a", "a/2").await, Err(taken("streams", 3)));
}

#[tokio::test]
async fn a_crowd_in_one_commit_passes_no_share() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let topics: Vec<String> = (0..40).map(|n| format!("a/{n}")).collect();
    let all = topics.iter().map(|topic| enqueue(&hub, "a", topic));
    let said: Vec<_> = futures_util::future::join_all(all).await;
    assert_eq!(said.iter().filter(|said| said.is_ok()).count(), 3);
    let all = topics.iter().take(1).cycle().take(40).map(|topic| delay(&hub, "a", topic, 1 << 30));
    let said: Vec<_> = futures_util::future::join_all(all).await;
    assert_eq!(said.iter().filter(|said| said.is_ok()).count(), 4);
    assert_eq!(hub.share_sum(ShareKind::Delayed), 4);
}

#[tokio::test]
async fn delayed_messages_are_of_those_who_sent_them() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    enqueue(&hub, "b", "s").await.unwrap();
    for _ in 0..3 {
        delay(&hub, "a", "s", 1 << 30).await.unwrap();
    }
    delay(&hub, "a", "s", 1).await.unwrap();
    until("it comes", || held_of(&hub, "a", ShareKind::Delayed) == 3).await;
    delay(&hub, "a", "s", 1 << 30).await.unwrap();
    assert_eq!(delay(&hub, "a", "s", 1 << 30).await, Err(taken("delayed messages", 4)));
    for _ in 0..9 {
        delay(&hub, "b", "t", 1 << 30).await.unwrap();
    }
    let before = held(&hub);
    hub.close().unwrap();
    let hub = open(folder.path());
    assert_eq!(held(&hub), before);
    assert_eq!(delay(&hub, "a", "s", 1 << 30).await, Err(taken("delayed messages", 4)));
    hub.cancel(&"s".parse().unwrap(), "d".to_owned()).await.unwrap();
    assert_eq!(held_of(&hub, "a", ShareKind::Delayed), 0);
    hub.remove(&"t".parse().unwrap()).await.unwrap();
    until("what was held back goes", || held_of(&hub, "b", ShareKind::Delayed) == 0).await;
}

#[tokio::test]
async fn keys_that_are_too_many_push_out_their_own_owners() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    assert!(!keyed(&hub, "b", "s", "k").await && !by_content(&hub, "b", "s", r#"{"n": 0}"#).await);
    for n in 0..5 {
        assert!(!keyed(&hub, "a", "s", &format!("k{n}")).await);
    }
    for n in 1..60 {
        assert!(!by_content(&hub, "a", "s", &format!(r#"{{"n": {n}}}"#)).await);
    }
    until("keys of messages go", || held_of(&hub, "a", ShareKind::MessageKeys) <= 5).await;
    // The keys of messages have pushed out none that a client named.
    assert!(keyed(&hub, "a", "s", "k0").await);
    for n in 5..60 {
        assert!(!keyed(&hub, "a", "s", &format!("k{n}")).await);
    }
    until("keys go", || held_of(&hub, "a", ShareKind::Keys) <= 5).await;
    assert!(keyed(&hub, "b", "s", "k").await && by_content(&hub, "b", "s", r#"{"n": 0}"#).await);
    assert!(keyed(&hub, "a", "s", "k59").await && !keyed(&hub, "a", "s", "k1").await);
    let before = held(&hub);
    hub.close().unwrap();
    let hub = open(folder.path());
    assert_eq!(held(&hub), before);
    hub.remove(&"s".parse().unwrap()).await.unwrap();
    until("what is left goes", || held(&hub).is_empty()).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_makes_no_newest_key_the_oldest() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), HubClock::system());
    let mut hub = open_by(folder.path(), clock.clone());
    for n in 0..5 {
        assert!(!keyed(&hub, "a", "s", &format!("old{n}")).await);
        publish(&hub, "a", &format!("old{n}"), 1).await.unwrap();
    }
    clock.step(-7_200_000);
    // A start in between knows what was stored last.
    for start in 0..2 {
        for n in 0..4 {
            assert!(!keyed(&hub, "a", "s", &format!("new{start}{n}")).await);
        }
        until("keys go", || held_of(&hub, "a", ShareKind::Keys) <= 5).await;
        for n in 0..4 {
            assert!(keyed(&hub, "a", "s", &format!("new{start}{n}")).await, "{start} {n}");
        }
        hub.close().unwrap();
        hub = open_by(folder.path(), clock.clone());
    }
}

#[tokio::test]
async fn a_delayed_message_that_is_refused_uses_up_no_share() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    for n in 0..3 {
        enqueue(&hub, "a", &format!("a/{n}")).await.unwrap();
    }
    let topics: Vec<String> = (3..40).map(|n| format!("a/{n}")).chain(["a/0".into()]).collect();
    let all = topics.iter().map(|topic| delay(&hub, "a", topic, 1 << 30));
    let mut said = futures_util::future::join_all(all).await;
    assert_eq!(said.pop(), Some(Ok(())));
    assert!(said.iter().all(|said| *said == Err(taken("streams", 3))), "{said:?}");
}

async fn publish(hub: &StreamHub, owner: &str, session: &str, n: u64) -> Result<(), Error> {
    let publishing = hub.publishing(owner, session).unwrap();
    let envelope = StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, b"{}");
    let (topic, envelope) = ("s".parse().unwrap(), envelope.unwrap());
    let digest = SessionItem::digest_of(b"{}");
    let items = vec![SessionItem { topic, n, envelope, expect: None, delay_ms: None, digest }];
    let room = publishing.room(&items).await.unwrap();
    publishing.publish(items, 16, room).unwrap();
    let mut answers = Vec::new();
    publishing.answers(&mut answers).await.unwrap();
    answers.remove(0).result.map(drop)
}

#[tokio::test]
async fn sessions_that_are_too_many_push_out_their_own_owners() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    // Their rows stand on both sides of those of `a`, in the order in which rows go.
    for other in ["A", "b"] {
        publish(&hub, other, other, 1).await.unwrap();
    }
    for n in 0..40 {
        publish(&hub, "a", &format!("a{n:02}"), 1).await.unwrap();
    }
    until("sessions go", || held_of(&hub, "a", ShareKind::Sessions) <= 3).await;
    for other in ["A", "b"] {
        publish(&hub, other, other, 2).await.unwrap();
    }
    let before = held(&hub);
    hub.close().unwrap();
    let hub = open(folder.path());
    assert_eq!(held(&hub), before);
    publish(&hub, "b", "b", 3).await.unwrap();
}

async fn join(hub: &StreamHub, owner: &str, name: &str) -> Result<StreamSubscription, Error> {
    let who = SubscriptionReader::Member {
        name: name.to_owned(),
        owner: owner.to_owned(),
        start: ReadStart::First,
        change: Default::default(),
        steers: SteeredTopics::default(),
    };
    hub.subscribe("s".parse().unwrap(), who).await.map(|(subscription, _)| subscription)
}

#[tokio::test]
async fn consumers_are_their_makers_and_everybody_takes_part() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    enqueue(&hub, "b", "s").await.unwrap();
    for name in ["1", "2", "1"] {
        join(&hub, "a", name).await.unwrap();
    }
    assert_eq!(join(&hub, "a", "3").await.err(), Some(taken("consumers", 2)));
    for n in 0..9 {
        join(&hub, "b", &format!("b{n}")).await.unwrap();
    }
    join(&hub, "a", "b1").await.unwrap();
    let before = held(&hub);
    hub.close().unwrap();
    let hub = open(folder.path());
    assert_eq!(held(&hub), before);
    assert_eq!(join(&hub, "a", "3").await.err(), Some(taken("consumers", 2)));
    hub.remove_consumer(&"s".parse().unwrap(), "1").await.unwrap();
    join(&hub, "a", "3").await.unwrap();
    hub.remove(&"s".parse().unwrap()).await.unwrap();
    assert_eq!(held(&hub), []);
}

/// Takes what comes soon; returns how many that were.
async fn take(member: &mut StreamSubscription) -> usize {
    let mut out = Vec::new();
    let taking = async {
        loop {
            member.ready().await;
            member.take(100, 1 << 20, &mut out).await.unwrap();
        }
    };
    let _: Result<(), _> = tokio::time::timeout(Duration::from_millis(600), taking).await;
    out.len()
}

#[tokio::test]
async fn messages_in_flight_are_of_the_consumers_owner_and_all_its_consumers_share_them() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    for _ in 0..9 {
        enqueue(&hub, "b", "s").await.unwrap();
    }
    let mut members = Vec::new();
    for (owner, name) in [("a", "1"), ("a", "2"), ("b", "b")] {
        let mut member = join(&hub, owner, name).await.unwrap();
        member.apply(Op::Credit(1000)).unwrap();
        members.push(member);
    }
    let [first, second, other] = &mut members[..] else { unreachable!() };
    assert_eq!((take(first).await, take(second).await, take(other).await), (4, 0, 9));
    let ack = |from, to| Op::Ack(vec![AckMark::Range { stream: None, from, to }]);
    first.apply(ack(0, 1)).unwrap();
    // The first that looks has what came free: here the second, which was waiting for it.
    assert_eq!(take(second).await, 2);
    assert_eq!(held_of(&hub, "a", ShareKind::InFlight), 4);
    second.apply(ack(0, 1)).unwrap();
    first.apply(ack(2, 3)).unwrap();
    assert_eq!(take(first).await, 4);
    drop(members);
    let count = |hub: &StreamHub| held_of(hub, "a", ShareKind::InFlight);
    assert_eq!(count(&hub), 4, "what nobody finished is still in flight");
    hub.close().unwrap();
    let hub = open(folder.path());
    assert_eq!(count(&hub), 4);
    hub.remove_consumer(&"s".parse().unwrap(), "1").await.unwrap();
    assert_eq!(count(&hub), 0);
}

#[tokio::test]
async fn settings_of_a_consumer_are_its_makers_and_of_who_may_manage_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    enqueue(&hub, "b", "s").await.unwrap();
    let join = async |owner: &str, max_in_flight, steers| {
        let change = sealane_stream::ConsumerChange { max_in_flight, ..Default::default() };
        let (name, owner, start) = ("c".to_owned(), owner.to_owned(), ReadStart::First);
        let who = SubscriptionReader::Member { name, owner, start, change, steers };
        hub.subscribe("s".parse().unwrap(), who).await.map(drop)
    };
    join("b", Some(7), SteeredTopics::default()).await.unwrap();
    // Another one takes part, with no settings or those that there are.
    join("a", None, SteeredTopics::default()).await.unwrap();
    join("a", Some(7), SteeredTopics::default()).await.unwrap();
    let refused = join("a", Some(1), SteeredTopics::default()).await.unwrap_err();
    let said = Error::ConsumerNotYours { stream: "s".to_owned(), consumer: "c".to_owned() };
    assert_eq!(refused, said);
    let max = async || {
        let info = hub.consumer(&"s".parse().unwrap(), "c").await.unwrap();
        info.settings.max_in_flight
    };
    assert_eq!(max().await, 7);
    join("a", Some(1), SteeredTopics::new(|topic| topic.as_str() == "s")).await.unwrap();
    assert_eq!(max().await, 1);
    join("b", Some(8), SteeredTopics::default()).await.unwrap();
    assert_eq!(max().await, 8);
}
