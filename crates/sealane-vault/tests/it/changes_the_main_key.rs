//! A change of the main key locks out whoever has the old one, and nobody and nothing else: writers
//! go on, what was kept stays readable and is not stored again, and a store that plays the change
//! back is refused. Wherever it is interrupted, the next run goes on.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::shared::{CHEAP, Host, PASSPHRASE, Place, assert_same, copy, head};
use sealane_group::Identity;
use sealane_vault::hostile::{self, FalseLink, HostileChunk};
use sealane_vault::{
    Error, OpenOptions, PruneOptions, PutOptions, RecoveryCode, RetentionRules, RotateOptions,
    RotatedVault, SlotSecret, Vault,
};

const SECRET: SlotSecret<'_> = SlotSecret::Passphrase(PASSPHRASE);

fn rotate(place: &Place) -> RotatedVault {
    try_rotate(place).unwrap()
}

fn try_rotate(place: &Place) -> Result<RotatedVault, Error> {
    let options = RotateOptions { recovery: true, ..RotateOptions::default() };
    place.try_open()?.rotate(&SECRET, &place.options(), &options)
}

fn put(vault: &Vault, name: &str) -> u64 {
    vault.put_reader(name, &mut name.as_bytes(), &PutOptions::default()).unwrap().snapshot
}

/// Opens where `state` is what is remembered.
fn open(place: &Place, secret: &SlotSecret<'_>, state: &str) -> Result<Vault, Error> {
    let options = OpenOptions { state: Some(place.path(state)), ..OpenOptions::default() };
    Vault::open(place.store(), secret, &options)
}

fn tree(place: &Place) -> PathBuf {
    place.source(|folder| {
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("text"), crate::shared::Seed(4).text(90_000)).unwrap();
        fs::write(folder.join("deep/noise"), crate::shared::Seed(5).random(40_000)).unwrap();
        // Files that changed just now would be read again by the next put.
        std::thread::sleep(std::time::Duration::from_millis(60));
    })
}

fn keys(place: &Place, prefix: &str) -> BTreeSet<String> {
    place.store().list(prefix).unwrap().into_iter().map(|object| object.key).collect()
}

