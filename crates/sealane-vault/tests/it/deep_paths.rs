//! Paths as long as the system takes come back; what is longer is named, not lost in silence.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::shared::{Place, assert_same};
use sealane_vault::{GetOptions, PutOptions};

/// The longest path that a system call takes: 4,096 bytes with the zero at its end.
const LONGEST: usize = 4095;

/// Makes folders below `folder` until a file in them has a path of `length` bytes.
fn file_at(folder: &Path, length: usize) -> PathBuf {
    let mut path = folder.to_owned();
    loop {
        let left = length - path.as_os_str().len() - 1;
        if left <= 255 {
            path.push("f".repeat(left));
            break;
        }
        // A component of the greatest length, unless nothing would be left for the last one.
        path.push("d".repeat(if left == 256 { 250 } else { 255 }));
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"at the end of a long path").unwrap();
    assert_eq!(path.as_os_str().as_bytes().len(), length);
    path
}

#[test]
fn paths_of_the_greatest_length_come_back_even_into_a_longer_folder() {
    let place = Place::new();
    let source = place.source(|folder| {
        file_at(folder, LONGEST);
    });
    let vault = place.init();
    let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.skipped, []);
    let snapshot = vault.snapshot(None).unwrap();
    let long = place.path("a target whose own path is longer than the source's");
    let got = vault.get_to(&snapshot, &long, &GetOptions::default()).unwrap();
    assert_eq!((got.files, got.failed), (1, vec![]));
    // Only from a shorter folder can it be looked at by its path.
    let short = place.path("t");
    fs::rename(long.join("source"), &short).unwrap();
    assert_same(&source, &short);
}

#[test]
fn a_path_beyond_the_systems_limit_is_named_and_the_rest_is_kept() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("beside"), b"kept").unwrap());
    // Made at a short path and moved deeper: no system call can name it from the root any more.
    let short = place.path("s");
    fs::create_dir(&short).unwrap();
    file_at(&short, LONGEST);
    fs::rename(&short, source.join("moved")).unwrap();
    let vault = place.init();
    let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.counts.files, 1);
    assert_eq!(put.skipped.len(), 1, "{:?}", put.skipped);
    assert!(put.skipped[0].path.contains("moved/ddd"), "{:?}", put.skipped);
}
