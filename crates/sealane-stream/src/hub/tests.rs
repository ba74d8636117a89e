//! The writer's promises on a store that fails when it is told to.

use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use sealane_protocol::{AckMark, ConsumerChange, EnqueueOutcome, ListDelayed, Op};

use super::*;
use crate::consumer::ConsumerSteer;
use crate::envelope::EnvelopeBuffer;
use crate::limits::MIN_OWNER_STREAMS;
use crate::limits::{CLOCK_CALM_MS, MAX_GROUP_STREAMS, MAX_IDEMPOTENCY_AGE_MS, MAX_STREAMS};
use crate::writer::{ManageCommand, ManageDeed};
use crate::{SessionItem, ShareRules};

fn open(folder: &tempfile::TempDir) -> StreamHub {
    let (folder, level) = (folder.path().to_owned(), Level::Os);
    StreamHub::open(HubConfig { folder, level, retention: Retention::default() }).unwrap()
}

fn messages(hub: &StreamHub, topic: &str, count: usize) -> StreamEnqueue {
    let read =
        |_| StreamEnvelope::read(&mut Transcoder::new(), &hub.ids, Codec::Json, b"{}").unwrap();
    let (topic, envelopes) = (topic.parse().unwrap(), (0..count).map(read).collect());
    StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner: "".into() }
}

fn open_by_clock(folder: &tempfile::TempDir) -> (StreamHub, HubClock) {
    let (folder, level, clock) = (folder.path().to_owned(), Level::Os, HubClock::system());
    let config = HubConfig { folder, level, retention: Retention::default() };
    (StreamHub::open_by(config, clock.clone()).unwrap(), clock)
}

/// Lets the ten minutes pass in which nothing goes for its age.
async fn calm(clock: &HubClock) {
    clock.pass(Duration::from_millis(CLOCK_CALM_MS));
    sleep_ms(300).await;
}

async fn sleep_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// A commit that stores what a `memory` stream was answered for and at once takes it off for its
/// age must not write a row whose `next` is below its `first`.
#[tokio::test]
async fn no_message_gets_an_offset_below_the_first_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, clock) = open_by_clock(&folder);
    calm(&clock).await;
    let topic: Topic = "m".parse().unwrap();
    let (level, max_age_ms) = (Some(Level::Memory), Some(20));
    let change = StreamChange { level, max_age_ms, ..StreamChange::default() };
    hub.configure(&topic, change).await.unwrap();
    hub.store_trouble.refuse_blocks(true);
    assert_eq!(hub.enqueue(messages(&hub, "m", 5)).await.unwrap().offset, 0);
    // The writer waits to copy its log, and retention is due by the next commit.
    {
        let _copying = hub.registry.log.copying.lock();
        std::thread::sleep(Duration::from_millis(400));
        hub.store_trouble.end();
        hub.store_trouble.fail_at(1, store::StoreFault::Full, false);
    }
    while hub.stream(&topic).unwrap().first == 0 {
        sleep_ms(1).await;
    }
    hub.store_trouble.fail_at(1, store::StoreFault::Failed("the process is dead".into()), true);
    let _ = hub.close();

    let hub = open(&folder);
    let info = hub.stream(&topic).unwrap();
    hub.configure(&topic, StreamChange { max_age_ms: Some(0), ..StreamChange::default() })
        .await
        .unwrap();
    let offset = hub.enqueue(messages(&hub, "m", 1)).await.unwrap().offset;
    let page = hub.read(&topic, ReadStart::Offset(offset), 10).await.unwrap();
    let is_read = page.events.iter().any(|event| matches!(event, SubscriptionOutput::Deliver(_)));
    let (first, next) = (info.first, info.next);
    assert!(is_read, "first {first}, next {next}: offset {offset} was acknowledged");
}

