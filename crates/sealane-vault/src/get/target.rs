use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid, fchmod,
    fchown, fstat, fsync, futimens, linkat, mkdirat, openat, renameat, seek, statat, syncfs,
    unlinkat,
};
use rustix::io::Errno;

use super::attributes::{AttributeOutcome, AttributePlace};
use crate::Error;
use crate::format::page::SnapshotEntry;
use crate::keys::random;
use crate::store::create_from;

/// The folder of a restore. Nothing outside of it is ever touched: every component of every path
/// is opened without following links, from the folder above it.
pub(super) struct RestoreTarget {
    root: OwnedFd,
    parent: Option<(Vec<u8>, OwnedFd)>,
}

/// In the target's root while what is restored is not durable yet.
pub(super) const MARK: &str = ".sealane-restoring";

const NEW_DRAFT: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// A file that is there, for reading. A pipe in its place keeps nobody waiting.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A place in a file system, whatever it is, only to look at.
pub(super) const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder or file that a restore has made or found. A name may lead to another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RestoredInode {
    device: u64,
    inode: u64,
}

impl RestoredInode {
    fn of(found: &Stat) -> RestoredInode {
        RestoredInode { device: found.st_dev, inode: found.st_ino }
    }
}

/// A folder of the target, and whether this restore has made it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetFolder {
    inode: RestoredInode,
    is_new: bool,
}

/// The way to deal with a missing folder above a path.
#[derive(Clone, Copy)]
pub(super) enum MissingFolder {
    Make,
    Refuse,
}

