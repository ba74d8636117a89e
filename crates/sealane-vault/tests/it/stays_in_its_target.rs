//! A restore writes into its target folder and nowhere else.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::shared::Place;
use sealane_vault::{GetOptions, PutOptions};

#[test]
fn links_in_the_target_lead_nowhere() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/b/file"), b"restored").unwrap();
        fs::write(folder.join("plain"), b"restored").unwrap();
    });
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    let outside = place.path("outside");
    fs::create_dir_all(outside.join("b")).unwrap();
    fs::write(outside.join("victim"), b"as it was").unwrap();

    let target = place.path("target");
    fs::create_dir_all(target.join("source")).unwrap();
    symlink(&outside, target.join("source/a")).unwrap();
    symlink(outside.join("victim"), target.join("source/plain")).unwrap();
    for overwrite in [false, true] {
        let options = GetOptions { overwrite, ..GetOptions::default() };
        let got = vault.get_to(&snapshot, &target, &options).unwrap();
        assert!(got.failed.len() >= 2, "{:?}", got.failed);
        assert!(got.failed.iter().any(|failed| failed.reason.contains("SL-VAULT-28")));
        let there: Vec<_> = fs::read_dir(outside.join("b")).unwrap().collect();
        assert!(there.is_empty());
        assert_eq!(fs::read(outside.join("victim")).unwrap(), b"as it was");
    }
    // Overwriting replaced the link itself.
    assert_eq!(fs::read(target.join("source/plain")).unwrap(), b"restored");
    assert!(!target.join("source/plain").is_symlink());
}

#[test]
fn what_differs_is_not_overwritten_unless_asked() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"kept").unwrap());
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    let target = place.path("target");
    fs::create_dir_all(target.join("source")).unwrap();
    fs::write(target.join("source/file"), b"mine").unwrap();
    let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert!(got.failed[0].reason.contains("SL-VAULT-29"), "{:?}", got.failed);
    assert_eq!(fs::read(target.join("source/file")).unwrap(), b"mine");
    let options = GetOptions { overwrite: true, ..GetOptions::default() };
    assert_eq!(vault.get_to(&snapshot, &target, &options).unwrap().failed, []);
    assert_eq!(fs::read(target.join("source/file")).unwrap(), b"kept");
}

#[test]
fn what_is_overwritten_stays_until_the_new_content_is_verified() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::write(folder.join("file"), crate::shared::Seed(7).random(3 << 20)).unwrap();
        fs::hard_link(folder.join("file"), folder.join("its other name")).unwrap();
    });
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    let target = place.path("target");
    let names = ["file", "its other name"].map(|name| target.join("source").join(name));
    fs::create_dir_all(target.join("source")).unwrap();
    names.iter().for_each(|name| fs::write(name, b"mine").unwrap());
    let pack = place.path("vault").join(&place.store().list("packs/").unwrap().remove(0).key);
    let whole = fs::read(&pack).unwrap();
    crate::shared::flip(&pack, 2 << 20);
    let options = GetOptions { overwrite: true, ..GetOptions::default() };
    let got = vault.get_to(&snapshot, &target, &options).unwrap();
    assert_eq!(got.failed.len(), 2, "{:?}", got.failed);
    names.iter().for_each(|name| assert_eq!(fs::read(name).unwrap(), b"mine"));
    fs::write(&pack, whole).unwrap();
    assert_eq!(vault.get_to(&snapshot, &target, &options).unwrap().failed, []);
    crate::shared::assert_same(&source, &target.join("source"));
}

#[test]
fn an_interrupted_file_is_continued_and_what_is_wrong_in_it_replaced() {
    let place = Place::new();
    let content = crate::shared::Seed(6).random(9 << 20);
    let source = place.source(|folder| fs::write(folder.join("long"), &content).unwrap());
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    let target = place.path("target");
    // A restore that failed in its middle leaves its draft: a part of the pack is broken for that.
    let pack = place.store().list("packs/").unwrap().remove(0);
    let path = place.path("vault").join(&pack.key);
    let whole = fs::read(&path).unwrap();
    let mut broken = whole.clone();
    broken[5 << 20..8 << 20].fill(0);
    fs::write(&path, broken).unwrap();
    let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert_eq!(got.failed.len(), 1);
    assert!(!target.join("source/long").exists());
    let draft = fs::read_dir(target.join("source")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::metadata(&draft).unwrap().len() > 1 << 20);
    // Somebody changed it meanwhile.
    crate::shared::flip(&draft, 700_000);
    fs::write(&path, whole).unwrap();
    let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert_eq!(got.failed, []);
    assert!(fs::read(target.join("source/long")).unwrap() == content);
    assert_eq!(fs::read_dir(target.join("source")).unwrap().count(), 1);
}

