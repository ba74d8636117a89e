use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::exclude::PutExcludes;
use super::{LeftOutItems, PutOptions, SkippedItem};
use crate::Error;

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

/// Walks files and folders in the order of a snapshot's entries.
pub(super) struct FileWalk<'a> {
    excludes: &'a PutExcludes,
    pub(super) left_out: LeftOutItems,
}

impl<'a> FileWalk<'a> {
    pub(super) fn new(excludes: &'a PutExcludes) -> Self {
        Self { excludes, left_out: LeftOutItems::default() }
    }

    /// Walks `roots`, each of which stands in the snapshot under its last component.
    pub(super) fn run(
        &mut self,
        roots: &[PathBuf],
        visit: &mut WalkVisitor<'_>,
    ) -> Result<(), Error> {
        for (name, root) in named(roots)? {
            let metadata = root.symlink_metadata().map_err(|cause| Error::file(&root, cause))?;
            self.visit(&root, name, &metadata, visit)?;
        }
        Ok(())
    }

    fn visit(
        &mut self,
        absolute: &Path,
        path: Vec<u8>,
        metadata: &Metadata,
        visit: &mut WalkVisitor<'_>,
    ) -> Result<(), Error> {
        visit(WalkStep { absolute, path: &path, metadata }, &mut self.left_out)?;
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
                    let path = [&path, &b"/"[..], name.as_bytes()].concat();
                    self.visit(&absolute, path, &metadata, visit)?;
                }
                Err(error) => self.skip(&absolute, &error.to_string()),
            }
        }
        Ok(())
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        let path = path.display().to_string();
        self.left_out.skipped.push(SkippedItem { path, reason: reason.to_owned() });
    }
}

/// The roots with their names in the snapshot, sorted, each name once.
fn named(roots: &[PathBuf]) -> Result<Vec<(Vec<u8>, PathBuf)>, Error> {
    let mut named = Vec::new();
    for root in roots {
        let absolute = std::path::absolute(root).map_err(|cause| Error::file(root, cause))?;
        // `.` and `..` at the end have no name of their own.
        let plain = root.components().next_back();
        let absolute = match plain {
            Some(std::path::Component::Normal(_)) => absolute,
            _ => root.canonicalize().map_err(|cause| Error::file(root, cause))?,
        };
        let name = absolute.file_name().ok_or_else(|| Error::Root(root.clone()))?;
        named.push((name.as_bytes().to_vec(), absolute));
    }
    named.sort();
    let twice = named.windows(2).find_map(|pair| match pair {
        [(a, _), (b, path)] if a == b => Some(path.clone()),
        _ => None,
    });
    twice.map_or(Ok(named), |path| Err(Error::Root(path)))
}

/// Where the roots are on this machine, however they were named: with the links on the way to them
/// followed, sorted.
pub(super) fn places(roots: &[PathBuf]) -> Result<Vec<Vec<u8>>, Error> {
    let place = |(name, root): (Vec<u8>, PathBuf)| {
        let parent = root.parent().and_then(|parent| parent.canonicalize().ok());
        let place = parent.map_or(root, |parent| parent.join(OsStr::from_bytes(&name)));
        place.into_os_string().into_vec()
    };
    let mut places: Vec<Vec<u8>> = named(roots)?.into_iter().map(place).collect();
    places.sort();
    Ok(places)
}

/// The roots as the walk names what is in them.
pub(super) fn absolute(roots: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    Ok(named(roots)?.into_iter().map(|(_, root)| root).collect())
}

/// Files and bytes that a put of `roots` would read, for who shows progress.
///
/// # Errors
/// [`Error::Pattern`], [`Error::File`] for a root that is not there.
pub fn measure(roots: &[PathBuf], options: &PutOptions) -> Result<(u64, u64), Error> {
    let excludes = PutExcludes::new(options, &absolute(roots)?)?;
    let (mut files, mut bytes) = (0, 0);
    FileWalk::new(&excludes).run(roots, &mut |step, _| {
        if step.metadata.is_file() {
            files += 1;
            bytes += step.metadata.len();
        }
        Ok(())
    })?;
    Ok((files, bytes))
}
