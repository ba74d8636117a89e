//! Links, devices and pipes of a restore. They have no content, and nobody opens them: to open a
//! device can already do something, and to open a pipe can wait for ever.
//!
//! Each is made under a name that nobody can know, and takes its place when it is finished. Until
//! then what lies in that place stays.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, Uid, chownat, fstat, linkat, makedev, mknodat, openat,
    readlinkat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::attributes::{AttributeOutcome, AttributePlace, set_mode, withhold_rights};
use super::restore::GetOptions;
use super::target::{
    MissingFolder, PLACE, RestoreTarget, exchanged, failed, random_draft_of, times,
};
use crate::Error;
use crate::format::page::{DeviceKind, SnapshotEntry, SnapshotEntryKind};
use crate::store::create_from;

/// The bits of a mode that give rights. Of the others the system may keep some from a user.
const RIGHTS: u32 = 0o777;
/// All bits of a mode.
const MODE_BITS: u32 = 0o7777;

/// A link, a device or a pipe that lacks only its place.
struct FinishedNode {
    found: Stat,
    /// The attribute that its file system did not take.
    lacking: Option<String>,
}

impl RestoreTarget {
    /// Makes a link, a device or a pipe with its owner, attributes, mode and time, and gives it its
    /// place. Gives the attribute that its file system did not take.
    pub(super) fn contentless(
        &mut self,
        entry: &SnapshotEntry,
        options: &GetOptions,
    ) -> Result<Option<String>, Error> {
        let draft = random_draft_of(&entry.path)?;
        self.make_contentless(&draft, entry)?;
        let finished = self.finish_contentless(&draft, entry, options);
        let placed = finished.and_then(|FinishedNode { found, lacking }| {
            self.place_contentless(&draft, &found, entry, options)?;
            Ok(lacking)
        });
        if placed.is_err() {
            self.discard(&draft);
        }
        placed
    }

    /// Gives the link, device or pipe at `first` the entry's name, too.
    ///
    /// # Errors
    /// If that is not what the entry names, the entry is to be made by itself.
    pub(super) fn link_contentless(
        &mut self,
        entry: &SnapshotEntry,
        first: &[u8],
        options: &GetOptions,
    ) -> Result<(), Error> {
        let draft = random_draft_of(&entry.path)?;
        let (folder, name) = self.parent_or(first, MissingFolder::Refuse)?;
        let folder = folder.try_clone().map_err(|cause| Error::File {
            path: String::from_utf8_lossy(first).into_owned(),
            cause,
        })?;
        let (to, to_name) = self.parent(&draft)?;
        let linked = linkat(&folder, name, to, to_name, AtFlags::empty());
        linked.map_err(|errno| failed(&entry.path, errno))?;
        let placed = match self.is_restored(&draft, entry, options) {
            Ok(Some(found)) => self.place_contentless(&draft, &found, entry, options),
            Ok(None) => Err(exchanged(&entry.path)),
            Err(errno) => Err(failed(&entry.path, errno)),
        };
        // To rename a file to another name of itself does nothing, so that the draft may be left.
        self.discard(&draft);
        placed
    }

    fn make_contentless(&mut self, draft: &[u8], entry: &SnapshotEntry) -> Result<(), Error> {
        let (folder, name) = self.parent(draft)?;
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
        made.map_err(|errno| failed(&entry.path, errno))
    }

    /// Gives a draft its owner, attributes, mode and time. Something that took its place meanwhile
    /// gets none of them.
    fn finish_contentless(
        &mut self,
        draft: &[u8],
        entry: &SnapshotEntry,
        options: &GetOptions,
    ) -> Result<FinishedNode, Error> {
        let failed = |errno| failed(&entry.path, errno);
        let (folder, name) = self.parent_or(draft, MissingFolder::Refuse)?;
        let opened = openat(folder, name, PLACE, Mode::empty()).map_err(failed)?;
        let found = fstat(&opened).map_err(failed)?;
        let is_link = matches!(entry.node, SnapshotEntryKind::Link { .. });
        // With a second name it may be somebody else's, from another folder.
        let is_made = found.st_nlink == 1 && is_as_made(&found, is_link);
        if !is_made || !is_alike(&opened, &found, &entry.node).map_err(failed)? {
            return Err(exchanged(&entry.path));
        }
        let owned = (found.st_uid, found.st_gid) == (entry.uid, entry.gid);
        if options.takes_owners() && !owned && rustix::process::geteuid().is_root() {
            let (uid, gid) = (Uid::from_raw(entry.uid), Gid::from_raw(entry.gid));
            chownat(&opened, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH).map_err(failed)?;
        }
        let place = AttributePlace::Found(opened.as_fd());
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
        Ok(FinishedNode { found, lacking })
    }