/// If a stream is removed, its acknowledged messages that the store has not got yet are not stored
/// any more. This also holds if the removing commit was stripped of all that adds.
#[tokio::test]
async fn nothing_is_stored_of_a_stream_that_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let gone = "gone".parse().unwrap();
    let memory = StreamChange { level: Some(Level::Memory), ..StreamChange::default() };
    hub.configure(&gone, memory).await.unwrap();
    hub.store_trouble.refuse_blocks(true);
    hub.enqueue(messages(&hub, "gone", 1)).await.unwrap();
    // The first keeps the writer at work until the other two wait together.
    let (first, removed, third) = tokio::join!(
        hub.enqueue(messages(&hub, "busy", 500)),
        hub.remove(&gone),
        hub.enqueue(messages(&hub, "other", 1)),
    );
    assert_eq!(removed, Ok(()));
    assert!(first.is_err() && third.is_err(), "they share a commit that is stripped");
    sleep_ms(200).await;
    hub.store_trouble.end();
    hub.enqueue(messages(&hub, "other", 1)).await.unwrap();
    sleep_ms(200).await;
    hub.close().unwrap();
    let store = rusqlite::Connection::open(folder.path().join("streams.db")).unwrap();
    let strangers = "SELECT count(*) FROM block WHERE key >> 40 NOT IN
        (SELECT number FROM stream UNION SELECT stream FROM removed)";
    let strangers: i64 = store.query_row(strangers, [], |row| row.get(0)).unwrap();
    assert_eq!(strangers, 0, "blocks that belong to nobody and are never swept");
}

/// The search by time looks into the store alone, and messages of a `memory` stream are readable
/// before they are there.
#[tokio::test]
async fn reading_from_a_time_finds_what_is_not_stored_yet() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "m".parse().unwrap();
    let memory = StreamChange { level: Some(Level::Memory), ..StreamChange::default() };
    hub.configure(&topic, memory).await.unwrap();
    hub.store_trouble.refuse_blocks(true);
    hub.enqueue(messages(&hub, "m", 3)).await.unwrap();
    let first = hub.read(&topic, ReadStart::First, 10).await.unwrap();
    assert_eq!(first.events.len(), 3, "they can be read");
    let since = hub.read(&topic, ReadStart::Time(1), 10).await.unwrap();
    hub.store_trouble.end();
    assert_eq!(since.events.len(), 3, "they all came after 1970");
}

/// A `memory` stream becomes a `disk` stream while the store is full, and after a kill nothing
/// shows that it has lost what it was answered for before.
#[tokio::test]
async fn no_two_messages_share_generation_and_offset_when_a_level_changes() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "m".parse().unwrap();
    let level = |level| StreamChange { level: Some(level), ..StreamChange::default() };
    hub.configure(&topic, level(Level::Memory)).await.unwrap();
    hub.store_trouble.refuse_blocks(true);
    let lost = hub.enqueue(messages(&hub, "m", 1)).await.unwrap();
    let refused = hub.configure(&topic, level(Level::Disk)).await;
    assert_eq!(refused.map(|_| ()), Err(Error::StorageFull), "it is not stored with the rest");
    hub.store_trouble.fail_at(1, store::StoreFault::Failed("the process is dead".into()), true);
    let _ = hub.close();

    let hub = open(&folder);
    let other = hub.enqueue(messages(&hub, "m", 1)).await.unwrap();
    let position = |appended: &AppendedMessages| (appended.generation, appended.offset);
    assert_ne!(lost.ids, other.ids);
    assert_ne!(position(&lost), position(&other), "two messages have one position");
}

/// On a full disk messages are refused, and what consumers finish is stored all the same.
#[tokio::test]
async fn acknowledgements_outlive_a_kill_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "m".parse().unwrap();
    hub.enqueue(messages(&hub, "m", 5)).await.unwrap();
    let (name, owner) = ("c".to_owned(), String::new());
    let who = SubscriptionReader::Member {
        name,
        owner,
        start: ReadStart::First,
        change: Default::default(),
        steers: Default::default(),
    };
    let (mut member, _) = hub.subscribe(topic.clone().into(), who).await.unwrap();
    member.apply(Op::Credit(5)).unwrap();
    member.take(5, 1 << 20, &mut Vec::new()).await.unwrap();
    hub.store_trouble.set_full(true);
    let refused = hub.enqueue(messages(&hub, "m", 1)).await;
    assert_eq!(refused.map(|_| ()), Err(Error::StorageFull));
    member.apply(Op::Ack(vec![AckMark::Range { stream: None, from: 0, to: 3 }])).unwrap();
    sleep_ms(200).await;
    hub.store_trouble.fail_at(1, store::StoreFault::Failed("the process is dead".into()), true);
    drop(member);
    let _ = hub.close();

    let info = open(&folder).stream(&topic).unwrap();
    assert_eq!((info.consumers[0].next, info.consumers[0].in_flight), (5, 1));
}

