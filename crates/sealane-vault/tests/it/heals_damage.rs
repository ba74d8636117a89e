//! Damage costs what was damaged: that is named, all else comes back byte for byte, and the next
//! put of a source that is whole makes the vault whole again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::shared::{Host, PASSPHRASE, Place, assert_same, flip, odd_files};
use sealane_vault::hostile::{self, FalseLink};
use sealane_vault::{
    Error, GetOptions, OpenOptions, PruneOptions, PutOptions, RecoveryCode, RetentionRules,
    SkippedItem, SlotSecret, Vault, VaultStore,
};

/// A vault with the first state of a tree and a second one, a writer's copy among them.
struct Kept {
    place: Place,
    code: RecoveryCode,
    objects: BTreeMap<String, Vec<u8>>,
}

fn kept() -> Kept {
    let place = Place::new();
    let source = place.source(|folder| {
        odd_files(folder);
        fs::write(folder.join("text"), crate::shared::Seed(4).text(50_000)).unwrap();
    });
    let owner = place.init();
    let code = owner.add_recovery("paper").unwrap();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    fs::write(source.join("text"), crate::shared::Seed(5).text(60_000)).unwrap();
    let host = Host::of(&place, &owner, "host");
    host.open(&place).put_reader("of a host", &mut &b"host"[..], &Default::default()).unwrap();
    owner.put_paths(&[source], &PutOptions::default()).unwrap();
    let objects = place.objects();
    Kept { place, code, objects }
}

impl Kept {
    /// The vault as it was, but for one object; opened by whoever remembers nothing.
    fn with(&self, key: &str, bytes: Option<&[u8]>) -> (Place, Result<Vault, Error>) {
        let place = Place::new();
        for (name, content) in &self.objects {
            let content = if name == key { bytes } else { Some(content.as_slice()) };
            let path = place.path("vault").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            content.into_iter().for_each(|content| fs::write(&path, content).unwrap());
        }
        let opened = self.open(&place);
        (place, opened)
    }

    /// Opens with the passphrase, and with the paper where its slot is gone.
    fn open(&self, place: &Place) -> Result<Vault, Error> {
        let store = || VaultStore::open(place.path("vault").to_str().unwrap()).unwrap();
        let open = |secret: &SlotSecret<'_>| Vault::open(store(), secret, &place.options());
        match open(&SlotSecret::Passphrase(PASSPHRASE)) {
            Err(Error::WrongKey | Error::SlotsDamaged(_)) => {
                open(&SlotSecret::Recovery(&self.code))
            }
            Err(Error::NoVault(_) | Error::Malformed { .. } | Error::Signature(_)) => {
                // Only the config is that important, and a repair writes it again.
                let options = OpenOptions { objects_alone: true, ..place.options() };
                let secret = SlotSecret::Passphrase(PASSPHRASE);
                let vault = Vault::open(store(), &secret, &options)?;
                assert!(vault.mend_config()?);
                open(&secret)
            }
            other => other,
        }
    }
}

/// Whether the vault is whole without the object: a shortcut, or one that a newer one replaces.
fn is_spare(kept: &Kept, key: &str) -> bool {
    let newest = kept.objects.keys().rfind(|key| key.starts_with("roster/"));
    key.starts_with("index/") || key.starts_with("roster/") && newest.is_some_and(|at| at != key)
}

/// Whatever lies in `found` is as it is in `truth`; gives how many files of that are not there.
fn compare(found: &Path, truth: &Path) -> usize {
    let truth = crate::shared::looks(truth).0;
    if !found.exists() {
        return truth.len();
    }
    let found = crate::shared::looks(found).0;
    let partial = |path: &Path| path.to_string_lossy().ends_with(".part");
    for (path, look) in found.iter().filter(|(path, _)| !partial(path)) {
        if let Some(expected) = truth.get(path) {
            assert_eq!(look, expected, "{}", path.display());
        }
    }
    truth.keys().filter(|path| !found.contains_key(*path)).count()
}

