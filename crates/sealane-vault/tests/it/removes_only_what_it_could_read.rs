//! Nothing is removed while anything that may name data is missing, short or damaged, wherever it
//! stands. It may be whole again in an hour, and then all of it has to come back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::shared::{Host, PASSPHRASE, Place, Seed};
use sealane_vault::hostile::{self, FalseLink};
use sealane_vault::{
    PruneOptions, PruneReport, PutOptions, RetentionGroupBy, RetentionRules, RotateOptions,
    SlotSecret, Vault,
};

/// Files of snapshots, by number.
type Contents = BTreeMap<u64, Vec<u8>>;

fn put(vault: &Vault, content: &[u8]) -> u64 {
    vault.put_reader("file", &mut &*content, &PutOptions::default()).unwrap().snapshot
}

/// Two snapshots of the owner and two of a writer, in turns, none with data of another.
fn kept() -> (Place, Contents) {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    let mut contents = Contents::new();
    for number in 1..=4 {
        let content = Seed(number).random(100_000);
        let vault = if number % 2 == 0 { host.open(&place) } else { place.open() };
        assert_eq!(put(&vault, &content), number);
        contents.insert(number, content);
    }
    place.open();
    (place, contents)
}

fn prune(vault: &Vault, give_up: &[u64]) -> Result<PruneReport, &'static str> {
    let group_by = RetentionGroupBy { signer: false, host: false, paths: false, tags: false };
    let keep = RetentionRules { last: 9, ..RetentionRules::default() };
    let give_up = give_up.iter().copied().collect::<BTreeSet<u64>>();
    let options = PruneOptions { keep, group_by, now: true, give_up, ..PruneOptions::default() };
    vault.prune(&options).map_err(|error| error.info().name)
}

fn assert_all(place: &Place, state: &str, contents: &Contents, what: &str) {
    let vault = place.open_afresh(state);
    for (number, content) in contents {
        let snapshot = vault.snapshot(Some(*number)).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (mut out, file) = (Vec::new(), vault.file(&snapshot, b"file"));
        let read = file.and_then(|mut file| file.read_range(0, u64::MAX, &mut out));
        assert!(read.is_ok() && out == *content, "{what}: {number} {read:?}");
    }
}

/// An object as it is for a while: not there, empty, cut, changed in several places.
fn harms(whole: &[u8]) -> Vec<Option<Vec<u8>>> {
    let half = whole.get(..whole.len() / 2).unwrap().to_vec();
    let flips = [2, 8, 30, 66, 80, whole.len() / 2, whole.len() - 20, whole.len() - 1];
    let flips = flips.into_iter().filter(|at| *at < whole.len()).map(|at| {
        let mut flipped = whole.to_vec();
        flipped[at] ^= 1;
        Some(flipped)
    });
    [None, Some(vec![]), Some(half)].into_iter().chain(flips).collect()
}

fn write(path: &Path, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => fs::write(path, bytes).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
}

#[test]
fn a_link_that_cannot_be_read_stops_a_prune_wherever_it_stands() {
    let (place, contents) = kept();
    for number in 1..=4 {
        let key = format!("snapshots/{number:010}");
        let whole = place.objects()[&key].clone();
        for (turn, harm) in harms(&whole).into_iter().enumerate() {
            let what = format!("{key}, harm {turn}");
            let path = place.path("vault").join(&key);
            let (own, fresh) = (place.open(), place.open_afresh(&format!("fresh {key} {turn}")));
            write(&path, harm.as_deref());
            // Of the newest only who has seen it can know that it is missing.
            let is_seen = harm.is_some() || number < 4;
            let name = if is_seen { "SnapshotUnread" } else { "RolledBack" };
            assert_eq!(prune(&own, &[]).unwrap_err(), name, "{what}");
            if is_seen {
                assert_eq!(prune(&fresh, &[]).unwrap_err(), "SnapshotUnread", "{what}");
                let said = own.retention(&PruneOptions::default()).unwrap_err().to_string();
                assert!(said.contains(&format!("snapshot {number} (")), "{what}: {said}");
            }
            fs::write(&path, &whole).unwrap();
            assert_all(&place, "later", &contents, &what);
        }
    }
    assert!(prune(&place.open(), &[]).is_ok());
    assert_all(&place, "later", &contents, "pruned");
}