/// A client that may make streams of all other names takes no group its control stream, and no
/// message its dead letter.
#[tokio::test]
async fn a_stream_that_is_made_under_a_clock_before_1970_has_a_generation() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, clock) = open_by_clock(&folder);
    clock.step(-100 * 365 * 24 * 3_600_000);
    let appended = hub.enqueue(messages(&hub, "a", 1)).await.unwrap();
    assert_eq!((appended.generation, appended.offset), (1, 0));
}

#[tokio::test]
async fn systems_have_room_for_their_streams_when_there_is_none_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    // Known to the registry, and to no store: they are never written.
    let known = |topic: String, number| {
        let row = store::StreamRow {
            number,
            topic: topic.parse().unwrap(),
            owner: String::new(),
            settings: StreamSettings {
                level: Level::Os,
                retention: Retention::default(),
                own_bounds: OwnBounds::default(),
            },
            created_ms: 0,
            sealed: None,
            first: 0,
            next: 0,
            last_ms: 0,
            bytes: 0,
            generations: vec![(0, 1)],
            damaged: Vec::new(),
            has_purged: false,
            consumers: Vec::new(),
        };
        hub.registry.insert(&Arc::new(StreamEntry::new(row)));
    };
    let first = 1_000_000;
    (0..MAX_STREAMS as u32).for_each(|n| known(format!("flood/{n}"), first + n));
    let refused = |what, limit: usize| Err(Error::TooMany { what, limit: limit as u64 });
    let make = async |topic: &str| hub.enqueue(messages(&hub, topic, 1)).await.map(|_| ());
    assert_eq!(make("more").await, refused("streams", MAX_STREAMS));
    assert_eq!(make("groups/0a1b2c3d").await, Ok(()));
    assert_eq!(make("dead/flood/1").await, Ok(()));
    (1..MAX_GROUP_STREAMS as u32).for_each(|n| known(format!("groups/{n}"), 2_000_000 + n));
    assert_eq!(make("groups/more").await, refused("streams below `groups/`", MAX_GROUP_STREAMS));
    assert_eq!(make("dead/flood/2").await, Ok(()));
    // However full the hub is, a token that is new has its floor.
    hub.set_shares(ShareRules::new(5, HashMap::new()));
    let of_token = async |topic: String| {
        let enqueue = StreamEnqueue { owner: "new".into(), ..messages(&hub, &topic, 1) };
        hub.enqueue(enqueue).await.map(|_| ())
    };
    for n in 0..MIN_OWNER_STREAMS {
        assert_eq!(of_token(format!("new/{n}")).await, Ok(()), "{n}");
    }
    assert_eq!(of_token("new/more".to_owned()).await, refused("streams", MAX_STREAMS));
    hub.set_shares(ShareRules::default());
    // One that goes makes room for one of its kind.
    hub.remove(&"groups/0a1b2c3d".parse().unwrap()).await.unwrap();
    assert_eq!(make("more").await, refused("streams", MAX_STREAMS));
    assert_eq!(make("groups/more").await, Ok(()));
    hub.store_trouble.fail_at(1, store::StoreFault::Failed("the rows are not there".into()), true);
    let _ = hub.close();
}

