//! A store of an earlier version opens with all that it holds, and a newer one is refused.
//!
//! `data/store-v1.sqlite` was written by a node of version 1: four messages in two codecs, a
//! consumer that has finished two of them, an idempotency key, and a stream with bounds.

use std::path::Path;

use sealane_codec::{Codec, Transcoder};
use sealane_frame::GroupTag;
use sealane_stream::{
    Error, HubConfig, IdempotencyKey, Level, ReadStart, Retention, SessionItem, StreamChange,
    StreamEnqueue, StreamEnvelope, StreamHub, SubscriptionOutput,
};

const GROUP: GroupTag = GroupTag::from_bytes([0x0a, 0x1b, 0x2c, 0x3d]);

fn old_store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-v1.sqlite");
    std::fs::copy(data, folder.path().join("streams.db")).unwrap();
    assert_eq!(version(folder.path()), 1);
    folder
}

fn sqlite(folder: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.join("streams.db")).unwrap()
}

fn version(folder: &Path) -> i64 {
    sqlite(folder).pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn open(folder: &Path) -> Result<StreamHub, Error> {
    let (level, retention) = (Level::Disk, Retention::default());
    StreamHub::open(HubConfig { folder: folder.to_owned(), level, retention })
}

fn enqueue(hub: &StreamHub, topic: &str) -> StreamEnqueue {
    let mut scratch = Transcoder::new();
    let envelope = StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, b"{}").unwrap();
    let (topic, envelopes) = (topic.parse().unwrap(), vec![envelope]);
    StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner: "".into() }
}

#[tokio::test]
async fn a_store_of_version_1_keeps_everything_and_takes_sealed_streams() {
    let folder = old_store();
    let hub = open(folder.path()).unwrap();
    let topic = "fleet/7/location".parse().unwrap();
    let info = hub.stream(&topic).unwrap();
    assert_eq!((info.first, info.next, info.bytes), (0, 4, 166));
    assert_eq!((info.level, info.sealed), (Level::Disk.into(), None));
    assert_eq!((info.consumers[0].consumer.as_str(), info.consumers[0].next), ("billing", 2));
    let page = hub.read(&topic, ReadStart::First, 10).await.unwrap();
    let frames = page.events.iter().map(|event| match event {
        SubscriptionOutput::Deliver(delivery) => delivery.frame(Codec::Json),
        SubscriptionOutput::Status(frame) => panic!("{frame:?}"),
    });
    for (n, frame) in frames.enumerate() {
        let expected = format!(r#"{{"deliver":{{"id":"m{n}","lat":48.{n}}},"stream":"#);
        assert!(frame.starts_with(expected.as_bytes()), "{frame:?}");
    }
    assert_eq!(hub.stream(&"notes".parse().unwrap()).unwrap().retention.max_count, 5);
    let key = Some(IdempotencyKey::new(b"", b"once", b"another body").unwrap());
    let reused = hub.enqueue(StreamEnqueue { key, ..enqueue(&hub, "fleet/7/location") }).await;
    assert_eq!(reused, Err(Error::KeyReused));
    assert_eq!(hub.enqueue(enqueue(&hub, "fleet/7/location")).await.unwrap().offset, 4);
    let sealed = "mesh/1".parse().unwrap();
    hub.configure(&sealed, StreamChange { sealed: Some(GROUP), ..StreamChange::default() })
        .await
        .unwrap();
    hub.close().unwrap();

    assert_eq!(version(folder.path()), 5);
    let hub = open(folder.path()).unwrap();
    assert_eq!(hub.stream(&sealed).unwrap().sealed, Some(GROUP));
    let info = hub.stream(&topic).unwrap();
    assert_eq!((info.next, info.sealed), (5, None));
    assert_eq!((hub.count(), hub.count_sealed()), (3, 1));
}

#[tokio::test]
async fn what_a_store_of_version_3_holds_back_is_known_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let topic = "later".parse().unwrap();
    let hub = open(folder.path()).unwrap();
    let long = "m".repeat(128);
    for id in ["short", &long] {
        let raw = format!(r#"{{"id":"{id}"}}"#);
        let mut scratch = Transcoder::new();
        let envelope = StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, raw.as_bytes());
        let envelopes = vec![envelope.unwrap()];
        let delay_ms = Some(3_600_000);
        hub.enqueue(StreamEnqueue { envelopes, delay_ms, ..enqueue(&hub, "later") }).await.unwrap();
    }
    hub.close().unwrap();
    // As version 3 left it.
    let older = "DROP INDEX delayed_owner; ALTER TABLE delayed DROP COLUMN owner;
         DROP INDEX idempotency_owner; ALTER TABLE idempotency DROP COLUMN owner;
         ALTER TABLE stream DROP COLUMN owner; ALTER TABLE stream DROP COLUMN own_bounds;
         ALTER TABLE block DROP COLUMN stored_ms; DROP TABLE rule; DROP TABLE clock_step;
         DROP INDEX delayed_id; DROP INDEX delayed_stream;
         ALTER TABLE delayed DROP COLUMN id; CREATE INDEX delayed_stream ON delayed (stream);
         ALTER TABLE consumer DROP COLUMN paused_ms; DROP TABLE session;
         PRAGMA user_version = 3;";
    sqlite(folder.path()).execute_batch(older).unwrap();

    let hub = open(folder.path()).unwrap();
    let list = sealane_protocol::ListDelayed { after: None, limit: 10 };
    let page = hub.delayed(&topic, list).await.unwrap();
    let ids: Vec<&str> = page.delayed.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["short", &long]);
    assert_eq!(hub.cancel(&topic, long).await.unwrap().cancelled, 1);
}

