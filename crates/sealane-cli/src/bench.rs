//! `sealane bench`.

use sealane::Value;
use sealane_bench::guard;
use sealane_bench::load::{self, Options, Programs, Report, Row};
use sealane_bench::vault;

mod cost;
mod race;
mod report;

use crate::args::bench::{Bench, BenchCommand, BenchLoad, BenchVault};
use crate::{Failure, Terminal};

/// Measures, and shows each row as it comes.
///
/// # Errors
/// [`Failure::Bench`] where a process fails; a slow result is no failure.
pub async fn run(args: &Bench, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.command {
        BenchCommand::Cost(args) => cost::run(args, terminal).await,
        BenchCommand::Counts { alone } => counts(alone, terminal),
        BenchCommand::Report(args) => report::run(args, terminal),
        BenchCommand::Load(args) => run_load(args, terminal).await,
        BenchCommand::Vault(args) => run_vault(args, terminal),
        BenchCommand::Race(args) => race::run(args, terminal).await,
        BenchCommand::RaceClient { work } => Ok(sealane_bench::race::work(work).await?),
        BenchCommand::N2s { source, target } => Ok(vault::work(source, target)?),
        BenchCommand::Worker { work } => Ok(load::work(work).await?),
    }
}

fn counts(alone: &[usize], terminal: &mut Terminal) -> Result<(), Failure> {
    if let [way, rounds] = alone {
        return Ok(guard::repeat(*way, *rounds)?);
    }
    let counts = guard::counts()?;
    counts.iter().try_for_each(|count| terminal.line(format!("{} = {}", count.name, count.value)))
}

async fn run_load(args: &BenchLoad, terminal: &mut Terminal) -> Result<(), Failure> {
    let programs = Programs::of(std::env::current_exe().map_err(Failure::Runtime)?);
    let options = Options {
        each: args.each,
        envelope_bytes: args.size,
        readers: args.readers,
        idle: args.idle,
        fan_out: args.fan_out,
        only: args.only.clone(),
        data: args.data.clone(),
    };
    let json = terminal.json();
    if !json {
        terminal.line(Row::HEAD)?;
        terminal.flush()?;
    }
    let mut shown = Ok(());
    let mut show = |row: &Row| {
        if !json && shown.is_ok() {
            shown = terminal.line(row).and_then(|()| terminal.flush());
        }
    };
    let report = load::run(&programs, &options, &mut show).await?;
    shown?;
    if json { records(&report, terminal) } else { terminal.line(&report.machine) }
}

fn run_vault(args: &BenchVault, terminal: &mut Terminal) -> Result<(), Failure> {
    let options = vault::Options {
        sealane: std::env::current_exe().map_err(Failure::Runtime)?,
        rounds: args.rounds,
        only: args.only.clone(),
        tool: args.tool.clone(),
        big_bytes: args.big,
        data: args.data.clone(),
        also: args.also.clone(),
    };
    let json = terminal.json();
    let mut shown = Ok(());
    let mut show = |line: &str| {
        if !json && shown.is_ok() {
            shown = terminal.line(line).and_then(|()| terminal.flush());
        }
    };
    let rows = vault::run(&options, &mut show)?;
    shown?;
    let rows = if json { &*rows } else { &[] };
    rows.iter().try_for_each(|row| {
        terminal.record(vec![
            ("tool", row.tool.as_str().into()),
            ("what", row.what.as_str().into()),
            ("seconds", Value::F64(row.seconds)),
            ("fastest", Value::F64(row.range.0)),
            ("slowest", Value::F64(row.range.1)),
            ("files", row.files.into()),
            ("bytes", row.bytes.into()),
            ("stored", row.stored.map_or(Value::Null, Value::from)),
            ("memoryKib", row.memory_kib.into()),
            ("note", row.note.as_str().into()),
        ])
    })
}

fn records(report: &Report, terminal: &mut Terminal) -> Result<(), Failure> {
    let machine = &report.machine;
    terminal.record(vec![
        ("cpu", machine.cpu.as_str().into()),
        ("cores", (machine.cores as u64).into()),
        ("kernel", machine.kernel.as_str().into()),
        ("commit", machine.commit.as_str().into()),
        ("timeS", machine.time_s.into()),
    ])?;
    for row in &report.rows {
        let (p50, p99) = row.latency_us.unwrap_or_default();
        terminal.record(vec![
            ("name", row.name.as_str().into()),
            ("level", row.level.into()),
            ("codec", row.codec.as_str().into()),
            ("connections", (row.connections as u64).into()),
            ("count", row.count.into()),
            ("seconds", Value::F64(row.seconds)),
            ("perSecond", Value::F64(row.rate())),
            ("perCore", row.rate_per_core().map_or(Value::Null, Value::F64)),
            ("p50Us", Value::F64(p50)),
            ("p99Us", Value::F64(p99)),
            ("note", row.note.as_str().into()),
        ])?;
    }
    Ok(())
}
