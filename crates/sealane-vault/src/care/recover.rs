use std::collections::BTreeMap;
use std::path::Path;

use super::whose::SnapshotSelector;
use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::pack::pack_key;
use crate::format::page::{SnapshotEntry, compare, read_page};
use crate::get::{ChunkReader, GetOptions, GetReport, SnapshotEntries, restore};
use crate::limits::MAX_HEARSAY_AHEAD;
use crate::manifest::{ChunkManifest, PackOrigin};
use crate::put::SkippedItem;
use crate::vault::{Snapshot, Vault};

/// The outcome of a recovery from objects alone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The snapshot that was restored; none when there was none left, and then every file that the
    /// packs name was.
    pub snapshot: Option<u64>,
    /// The host that it names.
    pub host: Option<String>,
    /// The report of the restore. What failed may have cost files.
    pub report: GetReport,
    /// Objects that could not be read, and that cost none of the files.
    pub passed_over: Vec<SkippedItem>,
}

impl Vault {
    /// Restores from the objects and the key alone: no manifest, no index, and if need be no
    /// snapshot. Objects that are damaged cost what is in them, and are named; so are paths of
    /// which nothing was found.
    ///
    /// Without a number it is the newest readable snapshot of this host and the owner, and where
    /// there is none, the newest of all.
    ///
    /// # Errors
    /// [`Error::NothingRecovered`], and what the store or the target fails for as a whole.
    pub fn recover_to(
        &self,
        number: Option<u64>,
        target: &Path,
        options: &GetOptions,
    ) -> Result<RecoveryReport, Error> {
        let mut damaged = Vec::new();
        let RecoveredPacks { manifest, pages, of_writers } = self.read_packs(&mut damaged)?;
        let chunks = || ChunkReader::new(self, &manifest);
        let RecoveredChain { snapshot, problems, newer: mut failed } =
            self.newest_readable(number)?;
        damaged.extend(problems);
        if snapshot.is_none() {
            // Only the packs name the files then.
            failed.append(&mut damaged);
        }
        // Without a snapshot only the packs tell whose word it is.
        let by_writer = snapshot.as_ref().map_or(of_writers, |snapshot| snapshot.by_writer);
        let options = &options.of_writer(by_writer);
        let mut report = match &snapshot {
            Some(snapshot) => {
                let entries = SnapshotEntries::new(chunks()?, &snapshot.body.pages);
                restore(chunks()?, entries, target, options)?
            }
            None if number.is_some() => {
                return Err(Error::NoSnapshot(number.unwrap_or(0).to_string()));
            }
            None => {
                let entries = every_entry(&mut chunks()?, &pages, &mut failed);
                restore(chunks()?, entries.into_iter().map(Ok), target, options)?
            }
        };
        let restored = report.files + report.folders + report.links + report.others;
        // Where something failed or was refused, that is told instead.
        if restored + report.unchanged + report.refused == 0
            && report.failed.is_empty()
            && failed.is_empty()
        {
            return Err(Error::NothingRecovered);
        }
        failed.append(&mut report.failed);
        report.failed = failed;
        let number = snapshot.as_ref().map(|snapshot| snapshot.number);
        Ok(RecoveryReport {
            snapshot: number,
            host: snapshot.map(|snapshot| snapshot.source),
            report,
            passed_over: damaged,
        })
    }

    /// A manifest from all trailers that open, and all pages that they name.
    fn read_packs(&self, failed: &mut Vec<SkippedItem>) -> Result<RecoveredPacks, Error> {
        let manifest = ChunkManifest::temporary()?;
        let (mut pages, mut of_writers) = (Vec::new(), false);
        self.read_trailers(self.pack_objects()?, &mut |hash, pack| {
            match pack {
                Ok(pack) => {
                    let origin = self.origin(&pack);
                    of_writers |= origin != PackOrigin::Owner;
                    manifest.add_pack(&pack, origin)?;
                    let named = pack.chunks.iter();
                    let named = named.filter(|head| head.descriptor.kind == ChunkKind::Page);
                    pages.extend(named.map(|head| head.id));
                }
                Err(error @ Error::Store { .. }) => return Err(error),
                Err(error) => name(failed, &pack_key(&hash), &error),
            }
            Ok(())
        })?;
        Ok(RecoveredPacks { manifest, pages, of_writers })
    }

