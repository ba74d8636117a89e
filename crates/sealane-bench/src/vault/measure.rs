//! Processes on one core: time, memory, and what they left.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{BenchFailure, Result};
use crate::process::memory_kib;

/// How often a process is asked how much memory it has held.
const LOOK: Duration = Duration::from_millis(2);

/// A place for data and stores, and how to run what works on them.
pub(super) struct VaultBench {
    pub(super) folder: PathBuf,
    pub(super) rounds: usize,
    pinned: bool,
}

/// How one run of a process went.
#[derive(Debug, Clone, Copy)]
pub(super) struct VaultBenchRun {
    pub(super) seconds: f64,
    pub(super) memory_kib: u64,
}

impl VaultBench {
    pub(super) fn new(folder: &Path, rounds: usize) -> VaultBench {
        let pinned = Command::new("taskset").arg("-V").output().is_ok();
        VaultBench { folder: folder.to_owned(), rounds: rounds.max(1), pinned }
    }

    pub(super) fn pinning(&self) -> &'static str {
        match self.pinned {
            true => "each process on one core",
            false => "NOT pinned to one core: `taskset` is missing",
        }
    }

    /// Runs a command to its end on `cores` cores.
    pub(super) fn run(&self, command: &Command, cores: usize) -> Result<VaultBenchRun> {
        let name = shown(command);
        let mut pinned = match self.pinned {
            true => {
                let mut pinned = Command::new("taskset");
                let list = (0..cores).map(|core| core.to_string()).collect::<Vec<_>>().join(",");
                pinned.arg("-c").arg(list).arg(command.get_program());
                pinned
            }
            false => Command::new(command.get_program()),
        };
        pinned.args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => pinned.env(key, value),
                None => pinned.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            pinned.current_dir(folder);
        }
        let (output, stdout) = std::io::pipe().map_err(BenchFailure::io(&name))?;
        let stderr = stdout.try_clone().map_err(BenchFailure::io(&name))?;
        pinned.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        // Earlier processes still have data to write. A run should not wait for the disk on
        // another's account.
        Command::new("sync").status().map_err(BenchFailure::io("sync"))?;
        let start = Instant::now();
        let mut process = pinned.spawn().map_err(BenchFailure::io(&name))?;
        // The command holds the pipe's other end; without it the reader sees the process's end.
        drop(pinned);
        let reader = std::thread::spawn(move || {
            let (mut output, mut said) = (output, vec![]);
            output.read_to_end(&mut said).map(|_| String::from_utf8_lossy(&said).into_owned())
        });
        let mut held_kib = 0;
        let status = loop {
            held_kib = held_kib.max(memory_kib(process.id(), "VmHWM:"));
            if let Some(status) = process.try_wait().map_err(BenchFailure::io(&name))? {
                break status;
            }
            std::thread::sleep(LOOK);
        };
        let seconds = start.elapsed().as_secs_f64();
        let said = reader.join().ok().and_then(Result::ok).unwrap_or_default();
        if !status.success() {
            let words = said.lines().rev().take(4).collect::<Vec<_>>().join(" | ");
            return Err(BenchFailure::said(format!("{name} failed"), format!("{status}: {words}")));
        }
        Ok(VaultBenchRun { seconds, memory_kib: held_kib })
    }
}

fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let first = command.get_args().next().unwrap_or_default();
    format!("{} {}", name.display(), first.display())
}

/// Bytes of all files below a folder.
pub(super) fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Reads all files below a folder once, so that every tool finds them in memory: some tell the
/// system to forget what they have read, and whoever comes next would wait for the disk.
pub(super) fn warm(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => warm(&entry.path()),
            _ => {
                let opened = fs::File::open(entry.path());
                // A file that cannot be read fails the tools, which say so.
                let _ = opened.and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
            }
        }
    }
}
