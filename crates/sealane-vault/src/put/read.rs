use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{SystemTime, UNIX_EPOCH};

use super::attributes::{AttributeSource, OPEN, WalkedInode, is_bare, replaced};
use super::claim::ChunkClaims;
use super::walk;
use super::{LeftOutItems, PutContent, PutEntry, PutJob, PutProgress, PutStep, SkippedItem};
use crate::Error;
use crate::chunker::Chunker;
use crate::format::chunk::ChunkId;
use crate::format::page::{
    DeviceKind, DeviceNode, EntryAttribute, FilePiece, SnapshotEntry, SnapshotEntryKind, is_path,
};
use crate::limits::MAX_CHUNK_BYTES;
use crate::manifest::{ChunkManifest, VaultFileStat};

/// Plaintext at which a job is handed on.
const JOB_BYTES: usize = 1 << 20;
/// Steps at which a job is handed on.
const JOB_STEPS: usize = 4096;
/// Bytes that are read before they are cut.
const WINDOW_BYTES: usize = 2 * MAX_CHUNK_BYTES;
/// A file that changed so shortly before it was read may change again within the same tick of the
/// file system's clock, and look the same.
const TICK_NS: i64 = 50_000_000;

/// Reads contents and cuts them, and hands them on in jobs.
pub(super) struct PutReader<'a> {
    pub(super) chunker: &'a Chunker,
    pub(super) manifest: &'a ChunkManifest,
    pub(super) claims: &'a ChunkClaims,
    pub(super) progress: Option<&'a PutProgress>,
    jobs: PutJobQueue,
    window: Vec<u8>,
    names: HashMap<(u64, u64), Vec<u8>>,
    /// Files that changed while they were read.
    changed: Vec<String>,
}

/// Empty jobs in, full ones out, in turn.
pub(super) struct PutJobQueue {
    pub(super) empty: Receiver<PutJob>,
    pub(super) full: Vec<Sender<PutJob>>,
    pub(super) next: u64,
    pub(super) open: Option<PutJob>,
}

impl PutJobQueue {
    fn open(&mut self) -> Result<&mut PutJob, Error> {
        match &mut self.open {
            Some(job) => Ok(job),
            open => {
                let mut job = self.empty.recv().map_err(|_| Error::Stopped)?;
                job.plain.clear();
                job.steps.clear();
                job.attributes = 0;
                job.number = self.next;
                Ok(open.insert(job))
            }
        }
    }

    fn hand_on(&mut self) -> Result<(), Error> {
        let Some(job) = self.open.take() else { return Ok(()) };
        let turn = usize::try_from(self.next).unwrap_or(0) % self.full.len().max(1);
        self.next += 1;
        let thread = self.full.get(turn).ok_or(Error::Stopped)?;
        thread.send(job).map_err(|_| Error::Stopped)
    }

    fn step(&mut self, step: PutStep) -> Result<(), Error> {
        let job = self.open()?;
        if let PutStep::Entry(found) = &step {
            let bytes = |one: &EntryAttribute| one.name.len() + one.value.len();
            job.attributes += found.entry.attributes.iter().map(bytes).sum::<usize>();
        }
        job.steps.push(step);
        let is_full = job.steps.len() >= JOB_STEPS || job.attributes >= JOB_BYTES;
        if is_full { self.hand_on() } else { Ok(()) }
    }

    fn chunk(&mut self, data: &[u8]) -> Result<(), Error> {
        let held = self.open.as_ref().map_or(0, |job| job.plain.len());
        if held > 0 && held + data.len() > JOB_BYTES {
            self.hand_on()?;
        }
        let job = self.open()?;
        let from = job.plain.len();
        job.plain.extend_from_slice(data);
        let plain = from..job.plain.len();
        self.step(PutStep::Chunk { plain, id: ChunkId([0; 24]), sealed: None })
    }
}

impl<'a> PutReader<'a> {
    pub(super) fn new(
        chunker: &'a Chunker,
        manifest: &'a ChunkManifest,
        claims: &'a ChunkClaims,
        progress: Option<&'a PutProgress>,
        jobs: PutJobQueue,
    ) -> Self {
        let (window, names) = (vec![0; WINDOW_BYTES], HashMap::new());
        let changed = Vec::new();
        Self { chunker, manifest, claims, progress, jobs, window, names, changed }
    }

    /// Hands on what is left, and gives the files that changed while they were read.
    pub(super) fn finish(mut self) -> Result<Vec<String>, Error> {
        self.jobs.hand_on()?;
        Ok(self.changed)
    }