/// The memory of a session equals the store, whichever statement of a commit fails. Each number is
/// stored once, and the answer names its true place.
#[tokio::test]
async fn a_session_goes_on_whichever_statement_fails() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let session = hub.publishing("", "session").unwrap();
    for n in 1..=40 {
        hub.store_trouble.fail_at(1 + n % 5, store::StoreFault::Busy, false);
        loop {
            let envelope = messages(&hub, "m", 1).envelopes.remove(0);
            let topic = "m".parse().unwrap();
            let (expect, delay_ms, digest) = (None, None, n as u32);
            let items = vec![SessionItem { topic, n, envelope, expect, delay_ms, digest }];
            let room = session.room(&items).await.unwrap();
            session.publish(items, 8, room).unwrap();
            let mut answers = Vec::new();
            let answered = session.answers(&mut answers);
            tokio::time::timeout(Duration::from_secs(10), answered).await.unwrap().unwrap();
            if let Ok(placed) = &answers[0].result {
                assert!(matches!(placed.first, EnqueueOutcome::At(place) if place.offset == n - 1));
                break;
            }
        }
    }
    assert!(hub.store_trouble.failed() > 20);
    assert_eq!(hub.stream(&"m".parse().unwrap()).unwrap().next, 40);
}

/// A body that is stored without others that were read into the same memory keeps none of theirs.
#[tokio::test]
async fn a_message_keeps_nothing_of_companions_that_are_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let [one, two] = [&br#"{"id":"1"}"#[..], &br#"{"id":"2"}"#[..]];
    let read = |raws: &[&[u8]]| -> Vec<StreamEnvelope> {
        let mut scratch = Transcoder::new();
        let mut buffer = EnvelopeBuffer::expecting(raws.iter().map(|raw| raw.len()));
        let mut one =
            |raw| StreamEnvelope::read_into(&mut buffer, &mut scratch, &hub.ids, Codec::Json, raw);
        raws.iter().map(|raw| one(*raw).unwrap()).collect()
    };
    // A batch of which the stream has the first.
    let batch = |raws: &[&[u8]]| {
        let envelopes = read(raws);
        let key = Some(IdempotencyKey::of_each(raws, &envelopes));
        StreamEnqueue { envelopes, key, ..messages(&hub, "a", 0) }
    };
    hub.enqueue(batch(&[one])).await.unwrap();
    let both = batch(&[one, two]);
    let known = both.envelopes[0].body.clone();
    assert_eq!(hub.enqueue(both).await.unwrap().offset, 1);
    assert!(known.is_unique(), "of a batch");
    // The same of a session, which sends the first once more with the second.
    let session = hub.publishing("", "session").unwrap();
    let item = |n: u64, envelope: StreamEnvelope| {
        let (topic, digest) = ("m".parse().unwrap(), n as u32);
        SessionItem { topic, n, envelope, expect: None, delay_ms: None, digest }
    };
    let publish = async |items: Vec<SessionItem>| {
        let last = items.last().map_or(0, |item| item.n);
        let room = session.room(&items).await.unwrap();
        session.publish(items, 8, room).unwrap();
        let mut told = 0;
        while told < last {
            let mut answers = Vec::new();
            session.answers(&mut answers).await.unwrap();
            told = answers.iter().map(|answer| answer.to).fold(told, u64::max);
        }
    };
    publish(vec![item(1, read(&[one]).remove(0))]).await;
    let both = read(&[one, two]);
    let known = both[0].body.clone();
    publish(both.into_iter().zip(1..).map(|(envelope, n)| item(n, envelope)).collect()).await;
    assert!(known.is_unique(), "of a session");
    // One that is refused before the writer has it leaves as well.
    let mut both = read(&[one, two]);
    let (refused, kept) = (both.remove(1), both.remove(0));
    let left = refused.body.clone();
    let too_late = SessionItem { delay_ms: Some(u64::MAX), ..item(4, refused) };
    publish(vec![item(3, kept), too_late]).await;
    assert!(left.is_unique(), "of one that is refused at once");
}

