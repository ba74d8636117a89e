use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use rustix::fs::{FileType, Stat};

use super::attributes::withhold_rights;
use super::chunks::ChunkReader;
use super::is_in;
use super::target::{MARK, RestoreTarget};
use super::write::{
    RestoreFlush, RestoreStep, RestoreWriter, RestoredFolder, check_replaceable, ends_all, failed,
};
use crate::Error;
use crate::format::chunk::{ChunkId, ChunkKind};
use crate::format::page::{FilePiece, SnapshotEntry, SnapshotEntryKind};
use crate::limits::{MAX_CHUNK_BYTES, MAX_STEPS_AHEAD};
use crate::put::{PutProgress, SkippedItem};

/// How to restore.
#[derive(Debug, Clone, Default)]
pub struct GetOptions {
    /// Only these paths and what is in them; empty: all.
    pub paths: Vec<Vec<u8>>,
    /// Replace files that are there and differ.
    pub overwrite: bool,
    /// Find out what would be restored, and write nothing.
    pub dry_run: bool,
    /// Leave everything to who restores, instead of giving it its owners, which only root can.
    pub no_owner: bool,
    /// Take owners, setuid bits, devices, and attributes that give rights from a writer's snapshot,
    /// too. A writer may say what it likes, so that what it kept otherwise belongs to who restores.
    pub trust_modes: bool,
    /// Where to count what is done.
    pub progress: Option<Arc<PutProgress>>,
}

/// The outcome of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetReport {
    /// Files that were written, hard links counted each.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Devices and pipes.
    pub others: u64,
    /// Bytes of the files, all verified.
    pub bytes: u64,
    /// Files that were there already, with the size and time that they should have.
    pub unchanged: u64,
    /// Entries of a writer's snapshot that did not get the owner, the setuid bits or the rights
    /// that it names.
    pub withheld: u64,
    /// Devices of a writer's snapshot, which were not made.
    pub refused: u64,
    /// Entries that were restored, and have an attribute less: the target's file system does not
    /// take it.
    pub lacking: Vec<SkippedItem>,
    /// Entries that could not be restored.
    pub failed: Vec<SkippedItem>,
}

/// Bits by which a program runs as somebody else than who starts it.
const SET_ID_BITS: u32 = 0o6000;

impl GetOptions {
    /// The same for what was signed by who is only half trusted, or by nobody knows whom.
    pub(crate) fn of_writer(&self, by_writer: bool) -> GetOptions {
        let withholds = by_writer && !self.trust_modes;
        GetOptions { no_owner: self.no_owner || withholds, trust_modes: !withholds, ..self.clone() }
    }

    pub(super) fn takes_owners(&self) -> bool {
        !self.no_owner
    }

    /// Takes from an entry what its signer is not trusted with; gives whether it named any.
    pub(crate) fn withhold(&self, entry: &mut SnapshotEntry) -> bool {
        if self.trust_modes {
            return false;
        }
        let mut had = entry.mode & SET_ID_BITS != 0;
        entry.mode &= !SET_ID_BITS;
        had |= withhold_rights(entry);
        let user = rustix::process::geteuid();
        had || user.is_root() && entry.uid != user.as_raw()
    }

    /// Whether an entry is not made at all: a device of a half-trusted signer may be this machine's
    /// disk, for all to read.
    pub(crate) fn refuses(&self, entry: &SnapshotEntry) -> bool {
        !self.trust_modes && matches!(entry.node, SnapshotEntryKind::Device(_))
    }

    /// Whether a path is one of those, or in one.
    pub fn wants(&self, path: &[u8]) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|wanted| is_in(path, wanted))
    }
}

