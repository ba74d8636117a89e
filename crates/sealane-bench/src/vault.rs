//! A vault beside the report's own pipeline and the tools that people use today: the same data, the
//! same core, one run after the other in turns.
//!
//! Every tool is a process of its own, pinned to one core unless its row says otherwise, and writes
//! to the same disk. Data are made anew from a fixed seed and lie in the page cache.

mod big;
mod data;
mod measure;
mod n2s;
mod small;
mod tool;

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

pub(crate) use n2s::work;

use crate::failure::Result;
use crate::process::folder;
use crate::programs::BenchPrograms;

/// The measurement, and where its data is.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct VaultBenchOptions {
    /// How often each row is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Only this group of rows: mixed, small or big
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Only tools whose name contains this, for example sealane or borg
    #[arg(long, value_name = "TEXT")]
    pub(crate) tool: Option<String>,
    /// Bytes of the big file
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000_000)]
    pub(crate) big: u64,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A further program, for example borg=/opt/borg/bin/borg
    #[arg(long, value_name = "NAME=PATH")]
    pub(crate) also: Vec<String>,
    /// An earlier `sealane`, which is measured in turns with this one and compared
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) before: Option<PathBuf>,
}

/// One measurement: what a tool did with one set of data.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VaultBenchRow {
    /// The tool and its settings.
    pub(crate) tool: String,
    pub(crate) what: String,
    /// The median of its rounds, from start to end of the process.
    pub(crate) seconds: f64,
    fastest: f64,
    slowest: f64,
    /// Files and bytes that it went through.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Bytes that it added to its store.
    pub(crate) stored: Option<u64>,
    /// The most memory that it held.
    pub(crate) memory_kib: u64,
    /// A further note, and the demand.
    pub(crate) note: String,
}

impl VaultBenchRow {
    /// The head of the table.
    const HEAD: &str = "what                        tool                              s   \
                            fastest   slowest    files/s     MB/s    stored   memory MiB  note";
}

impl fmt::Display for VaultBenchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VaultBenchRow { what, tool, seconds, fastest, slowest, note, .. } = self;
        let per_second = |amount: u64| amount as f64 / seconds;
        let (files, rate) = (per_second(self.files), per_second(self.bytes) / 1e6);
        let stored =
            self.stored.map_or_else(String::new, |stored| match stored * 100 < self.bytes {
                true => format!("{:.2}M", stored as f64 / 1e6),
                false => format!("{:.3}x", stored as f64 / self.bytes as f64),
            });
        let memory = self.memory_kib as f64 / 1024.0;
        write!(
            f,
            "{what:27} {tool:28} {seconds:>7.3} {fastest:>9.3} {slowest:>9.3} {files:>10.0} \
             {rate:>8.1} {stored:>9} {memory:>12.1}  {note}"
        )
    }
}

/// Measures what `options` asks for; each line is shown as it comes.
pub(crate) fn run(
    programs: &BenchPrograms,
    options: &VaultBenchOptions,
    show: &mut dyn FnMut(&str),
) -> Result<Vec<VaultBenchRow>> {
    let folder = folder(options.data.as_deref())?;
    let bench = measure::VaultBench::new(folder.path(), options.rounds);
    let mut tools = tool::find(programs, options, show);
    tools.retain(|tool| options.tool.as_ref().is_none_or(|only| tool.name.contains(&**only)));
    let wanted = |group: &str| options.only.as_ref().is_none_or(|only| group.contains(&**only));
    show(&format!("{}; {} rounds each, in turns", bench.pinning(), options.rounds));
    show(VaultBenchRow::HEAD);
    let mut rows = vec![];
    let mut add = |row: VaultBenchRow| {
        show(&row.to_string());
        rows.push(row);
    };
    if wanted("mixed") {
        small::mixed(&bench, &tools, &mut add)?;
    }
    if wanted("small") {
        small::many(&bench, &tools, &mut add)?;
    }
    if wanted("big") {
        big::run(&bench, &tools, options.big, &mut add)?;
    }
    compared(&rows).iter().for_each(|line| show(line));
    Ok(rows)
}

/// Each row of ours beside that of the vault before.
fn compared(rows: &[VaultBenchRow]) -> Vec<String> {
    let before = |now: &VaultBenchRow| {
        let name = now.tool.strip_prefix(tool::NOW)?;
        let is_before = |row: &&VaultBenchRow| row.tool.strip_prefix(tool::BEFORE) == Some(name);
        rows.iter().filter(is_before).find(|row| row.what == now.what)
    };
    let line = |now: &VaultBenchRow| {
        let before = before(now)?;
        let verdict = match () {
            () if now.fastest > before.slowest => "slower in every round",
            () if now.slowest < before.fastest => "faster in every round",
            () => "as fast: the rounds overlap",
        };
        let (what, ratio) = (&now.what, now.seconds / before.seconds);
        let (tool, seconds, earlier) = (&now.tool, now.seconds, before.seconds);
        Some(format!(
            "{what:27} {tool:16} {seconds:>7.3} s, before {earlier:>7.3} s: {ratio:.3}, {verdict}"
        ))
    };
    rows.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tool: &str, what: &str, seconds: [f64; 3]) -> VaultBenchRow {
        let [fastest, median, slowest] = seconds;
        VaultBenchRow {
            tool: tool.to_owned(),
            what: what.to_owned(),
            seconds: median,
            fastest,
            slowest,
            ..VaultBenchRow::default()
        }
    }

    #[test]
    fn rows_are_compared_with_those_of_the_same_settings_before() {
        let rows = [
            row("sealane lz4", "put", [1.0, 1.1, 1.2]),
            row("before lz4", "put", [0.8, 0.9, 0.99]),
            row("before lz4", "get", [2.0, 2.1, 2.2]),
            row("sealane lz4", "get", [1.0, 1.05, 2.1]),
            row("sealane zstd-3", "get", [1.0, 1.0, 1.0]),
            row("restic 0.18", "get", [1.0, 1.0, 1.0]),
        ];
        let lines = compared(&rows);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("1.222, slower in every round"), "{lines:?}");
        assert!(lines[1].contains("0.500, as fast"), "{lines:?}");
    }
}
