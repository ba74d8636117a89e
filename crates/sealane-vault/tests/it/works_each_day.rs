//! The verbs of each day: forgetting by number, comparing snapshots, dumping parts of one, and
//! verifying a part of the packs at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::shared::{Place, Seed, assert_same, flip, odd_files};
use sealane_vault::{
    DifferenceKind, Error, PruneOptions, PutOptions, Snapshot, Vault, VerifyData, VerifyPart,
};

fn forget(numbers: &[u64]) -> PruneOptions {
    let forget = Some(numbers.iter().copied().collect());
    PruneOptions { forget, now: true, ..PruneOptions::default() }
}

fn put(vault: &Vault, content: &[u8]) -> u64 {
    vault.put_reader("file", &mut &*content, &PutOptions::default()).unwrap().snapshot
}

#[test]
fn those_that_are_named_are_forgotten_and_no_others() {
    let place = Place::new();
    let vault = place.init();
    for number in 1..=4 {
        assert_eq!(put(&vault, &Seed(number).random(20_000)), number);
    }
    let refused = vault.prune(&forget(&[2, 9])).unwrap_err();
    assert_eq!((refused.info().name, refused.to_string().contains('9')), ("NoSnapshot", true));
    let before = place.objects();
    let dry = vault.prune(&PruneOptions { dry_run: true, ..forget(&[2, 4]) }).unwrap();
    assert_eq!((dry.removed, dry.kept), (2, 2));
    assert!(place.objects() == before);
    // The newest goes, too, if it is named.
    let report = vault.prune(&forget(&[2, 4])).unwrap();
    assert_eq!((report.removed, report.removed_packs), (2, 2), "{report:?}");
    for vault in [place.open(), place.open_afresh("fresh")] {
        let numbers: BTreeSet<u64> = vault.snapshots().unwrap().iter().map(|s| s.number).collect();
        assert_eq!(numbers, BTreeSet::from([1, 3]));
        assert_eq!(vault.verify(true).unwrap().problems, []);
        assert_eq!(vault.snapshot(None).unwrap().number, 3);
    }
}

/// The paths that differ, and how.
fn differences(vault: &Vault, from: &Snapshot, to: &Snapshot) -> BTreeMap<String, DifferenceKind> {
    let mut found = BTreeMap::new();
    let compared = vault.diff(from, to, &[], &mut |one| {
        assert!(found.insert(one.entry.shown(), one.kind).is_none());
        Ok(())
    });
    compared.unwrap();
    found
}

/// Changes an entry in each way in which two snapshots can differ.
fn change(source: &Path) {
    let keep_time = |name: &str, act: &dyn Fn()| {
        let time = fs::metadata(source.join(name)).unwrap().modified().unwrap();
        act();
        fs::File::open(source.join(name)).unwrap().set_modified(time).unwrap();
    };
    fs::write(source.join("file-0007"), b"other content").unwrap();
    keep_time("file-0900", &|| {
        let mode = PermissionsExt::from_mode(0o600);
        fs::set_permissions(source.join("file-0900"), mode).unwrap();
    });
    fs::remove_file(source.join("file-1500")).unwrap();
    fs::write(source.join("folder/new"), b"new").unwrap();
    fs::remove_file(source.join("link")).unwrap();
    std::os::unix::fs::symlink("file-0002", source.join("link")).unwrap();
    fs::remove_file(source.join("file-2999")).unwrap();
    fs::create_dir(source.join("file-2999")).unwrap();
}