/// Restores what `entries` give. Paths of which they give nothing are named as failed, and if
/// nothing is wanted of them at all, the target stays as it was.
pub(crate) fn restore(
    chunks: ChunkReader<'_>,
    entries: impl Iterator<Item = Result<SnapshotEntry, Error>>,
    target: &Path,
    options: &GetOptions,
) -> Result<GetReport, Error> {
    let mut missing: Vec<&Vec<u8>> = options.paths.iter().collect();
    let (mut withheld, mut refused) = (0, 0);
    let mut report = {
        let wanted = entries.filter(|entry| {
            let Ok(entry) = entry else { return true };
            missing.retain(|wanted| !is_in(&entry.path, wanted));
            options.wants(&entry.path)
        });
        let wanted = wanted.filter_map(|entry| {
            let Ok(mut entry) = entry else { return Some(entry) };
            if options.refuses(&entry) {
                refused += 1;
                return None;
            }
            withheld += u64::from(options.withhold(&mut entry));
            Some(Ok(entry))
        });
        let mut wanted = wanted.peekable();
        let nothing = !options.paths.is_empty() && wanted.peek().is_none();
        match (nothing, options.dry_run) {
            (true, _) => GetReport::default(),
            (false, true) => count(wanted)?,
            (false, false) => write(chunks, wanted, target, options)?,
        }
    };
    (report.withheld, report.refused) = (withheld, refused);
    report.failed.extend(missing.into_iter().map(|path| {
        let path = String::from_utf8_lossy(path).into_owned();
        let error = Error::NoEntry(path.clone());
        SkippedItem { path, reason: format!("{error} [{}]", error.info().code) }
    }));
    Ok(report)
}

/// Restores all that `entries` give.
fn write(
    chunks: ChunkReader<'_>,
    entries: impl Iterator<Item = Result<SnapshotEntry, Error>>,
    target: &Path,
    options: &GetOptions,
) -> Result<GetReport, Error> {
    let manifest = chunks.manifest();
    let root = RestoreTarget::open(target)?;
    let interrupted = root.mark(target)?;
    let (spent, empty) = channel();
    let (flushes, flushed) = sync_channel(1);
    let writer = RestoreWriter {
        target: root.again(target)?,
        options,
        interrupted,
        report: GetReport::default(),
        folders: Vec::new(),
        open: None,
        broken: HashSet::new(),
        first_nodes: HashMap::new(),
        unlinked: Vec::new(),
        spent,
        flushes,
    };
    std::thread::scope(|scope| {
        let (steps, taken) = sync_channel(MAX_STEPS_AHEAD);
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let flushing =
            named("vault flush").spawn_scoped(scope, move || RestoreFlush::run(&flushed));
        flushing.map_err(|_| Error::Thread)?;
        let writing = named("vault write").spawn_scoped(scope, move || writer.run(&taken, target));
        let writing = writing.map_err(|_| Error::Thread)?;
        let first_names = HashMap::new();
        let mut restore = RestoreFetcher {
            chunks,
            target: root,
            options,
            interrupted,
            first_names,
            steps,
            empty,
        };
        let read = manifest.view(|| {
            for entry in entries {
                match entry {
                    Ok(entry) => restore.entry(entry)?,
                    // The entries of the other pages are restored without it.
                    Err(error) if error.is_damage() => {
                        restore.give(RestoreStep::Failed(
                            "a page of the snapshot".to_owned(),
                            error,
                        ))?;
                    }
                    Err(error) => return Err(error),
                }
            }
            restore.unlinked()
        });
        drop(restore);
        let written = writing.join().unwrap_or(Err(Error::Library("thread")));
        match (read, written) {
            (Ok(()), written) => written,
            // That the writer has stopped is not why.
            (Err(Error::Stopped), Err(error)) | (Err(error), _) => Err(error),
        }
    })
}

