//! `sealane bench`.

use sealane::Value;
use sealane_bench::load::{self, Options, Programs, Report, Row};

use crate::args::{Bench, BenchCommand, BenchLoad};
use crate::{Failure, Terminal};

/// Measures, and shows each row as it comes.
///
/// # Errors
/// [`Failure::Bench`] where a process fails; a slow result is no failure.
pub async fn run(args: &Bench, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.command {
        BenchCommand::Load(args) => run_load(args, terminal).await,
        BenchCommand::Worker { work } => Ok(load::work(work).await?),
    }
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
