use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};

use super::chunks::Chunks;
use super::target::{Target, finish_file};
use crate::Error;
use crate::format::chunk::ChunkKind;
use crate::format::page::{Entry, Node, Piece};
use crate::put::{Progress, Skipped};

/// How to restore.
#[derive(Debug, Clone, Default)]
pub struct GetOptions {
    /// Only these paths and what is in them; empty: all.
    pub paths: Vec<Vec<u8>>,
    /// Replace files that are there and differ.
    pub overwrite: bool,
    /// Find out what would be restored, and write nothing.
    pub dry_run: bool,
    /// Where to count what is done.
    pub progress: Option<Arc<Progress>>,
}

/// What a restore did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetReport {
    /// Files that were written, hard links counted each.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of the files, all verified.
    pub bytes: u64,
    /// Files that were there already, with the size and time that they should have.
    pub unchanged: u64,
    /// What could not be restored.
    pub failed: Vec<Skipped>,
}

impl GetOptions {
    pub(crate) fn wants(&self, path: &[u8]) -> bool {
        let inside = |wanted: &Vec<u8>| {
            let rest = path.strip_prefix(wanted.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
        };
        self.paths.is_empty() || self.paths.iter().any(inside)
    }
}

/// Restores what `entries` give.
pub(crate) fn restore(
    chunks: Chunks<'_>,
    entries: impl Iterator<Item = Result<Entry, Error>>,
    target: &Path,
    options: &GetOptions,
) -> Result<GetReport, Error> {
    let mut report = GetReport::default();
    if options.dry_run {
        for entry in entries {
            let entry = entry?;
            if options.wants(&entry.path) {
                report.count(&entry);
            }
        }
        return Ok(report);
    }
    let manifest = chunks.manifest();
    let mut restore = Restore {
        chunks,
        target: Target::open(target)?,
        options,
        report,
        folders: Vec::new(),
        first_names: HashMap::new(),
    };
    manifest.view(|| {
        for entry in entries {
            let entry = entry?;
            if options.wants(&entry.path) {
                restore.entry(entry)?;
            }
        }
        Ok(())
    })?;
    restore.finish(target)
}

struct Restore<'a> {
    chunks: Chunks<'a>,
    target: Target,
    options: &'a GetOptions,
    report: GetReport,
    /// Their modes and times are set when nothing is written into them any more.
    folders: Vec<Entry>,
    /// For files with several names: where the one was restored to which the others refer.
    first_names: HashMap<Vec<u8>, Vec<u8>>,
}

impl GetReport {
    fn count(&mut self, entry: &Entry) {
        match entry.node {
            Node::Folder => self.folders += 1,
            Node::Link { .. } => self.links += 1,
            Node::File { size, .. } => {
                self.files += 1;
                self.bytes += size;
            }
        }
    }
}