/// The counts of a restore into an empty target.
fn count(entries: impl Iterator<Item = Result<SnapshotEntry, Error>>) -> Result<GetReport, Error> {
    let mut report = GetReport::default();
    for entry in entries {
        match entry {
            Ok(entry) => report.count(&entry),
            Err(error) if error.is_damage() => {
                let path = "a page of the snapshot".to_owned();
                report.failed.push(SkippedItem { path, reason: error.named() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// The half of a restore that fetches, opens and verifies, and finds out what is there already.
struct RestoreFetcher<'a> {
    chunks: ChunkReader<'a>,
    target: RestoreTarget,
    options: &'a GetOptions,
    /// Whether an earlier restore into the target did not get to its end.
    interrupted: bool,
    /// For files with several names: where the one was restored to which the others refer.
    first_names: HashMap<Vec<u8>, Vec<u8>>,
    steps: SyncSender<RestoreStep>,
    empty: Receiver<Vec<u8>>,
}

impl GetReport {
    /// Whether all that was wanted are devices of a writer, and the folders that they are in.
    pub fn refused_all(&self) -> bool {
        let done = self.files + self.links + self.others + self.unchanged;
        self.refused > 0 && done == 0
    }

    pub(super) fn count(&mut self, entry: &SnapshotEntry) {
        match entry.node {
            SnapshotEntryKind::Folder => self.folders += 1,
            SnapshotEntryKind::Link { .. } => self.links += 1,
            SnapshotEntryKind::Device(_) | SnapshotEntryKind::Fifo => self.others += 1,
            SnapshotEntryKind::File { size, .. } => {
                self.files += 1;
                self.bytes += size;
            }
        }
    }
}

impl RestoreFetcher<'_> {
    fn entry(&mut self, entry: SnapshotEntry) -> Result<(), Error> {
        let path = entry.shown();
        let handed = match &entry.node {
            // The mark stands there, and is taken away in the end with what lies in its place.
            _ if is_in(&entry.path, MARK.as_bytes()) => Err(Error::TargetExists(path.clone())),
            SnapshotEntryKind::Folder => match self.target.folder(&entry.path) {
                Ok(made) => self.give(RestoreStep::Folder(RestoredFolder { entry, made })),
                Err(error) => Err(error),
            },
            SnapshotEntryKind::File { .. } => self.file(entry),
            SnapshotEntryKind::Link { .. }
            | SnapshotEntryKind::Device(_)
            | SnapshotEntryKind::Fifo => self.give(RestoreStep::Contentless(entry)),
        };
        match handed {
            Ok(()) => Ok(()),
            Err(error) if ends_all(&error) => Err(error),
            Err(error) => self.give(RestoreStep::Failed(path, error)),
        }
    }

    /// Restores names whose first name has failed from their own content: of those of one file the
    /// first, to which the others are linked then. So each round leaves fewer.
    fn unlinked(&mut self) -> Result<(), Error> {
        loop {
            let (answer, answered) = sync_channel(1);
            self.give(RestoreStep::Unlinked(answer))?;
            let entries = answered.recv().map_err(|_| Error::Stopped)?;
            if entries.is_empty() {
                return Ok(());
            }
            for first in entries.iter().filter_map(|entry| entry.hard_link.as_ref()) {
                self.first_names.remove(first);
            }
            for entry in entries {
                self.entry(entry)?;
            }
        }
    }

    /// Waits while the writer has enough to do.
    fn give(&self, step: RestoreStep) -> Result<(), Error> {
        self.steps.send(step).map_err(|_| Error::Stopped)
    }

    fn file(&mut self, mut entry: SnapshotEntry) -> Result<(), Error> {
        if let Some(found) = self.target.look(&entry.path)? {
            if self.is_same(&entry, &found) && self.is_right(&entry)? {
                self.note_name(&entry);
                self.progress(entry.size());
                return self.give(RestoreStep::Same);
            }
            check_replaceable(&entry, &found, self.options)?;
        }
        let first = entry.hard_link.as_ref().and_then(|first| self.first_names.get(first));
        if let Some(first) = first.cloned() {
            return self.give(RestoreStep::HardLink(entry, first));
        }
        let SnapshotEntryKind::File { pieces, .. } = &mut entry.node else { return Ok(()) };
        let pieces = std::mem::take(pieces);
        let file = self.target.draft(&entry.path, entry.size())?;
        let kept = self.kept(&file.file, &entry, &pieces)?;
        let name = entry.hard_link.clone().unwrap_or_else(|| entry.path.clone());
        let path = entry.path.clone();
        self.give(RestoreStep::Begin(entry, file, kept.length))?;
        self.content(&pieces, kept.pieces)?;
        self.first_names.entry(name).or_insert(path);
        self.give(RestoreStep::End)
    }

    /// Whether a file of the entry's size and time is there already. Where root restores, somebody
    /// else's file is not the one that would be restored, whatever it looks like.
    fn is_same(&self, entry: &SnapshotEntry, found: &Stat) -> bool {
        let user = rustix::process::geteuid();
        let owner = if self.options.takes_owners() { entry.uid } else { user.as_raw() };
        let seconds = found.st_mtime.checked_mul(1_000_000_000);
        let mtime_ns = seconds.and_then(|ns| ns.checked_add(found.st_mtime_nsec as i64));
        FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_size as u64 == entry.size()
            && mtime_ns == Some(entry.mtime_ns)
            && (!user.is_root() || found.st_uid == owner)
    }

    /// Whether a file of the right size and time has the right content. That can be trusted unless
    /// a restore was interrupted: a machine that stopped then may have kept size and time, and not
    /// the content.
    fn is_right(&mut self, entry: &SnapshotEntry) -> Result<bool, Error> {
        let SnapshotEntryKind::File { pieces, .. } = &entry.node else { return Ok(false) };
        if !self.interrupted {
            return Ok(true);
        }
        let file = self.target.open_file(&entry.path)?;
        let mut held = Vec::new();
        let mut at = 0;
        for piece in pieces {
            for part in self.chunks.parts(piece)? {
                // Into a hole nothing was written that could be lost.
                if let FilePiece::Chunk { bytes, id } = part {
                    let holds = self.holds(&file, at, bytes, &id, &mut held);
                    if !holds.map_err(|cause| failed(entry, cause))? {
                        return Ok(false);
                    }
                }
                at += part.bytes();
            }
        }
        Ok(true)
    }

    /// Whether a chunk lies at a place of a file.
    fn holds(
        &self,
        file: &File,
        at: u64,
        bytes: u64,
        id: &ChunkId,
        held: &mut Vec<u8>,
    ) -> io::Result<bool> {
        // No chunk is longer, whatever the snapshot says.
        let Some(bytes) = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MAX_CHUNK_BYTES)
        else {
            return Ok(false);
        };
        held.resize(bytes, 0);
        file.read_exact_at(held, at)?;
        Ok(self.chunks.vault().naming().id(ChunkKind::Data, held) == *id)
    }

    fn note_name(&mut self, entry: &SnapshotEntry) {
        let first = entry.hard_link.as_ref().unwrap_or(&entry.path);
        // Only names that another entry may refer to are worth remembering, and which those are is
        // not known; a snapshot of many files with one name each needs their paths in memory.
        self.first_names.entry(first.clone()).or_insert_with(|| entry.path.clone());
    }

    fn progress(&self, bytes: u64) {
        if let Some(progress) = &self.options.progress {
            progress.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The correct pieces of a file that an interrupted run has left. The rest is cut off, for it
    /// may stand where holes belong.
    fn kept(
        &mut self,
        file: &File,
        entry: &SnapshotEntry,
        pieces: &[FilePiece],
    ) -> Result<RestoredPieces, Error> {
        let left = file.metadata().map_err(|cause| failed(entry, cause))?.len();
        let mut kept = RestoredPieces { pieces: 0, length: 0 };
        if left == 0 {
            return Ok(kept);
        }
        let mut held = Vec::new();
        'file: for piece in pieces {
            for part in self.chunks.parts(piece)? {
                let FilePiece::Chunk { bytes, id } = part else { break 'file };
                if kept.length + bytes > left {
                    break 'file;
                }
                let holds = self.holds(file, kept.length, bytes, &id, &mut held);
                if !holds.map_err(|cause| failed(entry, cause))? {
                    break 'file;
                }
                kept = RestoredPieces { pieces: kept.pieces + 1, length: kept.length + bytes };
            }
        }
        if kept.length < left {
            file.set_len(kept.length).map_err(|cause| failed(entry, cause))?;
        }
        Ok(kept)
    }

    /// Hands on what of a file is not there yet.
    fn content(&mut self, pieces: &[FilePiece], kept: usize) -> Result<(), Error> {
        let (mut at, mut number) = (0, 0);
        for piece in pieces {
            for part in self.chunks.parts(piece)? {
                if let FilePiece::Chunk { bytes, id } = &part
                    && number >= kept
                {
                    let mut data = self.empty.try_recv().unwrap_or_default();
                    self.chunks.take(*bytes, id, &mut data)?;
                    self.give(RestoreStep::Data(at, data))?;
                }
                number += 1;
                at += part.bytes();
                self.progress(part.bytes());
            }
        }
        Ok(())
    }
}

/// Pieces of a draft that are right, and where they end.
struct RestoredPieces {
    pieces: usize,
    length: u64,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;
    use crate::format::page::{DeviceKind, DeviceNode};
    use crate::{Argon2Cost, OpenOptions, Vault, VaultMetadata, VaultStore};

    fn vault(folder: &Path) -> Vault {
        let store = VaultStore::open(folder.join("vault").to_str().unwrap()).unwrap();
        let state = Some(folder.join("state"));
        let options = OpenOptions { state, ..OpenOptions::default() };
        let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
        Vault::init(store, b"secret", cost, VaultMetadata::Sealed, &options).unwrap()
    }

    /// Somebody who may write to the target puts something of another there, before what was made
    /// gets its owner, mode and time.
    #[test]
    fn what_took_the_place_of_a_folder_gets_no_owner_mode_or_time() {
        type Swap = fn(&Path, &Path);
        let swaps: [(&str, bool, Swap); 4] = [
            ("a link", true, |at, foreign| symlink(foreign, at).unwrap()),
            ("a folder", true, |at, foreign| fs::rename(foreign, at).unwrap()),
            ("a file", false, |at, foreign| fs::hard_link(foreign, at).unwrap()),
            ("a pipe", false, |at, foreign| {
                fs::remove_file(foreign).unwrap();
                mknodat(CWD, foreign, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
                fs::rename(foreign, at).unwrap();
            }),
        ];
        let look = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.mode(), found.uid(), found.mtime())
        };
        for (what, is_folder, swap) in swaps {
            let folder = tempfile::tempdir().unwrap();
            let vault = vault(folder.path());
            let chunks = ChunkReader::new(&vault, vault.manifest()).unwrap();
            let (target, foreign) = (folder.path().join("target"), folder.path().join("foreign"));
            if is_folder { fs::create_dir(&foreign) } else { fs::write(&foreign, b"") }.unwrap();
            let made = target.join("a/b");
            let mut before = None;
            let entry = |path: &[u8]| SnapshotEntry {
                path: path.to_vec(),
                mode: 0o4777,
                uid: 12_345,
                gid: 12_345,
                mtime_ns: 1,
                node: SnapshotEntryKind::Folder,
                hard_link: None,
                attributes: Vec::new(),
            };
            let mut entries = [entry(b"a"), entry(b"a/b")].into_iter();
            let entries = std::iter::from_fn(|| {
                let next = entries.next();
                if next.is_none() && before.is_none() {
                    fs::rename(&made, folder.path().join("moved")).unwrap();
                    swap(&made, &foreign);
                    before = Some(look(&made));
                }
                next.map(Ok)
            });
            let report = restore(chunks, entries, &target, &GetOptions::default()).unwrap();
            assert_eq!(report.failed.len(), 1, "{what}: {:?}", report.failed);
            assert_eq!(report.failed[0].path, "a/b", "{what}");
            assert_eq!(Some(look(&made)), before, "{what}");
            // The folder above was not exchanged.
            assert_eq!(fs::metadata(target.join("a")).unwrap().mode() & 0o777, 0o777, "{what}");
        }
    }

    #[test]
    fn devices_of_a_writer_are_counted_apart() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path());
        let target = folder.path().join("target");
        let entry = |path: &[u8], node| SnapshotEntry {
            path: path.to_vec(),
            mode: 0o600,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            mtime_ns: 1,
            node,
            hard_link: None,
            attributes: Vec::new(),
        };
        let null = DeviceNode { kind: DeviceKind::Character, major: 1, minor: 3 };
        let null = entry(b"null", SnapshotEntryKind::Device(null));
        let pipe = entry(b"pipe", SnapshotEntryKind::Fifo);
        for (entries, others) in [(vec![null.clone()], 0), (vec![null, pipe], 1)] {
            let chunks = ChunkReader::new(&vault, vault.manifest()).unwrap();
            let entries = entries.into_iter().map(Ok);
            let report = restore(chunks, entries, &target, &GetOptions::default()).unwrap();
            assert_eq!((report.refused, report.withheld, report.others), (1, 0, others));
            assert_eq!(report.refused_all(), others == 0);
            assert!(target.join("null").symlink_metadata().is_err());
        }
    }

    #[test]
    fn the_target_is_marked_while_a_restore_runs_and_not_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault(folder.path());
        let chunks = ChunkReader::new(&vault, vault.manifest()).unwrap();
        let target = folder.path().join("target");
        let mark = target.join(".sealane-restoring");
        let mut marked = false;
        let entries = std::iter::from_fn(|| {
            marked = mark.exists();
            None
        });
        restore(chunks, entries, &target, &GetOptions::default()).unwrap();
        assert!(marked);
        assert!(!mark.exists());
    }
}
