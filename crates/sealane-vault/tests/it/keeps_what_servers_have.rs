//! Servers' trees come back with all that is no content: extended attributes with the ACLs and
//! capabilities in them, devices, pipes, and further names of all of these.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, getxattr, lsetxattr, makedev, mknodat};
use sealane_vault::{
    DrillOptions, GetOptions, GetReport, OpenOptions, PutOptions, SlotSecret, Vault,
};

use crate::shared::{Host, PASSPHRASE, Place};

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// user::rw- user:UID:rw- group::--- mask::rw- other::---, as linux/posix_acl_xattr.h has it. What
/// `ls` shows as the rights of the group is the mask.
fn acl(uid: u32) -> Vec<u8> {
    let row = |tag: u16, rights: u16, id: u32| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let rows = [row(1, 6, none), row(2, 6, uid), row(4, 0, none), row(16, 6, none)];
    [&2_u32.to_le_bytes()[..], &rows.concat(), &row(32, 0, none)].concat()
}

fn set(path: &Path, name: &str, value: &[u8]) {
    lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// A tree that anybody may make.
fn users_tree(folder: &Path) {
    fs::create_dir(folder.join("shared")).unwrap();
    fs::write(folder.join("shared/file"), b"for another user, too").unwrap();
    set(&folder.join("shared/file"), "user.origin", b"https://example.org/");
    set(&folder.join("shared/file"), "user.empty", b"");
    set(&folder.join("shared/file"), ACCESS, &acl(4711));
    set(&folder.join("shared"), DEFAULT, &acl(4712));
    fs::write(folder.join("shared/given"), b"its folder gives it an ACL").unwrap();
    fs::write(folder.join("read only"), b"x").unwrap();
    set(&folder.join("read only"), "user.long", &[7; 3000]);
    fs::set_permissions(folder.join("read only"), PermissionsExt::from_mode(0o400)).unwrap();
    fs::hard_link(folder.join("read only"), folder.join("shared/again")).unwrap();
    pipe(&folder.join("pipe"));
    fs::hard_link(folder.join("pipe"), folder.join("pipe again")).unwrap();
    symlink("pipe", folder.join("link")).unwrap();
    fs::hard_link(folder.join("link"), folder.join("shared/link again")).unwrap();
}

fn restored(place: &Place, vault: &Vault, options: &GetOptions, target: &str) -> PathBuf {
    let target = place.path(target);
    let got = vault.get_to(&vault.snapshot(None).unwrap(), &target, options).unwrap();
    assert_eq!((got.failed, got.lacking), (vec![], vec![]));
    target.join("source")
}

/// The differences of two trees as Python's standard library sees them, which shares nothing with
/// this crate.
fn differences(one: &Path, two: &Path) -> Vec<String> {
    const LISTER: &str = r"
import hashlib, os, stat, sys
def look(path):
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    names = sorted(os.listxattr(path, follow_symlinks=False))
    attributes = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in names]
    content = hashlib.sha256(open(path, 'rb').read()).hexdigest() if kind == stat.S_IFREG else ''
    target = os.readlink(path) if kind == stat.S_IFLNK else ''
    size = 0 if kind == stat.S_IFDIR else found.st_size
    nlink = 0 if kind == stat.S_IFDIR else found.st_nlink
    return (oct(found.st_mode), found.st_uid, found.st_gid, found.st_mtime_ns, nlink,
            found.st_rdev, size, attributes, content, target)
root = os.fsencode(sys.argv[1])
for folder, folders, files in os.walk(root):
    for path in (os.path.join(folder, name) for name in folders + files):
        print(repr(os.path.relpath(path, root)), look(path))
";
    let list = |folder: &Path| -> BTreeSet<String> {
        let output = Command::new("python3").args(["-c", LISTER]).arg(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let (one, two) = (list(one), list(two));
    assert!(!one.is_empty());
    one.symmetric_difference(&two).cloned().collect()
}

#[test]
fn attributes_pipes_and_further_names_come_back() {
    let place = Place::new();
    let source = place.source(users_tree);
    let vault = place.init();
    let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!((put.skipped, put.passed), (vec![], vec![]));
    let target = restored(&place, &vault, &GetOptions::default(), "target");
    for (path, name) in [
        ("shared/file", "user.origin"),
        ("shared/file", "user.empty"),
        ("shared/file", ACCESS),
        ("shared", DEFAULT),
        ("shared/given", ACCESS),
        ("read only", "user.long"),
        ("shared/again", "user.long"),
    ] {
        let kept = attribute(&source.join(path), name);
        assert!(kept.is_some(), "{path} {name}");
        assert_eq!(attribute(&target.join(path), name), kept, "{path} {name}");
    }
    for (one, two) in [("pipe", "pipe again"), ("link", "shared/link again")] {
        let inode = |path: &str| target.join(path).symlink_metadata().unwrap().ino();
        assert_eq!(inode(one), inode(two), "{one}");
    }
    // Nothing of it is read again, or kept twice.
    let again = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!((again.packs, again.counts.new_bytes), (0, 0));
    restored(&place, &vault, &GetOptions::default(), "target");
    let drill = vault.drill(&place.path("scratch"), &DrillOptions::default()).unwrap();
    assert_eq!((drill.failed, drill.all), (vec![], true));
}

/// A folder with a default ACL gives one to all that is made in it.
#[test]
fn what_is_restored_has_no_acl_that_its_target_gives() {
    let place = Place::new();
    let source = place.source(|folder| {
        fs::create_dir(folder.join("folder")).unwrap();
        fs::write(folder.join("folder/private"), b"").unwrap();
        fs::set_permissions(folder.join("folder/private"), PermissionsExt::from_mode(0o640))
            .unwrap();
        pipe(&folder.join("pipe"));
    });
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    fs::create_dir(place.path("target")).unwrap();
    set(&place.path("target"), DEFAULT, &acl(4711));
    let target = restored(&place, &vault, &GetOptions::default(), "target");
    for path in ["", "folder", "folder/private", "pipe"] {
        for name in [ACCESS, DEFAULT] {
            assert_eq!(attribute(&target.join(path), name), None, "{path} {name}");
        }
    }
}

#[test]
fn a_socket_is_named_and_no_failure() {
    let place = Place::new();
    let source = place.source(|folder| fs::write(folder.join("file"), b"x").unwrap());
    let _socket = UnixListener::bind(source.join("S.agent")).unwrap();
    let vault = place.init();
    let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!((put.skipped.len(), put.passed.len()), (0, 1));
    assert!(put.passed[0].path.ends_with("/S.agent"), "{:?}", put.passed);
    assert!(put.passed[0].reason.contains("socket"), "{:?}", put.passed);
}

/// A half-trusted writer gives nobody rights: neither by an ACL, nor by the mask that stands in
/// the place of the group's rights once the ACL is gone.
#[test]
fn a_writer_gives_no_rights_by_attributes() {
    let place = Place::new();
    let source = place.source(users_tree);
    let owner = place.init();
    let writer = Host::of(&place, &owner, "host").open(&place);
    writer.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let vault = place.open();
    let target = restored(&place, &vault, &GetOptions::default(), "careful");
    let file = target.join("shared/file");
    assert_eq!(attribute(&file, ACCESS), None);
    assert_eq!(attribute(&target.join("shared"), DEFAULT), None);
    assert!(attribute(&file, "user.origin").is_some());
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
    let trusting = GetOptions { trust_modes: true, ..GetOptions::default() };
    let file = restored(&place, &vault, &trusting, "trusting").join("shared/file");
    assert_eq!(attribute(&file, ACCESS), Some(acl(4711)));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o660);
}

/// A tree that only root may make. The capability is cap_net_raw=ep, as linux/capability.h has it.
fn roots_tree(folder: &Path) {
    users_tree(folder);
    let capability = [0x0200_0001_u32, 1 << 13, 0, 0, 0].map(u32::to_le_bytes).concat();
    fs::write(folder.join("ping"), b"#!/bin/sh\n").unwrap();
    chown(folder.join("ping"), Some(4711), Some(4712)).unwrap();
    fs::set_permissions(folder.join("ping"), PermissionsExt::from_mode(0o4755)).unwrap();
    set(&folder.join("ping"), "security.capability", &capability);
    for (name, kind, numbers) in [
        ("null", FileType::CharacterDevice, (1, 3)),
        ("disk", FileType::BlockDevice, (259, 1 << 18)),
    ] {
        let device = makedev(numbers.0, numbers.1);
        mknodat(CWD, folder.join(name), kind, Mode::from_raw_mode(0o620), device).unwrap();
        lchown(folder.join(name), Some(7), Some(8)).unwrap();
        set(&folder.join(name), "trusted.of", b"a device");
        set(&folder.join(name), ACCESS, &acl(4713));
    }
    lchown(folder.join("link"), Some(9), Some(10)).unwrap();
    set(&folder.join("link"), "trusted.of", b"a link");
    fs::hard_link(folder.join("null"), folder.join("shared/null again")).unwrap();
}

#[test]
#[ignore = "lab: needs root (devices and owners) and Python 3"]
fn a_servers_tree_comes_back_with_0_differences() {
    let place = Place::new();
    let source = place.source(roots_tree);
    let vault = place.init();
    let put = vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!((put.skipped, put.passed), (vec![], vec![]));
    let target = restored(&place, &vault, &GetOptions::default(), "target");
    assert_eq!(differences(&source, &target), Vec::<String>::new());
    let drill = vault.drill(&place.path("scratch"), &DrillOptions::default()).unwrap();
    assert_eq!((drill.failed, drill.all), (vec![], true));
}

#[test]
#[ignore = "lab: needs root (devices and owners) and Python 3"]
fn a_writer_plants_no_device_and_no_capability() {
    let place = Place::new();
    let source = place.source(roots_tree);
    let owner = place.init();
    let writer = Host::of(&place, &owner, "host").open(&place);
    writer.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let vault = place.open();
    let target = restored(&place, &vault, &GetOptions::default(), "careful");
    for device in ["null", "disk", "shared/null again"] {
        assert!(target.join(device).symlink_metadata().is_err(), "{device}");
    }
    let ping = fs::metadata(target.join("ping")).unwrap();
    assert_eq!((ping.uid(), ping.mode() & 0o7777), (0, 0o755));
    assert_eq!(attribute(&target.join("ping"), "security.capability"), None);
    // A drill leaves the devices out, too, and does not claim to have proven all.
    let drill = vault.drill(&place.path("scratch"), &DrillOptions::default()).unwrap();
    assert_eq!((drill.failed, drill.all), (vec![], false));
    let trusting = GetOptions { trust_modes: true, ..GetOptions::default() };
    let target = restored(&place, &vault, &trusting, "trusting");
    assert_eq!(differences(&source, &target), Vec::<String>::new());
    let snapshot = vault.snapshot(None).unwrap();
    let mut archive = Vec::new();
    vault.dump(&snapshot, b"source", &mut archive).unwrap();
    let has = |name: &[u8]| archive.windows(name.len()).any(|part| part == name);
    assert!(!has(b"source/null\0") && !has(b"security.capability") && has(b"user.origin="));
}

/// The newest snapshot's `paths`, restored into a folder in which something may lie.
fn got(place: &Place, vault: &Vault, paths: &[&str], overwrite: bool) -> GetReport {
    let paths = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
    let options = GetOptions { paths, overwrite, ..GetOptions::default() };
    vault.get_to(&vault.snapshot(None).unwrap(), &place.path("target"), &options).unwrap()
}

/// A pipe, a further name of it, and a link with a further name outside of its folder.
fn further_names(folder: &Path) {
    pipe(&folder.join("pipe"));
    fs::hard_link(folder.join("pipe"), folder.join("pipe again")).unwrap();
    fs::create_dir(folder.join("a")).unwrap();
    symlink("there", folder.join("a/link")).unwrap();
    fs::hard_link(folder.join("a/link"), folder.join("link again")).unwrap();
}

#[test]
fn a_pipe_that_lies_there_is_not_taken_for_the_restored_one() {
    let place = Place::new();
    let source = place.source(|folder| pipe(&folder.join("pipe")));
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let path = place.path("target/source/pipe");
    let mut planted = vec![(rustix::process::geteuid().as_raw(), 0)];
    if rustix::process::geteuid().is_root() {
        planted.push((4711, 0o600));
    }
    for (owner, mode) in planted {
        fs::create_dir_all(place.path("target/source")).unwrap();
        pipe(&path);
        chown(&path, Some(owner), None).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let kept = got(&place, &vault, &["source/pipe"], false);
        assert!(kept.failed[0].reason.contains("SL-VAULT-29"), "{:?}", kept.failed);
        assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), owner);
        let replaced = got(&place, &vault, &["source/pipe"], true);
        assert_eq!((replaced.failed, replaced.others), (vec![], 1));
        let found = fs::symlink_metadata(&path).unwrap();
        let own = fs::symlink_metadata(source.join("pipe")).unwrap();
        assert_eq!((found.uid(), found.mode()), (own.uid(), own.mode()));
        // Whatever is written into a pipe changes its time.
        let now = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
        rustix::fs::utimensat(CWD, &path, &times, rustix::fs::AtFlags::empty()).unwrap();
        assert_eq!(got(&place, &vault, &["source/pipe"], false).unchanged, 1);
        assert_eq!(fs::read_dir(place.path("target/source")).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn further_names_are_only_of_what_was_restored() {
    let place = Place::new();
    let source = place.source(further_names);
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let target = place.path("target/source");
    fs::create_dir_all(&target).unwrap();
    // It looks like the first name, and nobody has asked for that.
    pipe(&target.join("pipe"));
    let got = |paths: &[&str]| got(&place, &vault, paths, false);
    let alone = got(&["source/pipe again", "source/link again"]);
    assert_eq!((alone.failed, alone.links, alone.others), (vec![], 1, 1));
    let look = |path: &str| fs::symlink_metadata(target.join(path)).unwrap();
    assert_eq!((look("pipe again").nlink(), look("link again").nlink()), (1, 1));
    assert!(!target.join("a").exists(), "a folder that nobody has asked for");
    for name in ["pipe again", "link again"] {
        fs::remove_file(target.join(name)).unwrap();
    }
    // The pipe is found right now, and the link made.
    assert_eq!(got(&[]).failed, []);
    for (one, two) in [("pipe", "pipe again"), ("a/link", "link again")] {
        assert_eq!(look(one).ino(), look(two).ino(), "{one}");
    }
}

#[test]
fn a_pipe_alone_is_something_that_was_recovered() {
    let place = Place::new();
    let source = place.source(|folder| pipe(&folder.join("pipe")));
    let vault = place.init();
    vault.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let options = OpenOptions { objects_alone: true, ..place.options() };
    let alone = Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap();
    let pipe = GetOptions { paths: vec![b"source/pipe".to_vec()], ..GetOptions::default() };
    let report = alone.recover_to(None, &place.path("target"), &pipe).unwrap().report;
    assert_eq!((report.failed, report.others, report.folders), (vec![], 1, 0));
}
