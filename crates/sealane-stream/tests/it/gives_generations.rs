//! Generations rise and never repeat, whatever the clock has been, in a store and in its copies.

use std::path::Path;

use sealane_codec::{Codec, Transcoder};
use sealane_message::Topic;
use sealane_stream::limits::{MAX_CLOCK_GENERATION, MAX_COPY_STEP, MAX_GENERATION};
use sealane_stream::{
    Error, HubClock, HubConfig, Level, Retention, StreamEnqueue, StreamEnvelope, StreamHub, backup,
    newest_generation,
};

const YEAR_MS: i64 = 365 * 86_400_000;

/// Opens by a clock that is ahead by so many years.
fn open(folder: &Path, years: i64, level: Level) -> StreamHub {
    let (clock, retention) = (HubClock::system(), Retention::default());
    clock.step(years * YEAR_MS);
    StreamHub::open_by(HubConfig { folder: folder.to_owned(), level, retention }, clock).unwrap()
}

async fn publish(hub: &StreamHub, topic: &str) -> Result<u64, Error> {
    let mut scratch = Transcoder::new();
    let envelope = StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, b"{}").unwrap();
    let (topic, envelopes, owner) = (topic.parse().unwrap(), vec![envelope], "".into());
    let ask = StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner };
    hub.enqueue(ask).await.map(|appended| appended.generation)
}

/// A store as a killed hub leaves it: a copy of its files, without the mark of a copy, while it
/// runs. The new file counts as another boot.
fn killed(from: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["streams.db", "streams.db-wal"] {
        std::fs::copy(from.join(file), folder.path().join(file)).unwrap();
    }
    folder
}

fn years_ahead(generation: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    generation.saturating_sub(now.as_secs()) / (365 * 86_400)
}

#[tokio::test]
async fn behind_a_clock_of_2053_generations_go_on_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path(), 27, Level::Memory);
    let first = publish(&hub, "a").await.unwrap();
    assert!(years_ahead(first + 60) >= 27, "{first}");
    // The clock is right again. What the killed hub acknowledged may be lost.
    let killed = killed(folder.path());
    let hub = open(killed.path(), 0, Level::Memory);
    let unknown = publish(&hub, "a").await.unwrap();
    assert!(unknown > first, "{unknown} comes after {first}");
    let topic: Topic = "a".parse().unwrap();
    let mut last = unknown;
    for _ in 0..3 {
        hub.remove(&topic).await.unwrap();
        let again = publish(&hub, "a").await.unwrap();
        assert!(again > last, "{again}: a topic that is used again, behind {last}");
        last = again;
    }
    hub.close().unwrap();
    assert!(newest_generation(killed.path()).unwrap() >= last);
    let hub = open(killed.path(), 0, Level::Memory);
    assert_eq!(publish(&hub, "a").await, Ok(last), "a hub that ended cleanly has lost nothing");
}

/// The original and each of its copies go on from the same generation, and all by another.
#[tokio::test]
async fn no_two_copies_go_on_with_the_same_generation() {
    let place = tempfile::tempdir().unwrap();
    let folder = |name: &str| place.path().join(name);
    let hub = open(&folder("first"), 27, Level::Disk);
    let first = publish(&hub, "a").await.unwrap();
    let mut seen = vec![first];
    for copy in ["one", "two", "three"] {
        backup(&folder("first"), &folder(copy)).unwrap();
        let hub = open(&folder(copy), 0, Level::Disk);
        let (old, new) = (publish(&hub, "a").await.unwrap(), publish(&hub, "new").await.unwrap());
        assert!((first + 1..=first + MAX_COPY_STEP).contains(&old), "{old} after {first}");
        assert!(new >= first, "{new}: of this topic the original may have had one of {first}");
        seen.push(old);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[tokio::test]
async fn a_clock_beyond_all_sense_leaves_room_and_the_last_one_is_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path(), 300, Level::Disk);
    assert_eq!(publish(&hub, "a").await, Ok(MAX_CLOCK_GENERATION));
    hub.close().unwrap();
    let store = rusqlite::Connection::open(folder.path().join("streams.db")).unwrap();
    let row = "INSERT OR REPLACE INTO meta VALUES ('generation', ?1)";
    store.execute(row, [MAX_GENERATION]).unwrap();
    drop(store);
    let hub = open(folder.path(), 0, Level::Disk);
    let topic: Topic = "b".parse().unwrap();
    assert_eq!(publish(&hub, "b").await, Ok(MAX_GENERATION));
    hub.remove(&topic).await.unwrap();
    let refused = publish(&hub, "b").await;
    assert!(matches!(refused, Err(Error::TooMany { what: "generations", .. })), "{refused:?}");
    assert_eq!(publish(&hub, "a").await, Ok(MAX_CLOCK_GENERATION), "streams that are there go on");
}
