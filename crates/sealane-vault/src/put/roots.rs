//! The places on this machine that a put keeps, and their paths in the snapshot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::Error;
use crate::format::page::compare;
use crate::get::is_in;

/// A place that a put walks through.
pub(super) struct PutRoot {
    /// Its path in the snapshot; empty for `/`, which is no entry.
    pub(super) path: Vec<u8>,
    /// The place as it was named.
    pub(super) absolute: PathBuf,
    pub(super) reach: RootReach,
}

/// How much of a place is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RootReach {
    /// Only the folder itself: a place that was named lies in it.
    Alone,
    /// The place with all that is in it.
    Whole,
}

/// All places of a put, in the order of the entries of a snapshot.
///
/// Each place stands in the snapshot under its last component. If two have the same one, or one is
/// `/`, all of them stand there under their whole paths, with the folders above them.
pub(super) struct PutRoots {
    roots: Vec<PutRoot>,
    places: Vec<Vec<u8>>,
}

impl PutRoots {
    pub(super) fn of(named: &[PathBuf]) -> Result<PutRoots, Error> {
        let mut found = Vec::new();
        for root in named {
            found.push(absolute(root)?);
        }
        found.sort();
        found.dedup();
        let mut places: Vec<Vec<u8>> = found.iter().map(|root| bytes(&place(root))).collect();
        places.sort();
        places.dedup();
        let mut names: Vec<Option<&OsStr>> = found.iter().map(|root| root.file_name()).collect();
        names.sort();
        let is_plain = names.iter().all(Option::is_some)
            && names.windows(2).all(|two| two.first() != two.last());
        let mut roots: Vec<PutRoot> = match is_plain {
            true => found.into_iter().map(by_name).collect(),
            false => by_whole_path(&places),
        };
        roots.sort_by(|a, b| compare(&a.path, &b.path));
        Ok(PutRoots { roots, places })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PutRoot> {
        self.roots.iter()
    }

    /// The places that are kept with all that is in them, as the walk names what is in them.
    pub(super) fn whole(&self) -> Vec<PathBuf> {
        let whole = self.roots.iter().filter(|root| root.reach == RootReach::Whole);
        whole.map(|root| root.absolute.clone()).collect()
    }

    /// Where they are on this machine, however they were named: with the links on the way to them
    /// followed, sorted.
    pub(super) fn into_places(self) -> Vec<Vec<u8>> {
        self.places
    }
}

fn absolute(root: &Path) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(root).map_err(|cause| Error::file(root, cause))?;
    // `.` and `..` at the end have no name of their own.
    match root.components().next_back() {
        Some(Component::Normal(_)) => Ok(absolute),
        _ => root.canonicalize().map_err(|cause| Error::file(root, cause)),
    }
}

/// A place with the links on the way to it followed, and not the one that it may be itself.
fn place(root: &Path) -> PathBuf {
    let parent = root.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, root.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => root.to_owned(),
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn by_name(absolute: PathBuf) -> PutRoot {
    let path = absolute.file_name().unwrap_or_default().as_bytes().to_vec();
    PutRoot { path, absolute, reach: RootReach::Whole }
}

/// Places, which are sorted, under their paths from `/` on. One that lies in another one is kept
/// with that.
fn by_whole_path(places: &[Vec<u8>]) -> Vec<PutRoot> {
    let relative = |place: &Vec<u8>| place.strip_prefix(b"/").unwrap_or(place).to_vec();
    let paths: Vec<Vec<u8>> = places.iter().map(relative).collect();
    let is_within = |path: &[u8]| {
        paths.iter().any(|other| other != path && (other.is_empty() || is_in(path, other)))
    };
    let mut roots = Vec::new();
    for path in paths.iter().filter(|path| !is_within(path)) {
        roots.push(root(path, RootReach::Whole));
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for above in ends.filter_map(|(end, _)| path.get(..end)) {
            if roots.iter().all(|root| root.path != above) {
                roots.push(root(above, RootReach::Alone));
            }
        }
    }
    roots
}

fn root(path: &[u8], reach: RootReach) -> PutRoot {
    let absolute = PathBuf::from(OsStr::from_bytes(&[b"/", path].concat()));
    PutRoot { path: path.to_vec(), absolute, reach }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(places: &[&str]) -> Vec<(String, bool)> {
        let places: Vec<Vec<u8>> = places.iter().map(|place| place.as_bytes().to_vec()).collect();
        let mut roots = by_whole_path(&places);
        roots.sort_by(|a, b| compare(&a.path, &b.path));
        let shown = |root: PutRoot| {
            let is_whole = root.reach == RootReach::Whole;
            (String::from_utf8(root.path).unwrap(), is_whole)
        };
        roots.into_iter().map(shown).collect()
    }

    #[test]
    fn whole_paths_come_with_the_folders_above_and_each_once() {
        let row = |path: &str, whole| (path.to_owned(), whole);
        assert_eq!(
            paths(&["/etc", "/usr/local/etc", "/usr/local/etc/ssl", "/usr/src"]),
            [
                row("etc", true),
                row("usr", false),
                row("usr/local", false),
                row("usr/local/etc", true),
                row("usr/src", true)
            ]
        );
        assert_eq!(paths(&["/", "/etc", "/home"]), [row("", true)]);
    }
}
