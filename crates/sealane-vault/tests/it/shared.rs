//! Trees of files from a seed, vaults to put them into, and what it means that two are the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sealane_vault::{
    Argon2Cost, GetOptions, OpenOptions, SkippedItem, SlotSecret, Vault, VaultMetadata, VaultStore,
    WriterKey,
};

pub(crate) const PASSPHRASE: &[u8] = b"correct horse battery staple";

/// A cost that tests can pay often.
pub(crate) const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };

/// Numbers from a seed (SplitMix64).
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// In 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (self.unit().max(1e-12), self.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    pub(crate) fn random(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// Words whose ranks follow Zipf's law.
    pub(crate) fn text(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 16);
        while bytes.len() < length {
            let rank = (10_000_f64.powf(self.unit()) - 1.0) as u64;
            let mut word = Seed(rank);
            let letters = 2 + word.next() % 8;
            bytes.extend((0..letters).map(|_| b'a' + (word.next() % 26) as u8));
            bytes.push(if self.next().is_multiple_of(12) { b'\n' } else { b' ' });
        }
        bytes.truncate(length);
        bytes
    }
}

/// 263 files of 25 MB in all: sizes log-normal, half text, half random.
pub(crate) fn mixed_files(folder: &Path) {
    let mut seed = Seed(263);
    let raw: Vec<f64> = (0..263).map(|_| (9.4 + 1.9 * seed.normal()).exp().min(3.9e6)).collect();
    let scale = 25_100_000.0 / raw.iter().sum::<f64>();
    for (number, size) in raw.iter().enumerate() {
        let size = (size * scale) as usize;
        let place = folder.join(format!("part{}", number % 7));
        fs::create_dir_all(&place).unwrap();
        let (name, content) = match number % 2 {
            0 => (format!("notes-{number:03}.txt"), seed.text(size)),
            _ => (format!("image-{number:03}.bin"), seed.random(size)),
        };
        let path = place.join(name);
        fs::write(&path, content).unwrap();
        age(&path, &mut seed);
    }
}

/// Sets a modification time with nanoseconds, some years back.
pub(crate) fn age(path: &Path, seed: &mut Seed) {
    let ago = Duration::from_nanos(seed.next() % 100_000_000_000_000_000);
    File::open(path).unwrap().set_modified(SystemTime::now() - ago).unwrap();
}

/// Files that are hard to keep: links, holes, names, modes, times.
pub(crate) fn odd_files(folder: &Path) {
    fs::create_dir_all(folder.join("deep/er")).unwrap();
    fs::write(folder.join("empty"), b"").unwrap();
    fs::write(folder.join("one"), b"1").unwrap();
    fs::hard_link(folder.join("one"), folder.join("deep/er/one-again")).unwrap();
    fs::hard_link(folder.join("one"), folder.join("another one")).unwrap();
    symlink("one", folder.join("link")).unwrap();
    symlink("/nowhere/at all", folder.join("dangling")).unwrap();
    symlink("deep", folder.join("folder-link")).unwrap();
    fs::write(folder.join(OsStr::from_bytes(b"not-utf8-\xff\xfe")), b"named in bytes").unwrap();
    fs::write(folder.join("line\nbreak and 'quotes\" \\"), b"awkward").unwrap();
    fs::write(folder.join("-rf"), b"like a flag").unwrap();
    fs::write(folder.join("x".repeat(255)), b"longest name").unwrap();
    let mut sparse = File::create(folder.join("sparse")).unwrap();
    sparse.write_all(b"begin").unwrap();
    sparse.seek(SeekFrom::Start(3 << 20)).unwrap();
    sparse.write_all(b"middle").unwrap();
    sparse.set_len(9 << 20).unwrap();
    File::create(folder.join("all hole")).unwrap().set_len(5 << 20).unwrap();
    fs::write(folder.join("locked"), b"0400").unwrap();
    fs::set_permissions(folder.join("locked"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::write(folder.join("run"), b"#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join("run"), fs::Permissions::from_mode(0o4755)).unwrap();
    let old = SystemTime::UNIX_EPOCH - Duration::from_nanos(1_234_567_891);
    File::open(folder.join("empty")).unwrap().set_modified(old).unwrap();
    fs::create_dir(folder.join("closed")).unwrap();
    fs::write(folder.join("closed/inside"), b"x").unwrap();
    fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    File::open(folder.join("closed")).unwrap().set_modified(old).unwrap();
}

/// All that a restore must bring back of one path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Look {
    kind: &'static str,
    mode: u32,
    mtime: (i64, i64),
    size: u64,
    content: [u8; 32],
    data: u64,
    target: Option<PathBuf>,
}

/// Everything under a folder, by path; and which paths are the same file.
pub(crate) fn looks(folder: &Path) -> (BTreeMap<PathBuf, Look>, Vec<Vec<PathBuf>>) {
    let mut found = BTreeMap::new();
    let mut files: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            if meta.nlink() > 1 && meta.is_file() {
                files.entry((meta.dev(), meta.ino())).or_default().push(name.clone());
            }
            found.insert(name, look(&path, &meta));
        }
    }
    let mut groups: Vec<Vec<PathBuf>> = files.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort();
    (found, groups)
}