impl RestoreTarget {
    pub(super) fn open(path: &Path) -> Result<RestoreTarget, Error> {
        std::fs::create_dir_all(path).map_err(|cause| Error::file(path, cause))?;
        // The target itself may be named by a link: that is the user's own word.
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty());
        let root = root.map_err(|errno| Error::file(path, errno.into()))?;
        Ok(RestoreTarget { root, parent: None })
    }

    /// The same folder for another thread.
    pub(super) fn again(&self, path: &Path) -> Result<RestoreTarget, Error> {
        let root = self.root.try_clone().map_err(|cause| Error::file(path, cause))?;
        Ok(RestoreTarget { root, parent: None })
    }

    /// Marks the target as one of a restore that is not over; tells whether it was marked already.
    /// The mark is durable before anything that it stands for can be.
    pub(super) fn mark(&self, path: &Path) -> Result<bool, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let marked = match openat(&self.root, MARK, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => fsync(file).and_then(|()| fsync(&self.root)).map(|()| false),
            Err(Errno::EXIST) => Ok(true),
            Err(errno) => Err(errno),
        };
        marked.map_err(|errno| Error::file(path, errno.into()))
    }

    /// Takes the mark away. If that fails, the next restore only looks closer than it must.
    pub(super) fn unmark(&self) {
        let _ = unlinkat(&self.root, MARK, AtFlags::empty());
    }

    /// The folder that `path` is in, and its last component. Missing folders are made.
    pub(super) fn parent<'p>(&mut self, path: &'p [u8]) -> Result<(&OwnedFd, &'p OsStr), Error> {
        self.parent_or(path, MissingFolder::Make)
    }

    pub(super) fn parent_or<'p>(
        &mut self,
        path: &'p [u8],
        missing: MissingFolder,
    ) -> Result<(&OwnedFd, &'p OsStr), Error> {
        let at = path.iter().rposition(|&byte| byte == b'/');
        let (folder, name) = match at {
            None => return Ok((&self.root, OsStr::from_bytes(path))),
            Some(at) => path.split_at_checked(at).unwrap_or_default(),
        };
        let name = OsStr::from_bytes(name.get(1..).unwrap_or_default());
        let cached = self.parent.take().filter(|(cached, _)| cached == folder);
        let (_, folder) = match cached {
            Some(cached) => self.parent.insert(cached),
            None => {
                let opened = self.descend(folder, missing).map_err(|errno| failed(path, errno))?;
                self.parent.insert((folder.to_vec(), opened))
            }
        };
        Ok((folder, name))
    }

    fn descend(&self, folder: &[u8], missing: MissingFolder) -> Result<OwnedFd, Errno> {
        let mut at: Option<OwnedFd> = None;
        for component in folder.split(|&byte| byte == b'/') {
            let name = OsStr::from_bytes(component);
            let above = at.as_ref().unwrap_or(&self.root);
            let opened = match (openat(above, name, FOLDER, Mode::empty()), missing) {
                (Err(Errno::NOENT), MissingFolder::Make) => {
                    // The other half of the restore may have been faster.
                    make_folder(above, name)?;
                    openat(above, name, FOLDER, Mode::empty())
                }
                (other, _) => other,
            };
            at = Some(opened?);
        }
        at.ok_or(Errno::INVAL)
    }

    /// The metadata of the file at a path, without following a link.
    pub(super) fn look(&mut self, path: &[u8]) -> Result<Option<Stat>, Error> {
        let (folder, name) = self.parent(path)?;
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(path, errno)),
        }
    }

    /// Makes a folder unless there is one, and gives which one is there.
    pub(super) fn folder(&mut self, path: &[u8]) -> Result<TargetFolder, Error> {
        let (folder, name) = self.parent(path)?;
        make_folder(folder, name).map_err(|errno| failed(path, errno))
    }

    /// Opens a file that is there, for reading.
    pub(super) fn open_file(&mut self, path: &[u8]) -> Result<File, Error> {
        let (folder, name) = self.parent(path)?;
        let opened = openat(folder, name, READ, Mode::empty());
        opened.map(File::from).map_err(|errno| failed(path, errno))
    }

    /// Opens the draft of a file of `size` beside its place, with what an earlier run of this user
    /// left in it. A file that somebody else put under that name, or that has another name, is not
    /// touched: the draft gets a name then that nobody can know.
    ///
    /// A draft that is continued is a copy of what was left. The file itself may have been another
    /// user's before it was given to this one, and that user may have it open still. Where there is
    /// no room for both, what was left goes.
    pub(super) fn draft(&mut self, path: &[u8], size: u64) -> Result<FileDraft, Error> {
        let draft = draft_of(path);
        let (folder, name) = self.parent(&draft)?;
        let failed = |errno| failed(path, errno);
        match openat(folder, name, NEW_DRAFT, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return FileDraft::new(file.into(), draft).map_err(failed),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let left = openat(folder, name, READ, Mode::empty()).ok();
        let left = left.filter(|left| is_own(left).unwrap_or(false));
        let fresh = random_draft_of(path)?;
        let (folder, name) = self.parent(&fresh)?;
        let file = openat(folder, name, NEW_DRAFT, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        let mut file = File::from(file);
        let Some(left) = left else { return FileDraft::new(file, fresh).map_err(failed) };
        let mut copied = copy_left(left, size, &mut file);
        let (_, known) = self.parent(&draft)?;
        let known = known.to_owned();
        let (folder, name) = self.parent(&fresh)?;
        if copied.as_ref().is_err_and(is_no_room) {
            let gone = unlinkat(folder, &known, AtFlags::empty()).map_err(io::Error::from);
            copied = gone.and_then(|()| file.set_len(0)).and_then(|()| file.rewind());
        }
        let moved = copied.and_then(|()| Ok(renameat(folder, name, folder, &known)?));
        if let Err(cause) = moved {
            let _ = unlinkat(folder, name, AtFlags::empty());
            return Err(Error::File { path: String::from_utf8_lossy(path).into_owned(), cause });
        }
        FileDraft::new(file, draft).map_err(failed)
    }

    /// Gives a finished draft its place. Unless it may `replace`, a file that has appeared there
    /// stays. So does another of the snapshot whose name the file system takes for the same.
    ///
    /// A process that may write to the folder could have put another file under the draft's name.
    /// Then the file in the place is not the verified one, and that is an error.
    pub(super) fn publish(
        &mut self,
        path: &[u8],
        draft: &FileDraft,
        replace: bool,
    ) -> Result<(), Error> {
        let (_, name) = self.parent(path)?;
        let name = name.to_owned();
        let (folder, left) = self.parent(&draft.path)?;
        let found = statat(folder, left, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|errno| failed(path, errno))?;
        if RestoredInode::of(&found) != draft.inode {
            return Err(exchanged(path));
        }
        let (whole, draft) = (draft.inode, left);
        let published = if replace {
            renameat(folder, draft, folder, &name)
        } else {
            create_from(folder.as_fd(), draft, &name)
        };
        if published == Err(Errno::EXIST) {
            // No later run would continue it.
            let _ = unlinkat(folder, draft, AtFlags::empty());
        }
        published.map_err(|errno| failed(path, errno))?;
        let found = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|errno| failed(path, errno))?;
        if RestoredInode::of(&found) == whole { Ok(()) } else { Err(exchanged(path)) }
    }

    pub(super) fn remove(&mut self, path: &[u8]) -> Result<(), Error> {
        let (folder, name) = self.parent(path)?;
        unlinkat(folder, name, AtFlags::empty()).map_err(|errno| failed(path, errno))
    }

    pub(super) fn hard_link(&mut self, path: &[u8], first: &[u8]) -> Result<(), Error> {
        let (folder, name) = self.parent(first)?;
        let folder = folder.try_clone().map_err(|cause| Error::File {
            path: String::from_utf8_lossy(first).into_owned(),
            cause,
        })?;
        let (to, to_name) = self.parent(path)?;
        linkat(&folder, name, to, to_name, AtFlags::empty())
            .map_err(|errno| failed(path, errno))?;
        // An earlier run, in which the first name failed, may have begun a draft of this one.
        let draft = draft_of(path);
        let (to, draft) = self.parent(&draft)?;
        let left = openat(to, draft, READ, Mode::empty());
        if left.is_ok_and(|left| is_own(&left).unwrap_or(false)) {
            let _ = unlinkat(to, draft, AtFlags::empty());
        }
        Ok(())
    }

    /// Gives a folder its owner, mode and time. Something that took its place since it was made
    /// gets none of them: it may be a file of somebody else, and this may be root.
    pub(super) fn finish_folder(
        &mut self,
        entry: &SnapshotEntry,
        made: TargetFolder,
        owners: bool,
    ) -> Result<Option<String>, Error> {
        let path = &entry.path;
        let (folder, name) = self.parent_or(path, MissingFolder::Refuse)?;
        let opened = openat(folder, name, FOLDER, Mode::empty());
        let opened = opened.map_err(|errno| failed(path, errno))?;
        let found = fstat(&opened).map_err(|errno| failed(path, errno))?;
        if RestoredInode::of(&found) != made.inode {
            return Err(exchanged(path));
        }
        finish_open(&opened, entry, owners, made.is_new)
    }

    /// Makes all of it durable.
    pub(super) fn sync(&self, path: &Path) -> Result<(), Error> {
        syncfs(&self.root).map_err(|errno| Error::file(path, errno.into()))
    }
}

