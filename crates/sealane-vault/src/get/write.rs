//! The half of a restore that writes, on a thread of its own, behind the one that opens.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender};

use rustix::fs::{Advice, FileType, Stat, fadvise};

use super::restore::{GetOptions, GetReport};
use super::target::{FileDraft, RestoreTarget, TargetFolder, finish_open};
use crate::Error;
use crate::format::page::SnapshotEntry;
use crate::put::SkippedItem;

/// Bytes of a file after which they are written out while more comes: nothing would be gained by
/// leaving gigabytes to the end, and the system's memory is needed for better things.
const FLUSH_BYTES: u64 = 64 << 20;

/// A part of a file that can be written out, and forgotten.
pub(super) struct RestoreFlush {
    file: File,
    from: u64,
    bytes: u64,
}

impl RestoreFlush {
    /// Whatever fails here, the end of the restore finds: it makes everything durable.
    pub(super) fn run(flushes: &Receiver<RestoreFlush>) {
        for RestoreFlush { file, from, bytes } in flushes {
            if file.sync_data().is_ok() {
                let bytes = std::num::NonZeroU64::new(bytes);
                let _ = fadvise(&file, from, bytes, Advice::DontNeed);
            }
        }
    }
}

/// The next thing to write. If one entry fails, the others are still written.
pub(super) enum RestoreStep {
    /// A folder that is there; mode and time come last.
    Folder(RestoredFolder),
    /// A link, a device or a pipe.
    Contentless(SnapshotEntry),
    /// Another name of a file that was restored under the second.
    HardLink(SnapshotEntry, Vec<u8>),
    /// Asks for the entries so far that could not become other names.
    Unlinked(SyncSender<Vec<SnapshotEntry>>),
    /// A file that was there already.
    Same,
    /// A draft that is so long.
    Begin(SnapshotEntry, FileDraft, u64),
    /// Content of the draft, and where it belongs.
    Data(u64, Vec<u8>),
    /// The draft has its content.
    End,
    /// The entry cannot be restored; a draft of it may have begun.
    Failed(String, Error),
}

/// A folder of the target, and which one it is.
pub(super) struct RestoredFolder {
    pub(super) entry: SnapshotEntry,
    pub(super) made: TargetFolder,
}

pub(super) struct RestoreWriter<'a> {
    pub(super) target: RestoreTarget,
    pub(super) options: &'a GetOptions,
    /// Whether an earlier restore into the target did not get to its end.
    pub(super) interrupted: bool,
    pub(super) report: GetReport,
    /// Their modes and times are set when nothing is written into them any more.
    pub(super) folders: Vec<RestoredFolder>,
    pub(super) open: Option<RestoreDraft>,
    /// Paths of files that were begun and failed: what is there is not what was to be.
    pub(super) broken: HashSet<Vec<u8>>,
    /// For links, devices and pipes with several names: the path of one that this restore has made
    /// or found right, by the path to which the others refer. What it did not look at may be
    /// somebody else's.
    pub(super) first_nodes: HashMap<Vec<u8>, Vec<u8>>,
    /// Names of files for which there is no first name to link to.
    pub(super) unlinked: Vec<SnapshotEntry>,
    /// Buffers that can be filled again.
    pub(super) spent: Sender<Vec<u8>>,
    pub(super) flushes: SyncSender<RestoreFlush>,
}

pub(super) struct RestoreDraft {
    entry: SnapshotEntry,
    draft: FileDraft,
    length: u64,
    flushed: u64,
}

