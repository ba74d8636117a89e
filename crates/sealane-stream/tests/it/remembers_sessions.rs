//! A message that a publishing session repeats is stored once. It is answered as it was first,
//! whatever came in between. A message behind a skipped number is refused.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

use sealane_codec::{Codec, Transcoder};
use sealane_frame::GroupTag;
use sealane_protocol::{EnqueueOutcome, StreamPosition};
use sealane_stream::{
    DirectAnswer, Error, HubClock, HubConfig, Level, PublishAnswered, PublishSession, Retention,
    SessionItem, StreamChange, StreamEnqueue, StreamEnvelope, StreamHub,
};
use sealane_testing::until_told_async;

const KEEP: u64 = 16;

fn open(folder: &Path) -> StreamHub {
    let (level, retention) = (Level::Disk, Retention::default());
    StreamHub::open(HubConfig { folder: folder.to_owned(), level, retention }).unwrap()
}

fn envelope(hub: &StreamHub) -> StreamEnvelope {
    StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, b"{}").unwrap()
}

fn item(hub: &StreamHub, topic: &str, n: u64) -> SessionItem {
    let (topic, envelope) = (topic.parse().unwrap(), envelope(hub));
    SessionItem { topic, n, envelope, expect: None, delay_ms: None, digest: n as u32 }
}

async fn ask(session: &PublishSession, items: Vec<SessionItem>) {
    let room = session.room(&items).await.unwrap();
    session.publish(items, KEEP, room).unwrap();
}

/// Publishes the numbers to the topic; returns what each became.
async fn publish(
    hub: &StreamHub,
    session: &PublishSession,
    topic: &str,
    numbers: impl IntoIterator<Item = u64>,
) -> Vec<Result<EnqueueOutcome, Error>> {
    let items: Vec<_> = numbers.into_iter().map(|n| item(hub, topic, n)).collect();
    let wanted = items.len();
    ask(session, items).await;
    answers(session, wanted).await
}

async fn answers(session: &PublishSession, wanted: usize) -> Vec<Result<EnqueueOutcome, Error>> {
    let mut all = Vec::new();
    while all.len() < wanted {
        let mut answers: Vec<PublishAnswered> = Vec::new();
        let second = Duration::from_secs(10);
        tokio::time::timeout(second, session.answers(&mut answers)).await.unwrap().unwrap();
        for answer in answers {
            for n in answer.from..=answer.to {
                let placed = answer.result.clone();
                all.push(placed.map(|placed| placed.first.behind(n - answer.from)));
            }
        }
    }
    all
}

async fn enqueue(hub: &StreamHub, topic: &str) {
    let (topic, envelopes) = (topic.parse().unwrap(), vec![envelope(hub)]);
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

fn next(hub: &StreamHub, topic: &str) -> u64 {
    hub.stream(&topic.parse().unwrap()).unwrap().next
}

fn offsets(answers: &[Result<EnqueueOutcome, Error>]) -> Vec<u64> {
    let offset = |answer: &Result<EnqueueOutcome, Error>| match answer {
        Ok(EnqueueOutcome::At(StreamPosition { offset, .. })) => *offset,
        other => panic!("{other:?}"),
    };
    answers.iter().map(offset).collect()
}

#[tokio::test]
async fn what_is_repeated_keeps_its_place_over_connections_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let session = hub.publishing("t", "s").unwrap();
    let mut first = publish(&hub, &session, "a", 1..=3).await;
    enqueue(&hub, "a").await;
    first.extend(publish(&hub, &session, "a", 4..=6).await);
    assert_eq!(offsets(&first), [0, 1, 2, 4, 5, 6]);
    // Within one request, on this connection, on another one, and after a restart.
    let twice = publish(&hub, &session, "a", [7, 7, 8]).await;
    assert_eq!(offsets(&twice), [7, 7, 8]);
    assert_eq!(publish(&hub, &session, "a", 1..=6).await, first);
    let session = hub.publishing("t", "s").unwrap();
    assert_eq!(publish(&hub, &session, "a", 2..=6).await, first[1..]);
    drop(session);
    hub.close().unwrap();
    let hub = open(folder.path());
    let session = hub.publishing("t", "s").unwrap();
    assert_eq!(publish(&hub, &session, "a", 2..=6).await, first[1..]);
    assert_eq!(offsets(&publish(&hub, &session, "a", 9..=9).await), [9]);
    // Each stream counts by itself.
    assert_eq!(offsets(&publish(&hub, &session, "b", 1..=2).await), [0, 1]);
    assert_eq!((next(&hub, "a"), next(&hub, "b")), (10, 2));
}

