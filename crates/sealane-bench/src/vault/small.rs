//! Many files: the report's 263, and 20,000 small ones.

use std::fs;
use std::path::{Path, PathBuf};

use super::measure::{self, VaultBench, VaultBenchMedian, VaultBenchRun};
use super::tool::VaultBenchTool;
use super::{Error, VaultBenchRow, data};

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

/// 263 files of 25 MB.
pub(super) fn mixed(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<(), Error> {
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
    puts(&work, tools, &note, add)?;
    let archives: Vec<VaultBenchTool> =
        tools.iter().filter(|tool| tool.is_archive()).cloned().collect();
    again(&work, &archives, "unchanged", "", add)?;
    gets(&work, &archives, "", add)?;
    rename(&work.source)?;
    again(&work, &archives, "tree renamed", "demanded: no data stored", add)?;
    discard(bench)
}

/// 20,000 files of 66 MB.
pub(super) fn many(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<(), Error> {
    let source = folder(bench, "small")?;
    let set = data::small(&source)?;
    let work = VaultBenchInput { bench, source, set, name: "20,000 files", cores: 1 };
    // A key derivation for each of 20,000 files takes minutes and shows nothing new.
    let archives: Vec<VaultBenchTool> =
        tools.iter().filter(|tool| tool.is_archive()).cloned().collect();
    let note = |tool: &VaultBenchTool, _| match tool.is_usual() {
        true => "demanded: >= 25,000 files/s".to_owned(),
        false => String::new(),
    };
    puts(&work, &archives, &note, add)?;
    again(&work, &archives, "unchanged", "demanded: < 0.25 s", add)?;
    gets(&work, &archives, "", add)?;
    discard(bench)
}

/// Keeps the source in a new store, each tool in turn, as often as there are rounds.
pub(super) fn puts(
    work: &VaultBenchInput<'_>,
    tools: &[VaultBenchTool],
    note: &dyn Fn(&VaultBenchTool, f64) -> String,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<(), Error> {
    let mut results = vec![(vec![], 0); tools.len()];
    for _ in 0..work.bench.rounds {
        for (tool, (runs, stored)) in tools.iter().zip(&mut results) {
            let store = fresh(work.bench, tool)?;
            let before = measure::size(&store);
            measure::warm(&work.source);
            runs.push(work.bench.run(&tool.put(&store, &work.source, work.cores), work.cores)?);
            *stored = measure::size(&store) - before;
        }
    }
    for (tool, (runs, stored)) in tools.iter().zip(results) {
        let median = VaultBenchMedian::of(&runs);
        let cores = if work.cores > 1 { format!(", {} cores", work.cores) } else { String::new() };
        let what = format!("{}, put{cores}", work.name);
        add(row(work, tool, what, median, Some(stored), note(tool, median.seconds)));
    }
    Ok(())
}

/// Keeps the source once more in the store that is there, each tool in turn; the bytes are those of
/// the first time.
pub(super) fn again(
    work: &VaultBenchInput<'_>,
    tools: &[VaultBenchTool],
    what: &str,
    demanded: &str,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<(), Error> {
    let mut results = vec![(vec![], None); tools.len()];
    for _ in 0..work.bench.rounds {
        for (tool, (runs, first)) in tools.iter().zip(&mut results) {
            let store = store(work.bench, tool);
            let before = measure::size(&store);
            measure::warm(&work.source);
            runs.push(work.bench.run(&tool.put(&store, &work.source, work.cores), work.cores)?);
            first.get_or_insert(measure::size(&store).saturating_sub(before));
        }
    }
    for (tool, (runs, first)) in tools.iter().zip(results) {
        let note = if tool.is_usual() { demanded.to_owned() } else { String::new() };
        let what = format!("{}, {what}", work.name);
        add(row(work, tool, what, VaultBenchMedian::of(&runs), first, note));
    }
    Ok(())
}

/// Restores what was kept, with whatever the tool verifies while it does so.
pub(super) fn gets(
    work: &VaultBenchInput<'_>,
    tools: &[VaultBenchTool],
    demanded: &str,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<(), Error> {
    let mut results = vec![vec![]; tools.len()];
    for round in 0..work.bench.rounds {
        for (number, (tool, runs)) in tools.iter().zip(&mut results).enumerate() {
            let target = folder(work.bench, &format!("target-{round}-{number}"))?;
            let store = store(work.bench, tool);
            measure::warm(&store);
            let command = tool.get(&store, &target);
            runs.push(work.bench.run(&command, work.cores)?);
            let restored = measure::size(&target);
            if restored != work.set.bytes {
                let said = format!("{restored} bytes came back of {}", work.set.bytes);
                return Err(Error::Tool { tool: tool.name.clone(), said });
            }
            // Before ext4 takes an inode it looks at each that was freed lately: who restores
            // after thousands were removed pays for that. Many files stay until all are done.
            if work.set.files < FEW_FILES {
                fs::remove_dir_all(&target).map_err(Error::io("removing a target"))?;
            }
        }
    }
    for (tool, runs) in tools.iter().zip(results) {
        let note = if tool.is_usual() { demanded.to_owned() } else { String::new() };
        let what = format!("{}, restore", work.name);
        add(row(work, tool, what, VaultBenchMedian::of(&runs), None, note));
    }
    Ok(())
}

/// The time that a process of ours takes before and after the files: start, key derivation, an
/// empty put.
fn unlock(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<f64, Error> {
    let source = folder(bench, "empty")?;
    let set = data::BenchFileSet { files: 0, bytes: 0 };
    let work = VaultBenchInput { bench, source, set, name: "nothing", cores: 1 };
    let Some(tool) = tools.iter().find(|tool| tool.is_usual()) else { return Ok(0.0) };
    let mut runs: Vec<VaultBenchRun> = vec![];
    for _ in 0..bench.rounds {
        let store = fresh(bench, tool)?;
        runs.push(bench.run(&tool.put(&store, &work.source, 1), 1)?);
    }
    let median = VaultBenchMedian::of(&runs);
    let note = "start, Argon2id (64 MiB, 3 passes, 4 lanes) and an empty snapshot".to_owned();
    add(row(&work, tool, "nothing, put".to_owned(), median, None, note));
    Ok(median.seconds)
}

pub(super) fn row(
    work: &VaultBenchInput<'_>,
    tool: &VaultBenchTool,
    what: String,
    median: VaultBenchMedian,
    stored: Option<u64>,
    note: String,
) -> VaultBenchRow {
    VaultBenchRow {
        tool: tool.name.clone(),
        what,
        seconds: median.seconds,
        range: median.range,
        files: work.set.files,
        bytes: work.set.bytes,
        stored,
        memory_kib: median.memory_kib,
        note,
    }
}

/// Gives every folder of the data another name.
fn rename(source: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(source).map_err(Error::io("renaming"))?.flatten() {
        let name = format!("renamed {}", entry.file_name().display());
        fs::rename(entry.path(), source.join(name)).map_err(Error::io("renaming"))?;
    }
    Ok(())
}

/// The store of a tool.
pub(super) fn store(bench: &VaultBench, tool: &VaultBenchTool) -> PathBuf {
    bench.folder.join(tool.name.replace(' ', "-").replace('\'', "").replace('.', "-"))
}

/// A new store in the place of an older one.
fn fresh(bench: &VaultBench, tool: &VaultBenchTool) -> Result<PathBuf, Error> {
    let store = store(bench, tool);
    for old in [&store, &store.with_extension("state")] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(Error::io("removing a store"))?;
        }
        fs::create_dir_all(old).map_err(Error::io("making a store"))?;
    }
    if let Some(command) = tool.init(&store) {
        bench.run(&command, 1)?;
    }
    Ok(store)
}

/// A new, empty folder.
pub(super) fn folder(bench: &VaultBench, name: &str) -> Result<PathBuf, Error> {
    let folder = bench.folder.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Error::io("removing a folder"))?;
    }
    fs::create_dir_all(&folder).map_err(Error::io("making a folder"))?;
    Ok(folder)
}

/// Makes room for the next group.
pub(super) fn discard(bench: &VaultBench) -> Result<(), Error> {
    for entry in fs::read_dir(&bench.folder).map_err(Error::io("removing"))?.flatten() {
        fs::remove_dir_all(entry.path()).map_err(Error::io("removing"))?;
    }
    Ok(())
}