/// Makes a folder unless there is one. A new one loses the ACLs that the folder above gave it at
/// once: if the restore is interrupted, the next one takes them for the user's.
fn make_folder(above: &OwnedFd, name: &OsStr) -> Result<TargetFolder, Errno> {
    let is_new = match mkdirat(above, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let opened = openat(above, name, PLACE | OFlags::DIRECTORY, Mode::empty())?;
    let found = fstat(&opened)?;
    if is_new {
        AttributePlace::Found(opened.as_fd()).strip(&[]);
    }
    Ok(TargetFolder { inode: RestoredInode::of(&found), is_new })
}

/// Owner, attributes, mode and time of a file or folder that is open, in this order: a new owner
/// takes capabilities away, and who is not root writes attributes only while the mode lets it.
/// Gives the attribute that its file system did not take.
pub(super) fn finish_open(
    file: impl AsFd,
    entry: &SnapshotEntry,
    owners: bool,
    is_new: bool,
) -> Result<Option<String>, Error> {
    let failed = |errno| failed(&entry.path, errno);
    let found = fstat(&file).map_err(failed)?;
    let owned = (found.st_uid, found.st_gid) == (entry.uid, entry.gid);
    if owners && !owned && rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(entry.uid), Gid::from_raw(entry.gid));
        fchown(&file, Some(uid), Some(gid)).map_err(failed)?;
    }
    let AttributeOutcome { mode, lacking } =
        AttributePlace::Open(file.as_fd()).dress(entry, is_new);
    fchmod(&file, Mode::from_raw_mode(mode)).map_err(failed)?;
    futimens(&file, &times(entry.mtime_ns)).map_err(failed)?;
    Ok(lacking)
}

