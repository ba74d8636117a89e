//! The work of each verb: options from flags, figures to [`Output`].

mod cost;
mod race;
mod relay;
mod report;

use sealane_message::Value;

use crate::args::{self, Command};
use crate::load::{self, Machine, Report, Row};
use crate::output::Output;
use crate::programs::Programs;
use crate::{Failure, guard, hop, vault};

/// Measures, and shows each row as it comes.
pub(crate) async fn run(command: &Command, output: &mut Output) -> Result<(), Failure> {
    match command {
        Command::Cost(args) => cost::run(args, output).await,
        Command::Counts { alone } => counts(alone, output),
        Command::Report(args) => report::run(args, output),
        Command::Load(args) => run_load(args, output).await,
        Command::Vault(args) => run_vault(args, output),
        Command::Hop(part) => hop(part, output),
        Command::Race(args) => race::run(args, output).await,
        Command::Relay(args) => relay::run(args, output),
        Command::RaceClient { work } => Ok(crate::race::work(work).await?),
        Command::N2s { source, target } => Ok(vault::work(source, target)?),
        Command::Worker { work } => Ok(load::work(work).await?),
    }
}

/// This program, and what it measures, which has to be there.
fn programs() -> Result<Programs, Failure> {
    let programs = Programs::here().map_err(Failure::measurement)?;
    programs.check()?;
    Ok(programs)
}

/// Says that the links are open, and carries until it is ended.
fn hop(part: &args::Hop, output: &mut Output) -> Result<(), Failure> {
    let mut said = Ok(());
    let ready = || said = output.line_now("ready");
    let ended = match part {
        args::Hop::Forward(args) => hop::forward(args, ready),
        args::Hop::End(args) => hop::end(args, ready),
    };
    ended.map_err(Failure::measurement)?;
    said
}

fn counts(alone: &[usize], output: &mut Output) -> Result<(), Failure> {
    if let [way, rounds] = alone {
        return Ok(guard::repeat(*way, *rounds)?);
    }
    let counts = guard::counts()?;
    counts.iter().try_for_each(|count| output.line(format!("{} = {}", count.name, count.value)))
}

async fn run_load(args: &args::Load, output: &mut Output) -> Result<(), Failure> {
    let programs = programs()?;
    let options = load::Options {
        each: args.each,
        envelope_bytes: args.size,
        readers: args.readers,
        idle: args.idle,
        fan_out: args.fan_out,
        only: args.only.clone(),
        data: args.data.clone(),
    };
    let mut rows = output.rows();
    rows.show(Row::HEAD);
    let report = load::run(&programs, &options, &mut |row| rows.show(row)).await?;
    rows.done()?;
    if output.json() { records(&report, output) } else { output.line(&report.machine) }
}

fn run_vault(args: &args::Vault, output: &mut Output) -> Result<(), Failure> {
    let options = vault::Options {
        programs: programs()?,
        rounds: args.rounds,
        only: args.only.clone(),
        tool: args.tool.clone(),
        big_bytes: args.big,
        data: args.data.clone(),
        also: args.also.clone(),
        before: args.before.clone(),
    };
    let mut lines = output.rows();
    lines.show(Machine::here());
    let rows = vault::run(&options, &mut |line| lines.show(line))?;
    lines.done()?;
    let rows = if output.json() { &*rows } else { &[] };
    rows.iter().try_for_each(|row| {
        output.record(vec![
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

fn records(report: &Report, output: &mut Output) -> Result<(), Failure> {
    let machine = &report.machine;
    output.record(vec![
        ("cpu", machine.cpu.as_str().into()),
        ("cores", (machine.cores as u64).into()),
        ("kernel", machine.kernel.as_str().into()),
        ("commit", machine.commit.as_str().into()),
        ("build", Machine::build().into()),
        ("timeS", machine.time_s.into()),
    ])?;
    for row in &report.rows {
        let (p50, p99) = row.latency_us.unwrap_or_default();
        output.record(vec![
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