impl Restore<'_> {
    fn entry(&mut self, entry: Entry) -> Result<(), Error> {
        let outcome = match &entry.node {
            Node::Folder => self.target.folder(&entry.path).map(|()| true),
            Node::Link { target } => self.symbolic_link(&entry, target),
            Node::File { size, pieces } => self.file(&entry, *size, pieces),
        };
        match outcome {
            Ok(true) => self.report.count(&entry),
            Ok(false) => self.report.unchanged += 1,
            // Without the store or without room, the rest fails as well.
            Err(error @ (Error::Store { .. } | Error::Manifest(_))) => return Err(error),
            Err(Error::File { path, cause }) if cause.kind() == io::ErrorKind::StorageFull => {
                return Err(Error::File { path, cause });
            }
            Err(error) => {
                let reason = format!("{error} [{}]", error.info().code);
                self.report.failed.push(Skipped { path: entry.shown(), reason });
                return Ok(());
            }
        }
        if let Some(progress) = &self.options.progress {
            progress.files.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(entry.node, Node::Folder) {
            self.folders.push(entry);
        }
        Ok(())
    }

    fn symbolic_link(&mut self, entry: &Entry, target: &[u8]) -> Result<bool, Error> {
        if let Some(found) = self.target.look(&entry.path)? {
            if self.target.link_target(&entry.path).as_deref() == Some(target) {
                return Ok(false);
            }
            self.make_way(entry, &found)?;
        }
        self.target.symbolic_link(&entry.path, target)?;
        self.target.finish(entry, true)?;
        Ok(true)
    }

    fn file(&mut self, entry: &Entry, size: u64, pieces: &[Piece]) -> Result<bool, Error> {
        if let Some(found) = self.target.look(&entry.path)? {
            if is_same(entry, size, &found) {
                self.note_name(entry);
                self.progress(size);
                return Ok(false);
            }
            self.make_way(entry, &found)?;
        }
        let first = entry.hard_link.as_ref().and_then(|first| self.first_names.get(first));
        if let Some(first) = first.cloned() {
            self.target.hard_link(&entry.path, &first)?;
            self.progress(size);
            return Ok(true);
        }
        let file = self.target.draft(&entry.path)?;
        let written = self.content(&file, entry, pieces)?;
        if written != size {
            file.set_len(size).map_err(|cause| failed(entry, cause))?;
        }
        finish_file(&file, entry)?;
        self.target.publish(&entry.path)?;
        self.note_name(entry);
        Ok(true)
    }

    fn note_name(&mut self, entry: &Entry) {
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

    /// Removes what stands in an entry's place, if that is allowed.
    fn make_way(&mut self, entry: &Entry, found: &Stat) -> Result<(), Error> {
        let folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if !self.options.overwrite || folder {
            return Err(Error::TargetExists(entry.shown()));
        }
        self.target.remove(&entry.path)
    }

    /// Writes a file's content, after what an interrupted run has left of it. Gives the length that
    /// the file has then.
    fn content(&mut self, file: &File, entry: &Entry, pieces: &[Piece]) -> Result<u64, Error> {
        let left = file.metadata().map_err(|cause| failed(entry, cause))?.len();
        let (mut at, mut length) = (0, left);
        let mut resuming = left > 0;
        let mut held = Vec::new();
        for piece in self.chunks.flatten(pieces)? {
            if let Piece::Chunk { bytes, id } = piece {
                let was_resuming = resuming;
                resuming = resuming && at + bytes <= left;
                if resuming {
                    held.resize(usize::try_from(bytes).unwrap_or(0), 0);
                    file.read_exact_at(&mut held, at).map_err(|cause| failed(entry, cause))?;
                    let naming = self.chunks.vault().naming();
                    resuming = naming.id(ChunkKind::Data, &held) == id;
                }
                if was_resuming && !resuming {
                    // What is behind may stand where holes belong.
                    file.set_len(at).map_err(|cause| failed(entry, cause))?;
                    length = at;
                }
                if !resuming {
                    let data = self.chunks.data(bytes, &id)?;
                    file.write_all_at(data, at).map_err(|cause| failed(entry, cause))?;
                    length = at + bytes;
                }
            } else if resuming {
                file.set_len(at).map_err(|cause| failed(entry, cause))?;
                (length, resuming) = (at, false);
            }
            at += piece.bytes();
            self.progress(piece.bytes());
        }
        Ok(length)
    }

    fn finish(mut self, target: &Path) -> Result<GetReport, Error> {
        for folder in self.folders.iter().rev() {
            if let Err(error) = self.target.finish(folder, false) {
                let reason = format!("{error} [{}]", error.info().code);
                self.report.failed.push(Skipped { path: folder.shown(), reason });
            }
        }
        self.target.sync(target)?;
        Ok(self.report)
    }
}

/// Whether a file of the entry's size and time is there already.
fn is_same(entry: &Entry, size: u64, found: &Stat) -> bool {
    let seconds = found.st_mtime.checked_mul(1_000_000_000);
    let mtime_ns = seconds.and_then(|ns| ns.checked_add(found.st_mtime_nsec as i64));
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_size as u64 == size
        && mtime_ns == Some(entry.mtime_ns)
}

fn failed(entry: &Entry, cause: io::Error) -> Error {
    Error::File { path: entry.shown(), cause }
}