pub(super) fn times(mtime_ns: i64) -> Timestamps {
    let time = Timespec {
        tv_sec: mtime_ns.div_euclid(1_000_000_000),
        tv_nsec: mtime_ns.rem_euclid(1_000_000_000),
    };
    Timestamps { last_access: time, last_modification: time }
}

/// Beside the file, and with a name that is the same in the next run.
fn draft_of(path: &[u8]) -> Vec<u8> {
    let folder = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let hash = crate::wire::hex(blake3::hash(path).as_bytes().get(..8).unwrap_or_default());
    let name = format!(".sealane-{hash}.part");
    [path.get(..folder).unwrap_or_default(), name.as_bytes()].concat()
}

/// The same with a name that nobody can know before it is there.
pub(super) fn random_draft_of(path: &[u8]) -> Result<Vec<u8>, Error> {
    let folder = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let name = format!(".sealane-{}.part", crate::wire::hex(&random::<16>()?));
    Ok([path.get(..folder).unwrap_or_default(), name.as_bytes()].concat())
}

/// A file that is being restored, and where it lies until it is whole.
#[derive(Debug)]
pub(super) struct FileDraft {
    pub(super) file: File,
    path: Vec<u8>,
    inode: RestoredInode,
}

impl FileDraft {
    fn new(file: File, path: Vec<u8>) -> Result<FileDraft, Errno> {
        let inode = RestoredInode::of(&fstat(&file)?);
        Ok(FileDraft { file, path, inode })
    }
}

/// Copies what was left of a file up to its first hole. Nothing behind that is continued, and
/// copied holes would take room.
fn copy_left(left: OwnedFd, size: u64, file: &mut File) -> io::Result<()> {
    let held = seek(&left, SeekFrom::Hole(0)).unwrap_or(size).min(size);
    seek(&left, SeekFrom::Start(0))?;
    io::copy(&mut File::from(left).take(held), file).map(|_| ())
}

