//! The key folder: for its owner only, behind a passphrase if there is one, backed up and restored.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::shared::{Place, forward_secret, join, named, open, seal};
use sealane_group::{EpochSource, Error, Identity, KeyFolder, NewGroup, seal_to};
use sealane_seal::Class;
use sealane_testing::files_below;

fn modes(folder: &Path) {
    let about = fs::metadata(folder).unwrap();
    let mode = about.permissions().mode() & 0o777;
    assert_eq!(mode, if about.is_dir() { 0o700 } else { 0o600 }, "{}", folder.display());
    if about.is_dir() {
        fs::read_dir(folder).unwrap().for_each(|entry| modes(&entry.unwrap().path()));
    }
}

fn contains(folder: &Path, bytes: &[u8]) -> bool {
    let holds = |file: &Vec<u8>| file.windows(bytes.len()).any(|window| window == bytes);
    files_below(folder).values().any(holds)
}

#[test]
fn files_are_the_owners_and_others_make_them_refused() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    join(&mut base, &place.keys("car"));
    modes(&place.path("base"));
    modes(&place.path("car"));
    let path = place.path("car/identity");
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let refused = KeyFolder::open(&place.path("car"), None);
        assert!(matches!(refused, Err(Error::Exposed(_))), "{mode:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let group = place.path("car/groups/fleet/group");
    fs::set_permissions(&group, fs::Permissions::from_mode(0o644)).unwrap();
    let keys = KeyFolder::open(&place.path("car"), None).unwrap();
    assert!(matches!(keys.group("fleet"), Err(Error::Exposed(_))));
}

#[test]
fn an_identity_is_never_overwritten() {
    let place = Place::new();
    let key = place.keys("car").identity().public().clone();
    let again = KeyFolder::create(&place.path("car"), "car", None);
    assert!(matches!(again, Err(Error::IdentityExists(_))));
    let opened = KeyFolder::open(&place.path("car"), None).unwrap();
    assert_eq!(opened.identity().public(), &key);
    assert!(matches!(KeyFolder::open(&place.path("none"), None), Err(Error::NoIdentity(_))));
}

#[test]
fn a_passphrase_hides_all_secrets() {
    let place = Place::new();
    let path = place.path("car");
    let keys = KeyFolder::create(&path, "car", Some(b"correct horse")).unwrap();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (member, _) = join(&mut base, &keys);
    let (_, secret) = member.epochs().held().next().unwrap();
    assert!(!contains(&path, secret.expose()));
    assert!(!contains(&path, keys.identity().expose_seed()));
    assert!(contains(&place.path("base"), secret.expose()), "the search finds what is in clear");
    assert!(KeyFolder::is_protected(&path).unwrap());
    assert!(!KeyFolder::is_protected(&place.path("base")).unwrap());
    assert!(matches!(KeyFolder::open(&path, None), Err(Error::PassphraseMissing)));
    assert!(matches!(KeyFolder::open(&path, Some(b"wrong")), Err(Error::PassphraseWrong)));
    let keys = KeyFolder::open(&path, Some(b"correct horse")).unwrap();
    seal(&mut keys.group("fleet").unwrap().sender().unwrap(), Class::Group, b"x");
    // A file in clear that somebody else put there is not taken.
    let clear = fs::read(place.path("base/groups/fleet/group")).unwrap();
    fs::write(path.join("groups/fleet/group"), clear).unwrap();
    assert!(matches!(keys.group("fleet"), Err(Error::Damaged(_))));
}

#[test]
fn a_backup_brings_back_what_can_be_read_and_goes_on() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let mut quiet = place.keys("quiet").new_group("quiet", forward_secret()).unwrap();
    let keys = place.keys("car");
    let (car, _) = join(&mut base, &keys);
    join(&mut quiet, &keys);
    let early = seal(&mut base.sender().unwrap(), Class::Group, b"early");
    let letter = seal_to(keys.identity().public(), b"vault", b"key").unwrap();
    for passphrase in [None, Some(&b"pass"[..])] {
        let backup = keys.backup(passphrase).unwrap();
        assert_eq!(KeyFolder::is_protected_backup(&backup).unwrap(), passphrase.is_some());
        let root = place.path(if passphrase.is_some() { "two" } else { "one" });
        // Each attempt behind a passphrase takes its 64 MiB and its time.
        let step = if passphrase.is_some() { 1500 } else { 97 };
        for end in (0..backup.len()).step_by(step) {
            assert!(KeyFolder::restore(&root, &backup[..end], passphrase).is_err());
        }
        assert!(!root.exists(), "a refused backup left something behind");
        let restored = KeyFolder::restore(&root, &backup, passphrase).unwrap();
        assert_eq!(restored.identity().public(), keys.identity().public());
        assert_eq!(restored.identity().open(b"vault", &letter).unwrap().as_slice(), b"key");
        assert_eq!(restored.groups().unwrap(), ["fleet"]);
        let member = restored.group("fleet").unwrap();
        assert!(member.is_copied() && member.slot() == car.slot());
        assert_eq!(open(&mut member.opener().unwrap(), &early).unwrap(), b"early");
        // It seals under keys of its own, in the slot that it has.
        let frame = seal(&mut member.sender().unwrap(), Class::Group, b"back");
        assert_eq!(open(&mut base.opener().unwrap(), &frame).unwrap(), b"back");
        let again = KeyFolder::restore(&root, &backup, passphrase);
        assert!(matches!(again, Err(Error::IdentityExists(_))));
        if passphrase.is_some() {
            let refused = KeyFolder::restore(&place.path("three"), &backup, None);
            assert!(matches!(refused, Err(Error::PassphraseMissing)));
        }
    }
    // The backup of an authority reads and seals, and gives no order.
    let backup = KeyFolder::open(&place.path("base"), None).unwrap().backup(None).unwrap();
    let restored = KeyFolder::restore(&place.path("base2"), &backup, None).unwrap();
    let mut restored = restored.group("fleet").unwrap();
    let frame = seal(&mut restored.sender().unwrap(), Class::Group, b"base");
    assert_eq!(open(&mut car.opener().unwrap(), &frame).unwrap(), b"base");
    assert_eq!(named(restored.rotate()), "CopiedFolder");
}

#[test]
fn letters_are_for_one_identity() {
    let [us, them] = ["us", "them"].map(|name| Identity::generate(name).unwrap());
    let letter = seal_to(us.public(), b"x", b"secret").unwrap();
    assert_eq!(us.open(b"x", &letter).unwrap().as_slice(), b"secret");
    assert!(matches!(them.open(b"x", &letter), Err(Error::NotForUs(_))));
}
