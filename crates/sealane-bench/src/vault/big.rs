//! One file of a gigabyte: rates, memory, what a small change costs, and a range of it.

use super::measure::VaultBench;
use super::small::{VaultBenchInput, archives, discard, folder, store};
use super::tool::VaultBenchTool;
use super::{VaultBenchRow, data};
use crate::failure::Result;

const RANGE: u64 = 1 << 20;

/// All rows of the big file.
pub(super) fn run(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    size: u64,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<()> {
    let source = folder(bench, "big")?;
    let file = source.join("recording.bin");
    let set = data::big(&file, size, b"")?;
    let mut work = VaultBenchInput { bench, source, set, name: "1 GB", cores: 1 };
    let archives = archives(tools);
    let ours: Vec<VaultBenchTool> =
        tools.iter().filter(|tool| tool.is_sealane()).cloned().collect();
    work.puts(tools, &one_core, add)?;
    work.gets(&archives, "demanded: >= 500 MB/s", add)?;
    let usual: Vec<VaultBenchTool> = ours.iter().filter(|tool| tool.is_usual()).cloned().collect();
    ranges(&work, &usual, size, add)?;
    work.set = data::big(&file, size, b"!")?;
    work.again(&archives, "1 byte at its front", "demanded: <= 8 MiB stored", add)?;
    work.cores = 2;
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        work.puts(&ours, &|_, _| "demanded: >= 1.8 times one core".to_owned(), add)?;
    }
    discard(bench)
}

fn one_core(tool: &VaultBenchTool, _: f64) -> String {
    let rate = match &*tool.name {
        "sealane zstd-3" => 170,
        "sealane lz4" => 250,
        "sealane stored" => 500,
        _ => return String::new(),
    };
    format!("demanded: >= {rate} MB/s in < 64 MiB")
}

/// One MiB from the middle, verified, without the rest; each tool in turn.
fn ranges(
    work: &VaultBenchInput<'_>,
    tools: &[VaultBenchTool],
    size: u64,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<()> {
    let set = data::BenchFileSet { files: 1, bytes: RANGE };
    let part = VaultBenchInput { bench: work.bench, source: work.source.clone(), set, ..*work };
    let mut round = |number, tool: &VaultBenchTool| {
        let offset = size / 2 + number as u64 * RANGE / 2;
        let store = store(work.bench, tool);
        let command = tool.range(&store, "big/recording.bin", offset, RANGE);
        Ok((work.bench.run(&command, 1)?, None))
    };
    let note = "a process each, unlock included; demanded: < 20 ms after unlock";
    let what = "1 GB, a range of 1 MiB";
    part.rounds(tools, what, &|_, _| note.to_owned(), &mut round, add)
}
