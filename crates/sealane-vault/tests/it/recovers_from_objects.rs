//! The objects and one key bring everything back: without manifest, index or snapshot.

use std::fs;

use crate::shared::{PASSPHRASE, Place, assert_same, mixed_files, odd_files};
use sealane_vault::{
    DrillOptions, GetOptions, OpenOptions, PutOptions, RecoveryCode, SlotSecret, Vault,
};

fn objects_alone() -> OpenOptions {
    OpenOptions { objects_alone: true, ..OpenOptions::default() }
}

#[test]
fn everything_comes_back_without_manifest_index_and_snapshots() {
    let place = Place::new();
    let source = place.source(|folder| {
        mixed_files(folder);
        odd_files(folder);
    });
    let vault = place.init();
    let code = vault.add_recovery("paper").unwrap().expose().to_string();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    drop(vault);
    fs::remove_dir_all(place.path("state")).unwrap();
    fs::remove_dir_all(place.path("vault/index")).unwrap();
    let code: RecoveryCode = code.parse().unwrap();
    for (target, snapshot) in [("with", Some(1)), ("without", None)] {
        let vault =
            Vault::open(place.store(), &SlotSecret::Recovery(&code), &objects_alone()).unwrap();
        let target = place.path(target);
        let recovered = vault.recover_to(None, &target, &GetOptions::default()).unwrap();
        assert_eq!(recovered.snapshot, snapshot);
        assert_eq!(recovered.report.failed, []);
        assert_same(&source, &target.join("source"));
        let _ = fs::remove_dir_all(place.path("vault/snapshots"));
    }
    assert!(!place.path("state").exists());
}

#[test]
fn a_lost_pack_costs_what_is_in_it_and_a_put_heals_it() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::write(folder.join("first"), b"in the first pack").unwrap();
    });
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let lost = place.store().list("packs/").unwrap().remove(0);
    fs::write(source.join("second"), b"in the second pack").unwrap();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    fs::remove_file(place.path("vault").join(&lost.key)).unwrap();
    let vault =
        Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &objects_alone()).unwrap();
    let target = place.path("target");
    let recovered = vault.recover_to(None, &target, &GetOptions::default()).unwrap();
    assert_eq!(recovered.report.failed.len(), 1);
    assert!(recovered.report.failed[0].reason.contains("SL-VAULT-03"));
    assert_eq!(fs::read(target.join("source/second")).unwrap(), b"in the second pack");
    assert!(place.open().verify(false).unwrap().problems.len() > 1);
    place.open().put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    // The page that only the first snapshot had stays lost; the files are back.
    let problems = place.open().verify(true).unwrap().problems;
    assert!(problems.len() == 1 && problems[0].path == "snapshot 1", "{problems:?}");
    let vault = place.open();
    let (snapshot, target) = (vault.snapshot(None).unwrap(), place.path("healed"));
    assert_eq!(vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap().failed, []);
    assert_same(&source, &target.join("source"));
}

#[test]
fn a_drill_proves_a_restore_and_names_what_is_lost() {
    let place = Place::new();
    let source = place.source(odd_files);
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    assert_eq!(vault.last_proven().unwrap(), None);
    let all = vault.drill(&place.path("all"), &DrillOptions::default()).unwrap();
    assert_eq!(all.failed, []);
    assert!(all.all && all.files == 13);
    let proven = vault.last_proven().unwrap().unwrap();
    assert_eq!(proven, all);
    let options = DrillOptions { sample: Some(4), ..DrillOptions::default() };
    let sample = vault.drill(&place.path("sample"), &options).unwrap();
    assert!(sample.failed.is_empty() && !sample.all && sample.files < 13);
    let pack = place.store().list("packs/").unwrap().remove(0);
    crate::shared::flip(&place.path("vault").join(pack.key), 30);
    let failed = vault.drill(&place.path("broken"), &DrillOptions::default()).unwrap();
    assert!(!failed.failed.is_empty());
    // A failed drill does not count as proven, and reports cannot be forged.
    assert_eq!(vault.last_proven().unwrap().unwrap(), sample);
    let report = place.store().list("reports/").unwrap().remove(1);
    crate::shared::flip(&place.path("vault").join(report.key), 60);
    // It is skipped by name, and the one before it holds.
    assert_eq!(vault.last_proven().unwrap().unwrap(), all);
    assert!(vault.warnings().iter().any(|warning| warning.path.starts_with("reports/")));
}

