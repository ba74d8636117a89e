//! Nothing is removed while anything that may name data is missing, short or damaged, wherever it
//! stands. It may be whole again in an hour, and then all of it has to come back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::shared::{Host, PASSPHRASE, Place, Seed, copy, head};
use sealane_vault::hostile::{self, FalseLink, HostileChunk};
use sealane_vault::{
    FilePiece, OpenOptions, PruneOptions, PruneReport, PutOptions, RetentionGroupBy,
    RetentionRules, RotateOptions, SlotSecret, SnapshotEntry, SnapshotEntryKind, Vault,
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
    let (number, previous) = head(&writer);
    let pages = vec![hostile::id(&writer, 1, b"no page")];
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    assert!(prune(&place.open(), &[]).is_ok());
    assert_all(&place, "later", &contents, "pruned");
    // It is taken away by its number.
    assert!(prune(&place.open(), &[number + 1]).is_ok());
    assert_eq!(place.open().verify(true).unwrap().problems, []);
}

/// A copy of the vault in which the links from a number on never were.
fn twin(place: &Place, from: u64) -> Place {
    let twin = Place::new();
    copy(&place.path("vault"), &twin.path("vault"));
    for number in from..10 {
        let _ = fs::remove_file(twin.path(&format!("vault/snapshots/{number:010}")));
    }
    twin
}

/// A whole link that nobody of the vault has signed lies over the newest.
#[test]
fn a_link_of_a_stranger_over_one_that_was_seen_stops_a_prune() {
    let (place, contents) = kept();
    let path = place.path("vault/snapshots/0000000004");
    let whole = fs::read(&path).unwrap();
    let twin = twin(&place, 4);
    let stranger = Host::of(&twin, &twin.open(), "stranger").open(&twin);
    let (number, previous) = head(&stranger);
    assert_eq!(number, 3);
    hostile::plant_link(&stranger, FalseLink { number: 4, previous, ..FalseLink::default() })
        .unwrap();
    let own = place.open();
    fs::copy(twin.path("vault/snapshots/0000000004"), &path).unwrap();
    for vault in [&own, &place.open()] {
        assert_eq!(prune(vault, &[]).unwrap_err(), "SnapshotUnread");
        assert_eq!(vault.snapshot(None).unwrap_err().info().name, "OlderOnly");
    }
    fs::write(&path, &whole).unwrap();
    assert!(prune(&place.open(), &[]).is_ok());
    assert_all(&place, "later", &contents, "a stranger's");
    // It is given up by its number as any other.
    fs::copy(twin.path("vault/snapshots/0000000004"), &path).unwrap();
    assert!(prune(&place.open(), &[4]).is_ok());
    assert!(prune(&place.open(), &[]).is_ok());
}

/// A link is lost that the owner's next one names, and a writer has taken its number since.
#[test]
fn a_lost_link_is_given_up_and_the_whole_one_in_its_place_stays() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    let mut contents = Contents::new();
    for number in 1..=3 {
        let content = Seed(number).random(100_000);
        let vault = if number == 2 { host.open(&place) } else { place.open() };
        assert_eq!(put(&vault, &content), number);
        contents.insert(number, content);
    }
    let twin = twin(&place, 3);
    let options = OpenOptions { state: Some(twin.path("host")), ..OpenOptions::default() };
    let writer = Vault::open(twin.store(), &SlotSecret::Writer(&host.key), &options).unwrap();
    let content = Seed(33).random(100_000);
    assert_eq!(put(&writer, &content), 3);
    contents.insert(3, content);
    let content = Seed(4).random(100_000);
    assert_eq!(put(&place.open(), &content), 4);
    contents.insert(4, content);
    fs::remove_file(place.path("vault/snapshots/0000000003")).unwrap();
    for (key, bytes) in twin.objects() {
        let path = place.path("vault").join(&key);
        if !path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    for vault in [place.open(), place.open_afresh("fresh")] {
        assert_eq!(prune(&vault, &[]).unwrap_err(), "SnapshotUnread");
        assert_all(&place, "later", &contents, "before");
    }
    let report = prune(&place.open(), &[3]).unwrap();
    assert_eq!((report.removed, report.given_up.len()), (0, 1), "{report:?}");
    for state in ["state", "fresh", "another"] {
        assert_all(&place, state, &contents, state);
        assert!(prune(&place.open_afresh(state), &[]).is_ok(), "{state}");
        assert_eq!(place.open_afresh(state).verify(true).unwrap().problems, [], "{state}");
    }
    let secret = SlotSecret::Passphrase(PASSPHRASE);
    place.open().rotate(&secret, &place.options(), &RotateOptions::default()).unwrap();
    assert_all(&place, "rotated", &contents, "rotated");
}