/// The objects of a vault as they were, put in the place of those that are there.
fn play_back(place: &Place, objects: &BTreeMap<String, Vec<u8>>) {
    fs::remove_dir_all(place.path("vault")).unwrap();
    for (key, bytes) in objects {
        let path = place.path("vault").join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Restores the newest snapshot and compares it with the source.
fn assert_whole(place: &Place, vault: &Vault) {
    let (target, failed) = place.restores(vault, None);
    assert_eq!(failed, []);
    assert_same(&place.path("source"), &target);
}

#[test]
fn an_unchanged_tree_is_not_stored_again_by_anybody() {
    let place = Place::new();
    let source = tree(&place);
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    let put = |vault: Vault| vault.put_paths(std::slice::from_ref(&source), &Default::default());
    put(place.open()).unwrap();
    put(place.open_afresh("second")).unwrap();
    put(host.open(&place)).unwrap();
    let packs = keys(&place, "packs/");
    for _ in 0..2 {
        drop(rotate(&place));
        for vault in [place.open(), place.open_afresh("second"), host.open(&place)] {
            let put = put(vault).unwrap();
            assert_eq!((put.counts.new_chunks, put.counts.stored_bytes), (0, 0));
        }
        assert_eq!(keys(&place, "packs/"), packs);
        assert_whole(&place, &place.open_afresh("fresh"));
    }
    // A prune writes anew what the old keys sealed, and then still nothing is stored again.
    let prune = PruneOptions { now: true, ..PruneOptions::default() };
    let report = place.open().prune(&prune).unwrap();
    assert!(report.repacked > 0 && keys(&place, "packs/").is_disjoint(&packs), "{report:?}");
    for vault in [place.open(), place.open_afresh("second"), place.open_afresh("third")] {
        assert_eq!(put(vault).unwrap().counts.stored_bytes, 0);
    }
    assert_whole(&place, &place.open_afresh("fresh"));
    assert_eq!(place.open().verify(true).unwrap().problems, []);
}

#[test]
fn what_opens_it_afterwards_is_what_was_said() {
    let place = Place::new();
    let owner = place.init();
    let (friend, stranger) =
        (Identity::generate("friend").unwrap(), Identity::generate("stranger").unwrap());
    let old = owner.add_recovery("paper").unwrap();
    owner.add_passphrase(b"of a thief", CHEAP, "").unwrap();
    for identity in [&friend, &stranger] {
        owner.add_identity(identity.public(), "").unwrap();
    }
    let host = Host::of(&place, &owner, "host");
    let ended = Host::of(&place, &owner, "ended");
    put(&ended.open(&place), "believed");
    owner.remove_slot(&ended.slot).unwrap();
    let identities = vec![friend.public().clone()];
    let options = RotateOptions { recovery: true, identities };
    let rotated = place.open().rotate(&SECRET, &place.options(), &options).unwrap();
    assert_eq!((rotated.vault.generation(), rotated.dropped.len()), (1, 5));
    let code = rotated.recovery.unwrap();
    for secret in [SECRET, SlotSecret::Recovery(&code), SlotSecret::Identity(&friend)] {
        let vault = open(&place, &secret, "fresh").unwrap();
        assert_eq!(vault.warnings(), []);
    }
    let thief = SlotSecret::Passphrase(b"of a thief");
    for secret in [thief, SlotSecret::Recovery(&old), SlotSecret::Identity(&stranger)] {
        let refused = open(&place, &secret, "fresh").unwrap_err();
        assert_eq!(refused.info().name, "WrongKey");
    }
    // Writers go on, and those that were ended stay so.
    let vault = place.open();
    let slots = vault.slots().unwrap();
    assert!(slots.len() == 5 && slots.iter().all(|slot| slot.signed), "{slots:?}");
    let labels: BTreeSet<_> = slots.iter().filter_map(|slot| slot.label.as_deref()).collect();
    assert_eq!(labels, BTreeSet::from(["host", "ended"]));
    let writer = ended.open(&place);
    let (newest, previous) = head(&writer);
    let link = FalseLink { number: newest + 1, previous, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    let number = put(&host.open(&place), "of a host");
    let numbers: Vec<u64> = vault.snapshots().unwrap().iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1, number]);
    let vault = place.open();
    let mut out = Vec::new();
    let snapshot = vault.snapshot(Some(number)).unwrap();
    vault.file(&snapshot, b"of a host").unwrap().read_range(0, 99, &mut out).unwrap();
    assert_eq!(out, b"of a host");
    // Keys can be added and removed as before, by the new owner.
    let new = Host::of(&place, &vault, "new");
    put(&new.open(&place), "of a new one");
    vault.remove_slot(&host.slot).unwrap();
    assert_eq!(place.open().snapshots().unwrap().len(), 3);
}

#[test]
fn pins_follow_the_change_and_a_store_that_plays_it_back_is_refused() {
    let place = Place::new();
    let source = tree(&place);
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    put(&host.open(&place), "of a host");
    drop(place.open_afresh("second"));
    let (before, anchor) = (place.objects(), owner.anchor());
    let after = rotate(&place).vault.anchor();
    assert_ne!(anchor, after);
    // A machine that remembers the owner before, or is told of it, follows.
    assert_eq!(place.open_afresh("second").anchor(), after);
    drop(host.open(&place));
    for expect in [&anchor, &after] {
        let state = Some(place.path(&expect[40..]));
        let options = OpenOptions { state, expect: Some(expect.clone()), ..Default::default() };
        assert_eq!(Vault::open(place.store(), &SECRET, &options).unwrap().anchor(), after);
    }
    play_back(&place, &before);
    for state in ["state", "second"] {
        let refused = open(&place, &SECRET, state).unwrap_err();
        assert_eq!(refused.info().name, "VaultExchanged");
    }
    let writer = SlotSecret::Writer(&host.key);
    let refused = open(&place, &writer, "host").unwrap_err();
    assert_eq!(refused.info().name, "VaultExchanged");
    // A machine that remembers nothing is told what to expect; without, the first use is trusted.
    let state = Some(place.path("fresh"));
    let options = OpenOptions { state, expect: Some(after), ..OpenOptions::default() };
    let refused = Vault::open(place.store(), &SECRET, &options).unwrap_err();
    assert_eq!(refused.info().name, "VaultExchanged");
}

#[test]
fn a_store_that_hides_the_hand_over_alone_is_found_out() {
    let place = Place::new();
    let source = tree(&place);
    place.init().put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    drop(rotate(&place));
    let all = place.objects();
    let hidden = |prefixes: &[&str]| {
        let kept = |key: &str| !prefixes.iter().any(|prefix| key.starts_with(prefix));
        all.iter().filter(|(key, _)| kept(key)).map(|(key, of)| (key.clone(), of.clone())).collect()
    };
    let lists = keys(&place, "roster/").len();
    let newest = format!("roster/{lists:010}");
    for prefixes in [&["snapshots/0000000002"][..], &["snapshots/0000000002", &newest]] {
        play_back(&place, &hidden(prefixes));
        let refused = place.try_open().unwrap_err();
        assert_eq!(refused.info().name, "RolledBack", "{prefixes:?}");
    }
}

/// A holder of the main key from before can sign and seal as the owner of that time did.
#[test]
fn a_thief_of_the_old_main_key_reads_and_signs_nothing_that_is_new() {
    let place = Place::new();
    let source = tree(&place);
    let thief = place.init();
    let first = thief.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(first.snapshot, 1);
    drop(rotate(&place));
    let owner = place.open();
    fs::write(source.join("new"), b"written after the change").unwrap();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    // It does not read what is new.
    assert!(thief.snapshot(Some(3)).is_err());
    let packs = thief.store().list("packs/").unwrap();
    assert!(packs.iter().filter(|pack| thief.inspect(&pack.key).is_err()).count() == 1);
    // A program that is not hostile finds out that it has the old key.
    let refused = thief.put_paths(std::slice::from_ref(&source), &Default::default()).unwrap_err();
    assert_eq!(refused.info().name, "KeyRotated");
    let refused = thief.add_passphrase(b"x", CHEAP, "").unwrap_err();
    assert_eq!(refused.info().name, "KeyRotated");
    let refused = thief.prune(&PruneOptions::default()).unwrap_err();
    assert_eq!(refused.info().name, "KeyRotated");
    // Links of its own are none: behind the hand-over, and in the place of one before it.
    let newest = head(&owner);
    hostile::plant_link(&thief, FalseLink { number: 4, previous: newest.1, ..Default::default() })
        .unwrap();
    fs::remove_file(place.path("vault/snapshots/0000000001")).unwrap();
    hostile::plant_link(&thief, FalseLink { number: 1, ..Default::default() }).unwrap();
    for state in ["state", "fresh"] {
        let vault = place.open_afresh(state);
        let numbers: Vec<u64> = vault.snapshots().unwrap().iter().map(|one| one.number).collect();
        assert_eq!(numbers, [3], "{state}");
        let problems = vault.verify(false).unwrap().problems;
        for number in [1, 4] {
            let key = format!("snapshots/{number:010}");
            assert!(problems.iter().any(|problem| problem.path == key), "{problems:?}");
        }
        assert_whole(&place, &vault);
    }
}

/// A thief of the old main key can hand over as well, to a key of its own: in a copy of the vault
/// as it was before.
#[test]
fn a_second_hand_over_beside_the_true_one_stops_nobody() {
    let (place, copy_of) = (Place::new(), Place::new());
    let owner = place.init();
    put(&owner, "a");
    copy(&place.path("vault"), &copy_of.path("vault"));
    drop(rotate(&copy_of));
    put(&owner, "b");
    drop(rotate(&place));
    let objects = place.objects();
    let second = copy_of.objects()["snapshots/0000000002"].clone();
    let (two, three) = ("snapshots/0000000002", "snapshots/0000000003");
    // Beside the true one, and where that is lost.
    let (lost, kept) = (&[three][..], &[][..]);
    for (without, at) in [(kept, two), (lost, two)] {
        let mut played = objects.clone();
        without.iter().for_each(|key| drop(played.remove(*key)));
        played.insert(at.to_owned(), second.clone());
        for state in ["state", "fresh"] {
            play_back(&place, &played);
            let _ = fs::remove_dir_all(place.path("fresh"));
            let remembered = Place::new();
            if state == "state" {
                copy(&place.path("state"), &remembered.path("state"));
            }
            let options = OpenOptions { state: Some(remembered.path("state")), ..place.options() };
            let open = || Vault::open(place.store(), &SECRET, &options);
            let vault = match open() {
                // A machine that has seen the true one misses it.
                Err(Error::RolledBack { .. }) if state == "state" && !without.is_empty() => {
                    continue;
                }
                other => other.unwrap(),
            };
            assert_eq!(vault.generation(), 1);
            let problems = vault.verify(false).unwrap().problems;
            assert!(problems.iter().any(|problem| problem.path == at), "{problems:?}");
            put(&vault, "c");
            let numbers: Vec<u64> =
                vault.snapshots().unwrap().iter().map(|one| one.number).collect();
            assert!(numbers.contains(&1) && numbers.len() == 2, "{state}: {numbers:?}");
        }
    }
}

#[test]
fn garbage_that_the_old_key_sealed_keeps_nobody_from_keeping_a_file() {
    let place = Place::new();
    let source = tree(&place);
    let thief = place.init();
    drop(rotate(&place));
    let noise = fs::read(source.join("deep/noise")).unwrap();
    let id = hostile::id(&thief, 0, &noise);
    let lie = HostileChunk { kind: 0, id: Some(id), plain: b"garbage".to_vec() };
    let size = hostile::plant_pack(&thief, &[lie]).unwrap();
    let pack = keys(&place, "packs/").pop_first().unwrap();
    hostile::plant_index(&thief, &pack, size, &[id]).unwrap();
    for state in ["state", "fresh"] {
        let vault = place.open_afresh(state);
        let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        assert_eq!(put.counts.new_chunks > 0, state == "state");
        assert_whole(&place, &place.open_afresh("third"));
    }
}

#[test]
fn slots_that_a_thief_has_copied_open_nothing_when_it_puts_them_back() {
    let place = Place::new();
    let owner = place.init();
    owner.add_passphrase(b"of a thief", CHEAP, "").unwrap();
    let before = place.objects();
    put(&owner, "a");
    drop(rotate(&place));
    for (key, bytes) in before.iter().filter(|(key, _)| key.starts_with("keys/")) {
        fs::write(place.path("vault").join(key), bytes).unwrap();
    }
    let refused = open(&place, &SlotSecret::Passphrase(b"of a thief"), "thief").unwrap_err();
    assert_eq!(refused.info().name, "WrongKey");
    // The owner's passphrase opens one of those, too, which is not taken.
    let vault = place.open();
    assert_eq!(vault.generation(), 1);
    assert_eq!(vault.warnings().len(), 2, "{:?}", vault.warnings());
}

#[test]
fn a_change_that_no_owner_of_this_vault_signed_is_skipped_and_stops_nobody() {
    let (place, other) = (Place::new(), Place::new());
    let owner = place.init();
    put(&owner, "a");
    other.init();
    drop(rotate(&other));
    fs::create_dir_all(place.path("vault/rotations")).unwrap();
    let junk = [("001", other.objects()["rotations/001"].clone()), ("002", b"junk".to_vec())];
    for (name, bytes) in junk {
        fs::write(place.path("vault/rotations").join(name), bytes).unwrap();
    }
    let vault = place.open_afresh("fresh");
    assert_eq!((vault.generation(), vault.warnings().len()), (0, 2));
    vault.add_passphrase(b"another", CHEAP, "").unwrap();
    put(&vault, "b");
    let vault = rotate(&place).vault;
    assert_eq!((vault.generation(), vault.snapshots().unwrap().len()), (1, 2));
}

/// The vault before and after a change, and what lies between them, in the order of writing.
fn steps(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let kinds = ["keys/", "index/", "rotations/", "snapshots/", "-", "roster/"];
    let new = |kind: &str| {
        after
            .keys()
            .filter(|key| !before.contains_key(*key))
            .filter(|key| key.starts_with(kind))
            .cloned()
            .collect::<Vec<_>>()
    };
    let gone = || before.keys().filter(|key| !after.contains_key(*key)).cloned().collect();
    kinds.iter().flat_map(|kind| if *kind == "-" { gone() } else { new(kind) }).collect()
}

#[test]
fn it_goes_on_from_wherever_it_was_interrupted() {
    let place = Place::new();
    let source = tree(&place);
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    owner.add_passphrase(b"another", CHEAP, "").unwrap();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    copy(&place.path("state"), &place.path("then"));
    let before = place.objects();
    drop(rotate(&place));
    let after = place.objects();
    let steps = steps(&before, &after);
    assert!(steps.len() >= 8, "{steps:?}");
    let mut now = before;
    let mut changed = false;
    for step in [None].into_iter().chain(steps.iter().map(Some)) {
        if let Some(key) = step {
            match after.get(key) {
                Some(bytes) => drop(now.insert(key.clone(), bytes.clone())),
                None => drop(now.remove(key)),
            }
            changed |= key.starts_with("snapshots/");
        }
        for (state, again) in [("then", false), ("fresh", false), ("then", true), ("fresh", true)] {
            play_back(&place, &now);
            let _ = fs::remove_dir_all(place.path("host"));
            let remembered = Place::new();
            if state == "then" {
                copy(&place.path("then"), &remembered.path("state"));
            }
            let options = OpenOptions { state: Some(remembered.path("state")), ..place.options() };
            let open = || Vault::open(place.store(), &SECRET, &options);
            let written = host.open(&place);
            put(&written, "beside it");
            let mut vault = open().unwrap_or_else(|error| panic!("{step:?}, {state}: {error}"));
            assert_eq!(vault.generation() > 0, changed, "{step:?}, {state}");
            if again {
                vault = vault.rotate(&SECRET, &options, &RotateOptions::default()).unwrap().vault;
                assert_eq!(vault.generation(), 1 + u8::from(changed));
                vault.add_passphrase(b"later", CHEAP, "").unwrap();
            }
            let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default());
            assert_eq!(put.unwrap().counts.stored_bytes, 0, "{step:?}, {state}");
            assert_whole(&place, &vault);
            let problems = vault.verify(true).unwrap().problems;
            // New slots that nobody signed yet lie there until the change is done.
            let slots = problems.iter().all(|problem| problem.path.starts_with("keys/"));
            assert!(problems.is_empty() || slots && !changed && !again, "{step:?}: {problems:?}");
        }
    }
}