#[test]
fn any_range_of_a_file_is_read_without_the_rest() {
    let place = Place::new();
    let content = crate::shared::Seed(8).random(7 << 20);
    let source = place.source(|folder| {
        odd_files(folder);
        fs::write(folder.join("long"), &content).unwrap();
    });
    let sparse = fs::read(source.join("sparse")).unwrap();
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    for (name, whole) in [(&b"source/long"[..], &content), (b"source/sparse", &sparse)] {
        let mut file = vault.file(&snapshot, name).unwrap();
        let size = whole.len() as u64;
        assert_eq!(file.size(), size);
        let ranges = [
            (0, 1),
            (0, size),
            (size - 1, 10),
            (1_048_570, 20),
            (3 << 20, 1 << 20),
            (size, 5),
            (u64::MAX, 5),
        ];
        for (offset, length) in ranges {
            let mut out = Vec::new();
            let written = file.read_range(offset, length, &mut out).unwrap();
            let from = offset.min(size) as usize;
            let to = offset.saturating_add(length).min(size) as usize;
            assert!(out == whole[from..to.max(from)] && written == out.len() as u64);
        }
    }
    let file = vault.file(&snapshot, b"source/one").unwrap();
    assert!(file.check_offset(0).is_ok());
    assert_eq!(file.check_offset(1).unwrap_err().info().name, "RangeBehindEnd");
    assert!(vault.file(&snapshot, b"source/empty").unwrap().check_offset(0).is_ok());
    let missing = vault.file(&snapshot, b"source/none");
    assert_eq!(missing.unwrap_err().info().name, "NoEntry");
}

#[test]
fn what_a_reader_gives_is_kept_like_a_file() {
    let place = Place::new();
    let vault = place.init();
    let content = crate::shared::Seed(9).text(3 << 20);
    let put = vault
        .put_reader("attachments/report.txt", &mut content.as_slice(), &PutOptions::default())
        .unwrap();
    assert_eq!((put.counts.files, put.counts.bytes), (1, content.len() as u64));
    let snapshot = vault.snapshot(None).unwrap();
    let mut file = vault.file(&snapshot, b"attachments/report.txt").unwrap();
    let mut out = Vec::new();
    file.read_range(0, u64::MAX, &mut out).unwrap();
    assert!(out == content);
    for name in ["../x", "/x", ""] {
        let refused = vault.put_reader(name, &mut &b""[..], &PutOptions::default());
        assert_eq!(refused.unwrap_err().info().name, "Escapes");
    }
}

#[test]
fn a_recovery_that_brings_every_file_back_has_not_failed() {
    let place = Place::new();
    let source = place.source(odd_files);
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    // Junk among the links, a pack that is nobody's, and one that only an older snapshot needs.
    fs::write(place.path("vault/snapshots/notes.txt"), b"junk").unwrap();
    let stray = format!("vault/packs/00/{}", "0".repeat(64));
    fs::create_dir_all(place.path("vault/packs/00")).unwrap();
    fs::write(place.path(&stray), b"junk").unwrap();
    let recover = |target: &str| {
        let secret = SlotSecret::Passphrase(PASSPHRASE);
        let vault = Vault::open(place.store(), &secret, &objects_alone()).unwrap();
        vault.recover_to(None, &place.path(target), &GetOptions::default()).unwrap()
    };
    let recovered = recover("whole");
    assert_eq!(recovered.report.failed, []);
    let named = |what: &str| recovered.passed_over.iter().any(|item| item.path.contains(what));
    assert!(named("notes.txt") && named("packs/00/"), "{:?}", recovered.passed_over);
    assert_same(&source, &place.path("whole/source"));
    // An older snapshot in the place of the newest is no success.
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    crate::shared::flip(&place.path("vault/snapshots/0000000002"), 80);
    let recovered = recover("older");
    assert_eq!((recovered.snapshot, recovered.report.failed.len()), (Some(1), 1));
    assert_eq!(recovered.report.failed[0].path, "snapshot 2");
    // Without any snapshot a pack that cannot be read may have had more files.
    fs::remove_dir_all(place.path("vault/snapshots")).unwrap();
    let recovered = recover("packs");
    assert_eq!((recovered.snapshot, recovered.report.failed.len()), (None, 1));
    assert_same(&source, &place.path("packs/source"));
}
