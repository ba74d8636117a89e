use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fd::BorrowedFd;
use rustix::fs::{
    Advice, AtFlags, CWD, RenameFlags, fadvise, linkat, renameat_with, statvfs, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;

use super::{CreateOutcome, ListedObject, spool_name};
use crate::Error;

/// Reads and writes from which on the system is told that it need not keep them in memory: a vault
/// goes through far more than fits there, and each part once.
const ONCE_BYTES: u64 = 1 << 20;

/// Only who goes through an object in order reads so much at once.
const IN_ORDER_BYTES: u64 = 4 << 20;

/// Room that is kept free for the link of a prune, which names what it removes before it does.
const RESERVE_BYTES: usize = 64 << 10;

/// Room that has to be free for that: what a prune has just freed is for the next put.
const RESERVE_FROM_BYTES: u64 = 1 << 20;

/// Objects as files of one folder.
#[derive(Debug)]
pub struct FolderStore {
    root: PathBuf,
    swept: OnceLock<()>,
}

impl FolderStore {
    /// The store in `root`, which need not exist yet.
    pub fn new(root: &Path) -> FolderStore {
        FolderStore { root: root.to_owned(), swept: OnceLock::new() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn spool(&self) -> Result<PathBuf, Error> {
        let folder = self.root.join("tmp");
        fs::create_dir_all(&folder).map_err(|cause| Error::store("tmp", cause))?;
        self.swept.get_or_init(|| {
            super::sweep(&folder, |_| true);
            // Where there is no room for it now, a prune has to do without.
            let reserve = folder.join(super::RESERVE);
            let room = statvfs(&folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
            let is_wanted = room.is_ok_and(|room| room >= RESERVE_FROM_BYTES) && !reserve.exists();
            if is_wanted
                && let Ok(mut file) = File::create_new(&reserve)
                && file.write_all(&vec![b'.'; RESERVE_BYTES]).is_err()
            {
                let _ = fs::remove_file(&reserve);
            }
        });
        Ok(folder)
    }

    /// Lets the room go that is kept for a prune's link.
    pub(crate) fn use_reserve(&self) -> Result<bool, Error> {
        match fs::remove_file(self.root.join("tmp").join(super::RESERVE)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(Error::store("tmp", cause)),
        }
    }

    pub(crate) fn put(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, Error> {
        if self.root.join(key).exists() {
            return Ok(CreateOutcome::Existed);
        }
        let file = self.spool()?.join(spool_name("object")?);
        let written = File::create_new(&file).and_then(|mut file| file.write_all(bytes));
        if let Err(cause) = written {
            // A file that was not written whole is of no use. The age limit empties `tmp` anyway.
            let _ = fs::remove_file(&file);
            return Err(Error::store(key, cause));
        }
        self.put_file(key, &file)
    }

    pub(crate) fn put_file(&self, key: &str, file: &Path) -> Result<CreateOutcome, Error> {
        self.publish(key, file).map_err(|cause| Error::store(key, cause))
    }

    fn publish(&self, key: &str, file: &Path) -> io::Result<CreateOutcome> {
        let written = File::open(file)?;
        written.sync_all()?;
        let size = written.metadata()?.size();
        once(&written, 0, size);
        let target = self.root.join(key);
        let parent = target.parent().unwrap_or(&self.root);
        if !parent.is_dir() {
            fs::create_dir_all(parent)?;
            sync_up(parent, &self.root)?;
        }
        let outcome = match create_from(CWD, file, &target) {
            Ok(()) => CreateOutcome::Created,
            Err(Errno::EXIST) => {
                fs::remove_file(file)?;
                CreateOutcome::Existed
            }
            Err(errno) => return Err(errno.into()),
        };
        File::open(parent)?.sync_all()?;
        Ok(outcome)
    }

    pub(crate) fn get(&self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        let file = self.open(key)?;
        let size = file.metadata().map_err(|cause| Error::store(key, cause))?.size();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > max {
            return Err(Error::TooLarge { what: key.to_owned() });
        }
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, 0).map_err(|cause| Error::read(key, cause))?;
        Ok(bytes)
    }

    pub(crate) fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let file = self.open(key)?;
        file.read_exact_at(out, offset).map_err(|cause| Error::read(key, cause))?;
        let bytes = out.len() as u64;
        once(&file, offset, bytes);
        if bytes >= IN_ORDER_BYTES {
            // The disk reads what comes next while this is opened.
            let next = std::num::NonZeroU64::new(bytes);
            let _ = fadvise(&file, offset + bytes, next, Advice::WillNeed);
        }
        Ok(())
    }

    fn open(&self, key: &str) -> Result<File, Error> {
        File::open(self.root.join(key)).map_err(|cause| Error::read(key, cause))
    }

    pub(crate) fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match fs::metadata(self.root.join(key)) {
            Ok(found) => Ok(Some(found.size())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Error::store(key, cause)),
        }
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, Error> {
        let mut objects = Vec::new();
        let mut folders = vec![prefix.trim_end_matches('/').to_owned()];
        while let Some(folder) = folders.pop() {
            self.list_one(&folder, &mut folders, &mut objects)
                .map_err(|cause| Error::store(&folder, cause))?;
        }
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(objects)
    }

    fn list_one(
        &self,
        folder: &str,
        folders: &mut Vec<String>,
        objects: &mut Vec<ListedObject>,
    ) -> io::Result<()> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let key =
                if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
            let found = match entry.metadata() {
                Ok(found) => found,
                // Another process may remove an object while this one looks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if found.is_dir() {
                if key != "tmp" {
                    folders.push(key);
                }
            } else {
                let modified_ms = found.mtime() * 1000 + found.mtime_nsec() / 1_000_000;
                let size = found.size();
                objects.push(ListedObject { key, size, modified_ms, tag: None });
            }
        }
        Ok(())
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        match fs::remove_file(self.root.join(key)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(Error::store(key, cause)),
        }
    }
}

/// Lets the system's memory of a long part of a file go. That is advice: it may fail.
fn once(file: &File, offset: u64, bytes: u64) {
    if bytes >= ONCE_BYTES {
        let _ = fadvise(file, offset, std::num::NonZeroU64::new(bytes), Advice::DontNeed);
    }
}

/// Gives `file` the name `target` unless that is taken; both are relative to `folder`.
pub(crate) fn create_from<P: Arg + Copy>(
    folder: BorrowedFd<'_>,
    file: P,
    target: P,
) -> Result<(), Errno> {
    match renameat_with(folder, file, folder, target, RenameFlags::NOREPLACE) {
        // Some file systems rename only with replacement; a link never replaces.
        Err(Errno::INVAL | Errno::NOSYS) => {
            linkat(folder, file, folder, target, AtFlags::empty())?;
            unlinkat(folder, file, AtFlags::empty())
        }
        other => other,
    }
}

/// Makes the names of new folders durable, from `folder` up to and including `root`.
fn sync_up(folder: &Path, root: &Path) -> io::Result<()> {
    let mut at = Some(folder);
    while let Some(folder) = at {
        File::open(folder)?.sync_all()?;
        if folder == root {
            break;
        }
        at = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_room_is_kept_for_what_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = folder.path().join("tmp/reserve");
        FolderStore::new(folder.path()).spool().unwrap();
        // It is older than anything that a run left behind.
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(9 * 24 * 3600);
        File::open(&reserve).unwrap().set_modified(old).unwrap();
        let store = FolderStore::new(folder.path());
        store.spool().unwrap();
        assert_eq!(fs::metadata(&reserve).unwrap().len(), RESERVE_BYTES as u64);
        assert_eq!(store.list("").unwrap(), []);
        assert!(store.use_reserve().unwrap() && !reserve.exists());
        assert!(!store.use_reserve().unwrap());
    }

    #[test]
    fn creates_once_lists_and_removes() {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::new(folder.path());
        assert_eq!(store.put("keys/ab", b"one").unwrap(), CreateOutcome::Created);
        assert_eq!(store.put("keys/ab", b"two").unwrap(), CreateOutcome::Existed);
        assert_eq!(store.get("keys/ab", 3).unwrap(), b"one");
        assert!(matches!(store.get("keys/ab", 2), Err(Error::TooLarge { .. })));
        let spooled = store.spool().unwrap().join("x");
        fs::write(&spooled, b"pack").unwrap();
        assert_eq!(store.put_file("packs/ab/cd", &spooled).unwrap(), CreateOutcome::Created);
        assert!(!spooled.exists());
        let keys: Vec<String> = store.list("").unwrap().into_iter().map(|o| o.key).collect();
        assert_eq!(keys, ["keys/ab", "packs/ab/cd"]);
        let mut middle = [0; 2];
        store.get_range("packs/ab/cd", 1, &mut middle).unwrap();
        assert_eq!(&middle, b"ac");
        assert!(matches!(store.get_range("packs/ab/cd", 3, &mut middle), Err(Error::Truncated(_))));
        store.delete("keys/ab").unwrap();
        assert!(matches!(store.get("keys/ab", 9), Err(Error::Missing(_))));
    }
}