    /// Gives a draft its place. Unless it may replace what is there, that stays. A draft that is
    /// not `made` is somebody else's, and is not published.
    fn place_contentless(
        &mut self,
        draft: &[u8],
        made: &Stat,
        entry: &SnapshotEntry,
        options: &GetOptions,
    ) -> Result<(), Error> {
        let path = &entry.path;
        let failed = |errno| failed(path, errno);
        let (_, name) = self.parent_or(path, MissingFolder::Refuse)?;
        let (folder, draft) = self.parent_or(draft, MissingFolder::Refuse)?;
        let is_made = |name: &OsStr| {
            let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok::<_, Errno>((found.st_dev, found.st_ino) == (made.st_dev, made.st_ino))
        };
        if !is_made(draft).map_err(failed)? {
            return Err(exchanged(path));
        }
        let placed = if options.overwrite {
            renameat(folder, draft, folder, name)
        } else {
            create_from(folder.as_fd(), draft, name)
        };
        placed.map_err(failed)?;
        if is_made(name).map_err(failed)? { Ok(()) } else { Err(exchanged(path)) }
    }

    fn discard(&mut self, draft: &[u8]) {
        if let Ok((folder, name)) = self.parent_or(draft, MissingFolder::Refuse) {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }

    /// Whether the entry's link, device or pipe lies in its place already.
    pub(super) fn has_alike(&mut self, entry: &SnapshotEntry, options: &GetOptions) -> bool {
        matches!(self.is_restored(&entry.path, entry, options), Ok(Some(_)))
    }

    /// The node at `path`, if a restore of the entry could have made it. Where root restores,
    /// somebody else's is not the one, whatever it looks like. The time is not compared: each
    /// write into a pipe changes it.
    fn is_restored(
        &mut self,
        path: &[u8],
        entry: &SnapshotEntry,
        options: &GetOptions,
    ) -> Result<Option<Stat>, Errno> {
        let parent = self.parent_or(path, MissingFolder::Refuse);
        let Ok((folder, name)) = parent else { return Ok(None) };
        let opened = openat(folder, name, PLACE, Mode::empty())?;
        let found = fstat(&opened)?;
        let user = rustix::process::geteuid();
        let owner = if options.takes_owners() { entry.uid } else { user.as_raw() };
        let is_owned = !user.is_root() || found.st_uid == owner;
        let is_link = matches!(entry.node, SnapshotEntryKind::Link { .. });
        let has_mode = is_link || has_rights(&found, entry);
        let is_it = is_owned && has_mode && is_alike(&opened, &found, &entry.node)?;
        Ok(is_it.then_some(found))
    }
}

/// Whether a draft is still as it was made. Only root could change what is somebody else's, so that
/// only root must look.
fn is_as_made(found: &Stat, is_link: bool) -> bool {
    let user = rustix::process::geteuid();
    let is_closed = is_link || found.st_mode & MODE_BITS == 0;
    !user.is_root() || found.st_uid == user.as_raw() && is_closed
}

/// Whether a device or a pipe gives the rights that the entry names. A target that takes no ACL has
/// it without the mask of one.
fn has_rights(found: &Stat, entry: &SnapshotEntry) -> bool {
    let mut plain = entry.clone();
    withhold_rights(&mut plain);
    [entry.mode, plain.mode].iter().any(|mode| mode & RIGHTS == found.st_mode & RIGHTS)
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
    use std::os::unix::fs::{MetadataExt, lchown, symlink};
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;

    fn entry(node: SnapshotEntryKind) -> SnapshotEntry {
        SnapshotEntry {
            path: b"in/it".to_vec(),
            mode: 0o622,
            uid: 12_345,
            gid: 12_345,
            mtime_ns: 7_000_000_000,
            node,
            hard_link: None,
            attributes: Vec::new(),
        }
    }

    fn link() -> SnapshotEntry {
        entry(SnapshotEntryKind::Link { target: b"there".to_vec() })
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    /// Owner, mode and time.
    fn look(path: &Path) -> (u32, u32, i64) {
        let found = fs::symlink_metadata(path).unwrap();
        (found.uid(), found.mode(), found.mtime())
    }

    fn pipe(path: &Path, mode: Mode) {
        mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
    }

    #[test]
    fn what_took_the_place_of_a_link_gets_no_owner_or_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let options = GetOptions::default();
        let user = rustix::process::geteuid();
        target.contentless(&link(), &options).unwrap();
        let (uid, _, time) = look(&folder.path().join("in/it"));
        assert_eq!((uid, time), (if user.is_root() { 12_345 } else { user.as_raw() }, 7));
        let foreign = folder.path().join("foreign");
        let swaps: [&dyn Fn(); 4] = [
            &|| fs::write(&foreign, b"").unwrap(),
            &|| symlink("elsewhere", &foreign).unwrap(),
            &|| symlink("there", &foreign).unwrap(),
            &|| pipe(&foreign, Mode::RWXU),
        ];
        let (draft, at) = (b"in/draft".as_slice(), folder.path().join("in/draft"));
        for swap in swaps {
            target.make_contentless(draft, &link()).unwrap();
            fs::remove_file(&at).unwrap();
            swap();
            // The other name is the one that its owner knows.
            fs::hard_link(&foreign, &at).unwrap();
            let before = look(&foreign);
            assert!(target.finish_contentless(draft, &link(), &options).is_err());
            assert_eq!(look(&foreign), before);
            fs::remove_file(&foreign).unwrap();
            fs::remove_file(&at).unwrap();
        }
    }

    #[test]
    fn what_took_the_place_of_a_link_or_pipe_of_root_gets_no_owner_or_time() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not run: it needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let options = GetOptions::default();
        let at = folder.path().join("draft");
        let fifo = entry(SnapshotEntryKind::Fifo);
        // Each has one name. Another user's, one that is open to others, and a link.
        let swaps: [(&SnapshotEntry, &dyn Fn()); 3] = [
            (&fifo, &|| {
                pipe(&at, Mode::empty());
                lchown(&at, Some(4711), None).unwrap();
            }),
            (&fifo, &|| pipe(&at, Mode::RWXU)),
            (&link(), &|| {
                symlink("there", &at).unwrap();
                lchown(&at, Some(4711), None).unwrap();
            }),
        ];
        for (entry, swap) in swaps {
            swap();
            let before = look(&at);
            assert!(target.finish_contentless(b"draft", entry, &options).is_err());
            assert_eq!(look(&at), before);
            fs::remove_file(&at).unwrap();
        }
        pipe(&at, Mode::empty());
        assert!(target.finish_contentless(b"draft", &fifo, &options).is_ok());
        assert_eq!(look(&at), (12_345, 0o10_622, 7));
    }