#[test]
fn each_object_lost_in_turn_is_named_and_all_else_comes_back() {
    let kept = kept();
    for (key, whole) in &kept.objects {
        let (place, opened) = kept.with(key, None);
        let vault = opened.unwrap_or_else(|error| panic!("{key}: {error}"));
        let problems = vault.verify(true).unwrap().problems;
        let newest = key == "snapshots/0000000003";
        let spare = is_spare(&kept, key) || key == "config" || newest;
        assert_eq!(problems.is_empty(), spare, "{key}: {problems:?}");
        let own = key.starts_with("snapshots/") || key.starts_with("keys/");
        if own && !newest {
            assert!(problems.iter().all(|problem| problem.path.contains(key)), "{problems:?}");
        }
        let number = if newest { 1 } else { 3 };
        let (target, failed) = place.restores(&vault, Some(number));
        let lost = if newest { 0 } else { compare(&target, &kept.place.path("source")) };
        assert_eq!(lost > 0, !failed.is_empty(), "{key}: {failed:?}");
        assert!(failed.is_empty() || key.starts_with("packs/"), "{key}");
        // The copy of the object brings all of it back.
        fs::write(place.path("vault").join(key), whole).unwrap();
        let vault = kept.open(&place).unwrap();
        let (target, failed) = place.restores(&vault, Some(3));
        assert_eq!(failed, [], "{key}");
        assert_same(&kept.place.path("source"), &target);
    }
}

#[test]
fn bit_rot_in_each_object_and_a_put_of_the_source_make_it_whole() {
    let kept = kept();
    let source = kept.place.path("source");
    for (key, whole) in &kept.objects {
        for part in [3, 11, 19] {
            let mut rotten = whole.clone();
            let at = whole.len() * part / 20;
            rotten[at] ^= 1;
            let (place, opened) = kept.with(key, Some(&rotten));
            let vault = opened.unwrap_or_else(|error| panic!("{key} at {at}: {error}"));
            let found = vault.verify(true).unwrap().problems;
            let named = !found.is_empty() || key == "config";
            assert!(named || key.starts_with("roster/") && is_spare(&kept, key), "{key} at {at}");
            vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
            for vault in [&vault, &kept.open(&place).unwrap()] {
                let (target, failed) = place.restores(vault, None);
                assert_eq!(failed, [], "{key} at {at}");
                assert_same(&source, &target);
            }
            let repaired = vault.repair(&[], &PutOptions::default()).unwrap();
            // A link cannot be made again, and what only the first state had has no source.
            let first = |path: &str| path.starts_with("snapshot") || path.ends_with("text");
            let lost =
                repaired.lost.iter().all(|lost| lost.path.contains(key) || first(&lost.path));
            assert!(lost, "{key} at {at}: {:?}", repaired.lost);
            let afresh = OpenOptions { state: Some(place.path("x")), ..OpenOptions::default() };
            let secret = SlotSecret::Recovery(&kept.code);
            if let Ok(fresh) = Vault::open(place.store(), &secret, &afresh) {
                let (target, failed) = place.restores(&fresh, None);
                assert_eq!(failed, [], "{key} at {at}");
                assert_same(&source, &target);
            }
        }
    }
}

#[test]
fn a_second_whole_copy_is_used_by_every_reader() {
    let place = Place::new();
    let content = crate::shared::Seed(6).random(20_000);
    let source = place.source(|folder| fs::write(folder.join("file"), &content).unwrap());
    let owner = place.init();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let own = place.store().list("packs/").unwrap().remove(0);
    let host = Host::of(&place, &owner, "host");
    host.open(&place).put_paths(std::slice::from_ref(&source), &Default::default()).unwrap();
    flip(&place.path("vault").join(&own.key), 10_000);
    for (state, number) in [("state", 1), ("fresh", 1), ("fresh", 2)] {
        let (target, failed) = place.restores(&place.open_afresh(state), Some(number));
        assert_eq!(failed, [], "{state} {number}");
        assert_same(&source, &target);
    }
    let options = OpenOptions { objects_alone: true, ..place.options() };
    let vault = Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap();
    let target = tempfile::tempdir().unwrap();
    let got = vault.recover_to(Some(1), target.path(), &GetOptions::default()).unwrap();
    assert_eq!(got.report.failed, []);
    let repaired = place.open().repair(&[], &PutOptions::default()).unwrap();
    assert_eq!(repaired.lost, []);
    let (target, failed) = place.restores(&place.open_afresh("then"), Some(1));
    assert_eq!(failed, []);
    assert_same(&source, &target);
}

