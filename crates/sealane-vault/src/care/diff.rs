use std::cmp::Ordering;
use std::collections::HashSet;
use std::iter::Peekable;

use crate::Error;
use crate::format::chunk::ChunkId;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind, compare};
use crate::get::{ChunkReader, SnapshotEntries, is_in};
use crate::vault::{Snapshot, Vault};

/// The change of a path from one snapshot to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Only the other one has it.
    Added,
    /// Only the first one has it.
    Removed,
    /// Its content differs, or where it points.
    Content,
    /// It is of another kind: a folder, a file, a link, a device or a pipe.
    Kind,
    /// Its mode, owner, time or an attribute differs, and not its content.
    Metadata,
}

/// A path in which two snapshots differ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotDifference {
    /// The change.
    pub kind: DifferenceKind,
    /// The entry, of the other snapshot if it is there.
    pub entry: SnapshotEntry,
    /// Its size in the first snapshot; 0 where it was not.
    pub size_before: u64,
}

impl Vault {
    /// Gives the paths in which `after` differs from `before`, in their order, to `found`. With
    /// `paths`, only those and what is in them.
    ///
    /// Contents are compared by the ids of their chunks: no content is read. Pages that both have
    /// are not read either.
    ///
    /// # Errors
    /// [`Error::NoEntry`] for paths that neither has; as [`Vault::entries`], and the errors of
    /// `found`.
    pub fn diff(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        paths: &[Vec<u8>],
        found: &mut dyn FnMut(SnapshotDifference) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let paths = self.located_in_either(before, after, paths)?;
        let pages = |snapshot: &Snapshot| snapshot.body.pages.iter().copied().collect();
        let [held, new]: [HashSet<ChunkId>; 2] = [pages(before), pages(after)];
        // Each path stands in one page of a snapshot. What both have is the same in both.
        let without = |snapshot: &Snapshot, other: &HashSet<ChunkId>| -> Vec<ChunkId> {
            let pages = snapshot.body.pages.iter().copied();
            pages.filter(|page| !other.contains(page)).collect()
        };
        let [held, new] = [without(before, &new), without(after, &held)];
        let wanted = |entry: &SnapshotEntry| {
            paths.is_empty() || paths.iter().any(|path| is_in(&entry.path, path))
        };
        let entries = |snapshot, pages| -> Result<SnapshotEntries<'_>, Error> {
            Ok(SnapshotEntries::new(ChunkReader::of(self, snapshot)?, pages))
        };
        let mut pairs = EntryPairs {
            before: entries(before, &held)?.peekable(),
            after: entries(after, &new)?.peekable(),
        };
        while let Some(pair) = pairs.next()? {
            if let Some(difference) = pair.difference().filter(|one| wanted(&one.entry)) {
                found(difference)?;
            }
        }
        Ok(())
    }

    /// Refuses paths at which neither snapshot has anything: no difference there means nothing.
    fn located_in_either(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        paths: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        for path in paths {
            let locate = |snapshot| match self.locate(snapshot, std::slice::from_ref(path)) {
                Err(Error::NoEntry(_)) => Ok(Vec::new()),
                other => other,
            };
            let located = [locate(before)?, locate(after)?].concat();
            if located.is_empty() {
                missing.push(String::from_utf8_lossy(path));
            }
            all.extend(located);
        }
        if missing.is_empty() { Ok(all) } else { Err(Error::NoEntry(missing.join("`, `"))) }
    }
}

/// Goes through the entries of two snapshots side by side.
struct EntryPairs<'a> {
    before: Peekable<SnapshotEntries<'a>>,
    after: Peekable<SnapshotEntries<'a>>,
}

impl EntryPairs<'_> {
    fn next(&mut self) -> Result<Option<EntryPair>, Error> {
        let order = match (self.before.peek(), self.after.peek()) {
            (Some(Ok(before)), Some(Ok(after))) => compare(&before.path, &after.path),
            // An error comes out below, whichever side has it.
            (Some(Err(_)), _) | (Some(Ok(_)), None) => Ordering::Less,
            (_, Some(Err(_))) | (None, Some(Ok(_))) => Ordering::Greater,
            (None, None) => return Ok(None),
        };
        let before = if order.is_le() { self.before.next().transpose()? } else { None };
        let after = if order.is_ge() { self.after.next().transpose()? } else { None };
        Ok(Some(EntryPair { before, after }))
    }
}

/// The entries of one path in two snapshots.
struct EntryPair {
    before: Option<SnapshotEntry>,
    after: Option<SnapshotEntry>,
}

impl EntryPair {
    fn difference(self) -> Option<SnapshotDifference> {
        let size_before = self.before.as_ref().map_or(0, SnapshotEntry::size);
        let (kind, entry) = match (self.before, self.after) {
            (None, after) => (DifferenceKind::Added, after?),
            (Some(before), None) => (DifferenceKind::Removed, before),
            (Some(before), Some(after)) => (change(&before, &after)?, after),
        };
        Some(SnapshotDifference { kind, entry, size_before })
    }
}

fn change(before: &SnapshotEntry, after: &SnapshotEntry) -> Option<DifferenceKind> {
    use SnapshotEntryKind::{Device, Fifo, File, Folder, Link};
    let is_same_content = match (&before.node, &after.node) {
        (Folder, Folder) | (Fifo, Fifo) => true,
        (Device(device), Device(new)) if device.kind == new.kind => device == new,
        (File { size, pieces }, File { size: new_size, pieces: new }) => {
            size == new_size && pieces == new
        }
        (Link { target }, Link { target: new }) => target == new,
        _ => return Some(DifferenceKind::Kind),
    };
    if !is_same_content {
        return Some(DifferenceKind::Content);
    }
    let metadata = |entry: &SnapshotEntry| (entry.mode, entry.uid, entry.gid, entry.mtime_ns);
    let is_same = metadata(before) == metadata(after) && before.attributes == after.attributes;
    (!is_same).then_some(DifferenceKind::Metadata)
}