fn is_no_room(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a file is one that a restore of this user made, and that nobody else can have open.
fn is_own(file: &OwnedFd) -> Result<bool, Errno> {
    let found = fstat(file)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    let is_closed = found.st_mode & 0o077 == 0;
    let own = found.st_uid == rustix::process::geteuid().as_raw() && found.st_nlink == 1;
    Ok(is_file && is_closed && own)
}

pub(super) fn exchanged(path: &[u8]) -> Error {
    let path = String::from_utf8_lossy(path).into_owned();
    Error::File { path, cause: std::io::Error::other("it was exchanged while it was restored") }
}

pub(super) fn failed(path: &[u8], errno: Errno) -> Error {
    let path = String::from_utf8_lossy(path).into_owned();
    match errno {
        // A link or a file stands where the snapshot has a folder.
        Errno::LOOP | Errno::NOTDIR => Error::Escapes(path),
        Errno::EXIST => Error::TargetExists(path),
        errno => Error::File { path, cause: errno.into() },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_draft_replaces_nothing_that_appeared_unless_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let below = folder.path().join("in/file");
        for (replace, left) in [(false, b"mine"), (true, b"kept")] {
            let mut draft = target.draft(b"in/file", 9).unwrap();
            draft.file.write_all(b"kept").unwrap();
            fs::write(&below, b"mine").unwrap();
            let published = target.publish(b"in/file", &draft, replace);
            assert_eq!(matches!(published, Err(Error::TargetExists(_))), !replace);
            assert_eq!(fs::read(&below).unwrap(), left);
            assert_eq!(fs::read_dir(folder.path().join("in")).unwrap().count(), 1);
        }
        fs::remove_file(&below).unwrap();
        let mut draft = target.draft(b"in/file", 9).unwrap();
        draft.file.write_all(b"kept").unwrap();
        target.publish(b"in/file", &draft, false).unwrap();
        assert_eq!(fs::read(&below).unwrap(), b"kept");
    }

    #[test]
    fn a_file_of_another_device_is_not_the_draft() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let mut draft = target.draft(b"draft", 9).unwrap();
        draft.inode.device += 1;
        assert!(target.publish(b"draft", &draft, false).is_err());
    }

    /// The name of a draft can be known, and what lies there be somebody's who waits for it.
    #[test]
    fn a_draft_is_continued_only_if_it_is_an_own_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let name = folder.path().join(OsStr::from_bytes(&draft_of(b"file")));
        drop(target.draft(b"file", 9).unwrap());
        fs::write(&name, b"begun").unwrap();
        assert_eq!(target.draft(b"file", 9).unwrap().file.metadata().unwrap().len(), 5);
        // With another name, for others to read, a pipe, a link.
        let outside = folder.path().join("outside");
        let spoil: [&dyn Fn(); 4] = [
            &|| fs::hard_link(&outside, &name).unwrap(),
            &|| {
                fs::copy(&outside, &name).unwrap();
                fs::set_permissions(&name, PermissionsExt::from_mode(0o644)).unwrap();
            },
            &|| rustix::fs::mknodat(CWD, &name, FileType::Fifo, Mode::RWXU, 0).unwrap(),
            &|| std::os::unix::fs::symlink(&outside, &name).unwrap(),
        ];
        for spoil in spoil {
            fs::remove_file(&name).unwrap();
            fs::write(&outside, b"as it was").unwrap();
            fs::set_permissions(&outside, PermissionsExt::from_mode(0o600)).unwrap();
            spoil();
            let mut draft = target.draft(b"file", 9).unwrap();
            draft.file.write_all(b"secret").unwrap();
            assert_eq!(fs::read(&outside).unwrap(), b"as it was");
            target.publish(b"file", &draft, true).unwrap();
            assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"secret");
            fs::symlink_metadata(&name).unwrap();
        }
        // A file that takes the draft's own name is not published for it.
        let draft = target.draft(b"other", 9).unwrap();
        let named = folder.path().join(OsStr::from_bytes(&draft.path));
        fs::remove_file(&named).unwrap();
        fs::write(&named, b"of another").unwrap();
        assert!(target.publish(b"other", &draft, true).is_err());
        assert!(!folder.path().join("other").exists());
    }

    /// A restore into a disk of the file's own size writes no hole of it, nor the same data twice.
    #[test]
    fn a_draft_is_continued_up_to_its_first_hole() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let name = folder.path().join(OsStr::from_bytes(&draft_of(b"file")));
        let (data, size) = (vec![7; 1 << 20], 1 << 30);
        let mut left = target.draft(b"file", size).unwrap().file;
        left.write_all(&data).unwrap();
        left.set_len(size).unwrap();
        let draft = target.draft(b"file", size).unwrap();
        assert_eq!(draft.file.metadata().unwrap().len(), data.len() as u64);
        assert_eq!(fs::read(&name).unwrap(), data);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// The file was its planter's before root took the folder over.
    #[test]
    fn nobody_who_has_a_draft_open_reads_what_is_restored_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = RestoreTarget::open(folder.path()).unwrap();
        let name = folder.path().join(OsStr::from_bytes(&draft_of(b"file")));
        fs::write(&name, b"begun, and more than the file has").unwrap();
        fs::set_permissions(&name, PermissionsExt::from_mode(0o600)).unwrap();
        let planter = File::open(&name).unwrap();
        let mut draft = target.draft(b"file", 5).unwrap();
        assert_eq!(draft.file.metadata().unwrap().len(), 5);
        draft.file.write_all(b" secret").unwrap();
        assert_eq!(io::read_to_string(planter).unwrap(), "begun, and more than the file has");
        target.publish(b"file", &draft, false).unwrap();
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"begun secret");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