#[test]
fn a_migration_that_fails_leaves_the_store_as_it_was() {
    let folder = old_store();
    // The column is there already, so that the step that adds it fails.
    sqlite(folder.path()).execute_batch("ALTER TABLE stream ADD COLUMN sealed BLOB").unwrap();
    assert!(matches!(open(folder.path()), Err(Error::StorageFailed(_))));
    assert_eq!(version(folder.path()), 1);
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_untouched() {
    let folder = old_store();
    sqlite(folder.path()).pragma_update(None, "user_version", 6).unwrap();
    let before = std::fs::read(folder.path().join("streams.db")).unwrap();
    let refused = open(folder.path()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("data format is 6"), "{refused}");
    assert_eq!(std::fs::read(folder.path().join("streams.db")).unwrap(), before);
}

#[tokio::test]
async fn a_backup_of_an_older_version_is_restored_and_opened() {
    let (copy, place) = (old_store(), tempfile::tempdir().unwrap());
    let restored = sealane_stream::restore(copy.path(), place.path()).unwrap();
    assert_eq!((restored.messages, version(place.path())), (5, 1));
    let hub = open(place.path()).unwrap();
    let info = hub.stream(&"fleet/7/location".parse().unwrap()).unwrap();
    assert_eq!((info.first, info.next), (0, 4));
    hub.close().unwrap();
    assert_eq!((version(place.path()), version(copy.path())), (5, 1));
}

#[tokio::test]
async fn what_a_store_of_version_4_counted_belongs_to_its_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path()).unwrap();
    let key = Some(IdempotencyKey::new(b"alice", b"once", b"body").unwrap());
    let once = StreamEnqueue { key, ..enqueue(&hub, "a") };
    hub.enqueue(once.clone()).await.unwrap();
    let content = Some(IdempotencyKey::of_content(&[b"{}"], &once.envelopes));
    hub.enqueue(StreamEnqueue { key: content, ..enqueue(&hub, "a") }).await.unwrap();
    let session = hub.publishing("bob", "s").unwrap();
    let envelope = enqueue(&hub, "a").envelopes.remove(0);
    let (topic, n, digest) = ("a".parse().unwrap(), 1, 7);
    let item = SessionItem { topic, n, envelope, expect: None, delay_ms: None, digest };
    let again = SessionItem { digest: 8, ..item.clone() };
    let room = session.try_room(std::slice::from_ref(&item)).unwrap();
    session.publish(vec![item], 8, room).unwrap();
    session.answers(&mut Vec::new()).await.unwrap();
    let bounded = StreamChange { max_count: Some(9), ..StreamChange::default() };
    hub.configure(&"bounded".parse().unwrap(), bounded).await.unwrap();
    drop(session);
    hub.close().unwrap();
    // As version 4 left it.
    let older = "DROP INDEX delayed_owner; ALTER TABLE delayed DROP COLUMN owner;
         DROP INDEX idempotency_owner; ALTER TABLE idempotency DROP COLUMN owner;
         DROP INDEX session_owner; ALTER TABLE session DROP COLUMN owner;
         ALTER TABLE session DROP COLUMN digests;
         ALTER TABLE stream DROP COLUMN owner; ALTER TABLE stream DROP COLUMN own_bounds;
         ALTER TABLE block DROP COLUMN stored_ms; DROP TABLE rule; DROP TABLE clock_step;
         DELETE FROM meta WHERE name IN ('store_id', 'store_file');
         PRAGMA user_version = 4;";
    sqlite(folder.path()).execute_batch(older).unwrap();

    let hub = open(folder.path()).unwrap();
    let session = hub.publishing("bob", "s").unwrap();
    let room = session.try_room(std::slice::from_ref(&again)).unwrap();
    session.publish(vec![again], 8, room).unwrap();
    let mut told = Vec::new();
    session.answers(&mut told).await.unwrap();
    let placed = told[0].result.clone().unwrap();
    assert!(placed.replayed, "without a digest it counts as repeated: {placed:?}");
    assert!(hub.enqueue(once).await.unwrap().replayed);
    drop(session);
    hub.close().unwrap();
    let texts = |query: &str| -> Vec<String> {
        let store = sqlite(folder.path());
        let mut query = store.prepare(query).unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(texts("SELECT owner FROM idempotency ORDER BY owner"), ["\u{1}", "alice"]);
    assert_eq!(texts("SELECT owner FROM session"), ["bob"]);
    let bounds = "SELECT topic || ' ' || own_bounds FROM stream ORDER BY topic";
    assert_eq!(texts(bounds), ["a 0", "bounded 2"]);
    assert_eq!(texts("SELECT hex(value) FROM meta WHERE name = 'store_id'")[0].len(), 32);
}