/// The newest is never removed by this test, since nobody who remembers nothing sees that.
#[test]
fn each_object_of_a_changed_vault_lost_or_damaged_in_turn() {
    let place = Place::new();
    let source = tree(&place);
    let owner = place.init();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    put(&Host::of(&place, &owner, "host").open(&place), "of a host");
    drop(rotate(&place));
    let code = rotate(&place).recovery.unwrap();
    place.open().put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let objects = place.objects();
    let newest = keys(&place, "snapshots/").pop_last().unwrap();
    for (key, whole) in objects.iter().filter(|(key, _)| **key != newest) {
        let mut rotten = whole.clone();
        rotten[whole.len() * 3 / 5] ^= 1;
        for damaged in [None, Some(rotten)] {
            let mut objects = objects.clone();
            match &damaged {
                Some(rotten) => objects.insert(key.clone(), rotten.clone()),
                None => objects.remove(key),
            };
            play_back(&place, &objects);
            let fresh = Place::new();
            let vault = open_somehow(&place, &fresh.path("state"), &code);
            let vault = vault.unwrap_or_else(|error| panic!("{key}: {error}"));
            assert_eq!(vault.generation(), 2, "{key}");
            let problems = vault.verify(true).unwrap().problems;
            // Shortcuts, what a newer one replaces, and what was mended when it was opened.
            let spare = ["index/", "roster/", "rotations/", "config"];
            let spare = spare.iter().any(|prefix| key.starts_with(prefix));
            assert!(spare || !problems.is_empty(), "{key}: {problems:?}");
            let (target, failed) = place.restores(&vault, None);
            assert!(failed.is_empty() || key.starts_with("packs/"), "{key}: {failed:?}");
            vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
            assert_whole(&place, &vault);
            if failed.is_empty() {
                assert_same(&source, &target);
            }
        }
    }
}