    /// Takes what the walk came by.
    pub(super) fn visit(
        &mut self,
        step: &walk::WalkStep<'_>,
        left_out: &mut LeftOutItems,
    ) -> Result<(), Error> {
        let item = |reason: &str| {
            let path = step.absolute.display().to_string();
            SkippedItem { path, reason: reason.to_owned() }
        };
        if !is_path(step.path) {
            left_out.skipped.push(item("its path is too long"));
            return Ok(());
        }
        let kept = match kind_of(step) {
            Ok(None) => {
                left_out.passed.push(item("a socket lasts as long as its program: it is not kept"));
                return Ok(());
            }
            Ok(Some(SnapshotEntryKind::File { .. })) => self.file(step, left_out),
            Ok(Some(node)) => self.other(step, node, left_out),
            Err(cause) => Err(Error::file(step.absolute, cause)),
        };
        match kept {
            Err(Error::File { cause, .. }) => {
                left_out.skipped.push(item(&cause.to_string()));
                Ok(())
            }
            other => other,
        }
    }

    /// Takes a folder, link, device or pipe.
    fn other(
        &mut self,
        step: &walk::WalkStep<'_>,
        node: SnapshotEntryKind,
        left_out: &mut LeftOutItems,
    ) -> Result<(), Error> {
        let mut entry = SnapshotEntry { node, ..entry(step.path, step.metadata) };
        dress_walked(&mut entry, step, left_out)?;
        if !step.metadata.is_dir() && step.metadata.nlink() > 1 {
            let names = &mut self.names;
            let key = (step.metadata.dev(), step.metadata.ino());
            match names.get(&key) {
                Some(first) => entry.hard_link = Some(first.clone()),
                None => drop(names.insert(key, step.path.to_vec())),
            }
        }
        self.entry(entry, PutContent::Whole, Vec::new(), false)
    }

    fn entry(
        &mut self,
        entry: SnapshotEntry,
        content: PutContent,
        absolute: Vec<u8>,
        has_other_names: bool,
    ) -> Result<(), Error> {
        let found = PutEntry { entry, content, absolute, has_other_names };
        self.jobs.step(PutStep::Entry(Box::new(found)))
    }

    fn file(
        &mut self,
        step: &walk::WalkStep<'_>,
        left_out: &mut LeftOutItems,
    ) -> Result<(), Error> {
        let metadata = step.metadata;
        let has_other_names = metadata.nlink() > 1;
        let mut entry = entry(step.path, metadata);
        if has_other_names {
            let key = (metadata.dev(), metadata.ino());
            if let Some(first) = self.names.get(&key) {
                let first = first.clone();
                dress_walked(&mut entry, step, left_out)?;
                self.count(metadata.len());
                return self.entry(entry, PutContent::Same(first), Vec::new(), false);
            }
        }
        let absolute = step.absolute.as_os_str().as_bytes();
        if let Some(pieces) = self.unchanged(absolute, &look(metadata))? {
            entry.node = SnapshotEntryKind::File { size: metadata.len(), pieces };
            dress_walked(&mut entry, step, left_out)?;
            self.entry(entry, PutContent::Whole, Vec::new(), has_other_names)?;
            self.count(metadata.len());
        } else {
            let mut file = open(step.absolute)?;
            // The file that was opened may not be the one that the walk saw.
            let opened = metadata_of(&file, step.absolute)?;
            if !opened.is_file() {
                return Err(Error::file(step.absolute, replaced()));
            }
            let started = now_ns();
            let mut entry = self::entry(step.path, &opened);
            dress(&mut entry, AttributeSource::File(&file), step.absolute, left_out);
            self.entry(entry, PutContent::Follows, absolute.to_vec(), has_other_names)?;
            let read = self.content(&mut file, &opened, step.absolute);
            let after = metadata_of(&file, step.absolute).map(|metadata| look(&metadata)).ok();
            if after.as_ref().is_some_and(|after| *after != look(&opened)) {
                self.changed.push(step.absolute.display().to_string());
            }
            let settled =
                after.filter(|after| *after == look(&opened) && after.ctime_ns + TICK_NS < started);
            self.jobs.step(if read.is_ok() { PutStep::End(settled) } else { PutStep::Abandon })?;
            read?;
        }
        if has_other_names {
            self.names.insert((metadata.dev(), metadata.ino()), step.path.to_vec());
        }
        Ok(())
    }

    /// The pieces of a file that looks as it did when it was kept, if all of them are still there.
    fn unchanged(
        &self,
        absolute: &[u8],
        look: &VaultFileStat,
    ) -> Result<Option<Vec<FilePiece>>, Error> {
        let seen = self.manifest.seen(absolute)?.filter(|(seen, _)| seen == look);
        let is_kept = |piece: &FilePiece| match piece {
            FilePiece::Chunk { id, .. } => self.claims.is_kept(id),
            FilePiece::Hole { .. } => true,
            FilePiece::List { .. } => false,
        };
        Ok(seen.map(|(_, pieces)| pieces).filter(|pieces| pieces.iter().all(is_kept)))
    }

