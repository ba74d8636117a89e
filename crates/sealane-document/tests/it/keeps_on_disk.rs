//! Everything that was kept is there after a restart, a killed process and a full disk.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use sealane_document::{
    DocumentCursor, DocumentDelivery, DocumentQuota, DocumentStore, ShelfKeeper, StoreError,
    TakeOutcome,
};
use sealane_testing::check_damaged_copies;

use crate::team::{GROUP, Origin, peer};

fn open(path: &Path, keeper: ShelfKeeper) -> DocumentStore {
    DocumentStore::open(path, keeper, DocumentQuota::default()).unwrap()
}

fn counters(store: &DocumentStore) -> Vec<u64> {
    store.registers(GROUP).into_iter().flat_map(|r| r.iter()).map(|e| e.stamp.counter).collect()
}

#[test]
fn a_restart_loses_nothing_and_cursors_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let mut origin = Origin::new(3);
    let mut store = open(&path, ShelfKeeper::Member);
    for _ in 0..70 {
        assert_eq!(store.take(&origin.seal(72, b"sample"), peer(3)).unwrap(), TakeOutcome::New);
    }
    let (id, seen) = (store.id(), store.since(DocumentCursor::START, 100));
    assert_eq!(seen.len(), 64, "a log of the last 64");
    let last = seen.last().unwrap().at;
    drop(store);
    let mut store = open(&path, ShelfKeeper::Member);
    assert_eq!((store.id(), store.since(DocumentCursor::START, 100)), (id, seen));
    let again = store.since(last, 1);
    assert!(again.is_empty());
    store.take(&origin.seal(72, b"sample"), peer(3)).unwrap();
    assert!(store.since(last, 10).len() == 1, "a cursor stays good over a restart");
}

#[test]
fn places_are_not_given_again_though_the_last_frame_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let mut store = open(&path, ShelfKeeper::Member);
    store.take(&Origin::new(3).seal(72, b"sample"), peer(3)).unwrap();
    let last = store.since(DocumentCursor::START, 1).pop().unwrap();
    store.forget(GROUP, last.entry.origin).unwrap();
    drop(store);
    let mut store = open(&path, ShelfKeeper::Member);
    assert!(store.is_empty());
    store.take(&Origin::new(4).seal(72, b"sample"), peer(3)).unwrap();
    assert_eq!(store.since(last.at, 10).len(), 1);
}

#[test]
fn one_process_has_it_and_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let store = open(&path, ShelfKeeper::Relay);
    let second = DocumentStore::open(&path, ShelfKeeper::Relay, DocumentQuota::default());
    assert!(matches!(second, Err(StoreError::Busy)), "{second:?}");
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", file.path());
    }
    drop(store);
    open(&path, ShelfKeeper::Relay);
}

#[test]
fn what_is_something_else_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    std::fs::write(&path, [0x5a; 8192]).unwrap();
    let refused =
        DocumentStore::open(&path, ShelfKeeper::Relay, DocumentQuota::default()).unwrap_err();
    assert_eq!(refused.info().code, "SL-STORE-03");
    assert_eq!(std::fs::read(&path).unwrap(), [0x5a; 8192], "nothing is written over it");
}

#[test]
fn the_database_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused =
        DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap_err();
    assert_eq!(refused.info().code, "SL-STORE-03");
    assert!(std::fs::read(&path).unwrap() == before, "not a byte of it has changed");
}

#[test]
fn a_damaged_store_is_read_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let mut store = open(&path, ShelfKeeper::Member);
    let mut origin = Origin::new(3);
    for count in 0..40 {
        store.take(&origin.seal(72 + count % 8, &[7; 100]), peer(1)).unwrap();
    }
    drop(store);
    check_damaged_copies(&path, |damaged| {
        if let Ok(mut store) =
            DocumentStore::open(damaged, ShelfKeeper::Member, DocumentQuota::default())
        {
            let _ = store.take(&origin.seal(4, b"here"), peer(1));
            assert!(store.since(DocumentCursor::START, 100).len() <= 41);
        }
    });
}

#[test]
fn frames_of_one_transaction_are_refused_alone() {
    let mut store = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
    let frames =
        [Origin::new(3).seal(4, b"here"), b"nothing".to_vec(), Origin::new(4).seal(4, b"")];
    let all: Vec<_> =
        frames.iter().map(|frame| DocumentDelivery { frame, from: peer(1) }).collect();
    let taken = store.take_all(&all).unwrap();
    assert!(matches!(
        taken[..],
        [Ok(TakeOutcome::New), Err(StoreError::NoFrame(_)), Ok(TakeOutcome::New)]
    ));
}

#[test]
fn relays_bytes_make_no_other_frame() {
    let mut store = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
    let mut frame = Origin::new(3).seal(4, b"here");
    assert_eq!(store.take(&frame, peer(1)).unwrap(), TakeOutcome::New);
    sealane_frame::forward_in_place(&mut frame, peer(7), sealane_frame::PeerTag::BROADCAST)
        .unwrap();
    assert_eq!(store.take(&frame, peer(2)).unwrap(), TakeOutcome::Known);
}

const CHILD: &str = "SEALANE_TEST_DOCUMENT_STORE";

/// Takes frames until it is killed, and says which are kept.
#[test]
fn as_a_process_that_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let mut store = open(Path::new(&path), ShelfKeeper::Member);
    let mut origin = Origin::new(3);
    origin.skip_to(counters(&store).last().map_or(0, |last| last + 1));
    loop {
        let frame = origin.seal(72, b"sample");
        let next = counters(&store).last().map_or(0, |last| last + 1);
        assert_eq!(store.take(&frame, peer(3)).unwrap(), TakeOutcome::New);
        println!("kept {next}");
    }
}

#[test]
fn a_killed_process_has_lost_nothing_that_it_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "keeps_on_disk::as_a_process_that_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut confirmed = None;
        // Killed behind another count of frames each time, at whatever it does then.
        let enough = 1 + round * 7 % 23;
        let mut count = 0;
        while count < enough {
            let line = said.next().expect("it goes on until it is killed").unwrap();
            if let Some(kept) = line.split("kept ").nth(1) {
                confirmed = kept.trim().parse::<u64>().ok();
                count += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in said.map_while(Result::ok) {
            let kept = line.split("kept ").nth(1);
            confirmed = kept.and_then(|kept| kept.trim().parse().ok()).or(confirmed);
        }
        let store = open(&path, ShelfKeeper::Member);
        let held = counters(&store);
        let last = confirmed.unwrap();
        assert!(held.last().is_some_and(|highest| *highest >= last), "{last} of {held:?}");
        assert!(held.len() == 64 || held.first() == Some(&0), "{held:?}");
        assert!(held.windows(2).all(|pair| pair[1] == pair[0] + 1), "without holes: {held:?}");
    }
}

#[test]
fn a_store_of_a_later_version_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    drop(open(&path, ShelfKeeper::Member));
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused =
        DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap_err();
    assert!(matches!(refused, StoreError::Version(99)), "{refused}");
}
