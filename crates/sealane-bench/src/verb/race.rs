//! `sealane-bench race`.

use sealane_message::Value;

use super::programs;
use crate::measure::BenchHost;
use crate::output::BenchOutput;
use crate::race::{self, RaceOptions, RaceReport};
use crate::{BenchFailure, args};

/// Races, and shows each line as it comes.
pub(super) async fn run(
    args: &args::BenchRaceArgs,
    output: &mut BenchOutput,
) -> Result<(), BenchFailure> {
    let options = RaceOptions {
        programs: programs()?,
        peers: args.peers.clone(),
        each: args.each,
        rounds: args.rounds.max(1),
        bodies: args.body.clone(),
        subscribers: args.subscribers,
        only: args.only.clone(),
        data: args.data.clone(),
    };
    let mut lines = output.rows();
    let report = race::run(&options, &mut |line| lines.show(line)).await?;
    lines.done()?;
    if output.json() { records(&report, output) } else { Ok(()) }
}

fn records(report: &RaceReport, output: &mut BenchOutput) -> Result<(), BenchFailure> {
    let settings = report.settings.iter().map(|line| Value::from(line.as_str())).collect();
    let machine = &report.machine;
    output.record(vec![
        ("cpu", machine.cpu.as_str().into()),
        ("cores", (machine.cores as u64).into()),
        ("kernel", machine.kernel.as_str().into()),
        ("commit", machine.commit.as_str().into()),
        ("build", BenchHost::build().into()),
        ("timeS", machine.time_s.into()),
        ("settings", Value::Array(settings)),
    ])?;
    for row in &report.rows {
        let (slowest, fastest) = row.range;
        output.record(vec![
            ("heat", row.heat.as_str().into()),
            ("contender", row.contender.as_str().into()),
            ("durability", row.durability.as_str().into()),
            ("bodyBytes", (row.body_bytes as u64).into()),
            ("connections", (row.connections as u64).into()),
            ("perSecond", Value::F64(row.per_second)),
            ("slowest", Value::F64(slowest)),
            ("fastest", Value::F64(fastest)),
            ("cpuSPerMillion", Value::F64(row.cpu_s_per_million)),
            ("residentBytes", row.resident_bytes.into()),
            ("p50Us", row.p50_us.map_or(Value::Null, Value::F64)),
            ("p99Us", row.p99_us.map_or(Value::Null, Value::F64)),
            ("group", row.group.map_or(Value::Null, Value::F64)),
            ("failed", row.failed.as_deref().map_or(Value::Null, Value::from)),
        ])?;
    }
    report.demands.iter().try_for_each(|demand| {
        output.record(vec![
            ("ours", demand.ours.as_str().into()),
            ("theirs", demand.theirs.as_deref().map_or(Value::Null, Value::from)),
            ("measure", demand.measure.name().into()),
            ("value", Value::F64(demand.value)),
            ("demanded", demand.bound.map_or(Value::Null, Value::F64)),
            ("met", demand.bound.map_or(Value::Null, |_| demand.is_met().into())),
        ])
    })
}