/// With the passphrase or the paper; where the config is gone, after mending it.
fn open_somehow(place: &Place, state: &Path, code: &RecoveryCode) -> Result<Vault, Error> {
    let options = OpenOptions { state: Some(state.to_owned()), ..OpenOptions::default() };
    let open = |secret: &SlotSecret<'_>| Vault::open(place.store(), secret, &options);
    match open(&SECRET) {
        Err(Error::WrongKey | Error::SlotsDamaged(_)) => open(&SlotSecret::Recovery(code)),
        Err(Error::NoVault(_) | Error::Malformed { .. } | Error::Signature(_)) => {
            let options = OpenOptions { objects_alone: true, ..options.clone() };
            let vault = Vault::open(place.store(), &SECRET, &options)?;
            assert!(vault.mend_config()?);
            open(&SECRET)
        }
        other => other,
    }
}

/// Becomes true at the end of a scope, however that is left.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs it again as long as another machine was faster.
fn retry(run: &dyn Fn() -> Result<u64, Error>) -> u64 {
    loop {
        match run() {
            Ok(number) => return number,
            Err(Error::Rotated | Error::Raced | Error::Pruned) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_handle_from_before_a_change_says_so_instead_of_hiding_what_came_after_it() {
    let place = Place::new();
    let first = put(&place.init(), "before");
    let before = open(&place, &SECRET, "before").unwrap();
    put(&try_rotate(&place).unwrap().vault, "after");
    assert!(matches!(before.snapshots(), Err(Error::Rotated)));
    assert_eq!(before.snapshot(Some(first)).unwrap().number, first, "what it can read it reads");
    assert_eq!(open(&place, &SECRET, "before").unwrap().snapshots().unwrap().len(), 2);
}

#[test]
fn beside_puts_and_prunes_of_other_machines() {
    let place = Place::new();
    let source = tree(&place);
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    drop(owner);
    let (done, puts) = (AtomicBool::new(false), AtomicU64::new(0));
    let changes = Cell::new(0);
    let run = |open: &(dyn Fn() -> Result<Vault, Error> + Sync), name: &str, prune: bool| {
        let mut kept = Vec::new();
        for turn in 0.. {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let name = format!("{name} {turn}");
            kept.push((
                name.clone(),
                retry(&|| {
                    let vault = open()?;
                    let mut bytes = name.as_bytes();
                    let put = vault.put_reader(&name, &mut bytes, &PutOptions::default())?;
                    puts.fetch_add(1, Ordering::Relaxed);
                    if prune && turn % 2 == 0 {
                        let keep = RetentionRules { last: 10_000, ..RetentionRules::default() };
                        vault.prune(&PruneOptions { keep, ..PruneOptions::default() })?;
                    }
                    Ok(put.snapshot)
                }),
            ));
        }
        kept
    };
    let second = || open(&place, &SECRET, "second");
    let writer = || open(&place, &SlotSecret::Writer(&host.key), "host");
    let kept = std::thread::scope(|scope| {
        // Also where this thread panics: the others would go on for ever.
        let _done = SetWhenDropped(&done);
        let threads = [
            scope.spawn(|| run(&second, "second", true)),
            scope.spawn(|| run(&writer, "host", false)),
        ];
        while puts.load(Ordering::Relaxed) < 5 && changes.get() < 12 {
            retry(&|| try_rotate(&place).map(|_| 0));
            changes.set(changes.get() + 1);
        }
        done.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().unwrap()).concat()
    });
    let vault = place.open_afresh("fresh");
    assert_eq!((vault.generation(), vault.verify(true).unwrap().problems), (changes.get(), vec![]));
    assert!(!kept.is_empty() && changes.get() > 0);
    for (name, number) in kept {
        let snapshot = vault.snapshot(Some(number)).unwrap();
        let mut out = Vec::new();
        vault.file(&snapshot, name.as_bytes()).unwrap().read_range(0, 99, &mut out).unwrap();
        assert_eq!(out, name.as_bytes());
    }
}
