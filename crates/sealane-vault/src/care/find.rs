use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::gitignore::GitignoreBuilder;

use super::whose::SnapshotSelector;
use crate::Error;
use crate::format::chunk::ChunkKind;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind, read_page};
use crate::get::ChunkReader;
use crate::put::SkippedItem;
use crate::vault::Vault;

/// An entry that was looked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SnapshotMatch {
    /// The newest snapshot that has it like this.
    pub snapshot: u64,
    /// The entry.
    pub entry: SnapshotEntry,
}

impl Vault {
    /// Looks for paths that match `pattern`, as a line of a `.gitignore` does, through the
    /// snapshots of these, newest first. Each state of a path is given once.
    ///
    /// # Errors
    /// [`Error::Pattern`], [`Error::NoMatch`] when nothing was found, [`Error::NoOwnSnapshot`], and
    /// as [`Vault::entries`].
    pub fn find(
        &self,
        pattern: &str,
        whose: &SnapshotSelector,
        found: &mut dyn FnMut(SnapshotMatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let wrong = |error: ignore::Error| Error::Pattern(error.to_string());
        let mut builder = GitignoreBuilder::new("");
        builder.add_line(None, pattern).map_err(wrong)?;
        let matcher = builder.build().map_err(wrong)?;
        let mut chunks = ChunkReader::new(self, self.manifest())?;
        let mut pages = HashSet::new();
        let mut given = HashSet::new();
        for snapshot in self.snapshots_of(whose)?.into_iter().rev() {
            chunks.turn_to(&snapshot);
            for page in &snapshot.body.pages {
                if !pages.insert(*page) {
                    continue;
                }
                let entries = match chunks.read(page, ChunkKind::Page).and_then(read_page) {
                    Ok(entries) => entries,
                    // A prune has removed it since: it is no snapshot to look through.
                    Err(Error::Removed(_)) => break,
                    Err(error) if error.is_damage() => {
                        let path = format!("snapshot {}", snapshot.number);
                        self.warn([SkippedItem { path, reason: error.named() }]);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                for entry in entries {
                    let path = Path::new(std::ffi::OsStr::from_bytes(&entry.path));
                    let folder = matches!(entry.node, SnapshotEntryKind::Folder);
                    let state = (entry.path.clone(), entry.mtime_ns, entry.size());
                    if matcher.matched(path, folder).is_ignore() && given.insert(state) {
                        found(SnapshotMatch { snapshot: snapshot.number, entry })?;
                    }
                }
            }
        }
        if given.is_empty() {
            let (pattern, whose) = (pattern.to_owned(), whose.shown());
            return Err(Error::NoMatch { pattern, whose });
        }
        Ok(())
    }
}