    /// The snapshot to recover, and what stands in the way of a newer one.
    fn newest_readable(&self, number: Option<u64>) -> Result<RecoveredChain, Error> {
        let chain = self.walk(None)?;
        // Snapshots that the chain leads to come before those that only claim to belong to it.
        let there = [chain.loose, chain.links].concat();
        let own = SnapshotSelector { anyone: number.is_some(), ..SnapshotSelector::default() };
        let (mut newest, mut others) = (None, None);
        let mut newer = Vec::new();
        // How much was damaged up to the newest of others.
        let mut before = 0;
        for &found in there.iter().rev().filter(|&&found| number.is_none_or(|n| n == found)) {
            match self.snapshot(Some(found)) {
                Ok(snapshot) if own.has(&snapshot) => {
                    newest = Some(snapshot);
                    break;
                }
                Ok(snapshot) if others.is_none() => {
                    others = Some(snapshot);
                    before = newer.len();
                }
                Ok(_) => {}
                // A prune is no snapshot.
                Err(Error::NoSnapshot(_)) => {}
                Err(error @ Error::Store { .. }) => return Err(error),
                Err(error) => name(&mut newer, &format!("snapshot {found}"), &error),
            }
        }
        if newest.is_none() && others.is_some() {
            newer.truncate(before);
        }
        let snapshot = newest.or(others);
        // If a number was given, no newer snapshot was asked for.
        let from = snapshot.as_ref().map_or(0, |snapshot| snapshot.number);
        // A writer can tell of a link that never was, but not from so far away.
        let far = chain.next.saturating_add(MAX_HEARSAY_AHEAD);
        let unread = chain.unread.iter().filter(|one| number.is_none() && one.to > from);
        let unread = unread.filter(|one| !one.is_hearsay || one.to <= far);
        newer.extend(unread.map(|one| SkippedItem {
            path: format!("snapshot {}", one.to),
            reason: one.reason.clone(),
        }));
        Ok(RecoveredChain { snapshot, problems: chain.problems, newer })
    }
}

/// The snapshot to recover.
struct RecoveredChain {
    snapshot: Option<Snapshot>,
    /// Objects among the links that are none.
    problems: Vec<SkippedItem>,
    /// Newer snapshots that cannot be read.
    newer: Vec<SkippedItem>,
}

/// The content of the trailers of all packs that open.
struct RecoveredPacks {
    manifest: ChunkManifest,
    pages: Vec<ChunkId>,
    /// Whether any is not the owner's, as far as its header tells.
    of_writers: bool,
}

fn name(failed: &mut Vec<SkippedItem>, path: &str, error: &Error) {
    let reason = format!("{error} [{}]", error.info().code);
    failed.push(SkippedItem { path: path.to_owned(), reason });
}

/// Every file that any page names; of several for one path the one with the latest time.
fn every_entry(
    chunks: &mut ChunkReader<'_>,
    pages: &[ChunkId],
    failed: &mut Vec<SkippedItem>,
) -> Vec<SnapshotEntry> {
    let mut newest: BTreeMap<Vec<u8>, SnapshotEntry> = BTreeMap::new();
    for page in pages {
        match chunks.read(page, ChunkKind::Page).and_then(read_page) {
            Ok(entries) => {
                for entry in entries {
                    let held = newest.get(&entry.path);
                    if held.is_none_or(|held| held.mtime_ns < entry.mtime_ns) {
                        newest.insert(entry.path.clone(), entry);
                    }
                }
            }
            Err(error) => name(failed, &format!("page {page}"), &error),
        }
    }
    let mut entries: Vec<SnapshotEntry> = newest.into_values().collect();
    entries.sort_by(|a, b| compare(&a.path, &b.path));
    entries
}
