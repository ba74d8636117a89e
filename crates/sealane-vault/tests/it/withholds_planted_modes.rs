//! A restore takes owners and setuid bits from a writer only if its user trusts the writer. It
//! writes nothing but what it made itself.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::shared::{Host, PASSPHRASE, Place};
use sealane_vault::{DrillOptions, GetOptions, OpenOptions, PutOptions, SlotSecret, Vault};

#[test]
fn a_writer_plants_no_program_that_runs_as_somebody_else() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::write(folder.join("run"), b"#!/bin/sh\n").unwrap();
        fs::set_permissions(folder.join("run"), PermissionsExt::from_mode(0o6755)).unwrap();
        fs::create_dir(folder.join("open")).unwrap();
        fs::set_permissions(folder.join("open"), PermissionsExt::from_mode(0o2777)).unwrap();
    });
    let owner = place.init();
    let host = Host::of(&place, &owner, "host");
    let writer = host.open(&place);
    let sources = std::slice::from_ref(&source);
    let by_writer = writer.put_paths(sources, &PutOptions::default()).unwrap().snapshot;
    let by_owner = place.open().put_paths(sources, &PutOptions::default()).unwrap().snapshot;
    let trusting = GetOptions { trust_modes: true, ..GetOptions::default() };
    let plain = GetOptions::default();
    let rows = [
        (by_writer, &plain, [0o755, 0o777], 2),
        (by_writer, &trusting, [0o6755, 0o2777], 0),
        (by_owner, &plain, [0o6755, 0o2777], 0),
    ];
    let vault = place.open();
    for (turn, (number, options, modes, withheld)) in rows.into_iter().enumerate() {
        let target = place.path(&format!("target {turn}"));
        let snapshot = vault.snapshot(Some(number)).unwrap();
        let got = vault.get_to(&snapshot, &target, options).unwrap();
        assert_eq!((got.failed.as_slice(), got.withheld), (&[][..], withheld));
        let mode = |name: &str| fs::metadata(target.join(name)).unwrap().mode() & 0o7777;
        assert_eq!([mode("source/run"), mode("source/open")], modes);
    }
    // Root may unpack what is dumped.
    for (number, mode, withheld) in [(by_writer, "0000755", 2), (by_owner, "0006755", 0)] {
        let snapshot = vault.snapshot(Some(number)).unwrap();
        let mut archive = Vec::new();
        let dumped = vault.dump(&snapshot, b"source", &mut archive).unwrap();
        assert_eq!(dumped.withheld, withheld);
        let name = b"source/run\0";
        let at = archive.windows(name.len()).position(|part| part == name).unwrap();
        assert_eq!(&archive[at + 100..at + 107], mode.as_bytes());
    }
    // A drill restores as little, and is proven all the same.
    let (scratch, number) = (place.path("scratch"), Some(by_writer));
    let options = DrillOptions { snapshot: number, ..DrillOptions::default() };
    assert_eq!(vault.drill(&scratch, &options).unwrap().failed, []);
    assert_eq!(fs::metadata(scratch.join("source/run")).unwrap().mode() & 0o7777, 0o755);
    // So does a recovery, with a snapshot and without.
    for lost in [false, true] {
        if lost {
            fs::remove_dir_all(place.path("vault/snapshots")).unwrap();
        }
        let options = OpenOptions { objects_alone: true, ..place.options() };
        let alone =
            Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap();
        let number = number.filter(|_| !lost);
        let target = place.path(&format!("recovered {lost}"));
        alone.recover_to(number, &target, &GetOptions::default()).unwrap();
        assert_eq!(fs::metadata(target.join("source/run")).unwrap().mode() & 0o7777, 0o755);
    }
}

/// The name of a draft can be computed by anybody who knows the path.
#[test]
fn a_file_that_waits_under_the_name_of_a_draft_is_not_written_to() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("secret"), b"hash").unwrap());
    let vault = place.init();
    vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let name = &blake3::hash(b"source/secret").to_hex()[..16];
    for linked in [true, false] {
        let target = place.path(&format!("target {linked}"));
        fs::create_dir_all(target.join("source")).unwrap();
        let (trap, outside) =
            (target.join(format!("source/.sealane-{name}.part")), place.path("x"));
        fs::write(&outside, b"as it was").unwrap();
        fs::set_permissions(&outside, PermissionsExt::from_mode(0o600)).unwrap();
        match linked {
            true => fs::hard_link(&outside, &trap).unwrap(),
            false => fs::write(&trap, b"for all to read").unwrap(),
        }
        let snapshot = vault.snapshot(None).unwrap();
        let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
        assert_eq!(got.failed, []);
        assert_eq!(fs::read(target.join("source/secret")).unwrap(), b"hash");
        assert_eq!(fs::read(&outside).unwrap(), b"as it was");
        let left = fs::read(&trap).unwrap();
        assert_ne!(left, b"hash", "others read what was restored");
    }
}

#[test]
fn root_takes_no_file_of_another_user_for_a_restored_one() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: it needs root");
        return;
    }
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"kept").unwrap());
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let target = place.path("target");
    fs::create_dir_all(target.join("source")).unwrap();
    let planted = target.join("source/file");
    fs::write(&planted, b"evil").unwrap();
    let time = fs::metadata(source.join("file")).unwrap().modified().unwrap();
    fs::File::open(&planted).unwrap().set_modified(time).unwrap();
    std::os::unix::fs::chown(&planted, Some(65_534), Some(65_534)).unwrap();
    let snapshot = vault.snapshot(None).unwrap();
    let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert!(got.failed[0].reason.contains("SL-VAULT-29"), "{:?}", got.failed);
    let options = GetOptions { overwrite: true, ..GetOptions::default() };
    assert_eq!(vault.get_to(&snapshot, &target, &options).unwrap().failed, []);
    assert_eq!(fs::read(&planted).unwrap(), b"kept");
}
