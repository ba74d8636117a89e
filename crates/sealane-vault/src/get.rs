//! From snapshots to files: everything is verified before a byte of it is handed out.

mod attributes;
mod chunks;
mod contentless;
mod file;
mod restore;
mod target;
mod write;

pub(crate) use attributes::is_roots_attribute;
pub(crate) use chunks::ChunkReader;
pub use file::StoredFile;
pub(crate) use file::write_file;
pub(crate) use restore::restore;
pub use restore::{GetOptions, GetReport};

use std::path::Path;

use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::page::{SnapshotEntry, compare, read_page};
use crate::vault::{Snapshot, Vault};

impl Vault {
    /// The entries of a snapshot, in order. Behind a page that is lost, the next one follows.
    ///
    /// # Errors
    /// Each item: [`Error::Missing`], [`Error::NotAuthentic`], [`Error::Malformed`],
    /// [`Error::Removed`] and [`Error::Rotated`] when a prune or a change of the main key came
    /// between, and what the store fails for.
    pub fn entries<'a>(&'a self, snapshot: &'a Snapshot) -> Result<SnapshotEntries<'a>, Error> {
        Ok(SnapshotEntries::new(ChunkReader::of(self, snapshot)?, &snapshot.body.pages))
    }

    /// One file of a snapshot, for reading any part of it.
    ///
    /// # Errors
    /// [`Error::NoEntry`] when there is no file of that path, and as [`Vault::entries`].
    pub fn file(&self, snapshot: &Snapshot, path: &[u8]) -> Result<StoredFile<'_>, Error> {
        let mut chunks = ChunkReader::of(self, snapshot)?;
        let entry = find(&mut chunks, &snapshot.body.pages, path)?;
        StoredFile::new(chunks, entry)
    }

    /// Restores a snapshot, or a part of it, into `target`, which need not exist. Where it has
    /// nothing at one of the paths, nothing is written.
    ///
    /// Files that are there with the right size and time are left as they are. While a restore runs
    /// the target holds a file `.sealane-restoring`. Where one is left, the machine may have
    /// stopped before contents were durable: such files are read and compared as well, and the mark
    /// stays until a restore of all of a snapshot finds nothing wrong.
    ///
    /// # Errors
    /// [`Error::NoEntry`], and what the target folder or the store fails for as a whole. Single
    /// files that cannot be restored are named in [`GetReport::failed`].
    pub fn get_to(
        &self,
        snapshot: &Snapshot,
        target: &Path,
        options: &GetOptions,
    ) -> Result<GetReport, Error> {
        let paths = self.locate(snapshot, &options.paths)?;
        let options = &GetOptions { paths, ..options.of_writer(snapshot.by_writer) };
        let chunks = ChunkReader::of(self, snapshot)?;
        let pages = ChunkReader::of(self, snapshot)?;
        restore(chunks, SnapshotEntries::new(pages, &snapshot.body.pages), target, options)
    }

    /// Refuses paths at which a snapshot has nothing, and names all of them. Where a page is lost,
    /// nobody knows what it named: such a path is not refused.
    ///
    /// # Errors
    /// [`Error::NoEntry`], and as [`Vault::entries`].
    pub fn check_paths(&self, snapshot: &Snapshot, paths: &[Vec<u8>]) -> Result<(), Error> {
        self.locate(snapshot, paths).map(drop)
    }

    /// The paths in a snapshot that are meant by `paths`: each of them as it is, or, where there is
    /// nothing, as the path that a file had on its host.
    ///
    /// # Errors
    /// As [`Vault::check_paths`].
    pub fn locate(&self, snapshot: &Snapshot, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        let mut chunks = ChunkReader::of(self, snapshot)?;
        let (mut located, mut missing) = (Vec::new(), Vec::new());
        for path in paths {
            match locate(&mut chunks, snapshot, path) {
                Ok(Some(path)) => located.push(path),
                Ok(None) => missing.push(String::from_utf8_lossy(path)),
                Err(error) if error.is_damage() => located.push(path.clone()),
                Err(error) => return Err(error),
            }
        }
        if missing.is_empty() { Ok(located) } else { Err(Error::NoEntry(missing.join("`, `"))) }
    }
}

