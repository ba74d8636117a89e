use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::claim::ChunkClaims;
use super::exclude::PutExcludes;
use super::pack::{ChunkPacker, PackerOutput};
use super::read::{PutJobQueue, PutReader};
use super::roots::PutRoots;
use super::seal::ChunkSealer;
use super::upload::PackUploader;
use super::walk::{FileWalk, OwnFolder};
use super::{LeftOutItems, PutJob, PutOptions, PutReport, SkippedItem};
use crate::Error;
use crate::chunker::Chunker;
use crate::format::chunk::{ChunkCompression, ChunkHead};
use crate::format::config::VaultMetadata;
use crate::format::pack::PackRecord;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind};
use crate::format::snapshot::SnapshotCounts;
use crate::limits::{MAX_HOST_BYTES, MAX_NOTE_BYTES, MAX_TAG_BYTES, MAX_TAGS, MAX_VAULT_THREADS};
use crate::listing::ListingWriter;
use crate::manifest::ChunkManifest;
use crate::vault::Vault;

/// Where entries come from.
pub(crate) enum PutSource<'a> {
    /// Files and folders, each under its last component, or under its whole path.
    Paths(&'a [PathBuf]),
    /// One file, from a reader.
    Reader(SnapshotEntry, &'a mut dyn Read),
    /// Entries in their order, each with its content unless it is a link, until there are none.
    Each {
        /// Where they come from on this machine.
        from: &'a Path,
        /// Gives the next.
        next: &'a mut NextEntry<'a>,
    },
}

impl PutSource<'_> {
    /// The places that tell the snapshots of this source from those of other sources of the same
    /// host.
    fn places(&self) -> Result<Vec<Vec<u8>>, Error> {
        match self {
            PutSource::Paths(roots) => Ok(PutRoots::of(roots)?.into_places()),
            PutSource::Reader(entry, _) => Ok(vec![entry.path.clone()]),
            PutSource::Each { from, .. } => Ok(PutRoots::of(&[(*from).to_owned()])?.into_places()),
        }
    }
}

/// Gives the next entry, and names what is left out.
pub(crate) type NextEntry<'a> =
    dyn FnMut(&mut Vec<SkippedItem>) -> Option<(SnapshotEntry, Vec<u8>)> + Send + 'a;

/// Keeps `source` as the next snapshot.
pub(crate) fn put(
    vault: &Vault,
    source: PutSource<'_>,
    options: &PutOptions,
) -> Result<PutReport, Error> {
    check_words(options)?;
    let places = source.places()?;
    vault.check_writer()?;
    if !options.dry_run {
        vault.check_writable()?;
        vault.store().check_condition()?;
    }
    vault.sync()?;
    let claims = ChunkClaims::new(vault.manifest().kept_ids(vault.reads())?);
    let spool = vault.store().spool()?;
    let plain = vault.metadata() == VaultMetadata::Plain && !options.dry_run;
    let listing = if plain { Some(ListingWriter::create(&spool)?) } else { None };
    let sealer = ChunkSealer::new(vault.naming(), vault.sealing());
    let packer = ChunkPacker::new(sealer, &claims, vault.header(), &spool, listing)
        .dry(options.dry_run)
        .beside(vault.manifest().condemned_packs()?)
        .remembering(ChunkManifest::open(vault.state()?, vault.reads())?);
    let (mut packed, packs, notes) = pipeline(vault, source, options, &claims, &spool, packer)?;
    if options.dry_run {
        let head = vault.head_text()?;
        let packs = packs.len() as u64;
        return Ok(notes.report(0, head, packed.counts, packs));
    }
    let listing = packed.listing.take().map(|listing| listing.finish(vault.store())).transpose()?;
    let (snapshot, head) = vault.commit(&packed, &packs, listing, places, options)?;
    let packs = packs.len() as u64;
    Ok(notes.report(snapshot, head, packed.counts, packs))
}

/// Refuses what a reader of the snapshot would refuse.
fn check_words(options: &PutOptions) -> Result<(), Error> {
    let host = options.host.as_deref().unwrap_or_default();
    let tag = options.tags.iter().map(String::len).max().unwrap_or(0);
    let checks = [
        ("the note", options.note.len(), MAX_NOTE_BYTES),
        ("the host's name", host.len(), MAX_HOST_BYTES),
        ("a tag", tag, MAX_TAG_BYTES),
        ("the list of tags", options.tags.len(), MAX_TAGS),
    ];
    match checks.into_iter().find(|(_, is, most)| is > most) {
        Some((what, ..)) => Err(Error::TooLarge { what: what.to_owned() }),
        None => Ok(()),
    }
}

/// Writes chunks that are sealed already into new packs, all durable on return.
pub(crate) fn repack(
    vault: &Vault,
    next: &mut dyn FnMut() -> Result<Option<(ChunkHead, Vec<u8>)>, Error>,
) -> Result<Vec<PackRecord>, Error> {
    let claims = ChunkClaims::new(HashSet::default());
    let spool = vault.store().spool()?;
    std::thread::scope(|scope| {
        let uploader = PackUploader::start(scope, vault.store());
        let sealer = ChunkSealer::new(vault.naming(), vault.sealing());
        let mut packer = ChunkPacker::new(sealer, &claims, vault.header(), &spool, None)
            .beside(vault.manifest().condemned_packs()?);
        while let Some((head, sealed)) = next()? {
            packer.append(head, &sealed, &uploader)?;
        }
        packer.finish(&uploader)?;
        uploader.finish()
    })
}

type PutOutcome = (PackerOutput, Vec<PackRecord>, PutNotes);