#[tokio::test]
async fn what_is_refused_takes_no_number_and_what_follows_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let session = hub.publishing("", "s").unwrap();
    let wrong = SessionItem { expect: Some(7), ..item(&hub, "a", 2) };
    let items = vec![item(&hub, "a", 1), wrong, item(&hub, "b", 1), item(&hub, "a", 3)];
    ask(&session, items).await;
    let told = answers(&session, 4).await;
    assert_eq!(told[1], Err(Error::OffsetMismatch { next: 1 }));
    assert_eq!(told[3], Err(Error::NumberSkipped { next: 2 }));
    assert_eq!(offsets(&[told[0].clone(), told[2].clone()]), [0, 0]);
    let late = SessionItem { delay_ms: Some(u64::MAX), ..item(&hub, "a", 2) };
    ask(&session, vec![late]).await;
    assert!(matches!(answers(&session, 1).await[0], Err(Error::InvalidParameter { .. })));
    assert_eq!(offsets(&publish(&hub, &session, "a", 2..=3).await), [1, 2]);
    assert_eq!((next(&hub, "a"), next(&hub, "b")), (3, 1));
    let zero = publish(&hub, &session, "a", [0]).await;
    assert!(matches!(&zero[0], Err(Error::InvalidParameter { .. })), "{zero:?}");
}

#[tokio::test]
async fn delayed_messages_are_numbered_too() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let topic = "a".parse().unwrap();
    let level = Some(Level::Memory);
    hub.configure(&topic, StreamChange { level, ..StreamChange::default() }).await.unwrap();
    let session = hub.publishing("", "s").unwrap();
    let later = |n| SessionItem { delay_ms: Some(3_600_000), ..item(&hub, "a", n) };
    ask(&session, vec![item(&hub, "a", 1), later(2), item(&hub, "a", 3)]).await;
    let first = answers(&session, 3).await;
    assert!(matches!(first[1], Ok(EnqueueOutcome::Due(_))));
    ask(&session, vec![item(&hub, "a", 1), later(2), item(&hub, "a", 3)]).await;
    assert_eq!(answers(&session, 3).await, first);
    assert_eq!(next(&hub, "a"), 2);
}

#[tokio::test]
async fn a_session_is_its_tokens_and_one_connections() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let mine = hub.publishing("me", "s").unwrap();
    publish(&hub, &mine, "a", 1..=2).await;
    let other = hub.publishing("m", "es").unwrap();
    let skipped = publish(&hub, &other, "a", [3]).await;
    assert_eq!(skipped, [Err(Error::NumberSkipped { next: 1 })], "it begins for itself");
    let again = hub.publishing("me", "s").unwrap();
    let mut answers = Vec::new();
    assert_eq!(mine.answers(&mut answers).await, Err(Error::SessionTaken));
    let items = vec![item(&hub, "a", 3)];
    let room = mine.room(&items).await.unwrap();
    assert_eq!(mine.publish(items, KEEP, room), Err(Error::SessionTaken));
    // Its end does not end the session of who took it.
    drop(mine);
    assert_eq!(offsets(&publish(&hub, &again, "a", [3]).await), [2]);
    let third = hub.publishing("me", "s").unwrap();
    assert_eq!(again.answers(&mut answers).await, Err(Error::SessionTaken));
    drop(third);
}

#[tokio::test]
async fn a_stream_that_is_made_anew_counts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let session = hub.publishing("", "s").unwrap();
    publish(&hub, &session, "a", 1..=3).await;
    hub.remove(&"a".parse().unwrap()).await.unwrap();
    let skipped = publish(&hub, &session, "a", [4]).await;
    assert_eq!(skipped, [Err(Error::NumberSkipped { next: 1 })]);
    publish(&hub, &session, "a", [1]).await;
    // The rows that the removed stream has left go with its blocks.
    until_told_async(async || sessions(folder.path()), |rows| *rows == 1).await;
}

#[tokio::test]
async fn sessions_of_yesterday_are_forgotten_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    for name in ["old", "new"] {
        let session = hub.publishing("", name).unwrap();
        publish(&hub, &session, "a", 1..=3).await;
    }
    hub.close().unwrap();
    let store = rusqlite::Connection::open(folder.path().join("streams.db")).unwrap();
    let old = "UPDATE session SET hour = hour - 25 WHERE substr(session, -3) = x'6f6c64'";
    assert_eq!(store.execute(old, []).unwrap(), 1);
    drop(store);
    let (level, retention, clock) = (Level::Disk, Retention::default(), HubClock::system());
    let config = HubConfig { folder: folder.path().to_owned(), level, retention };
    let hub = StreamHub::open_by(config, clock.clone()).unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(sessions(folder.path()), 2, "nothing goes before the clock is calm");
    clock.pass(Duration::from_secs(600));
    until_told_async(async || sessions(folder.path()), |rows| *rows == 1).await;
    let ask = async |name| {
        let session = hub.publishing("", name).unwrap();
        publish(&hub, &session, "a", [4]).await.remove(0)
    };
    assert_eq!(ask("old").await, Err(Error::NumberSkipped { next: 1 }));
    assert!(ask("new").await.is_ok());
}