    #[test]
    fn what_is_there_stays_until_its_replacement_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let (inside, at) = (folder.path().join("in"), folder.path().join("in/it"));
        fs::create_dir(&inside).unwrap();
        fs::write(&at, b"mine").unwrap();
        let options = |overwrite| GetOptions { overwrite, ..GetOptions::default() };
        // No system takes a link that is so long.
        let long = entry(SnapshotEntryKind::Link { target: vec![b'a'; 1 << 16] });
        assert!(target.contentless(&long, &options(true)).is_err());
        // Without leave nothing is replaced.
        let refused = target.contentless(&link(), &options(false));
        assert!(matches!(refused, Err(Error::TargetExists(_))), "{refused:?}");
        assert_eq!((fs::read(&at).unwrap(), names(&inside)), (b"mine".to_vec(), 1));
        target.contentless(&link(), &options(true)).unwrap();
        assert_eq!(fs::read_link(&at).unwrap(), Path::new("there"));
        // A node that another user could have exchanged is not published.
        let draft = b"in/draft".as_slice();
        target.make_contentless(draft, &link()).unwrap();
        let made = target.finish_contentless(draft, &link(), &options(true)).unwrap().found;
        symlink("there", inside.join("other")).unwrap();
        fs::rename(inside.join("other"), inside.join("draft")).unwrap();
        assert!(target.place_contentless(draft, &made, &link(), &options(true)).is_err());
    }

    #[test]
    fn a_further_name_is_only_of_what_the_entry_names() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let options = GetOptions::default();
        let first = entry(SnapshotEntryKind::Fifo);
        target.contentless(&first, &options).unwrap();
        assert!(target.has_alike(&first, &options));
        let again = SnapshotEntry { path: b"again".to_vec(), ..first.clone() };
        target.link_contentless(&again, &first.path, &options).unwrap();
        let inode = |path: &str| fs::symlink_metadata(folder.path().join(path)).unwrap().ino();
        assert_eq!(inode("again"), inode("in/it"));
        // A file, one with other rights, and a folder that is not there.
        let other = SnapshotEntry { path: b"other".to_vec(), mode: 0o600, ..first.clone() };
        fs::write(folder.path().join("file"), b"").unwrap();
        for path in [b"in/it".as_slice(), b"file", b"no/where"] {
            assert!(target.link_contentless(&other, path, &options).is_err());
        }
        assert!(!target.has_alike(&SnapshotEntry { mode: 0o600, ..first }, &options));
        // The pipe, its further name, and the file.
        assert_eq!((names(&folder.path().join("in")), names(folder.path())), (1, 3));
    }
}
