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
use std::io;
use std::path::PathBuf;

pub use n2s::work;

use crate::programs::BenchPrograms;

/// The measurement, and where its data is.
#[derive(Debug, Clone)]
pub struct VaultBenchOptions {
    /// The vault, and the report's own pipeline.
    pub programs: BenchPrograms,
    /// How often each row is measured; its median is shown.
    pub rounds: usize,
    /// Only groups whose name contains this: mixed, small or big.
    pub only: Option<String>,
    /// Only tools whose name contains this.
    pub tool: Option<String>,
    /// Bytes of the big file.
    pub big_bytes: u64,
    /// The folder on the disk to measure. A temporary folder by default.
    pub data: Option<PathBuf>,
    /// Further programs to measure, as `borg=/path/to/borg`.
    pub also: Vec<String>,
    /// An earlier vault to compare with.
    pub before: Option<PathBuf>,
}

/// One measurement: what a tool did with one set of data.
#[derive(Debug, Clone)]
pub struct VaultBenchRow {
    /// The tool and its settings.
    pub tool: String,
    /// Its work.
    pub what: String,
    /// The median of its rounds, from start to end of the process.
    pub seconds: f64,
    /// The spread: fastest and slowest round.
    pub range: (f64, f64),
    /// Files that it went through.
    pub files: u64,
    /// Bytes that it went through.
    pub bytes: u64,
    /// Bytes that it added to its store.
    pub stored: Option<u64>,
    /// The most memory that it held, in KiB.
    pub memory_kib: u64,
    /// A further note, and the demand.
    pub note: String,
}

impl VaultBenchRow {
    /// The head of the table.
    pub const HEAD: &str = "what                        tool                              s   \
                            fastest   slowest    files/s     MB/s    stored   memory MiB  note";
}

impl fmt::Display for VaultBenchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VaultBenchRow { what, tool, seconds, range: (fastest, slowest), note, .. } = self;
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

/// Why nothing could be measured. A tool that is missing is a row's note, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A process or file failed.
    #[error("{what}: {cause}")]
    Io {
        /// The action that failed.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// A tool ended with an error, or did something else than it was asked for.
    #[error("{tool} failed: {said}")]
    Tool {
        /// Its name.
        tool: String,
        /// Its last words.
        said: String,
    },
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |cause| Error::Io { what, cause }
    }
}

/// Measures what `options` asks for; each line is shown as it comes.
///
/// # Errors
/// [`Error`] where a tool that is there fails; a slow result is no error.
pub fn run(
    options: &VaultBenchOptions,
    show: &mut dyn FnMut(&str),
) -> Result<Vec<VaultBenchRow>, Error> {
    let folder = match &options.data {
        Some(data) => tempfile::tempdir_in(data),
        None => tempfile::tempdir(),
    };
    let folder = folder.map_err(Error::io("a temporary folder"))?;
    let bench = measure::VaultBench::new(folder.path(), options.rounds);
    let mut tools = tool::find(options, show);
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
        big::run(&bench, &tools, options.big_bytes, &mut add)?;
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
            () if now.range.0 > before.range.1 => "slower in every round",
            () if now.range.1 < before.range.0 => "faster in every round",
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
            range: (fastest, slowest),
            files: 1,
            bytes: 1,
            stored: None,
            memory_kib: 0,
            note: String::new(),
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