fn sessions(folder: &Path) -> i64 {
    let store = rusqlite::Connection::open(folder.join("streams.db")).unwrap();
    store.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).unwrap()
}

/// A connection that takes its answers wherever they are, or leaves them to its task.
struct Here {
    publishing: OnceLock<PublishSession>,
    takes: bool,
    came: mpsc::Sender<(Option<String>, Vec<PublishAnswered>)>,
}

impl DirectAnswer for Here {
    fn answer(&self) -> bool {
        let mut answers = Vec::new();
        if self.takes {
            self.publishing.get().unwrap().take_answers(&mut answers);
        }
        let thread = std::thread::current().name().map(str::to_owned);
        self.came.send((thread, answers)).unwrap();
        self.takes
    }
}

#[tokio::test]
async fn answers_are_taken_where_they_are_made_or_by_the_task_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    for takes in [true, false] {
        let (came, comes) = mpsc::channel();
        let here = Arc::new(Here { publishing: OnceLock::new(), takes, came });
        let session = hub.publishing("t", if takes { "here" } else { "there" }).unwrap();
        let weak: Weak<Here> = Arc::downgrade(&here);
        session.answer_by(weak);
        let session = here.publishing.get_or_init(|| session);
        ask(session, vec![item(&hub, "a", 1), item(&hub, "a", 2), item(&hub, "a", 4)]).await;
        if !takes {
            assert_eq!(answers(session, 3).await.len(), 3);
        }
        let (thread, taken) = comes.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(thread.as_deref(), Some("sealane-writer"));
        let ranges: Vec<_> = taken.iter().map(|one| (one.from, one.to)).collect();
        assert_eq!(ranges, if takes { vec![(1, 2), (4, 4)] } else { vec![] });
    }
    // A connection that has gone leaves the answers to whoever asks.
    let session = hub.publishing("t", "gone").unwrap();
    session.answer_by(Weak::<Here>::new());
    assert_eq!(publish(&hub, &session, "a", 1..=3).await.len(), 3);
}

#[tokio::test]
async fn where_the_first_of_many_is_refused_the_others_skip_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let topic = "s".parse().unwrap();
    let sealed = Some(GroupTag::from_bytes([1, 2, 3, 4]));
    hub.configure(&topic, StreamChange { sealed, ..StreamChange::default() }).await.unwrap();
    let session = hub.publishing("t", "s").unwrap();
    let told = publish(&hub, &session, "s", 1..=3).await;
    assert!(matches!(told[0], Err(Error::NotSealed { .. })), "{told:?}");
    assert_eq!(told[1..], [1, 1].map(|next| Err(Error::NumberSkipped { next })));
    assert_eq!(next(&hub, "s"), 0);
}

/// A program that starts again and counts from 1 with other messages is told so.
#[tokio::test]
async fn another_message_under_a_number_is_refused_and_the_same_is_said_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path());
    let (topic, other) = ("a".parse().unwrap(), "b".parse().unwrap());
    let session = hub.publishing("", "gateway-7").unwrap();
    assert_eq!(session.next(&topic).await, Ok(1), "before there is a stream");
    publish(&hub, &session, "a", 1..=3).await;
    drop(session);
    hub.close().unwrap();
    let hub = open(folder.path());
    let session = hub.publishing("", "gateway-7").unwrap();
    assert_eq!((session.next(&topic).await, session.next(&other).await), (Ok(4), Ok(1)));
    let anew = (1..=3).map(|n| SessionItem { digest: 70 + n as u32, ..item(&hub, "a", n) });
    ask(&session, anew.collect()).await;
    assert_eq!(answers(&session, 3).await, vec![Err(Error::KeyReused); 3]);
    ask(&session, vec![item(&hub, "a", 3), item(&hub, "a", 4)]).await;
    let mut told = Vec::new();
    while told.iter().map(|answer: &PublishAnswered| answer.to + 1 - answer.from).sum::<u64>() < 2 {
        session.answers(&mut told).await.unwrap();
    }
    told.sort_by_key(|answer| answer.from);
    let replayed: Vec<bool> =
        told.iter().map(|answer| answer.result.clone().unwrap().replayed).collect();
    assert_eq!((replayed, next(&hub, "a")), (vec![true, false], 4));
}
