//! Extended attributes of what a restore makes.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{
    XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, getxattr, listxattr, removexattr,
    setxattr,
};
use rustix::io::Errno;

use crate::format::page::{EntryAttribute, SnapshotEntry};

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";
/// Attributes that only root can set.
const OF_ROOT: [&[u8]; 2] = [b"security.", b"trusted."];
/// Attributes that give nobody any right.
const OF_USERS: &[u8] = b"user.";
const GROUP_BITS: u32 = 0o070;

/// Whether a restore by anybody but root leaves an attribute of that name out.
pub(crate) fn is_roots_attribute(name: &[u8]) -> bool {
    OF_ROOT.iter().any(|prefix| name.starts_with(prefix))
}

/// Where attributes are set.
#[derive(Clone, Copy)]
pub(super) enum AttributePlace<'a> {
    /// A file or folder that is open.
    Open(BorrowedFd<'a>),
    /// A link, a device or a pipe that was only looked up.
    Found(BorrowedFd<'a>),
}

/// The outcome for the attributes of an entry.
#[derive(Debug)]
pub(super) struct AttributeOutcome {
    /// The mode that goes with the attributes that were set.
    pub(super) mode: u32,
    /// The first attribute that its place did not take, and why.
    pub(super) lacking: Option<String>,
}

impl AttributePlace<'_> {
    /// Sets all attributes of an entry. What is new keeps no ACL that its folder gave it.
    pub(super) fn dress(self, entry: &SnapshotEntry, is_new: bool) -> AttributeOutcome {
        if is_new {
            self.strip(&entry.attributes);
        }
        let mut outcome = AttributeOutcome { mode: entry.mode, lacking: None };
        let root = rustix::process::geteuid().is_root();
        for EntryAttribute { name, value } in &entry.attributes {
            // A read-only folder takes no attribute, not even one that it has already.
            if !root && is_roots_attribute(name) || self.has(name, value) {
                continue;
            }
            let Err(errno) = self.set(name, value) else { continue };
            if name == ACCESS_ACL {
                outcome.mode = mode_without_acl(entry);
            }
            let shown = String::from_utf8_lossy(name);
            outcome.lacking.get_or_insert_with(|| format!("the attribute `{shown}`: {errno}"));
        }
        outcome
    }

    /// Removes all ACLs but those that are to be kept: a folder with a default ACL gives one to all
    /// that is made in it.
    pub(super) fn strip(self, kept: &[EntryAttribute]) {
        let mut names = [0_u8; 1024];
        let length = self.list(&mut names).unwrap_or(0);
        let names = names.get(..length).unwrap_or_default();
        for name in names.split(|byte| *byte == 0) {
            let is_acl = name == ACCESS_ACL || name == DEFAULT_ACL;
            if is_acl && kept.iter().all(|one| one.name != name) {
                // If it stays, the mode that is set next bounds what it gives.
                let _ = self.remove(name);
            }
        }
    }

    /// The name by which the system finds what was only looked up, whatever has its path now.
    fn found(found: BorrowedFd<'_>) -> String {
        format!("/proc/self/fd/{}", found.as_raw_fd())
    }

    fn has(self, name: &[u8], value: &[u8]) -> bool {
        // A longer value does not fit, and differs.
        let mut there = vec![0; value.len() + 1];
        let length = match self {
            AttributePlace::Open(file) => fgetxattr(file, name, there.as_mut_slice()),
            AttributePlace::Found(found) => {
                getxattr(Self::found(found), name, there.as_mut_slice())
            }
        };
        length.is_ok_and(|length| there.get(..length) == Some(value))
    }

    fn set(self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        match self {
            AttributePlace::Open(file) => fsetxattr(file, name, value, XattrFlags::empty()),
            AttributePlace::Found(found) => {
                setxattr(Self::found(found), name, value, XattrFlags::empty())
            }
        }
    }

    fn list(self, names: &mut [u8]) -> Result<usize, Errno> {
        match self {
            AttributePlace::Open(file) => flistxattr(file, names),
            AttributePlace::Found(found) => listxattr(Self::found(found), names),
        }
    }

    fn remove(self, name: &[u8]) -> Result<(), Errno> {
        match self {
            AttributePlace::Open(file) => fremovexattr(file, name),
            AttributePlace::Found(found) => removexattr(Self::found(found), name),
        }
    }
}

/// Sets the mode of what was only looked up. It is no link.
pub(super) fn set_mode(found: impl AsFd, mode: u32) -> Result<(), Errno> {
    let path = AttributePlace::found(found.as_fd());
    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(mode))
}

/// Takes from an entry the attributes that give rights; gives whether it had any.
pub(super) fn withhold_rights(entry: &mut SnapshotEntry) -> bool {
    entry.mode = mode_without_acl(entry);
    let before = entry.attributes.len();
    entry.attributes.retain(|one| one.name.starts_with(OF_USERS));
    entry.attributes.len() < before
}

