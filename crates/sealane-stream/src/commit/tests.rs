use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_protocol::{ConsumerChange, Op};

use super::*;
use crate::checkpoint::CheckpointLog;
use crate::envelope::EnvelopeContent;
use crate::shares::ShareKind;
use crate::store::{self, KeyRow, StoreWrites, StoredSession};
use crate::{
    HubConfig, IdempotencyKey, ReadStart, SessionItem, StreamChange, StreamEnqueue, StreamEnvelope,
    StreamHub, SubscriptionOutput, SubscriptionReader,
};

fn messages(hub: &StreamHub, topic: &str, count: usize) -> StreamEnqueue {
    let read =
        |_| StreamEnvelope::read(&mut Transcoder::new(), hub.ids(), Codec::Json, b"{}").unwrap();
    let (topic, envelopes) = (topic.parse().unwrap(), (0..count).map(read).collect());
    StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner: "".into() }
}

/// Every row of every table, but for what each store says of itself.
fn rows(folder: &Path) -> Vec<String> {
    let store = Connection::open(folder.join("streams.db")).unwrap();
    let tables = [
        "stream",
        "generation",
        "block",
        "damage",
        "consumer",
        "progress",
        "removed",
        "delayed",
        "session",
        "idempotency",
    ];
    let mut all = Vec::new();
    for table in tables {
        let mut query = store.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = query.column_count();
        let mut found = query.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<Value> = (0..columns).map(|column| row.get(column).unwrap()).collect();
            all.push(format!("{table} {values:?}"));
        }
    }
    all.sort();
    all
}

/// Does everything that changes a store at least once.
async fn work(hub: &StreamHub) {
    let (a, b): (Topic, Topic) = ("a".parse().unwrap(), "b".parse().unwrap());
    let change = StreamChange { level: Some(Level::Memory), ..StreamChange::default() };
    hub.configure(&b, change).await.unwrap();
    let key = IdempotencyKey::new(b"", b"k", b"{}").unwrap();
    hub.enqueue(StreamEnqueue { key: Some(key), ..messages(hub, "a", 40) }).await.unwrap();
    for topic in ["b", "gone", "a"] {
        hub.enqueue(messages(hub, topic, 5)).await.unwrap();
    }
    for delay_ms in [1, 60_000] {
        let later = StreamEnqueue { delay_ms: Some(delay_ms), ..messages(hub, "a", 3) };
        hub.enqueue(later).await.unwrap();
    }
    let publishing = hub.publishing("", "p").unwrap();
    let envelope = messages(hub, "a", 1).envelopes.remove(0);
    let (expect, delay_ms, digest) = (None, None, 0);
    let item = SessionItem { topic: a.clone(), n: 1, envelope, expect, delay_ms, digest };
    let room = publishing.room(std::slice::from_ref(&item)).await.unwrap();
    publishing.publish(vec![item], 8, room).unwrap();
    publishing.answers(&mut Vec::new()).await.unwrap();
    let (start, change) = (ReadStart::First, ConsumerChange::default());
    let who = SubscriptionReader::Member {
        name: "c".into(),
        owner: String::new(),
        start,
        change,
        steers: Default::default(),
    };
    let (mut member, _) = hub.subscribe("a".parse().unwrap(), who).await.unwrap();
    member.apply(Op::Credit(20)).unwrap();
    let mut out: Vec<SubscriptionOutput> = Vec::new();
    member.take(20, 1 << 20, &mut out).await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    hub.purge(&a, ReadStart::Offset(7)).await.unwrap();
    hub.remove(&"gone".parse().unwrap()).await.unwrap();
    hub.configure(&b, StreamChange { max_count: Some(1), ..StreamChange::default() })
        .await
        .unwrap();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(120)).await;
        hub.enqueue(messages(hub, "b", 2)).await.unwrap();
    }
}

#[tokio::test]
async fn two_stores_have_the_same_rows_after_the_same_commits() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, level) = (first.path().to_owned(), Level::Os);
    let hub =
        StreamHub::open(HubConfig { folder, level, retention: Retention::default() }).unwrap();
    let trouble = hub.store_trouble.clone();
    trouble.record_commits();
    work(&hub).await;
    hub.close().unwrap();
    let commits = trouble.take_commits();
    let kinds =
        |is: fn(&StoreChange) -> bool| commits.iter().flat_map(|commit| &commit.changes).any(is);
    assert!(kinds(|change| matches!(change, StoreChange::TrimStream { .. })));
    assert!(kinds(|change| matches!(change, StoreChange::PurgeStream(_))));
    assert!(kinds(|change| matches!(change, StoreChange::SweepStream { .. })));
    assert!(kinds(|change| matches!(change, StoreChange::ReleaseDelayed { .. })));
    assert!(kinds(|change| matches!(change, StoreChange::KeepConsumer(_))));

    let opened = store::open(second.path(), 1).unwrap();
    let mut writes = StoreWrites::new(
        opened.connection,
        opened.lock,
        opened.opening,
        second.path(),
        &CheckpointLog::default(),
    )
    .unwrap();
    for commit in &commits {
        writes.begin().unwrap();
        writes.apply(commit).unwrap();
        writes.commit().unwrap();
    }
    writes.close().unwrap();
    assert_eq!(rows(first.path()), rows(second.path()));
}

