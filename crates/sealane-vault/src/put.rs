//! From files to snapshots.
//!
//! ```text
//!  read, cut ──► compress, seal ──► order, pack ──► store
//!  one thread    n threads          one thread      one thread
//! ```
//!
//! Jobs of about a MiB go round: the reader fills one and gives it to the threads in turn; the
//! packer takes from them in the same turn, so that all is in the reader's order without sorting,
//! and hands the empty job back. There are as many jobs as memory allows, and nobody allocates per
//! chunk. What is written does not depend on the number of threads.

mod attributes;
mod claim;
mod exclude;
mod pack;
mod read;
mod roots;
mod run;
mod seal;
mod upload;
mod walk;

use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::format::chunk::{ChunkCompression, ChunkHead, ChunkId};
use crate::format::page::SnapshotEntry;
use crate::format::snapshot::SnapshotCounts;
use crate::manifest::VaultFileStat;

pub(crate) use pack::PackerOutput;
pub(crate) use read::now_ns;
pub(crate) use run::{PutSource, put, repack};
pub(crate) use seal::ChunkSealer;
pub use walk::measure;

/// How to put.
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// How chunks are made smaller.
    pub compression: ChunkCompression,
    /// Threads that compress and seal; 0 is as many as the machine has cores.
    pub threads: usize,
    /// Patterns of what is left out, as a `.gitignore` in each of the roots has them.
    pub exclude: Vec<String>,
    /// Files of such patterns, which begin where the file stands.
    pub exclude_from: Vec<PathBuf>,
    /// The note of the snapshot about itself.
    pub note: String,
    /// Words by which a prune and people tell snapshots apart.
    pub tags: Vec<String>,
    /// The host that the snapshot names; none is this machine. Where a machine gets another name
    /// with each start, one that stays keeps its snapshots together.
    pub host: Option<String>,
    /// When the snapshot says that it was made, in nanoseconds since 1970-01-01 UTC; none is now.
    pub time_ns: Option<i64>,
    /// Finds out what would be kept, and writes nothing.
    pub dry_run: bool,
    /// Where to count what is done.
    pub progress: Option<Arc<PutProgress>>,
}

/// The progress so far, for a waiting caller.
#[derive(Debug, Default)]
pub struct PutProgress {
    /// Files that were read or found unchanged, or restored.
    pub files: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
}

/// Something that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedItem {
    /// Its path, for people.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Items that a walk found and did not keep.
#[derive(Debug, Default)]
pub(crate) struct LeftOutItems {
    /// Items that should have been kept.
    pub(crate) skipped: Vec<SkippedItem>,
    /// Items that are no loss.
    pub(crate) passed: Vec<SkippedItem>,
}

/// The outcome of a put.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PutReport {
    /// The new snapshot's number; 0 in a dry run.
    pub snapshot: u64,
    /// The new head.
    pub head: String,
    /// The counts of the snapshot.
    pub counts: SnapshotCounts,
    /// Packs that were written.
    pub packs: u64,
    /// Items that were not kept.
    pub skipped: Vec<SkippedItem>,
    /// Items that are no loss: sockets, which last as long as a program, the vault itself, and
    /// links that were named as what to put.
    pub passed: Vec<SkippedItem>,
    /// Files that changed while they were read: what was kept of each may be of two moments.
    pub changed: Vec<String>,
    /// Patterns of what is left out that matched nothing.
    pub unmatched: Vec<String>,
}

/// A batch of work.
#[derive(Default)]
pub(crate) struct PutJob {
    number: u64,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    steps: Vec<PutStep>,
    /// Bytes of the attributes of its entries.
    attributes: usize,
}

/// The content of a job, in order.
enum PutStep {
    /// An entry. Unless it is whole, what follows up to `End` is its content.
    Entry(Box<PutEntry>),
    /// A part of a file, in `PutJob::plain`.
    Chunk {
        plain: Range<usize>,
        id: ChunkId,
        /// Where it lies in `PutJob::sealed`; none if it is known to be kept already.
        sealed: Option<(ChunkHead, Range<usize>)>,
    },
    /// Zeros that take no room.
    Hole(u64),
    /// The file is read to its end; what it looked like if that did not change meanwhile.
    End(Option<VaultFileStat>),
    /// The file could not be read to its end, and is not kept.
    Abandon,
}

/// An entry that the reader found.
struct PutEntry {
    entry: SnapshotEntry,
    content: PutContent,
    /// The path on this machine, where what the file looks like is worth remembering.
    absolute: Vec<u8>,
    /// Whether other names of the same file may follow.
    has_other_names: bool,
}

enum PutContent {
    /// The entry says all.
    Whole,
    /// It follows.
    Follows,
    /// It is that of the entry with this path.
    Same(Vec<u8>),
}

/// Hashes ids by their first bytes, which nobody without the key can choose.
#[derive(Debug, Default, Clone)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// For sets and maps of ids.
pub(crate) type IdHash = BuildHasherDefault<FirstBytes>;
