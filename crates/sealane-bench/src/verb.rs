//! The work of each verb: options from flags, figures to [`BenchOutput`].

mod cost;
mod race;
mod relay;
mod report;

use sealane_message::Value;

use crate::args::{self, BenchVerb};
use crate::load::{self, BenchHost, LoadReport, LoadRow};
use crate::output::BenchOutput;
use crate::programs::BenchPrograms;
use crate::{BenchFailure, guard, hop, vault};

/// Measures, and shows each row as it comes.
pub(crate) async fn run(command: &BenchVerb, output: &mut BenchOutput) -> Result<(), BenchFailure> {
    match command {
        BenchVerb::Cost(args) => cost::run(args, output).await,
        BenchVerb::Counts { alone } => counts(alone, output),
        BenchVerb::Report(args) => report::run(args, output),
        BenchVerb::Load(args) => run_load(args, output).await,
        BenchVerb::Vault(args) => run_vault(args, output),
        BenchVerb::Hop(part) => hop(part, output),
        BenchVerb::Race(args) => race::run(args, output).await,
        BenchVerb::Relay(args) => relay::run(args, output),
        BenchVerb::RaceClient { work } => Ok(crate::race::work(work).await?),
        BenchVerb::N2s { source, target } => Ok(vault::work(source, target)?),
        BenchVerb::Worker { work } => Ok(load::work(work).await?),
    }
}

/// This program, and what it measures, which has to be there.
fn programs() -> Result<BenchPrograms, BenchFailure> {
    let programs = BenchPrograms::here().map_err(BenchFailure::measurement)?;
    programs.check()?;
    Ok(programs)
}

/// Says that the links are open, and carries until it is ended.
fn hop(part: &args::BenchHopVerb, output: &mut BenchOutput) -> Result<(), BenchFailure> {
    let mut said = Ok(());
    let ready = || said = output.line_now("ready");
    let ended = match part {
        args::BenchHopVerb::Forward(args) => hop::forward(args, ready),
        args::BenchHopVerb::End(args) => hop::end(args, ready),
    };
    ended.map_err(BenchFailure::measurement)?;
    said
}

fn counts(alone: &[usize], output: &mut BenchOutput) -> Result<(), BenchFailure> {
    if let [way, rounds] = alone {
        return Ok(guard::repeat(*way, *rounds)?);
    }
    let counts = guard::counts()?;
    counts.iter().try_for_each(|count| output.line(format!("{} = {}", count.name, count.value)))
}

async fn run_load(
    args: &args::BenchLoadArgs,
    output: &mut BenchOutput,
) -> Result<(), BenchFailure> {
    let programs = programs()?;
    let options = load::LoadOptions {
        each: args.each,
        envelope_bytes: args.size,
        readers: args.readers,
        idle: args.idle,
        fan_out: args.fan_out,
        only: args.only.clone(),
        data: args.data.clone(),
    };
    let mut rows = output.rows();
    rows.show(LoadRow::HEAD);
    let report = load::run(&programs, &options, &mut |row| rows.show(row)).await?;
    rows.done()?;
    if output.json() { records(&report, output) } else { output.line(&report.machine) }
}

fn run_vault(args: &args::BenchVaultArgs, output: &mut BenchOutput) -> Result<(), BenchFailure> {
    let options = vault::VaultBenchOptions {
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
    lines.show(BenchHost::here());
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

fn records(report: &LoadReport, output: &mut BenchOutput) -> Result<(), BenchFailure> {
    let machine = &report.machine;
    output.record(vec![
        ("cpu", machine.cpu.as_str().into()),
        ("cores", (machine.cores as u64).into()),
        ("kernel", machine.kernel.as_str().into()),
        ("commit", machine.commit.as_str().into()),
        ("build", BenchHost::build().into()),
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