#[test]
fn a_row_that_is_written_twice_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let opened = store::open(folder.path(), 1).unwrap();
    let (connection, lock, opening) = (opened.connection, opened.lock, opened.opening);
    let log = CheckpointLog::default();
    let mut writes = StoreWrites::new(connection, lock, opening, folder.path(), &log).unwrap();
    let mut apply = |changes: Vec<StoreChange>| {
        writes.begin().unwrap();
        let counts = writes.apply(&StoreCommit { changes }).unwrap();
        writes.commit().unwrap();
        let gained = |kind| counts.shares.of("a", kind).max(0).unsigned_abs();
        let gained = (gained(ShareKind::Keys), gained(ShareKind::Sessions));
        assert_eq!((counts.keys_added, counts.sessions_added), gained);
        gained
    };
    let owner: std::sync::Arc<str> = "a".into();
    let mut session = StoredSession::default();
    session.belong_to(&owner);
    let keep_session = |session: &StoredSession, hour| {
        let row = session.row(hour);
        StoreChange::KeepSession { stream: 1, session: b"s".as_slice().into(), row }
    };
    let keep_key = || {
        let (body, ids) = (Vec::new(), Vec::new());
        let row = KeyRow { body, generation: 1, offset: 0, due_ms: 0, ids, owner: owner.clone() };
        StoreChange::KeepKey { stream: 1, key: b"k".to_vec(), row, time_ms: 9 }
    };
    // One commit may have messages of a session that were answered before, and new ones.
    let twice = [keep_session(&session, 5), keep_session(&session, 6), keep_key(), keep_key()];
    assert_eq!(apply(twice.to_vec()), (1, 1));
    let session = session.stored(6);
    assert_eq!(apply(vec![keep_session(&session, 6), keep_session(&session, 7)]), (0, 0));
    // A row that expired since it was read is made again, and counts again.
    let expiry = RowExpiry { before: 100, rows_max: 9 };
    apply(vec![StoreChange::ExpireSessions(expiry)]);
    assert_eq!(apply(vec![keep_session(&session, 6)]), (0, 1));
}

fn record(offset: u64) -> BlockRecord {
    BlockRecord {
        offset,
        time_ms: 1,
        content: EnvelopeContent::Open(Codec::Json),
        id: Bytes::new(),
        body: Bytes::from_static(b"{}"),
    }
}

#[test]
fn a_full_disk_takes_out_what_adds_and_leaves_what_removes() {
    let add = |stream, offsets: [u64; 2]| StoreChange::AddBlock {
        stream,
        generation: 1,
        records: offsets.map(record).into(),
        stored_ms: 0,
    };
    let (level, retention) = (Level::Disk, Retention::default());
    let own_bounds = OwnBounds::default();
    let extent = StreamExtent { stream: 3, first: 5, next: 9, bytes: 0 };
    let new = NewStream {
        number: 1,
        topic: "a".parse().unwrap(),
        owner: "".into(),
        settings: StreamSettings { level, retention, own_bounds },
        created_ms: 1,
        sealed: None,
        generation: 1,
    };
    let mut commit = StoreCommit {
        changes: vec![
            StoreChange::Raise { counter: StoreCounter::Stream, value: 2 },
            StoreChange::MakeStream(Box::new(new)),
            StoreChange::SetStream { stream: 1, level: None, retention, own_bounds },
            StoreChange::SetStream { stream: 2, level: Some(level), retention, own_bounds },
            StoreChange::SetStream { stream: 3, level: None, retention, own_bounds },
            add(3, [9, 10]),
            StoreChange::ReleaseDelayed { number: 7 },
            StoreChange::CancelDelayed { number: 8 },
            StoreChange::PurgeStream(extent),
            StoreChange::RemoveStream { stream: 4 },
            StoreChange::Raise { counter: StoreCounter::Generation, value: 9 },
        ],
    };
    assert!(commit.holds_together());
    assert_eq!(commit.strip(), HashSet::from([1, 2]));
    let left: Vec<String> = commit.changes.iter().map(|change| format!("{change:?}")).collect();
    let starts = ["SetStream { stream: 3", "CancelDelayed", "PurgeStream", "RemoveStream", "Raise"];
    assert_eq!(left.len(), starts.len(), "{left:?}");
    assert!(left.iter().zip(starts).all(|(change, start)| change.starts_with(start)), "{left:?}");
    for broken in [
        StoreChange::AddBlock {
            stream: 4,
            generation: 1,
            records: [1].map(record).into(),
            stored_ms: 0,
        },
        add(5, [1, 3]),
        StoreChange::TrimStream { extent, through: 4, generations_from: 0 },
    ] {
        let changes = [commit.changes.clone(), vec![broken]].concat();
        assert!(!StoreCommit { changes }.holds_together());
    }
}