#[test]
fn two_snapshots_differ_in_what_was_changed() {
    let place = Place::new();
    // Many pages, most of which are the same in both.
    let source = place.source(|folder| {
        for number in 0..3000 {
            fs::write(folder.join(format!("file-{number:04}")), number.to_string()).unwrap();
        }
        fs::create_dir(folder.join("folder")).unwrap();
        std::os::unix::fs::symlink("file-0001", folder.join("link")).unwrap();
    });
    let vault = place.init();
    let put = || {
        let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        vault.snapshot(Some(put.snapshot)).unwrap()
    };
    let before = put();
    assert_eq!(differences(&vault, &before, &before), BTreeMap::new());
    change(&source);
    let after = put();
    let mut found = differences(&vault, &before, &after);
    // The times of folders in which something was made or removed.
    for folder in ["source", "source/folder"] {
        assert_eq!(found.remove(folder), Some(DifferenceKind::Metadata), "{folder}");
    }
    let expected = [
        ("source/file-0007", DifferenceKind::Content),
        ("source/file-0900", DifferenceKind::Metadata),
        ("source/file-1500", DifferenceKind::Removed),
        ("source/file-2999", DifferenceKind::Kind),
        ("source/folder/new", DifferenceKind::Added),
        ("source/link", DifferenceKind::Content),
    ];
    let expected = expected.map(|(path, kind)| (path.to_owned(), kind));
    assert_eq!(found, BTreeMap::from(expected));
    // The other way round, and a part of it.
    let back = differences(&vault, &after, &before);
    assert_eq!(back.get("source/folder/new"), Some(&DifferenceKind::Removed));
    assert_eq!(back.get("source/file-1500"), Some(&DifferenceKind::Added));
    let mut part = Vec::new();
    let paths = [b"source/folder".to_vec()];
    vault
        .diff(&before, &after, &paths, &mut |one| {
            part.push(one.entry.shown());
            Ok(())
        })
        .unwrap();
    assert_eq!(part, ["source/folder", "source/folder/new"]);
    // A path of one of the two is compared, and one of neither is refused.
    let compare = |path: &[u8]| vault.diff(&before, &after, &[path.to_vec()], &mut |_| Ok(()));
    compare(b"source/folder/new").unwrap();
    compare(b"source/file-1500").unwrap();
    assert_eq!(compare(b"source/none").unwrap_err().info().name, "NoEntry");
    let stopped = vault.diff(&before, &after, &[], &mut |_| Err(Error::Raced));
    assert_eq!(stopped.unwrap_err().info().name, "SnapshotRaced");
}

/// A tree without what an archive cannot hold: names that are one file, and holes.
fn archived(place: &Place) -> Vault {
    let source = place.source(|folder| {
        odd_files(folder);
        let deep = folder.join("d".repeat(90)).join("e".repeat(90));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("ü".repeat(40)), Seed(1).random(70_000)).unwrap();
        std::os::unix::fs::symlink("x".repeat(300), folder.join("far")).unwrap();
    });
    for name in ["sparse", "all hole", "deep/er/one-again", "another one"] {
        fs::remove_file(source.join(name)).unwrap();
    }
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    vault
}

#[test]
#[ignore = "lab: needs tar"]
fn a_folder_is_dumped_as_an_archive_that_tar_reads() {
    let place = Place::new();
    let vault = archived(&place);
    let mut archive = Vec::new();
    vault.dump(&vault.snapshot(None).unwrap(), b"source", &mut archive).unwrap();
    let target = place.path("target");
    fs::create_dir(&target).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-x", "-p", "-f", "-", "--delay-directory-restore", "--no-same-owner"]);
    let mut tar = tar.current_dir(&target).stdin(Stdio::piped()).spawn().unwrap();
    tar.stdin.take().unwrap().write_all(&archive).unwrap();
    assert!(tar.wait().unwrap().success());
    assert_same(&place.path("source"), &target.join("source"));
}

