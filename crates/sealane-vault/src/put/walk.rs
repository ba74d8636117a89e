use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::exclude::PutExcludes;
use super::roots::{PutRoot, PutRoots, RootReach};
use super::{LeftOutItems, PutOptions, SkippedItem};
use crate::Error;
use crate::store::VaultStore;

/// Something that the walk came by.
pub(super) struct WalkStep<'a> {
    /// Where it is on this machine.
    pub(super) absolute: &'a Path,
    /// Its path in the snapshot.
    pub(super) path: &'a [u8],
    pub(super) metadata: &'a Metadata,
}

/// Takes what the walk comes by, and names what it leaves out.
type WalkVisitor<'a> = dyn FnMut(WalkStep<'_>, &mut LeftOutItems) -> Result<(), Error> + 'a;

/// A folder of the vault that is being written, which a put of what is around it leaves out.
pub(super) struct OwnFolder {
    device: u64,
    inode: u64,
    reason: &'static str,
}

impl OwnFolder {
    /// The folders of a store on this machine.
    pub(super) fn of(store: &VaultStore, spool: &Path) -> Vec<OwnFolder> {
        let root = match store {
            VaultStore::Folder(folder) => Some(folder.root()),
            VaultStore::S3(_) => None,
        };
        let vault = root.map(|root| (root, "the vault itself is not kept in the vault"));
        let spool = (spool, "what the put is about to send is not kept");
        let own = |(path, reason): (&Path, _)| {
            let found = path.metadata().ok()?;
            Some(OwnFolder { device: found.dev(), inode: found.ino(), reason })
        };
        vault.into_iter().chain([spool]).filter_map(own).collect()
    }
}

/// Walks files and folders in the order of a snapshot's entries.
pub(super) struct FileWalk<'a> {
    excludes: &'a PutExcludes,
    own: Vec<OwnFolder>,
    pub(super) left_out: LeftOutItems,
}

impl<'a> FileWalk<'a> {
    /// A walk that leaves out folders of the vault itself.
    pub(super) fn new(excludes: &'a PutExcludes, own: Vec<OwnFolder>) -> Self {
        Self { excludes, own, left_out: LeftOutItems::default() }
    }

    pub(super) fn run(
        &mut self,
        roots: &PutRoots,
        visit: &mut WalkVisitor<'_>,
    ) -> Result<(), Error> {
        for PutRoot { path, absolute, reach } in roots.iter() {
            let metadata =
                absolute.symlink_metadata().map_err(|cause| Error::file(absolute, cause))?;
            if *reach == RootReach::Alone {
                visit(WalkStep { absolute, path, metadata: &metadata }, &mut self.left_out)?;
                continue;
            }
            if self.own_of(&metadata).is_some() {
                return Err(Error::Root(absolute.clone()));
            }
            if metadata.is_symlink() {
                self.pass(absolute, &of_link(absolute));
            }
            self.visit(absolute, path.clone(), &metadata, visit)?;
        }
        Ok(())
    }

    fn own_of(&self, found: &Metadata) -> Option<&OwnFolder> {
        let same = |own: &&OwnFolder| (own.device, own.inode) == (found.dev(), found.ino());
        self.own.iter().find(same).filter(|_| found.is_dir())
    }

    fn visit(
        &mut self,
        absolute: &Path,
        path: Vec<u8>,
        metadata: &Metadata,
        visit: &mut WalkVisitor<'_>,
    ) -> Result<(), Error> {
        if let Some(reason) = self.own_of(metadata).map(|own| own.reason) {
            self.pass(absolute, reason);
            return Ok(());
        }
        // The root of the file system is the root of the snapshot, which is no entry.
        if !path.is_empty() {
            visit(WalkStep { absolute, path: &path, metadata }, &mut self.left_out)?;
        }
        if !metadata.is_dir() {
            return Ok(());
        }
        let mut names = Vec::new();
        match std::fs::read_dir(absolute) {
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        Ok(entry) => names.push(entry.file_name()),
                        Err(error) => self.skip(absolute, &error.to_string()),
                    }
                }
            }
            Err(error) => self.skip(absolute, &error.to_string()),
        }
        names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        for name in names {
            let absolute = absolute.join(&name);
            match absolute.symlink_metadata() {
                Ok(metadata) if self.excludes.has(&absolute, metadata.is_dir()) => {}
                Ok(metadata) => {
                    let slash = if path.is_empty() { &b""[..] } else { b"/" };
                    let path = [&path, slash, name.as_bytes()].concat();
                    self.visit(&absolute, path, &metadata, visit)?;
                }
                Err(error) => self.skip(&absolute, &error.to_string()),
            }
        }
        Ok(())
    }

    fn pass(&mut self, path: &Path, reason: &str) {
        let path = path.display().to_string();
        self.left_out.passed.push(SkippedItem { path, reason: reason.to_owned() });
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        let path = path.display().to_string();
        self.left_out.skipped.push(SkippedItem { path, reason: reason.to_owned() });
    }
}

/// The remark on a link that was named as what to put.
fn of_link(link: &Path) -> String {
    let said = "it is a symbolic link, and kept as one";
    match link.canonicalize() {
        Ok(place) => format!("{said}: to keep what it leads to, name `{}`", place.display()),
        Err(_) => said.to_owned(),
    }
}

/// Files and bytes that a put of `roots` would read, for who shows progress.
///
/// # Errors
/// [`Error::Pattern`], [`Error::File`] for a root that is not there.
pub fn measure(roots: &[PathBuf], options: &PutOptions) -> Result<(u64, u64), Error> {
    let roots = PutRoots::of(roots)?;
    let excludes = PutExcludes::new(options, &roots.whole())?;
    let (mut files, mut bytes) = (0, 0);
    FileWalk::new(&excludes, Vec::new()).run(&roots, &mut |step, _| {
        if step.metadata.is_file() {
            files += 1;
            bytes += step.metadata.len();
        }
        Ok(())
    })?;
    Ok((files, bytes))
}
