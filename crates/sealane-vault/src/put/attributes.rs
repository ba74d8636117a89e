//! The extended attributes of what a put comes by: ACLs, capabilities, and words of users.
//!
//! They are read from the file that was looked at, and never by a path. A path may lead elsewhere
//! later: a user swaps a folder with a link, and has the capability of another file kept for their
//! own.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{
    OFlags, fgetxattr, flistxattr, flistxattr_query, getxattr, listxattr, listxattr_query,
    llistxattr_query,
};
use rustix::io::Errno;

use crate::format::page::{EntryAttribute, are_attributes};
use crate::limits::MAX_ATTRIBUTE_BYTES;

/// Names that fit without asking for their length first: most files have none, or one.
const NAMES_BYTES: usize = 256;
/// A value that fits so: the ACL of some users, a capability.
const VALUE_BYTES: usize = 256;

/// Not to wait for a pipe, nor to follow a link, that took a file's place.
pub(super) const OPEN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);
/// Only to look at. To open a device can already do something, and a folder may be unreadable.
const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);

/// Whether nothing at a path has attributes. That is so of most files, and they are not opened.
pub(super) fn is_bare(path: &Path) -> bool {
    matches!(llistxattr_query(path), Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

/// The file, folder, link, device or pipe that a walk has looked at, found again.
#[derive(Debug)]
pub(super) struct WalkedInode {
    file: File,
    is_open: bool,
}

impl WalkedInode {
    /// The object at `path` now, if it is the one that had the metadata `seen`.
    pub(super) fn find(path: &Path, seen: &Metadata) -> io::Result<WalkedInode> {
        let is_open = seen.is_file();
        let flags = if is_open { OPEN } else { PLACE };
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
        let found = file.metadata()?;
        if (found.dev(), found.ino()) != (seen.dev(), seen.ino()) {
            return Err(replaced());
        }
        Ok(WalkedInode { file, is_open })
    }

    pub(super) fn attributes(&self) -> AttributeSource<'_> {
        let file = &self.file;
        if self.is_open { AttributeSource::File(file) } else { AttributeSource::Found(file) }
    }
}

pub(super) fn replaced() -> io::Error {
    io::Error::other("it was replaced while it was read")
}

/// Where attributes are read.
#[derive(Clone, Copy)]
pub(super) enum AttributeSource<'a> {
    /// A file that is open.
    File(&'a File),
    /// A folder, link, device or pipe that was only looked up.
    Found(&'a File),
}

impl AttributeSource<'_> {
    /// All attributes, sorted by name; none where the file system has none. `None` stands for more
    /// than an entry may have.
    pub(super) fn read(self) -> Result<Option<Vec<EntryAttribute>>, Errno> {
        let names = match self.names() {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Some(Vec::new())),
            other => other?,
        };
        let mut attributes = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            match self.value(name) {
                Ok(value) => attributes.push(EntryAttribute { name: name.to_vec(), value }),
                // Another process has removed it since.
                Err(Errno::NODATA) => {}
                Err(errno) => return Err(errno),
            }
        }
        attributes.sort_unstable();
        Ok(Some(attributes).filter(|attributes| are_attributes(attributes)))
    }

    fn names(self) -> Result<Vec<u8>, Errno> {
        // An empty list takes no memory: nearly every file has one.
        let mut short = [0_u8; NAMES_BYTES];
        match self.list(&mut short) {
            Ok(length) => return Ok(short.get(..length).unwrap_or_default().to_vec()),
            Err(Errno::RANGE) => {}
            Err(errno) => return Err(errno),
        }
        loop {
            let length = match self {
                AttributeSource::File(file) => flistxattr_query(file)?,
                AttributeSource::Found(file) => listxattr_query(found(file))?,
            };
            let mut names = vec![0; length];
            match self.list(&mut names) {
                Ok(length) => {
                    names.truncate(length);
                    return Ok(names);
                }
                // Another process has added one since.
                Err(Errno::RANGE) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn list(self, names: &mut [u8]) -> Result<usize, Errno> {
        match self {
            AttributeSource::File(file) => flistxattr(file, names),
            AttributeSource::Found(file) => listxattr(found(file), names),
        }
    }

    fn value(self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut short = [0_u8; VALUE_BYTES];
        match self.get(name, &mut short) {
            Ok(length) => return Ok(short.get(..length).unwrap_or_default().to_vec()),
            Err(Errno::RANGE) => {}
            Err(errno) => return Err(errno),
        }
        // The system has no longer value.
        let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
        let length = self.get(name, &mut value)?;
        value.truncate(length);
        Ok(value)
    }

    fn get(self, name: &[u8], value: &mut [u8]) -> Result<usize, Errno> {
        match self {
            AttributeSource::File(file) => fgetxattr(file, name, value),
            AttributeSource::Found(file) => getxattr(found(file), name, value),
        }
    }
}

/// The name by which the system finds what was only looked up, whatever has its path now. It is
/// the name of a link itself, and not of what that leads to.
fn found(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
