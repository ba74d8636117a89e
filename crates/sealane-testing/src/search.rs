//! The bytes that a process or a folder holds, for tests that look for secrets in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a text stands in these bytes.
pub fn holds(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// The memory of a process, as far as it can be read.
pub fn process_memory(process: u32) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("it runs");
    let mut memory = File::open(format!("/proc/{process}/mem")).expect("its memory is ours");
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let (from, to) = range.expect("a range of addresses");
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).expect("hex"));
        let mut part = vec![0; usize::try_from(to - from).expect("it fits")];
        if memory.seek(SeekFrom::Start(from)).is_ok() && memory.read_exact(&mut part).is_ok() {
            all.extend(part);
        }
    }
    all
}

/// A field of the state of a process in KiB, as `VmRSS:`.
pub fn process_memory_kib(process: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it has the field");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Every file below a folder, and its content. Files that vanish meanwhile are left out.
pub fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        }
        // Sockets are no files, and hold nothing.
        if !path.is_file() {
            continue;
        }
        match std::fs::read(&path) {
            Ok(content) => drop(found.insert(path, content)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{}", path.display()),
        }
    }
    found
}

/// Copies a folder with its modes and times, as a thief or a backup would.
pub fn copy_folder(from: &Path, to: &Path) {
    crate::succeed(Command::new("cp").arg("-a").args([from, to]));
}