impl RestoreWriter<'_> {
    /// Takes steps until there are no more, and makes all of it durable.
    pub(super) fn run(
        mut self,
        steps: &Receiver<RestoreStep>,
        target: &Path,
    ) -> Result<GetReport, Error> {
        for step in steps {
            self.step(step)?;
        }
        let owners = self.options.takes_owners();
        for RestoredFolder { entry, made } in std::mem::take(&mut self.folders).iter().rev() {
            match self.target.finish_folder(entry, *made, owners) {
                Ok(lacking) => self.lacks(entry, lacking),
                Err(error) => self.failed(entry.shown(), &error),
            }
        }
        self.target.sync(target)?;
        // The files of an earlier run are beyond doubt once all of them were looked at and found
        // right.
        let looked_at_all = self.options.paths.is_empty() && self.report.failed.is_empty();
        if !self.interrupted || looked_at_all {
            self.target.unmark();
        }
        Ok(self.report)
    }

    fn step(&mut self, step: RestoreStep) -> Result<(), Error> {
        match step {
            RestoreStep::Folder(folder) => {
                self.done(&folder.entry);
                self.folders.push(folder);
            }
            RestoreStep::Contentless(entry) => {
                let made = self.contentless(&entry);
                self.outcome(&entry, made)?;
            }
            RestoreStep::HardLink(entry, first) => {
                if self.hard_link(&entry, &first)? {
                    if let Some(progress) = &self.options.progress {
                        progress.bytes.fetch_add(entry.size(), Ordering::Relaxed);
                    }
                    self.done(&entry);
                } else {
                    self.unlinked.push(entry);
                }
            }
            RestoreStep::Unlinked(answer) => {
                let _ = answer.send(std::mem::take(&mut self.unlinked));
            }
            RestoreStep::Same => self.same(),
            RestoreStep::Begin(entry, draft, length) => {
                self.open = Some(RestoreDraft { entry, draft, length, flushed: length });
            }
            RestoreStep::Data(at, data) => {
                let draft = self.open.as_mut();
                let written = draft.map_or(Ok(()), |draft| draft.write(at, &data, &self.flushes));
                let _ = self.spent.send(data);
                if written.is_err()
                    && let Some(draft) = self.open.take()
                {
                    self.drafted(draft.entry, written)?;
                }
            }
            RestoreStep::End => {
                if let Some(draft) = self.open.take() {
                    let finished = self.finish(&draft);
                    self.drafted(draft.entry, finished)?;
                }
            }
            RestoreStep::Failed(path, error) => {
                self.open = None;
                self.failed(path, &error);
            }
        }
        Ok(())
    }

    /// Counts what came of an entry; whether it was written or there already.
    fn outcome(
        &mut self,
        entry: &SnapshotEntry,
        outcome: Result<bool, Error>,
    ) -> Result<(), Error> {
        match outcome {
            Ok(true) => self.done(entry),
            Ok(false) => self.same(),
            Err(error) if ends_all(&error) => return Err(error),
            Err(error) => self.failed(entry.shown(), &error),
        }
        Ok(())
    }

    /// Remembers a file that has failed, for its other names.
    fn drafted(&mut self, entry: SnapshotEntry, outcome: Result<(), Error>) -> Result<(), Error> {
        let failed = outcome.is_err();
        self.outcome(&entry, outcome.map(|()| true))?;
        if failed {
            self.broken.insert(entry.path);
        }
        Ok(())
    }

    fn done(&mut self, entry: &SnapshotEntry) {
        self.report.count(entry);
        self.count();
    }

    fn same(&mut self) {
        self.report.unchanged += 1;
        self.count();
    }

    fn count(&self) {
        if let Some(progress) = &self.options.progress {
            progress.files.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn failed(&mut self, path: String, error: &Error) {
        let reason = format!("{error} [{}]", error.info().code);
        self.report.failed.push(SkippedItem { path, reason });
    }

    /// Notes an attribute that the target did not take.
    fn lacks(&mut self, entry: &SnapshotEntry, lacking: Option<String>) {
        let item = lacking.map(|reason| SkippedItem { path: entry.shown(), reason });
        self.report.lacking.extend(item);
    }

    /// The object in the entry's place stays until the entry takes it.
    fn contentless(&mut self, entry: &SnapshotEntry) -> Result<bool, Error> {
        let options = self.options;
        if let Some(found) = self.target.look(&entry.path)? {
            if self.target.has_alike(entry, options) {
                self.note_node(entry);
                return Ok(false);
            }
            check_replaceable(entry, &found, options)?;
        }
        let first = entry.hard_link.as_ref().and_then(|first| self.first_nodes.get(first));
        if let Some(first) = first {
            match self.target.link_contentless(entry, first, options) {
                Ok(()) => return Ok(true),
                Err(error) if ends_all(&error) => return Err(error),
                // Made by itself it lacks only the other names.
                Err(_) => {}
            }
        }
        let lacking = self.target.contentless(entry, options)?;
        self.lacks(entry, lacking);
        self.note_node(entry);
        Ok(true)
    }

    fn note_node(&mut self, entry: &SnapshotEntry) {
        let first = entry.hard_link.as_ref().unwrap_or(&entry.path);
        self.first_nodes.insert(first.clone(), entry.path.clone());
    }

    /// Whether the file at `first` has the entry's name now. What stands in its place goes only
    /// when that file is there.
    fn hard_link(&mut self, entry: &SnapshotEntry, first: &[u8]) -> Result<bool, Error> {
        if self.broken.contains(first) {
            return Ok(false);
        }
        let mut made = self.target.hard_link(&entry.path, first);
        if matches!(made, Err(Error::TargetExists(_))) && self.options.overwrite {
            made = self.target.remove(&entry.path);
            made = made.and_then(|()| self.target.hard_link(&entry.path, first));
        }
        match made {
            Err(error) if ends_all(&error) => Err(error),
            // Whatever it is, the entry's own content may help, or find out what to say.
            made => Ok(made.is_ok()),
        }
    }

    fn finish(&mut self, draft: &RestoreDraft) -> Result<(), Error> {
        let size = draft.entry.size();
        if draft.length != size {
            draft.draft.file.set_len(size).map_err(|cause| failed(&draft.entry, cause))?;
        }
        let owners = self.options.takes_owners();
        let lacking = finish_open(&draft.draft.file, &draft.entry, owners, true)?;
        self.lacks(&draft.entry, lacking);
        self.target.publish(&draft.entry.path, &draft.draft, self.options.overwrite)
    }
}

impl RestoreDraft {
    fn write(
        &mut self,
        at: u64,
        data: &[u8],
        flushes: &SyncSender<RestoreFlush>,
    ) -> Result<(), Error> {
        self.draft.file.write_all_at(data, at).map_err(|cause| failed(&self.entry, cause))?;
        self.length = at + data.len() as u64;
        let bytes = self.length - self.flushed;
        if bytes >= FLUSH_BYTES {
            let file = self.draft.file.try_clone().map_err(|cause| failed(&self.entry, cause))?;
            // A disk that is slower than what comes is waited for here.
            let _ = flushes.send(RestoreFlush { file, from: self.flushed, bytes });
            self.flushed = self.length;
        }
        Ok(())
    }
}

/// Whether the rest would fail as well: without the store, the snapshot or the key, or without
/// room.
pub(super) fn ends_all(error: &Error) -> bool {
    match error {
        Error::Store { .. } | Error::Manifest(_) | Error::Stopped => true,
        Error::Removed(_) | Error::Rotated => true,
        Error::File { cause, .. } => cause.kind() == io::ErrorKind::StorageFull,
        _ => false,
    }
}

/// Refuses an entry in whose place stands what may not be replaced. Nothing is removed here: the
/// old file stays until the new one is verified and takes its place.
pub(super) fn check_replaceable(
    entry: &SnapshotEntry,
    found: &Stat,
    options: &GetOptions,
) -> Result<(), Error> {
    let folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if !options.overwrite || folder {
        return Err(Error::TargetExists(entry.shown()));
    }
    Ok(())
}

pub(super) fn failed(entry: &SnapshotEntry, cause: io::Error) -> Error {
    Error::File { path: entry.shown(), cause }
}
