//! A pack that a writer gone bad has made costs a reader at most 64 MiB more than a quiet run,
//! counted by allocation. It has a program of its own, since nothing else may allocate meanwhile.
#![allow(unsafe_code)] // A counting allocator can only be written so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use sealane_vault::hostile::{self, FalseLink, HostileChunk};
use sealane_vault::{
    Argon2Cost, ChunkId, FilePiece, GetOptions, OpenOptions, PutOptions, SlotSecret, SnapshotEntry,
    SnapshotEntryKind, Vault, VaultMetadata, VaultStore, WriterKey,
};

/// Bytes that may be held above a quiet run.
const BOUND: usize = 64 << 20;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        let held = HELD.fetch_add(size, Ordering::Relaxed) + size;
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most that `work` held above what was held before.
fn most(work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    work();
    MOST.load(Ordering::Relaxed) - before
}

fn store(folder: &Path) -> VaultStore {
    VaultStore::open(folder.join("vault").to_str().unwrap()).unwrap()
}

fn options(folder: &Path, name: &str) -> OpenOptions {
    OpenOptions { state: Some(folder.join(name)), ..OpenOptions::default() }
}

/// All that an owner who remembers nothing does with what is there.
fn reads(folder: &Path, state: &str) {
    let secret = SlotSecret::Passphrase(b"secret");
    let vault = Vault::open(store(folder), &secret, &options(folder, state)).unwrap();
    let _ = vault.verify(true);
    let target = folder.join(format!("{state}-target"));
    if let Ok(snapshot) = vault.snapshot(None) {
        let _ = vault.get_to(&snapshot, &target, &GetOptions::default());
        if let Ok(mut file) = vault.file(&snapshot, b"bomb") {
            let _ = file.read_range(0, 4096, &mut std::io::sink());
        }
    }
    let _ = vault.put_reader("quiet", &mut &b"quiet"[..], &PutOptions::default());
}

/// A vault into which a writer has put the bomb.
fn bombed(bomb: impl FnOnce(&Vault) -> (Vec<HostileChunk>, Vec<ChunkId>)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
    let secret = (b"secret", cost, VaultMetadata::Sealed);
    let owner = Vault::init(
        store(folder.path()),
        secret.0,
        secret.1,
        secret.2,
        &options(folder.path(), "o"),
    )
    .unwrap();
    owner.put_reader("quiet", &mut &b"quiet"[..], &PutOptions::default()).unwrap();
    let key = owner.add_writer("bad").unwrap();
    let options = options(folder.path(), "w");
    let writer = Vault::open(store(folder.path()), &SlotSecret::Writer(&key), &options).unwrap();
    let (lies, pages) = bomb(&writer);
    let size = hostile::plant_pack(&writer, &lies).unwrap();
    println!("a pack of {size} bytes");
    let previous = head(&writer);
    let link = FalseLink { number: 2, previous, pages, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    folder
}

/// The hash of the newest link.
fn head(vault: &Vault) -> [u8; 32] {
    let head = vault.head_text().unwrap();
    let hash = head.split_once(':').unwrap().1;
    let byte = |at: usize| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}

fn file(pieces: Vec<FilePiece>) -> SnapshotEntry {
    let size = pieces.iter().map(FilePiece::bytes).sum();
    let node = SnapshotEntryKind::File { size, pieces };
    let path = b"bomb".to_vec();
    let (hard_link, attributes) = (None, Vec::new());
    SnapshotEntry { path, mode: 0o600, uid: 0, gid: 0, mtime_ns: 1, node, hard_link, attributes }
}

fn paged(
    writer: &Vault,
    mut lies: Vec<HostileChunk>,
    entry: &SnapshotEntry,
) -> (Vec<HostileChunk>, Vec<ChunkId>) {
    let plain = hostile::page_of(std::slice::from_ref(entry));
    let id = hostile::id(writer, 1, &plain);
    lies.push(HostileChunk { kind: 1, id: None, plain });
    (lies, vec![id])
}

/// A file of so many references to one list of so many holes of one byte.
fn lists(references: usize, holes: usize) -> tempfile::TempDir {
    bombed(|writer| {
        let plain = hostile::list_of(&vec![FilePiece::Hole { bytes: 1 }; holes]);
        let id = hostile::id(writer, 2, &plain);
        let list = FilePiece::List { bytes: holes as u64, id };
        let lies = vec![HostileChunk { kind: 2, id: None, plain }];
        paged(writer, lies, &file(vec![list; references]))
    })
}

/// A link of four megabytes that says little, in many words.
fn tagged() -> tempfile::TempDir {
    let folder = bombed(|writer| paged(writer, vec![], &file(vec![FilePiece::Hole { bytes: 5 }])));
    let key = another_writer(folder.path());
    let options = options(folder.path(), "w2");
    let writer = Vault::open(store(folder.path()), &SlotSecret::Writer(&key), &options).unwrap();
    let (previous, tags) = (head(&writer), vec![String::new(); 4_000_000]);
    let link = FalseLink { number: 3, previous, tags, ..FalseLink::default() };
    hostile::plant_link(&writer, link).unwrap();
    folder
}

/// Another writer of the vault.
fn another_writer(folder: &Path) -> WriterKey {
    let secret = SlotSecret::Passphrase(b"secret");
    let owner = Vault::open(store(folder), &secret, &options(folder, "o")).unwrap();
    owner.add_writer("worse").unwrap()
}

#[test]
fn a_hostile_pack_costs_a_reader_little_memory() {
    let quiet = bombed(|writer| paged(writer, vec![], &file(vec![FilePiece::Hole { bytes: 5 }])));
    let quiet = most(|| reads(quiet.path(), "fresh"));
    let holes = bombed(|writer| {
        paged(writer, vec![], &file(vec![FilePiece::Hole { bytes: 1 }; 2_000_000]))
    });
    let trailer = bombed(|_| {
        let lie =
            |number: u32| HostileChunk { kind: 0, id: None, plain: number.to_le_bytes().to_vec() };
        ((0..770_000).map(lie).collect(), vec![])
    });
    let bombs = [
        ("400 references to one list of 1.3 million holes", lists(400, 1_300_000)),
        ("60,000 references to one list of 1,024 holes", lists(60_000, 1_024)),
        ("two million holes in an entry", holes),
        ("a trailer of 770,000 chunks", trailer),
    ];
    for (what, folder) in bombs.into_iter().chain([("a snapshot of four million tags", tagged())]) {
        let held = most(|| reads(folder.path(), "fresh"));
        println!("{what}: {held} bytes, quiet {quiet}");
        assert!(held <= quiet + BOUND, "{what}: {held} bytes, quiet {quiet}");
    }
}
