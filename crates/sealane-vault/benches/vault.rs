//! The cost of each operation of a vault on this machine, after unlocking: `cargo bench -p
//! sealane-vault`.
//!
//! Arguments choose rows by a part of their name. `VAULT_BENCH_THREADS` sets the threads (1), and
//! `VAULT_BENCH_DIR` the folder on the disk to measure. Pin the process to one core to compare.
//! Rows that put start with a fresh vault each time and end when everything is durable.

#[expect(dead_code, reason = "of what the tests share, the bench takes a part")]
#[path = "../tests/it/shared.rs"]
mod shared;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sealane_vault::{
    ChunkCompression, GetOptions, PutOptions, Snapshot, Vault, VaultMetadata, VaultStore,
};

use shared::{CHEAP, PASSPHRASE, Seed, mixed_files};

const ROUNDS: usize = 3;
const BIG_BYTES: usize = 1 << 30;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let place = match std::env::var_os("VAULT_BENCH_DIR") {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let place = place.unwrap();
    let bench = Bench { folder: place.path().to_owned(), threads: threads(), wanted };
    println!("{:<28}{:>9}{:>12}{:>9}{:>9}", "row", "s", "files/s", "MB/s", "stored");
    let zstd = ChunkCompression::Zstd(3);
    bench.tree("mixed 263 files", &[zstd], mixed_files);
    bench.tree("small 20,000 files", &[zstd, ChunkCompression::Lz4], small_files);
    bench.tree("big 1 GiB", &[zstd, ChunkCompression::Lz4, ChunkCompression::None], big_file);
}