/// An idle stream is looked at first and removed then: whichever of the two the writer has first, a
/// message that comes in between is not lost.
#[tokio::test]
async fn a_message_that_comes_while_an_idle_stream_goes_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "reply/1".parse().unwrap();
    let readable = async || {
        let page = hub.read(&topic, ReadStart::First, 10).await.unwrap();
        page.events.iter().filter(|event| matches!(event, SubscriptionOutput::Deliver(_))).count()
    };
    let first = hub.enqueue(messages(&hub, "reply/1", 1)).await.unwrap();
    let seen = hub.stream(&topic).unwrap();
    // They reach the writer in the order in which they stand here; the first keeps it at work until
    // the others wait together.
    let (_, came, went) = tokio::join!(
        hub.enqueue(messages(&hub, "busy", 500)),
        hub.enqueue(messages(&hub, "reply/1", 1)),
        hub.remove_idle(&seen),
    );
    assert_eq!((came.unwrap().offset, went), (1, Ok(false)));
    assert_eq!(readable().await, 2, "what came first has kept it");
    assert_eq!(hub.remove_idle(&seen).await, Ok(false), "it is not as it was seen");
    let seen = hub.stream(&topic).unwrap();
    let (_, went, came) = tokio::join!(
        hub.enqueue(messages(&hub, "busy", 500)),
        hub.remove_idle(&seen),
        hub.enqueue(messages(&hub, "reply/1", 1)),
    );
    let came = came.unwrap();
    assert_eq!((went, came.offset), (Ok(true), 0));
    assert!(came.generation > first.generation);
    assert_eq!(readable().await, 1, "what came then is the first of another");
    // One that is made anew is not the one that was seen, though it has as much.
    hub.enqueue(messages(&hub, "reply/1", 1)).await.unwrap();
    assert_eq!(hub.stream(&topic).unwrap().next, seen.next);
    assert_eq!(hub.remove_idle(&seen).await, Ok(false));
}

/// Where a purge ends is looked up before the writer has it. A stream that is made anew in between
/// is shorter, and nothing of it is taken.
#[tokio::test]
async fn a_purge_that_was_meant_for_an_earlier_stream_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "a".parse().unwrap();
    hub.enqueue(messages(&hub, "a", 5)).await.unwrap();
    let (removed, made, purged) = tokio::join!(
        hub.remove(&topic),
        hub.enqueue(messages(&hub, "a", 2)),
        hub.purge(&topic, ReadStart::Offset(4)),
    );
    assert!(removed.is_ok() && made.is_ok());
    assert_eq!(purged, Err(Error::BeyondEnd { next: 2 }));
    let info = hub.stream(&topic).unwrap();
    assert_eq!((info.first, info.next), (0, 2));
}

/// Where a reset goes on is looked up before the writer has it, too.
#[tokio::test]
async fn a_reset_that_was_meant_for_an_earlier_stream_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "a".parse().unwrap();
    hub.enqueue(messages(&hub, "a", 2)).await.unwrap();
    let (start, change) = (ReadStart::First, ConsumerChange::default());
    let who = SubscriptionReader::Member {
        name: "c".into(),
        owner: String::new(),
        start,
        change,
        steers: Default::default(),
    };
    let _member = hub.subscribe("a".parse().unwrap(), who).await.unwrap();
    let reset = async |offset| {
        let (reply, answer) = oneshot::channel();
        let deed = ManageDeed::Steer { consumer: "c".into(), steer: ConsumerSteer::Reset(offset) };
        let manage = ManageCommand { topic: topic.clone(), deed, reply };
        hub.registry.send(WriterCommand::Manage(manage)).unwrap();
        let said = answer.await.unwrap();
        (said, hub.consumer(&topic, "c").await.unwrap().state.next)
    };
    assert_eq!(reset(3).await, (Err(Error::BeyondEnd { next: 2 }), 0));
    assert_eq!(reset(2).await, (Ok(1), 2));
}

