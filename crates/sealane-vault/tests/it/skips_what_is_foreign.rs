//! One object of a stranger, or of a writer gone bad, costs nobody more than a line that names it.

use std::fs;

use crate::shared::{CHEAP, Host, PASSPHRASE, Place, assert_same, head};
use sealane_vault::hostile::{self, FalseLink};
use sealane_vault::{
    DrillOptions, GetOptions, OpenOptions, PruneOptions, PutOptions, RetentionRules, SlotSecret,
    SnapshotSelector, Vault,
};

/// Every verb works, and `key` is named by all of them.
fn works(place: &Place, key: &str) {
    for state in ["state", "fresh"] {
        let vault = place.open_afresh(state);
        let named = |vault: &Vault| vault.warnings().iter().any(|at| at.path.contains(key));
        assert!(named(&vault), "{key}: {:?}", vault.warnings());
        let source = place.path("source");
        assert!(!vault.snapshots().unwrap().is_empty());
        let newest = vault.snapshot(None).unwrap();
        assert!(newest.counts.files > 0, "{key}");
        let own = vault.newest(&SnapshotSelector::default(), &[b"source/file".to_vec()]).unwrap();
        assert!(own.signer.is_none() && own.counts.files > 0, "{key}");
        let (target, failed) = place.restores(&vault, None);
        assert_eq!(failed, []);
        assert_same(&source, &target);
        vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        vault.find("*", &SnapshotSelector::default(), &mut |_| Ok(())).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(vault.drill(scratch.path(), &DrillOptions::default()).unwrap().failed, []);
        prunes(&vault, key);
        let id = vault.add_passphrase(b"other", crate::shared::CHEAP, "other").unwrap();
        vault.remove_slot(&id).unwrap();
        let problems = vault.verify(true).unwrap().problems;
        assert!(problems.iter().any(|problem| problem.path.contains(key)), "{key}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.path.contains(key)), "{key}: {problems:?}");
    }
    let options = OpenOptions { objects_alone: true, ..place.options() };
    let vault = Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap();
    let target = tempfile::tempdir().unwrap();
    let recovered = vault.recover_to(None, target.path(), &GetOptions::default()).unwrap();
    assert!(recovered.report.files > 0, "{key}");
    assert_same(&place.path("source"), &target.path().join("source"));
}

/// A prune goes on, unless a link names one before it that nobody has seen: then the number of that
/// one is given up first, which the owner is told.
fn prunes(vault: &Vault, key: &str) {
    let keep = RetentionRules { last: 3, ..RetentionRules::default() };
    let mut options = PruneOptions { keep, now: true, ..PruneOptions::default() };
    if let Err(error) = vault.prune(&options) {
        assert!(error.info().name == "SnapshotUnread" && key.ends_with("9999999999"), "{error}");
        assert!(error.to_string().contains("snapshot 9999999998 ("), "{error}");
        options.give_up.insert(9_999_999_998);
        vault.prune(&options).unwrap();
    }
}

#[test]
fn what_stands_in_the_place_of_a_link_is_given_up_by_name() {
    // It may have been a snapshot, whatever is left of it.
    for bytes in [&b"junk"[..], b""] {
        let (place, _) = vault();
        let source = place.source(|_| {});
        fs::write(place.path("vault/snapshots/0000000002"), bytes).unwrap();
        let own = vec![b"source/file".to_vec()];
        for vault in [place.open(), place.open_afresh("fresh")] {
            let refused = vault.newest(&SnapshotSelector::default(), &own).unwrap_err();
            assert_eq!(refused.info().name, "OlderOnly");
            let asked = SnapshotSelector { allow_older: true, ..SnapshotSelector::default() };
            assert_eq!(vault.newest(&asked, &own).unwrap().number, 1);
            assert_eq!(vault.snapshots().unwrap().len(), 1);
        }
        let vault = place.open();
        vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        assert_eq!(vault.newest(&SnapshotSelector::default(), &own).unwrap().number, 3);
        let keep = RetentionRules { last: 3, ..RetentionRules::default() };
        let mut options = PruneOptions { keep, now: true, ..PruneOptions::default() };
        assert_eq!(vault.prune(&options).unwrap_err().info().name, "SnapshotUnread");
        options.give_up.insert(2);
        vault.prune(&options).unwrap();
        for vault in [place.open(), place.open_afresh("fresh"), place.open_afresh("later")] {
            assert_eq!(vault.verify(true).unwrap().problems, []);
            assert_eq!(vault.snapshots().unwrap().len(), 2);
        }
    }
}

fn vault() -> (Place, Host) {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"content").unwrap());
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    owner.put_paths(&[source], &PutOptions::default()).unwrap();
    (place, host)
}

#[test]
fn links_that_connect_to_nothing() {
    // Far ahead, next with a wrong hash, and one that leaves a number free.
    for (ahead, right) in [(9_999_999_998, false), (9_999_999_998, true), (1, false), (2, true)] {
        let (place, host) = vault();
        let writer = host.open(&place);
        let (number, hash) = head(&writer);
        let previous = if right { hash } else { [7; 32] };
        let number = number + ahead;
        let link = FalseLink { number, previous, ..FalseLink::default() };
        hostile::plant_link(&writer, link).unwrap();
        works(&place, &format!("snapshots/{number:010}"));
    }
}

#[test]
fn what_is_no_link_at_all() {
    for (key, bytes) in [
        ("snapshots/9999999999", &[b'x'; 300][..]),
        ("snapshots/9999999999", b""),
        ("snapshots/notes.txt", b"hello"),
    ] {
        let (place, _) = vault();
        fs::write(place.path("vault").join(key), bytes).unwrap();
        works(&place, key);
    }
}