/// Another machine of the owner has added the writer since.
#[test]
fn a_prune_of_an_open_handle_knows_the_writers_that_came_since() {
    let (place, mut contents) = kept();
    let (own, other) = (place.open(), place.open_afresh("other"));
    let host = Host::of(&place, &other, "new");
    let content = Seed(5).random(100_000);
    assert_eq!(put(&host.open(&place), &content), 5);
    contents.insert(5, content);
    prune(&own, &[]).unwrap();
    assert_all(&place, "later", &contents, "an old list");
}

#[test]
fn a_list_of_slots_that_is_lost_stops_a_prune() {
    let (place, mut contents) = kept();
    let host = Host::of(&place, &place.open(), "new");
    let mut lost = vec![format!("keys/{}", host.slot)];
    lost.push(place.store().list("roster/").unwrap().pop().unwrap().key);
    for number in [5, 6] {
        let content = Seed(number).random(100_000);
        let vault = if number == 5 { host.open(&place) } else { place.open() };
        assert_eq!(put(&vault, &content), number);
        contents.insert(number, content);
    }
    let objects = place.objects();
    for key in &lost {
        fs::remove_file(place.path("vault").join(key)).unwrap();
    }
    let refused = prune(&place.open_afresh("fresh"), &[]).unwrap_err();
    assert_eq!(refused, "SnapshotUnread");
    for key in &lost {
        fs::write(place.path("vault").join(key), &objects[key]).unwrap();
    }
    assert!(prune(&place.open_afresh("fresh"), &[]).is_ok());
    assert_all(&place, "later", &contents, "a lost list");
}

fn file(path: &[u8], size: u64, pieces: Vec<FilePiece>) -> SnapshotEntry {
    SnapshotEntry {
        path: path.to_vec(),
        mode: 0o644,
        uid: 0,
        gid: 0,
        mtime_ns: 0,
        node: SnapshotEntryKind::File { size, pieces },
        hard_link: None,
        attributes: Vec::new(),
    }
}

/// A list that nobody kept costs the file that names it, and no other of its page.
#[test]
fn a_list_that_nobody_kept_costs_only_its_file() {
    let (place, contents) = kept();
    let host = Host::of(&place, &place.open(), "odd");
    let writer = host.open(&place);
    let (number, previous) = head(&writer);
    let plain = Seed(9).random(1000);
    let made_up = hostile::id(&writer, 2, b"no list");
    let lists = vec![FilePiece::List { bytes: 9, id: made_up }];
    let chunk = FilePiece::Chunk { bytes: 1000, id: hostile::id(&writer, 0, &plain) };
    let page = hostile::page_of(&[file(b"a", 9, lists), file(b"b", 1000, vec![chunk])]);
    let pages = vec![hostile::id(&writer, 1, &page)];
    let chunk = |kind, plain: &[u8]| HostileChunk { kind, id: None, plain: plain.to_vec() };
    // In packs of their own, so that the one goes if nothing of it is needed.
    hostile::plant_pack(&writer, &[chunk(1, &page)]).unwrap();
    hostile::plant_pack(&writer, &[chunk(0, &plain)]).unwrap();
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    for _ in 0..2 {
        prune(&place.open(), &[]).unwrap();
    }
    let (vault, mut out) = (place.open_afresh("later"), Vec::new());
    let snapshot = vault.snapshot(Some(number + 1)).unwrap();
    vault.file(&snapshot, b"b").unwrap().read_range(0, u64::MAX, &mut out).unwrap();
    assert!(out == plain);
    assert_all(&place, "later", &contents, "pruned");
}