/// The remarks on a put beside what it kept.
#[derive(Default)]
struct PutNotes {
    skipped: Vec<SkippedItem>,
    passed: Vec<SkippedItem>,
    changed: Vec<String>,
    unmatched: Vec<String>,
}

impl PutNotes {
    fn report(self, snapshot: u64, head: String, counts: SnapshotCounts, packs: u64) -> PutReport {
        let PutNotes { skipped, passed, changed, unmatched } = self;
        PutReport { snapshot, head, counts, packs, skipped, passed, changed, unmatched }
    }
}

fn pipeline(
    vault: &Vault,
    source: PutSource<'_>,
    options: &PutOptions,
    claims: &ChunkClaims,
    spool: &Path,
    packer: ChunkPacker<'_>,
) -> Result<PutOutcome, Error> {
    let roots = match &source {
        PutSource::Paths(roots) => PutRoots::of(roots)?,
        _ => PutRoots::of(&[])?,
    };
    let excludes = PutExcludes::new(options, &roots.whole())?;
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let threads = threads.min(MAX_VAULT_THREADS);
    let chunker = Chunker::new(&vault.naming().chunker);
    let (give, empty) = channel();
    // Two jobs per thread, one that is being filled and one that is being packed.
    (0..2 * threads + 2)
        .try_for_each(|_| give.send(PutJob::default()))
        .map_err(|_| Error::Stopped)?;
    std::thread::scope(|scope| {
        let uploader = PackUploader::start(scope, vault.store());
        let mut full = Vec::new();
        let mut done = Vec::new();
        for _ in 0..threads {
            let (job, jobs) = channel();
            let (sealed, sealed_jobs) = channel();
            let sealer = ChunkSealer::new(vault.naming(), vault.sealing());
            let compression = options.compression;
            spawn(scope, "vault seal", move || seal(sealer, claims, compression, &jobs, &sealed))?;
            full.push(job);
            done.push(sealed_jobs);
        }
        let packing = spawn(scope, "vault pack", move || pack(packer, &done, &give, uploader))?;
        let jobs = PutJobQueue { empty, full, next: 0, open: None };
        let progress = options.progress.as_deref();
        let mut reader = PutReader::new(&chunker, vault.manifest(), claims, progress, jobs);
        let mut walk = FileWalk::new(&excludes, OwnFolder::of(vault.store(), spool));
        let read = vault.manifest().view(|| read(&mut reader, source, &roots, &mut walk));
        let read = read.and_then(|found| {
            let changed = reader.finish()?;
            let LeftOutItems { skipped, passed } = found;
            Ok(PutNotes { skipped, passed, changed, unmatched: excludes.unmatched() })
        });
        let packed = packing.join().unwrap_or(Err(Error::Library("thread")));
        match (packed, read) {
            (Ok((packed, packs)), Ok(notes)) => Ok((packed, packs, notes)),
            (Err(error), Ok(_) | Err(Error::Stopped)) | (_, Err(error)) => Err(error),
        }
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    let named = std::thread::Builder::new().name(name.to_owned());
    named.spawn_scoped(scope, work).map_err(|_| Error::Thread)
}

fn read(
    reader: &mut PutReader<'_>,
    source: PutSource<'_>,
    roots: &PutRoots,
    walk: &mut FileWalk<'_>,
) -> Result<LeftOutItems, Error> {
    match source {
        PutSource::Paths(_) => {
            walk.run(roots, &mut |step, left_out| reader.visit(&step, left_out))?;
            Ok(std::mem::take(&mut walk.left_out))
        }
        PutSource::Reader(entry, source) => {
            reader.reader(entry, source)?;
            Ok(LeftOutItems::default())
        }
        PutSource::Each { next, .. } => {
            let mut skipped = Vec::new();
            while let Some((entry, content)) = next(&mut skipped) {
                match entry.node {
                    SnapshotEntryKind::Link { .. } => reader.whole(entry)?,
                    _ => reader.reader(entry, &mut &*content)?,
                }
            }
            Ok(LeftOutItems { skipped, passed: Vec::new() })
        }
    }
}

/// One of the threads that compress and seal.
fn seal(
    mut sealer: ChunkSealer<'_>,
    claims: &ChunkClaims,
    compression: ChunkCompression,
    jobs: &Receiver<PutJob>,
    done: &Sender<Result<PutJob, Error>>,
) {
    for mut job in jobs {
        let outcome = sealer.job(&mut job, claims, compression);
        let failed = outcome.is_err();
        if done.send(outcome.map(|()| job)).is_err() || failed {
            break;
        }
    }
}

/// The thread that packs: takes from the others in turn.
fn pack(
    mut packer: ChunkPacker<'_>,
    done: &[Receiver<Result<PutJob, Error>>],
    give: &Sender<PutJob>,
    uploader: PackUploader<'_>,
) -> Result<(PackerOutput, Vec<PackRecord>), Error> {
    let mut work = || {
        for jobs in done.iter().cycle() {
            // The thread whose turn it is has ended: there is no job behind it.
            let Ok(job) = jobs.recv() else { break };
            let mut job = job?;
            packer.job(&mut job, &uploader)?;
            // The reader may have gone already.
            let _ = give.send(job);
        }
        Ok(())
    };
    let packed = work().and_then(|()| packer.finish(&uploader));
    let packs = uploader.finish();
    match (packed, packs) {
        (Ok(packed), Ok(packs)) => Ok((packed, packs)),
        // That the uploader stopped is not why.
        (Err(Error::Stopped) | Ok(_), Err(error)) | (Err(error), _) => Err(error),
    }
}
