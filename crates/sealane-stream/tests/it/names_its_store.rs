//! A store has a name of its own: it keeps it as long as it lives, and no copy of it has the same.

use std::path::Path;

use sealane_stream::{HubConfig, Level, Retention, StreamHub, backup, restore, store_id};

fn open(folder: &Path) -> StreamHub {
    let (level, retention) = (Level::Disk, Retention::default());
    StreamHub::open(HubConfig { folder: folder.to_owned(), level, retention }).unwrap()
}

/// The store is closed by a hub and copied as a file.
fn copy_file(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    std::fs::copy(from.join("streams.db"), to.join("streams.db")).unwrap();
}

#[test]
fn a_store_keeps_its_name_and_shares_it_with_no_copy() {
    let place = tempfile::tempdir().unwrap();
    let folder = |name| place.path().join(name);
    let (first, moved) = (folder("first"), folder("moved"));
    let hub = open(&first);
    let id = hub.store_id();
    assert_eq!(store_id(&first), Ok(Some(id)), "while a hub runs");
    backup(&first, &folder("backup")).unwrap();
    drop(hub);
    assert_eq!(open(&first).store_id(), id, "the next opening");
    copy_file(&first, &folder("copied"));
    restore(&folder("backup"), &folder("restored")).unwrap();
    let mut ids = vec![id, open(&folder("other")).store_id()];
    for copy in ["backup", "copied", "restored"] {
        assert_eq!(store_id(&folder(copy)), Ok(None), "{copy}: before a hub opens it");
        ids.push(open(&folder(copy)).store_id());
        assert_eq!(open(&folder(copy)).store_id(), *ids.last().unwrap(), "{copy}: from then on");
    }
    std::fs::rename(&first, &moved).unwrap();
    assert_eq!(open(&moved).store_id(), id, "moved within its file system");
    let count = ids.len();
    ids.sort_by_key(|id| id.to_string());
    ids.dedup();
    assert_eq!(ids.len(), count, "no two stores have the same");
    assert_eq!(id.to_string().len(), 32);
}

#[test]
fn no_store_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    assert!(store_id(folder.path()).unwrap_err().to_string().contains("no store"));
}
