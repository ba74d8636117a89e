//! Whatever is changed, exchanged, cut, replayed or taken back is noticed, and no byte that was not
//! verified reaches a target.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shared::{PASSPHRASE, Place, flip, odd_files};
use sealane_vault::{
    Error, GetOptions, OpenOptions, PutOptions, SlotSecret, Vault, VaultStore, VerifyReport,
};

/// A vault with two snapshots.
fn vault() -> Place {
    let place = Place::new();
    let source = place.source(|folder| {
        odd_files(folder);
        fs::write(folder.join("text"), crate::shared::Seed(4).text(50_000)).unwrap();
    });
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    fs::write(source.join("text"), crate::shared::Seed(5).text(60_000)).unwrap();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    place
}

/// A copy of the vault, opened by who remembers nothing.
struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    fn of(place: &Place) -> Copy {
        let folder = tempfile::tempdir().unwrap();
        for (key, bytes) in place.objects() {
            let path = folder.path().join("vault").join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Copy { folder }
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    fn open(&self) -> Result<Vault, Error> {
        let store = VaultStore::open(self.vault().to_str().unwrap()).unwrap();
        let state = Some(self.folder.path().join("state"));
        let options = OpenOptions { state, ..OpenOptions::default() };
        Vault::open(store, &SlotSecret::Passphrase(PASSPHRASE), &options)
    }

    /// The outcome of opening, verifying and restoring. The restored files are compared with the
    /// truth.
    fn is_noticed(&self, truth: &Path) -> bool {
        let vault = match self.open() {
            Ok(vault) => vault,
            Err(_) => return true,
        };
        let VerifyReport { problems, .. } = vault.verify(true).unwrap();
        let target = self.folder.path().join("target");
        if let Ok(snapshot) = vault.snapshot(Some(2)) {
            let _ = vault.get_to(&snapshot, &target, &GetOptions::default());
            compare(&target.join("source"), truth);
        }
        !problems.is_empty()
    }
}

/// Every file that is there under its own name has the right content, to its last byte.
fn compare(found: &Path, truth: &Path) {
    let Ok(entries) = fs::read_dir(found) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_owned();
        if path.is_dir() && !path.is_symlink() {
            compare(&path, &truth.join(name));
        } else if path.is_file() && !name.to_string_lossy().ends_with(".part") {
            assert_eq!(fs::read(&path).unwrap(), fs::read(truth.join(name)).unwrap());
        }
    }
}

#[test]
fn every_byte_of_every_header_and_some_of_every_body() {
    let place = vault();
    let truth = place.path("source");
    let objects = place.objects();
    assert!(Copy::of(&place).open().unwrap().verify(true).unwrap().problems.is_empty());
    let copy = Copy::of(&place);
    for (key, bytes) in &objects {
        let length = bytes.len() as u64;
        let step = (length / 12).max(1);
        let places = (0..length).filter(|at| *at < 60 || *at + 40 > length || at % step == 0);
        for at in places {
            let path = copy.vault().join(key);
            flip(&path, at);
            let _ = fs::remove_dir_all(copy.folder.path().join("state"));
            let _ = fs::remove_dir_all(copy.folder.path().join("target"));
            assert!(copy.is_noticed(&truth), "{key} at {at} of {length}");
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn truncated_exchanged_and_missing_objects() {
    let place = vault();
    let truth = place.path("source");
    let objects = place.objects();
    for (key, bytes) in &objects {
        for length in [0, 1, 24, bytes.len() / 2, bytes.len() - 1] {
            let copy = Copy::of(&place);
            fs::write(copy.vault().join(key), &bytes[..length]).unwrap();
            assert!(copy.is_noticed(&truth), "{key} cut to {length}");
        }
        // An index is a shortcut: without it nothing is lost, and nothing is wrong. That the newest
        // snapshot is gone sees only who remembers it, or is told the head.
        let copy = Copy::of(&place);
        fs::remove_file(copy.vault().join(key)).unwrap();
        let unseen = key.starts_with("index/") || key.ends_with("0000000002");
        assert_eq!(copy.is_noticed(&truth), !unseen, "{key} removed");
    }
    for kind in ["packs/", "snapshots/", "index/"] {
        let of_kind: Vec<&String> = objects.keys().filter(|key| key.starts_with(kind)).collect();
        assert_eq!(of_kind.len(), 2, "{kind}");
        let copy = Copy::of(&place);
        fs::write(copy.vault().join(of_kind[0]), &objects[of_kind[1]]).unwrap();
        fs::write(copy.vault().join(of_kind[1]), &objects[of_kind[0]]).unwrap();
        let noticed = copy.is_noticed(&truth);
        assert!(noticed || kind == "index/", "{kind} exchanged");
    }
}

#[test]
fn objects_of_another_vault() {
    let (place, other) = (vault(), vault());
    for (key, bytes) in other.objects() {
        if key.starts_with("snapshots/") {
            let copy = Copy::of(&place);
            fs::write(copy.vault().join(&key), bytes).unwrap();
            assert!(copy.is_noticed(&place.path("source")), "{key}");
            fs::remove_dir_all(copy.folder.path().join("state")).unwrap();
            assert!(!copy.open().unwrap().warnings().is_empty(), "{key}");
        }
    }
}

#[test]
fn an_older_head_and_another_history() {
    let place = vault();
    let newest = place.path("vault/snapshots/0000000002");
    let kept = fs::read(&newest).unwrap();
    let head = place.open().head_text().unwrap();
    // This machine remembers the head.
    fs::remove_file(&newest).unwrap();
    assert_eq!(place.try_open().unwrap_err().info().name, "RolledBack");
    // One that remembers none is told.
    let copy = Copy::of(&place);
    assert!(copy.open().is_ok());
    let store = VaultStore::open(copy.vault().to_str().unwrap()).unwrap();
    let state = Some(copy.folder.path().join("third"));
    let options = OpenOptions { state, expect_head: Some(head), ..OpenOptions::default() };
    let opened = Vault::open(store, &SlotSecret::Passphrase(PASSPHRASE), &options);
    assert_eq!(opened.unwrap_err().info().name, "RolledBack");
    // Another snapshot under the same number, by somebody who holds the key.
    let fork = copy.open().unwrap();
    fork.put_paths(&[place.path("source")], &PutOptions::default()).unwrap();
    fs::copy(copy.vault().join("snapshots/0000000002"), &newest).unwrap();
    assert_eq!(place.try_open().unwrap_err().info().name, "Forked");
    fs::write(&newest, kept).unwrap();
    assert!(place.try_open().is_ok());
    // A hole in the chain that no prune names.
    fs::remove_file(place.path("vault/snapshots/0000000001")).unwrap();
    let problems = place.open().verify(false).unwrap().problems;
    assert!(problems[0].reason.contains("SL-VAULT-23"), "{problems:?}");
}