#[test]
fn a_prune_beside_any_object_that_cannot_be_read_costs_no_data() {
    let (place, contents) = kept();
    let objects = place.objects();
    for (key, whole) in &objects {
        for (turn, harm) in harms(whole).into_iter().take(6).enumerate() {
            let what = format!("{key}, harm {turn}");
            let copy = Place::new();
            for (key, bytes) in &objects {
                let path = copy.path("vault").join(key);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            // Each machine opened it while it was whole.
            let vault = copy.open();
            write(&copy.path("vault").join(key), harm.as_deref());
            let newest = key.ends_with("0000000004") && harm.is_none();
            for _ in 0..2 {
                let pruned = prune(&vault, &[]);
                assert!(!newest || pruned.is_err(), "{what}");
            }
            let path = copy.path("vault").join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, whole).unwrap();
            assert_all(&copy, "later", &contents, &what);
        }
    }
}

#[test]
fn what_is_given_up_goes_by_name_and_the_vault_is_whole_again() {
    for number in 1..=4 {
        for turn in [0, 1, 8] {
            let (place, mut contents) = kept();
            let key = format!("snapshots/{number:010}");
            let harm = harms(&place.objects()[&key]).swap_remove(turn);
            let (own, is_missing) = (place.open(), harm.is_none());
            if is_missing && number == 4 {
                continue;
            }
            write(&place.path("vault").join(&key), harm.as_deref());
            let what = format!("{key}, harm {turn}");
            let others: Vec<u64> = (1..=4).filter(|other| *other != number).collect();
            assert_eq!(
                prune(&own, &[if number == 1 { 2 } else { 1 }]).unwrap_err(),
                "SnapshotUnread"
            );
            let report = prune(&own, &[number]).unwrap_or_else(|name| panic!("{what}: {name}"));
            assert_eq!(report.given_up.len(), 1, "{what}");
            assert_eq!(report.given_up[0].path, format!("snapshot {number}"), "{what}");
            assert!(report.removed_packs > 0, "{what}");
            contents.remove(&number);
            for state in ["state", "fresh"] {
                assert_all(&place, state, &contents, &what);
                let vault = place.open_afresh(state);
                let numbers = vault.snapshots().unwrap().into_iter().map(|one| one.number);
                assert_eq!(numbers.collect::<Vec<_>>(), others, "{what}");
                assert_eq!(vault.verify(true).unwrap().problems, [], "{what}");
                assert!(prune(&vault, &[]).is_ok(), "{what}");
            }
        }
    }
}

#[test]
fn a_change_of_the_main_key_waits_for_links_that_cannot_be_read() {
    let (place, contents) = kept();
    let path = place.path("vault/snapshots/0000000004");
    let whole = fs::read(&path).unwrap();
    let rotate = || {
        let secret = SlotSecret::Passphrase(PASSPHRASE);
        place.open().rotate(&secret, &place.options(), &RotateOptions::default())
    };
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(rotate().unwrap_err().info().name, "SnapshotUnread");
    fs::write(&path, &whole).unwrap();
    rotate().unwrap();
    assert!(prune(&place.open(), &[]).is_ok());
    assert_all(&place, "later", &contents, "rotated");
}

#[test]
fn a_repair_removes_no_pack_that_something_needs() {
    let (place, contents) = kept();
    for pack in place.store().list("packs/").unwrap() {
        let path = place.path("vault").join(&pack.key);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, b"<html>one moment</html>").unwrap();
        let report = place.open().repair(&[], &PutOptions::default()).unwrap();
        assert!(!report.lost.is_empty());
        assert!(path.exists(), "{}", pack.key);
        fs::write(&path, &whole).unwrap();
    }
    assert_all(&place, "later", &contents, "repaired");
    assert_eq!(place.open().verify(true).unwrap().problems, []);
}

/// A writer that names pages that nobody kept is told from one whose pages cannot be read.
#[test]
fn pages_that_nobody_ever_kept_stop_no_prune() {
    let (place, contents) = kept();
    let host = Host::of(&place, &place.open(), "bad");
    let writer = host.open(&place);
    let (number, previous) = crate::shared::head(&writer);
    let pages = vec![hostile::id(&writer, 1, b"no page")];
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    assert!(prune(&place.open(), &[]).is_ok());
    assert_all(&place, "later", &contents, "pruned");
    // It is taken away by its number.
    assert!(prune(&place.open(), &[number + 1]).is_ok());
    assert_eq!(place.open().verify(true).unwrap().problems, []);
}
