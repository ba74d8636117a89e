//! A put takes any place of a machine: `/`, several of one name, streams. It says what it passes
//! over, and paths are found as they are on their host.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sealane_vault::{Error, GetOptions, PutOptions, Snapshot, Vault};

use crate::shared::Place;

fn paths(vault: &Vault, snapshot: &Snapshot) -> Vec<String> {
    vault.entries(snapshot).unwrap().map(|entry| entry.unwrap().shown()).collect()
}

/// A path of this machine as a snapshot has it that keeps whole paths.
fn whole(path: &Path) -> String {
    path.canonicalize().unwrap().to_str().unwrap()[1..].to_owned()
}

fn two_of_one_name(place: &Place) -> [PathBuf; 2] {
    ["a/docs", "b/docs"].map(|name| {
        let folder = place.path(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), name).unwrap();
        folder
    })
}

#[test]
fn two_folders_of_one_name_stand_under_their_whole_paths() {
    let place = Place::new();
    let [one, two] = two_of_one_name(&place);
    fs::set_permissions(place.path("a"), PermissionsExt::from_mode(0o751)).unwrap();
    let vault = place.init();
    // A folder that is named twice, or lies in another one, is kept once.
    let roots = [two.clone(), one.clone(), one.join("file"), two.clone()];
    let put = vault.put_paths(&roots, &PutOptions::default()).unwrap();
    assert_eq!((put.skipped, put.counts.files), (vec![], 2));
    let snapshot = vault.snapshot(None).unwrap();
    let top = whole(place.folder.path());
    let found = paths(&vault, &snapshot);
    let below = |name: &str| format!("{top}/{name}");
    let tail = ["a", "a/docs", "a/docs/file", "b", "b/docs", "b/docs/file"].map(below);
    assert!(found.ends_with(&tail), "{found:?}");
    let target = place.path("target");
    let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert_eq!(got.failed, []);
    assert_eq!(fs::read(target.join(below("b/docs/file"))).unwrap(), b"b/docs");
    assert_eq!(fs::metadata(target.join(below("a"))).unwrap().mode() & 0o777, 0o751);
}

#[test]
fn a_file_is_found_by_its_path_on_its_host() {
    let place = Place::new();
    let [one, two] = two_of_one_name(&place);
    let vault = place.init();
    for (roots, stands) in [
        (vec![one.clone()], "docs/file".to_owned()),
        (vec![one.clone(), two], whole(&one.join("file"))),
    ] {
        vault.put_paths(&roots, &PutOptions::default()).unwrap();
        let snapshot = vault.snapshot(None).unwrap();
        let asked = whole(&one.join("file")).into_bytes();
        let located = vault.locate(&snapshot, std::slice::from_ref(&asked)).unwrap();
        assert_eq!(located, [stands.clone().into_bytes()]);
        let target = place.path(&format!("target {}", snapshot.number));
        let options = GetOptions { paths: vec![asked.clone()], ..GetOptions::default() };
        let got = vault.get_to(&snapshot, &target, &options).unwrap();
        assert_eq!((got.files, got.failed), (1, vec![]));
        assert_eq!(fs::read(target.join(&stands)).unwrap(), b"a/docs");
        let mut dumped = Vec::new();
        vault.dump(&snapshot, &asked, &mut dumped).unwrap();
        assert_eq!(dumped, b"a/docs");
        let missing = [asked, b"else".to_vec()].concat();
        let refused = vault.locate(&snapshot, &[missing]).unwrap_err();
        assert!(matches!(refused, Error::NoEntry(_)), "{refused:?}");
    }
}

/// All but the way down to one folder is left out, so that the test reads no machine.
#[test]
fn the_root_of_the_file_system_can_be_put() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"x").unwrap());
    let source = source.canonicalize().unwrap();
    let mut exclude = Vec::new();
    for part in source.ancestors().collect::<Vec<_>>().into_iter().rev().skip(1) {
        let above = part.parent().unwrap().to_str().unwrap().trim_end_matches('/');
        exclude.extend([format!("{above}/*"), format!("!{}", part.display())]);
    }
    let vault = place.init();
    let options = PutOptions { exclude, ..PutOptions::default() };
    let put = vault.put_paths(&[PathBuf::from("/")], &options).unwrap();
    // Folders of other tests beside it come and go while it runs.
    let own = place.folder.path().to_str().unwrap();
    assert!(!put.skipped.iter().any(|item| item.path.starts_with(own)), "{:?}", put.skipped);
    assert_eq!(put.counts.files, 1);
    let snapshot = vault.snapshot(None).unwrap();
    assert_eq!(snapshot.paths, [b"/"]);
    let found = paths(&vault, &snapshot);
    assert_eq!(found.last(), Some(&whole(&source.join("file"))));
    assert!(found.iter().all(|path| !path.is_empty() && !path.starts_with('/')), "{found:?}");
}

#[test]
fn a_vault_within_its_source_is_passed_over_and_named() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 100_000]).unwrap();
    let vault = place.init();
    let source = [place.folder.path().to_owned()];
    // The files of its state come and go while it runs.
    let options = PutOptions { exclude: vec!["/state".to_owned()], ..PutOptions::default() };
    for _ in 0..3 {
        let put = vault.put_paths(&source, &options).unwrap();
        let passed: Vec<_> = put.passed.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(passed, [place.path("vault").to_str().unwrap()]);
        assert_eq!((put.skipped, put.counts.files, put.counts.bytes), (vec![], 1, 100_000));
    }
    let snapshot = vault.snapshot(None).unwrap();
    assert!(!paths(&vault, &snapshot).iter().any(|path| path.contains("/vault")));
    let refused = vault.put_paths(&[place.path("vault")], &PutOptions::default()).unwrap_err();
    assert!(matches!(&refused, Error::Root(path) if path.ends_with("vault")), "{refused:?}");
}

#[test]
fn a_link_as_a_source_is_named() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"x").unwrap());
    symlink(&source, place.path("link")).unwrap();
    let vault = place.init();
    let put = |path: PathBuf| vault.put_paths(&[path], &PutOptions::default()).unwrap();
    let named = put(place.path("link"));
    assert_eq!((named.counts.files, named.counts.links, named.passed.len()), (0, 1, 1));
    let target = source.canonicalize().unwrap();
    assert!(named.passed[0].reason.contains(target.to_str().unwrap()), "{:?}", named.passed);
    let mut followed = place.path("link").into_os_string();
    followed.push("/");
    let followed = put(followed.into());
    assert_eq!((followed.counts.files, followed.passed), (1, vec![]));
}

#[test]
fn a_stream_that_fails_leaves_no_snapshot() {
    /// Gives some bytes, and fails then.
    struct Broken(usize);
    impl io::Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("it broke off"))?;
            Ok(out.len())
        }
    }
    let place = Place::new();
    let vault = place.init();
    let refused = vault.put_reader("db.sql", &mut Broken(3), &PutOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("it broke off"), "{refused}");
    assert!(vault.snapshots().unwrap().is_empty());
    vault.put_reader("db.sql", &mut &b"whole"[..], &PutOptions::default()).unwrap();
    assert_eq!(vault.snapshots().unwrap()[0].paths, [b"db.sql"]);
}