/// Messages of level `os` alone are answered before the disk has them. What they share a commit
/// with does not matter here: each is the only one in its commit.
#[tokio::test]
async fn what_changes_for_good_is_on_the_disk_before_anybody_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let synced = || hub.store_trouble.synced();
    let (os, disk): (Topic, Topic) = ("os".parse().unwrap(), "disk".parse().unwrap());
    hub.enqueue(messages(&hub, "os", 2)).await.unwrap();
    let (start, change) = (ReadStart::First, ConsumerChange::default());
    let who = SubscriptionReader::Member {
        name: "c".into(),
        owner: String::new(),
        start,
        change,
        steers: Default::default(),
    };
    let _member = hub.subscribe("os".parse().unwrap(), who).await.unwrap();
    let before = synced();
    hub.enqueue(messages(&hub, "os", 2)).await.unwrap();
    assert_eq!(synced(), before);
    let later = StreamEnqueue { delay_ms: Some(3_600_000), ..messages(&hub, "os", 1) };
    hub.enqueue(later).await.unwrap();
    assert_eq!(synced(), before);

    let level = StreamChange { level: Some(Level::Disk), ..StreamChange::default() };
    hub.configure(&disk, level).await.unwrap();
    assert_eq!(synced(), before + 1, "a setting");
    hub.enqueue(messages(&hub, "disk", 1)).await.unwrap();
    assert_eq!(synced(), before + 2, "a message of level disk");
    let later = StreamEnqueue { delay_ms: Some(3_600_000), ..messages(&hub, "disk", 1) };
    hub.enqueue(later).await.unwrap();
    assert_eq!(synced(), before + 3, "a delayed message of level disk");
    hub.remove_consumer(&os, "c").await.unwrap();
    assert_eq!(synced(), before + 4, "a consumer that goes");
    hub.remove(&os).await.unwrap();
    assert_eq!(synced(), before + 5, "a removal");
}

#[tokio::test]
async fn an_idempotency_key_is_forgotten_once_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let store = || rusqlite::Connection::open(folder.path().join("streams.db")).unwrap();
    let key = || IdempotencyKey::new(b"", b"once", b"{}").unwrap();
    let keyed = |hub: &StreamHub| StreamEnqueue { key: Some(key()), ..messages(hub, "a", 1) };
    let hub = open(&folder);
    for _ in 0..2 {
        assert_eq!(hub.enqueue(keyed(&hub)).await.unwrap().offset, 0);
    }
    hub.close().unwrap();
    let older = "UPDATE idempotency SET time_ms = time_ms - ?1";
    assert_eq!(store().execute(older, [MAX_IDEMPOTENCY_AGE_MS as i64]), Ok(1));
    let (hub, clock) = open_by_clock(&folder);
    sleep_ms(600).await;
    assert_eq!(hub.enqueue(keyed(&hub)).await.unwrap().offset, 0, "the clock is not calm yet");
    calm(&clock).await;
    let count = || store().query_row("SELECT count(*) FROM idempotency", [], |row| row.get(0));
    while count() != Ok(0) {
        sleep_ms(10).await;
    }
    assert_eq!(hub.enqueue(keyed(&hub)).await.unwrap().offset, 1);
}

#[tokio::test]
async fn what_is_read_or_awaits_a_message_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder);
    let topic: Topic = "reply/1".parse().unwrap();
    hub.enqueue(messages(&hub, "reply/1", 1)).await.unwrap();
    let seen = hub.stream(&topic).unwrap();
    let later = || StreamEnqueue { delay_ms: Some(3_600_000), ..messages(&hub, "reply/1", 1) };
    let (held, went) = tokio::join!(hub.enqueue(later()), hub.remove_idle(&seen));
    assert_eq!((held.is_ok(), went), (true, Ok(false)));
    assert_eq!(hub.remove_idle(&seen).await, Ok(false), "it is held back on disk now");
    let list = ListDelayed { after: None, limit: 10 };
    let held = hub.delayed(&topic, list).await.unwrap().delayed.remove(0);
    hub.cancel(&topic, held.id).await.unwrap();
    let (owner, start) = (String::new(), ReadStart::First);
    let reader = SubscriptionReader::Reader { start, generation: None };
    let member = SubscriptionReader::Member {
        name: "c".into(),
        owner,
        start,
        change: Default::default(),
        steers: Default::default(),
    };
    for who in [reader, member] {
        let reading = hub.subscribe(topic.clone().into(), who).await.unwrap();
        assert_eq!(hub.remove_idle(&seen).await, Ok(false));
        drop(reading);
    }
    assert_eq!(hub.remove_idle(&seen).await, Ok(true));
    assert_eq!(hub.remove_idle(&seen).await, Err(Error::UnknownStream(topic.to_string())));
}
