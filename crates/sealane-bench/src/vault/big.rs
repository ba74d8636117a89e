//! One file of a gigabyte: rates, memory, what a small change costs, and a range of it.

use super::measure::{VaultBench, VaultBenchMedian};
use super::small::{VaultBenchInput, again, discard, folder, gets, puts, row, store};
use super::tool::VaultBenchTool;
use super::{Error, VaultBenchRow, data};

const RANGE: u64 = 1 << 20;

/// All rows of the big file.
pub(super) fn run(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    size: u64,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<(), Error> {
    let source = folder(bench, "big")?;
    let file = source.join("recording.bin");
    let set = data::big(&file, size, b"")?;
    let mut work = VaultBenchInput { bench, source, set, name: "1 GB", cores: 1 };
    let archives: Vec<VaultBenchTool> =
        tools.iter().filter(|tool| tool.is_archive()).cloned().collect();
    let ours: Vec<VaultBenchTool> =
        tools.iter().filter(|tool| tool.is_sealane()).cloned().collect();
    puts(&work, tools, &one_core, add)?;
    gets(&work, &archives, "demanded: >= 500 MB/s", add)?;
    let usual: Vec<VaultBenchTool> = ours.iter().filter(|tool| tool.is_usual()).cloned().collect();
    ranges(&work, &usual, size, add)?;
    work.set = data::big(&file, size, b"!")?;
    let demanded = "demanded: <= 8 MiB stored";
    again(&work, &archives, "1 byte at its front", demanded, add)?;
    work.cores = 2;
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        puts(&work, &ours, &|_, _| "demanded: >= 1.8 times one core".to_owned(), add)?;
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
) -> Result<(), Error> {
    let mut results = vec![vec![]; tools.len()];
    for round in 0..work.bench.rounds as u64 {
        let offset = size / 2 + round * RANGE / 2;
        for (tool, runs) in tools.iter().zip(&mut results) {
            let command = tool.range(&store(work.bench, tool), "big/recording.bin", offset, RANGE);
            runs.push(work.bench.run(&command, 1)?);
        }
    }
    let set = data::BenchFileSet { files: 1, bytes: RANGE };
    let work = VaultBenchInput { bench: work.bench, source: work.source.clone(), set, ..*work };
    for (tool, runs) in tools.iter().zip(results) {
        let note = "a process each, unlock included; demanded: < 20 ms after unlock".to_owned();
        add(row(
            &work,
            tool,
            "1 GB, a range of 1 MiB".to_owned(),
            VaultBenchMedian::of(&runs),
            None,
            note,
        ));
    }
    Ok(())
}
