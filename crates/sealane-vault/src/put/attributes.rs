//! The extended attributes of what a put comes by: ACLs, capabilities, and words of users.

use std::fs::File;
use std::path::Path;

use rustix::fs::{
    fgetxattr, flistxattr, flistxattr_query, lgetxattr, llistxattr, llistxattr_query,
};
use rustix::io::Errno;

use crate::format::page::{EntryAttribute, are_attributes};
use crate::limits::MAX_ATTRIBUTE_BYTES;

/// Names that fit without asking for their length first: most files have none, or one.
const NAMES_BYTES: usize = 256;
/// A value that fits so: the ACL of some users, a capability.
const VALUE_BYTES: usize = 256;

/// Where attributes are read.
#[derive(Clone, Copy)]
pub(super) enum AttributeSource<'a> {
    /// A path. A link there is not followed.
    Path(&'a Path),
    /// A file that is open.
    File(&'a File),
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
                AttributeSource::Path(path) => llistxattr_query(path)?,
                AttributeSource::File(file) => flistxattr_query(file)?,
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
            AttributeSource::Path(path) => llistxattr(path, names),
            AttributeSource::File(file) => flistxattr(file, names),
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
            AttributeSource::Path(path) => lgetxattr(path, name, value),
            AttributeSource::File(file) => fgetxattr(file, name, value),
        }
    }
}