#[test]
fn what_has_the_name_of_the_mark_is_named_and_not_taken_away_with_it() {
    let place = Place::new();
    let vault = place.init();
    let name = ".sealane-restoring";
    vault.put_reader(name, &mut &b"mine"[..], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    for overwrite in [false, true] {
        let options = GetOptions { overwrite, ..GetOptions::default() };
        let got = vault.get_to(&snapshot, &place.path("target"), &options).unwrap();
        assert_eq!((got.files, got.failed.len()), (0, 1));
        assert_eq!(got.failed[0].path, name);
    }
    let mut out = Vec::new();
    vault.file(&snapshot, name.as_bytes()).unwrap().read_range(0, 9, &mut out).unwrap();
    assert_eq!(out, b"mine");
}

#[test]
fn other_names_of_a_file_come_back_when_its_first_name_does_not() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::write(folder.join("1"), b"kept").unwrap();
        fs::hard_link(folder.join("1"), folder.join("2")).unwrap();
        fs::hard_link(folder.join("1"), folder.join("3")).unwrap();
    });
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    for overwrite in [false, true] {
        let target = place.path(&format!("target {overwrite}"));
        let [first, second, third] = ["1", "2", "3"].map(|name| target.join("source").join(name));
        fs::create_dir_all(target.join("source")).unwrap();
        // A folder with something in it is never replaced by a file.
        fs::create_dir_all(first.join("mine")).unwrap();
        if overwrite {
            fs::write(&third, b"mine").unwrap();
        }
        let options = GetOptions { overwrite, ..GetOptions::default() };
        let got = vault.get_to(&snapshot, &target, &options).unwrap();
        let failed: Vec<&str> = got.failed.iter().map(|failed| failed.path.as_str()).collect();
        assert_eq!((failed, got.files), (vec!["source/1"], 2), "{:?}", got.failed);
        assert!(first.join("mine").is_dir());
        assert_eq!(fs::read(&second).unwrap(), b"kept");
        let [second, third] = [second, third].map(|name| fs::metadata(name).unwrap().ino());
        assert_eq!(second, third);
    }
}

#[test]
fn after_an_interrupted_restore_size_and_time_are_not_enough() {
    let place = Place::new();
    let content = crate::shared::Seed(8).random(3 << 20);
    let source = place.source(|folder| {
        fs::write(folder.join("file"), &content).unwrap();
        fs::write(folder.join("right"), b"kept").unwrap();
    });
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    let target = place.path("target");
    let get = |options: &GetOptions| vault.get_to(&snapshot, &target, options).unwrap();
    let all = GetOptions::default();
    assert_eq!(get(&all).failed, []);
    // As a machine leaves it that lost power: a block that was never written out.
    let file = target.join("source/file");
    let mut torn = content.clone();
    torn[2 << 20..][..4096].fill(0);
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, torn).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    let mark = target.join(".sealane-restoring");
    fs::write(&mark, b"").unwrap();
    // It is named in every run until it is replaced, and a part of the snapshot says nothing of it.
    let part = GetOptions { paths: vec![b"source/right".to_vec()], ..GetOptions::default() };
    assert_eq!(get(&part).unchanged, 1);
    for _ in 0..2 {
        let got = get(&all);
        assert_eq!((got.failed.len(), got.unchanged), (1, 1), "{:?}", got.failed);
        assert!(got.failed[0].reason.contains("SL-VAULT-29"), "{:?}", got.failed);
    }
    let got = get(&GetOptions { overwrite: true, ..GetOptions::default() });
    assert_eq!((got.failed, got.files), (vec![], 1));
    assert!(fs::read(&file).unwrap() == content);
    assert!(!mark.exists());
    assert_eq!(get(&all).unchanged, 2);
}