fn threads() -> usize {
    std::env::var("VAULT_BENCH_THREADS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

struct Bench {
    folder: PathBuf,
    threads: usize,
    wanted: Vec<String>,
}

impl Bench {
    fn wants(&self, label: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|part| label.contains(part.as_str()))
    }

    /// Puts a tree fresh and unchanged, and restores it.
    fn tree(&self, name: &str, codecs: &[ChunkCompression], fill: impl FnOnce(&Path)) {
        let labels = codecs.iter().map(|&compression| match compression {
            ChunkCompression::Zstd(level) => (format!("{name}, zstd-{level}"), compression),
            ChunkCompression::Lz4 => (format!("{name}, lz4"), compression),
            ChunkCompression::None => (format!("{name}, stored"), compression),
        });
        let labels: Vec<_> = labels.filter(|(label, _)| self.wants(label)).collect();
        if labels.is_empty() {
            return;
        }
        let source = self.folder.join("source");
        fs::create_dir_all(&source).unwrap();
        fill(&source);
        // Files that changed just now are read again by the next put.
        std::thread::sleep(std::time::Duration::from_millis(100));
        println!("{name}, floors");
        self.floors(&source);
        for (label, compression) in labels {
            println!("{label}, {} threads", self.threads);
            let options =
                PutOptions { compression, threads: self.threads, ..PutOptions::default() };
            for round in 0..ROUNDS {
                let vault = self.vault();
                let put = self.put(&vault, "put", &options, &source);
                if round + 1 == ROUNDS {
                    self.put(&vault, "put again, unchanged", &options, &source);
                    let snapshot = vault.snapshot(None).unwrap();
                    self.restore(&vault, &snapshot, put, &label);
                    self.ranges(&vault, &snapshot);
                }
                fs::remove_dir_all(self.folder.join("vault")).unwrap();
                fs::remove_dir_all(self.folder.join("state")).unwrap();
            }
        }
        fs::remove_dir_all(source).unwrap();
    }

    /// Two lower bounds: a durable copy of the tree, and the codec alone in memory, on all files in
    /// pieces of 1 MiB. A program that does one thing more cannot be faster.
    fn floors(&self, source: &Path) {
        let files = files_of(source);
        let bytes = files.iter().map(|path| path.metadata().unwrap().len()).sum();
        let amount = (files.len() as u64, bytes);
        for round in 0..ROUNDS {
            let copies = self.folder.join(format!("copies-{round}"));
            let begun = Instant::now();
            for path in &files {
                let to = copies.join(path.strip_prefix(source).unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(path, to).unwrap();
            }
            rustix::fs::syncfs(fs::File::open(&copies).unwrap()).unwrap();
            show("copy and sync", begun, amount.0, amount.1, None);
        }
        let mut zstd = zstd::bulk::Compressor::new(3).unwrap();
        let (mut out, mut stored, mut taken) = (vec![0; 2 << 20], 0, Duration::ZERO);
        for path in &files {
            let content = fs::read(path).unwrap();
            let begun = Instant::now();
            for piece in content.chunks(1 << 20) {
                stored += zstd.compress_to_buffer(piece, &mut out[..]).unwrap() as u64;
            }
            taken += begun.elapsed();
        }
        show("zstd-3 alone", Instant::now() - taken, amount.0, amount.1, Some(stored));
    }

    fn vault(&self) -> Vault {
        let store = VaultStore::open(self.folder.join("vault").to_str().unwrap()).unwrap();
        let state = Some(self.folder.join("state"));
        let options = sealane_vault::OpenOptions { state, ..Default::default() };
        Vault::init(store, PASSPHRASE, CHEAP, VaultMetadata::Sealed, &options).unwrap()
    }

    fn put(&self, vault: &Vault, row: &str, options: &PutOptions, source: &Path) -> (u64, u64) {
        let begun = Instant::now();
        let put = vault.put_paths(&[source.to_owned()], options).unwrap();
        let counts = put.counts;
        show(row, begun, counts.files, counts.bytes, Some(counts.stored_bytes));
        (counts.files, counts.bytes)
    }

    fn restore(&self, vault: &Vault, snapshot: &Snapshot, amount: (u64, u64), label: &str) {
        // Each into a folder of its own, and none removed before the end: ext4 looks at every inode
        // that was freed lately before it takes one, which is no cost of a restore.
        for round in 0..ROUNDS {
            let target = self.folder.join(format!("{label}-{round}"));
            let begun = Instant::now();
            let got = vault.get_to(snapshot, &target, &GetOptions::default()).unwrap();
            show("restore, verified", begun, amount.0, amount.1, None);
            assert!(got.failed.is_empty());
        }
    }

    fn ranges(&self, vault: &Vault, snapshot: &Snapshot) {
        if snapshot.counts.files > 1 {
            return;
        }
        let mut seed = Seed(3);
        let mut slowest = 0.0_f64;
        for _ in 0..20 {
            let offset = seed.next() % (BIG_BYTES as u64 - (1 << 20));
            let begun = Instant::now();
            let mut file = vault.file(snapshot, b"source/recording").unwrap();
            let read = file.read_range(offset, 1 << 20, &mut std::io::sink()).unwrap();
            slowest = slowest.max(begun.elapsed().as_secs_f64());
            assert_eq!(read, 1 << 20);
        }
        println!("  {:<26}{slowest:>9.4}  the slowest of 20", "a range of 1 MiB");
    }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let list = if path.is_dir() { &mut folders } else { &mut files };
            list.push(path);
        }
    }
    files
}

fn show(row: &str, begun: Instant, files: u64, bytes: u64, stored: Option<u64>) {
    let seconds = begun.elapsed().as_secs_f64();
    let stored =
        stored.map_or(String::new(), |stored| format!("{:>8.3}x", stored as f64 / bytes as f64));
    println!(
        "  {row:<26}{seconds:>9.3}{:>12.0}{:>9.1}{stored}",
        files as f64 / seconds,
        bytes as f64 / 1e6 / seconds
    );
}

/// 20,000 files of 3.3 KB on average, half text.
fn small_files(folder: &Path) {
    let mut seed = Seed(20_000);
    for number in 0..20_000 {
        let place = folder.join(format!("d{:03}", number / 100));
        fs::create_dir_all(&place).unwrap();
        let size = (-seed.unit().max(1e-9).ln() * 3300.0) as usize;
        let content = if number % 2 == 0 { seed.text(size) } else { seed.random(size) };
        fs::write(place.join(format!("f{number:05}")), content).unwrap();
    }
}

/// One file, half text and half random, alternating by 256 KiB.
fn big_file(folder: &Path) {
    let mut seed = Seed(30);
    let mut file = fs::File::create(folder.join("recording")).unwrap();
    for block in 0..BIG_BYTES >> 18 {
        let content = if block % 2 == 0 { seed.text(1 << 18) } else { seed.random(1 << 18) };
        file.write_all(&content).unwrap();
    }
}
