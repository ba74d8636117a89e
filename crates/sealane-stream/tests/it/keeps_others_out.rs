//! One hub has a folder, whatever becomes of the file that says so.

use std::path::Path;

use sealane_codec::{Codec, Transcoder};
use sealane_stream::{
    Error, HubConfig, Level, Retention, StreamEnqueue, StreamEnvelope, StreamHub, is_in_use,
};

fn open(folder: &Path) -> Result<StreamHub, Error> {
    let (level, retention) = (Level::Disk, Retention::default());
    StreamHub::open(HubConfig { folder: folder.to_owned(), level, retention })
}

fn refused(folder: &Path) {
    let Err(Error::FolderInUse(said)) = open(folder) else { panic!("a second hub was let in") };
    assert_eq!(said, folder.display().to_string());
}

async fn offset(hub: &StreamHub) -> u64 {
    let mut scratch = Transcoder::new();
    let envelope = StreamEnvelope::read(&mut scratch, hub.ids(), Codec::Json, b"{}").unwrap();
    let (topic, envelopes, owner) = ("a".parse().unwrap(), vec![envelope], "".into());
    let ask = StreamEnqueue { topic, envelopes, expect: None, delay_ms: None, key: None, owner };
    hub.enqueue(ask).await.unwrap().offset
}

#[tokio::test]
async fn a_lock_that_was_deleted_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let (path, lock) = (folder.path(), folder.path().join("lock"));
    assert!(!is_in_use(path), "a folder without a hub");
    let hub = open(path).unwrap();
    refused(path);
    std::fs::remove_file(&lock).unwrap();
    refused(path);
    assert!(!lock.exists(), "a hub that is refused makes no lock of its own");
    assert!(is_in_use(path));
    // A file of that name that somebody else makes says nothing either.
    std::fs::write(&lock, "").unwrap();
    refused(path);
    assert_eq!((offset(&hub).await, offset(&hub).await), (0, 1), "the first one goes on");
    drop(hub);
    assert!(!is_in_use(path), "a hub that ended leaves nothing");
    assert_eq!(offset(&open(path).unwrap()).await, 2);
}