#[test]
fn a_repair_says_what_it_brought_back_and_what_it_cannot() {
    let kept = kept();
    let packs: Vec<_> = kept.objects.iter().filter(|(key, _)| key.starts_with("packs/")).collect();
    let (key, whole) = packs.iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    let mut rotten = (*whole).clone();
    let at = rotten.len() / 2;
    rotten[at] ^= 1;
    let (place, vault) = kept.with(key, Some(&rotten));
    let vault = vault.unwrap();
    let without = vault.repair(&[], &PutOptions::default()).unwrap();
    assert!(without.rescued > 0 && without.put.is_none());
    // A chunk that nobody can read now may be whole in an hour: its pack stays.
    assert!(!without.mended.contains(*key) && place.path("vault").join(key).exists());
    assert!(!without.lost.is_empty() && without.lost.len() <= 3, "{:?}", without.lost);
    let source = kept.place.path("source");
    let with = vault.repair(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let (target, failed) = place.restores(&kept.open(&place).unwrap(), None);
    assert_eq!(failed, []);
    assert_same(&source, &target);
    assert!(with.lost.len() <= without.lost.len());
    // A copy of the pack takes its place again.
    fs::write(place.path("vault").join(key), whole).unwrap();
    assert_eq!(kept.open(&place).unwrap().verify(true).unwrap().problems, []);
}

#[test]
fn a_pack_that_is_kept_again_takes_its_own_place() {
    // In the middle of what is kept, and in the list behind it.
    for (repairs, in_list) in [(false, false), (true, false), (false, true), (true, true)] {
        let place = Place::new();
        let source = place.source(|folder| fs::write(folder.join("one"), [7; 100]).unwrap());
        let owner = place.init();
        let put = || owner.put_paths(std::slice::from_ref(&source), &PutOptions::default());
        put().unwrap();
        let is_pack = |key: &&String| key.starts_with("packs/");
        let (before, what) = (place.objects(), format!("repair {repairs}, in the list {in_list}"));
        let packs: Vec<&String> = before.keys().filter(is_pack).collect();
        for pack in &packs {
            let size = before[*pack].len() as u64;
            let at = if in_list { size - 1 } else { size / 2 };
            flip(&place.path("vault").join(pack), at);
        }
        assert!(!owner.verify(true).unwrap().problems.is_empty(), "{what}");
        if repairs {
            let paths = std::slice::from_ref(&source);
            let report = owner.repair(paths, &PutOptions::default()).unwrap();
            assert!(report.lost.is_empty(), "{what}: {:?}", report.lost);
        } else {
            put().unwrap();
        }
        // A damaged pack of which only a part was kept again lies there until a repair.
        let left = owner.verify(true).unwrap().problems;
        let is_left = |problem: &SkippedItem| !repairs && problem.path.starts_with("packs/");
        assert!(left.iter().all(is_left), "{what}: {left:?}");
        // A second put keeps nothing that is whole again.
        let after = place.objects();
        assert_eq!(put().unwrap().counts.new_bytes, 0, "{what}");
        let count = |objects: &BTreeMap<String, Vec<u8>>| objects.keys().filter(is_pack).count();
        assert_eq!(count(&place.objects()), count(&after), "{what}");
        let (target, failed) = place.restores(&owner, None);
        assert!(failed.is_empty(), "{what}: {failed:?}");
        assert_eq!(compare(&target, &source), 0, "{what}");
    }
}

fn last_now(last: usize) -> PruneOptions {
    let keep = RetentionRules { last, ..RetentionRules::default() };
    PruneOptions { keep, now: true, ..PruneOptions::default() }
}

/// One machine has found damage and kept the chunk anew, and another one has never read it. The
/// content decides which of the two packs comes first by its name.
#[test]
fn a_machine_that_never_read_the_damage_prunes_the_damaged_copy_and_not_the_healed_one() {
    for seed in 0..6 {
        let place = Place::new();
        let content = crate::shared::Seed(seed).random(50_000);
        let source = place.source(|folder| fs::write(folder.join("file"), content).unwrap());
        let put =
            |vault: &Vault| vault.put_paths(std::slice::from_ref(&source), &Default::default());
        let owner = place.init();
        put(&owner).unwrap();
        drop(place.open_afresh("other"));
        flip(&place.path("vault").join(&place.store().list("packs/").unwrap()[0].key), 20_000);
        assert!(!owner.verify(true).unwrap().problems.is_empty());
        fs::write(source.join("more"), b"more").unwrap();
        assert!(put(&owner).unwrap().counts.new_bytes > 50_000);
        place.open_afresh("other").prune(&last_now(1)).unwrap();
        let (target, failed) = place.restores(&place.open_afresh("fresh"), None);
        assert_eq!(failed, [], "{seed}");
        assert_same(&source, &target);
    }
}

/// A prune that was interrupted has written a pack that the next one writes again, byte for byte.
#[test]
fn a_prune_removes_no_pack_that_it_has_just_written() {
    for seed in 0..6 {
        let place = Place::new();
        let random = |seed, length| crate::shared::Seed(seed).random(length);
        let source = place.source(|folder| {
            fs::write(folder.join("stays"), random(seed, 50_000)).unwrap();
            fs::write(folder.join("goes"), random(seed + 100, 200_000)).unwrap();
        });
        let owner = place.init();
        owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        fs::remove_file(source.join("goes")).unwrap();
        owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        let before = place.objects();
        let keep = RetentionRules { last: 1, ..RetentionRules::default() };
        let report = owner.prune(&PruneOptions { keep, ..PruneOptions::default() }).unwrap();
        assert_eq!(report.repacked, 1);
        let after = place.objects();
        let written = |key: &str| key.starts_with("packs/") || key.starts_with("index/");
        fs::remove_dir_all(place.path("vault")).unwrap();
        for (key, bytes) in before.iter().chain(after.iter().filter(|(key, _)| written(key))) {
            let path = place.path("vault").join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        place.open_afresh("next").prune(&last_now(1)).unwrap();
        let (target, failed) = place.restores(&place.open_afresh("fresh"), None);
        assert_eq!(failed, [], "{seed}");
        assert_same(&source, &target);
    }
}

/// A writer that names pages nobody ever kept keeps no damaged pack in its place.
#[test]
fn a_repair_clears_what_is_spare_beside_pages_that_nobody_kept() {
    let place = Place::new();
    let content = crate::shared::Seed(9).random(50_000);
    let source = place.source(|folder| fs::write(folder.join("file"), content).unwrap());
    let owner = place.init();
    owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let host = Host::of(&place, &owner, "bad");
    let writer = host.open(&place);
    let (number, previous) = crate::shared::head(&writer);
    let pages = vec![hostile::id(&writer, 1, b"no page")];
    let link = FalseLink { number: number + 1, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    let pack = place.store().list("packs/").unwrap().remove(0).key;
    flip(&place.path("vault").join(&pack), 20_000);
    assert!(!owner.verify(true).unwrap().problems.is_empty());
    fs::write(source.join("more"), b"more").unwrap();
    let report =
        place.open().repair(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert!(report.mended.contains(&pack), "{report:?}");
    let (target, failed) = place.restores(&place.open_afresh("fresh"), None);
    assert_eq!(failed, []);
    assert_same(&source, &target);
}

/// Each of two copies is damaged. One of them may be brought back.
#[test]
fn a_chunk_that_opens_in_no_pack_keeps_all_of_them_and_names_them() {
    let place = Place::new();
    let content = crate::shared::Seed(3).random(50_000);
    let source = place.source(|folder| fs::write(folder.join("file"), content).unwrap());
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    for vault in [place.open(), host.open(&place)] {
        vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    }
    let whole = place.objects();
    let packs = || place.store().list("packs/").unwrap().into_iter().map(|pack| pack.key);
    packs().for_each(|pack| flip(&place.path("vault").join(pack), 20_000));
    let before: Vec<String> = packs().collect();
    assert_eq!(before.len(), 2);
    for _ in 0..2 {
        let vault = place.open();
        let report = vault.prune(&last_now(1)).unwrap();
        assert_eq!((report.stuck, report.removed_packs), (2, 0), "{report:?}");
        let named = |key: &String| vault.warnings().iter().any(|warning| warning.path == *key);
        assert!(before.iter().all(named), "{:?}", vault.warnings());
        assert!(packs().eq(before.iter().cloned()));
    }
    fs::write(place.path("vault").join(&before[1]), &whole[&before[1]]).unwrap();
    place.open().prune(&last_now(1)).unwrap();
    let (target, failed) = place.restores(&place.open_afresh("fresh"), Some(1));
    assert_eq!(failed, []);
    assert_same(&source, &target);
}
