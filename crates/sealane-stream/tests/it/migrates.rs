//! A store of an earlier version opens with all that it holds, and a newer one is refused.
//!
//! `data/store-v1.sqlite` was written by a node of version 1: four messages in two codecs, a
//! consumer that has finished two of them, an idempotency key, and a stream with bounds.

use std::path::Path;

use sealane_codec::{Codec, Transcoder};
use sealane_frame::GroupTag;
use sealane_stream::{
    Error, HubConfig, IdempotencyKey, Level, ReadStart, Retention, StreamChange, StreamEnqueue,
    StreamEnvelope, StreamHub, SubscriptionOutput,
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
    StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None }
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

    assert_eq!(version(folder.path()), 4);
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
    let older = "DROP INDEX delayed_id; DROP INDEX delayed_stream;
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
    sqlite(folder.path()).pragma_update(None, "user_version", 5).unwrap();
    let before = std::fs::read(folder.path().join("streams.db")).unwrap();
    let refused = open(folder.path()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("data format is 5"), "{refused}");
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
    assert_eq!((version(place.path()), version(copy.path())), (4, 1));
}
