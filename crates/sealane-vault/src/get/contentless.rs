//! Links, devices and pipes of a restore. They have no content, and nobody opens them: to open a
//! device can already do something, and to open a pipe can wait for ever.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, Uid, chownat, fstat, makedev, mknodat, openat, readlinkat,
    symlinkat, utimensat,
};
use rustix::io::Errno;

use super::attributes::{AttributeOutcome, AttributePlace, set_mode};
use super::target::{MissingFolder, PLACE, RestoreTarget, exchanged, failed, times};
use crate::Error;
use crate::format::page::{DeviceKind, SnapshotEntry, SnapshotEntryKind};

impl RestoreTarget {
    /// Makes a link, a device or a pipe with its owner, attributes, mode and time. Gives the
    /// attribute that its file system did not take.
    pub(super) fn contentless(
        &mut self,
        entry: &SnapshotEntry,
        owners: bool,
    ) -> Result<Option<String>, Error> {
        let (folder, name) = self.parent(&entry.path)?;
        // Nobody else can open it before it has its owner.
        let node = |kind, device| mknodat(folder, name, kind, Mode::empty(), device);
        let made = match &entry.node {
            SnapshotEntryKind::Link { target } => {
                symlinkat(OsStr::from_bytes(target), folder, name)
            }
            SnapshotEntryKind::Device(device) => {
                node(device_type(device.kind), makedev(device.major, device.minor))
            }
            SnapshotEntryKind::Fifo => node(FileType::Fifo, 0),
            SnapshotEntryKind::Folder | SnapshotEntryKind::File { .. } => Err(Errno::INVAL),
        };
        made.map_err(|errno| failed(&entry.path, errno))?;
        self.finish_contentless(entry, owners)
    }

    /// Gives it its owner, attributes, mode and time. Something that took its place meanwhile gets
    /// none of them.
    fn finish_contentless(
        &mut self,
        entry: &SnapshotEntry,
        owners: bool,
    ) -> Result<Option<String>, Error> {
        let failed = |errno| failed(&entry.path, errno);
        let (folder, name) = self.parent_or(&entry.path, MissingFolder::Refuse)?;
        let opened = openat(folder, name, PLACE, Mode::empty()).map_err(failed)?;
        let found = fstat(&opened).map_err(failed)?;
        // With a second name it may be somebody else's, from another folder.
        if found.st_nlink != 1 || !is_alike(&opened, &found, &entry.node).map_err(failed)? {
            return Err(exchanged(&entry.path));
        }
        let owned = (found.st_uid, found.st_gid) == (entry.uid, entry.gid);
        if owners && !owned && rustix::process::geteuid().is_root() {
            let (uid, gid) = (Uid::from_raw(entry.uid), Gid::from_raw(entry.gid));
            chownat(&opened, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH).map_err(failed)?;
        }
        let place = AttributePlace::Found(opened.as_fd());
        let is_link = matches!(entry.node, SnapshotEntryKind::Link { .. });
        let AttributeOutcome { mode, lacking } = place.dress(entry, !is_link);
        if !is_link {
            set_mode(&opened, mode).map_err(failed)?;
        }
        let times = times(entry.mtime_ns);
        match utimensat(&opened, "", &times, AtFlags::EMPTY_PATH) {
            // Linux before 5.8 sets the times of a link only by its name.
            Err(Errno::INVAL) => utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW),
            other => other,
        }
        .map_err(failed)?;
        Ok(lacking)
    }

    /// Whether the same link, device or pipe lies at `path`.
    pub(super) fn has_alike(&mut self, path: &[u8], node: &SnapshotEntryKind) -> bool {
        let Ok((folder, name)) = self.parent(path) else { return false };
        let found = openat(folder, name, PLACE, Mode::empty());
        let alike = found.and_then(|found| is_alike(&found, &fstat(&found)?, node));
        alike.unwrap_or(false)
    }
}

fn device_type(kind: DeviceKind) -> FileType {
    match kind {
        DeviceKind::Character => FileType::CharacterDevice,
        DeviceKind::Block => FileType::BlockDevice,
    }
}

fn is_alike(opened: &OwnedFd, found: &Stat, node: &SnapshotEntryKind) -> Result<bool, Errno> {
    let kind = FileType::from_raw_mode(found.st_mode);
    Ok(match node {
        SnapshotEntryKind::Link { target } => {
            kind == FileType::Symlink && readlinkat(opened, "", Vec::new())?.as_bytes() == target
        }
        SnapshotEntryKind::Device(device) => {
            let is_same = found.st_rdev == makedev(device.major, device.minor);
            kind == device_type(device.kind) && is_same
        }
        SnapshotEntryKind::Fifo => kind == FileType::Fifo,
        SnapshotEntryKind::Folder | SnapshotEntryKind::File { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn what_took_the_place_of_a_link_gets_no_owner_or_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let entry = SnapshotEntry {
            path: b"in/link".to_vec(),
            mode: 0o777,
            uid: 12_345,
            gid: 12_345,
            mtime_ns: 7_000_000_000,
            node: SnapshotEntryKind::Link { target: b"there".to_vec() },
            hard_link: None,
            attributes: Vec::new(),
        };
        let (at, foreign) = (folder.path().join("in/link"), folder.path().join("foreign"));
        target.contentless(&entry, true).unwrap();
        let look = |path: &Path| {
            let found = fs::symlink_metadata(path).unwrap();
            (found.uid(), found.mtime())
        };
        let root = rustix::process::geteuid().is_root();
        assert_eq!(look(&at), (if root { 12_345 } else { look(&foreign_of(folder.path())).0 }, 7));
        let swaps: [&dyn Fn(); 4] = [
            &|| fs::write(&foreign, b"").unwrap(),
            &|| symlink("elsewhere", &foreign).unwrap(),
            &|| symlink("there", &foreign).unwrap(),
            &|| rustix::fs::mknodat(CWD, &foreign, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        ];
        for swap in swaps {
            fs::remove_file(&at).unwrap();
            swap();
            // The other name is the one that its owner knows.
            fs::hard_link(&foreign, &at).unwrap();
            let before = look(&foreign);
            assert!(target.finish_contentless(&entry, true).is_err());
            assert_eq!(look(&foreign), before);
            fs::remove_file(&foreign).unwrap();
        }
    }

    /// A file of this user.
    fn foreign_of(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("mine");
        fs::write(&path, b"").unwrap();
        path
    }
}