    fn count(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress.files.fetch_add(1, Ordering::Relaxed);
            progress.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn content(&mut self, file: &mut File, metadata: &Metadata, path: &Path) -> Result<(), Error> {
        let failed = |cause| Error::file(path, cause);
        if metadata.blocks() * 512 >= metadata.len() {
            self.stream(&mut NamedReader { read: file, path })?;
        } else {
            let mut at = 0;
            while at < metadata.len() {
                let data = seek(file, SeekFrom::Start(at), true, metadata.len()).map_err(failed)?;
                if data > at {
                    self.jobs.step(PutStep::Hole(data - at))?;
                }
                let hole = seek(file, SeekFrom::Start(data), false, metadata.len());
                let hole = hole.map_err(failed)?;
                file.seek(SeekFrom::Start(data)).map_err(failed)?;
                self.stream(&mut NamedReader { read: &mut file.take(hole - data), path })?;
                if hole <= at {
                    break;
                }
                at = hole;
            }
        }
        self.count(0);
        Ok(())
    }

    /// Cuts and hands on all that `source` has.
    pub(super) fn stream(&mut self, source: &mut NamedReader<'_>) -> Result<(), Error> {
        let mut window = std::mem::take(&mut self.window);
        let outcome = self.stream_through(source, &mut window);
        self.window = window;
        outcome
    }

    fn stream_through(
        &mut self,
        source: &mut NamedReader<'_>,
        window: &mut [u8],
    ) -> Result<(), Error> {
        let mut held = 0;
        let mut ended = false;
        while !ended {
            while held < window.len() {
                let count = source.read(window.get_mut(held..).unwrap_or_default())?;
                held += count;
                if let Some(progress) = self.progress {
                    progress.bytes.fetch_add(count as u64, Ordering::Relaxed);
                }
                if count == 0 {
                    ended = true;
                    break;
                }
            }
            let mut from = 0;
            while held - from >= MAX_CHUNK_BYTES || ended && held > from {
                let data = window.get(from..held).unwrap_or_default();
                let cut = self.chunker.cut(data);
                self.jobs.chunk(data.get(..cut).unwrap_or_default())?;
                from += cut;
            }
            window.copy_within(from..held, 0);
            held -= from;
        }
        Ok(())
    }

    /// Takes one entry that has no content.
    pub(super) fn whole(&mut self, entry: SnapshotEntry) -> Result<(), Error> {
        self.entry(entry, PutContent::Whole, Vec::new(), false)
    }

    /// Takes one entry whose content comes from a reader.
    pub(super) fn reader(
        &mut self,
        entry: SnapshotEntry,
        source: &mut dyn Read,
    ) -> Result<(), Error> {
        let path = entry.shown();
        self.entry(entry, PutContent::Follows, Vec::new(), false)?;
        self.stream(&mut NamedReader { read: source, path: Path::new(&path) })?;
        self.count(0);
        self.jobs.step(PutStep::End(None))
    }
}

/// A reader whose errors say what it reads.
pub(super) struct NamedReader<'a> {
    pub(super) read: &'a mut dyn Read,
    pub(super) path: &'a Path,
}

impl NamedReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        loop {
            match self.read.read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(|cause| Error::file(self.path, cause)),
            }
        }
    }
}

/// The kind of the item that the walk came by; none for a socket.
fn kind_of(step: &walk::WalkStep<'_>) -> io::Result<Option<SnapshotEntryKind>> {
    let kind = step.metadata.file_type();
    let device = |kind| {
        let number = step.metadata.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        SnapshotEntryKind::Device(DeviceNode { kind, major, minor })
    };
    Ok(Some(match () {
        () if kind.is_file() => SnapshotEntryKind::File { size: 0, pieces: Vec::new() },
        () if kind.is_dir() => SnapshotEntryKind::Folder,
        () if kind.is_symlink() => {
            let target = std::fs::read_link(step.absolute)?.into_os_string().into_vec();
            SnapshotEntryKind::Link { target }
        }
        () if kind.is_fifo() => SnapshotEntryKind::Fifo,
        () if kind.is_char_device() => device(DeviceKind::Character),
        () if kind.is_block_device() => device(DeviceKind::Block),
        () => return Ok(None),
    }))
}