/// The mode of an entry without its ACL. With one the bits of the group are the ACL's mask, which
/// may be more than the group itself has.
fn mode_without_acl(entry: &SnapshotEntry) -> u32 {
    let Some(acl) = entry.attributes.iter().find(|one| one.name == ACCESS_ACL) else {
        return entry.mode;
    };
    entry.mode & !GROUP_BITS | group_rights(&acl.value).unwrap_or(0) << 3 & entry.mode & GROUP_BITS
}

/// The rights of the owning group in an ACL, as linux/posix_acl_xattr.h lays it out: a version in 4
/// bytes, then for each entry tag, rights and id in 2, 2 and 4 bytes.
fn group_rights(acl: &[u8]) -> Option<u32> {
    const OWNING_GROUP: u16 = 4;
    let mut entries = acl.get(4..)?.chunks_exact(8);
    entries.find_map(|entry| {
        let [tag, _, rights, _, ..] = *entry else { return None };
        (u16::from(tag) == OWNING_GROUP).then_some(u32::from(rights) & 7)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

    use super::super::target::RestoreTarget;
    use super::*;
    use crate::format::page::SnapshotEntryKind;

    /// user::rw- user:1000:rw- group::--- mask::rw- other::---
    fn acl() -> Vec<u8> {
        let row = |tag: u16, rights: u16, id: u32| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let none = u32::MAX;
        let rows = [row(1, 6, none), row(2, 6, 1000), row(4, 0, none), row(16, 6, none)];
        [&2_u32.to_le_bytes()[..], &rows.concat(), &row(32, 0, none)].concat()
    }

    fn attribute(name: &[u8], value: Vec<u8>) -> EntryAttribute {
        EntryAttribute { name: name.to_vec(), value }
    }

    fn entry(attributes: Vec<EntryAttribute>) -> SnapshotEntry {
        SnapshotEntry {
            path: b"file".to_vec(),
            mode: 0o660,
            uid: 0,
            gid: 0,
            mtime_ns: 0,
            node: SnapshotEntryKind::Fifo,
            hard_link: None,
            attributes,
        }
    }

    /// If the restore is interrupted, the next one finds the folder and takes it for the user's.
    #[test]
    fn a_folder_has_no_acl_that_its_target_gives_from_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        setxattr(root, DEFAULT_ACL, &acl(), XattrFlags::empty()).unwrap();
        let mut target = RestoreTarget::open(root).unwrap();
        target.folder(b"named").unwrap();
        target.parent(b"above/file").unwrap();
        let has = |path: &Path, name: &[u8]| getxattr(path, name, &mut [0_u8; 256]).is_ok();
        assert!(has(root, DEFAULT_ACL));
        for path in ["named", "above"] {
            let path = root.join(path);
            assert!(!has(&path, ACCESS_ACL) && !has(&path, DEFAULT_ACL), "{}", path.display());
        }
    }

    /// To set it fails in a read-only folder, and for root in an immutable one.
    #[test]
    fn an_attribute_that_is_there_already_is_not_set_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::open(folder.path()).unwrap();
        let place = AttributePlace::Open(file.as_fd());
        let dress = |value: &[u8]| {
            place.dress(&entry(vec![attribute(b"user.mine", value.to_vec())]), false).lacking
        };
        for value in [&b"22"[..], b"", b"3", b"1"] {
            assert_eq!(dress(value), None);
            assert!(place.has(b"user.mine", value) && !place.has(b"user.mine", b"4"));
        }
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o555)).unwrap();
        let root = rustix::process::geteuid().is_root();
        let flags = root.then(|| ioctl_getflags(&file).unwrap());
        if let Some(flags) = flags {
            ioctl_setflags(&file, flags | IFlags::IMMUTABLE).unwrap();
        }
        let (same, other) = (dress(b"1"), dress(b"2"));
        if let Some(flags) = flags {
            ioctl_setflags(&file, flags).unwrap();
        }
        assert!(same.is_none() && other.is_some(), "{same:?}, {other:?}");
    }

    #[test]
    fn without_its_acl_a_file_gives_its_group_nothing_more() {
        let mine = attribute(b"user.mine", b"1".to_vec());
        let mut with = entry(vec![attribute(ACCESS_ACL, acl()), mine.clone()]);
        assert!(withhold_rights(&mut with));
        assert_eq!((with.mode, with.attributes), (0o600, vec![mine.clone()]));
        let mut cut = entry(vec![attribute(ACCESS_ACL, b"\x02".to_vec())]);
        assert!(withhold_rights(&mut cut));
        assert_eq!(cut.mode, 0o600, "an ACL that cannot be read gives nothing");
        let mut without = entry(vec![mine]);
        assert!(!withhold_rights(&mut without));
        assert_eq!((without.mode, without.attributes.len()), (0o660, 1));
    }
}