#[test]
fn what_is_no_slot() {
    let (place, _) = vault();
    let config = fs::read(place.path("vault/config")).unwrap();
    let head = |kind: u8| [b"SLVT\x01\x02\0\0", &config[8..24], &[0; 8], &[kind]].concat();
    let costly = [head(1), vec![0; 16], [0xff; 12].to_vec(), vec![0; 60]].concat();
    let costs_a_bit = [head(1), vec![0; 16], vec![64, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]].concat();
    let unsigned = [head(4), vec![1; 150]].concat();
    for (number, bytes) in
        [head(9), costly, costs_a_bit, unsigned, b"junk".to_vec(), vec![]].into_iter().enumerate()
    {
        let key = if number < 4 { "keys/0000000000000000" } else { "keys/readme" };
        fs::write(place.path("vault").join(key), bytes).unwrap();
        works(&place, key);
        fs::remove_file(place.path("vault").join(key)).unwrap();
    }
}

#[test]
fn a_slot_with_a_main_key_of_a_strangers_own_opens_nothing() {
    let (place, host) = vault();
    let identity = sealane_group::Identity::generate("anna").unwrap();
    place.open().add_identity(identity.public(), "anna").unwrap();
    let key = hostile::plant_slot(&host.open(&place), identity.public()).unwrap();
    // Also where no list tells which slots are the owner's.
    for lists in [true, false] {
        if !lists {
            fs::remove_dir_all(place.path("vault/roster")).unwrap();
        }
        let state = Some(place.path(&format!("lists {lists}")));
        let options = OpenOptions { state, ..OpenOptions::default() };
        let secret = SlotSecret::Identity(&identity);
        let vault = Vault::open(place.store(), &secret, &options).unwrap();
        assert_eq!(vault.anchor(), place.open().anchor());
        assert!(!lists || vault.warnings().iter().any(|at| at.path == key));
    }
}

#[test]
fn more_slots_than_a_vault_has() {
    let (place, _) = vault();
    for number in 0..300 {
        fs::write(place.path(&format!("vault/keys/{number:016x}")), b"junk").unwrap();
    }
    works(&place, "keys/");
}

#[test]
fn a_list_of_slots_that_the_owner_did_not_sign() {
    let (place, _) = vault();
    fs::write(place.path("vault/roster/9999999999"), b"junk").unwrap();
    works(&place, "roster/");
}

#[test]
fn a_slot_with_a_flipped_bit_stops_nobody_who_opens_by_another() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"content").unwrap());
    let owner = place.init();
    let identity = sealane_group::Identity::generate("anna").unwrap();
    owner.add_identity(identity.public(), "anna").unwrap();
    owner.put_paths(&[source], &PutOptions::default()).unwrap();
    let slots = owner.slots().unwrap();
    let slot = slots.iter().find(|slot| slot.cost.is_some()).unwrap();
    let path = place.path("vault/keys").join(&slot.id);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() as u64 {
        crate::shared::flip(&path, at);
        let secret = SlotSecret::Identity(&identity);
        let vault = Vault::open(place.store(), &secret, &place.options()).unwrap();
        assert!(vault.warnings().iter().any(|at| at.path.contains(&slot.id)), "{at}");
        let problems = vault.verify(false).unwrap().problems;
        assert!(problems.iter().any(|at| at.path.contains(&slot.id)), "{at} {problems:?}");
        fs::write(&path, &whole).unwrap();
    }
    fs::remove_file(&path).unwrap();
    let vault =
        Vault::open(place.store(), &SlotSecret::Identity(&identity), &place.options()).unwrap();
    assert!(vault.verify(false).unwrap().problems.iter().any(|at| at.path.contains(&slot.id)));
    // A repair signs a list of what is left.
    let repaired = vault.repair(&[], &PutOptions::default()).unwrap();
    assert_eq!(repaired.lost, []);
}

#[test]
fn recovering_nothing_is_a_failure() {
    let (place, host) = vault();
    let writer = host.open(&place);
    let (number, previous) = head(&writer);
    let link = FalseLink { number: number + 1, previous, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    let options = OpenOptions { objects_alone: true, ..place.options() };
    let vault = Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap();
    let target = place.path("target");
    let newer = Some(number + 1);
    let empty = vault.recover_to(newer, &target, &GetOptions::default()).unwrap_err();
    assert_eq!(empty.info().name, "NothingRecovered");
    // Without a number the owner's older one comes before it.
    let older = vault.recover_to(None, &target, &GetOptions::default()).unwrap();
    assert_eq!((older.snapshot, older.report.files), (Some(1), 1));
}

/// The cost that a slot states is a part of what its secret opens.
#[test]
fn a_slot_that_was_made_cheaper_opens_nothing() {
    let place = Place::new();
    drop(place.init());
    let slot = place.store().list("keys/").unwrap().remove(0).key;
    let path = place.path("vault").join(slot);
    let mut bytes = fs::read(&path).unwrap();
    let memory = 24 + 8 + 1 + 16;
    assert_eq!(bytes[memory..memory + 4], CHEAP.memory_kib.to_le_bytes());
    bytes[memory..memory + 4].copy_from_slice(&(CHEAP.memory_kib / 2).to_le_bytes());
    fs::write(path, bytes).unwrap();
    let refused = place.try_open().unwrap_err();
    assert_eq!(refused.info().name, "SlotsDamaged");
    assert!(refused.to_string().contains("keys/"), "{refused}");
}