/// A writer's snapshot may name a page that the owner keeps and nobody can read for a while.
#[test]
fn a_page_that_is_tolerated_of_a_writer_is_not_tolerated_of_the_owner() {
    let place = Place::new();
    let big = Seed(1).random(200_000);
    let source = place.source(|folder| fs::write(folder.join("big"), &big).unwrap());
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    let options = PutOptions::default();
    owner.put_paths(std::slice::from_ref(&source), &options).unwrap();
    let before = place.objects();
    fs::write(source.join("small"), b"small").unwrap();
    for vault in [host.open(&place), place.open()] {
        vault.put_paths(std::slice::from_ref(&source), &options).unwrap();
    }
    // Nothing is left for a while of what the two have kept but their links.
    let after = place.objects();
    let hidden = |key: &String| {
        !before.contains_key(key) && (key.starts_with("packs/") || key.starts_with("index/"))
    };
    let hidden: Vec<&String> = after.keys().filter(|key| hidden(key)).collect();
    for key in &hidden {
        fs::remove_file(place.path("vault").join(key)).unwrap();
    }
    let vault = place.open_afresh("fresh");
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let pruned = vault.prune(&PruneOptions { keep, now: true, ..PruneOptions::default() });
    assert_eq!(pruned.unwrap_err().info().name, "SnapshotUnread");
    for key in &hidden {
        fs::write(place.path("vault").join(key), &after[*key]).unwrap();
    }
    let (target, failed) = place.restores(&place.open_afresh("later"), Some(3));
    assert_eq!(failed, []);
    crate::shared::assert_same(&source, &target);
}

/// A writer names a list of the owner's with another length.
#[test]
fn a_list_that_a_writer_misnames_stays_whole_for_its_owner() {
    let place = Place::new();
    // Each hole makes two pieces.
    let source = place.source(|folder| {
        let file = fs::File::create(folder.join("sparse")).unwrap();
        for at in 0..700_u64 {
            file.write_all_at(&Seed(at).random(64), at << 14).unwrap();
        }
    });
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    let options = PutOptions::default();
    owner.put_paths(std::slice::from_ref(&source), &options).unwrap();
    let snapshot = owner.snapshot(None).unwrap();
    let entries = owner.entries(&snapshot).unwrap().map(Result::unwrap);
    let mut lists = entries.flat_map(|entry| match entry.node {
        SnapshotEntryKind::File { pieces, .. } => pieces,
        _ => Vec::new(),
    });
    let Some(FilePiece::List { bytes, id }) = lists.next() else { panic!("no list") };
    let writer = host.open(&place);
    let (number, previous) = head(&writer);
    let size = bytes + 1;
    let page = hostile::page_of(&[file(b"a", size, vec![FilePiece::List { bytes: size, id }])]);
    let pages = vec![hostile::id(&writer, 1, &page)];
    hostile::plant_pack(&writer, &[HostileChunk { kind: 1, id: None, plain: page }]).unwrap();
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    fs::write(source.join("more"), b"more").unwrap();
    place.open().put_paths(std::slice::from_ref(&source), &options).unwrap();
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let prune = PruneOptions { keep, now: true, ..PruneOptions::default() };
    for _ in 0..2 {
        place.open().prune(&prune).unwrap();
    }
    let (target, failed) = place.restores(&place.open_afresh("later"), Some(number + 2));
    assert_eq!(failed, []);
    crate::shared::assert_same(&source, &target);
}

/// A writer names a page of the owner's as a part of a file: the page is needed then, and what it
/// names as much as before.
#[test]
fn a_page_that_a_writer_names_as_a_chunk_keeps_what_it_names() {
    let place = Place::new();
    let big = Seed(1).random(200_000);
    let source = place.source(|folder| fs::write(folder.join("big"), &big).unwrap());
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    let put = |vault: &Vault| {
        vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap().snapshot
    };
    let first = put(&owner);
    let snapshot = owner.snapshot(Some(first)).unwrap();
    let entries: Vec<SnapshotEntry> =
        owner.entries(&snapshot).unwrap().map(Result::unwrap).collect();
    let owners = hostile::page_of(&entries);
    let writer = host.open(&place);
    let (number, previous) = head(&writer);
    let (bytes, id) = (owners.len() as u64, hostile::id(&writer, 1, &owners));
    let page = hostile::page_of(&[file(b"a", bytes, vec![FilePiece::Chunk { bytes, id }])]);
    let pages = vec![hostile::id(&writer, 1, &page)];
    hostile::plant_pack(&writer, &[HostileChunk { kind: 1, id: None, plain: page }]).unwrap();
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    put(&place.open());
    let last = put(&place.open());
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let prune = PruneOptions { keep, now: true, ..PruneOptions::default() };
    let reports: Vec<PruneReport> = (0..2).map(|_| place.open().prune(&prune).unwrap()).collect();
    assert_eq!((reports[0].kept, reports[0].removed), (2, 2));
    let vault = place.open_afresh("later");
    let (target, failed) = place.restores(&vault, Some(last));
    assert_eq!(failed, []);
    crate::shared::assert_same(&source, &target);
    assert_eq!(vault.verify(true).unwrap().problems, []);
}

