//! The places on this machine that a put keeps, and their paths in the snapshot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::Error;
use crate::format::page::compare;

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
/// A place that lies in another one is kept with that, once, as other backup programs do.
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
            let absolute = absolute(root)?;
            found.push(NamedRoot { place: place(&absolute), absolute });
        }
        found.sort();
        found.dedup();
        let places = places(&found);
        let outer = outermost(found);
        let mut names: Vec<Option<&OsStr>> =
            outer.iter().map(|root| root.absolute.file_name()).collect();
        names.sort();
        let is_plain = names.iter().all(Option::is_some)
            && names.windows(2).all(|two| two.first() != two.last());
        let mut roots: Vec<PutRoot> = match is_plain {
            true => outer.into_iter().map(by_name).collect(),
            false => by_whole_path(&self::places(&outer)),
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

/// A place as it was named. Equal places compare by that.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NamedRoot {
    /// With the links on the way to it followed.
    place: PathBuf,
    absolute: PathBuf,
}

/// Where roots are, in the order of bytes, each once.
fn places(roots: &[NamedRoot]) -> Vec<Vec<u8>> {
    let mut places: Vec<Vec<u8>> = roots.iter().map(|root| bytes(&root.place)).collect();
    places.sort();
    places.dedup();
    places
}

/// Those of sorted roots that lie in no other one.
fn outermost(mut roots: Vec<NamedRoot>) -> Vec<NamedRoot> {
    let mut outer: Option<PathBuf> = None;
    // Paths are sorted by their components, so that what is in a folder follows it at once.
    roots.retain(|root| match &outer {
        Some(outer) if root.place != *outer && root.place.starts_with(outer) => false,
        _ => {
            outer = Some(root.place.clone());
            true
        }
    });
    roots
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

fn by_name(NamedRoot { absolute, .. }: NamedRoot) -> PutRoot {
    let path = absolute.file_name().unwrap_or_default().as_bytes().to_vec();
    PutRoot { path, absolute, reach: RootReach::Whole }
}

/// Places, which are sorted, under their paths from `/` on.
fn by_whole_path(places: &[Vec<u8>]) -> Vec<PutRoot> {
    let mut roots: Vec<PutRoot> = Vec::new();
    for path in places.iter().map(|place| place.strip_prefix(b"/").unwrap_or(place)) {
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
        let named = |place: &&str| NamedRoot { place: place.into(), absolute: place.into() };
        let mut roots =
            by_whole_path(&self::places(&outermost(places.iter().map(named).collect())));
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
