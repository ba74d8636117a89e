//! Where the newest snapshot cannot be read, an older one is taken only by whoever asks for it.

use std::fs;

use crate::shared::{Host, Place, copy, head};
use sealane_vault::hostile::{self, FalseLink};
use sealane_vault::{DrillOptions, PutOptions, SnapshotSelector, Vault};

fn put(vault: &Vault, content: &[u8]) -> u64 {
    vault.put_reader("file", &mut &*content, &PutOptions::default()).unwrap().snapshot
}

#[test]
fn an_older_snapshot_is_no_success() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, b"yesterday");
    let before = place.open_afresh("before");
    put(&owner, b"today");
    let path = place.path("vault/snapshots/0000000002");
    let whole = fs::read(&path).unwrap();
    for (turn, at) in [30, 66, whole.len() / 2, whole.len() - 1].into_iter().enumerate() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&path, if turn == 0 { &whole[..at] } else { &flipped }).unwrap();
        // The machine that made it, one that knows the one before, and one that knows nothing.
        for vault in [&place.open(), &before, &place.open_afresh(&format!("fresh {at}"))] {
            let drill = |options| {
                let scratch = tempfile::tempdir().unwrap();
                vault.drill(scratch.path(), &options).map(|report| report.snapshot)
            };
            let paths = [b"file".to_vec()];
            let failures = [
                vault.snapshot(None).map(|snapshot| snapshot.number),
                vault.newest(&SnapshotSelector::default(), &paths).map(|snapshot| snapshot.number),
                drill(DrillOptions::default()),
            ];
            for failure in failures {
                let failure = failure.unwrap_err();
                assert_eq!(failure.info().name, "OlderOnly", "{at}");
                let said = failure.to_string();
                assert!(said.starts_with("snapshot 1 would be taken"), "{said}");
                assert!(said.contains("2 (") && said.contains("SL-VAULT-"), "{said}");
            }
            let asked = SnapshotSelector { allow_older: true, ..SnapshotSelector::default() };
            assert_eq!(vault.newest(&asked, &paths).unwrap().number, 1);
            assert_eq!(vault.snapshot(Some(1)).unwrap().number, 1);
            let asked = DrillOptions { allow_older: true, ..DrillOptions::default() };
            assert_eq!(drill(asked).unwrap(), 1);
        }
    }
    // A newer one that can be read takes its place.
    assert_eq!(put(&place.open(), b"tomorrow"), 3);
    assert_eq!(place.open_afresh("then").snapshot(None).unwrap().number, 3);
}

/// Only a writer's link tells of the newest of the owner's, which has gone.
#[test]
fn a_newer_one_that_only_a_writer_names_is_not_passed_over() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    put(&owner, b"yesterday");
    put(&owner, b"today");
    assert_eq!(put(&host.open(&place), b"of the host"), 3);
    fs::remove_file(place.path("vault/snapshots/0000000002")).unwrap();
    let fresh = place.open_afresh("fresh");
    let paths = [b"file".to_vec()];
    let refused = fresh.newest(&SnapshotSelector::default(), &paths).unwrap_err();
    assert_eq!(refused.info().name, "OlderOnly");
    let said = refused.to_string();
    assert!(said.starts_with("snapshot 1 would be taken") && said.contains("2 ("), "{said}");
    let asked = SnapshotSelector { allow_older: true, ..SnapshotSelector::default() };
    assert_eq!(fresh.newest(&asked, &paths).unwrap().number, 1);
}

/// Anybody who may write to the store can lay a link there that is whole and that no key of the
/// vault signed.
#[test]
fn a_link_of_a_stranger_makes_no_snapshot_an_older_one() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, b"today");
    let twin = Place::new();
    copy(&place.path("vault"), &twin.path("vault"));
    let stranger = Host::of(&twin, &twin.open(), "stranger").open(&twin);
    let (number, previous) = head(&stranger);
    let link = FalseLink { number: number + 1, previous, ..FalseLink::default() };
    hostile::plant_link(&stranger, link).unwrap();
    let key = format!("vault/snapshots/{:010}", number + 1);
    fs::copy(twin.path(&key), place.path(&key)).unwrap();
    let paths = [b"file".to_vec()];
    for vault in [&owner, &place.open(), &place.open_afresh("fresh")] {
        for _ in 0..2 {
            assert_eq!(vault.snapshot(None).unwrap().number, 1);
            let newest = vault.newest(&SnapshotSelector::default(), &paths);
            assert_eq!(newest.unwrap().number, 1);
        }
        let named = vault.warnings().iter().any(|at| key.ends_with(&at.path));
        assert!(named, "{:?}", vault.warnings());
    }
    assert_eq!(put(&place.open(), b"tomorrow"), 3);
    assert_eq!(place.open_afresh("then").snapshot(None).unwrap().number, 3);
}

/// A stranger may take such a link away again: it is no head that the store has to have.
#[test]
fn a_link_of_a_stranger_is_no_head() {
    let place = Place::new();
    let owner = place.init();
    put(&owner, b"today");
    let twin = Place::new();
    copy(&place.path("vault"), &twin.path("vault"));
    let stranger = Host::of(&twin, &twin.open(), "stranger").open(&twin);
    let (number, previous) = head(&stranger);
    let link = FalseLink { number: number + 1, previous, ..FalseLink::default() };
    hostile::plant_link(&stranger, link).unwrap();
    let key = format!("vault/snapshots/{:010}", number + 1);
    fs::copy(twin.path(&key), place.path(&key)).unwrap();
    for state in ["state", "fresh"] {
        place.open_afresh(state).snapshots().unwrap();
    }
    fs::remove_file(place.path(&key)).unwrap();
    for state in ["state", "fresh"] {
        let vault = place.open_afresh(state);
        assert_eq!(vault.snapshot(None).unwrap().number, 1, "{state}");
        assert_eq!(vault.verify(true).unwrap().problems, [], "{state}");
    }
    assert_eq!(put(&place.open(), b"tomorrow"), 2);
}