/// Of a chunk that a prune writes anew, only the pack that it is read from tells the kind.
#[test]
fn a_writer_that_misnames_the_kind_of_a_chunk_keeps_no_pack_from_being_repacked() {
    let place = Place::new();
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    let contents: Vec<Vec<u8>> = (0..16).map(|number| Seed(number).random(1000)).collect();
    for content in &contents {
        put(&owner, content);
    }
    let writer = host.open(&place);
    let (number, previous) = head(&writer);
    let mut pieces = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let plain = Seed(100 + at as u64).random(1000);
        pieces.push(FilePiece::Chunk { bytes: 1000, id: hostile::id(&writer, 0, &plain) });
        let id = Some(hostile::id(&writer, 0, content));
        let lie = HostileChunk { kind: 1, id, plain: b"garbage".to_vec() };
        let truth = HostileChunk { kind: 0, id: None, plain };
        hostile::plant_pack(&writer, &[lie, truth]).unwrap();
    }
    let page = hostile::page_of(&[file(b"a", 16_000, pieces)]);
    let pages = vec![hostile::id(&writer, 1, &page)];
    hostile::plant_pack(&writer, &[HostileChunk { kind: 1, id: None, plain: page }]).unwrap();
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    let keep = RetentionRules { last: 99, ..RetentionRules::default() };
    let report =
        place.open().prune(&PruneOptions { keep, now: true, ..PruneOptions::default() }).unwrap();
    assert_eq!((report.removed, report.stuck, report.repacked), (0, 0, 33));
    let later = place.open_afresh("later");
    for (number, content) in contents.iter().enumerate() {
        let snapshot = later.snapshot(Some(number as u64 + 1)).unwrap();
        let mut out = Vec::new();
        later.file(&snapshot, b"file").unwrap().read_range(0, u64::MAX, &mut out).unwrap();
        assert!(out == *content);
    }
}

/// The link with which the owner handed over is lost, and nobody has a copy.
#[test]
fn a_lost_hand_over_is_given_up_by_name_and_the_vault_goes_on() {
    let place = Place::new();
    let owner = place.init();
    let rotate = || {
        let secret = SlotSecret::Passphrase(PASSPHRASE);
        place.open().rotate(&secret, &place.options(), &RotateOptions::default()).unwrap()
    };
    put(&owner, b"before");
    drop(rotate());
    assert_eq!(put(&place.open(), b"after"), 3);
    fs::remove_file(place.path("vault/snapshots/0000000002")).unwrap();
    let keep = RetentionRules { last: 9, ..RetentionRules::default() };
    let mut options = PruneOptions { keep, now: true, ..PruneOptions::default() };
    for vault in [place.open(), place.open_afresh("fresh")] {
        assert_eq!(vault.prune(&options).unwrap_err().info().name, "SnapshotUnread");
    }
    options.give_up.insert(2);
    assert_eq!(place.open_afresh("fresh").prune(&options).unwrap().given_up.len(), 1);
    options.give_up.clear();
    for state in ["state", "fresh", "another"] {
        place.open_afresh(state).prune(&options).unwrap_or_else(|error| panic!("{state}: {error}"));
    }
    drop(rotate());
    for state in ["state", "fresh", "third"] {
        let vault = place.open_afresh(state);
        let numbers: Vec<u64> = vault.snapshots().unwrap().iter().map(|one| one.number).collect();
        assert_eq!((numbers, vault.generation()), (vec![1, 3], 2), "{state}");
        assert_eq!(vault.verify(true).unwrap().problems, [], "{state}");
    }
}
