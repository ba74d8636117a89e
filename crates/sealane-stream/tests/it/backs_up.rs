//! A copy that is made while the hub takes messages holds all that was acknowledged before, and the
//! store that is made of it never gives a place of the first to another message.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sealane_codec::{Codec, Transcoder};
use sealane_stream::{
    Error, HubConfig, Level, ReadStart, Retention, StreamEnqueue, StreamEnvelope, StreamHub,
    SubscriptionOutput, backup, check, newest_ms, restore,
};

fn open(folder: &Path) -> StreamHub {
    let (level, retention) = (Level::Disk, Retention::default());
    StreamHub::open(HubConfig { folder: folder.to_owned(), level, retention }).unwrap()
}

async fn enqueue(hub: &StreamHub, topic: &str, number: u64) -> u64 {
    let body = format!(r#"{{"id":"m{number}"}}"#);
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
    hub.enqueue(enqueue).await.unwrap().offset
}

/// The ids of all messages of a stream, in order.
async fn ids(hub: &StreamHub, topic: &str) -> Vec<String> {
    let topic = topic.parse().unwrap();
    let (mut ids, mut next) = (Vec::new(), 0);
    loop {
        let page = hub.read(&topic, ReadStart::Offset(next), 1000).await.unwrap();
        for event in &page.events {
            let SubscriptionOutput::Deliver(delivery) = event else { panic!("{event:?}") };
            let frame = delivery.frame(Codec::Json);
            let text = std::str::from_utf8(&frame).unwrap();
            let id = text.split('"').nth(5).unwrap();
            ids.push(id.to_owned());
        }
        if page.end {
            return ids;
        }
        next = page.next;
    }
}

/// Open bodies are in a copy: nobody but its owner may read it.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_under_load_holds_all_that_was_acknowledged_before() {
    let place = tempfile::tempdir().unwrap();
    let (data, copy, again) =
        (place.path().join("data"), place.path().join("copy"), place.path().join("again"));
    let hub = Arc::new(open(&data));
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (hub, done) = (hub.clone(), done.clone());
            tokio::spawn(async move {
                let mut sent = 0;
                while !done.load(Ordering::Relaxed) {
                    enqueue(&hub, &format!("load/{writer}"), sent).await;
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for number in 0..300 {
        assert_eq!(enqueue(&hub, "mine", number).await, number);
        acknowledged.push(format!("m{number}"));
    }
    let (from, to) = (data.clone(), copy.clone());
    let copied = tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap().unwrap();
    // The first goes on, to offsets that the copy does not have.
    for number in 300..400 {
        enqueue(&hub, "mine", number).await;
    }
    done.store(true, Ordering::Relaxed);
    let mut sent = Vec::new();
    for writer in writers {
        sent.push(writer.await.unwrap());
    }
    let before = hub.stream(&"mine".parse().unwrap()).unwrap();
    hub.close().unwrap();
    assert_eq!(copied.streams, 9);
    assert_eq!((mode(&copy), mode(&copy.join("streams.db"))), (0o700, 0o600));
    assert!(copied.messages >= 300 && sent.iter().all(|sent| *sent > 0), "{copied:?} {sent:?}");

    assert_eq!(restore(&copy, &again).unwrap(), check(&copy).unwrap());
    let restored = open(&again);
    let after = restored.stream(&"mine".parse().unwrap()).unwrap();
    assert_eq!(ids(&restored, "mine").await, acknowledged);
    assert_eq!((after.next, before.next), (300, 400));
    assert!(after.generation > before.generation, "{after:?} {before:?}");
    for (writer, sent) in sent.into_iter().enumerate() {
        let ids = ids(&restored, &format!("load/{writer}")).await;
        let expected: Vec<String> = (0..ids.len()).map(|number| format!("m{number}")).collect();
        assert_eq!(ids, expected);
        assert!(ids.len() <= sent as usize);
    }
    // The next opening begins nothing new.
    restored.close().unwrap();
    let reopened = open(&again);
    let generation = reopened.stream(&"mine".parse().unwrap()).unwrap().generation;
    assert_eq!(generation, after.generation);
}

#[tokio::test]
async fn what_is_no_copy_or_no_place_for_one_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let (data, copy) = (place.path().join("data"), place.path().join("copy"));
    let refused = |result: Result<_, Error>, why: &str| match result {
        Err(error) => assert_eq!(error.info().name, why, "{error}"),
        other => panic!("{other:?}"),
    };
    refused(backup(&data, &copy), "NoStore");
    refused(check(&data), "NoStore");
    refused(restore(&data, &copy), "NoStore");
    let hub = open(&data);
    for number in 0..2000 {
        enqueue(&hub, "a", number).await;
    }
    // A store that a hub uses is no backup.
    refused(restore(&data, &copy), "NoStore");
    hub.close().unwrap();
    // Of a store that nobody uses too.
    assert_eq!(backup(&data, &copy).unwrap().messages, 2000);
    refused(backup(&data, &copy), "TargetExists");
    refused(restore(&copy, &data), "TargetExists");
    let file = copy.join("streams.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let page = bytes.len() / 8192 / 2 * 8192;
    bytes[page..page + 64].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();
    let new = place.path().join("new");
    refused(check(&copy), "NotAStore");
    // The fault is told of the file that was named, and not of the copy that began.
    let damaged = restore(&copy, &new).unwrap_err();
    let expected = format!("{}: pages of the store are damaged", file.display());
    assert_eq!((damaged.to_string(), damaged.info().name), (expected, "NotAStore"));
    assert_eq!(std::fs::read_dir(&new).unwrap().count(), 0);
    // The log of a store that is gone would be taken for that of the new one.
    std::fs::write(new.join("streams.db-wal"), b"left").unwrap();
    refused(restore(&copy, &new), "TargetExists");
    std::fs::remove_file(new.join("streams.db-wal")).unwrap();
    let later = place.path().join("later");
    backup(&data, &later).unwrap();
    let newer = rusqlite::Connection::open(later.join("streams.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    refused(restore(&later, &new), "StoreTooNew");
}

/// Whatever the clock says, and whether a hub runs on the store or not.
#[tokio::test]
async fn the_newest_message_of_all_streams_tells_its_time() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(newest_ms(place.path()).unwrap_err().info().name, "NoStore");
    let hub = open(place.path());
    assert_eq!(newest_ms(place.path()), Ok(None));
    for (number, topic) in ["a", "b", "a", "c"].into_iter().enumerate() {
        enqueue(&hub, topic, number as u64).await;
    }
    let newest = hub.stream(&"c".parse().unwrap()).unwrap().last_ms;
    assert_eq!(newest_ms(place.path()), Ok(Some(newest)));
    hub.close().unwrap();
    let store = rusqlite::Connection::open(place.path().join("streams.db")).unwrap();
    store.execute("UPDATE block SET last_ms = 7000000000000 WHERE key >> 40 = 1", []).unwrap();
    assert_eq!(newest_ms(place.path()), Ok(Some(7_000_000_000_000)));
}

/// The mark of a hub that runs, and all that it acknowledged, may stand in the log alone.
#[tokio::test]
async fn a_store_whose_hub_was_killed_is_refused_by_name_and_a_closed_one_is_whole() {
    let place = tempfile::tempdir().unwrap();
    let (data, killed) = (place.path().join("data"), place.path().join("killed"));
    open(&data).close().unwrap();
    let hub = open(&data);
    for number in 0..500 {
        enqueue(&hub, "a", number).await;
    }
    // As the kill leaves it: the hub has written nothing else.
    std::fs::create_dir(&killed).unwrap();
    for entry in std::fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), killed.join(entry.file_name())).unwrap();
    }
    let new = place.path().join("new");
    for from in [&killed, &data] {
        let refused = restore(from, &new).unwrap_err();
        assert_eq!(refused.info().name, "NoStore", "{refused}");
        assert_eq!(std::fs::read_dir(&new).unwrap().count(), 0, "nothing is left of it");
    }
    hub.close().unwrap();
    assert_eq!(restore(&data, &new).unwrap().messages, 500);
    assert_eq!(ids(&open(&new), "a").await.len(), 500);
}