fn locate(
    chunks: &mut ChunkReader<'_>,
    snapshot: &Snapshot,
    path: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let by_place = snapshot.paths.iter().filter_map(|place| path_below(place, path));
    for candidate in std::iter::once(path.to_vec()).chain(by_place) {
        if has(chunks, &snapshot.body.pages, &candidate)? {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

/// A path of a host, without its first slash, as it stands in a snapshot that has the place that it
/// is in under its last component.
fn path_below(place: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let place = place.strip_prefix(b"/")?;
    let name = place.rsplit(|byte| *byte == b'/').next()?;
    let below = path.get(place.len()..).filter(|_| is_in(path, place))?;
    Some([name, below].concat())
}

/// Walks the entries of pages.
pub struct SnapshotEntries<'a> {
    chunks: ChunkReader<'a>,
    pages: std::slice::Iter<'a, ChunkId>,
    page: std::vec::IntoIter<SnapshotEntry>,
    last: Vec<u8>,
}

impl<'a> SnapshotEntries<'a> {
    pub(crate) fn new(chunks: ChunkReader<'a>, pages: &'a [ChunkId]) -> Self {
        SnapshotEntries {
            chunks,
            pages: pages.iter(),
            page: Vec::new().into_iter(),
            last: Vec::new(),
        }
    }
}

impl Iterator for SnapshotEntries<'_> {
    type Item = Result<SnapshotEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.next() {
                // Within a page the order was checked already.
                return Some(Ok(entry));
            }
            let id = self.pages.next()?;
            let page = match self.chunks.read(id, ChunkKind::Page).and_then(read_page) {
                Ok(page) => page,
                // The following pages do not depend on this one.
                Err(error) if error.is_damage() => return Some(Err(error)),
                Err(error) => {
                    self.pages = [].iter();
                    return Some(Err(error));
                }
            };
            if let (Some(first), Some(last)) = (page.first(), page.last()) {
                if !self.last.is_empty() && !compare(&self.last, &first.path).is_lt() {
                    self.pages = [].iter();
                    return Some(Err(Error::Malformed { what: "a snapshot's order" }));
                }
                self.last.clone_from(&last.path);
            }
            self.page = page.into_iter();
        }
    }
}

impl std::fmt::Debug for SnapshotEntries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

/// Whether something lies at `path` or in it.
pub(crate) fn has(
    chunks: &mut ChunkReader<'_>,
    pages: &[ChunkId],
    path: &[u8],
) -> Result<bool, Error> {
    let first = first_from(chunks, pages, path)?;
    Ok(first.is_some_and(|first| is_in(&first.path, path)))
}

/// Whether `path` is `folder` or in it.
pub(crate) fn is_in(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// The first components of all paths.
pub(crate) fn roots(
    chunks: &mut ChunkReader<'_>,
    pages: &[ChunkId],
) -> Result<Vec<Vec<u8>>, Error> {
    let mut roots: Vec<Vec<u8>> = Vec::new();
    let mut from = Vec::new();
    while let Some(next) = first_from(chunks, pages, &from)? {
        let root = next.path.split(|byte| *byte == b'/').next().unwrap_or_default();
        // No component holds a zero, so that nothing comes between a name and this one.
        from = [root, &b"\0"[..]].concat();
        roots.push(root.to_vec());
    }
    Ok(roots)
}

/// The first entry that does not come before `path`, by halving the pages.
fn first_from(
    chunks: &mut ChunkReader<'_>,
    pages: &[ChunkId],
    path: &[u8],
) -> Result<Option<SnapshotEntry>, Error> {
    let (mut low, mut high) = (0, pages.len());
    let mut first = None;
    while low < high {
        let middle = usize::midpoint(low, high);
        let Some(id) = pages.get(middle) else { break };
        let page = chunks.read(id, ChunkKind::Page).and_then(read_page)?;
        match page.into_iter().find(|entry| !compare(&entry.path, path).is_lt()) {
            Some(entry) => {
                first = Some(entry);
                high = middle;
            }
            None => low = middle + 1,
        }
    }
    Ok(first)
}

/// The entry of a path.
fn find(
    chunks: &mut ChunkReader<'_>,
    pages: &[ChunkId],
    path: &[u8],
) -> Result<SnapshotEntry, Error> {
    let found = first_from(chunks, pages, path)?.filter(|found| found.path == path);
    found.ok_or_else(|| Error::NoEntry(String::from_utf8_lossy(path).into_owned()))
}
