//! Only what the owner says was removed counts as removed; all else that is not there is missing,
//! and named.

use std::fs;

use crate::shared::{Host, Place, head};
use sealane_vault::hostile::{self, FalseLink};
use sealane_vault::{PruneOptions, PutOptions, RetentionGroupBy, RetentionRules, Vault};

fn put(vault: &Vault, name: &str) -> u64 {
    vault.put_reader(name, &mut name.as_bytes(), &PutOptions::default()).unwrap().snapshot
}

/// A prune that counts all snapshots as one group.
fn of_all(keep: RetentionRules) -> PruneOptions {
    let group_by = RetentionGroupBy { signer: false, host: false, paths: false, tags: false };
    PruneOptions { keep, group_by, now: true, ..PruneOptions::default() }
}

fn names(vault: &Vault) -> String {
    let problems = vault.verify(false).unwrap().problems;
    problems.iter().map(|problem| format!("{}: {}\n", problem.path, problem.reason)).collect()
}

#[test]
fn a_writer_does_not_hide_that_snapshots_were_deleted() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    for name in ["a", "b", "c"] {
        put(&owner, name);
    }
    let writer = host.open(&place);
    let (number, previous) = head(&writer);
    let removed = vec![(1, [1; 32]), (2, [2; 32]), (3, previous)];
    hostile::plant_link(
        &writer,
        FalseLink { number: number + 1, previous, removed, ..FalseLink::default() },
    )
    .unwrap();
    for number in 1..=3 {
        fs::remove_file(place.path(&format!("vault/snapshots/{number:010}"))).unwrap();
    }
    // The machine that remembers the head goes on, and says what is gone.
    let (owner, fresh) = (place.open(), place.open_afresh("fresh"));
    for vault in [&owner, &fresh] {
        let told = names(vault);
        assert!(told.contains("snapshots/0000000004: it names removed snapshots"), "{told}");
        assert!(told.contains("0000000003 is not there"), "{told}");
        assert!(!vault.warnings().is_empty());
    }
    // A prune does not make the lie its own.
    put(&owner, "d");
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let pruned = owner.prune(&of_all(keep));
    let told = names(&place.open_afresh("later"));
    assert!(pruned.is_err() || told.contains("snapshots/0000000001"), "{pruned:?} {told}");
}

#[test]
fn what_the_owner_removed_is_not_missing() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    put(&owner, "a");
    put(&host.open(&place), "b");
    put(&owner, "c");
    put(&host.open(&place), "d");
    let keep = RetentionRules { last: 2, ..RetentionRules::default() };
    let pruned = owner.prune(&of_all(keep)).unwrap();
    assert_eq!((pruned.kept, pruned.removed), (2, 2));
    let fresh = place.open_afresh("fresh");
    assert_eq!(names(&fresh), "");
    assert_eq!(fresh.warnings(), []);
    // A snapshot that the list does not name is missing all the same.
    fs::remove_file(place.path("vault/snapshots/0000000003")).unwrap();
    let told = names(&place.open_afresh("another"));
    assert!(told.contains("snapshots/0000000003"), "{told}");
    let host = host.open(&place);
    assert_eq!(put(&host, "e"), 6);
}

#[test]
fn each_missing_snapshot_is_named_and_the_others_are_read() {
    for lost in 1..=3 {
        let place = Place::new();
        let owner = place.init();
        for name in ["a", "b", "c", "d"] {
            put(&owner, name);
        }
        let key = format!("snapshots/{lost:010}");
        fs::remove_file(place.path("vault").join(&key)).unwrap();
        let fresh = place.open_afresh("fresh");
        let told = names(&fresh);
        assert!(told.starts_with(&format!("{key}: ")) && told.lines().count() == 1, "{told}");
        let there: Vec<u64> = fresh.snapshots().unwrap().iter().map(|s| s.number).collect();
        let expected: Vec<u64> = (1..=4).filter(|number| *number != lost).collect();
        assert_eq!(there, expected);
        assert_eq!(put(&fresh, "e"), 5);
        assert_eq!(put(&place.open(), "f"), 6);
    }
}
