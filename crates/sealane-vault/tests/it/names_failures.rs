//! Every failure has a name and a next step, and the next step helps.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use sealane_vault::{Error, PutOptions};

use crate::shared::Place;

/// A vault with one file.
fn place() -> Place {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("letter"), b"hello").unwrap());
    place.init().put_paths(&[source], &PutOptions::default()).unwrap();
    place
}

fn code(error: &Error) -> &'static str {
    error.info().code
}

#[test]
fn an_object_of_a_later_version_is_named_so() {
    let place = place();
    let config = fs::File::options().write(true).open(place.path("vault/config")).unwrap();
    // Behind the magic.
    config.write_all_at(&[2], 4).unwrap();
    let error = place.try_open().err().unwrap();
    assert_eq!(error.to_string(), "`config` is of a later version of the format");
    assert_eq!((code(&error), error.info().hint), ("SL-VAULT-07", "Use a newer `sealane`."));
    config.write_all_at(&[1], 4).unwrap();
    place.open();
}

/// The manifest of the one vault that a state folder knows.
fn manifest(place: &Place) -> PathBuf {
    let folders = fs::read_dir(place.path("state")).unwrap();
    let mut files = folders.map(|entry| entry.unwrap().path().join("manifest.db"));
    files.find(|file| file.exists()).unwrap()
}

/// One that is damaged is made anew. One that cannot be opened is named, and its hint helps.
#[test]
fn a_manifest_that_fails_is_named_and_can_be_removed() {
    let place = place();
    let manifest = manifest(&place);
    fs::write(&manifest, b"damaged").unwrap();
    place.open();
    let aside = place.path("aside");
    fs::rename(&manifest, &aside).unwrap();
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", manifest.display()));
    }
    fs::create_dir(&manifest).unwrap();
    let error = place.try_open().and_then(|vault| vault.verify(false).map(drop)).unwrap_err();
    assert_eq!(code(&error), "SL-VAULT-12", "{error}");
    assert!(error.info().hint.starts_with("Remove manifest.db"));
    fs::remove_dir(&manifest).unwrap();
    let vault = place.open();
    let (target, failed) = place.restores(&vault, None);
    assert_eq!((fs::read(target.join("letter")).unwrap(), failed), (b"hello".to_vec(), vec![]));
}

#[test]
fn a_slot_that_is_not_there_is_named_as_it_was_typed() {
    let vault = place().open();
    for id in ["0011223344556677", "alice", ""] {
        let error = vault.remove_slot(id).unwrap_err();
        assert_eq!(error.to_string(), format!("the vault has no key slot `{id}`"));
        assert_eq!(code(&error), "SL-VAULT-49");
    }
}