fn look(path: &Path, meta: &fs::Metadata) -> Look {
    let content =
        if meta.is_file() { *blake3::hash(&fs::read(path).unwrap()).as_bytes() } else { [0; 32] };
    Look {
        kind: match () {
            () if meta.is_dir() => "folder",
            () if meta.is_symlink() => "link",
            () => "file",
        },
        mode: meta.mode(),
        mtime: (meta.mtime(), meta.mtime_nsec()),
        size: if meta.is_dir() { 0 } else { meta.len() },
        content,
        data: if meta.is_file() { data_bytes(path) } else { 0 },
        target: fs::read_link(path).ok(),
    }
}

/// Bytes of a file that are not holes, in blocks as the file system keeps them.
fn data_bytes(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    let (mut at, mut data, end) = (0, 0, file.metadata().unwrap().len());
    while let Ok(from) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) {
        let to = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(from)).unwrap_or(end);
        data += to - from;
        at = to;
    }
    data
}

pub(crate) fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (looks(a), looks(b));
    assert_eq!(a.0.keys().collect::<Vec<_>>(), b.0.keys().collect::<Vec<_>>());
    for (path, look) in &a.0 {
        assert_eq!(Some(look), b.0.get(path), "{}", path.display());
    }
    assert_eq!(a.1, b.1, "hard links");
}

/// A folder with room for a vault, its local state, sources and targets.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions { state: Some(self.path("state")), ..OpenOptions::default() }
    }

    pub(crate) fn store(&self) -> VaultStore {
        VaultStore::open(self.path("vault").to_str().unwrap()).unwrap()
    }

    pub(crate) fn init(&self) -> Vault {
        self.init_with(VaultMetadata::Sealed)
    }

    pub(crate) fn init_with(&self, metadata: VaultMetadata) -> Vault {
        Vault::init(self.store(), PASSPHRASE, CHEAP, metadata, &self.options()).unwrap()
    }

    pub(crate) fn open(&self) -> Vault {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Vault, sealane_vault::Error> {
        Vault::open(self.store(), &SlotSecret::Passphrase(PASSPHRASE), &self.options())
    }

    /// Opens it where nothing of it is remembered.
    pub(crate) fn open_afresh(&self, state: &str) -> Vault {
        let options = OpenOptions { state: Some(self.path(state)), ..OpenOptions::default() };
        Vault::open(self.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).unwrap()
    }

    /// Restores a snapshot, the newest unless one is named, into a new folder; gives what failed.
    pub(crate) fn restores(
        &self,
        vault: &Vault,
        number: Option<u64>,
    ) -> (PathBuf, Vec<SkippedItem>) {
        let target = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let snapshot = vault.snapshot(number).unwrap();
        let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
        (target.join("source"), got.failed)
    }

    /// Makes the source folder and fills it.
    pub(crate) fn source(&self, fill: impl FnOnce(&Path)) -> PathBuf {
        let source = self.path("source");
        fs::create_dir_all(&source).unwrap();
        fill(&source);
        source
    }

    /// All objects of the vault: keys and contents.
    pub(crate) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let store = self.store();
        let objects = store.list("").unwrap().into_iter();
        objects
            .map(|object| {
                let bytes = store.get(&object.key, usize::MAX).unwrap();
                (object.key, bytes)
            })
            .collect()
    }
}

/// The key of a host that adds to a vault, and how that host opens it.
pub(crate) struct Host {
    pub(crate) key: WriterKey,
    pub(crate) slot: String,
    state: PathBuf,
}

impl Host {
    pub(crate) fn of(place: &Place, owner: &Vault, name: &str) -> Host {
        let key = owner.add_writer(name).unwrap();
        let mut slots = owner.slots().unwrap().into_iter();
        let slot = slots.find(|slot| slot.label.as_deref() == Some(name)).unwrap().id;
        Host { key, slot, state: place.path(name) }
    }

    pub(crate) fn open(&self, place: &Place) -> Vault {
        let options = OpenOptions { state: Some(self.state.clone()), ..OpenOptions::default() };
        Vault::open(place.store(), &SlotSecret::Writer(&self.key), &options).unwrap()
    }
}

/// A snapshot's number and the hash of its object, as a head tells them.
pub(crate) fn head(vault: &Vault) -> (u64, [u8; 32]) {
    let text = vault.head_text().unwrap();
    let (number, hash) = text.split_once(':').unwrap();
    let byte = |at: usize| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap();
    (number.parse().unwrap(), std::array::from_fn(byte))
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Changes one byte of a file.
pub(crate) fn flip(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] ^= 1;
    file.write_all_at(&byte, at).unwrap();
}