/// Gives an entry the attributes of what the walk has looked at. If something else is in its place
/// by now, the entry fails.
fn dress_walked(
    entry: &mut SnapshotEntry,
    step: &walk::WalkStep<'_>,
    left_out: &mut LeftOutItems,
) -> Result<(), Error> {
    let path = step.absolute;
    if is_bare(path) {
        return Ok(());
    }
    let found = WalkedInode::find(path, step.metadata).map_err(|cause| Error::file(path, cause))?;
    dress(entry, found.attributes(), path, left_out);
    Ok(())
}

/// Gives an entry its attributes. One without them is kept, and named: its content counts for more.
fn dress(
    entry: &mut SnapshotEntry,
    source: AttributeSource<'_>,
    path: &Path,
    left_out: &mut LeftOutItems,
) {
    let reason = match source.read() {
        Ok(Some(attributes)) => {
            entry.attributes = attributes;
            return;
        }
        Ok(None) => "its extended attributes are too long: it is kept without them".to_owned(),
        Err(errno) => format!("its extended attributes cannot be read: {errno}"),
    };
    left_out.skipped.push(SkippedItem { path: path.display().to_string(), reason });
}

fn open(path: &Path) -> Result<File, Error> {
    let opened = OpenOptions::new().read(true).custom_flags(OPEN.bits() as i32).open(path);
    opened.map_err(|cause| Error::file(path, cause))
}

fn metadata_of(file: &File, path: &Path) -> Result<Metadata, Error> {
    file.metadata().map_err(|cause| Error::file(path, cause))
}

/// The next data or hole at or behind a place; the end of the file if there is none.
fn seek(file: &File, at: SeekFrom, data: bool, end: u64) -> io::Result<u64> {
    let SeekFrom::Start(at) = at else { return Ok(end) };
    let to = if data { rustix::fs::SeekFrom::Data(at) } else { rustix::fs::SeekFrom::Hole(at) };
    match rustix::fs::seek(file, to) {
        Ok(found) => Ok(found.min(end)),
        Err(rustix::io::Errno::NXIO) => Ok(end),
        // A file system without holes has all data.
        Err(rustix::io::Errno::INVAL) => Ok(if data { at } else { end }),
        Err(errno) => Err(errno.into()),
    }
}

fn entry(path: &[u8], metadata: &Metadata) -> SnapshotEntry {
    SnapshotEntry {
        path: path.to_vec(),
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        node: SnapshotEntryKind::Folder,
        hard_link: None,
        attributes: Vec::new(),
    }
}

fn look(metadata: &Metadata) -> VaultFileStat {
    VaultFileStat {
        size: metadata.len(),
        mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}

fn nanoseconds(seconds: i64, part: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(part)
}

/// The clock, in nanoseconds since 1970-01-01 UTC.
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mknodat};

    use super::*;

    /// A user swaps a folder with a link once the walk has been there.
    #[test]
    fn no_attribute_of_another_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (own, foreign) = (folder.path().join("own"), folder.path().join("foreign"));
        for tree in [&own, &foreign] {
            fs::create_dir_all(tree.join("folder")).unwrap();
            fs::write(tree.join("file"), b"").unwrap();
            mknodat(CWD, tree.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
            symlink("file", tree.join("link")).unwrap();
            for name in ["file", "folder"] {
                let value = tree.as_os_str().as_bytes();
                lsetxattr(tree.join(name), "user.of", value, XattrFlags::empty()).unwrap();
            }
        }
        let names = ["file", "folder", "pipe", "link"].map(|name| own.join(name));
        let walked = names.each_ref().map(|path| path.symlink_metadata().unwrap());
        let dressed = || {
            names.iter().zip(&walked).map(|(absolute, metadata)| {
                let mut entry = entry(b"one", metadata);
                let step = walk::WalkStep { absolute, path: b"one", metadata };
                let dressed = dress_walked(&mut entry, &step, &mut LeftOutItems::default());
                dressed.map(|()| entry.attributes)
            })
        };
        let is_own = |one: &EntryAttribute| one.value == own.as_os_str().as_bytes();
        let counts = dressed().map(|attributes| {
            let attributes = attributes.unwrap();
            assert!(attributes.iter().filter(|one| one.name == b"user.of").all(is_own));
            attributes.iter().filter(|one| one.name == b"user.of").count()
        });
        assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 0, 0]);
        fs::rename(&own, folder.path().join("moved")).unwrap();
        symlink(&foreign, &own).unwrap();
        for (name, kept) in names.iter().zip(dressed()) {
            let foreign = kept.is_ok_and(|kept| kept.iter().any(|one| one.name == b"user.of"));
            assert!(!foreign, "{}", name.display());
        }
        for (path, metadata) in names.iter().zip(&walked) {
            let found = WalkedInode::find(path, metadata);
            assert_eq!(found.unwrap_err().to_string(), replaced().to_string());
        }
    }
}
