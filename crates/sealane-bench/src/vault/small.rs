//! Many files: the report's 263, and 20,000 small ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::measure::{self, VaultBench, VaultBenchRun};
use super::tool::VaultBenchTool;
use super::{VaultBenchRow, data};
use crate::failure::{BenchFailure, Result};
use crate::measure::percentile;

/// Files that can be removed without a trace in what is timed next.
const FEW_FILES: u64 = 1000;

/// The input of a group of rows.
pub(super) struct VaultBenchInput<'a> {
    pub(super) bench: &'a VaultBench,
    pub(super) source: PathBuf,
    pub(super) set: data::BenchFileSet,
    pub(super) name: &'static str,
    pub(super) cores: usize,
}

/// The part of the time to unlock that a run has to take beyond it, for a rate to be told.
const LEFT_MIN: f64 = 0.2;

/// Those that keep a whole folder.
pub(super) fn archives(tools: &[VaultBenchTool]) -> Vec<VaultBenchTool> {
    tools.iter().filter(|tool| tool.is_archive()).cloned().collect()
}

/// 263 files of 25 MB.
pub(super) fn mixed(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<()> {
    let source = folder(bench, "mixed")?;
    let set = data::mixed(&source)?;
    let work = VaultBenchInput { bench, source, set, name: "263 files", cores: 1 };
    let unlock = unlock(bench, tools, add)?;
    let demanded = "whole < 0.40 s, stored <= 0.66x; after unlock >= 1,700 files/s, 160 MB/s";
    let note = |tool: &VaultBenchTool, seconds: f64| {
        if !tool.is_sealane() {
            return String::new();
        }
        let left = seconds - unlock;
        let demanded = if tool.is_usual() { demanded } else { "" };
        // If so little of a run is left, it is noise.
        if left < LEFT_MIN * unlock {
            return format!("after unlock: too short to tell; {demanded}");
        }
        let (files, rate) = (set.files as f64 / left, set.bytes as f64 / left / 1e6);
        format!("after unlock: {files:.0} files/s, {rate:.0} MB/s; {demanded}")
    };
    work.puts(tools, &note, add)?;
    let archives = archives(tools);
    work.again(&archives, "unchanged", "", add)?;
    work.gets(&archives, "", add)?;
    rename(&work.source)?;
    work.again(&archives, "tree renamed", "demanded: no data stored", add)?;
    discard(bench)
}

/// 20,000 files of 66 MB.
pub(super) fn many(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<()> {
    let source = folder(bench, "small")?;
    let set = data::small(&source)?;
    let work = VaultBenchInput { bench, source, set, name: "20,000 files", cores: 1 };
    // A key derivation for each of 20,000 files takes minutes and shows nothing new.
    let archives = archives(tools);
    work.puts(&archives, &demanded("demanded: >= 25,000 files/s"), add)?;
    work.again(&archives, "unchanged", "demanded: < 0.25 s", add)?;
    work.gets(&archives, "", add)?;
    discard(bench)
}

/// A note on the row of the tool that something is demanded of.
pub(super) fn demanded(what: &str) -> impl Fn(&VaultBenchTool, f64) -> String {
    move |tool, _| if tool.is_usual() { what.to_owned() } else { String::new() }
}

type VaultRound<'a> =
    dyn FnMut(usize, &VaultBenchTool) -> Result<(VaultBenchRun, Option<u64>)> + 'a;

impl VaultBenchInput<'_> {
    /// Each tool in turn, as often as there are rounds, and a row for each: the median, and what
    /// the `stored` of its rounds becomes.
    pub(super) fn rounds(
        &self,
        tools: &[VaultBenchTool],
        what: &str,
        note: &dyn Fn(&VaultBenchTool, f64) -> String,
        round: &mut VaultRound<'_>,
        add: &mut dyn FnMut(VaultBenchRow),
    ) -> Result<()> {
        let mut results = vec![(vec![], 0, None); tools.len()];
        for number in 0..self.bench.rounds {
            for (tool, (seconds, memory_kib, stored)) in tools.iter().zip(&mut results) {
                let (run, added) = round(number, tool)?;
                seconds.push(run.seconds);
                *memory_kib = run.memory_kib.max(*memory_kib);
                *stored = added;
            }
        }
        for (tool, (mut seconds, memory_kib, stored)) in tools.iter().zip(results) {
            let [fastest, slowest] = [0.0, 1.0].map(|part| percentile(&mut seconds, part));
            // Of an even number, the lower of the two in the middle.
            let median = seconds.get(seconds.len().saturating_sub(1) / 2).copied();
            let median = median.unwrap_or_default();
            add(VaultBenchRow {
                tool: tool.name.clone(),
                what: what.to_owned(),
                seconds: median,
                fastest,
                slowest,
                files: self.set.files,
                bytes: self.set.bytes,
                stored,
                memory_kib,
                note: note(tool, median),
            });
        }
        Ok(())
    }

    /// Keeps the source in `store`; gives what that added.
    fn put(&self, tool: &VaultBenchTool, store: &Path) -> Result<(VaultBenchRun, u64)> {
        let before = measure::size(store);
        measure::warm(&self.source);
        let run = self.bench.run(&tool.put(store, &self.source, self.cores), self.cores)?;
        Ok((run, measure::size(store).saturating_sub(before)))
    }

    /// Keeps the source in a new store.
    pub(super) fn puts(
        &self,
        tools: &[VaultBenchTool],
        note: &dyn Fn(&VaultBenchTool, f64) -> String,
        add: &mut dyn FnMut(VaultBenchRow),
    ) -> Result<()> {
        let cores = if self.cores > 1 { format!(", {} cores", self.cores) } else { String::new() };
        let mut round = |_, tool: &VaultBenchTool| {
            let (run, stored) = self.put(tool, &fresh(self.bench, tool)?)?;
            Ok((run, Some(stored)))
        };
        self.rounds(tools, &format!("{}, put{cores}", self.name), note, &mut round, add)
    }

    /// Keeps the source once more in the store that is there; the bytes are those of the first
    /// time.
    pub(super) fn again(
        &self,
        tools: &[VaultBenchTool],
        what: &str,
        wanted: &str,
        add: &mut dyn FnMut(VaultBenchRow),
    ) -> Result<()> {
        let mut first: BTreeMap<String, u64> = BTreeMap::new();
        let mut round = |_, tool: &VaultBenchTool| {
            let (run, added) = self.put(tool, &store(self.bench, tool))?;
            Ok((run, Some(*first.entry(tool.name.clone()).or_insert(added))))
        };
        let what = format!("{}, {what}", self.name);
        self.rounds(tools, &what, &demanded(wanted), &mut round, add)
    }

    /// Restores what was kept, with whatever the tool verifies while it does so.
    pub(super) fn gets(
        &self,
        tools: &[VaultBenchTool],
        wanted: &str,
        add: &mut dyn FnMut(VaultBenchRow),
    ) -> Result<()> {
        let mut round = |number, tool: &VaultBenchTool| {
            let store = store(self.bench, tool);
            let name = store.file_name().unwrap_or_default().display();
            let target = folder(self.bench, &format!("target-{number}-{name}"))?;
            measure::warm(&store);
            let run = self.bench.run(&tool.get(&store, &target), self.cores)?;
            let restored = measure::size(&target);
            if restored != self.set.bytes {
                let said = format!("{restored} bytes came back of {}", self.set.bytes);
                return Err(BenchFailure::said(&tool.name, said));
            }
            // Before ext4 takes an inode it looks at each that was freed lately: who restores
            // after thousands were removed pays for that. Many files stay until all are done.
            if self.set.files < FEW_FILES {
                fs::remove_dir_all(&target).map_err(BenchFailure::io("removing a target"))?;
            }
            Ok((run, None))
        };
        let what = format!("{}, restore", self.name);
        self.rounds(tools, &what, &demanded(wanted), &mut round, add)
    }
}

/// The time that a process of ours takes before and after the files: start, key derivation, an
/// empty put.
fn unlock(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<f64> {
    let source = folder(bench, "empty")?;
    let set = data::BenchFileSet { files: 0, bytes: 0 };
    let work = VaultBenchInput { bench, source, set, name: "nothing", cores: 1 };
    let usual: Vec<VaultBenchTool> =
        tools.iter().filter(|tool| tool.is_usual()).take(1).cloned().collect();
    let note = "start, Argon2id (64 MiB, 3 passes, 4 lanes) and an empty snapshot";
    let mut median = 0.0;
    let mut round = |_, tool: &VaultBenchTool| {
        let store = fresh(bench, tool)?;
        Ok((bench.run(&tool.put(&store, &work.source, 1), 1)?, None))
    };
    work.rounds(&usual, "nothing, put", &|_, _| note.to_owned(), &mut round, &mut |row| {
        median = row.seconds;
        add(row);
    })?;
    Ok(median)
}

/// Gives every folder of the data another name.
fn rename(source: &Path) -> Result<()> {
    for entry in fs::read_dir(source).map_err(BenchFailure::io("renaming"))?.flatten() {
        let name = format!("renamed {}", entry.file_name().display());
        fs::rename(entry.path(), source.join(name)).map_err(BenchFailure::io("renaming"))?;
    }
    Ok(())
}

/// The store of a tool.
pub(super) fn store(bench: &VaultBench, tool: &VaultBenchTool) -> PathBuf {
    bench.folder.join(tool.name.replace(' ', "-").replace('\'', "").replace('.', "-"))
}

/// A new store in the place of an older one.
fn fresh(bench: &VaultBench, tool: &VaultBenchTool) -> Result<PathBuf> {
    let store = store(bench, tool);
    for old in [&store, &store.with_extension("state")] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(BenchFailure::io("removing a store"))?;
        }
        fs::create_dir_all(old).map_err(BenchFailure::io("making a store"))?;
    }
    if let Some(command) = tool.init(&store) {
        bench.run(&command, 1)?;
    }
    Ok(store)
}

/// A new, empty folder.
pub(super) fn folder(bench: &VaultBench, name: &str) -> Result<PathBuf> {
    let folder = bench.folder.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(BenchFailure::io("removing a folder"))?;
    }
    fs::create_dir_all(&folder).map_err(BenchFailure::io("making a folder"))?;
    Ok(folder)
}

/// Makes room for the next group.
pub(super) fn discard(bench: &VaultBench) -> Result<()> {
    for entry in fs::read_dir(&bench.folder).map_err(BenchFailure::io("removing"))?.flatten() {
        fs::remove_dir_all(entry.path()).map_err(BenchFailure::io("removing"))?;
    }
    Ok(())
}