/// The entries of an archive: names and contents.
fn members(archive: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut at, mut long, mut found) = (0, None, BTreeMap::new());
    while archive[at] != 0 {
        let head = &archive[at..at + 512];
        let octal = |from: usize, to: usize| {
            let digits =
                std::str::from_utf8(&head[from..to]).unwrap().trim_end_matches(['\0', ' ']);
            u64::from_str_radix(digits, 8).unwrap()
        };
        let blank = |at: &usize| (148..156).contains(at);
        let sum = head.iter().enumerate().filter(|(at, _)| !blank(at));
        let sum = sum.map(|(_, byte)| u64::from(*byte)).sum::<u64>() + 8 * u64::from(b' ');
        assert_eq!(octal(148, 156), sum);
        assert_eq!(&head[257..265], b"ustar\x0000");
        let size = octal(124, 136) as usize;
        let content = archive[at + 512..at + 512 + size].to_vec();
        at += 512 + size.next_multiple_of(512);
        if head[156] == b'x' {
            let path = content.split(|byte| *byte == b'\n').find_map(|line| {
                let at = line.windows(6).position(|part| part == b" path=")?;
                Some(line[at + 6..].to_vec())
            });
            long = path.or(long);
            continue;
        }
        let name = head[..100].split(|byte| *byte == 0).next().unwrap().to_vec();
        assert!(found.insert(long.take().unwrap_or(name), content).is_none());
    }
    assert_eq!(archive[at..], [0; 1024]);
    found
}

#[test]
fn a_dump_has_every_path_and_every_byte_of_it() {
    let place = Place::new();
    let vault = archived(&place);
    let snapshot = vault.snapshot(None).unwrap();
    let mut archive = Vec::new();
    let report = vault.dump(&snapshot, b"source", &mut archive).unwrap();
    assert_eq!(report.bytes, snapshot.counts.bytes);
    let found = members(&archive);
    assert_eq!(found.len() as u64, report.entries);
    for (path, content) in &found {
        let path = std::ffi::OsStr::from_bytes(path);
        let path = place.path("").join(path);
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_file() {
            assert!(fs::read(&path).unwrap() == *content, "{}", path.display());
        }
    }
    // All of it, a folder of it, and one file as it is.
    let mut whole = Vec::new();
    vault.dump(&snapshot, b"", &mut whole).unwrap();
    assert!(whole == archive);
    let mut deep = Vec::new();
    vault.dump(&snapshot, b"source/deep", &mut deep).unwrap();
    assert_eq!(members(&deep).len(), 2);
    let mut one = Vec::new();
    vault.dump(&snapshot, b"source/one", &mut one).unwrap();
    assert_eq!(one, b"1");
    let refused = vault.dump(&snapshot, b"source/none", &mut one).unwrap_err();
    assert_eq!((refused.info().name, one.len()), ("NoEntry", 1));
}

#[test]
fn a_part_of_the_packs_is_read_each_time_and_in_the_end_all() {
    let place = Place::new();
    let vault = place.init();
    for number in 1..=12 {
        put(&vault, &Seed(number).random(5000));
    }
    let all = vault.verify(true).unwrap();
    assert_eq!((all.packs, all.problems.len()), (12, 0));
    let packs = place.store().list("packs/").unwrap();
    packs.iter().for_each(|pack| flip(&place.path("vault").join(&pack.key), 1000));
    let (mut read, mut named) = (0, BTreeSet::new());
    for number in 1..=5 {
        let part: VerifyPart = format!("{number}/5").parse().unwrap();
        let again = place.open_afresh(&format!("part {number}"));
        let report = again.verify_data(VerifyData::Part(part)).unwrap();
        read += report.read_bytes;
        assert!(report.read_bytes < all.read_bytes, "{number}");
        let packs = report.problems.into_iter().filter(|one| one.path.starts_with("packs/"));
        for problem in packs {
            assert!(named.insert(problem.path), "a pack is read in one part");
        }
    }
    assert_eq!((read, named.len()), (all.read_bytes, 12));
    assert_eq!(vault.verify_data(VerifyData::Lists).unwrap().read_bytes, 0);
    for wrong in ["0/7", "8/7", "7", "a/b", "1/0", "-1/7", ""] {
        assert!(wrong.parse::<VerifyPart>().is_err(), "{wrong}");
    }
}
