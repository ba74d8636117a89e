//! The report for programs: `docs/BENCHMARKING.md`, section *The report as JSON*.

use sealane_message::Value;

use super::link::LinkRow;
use super::radio::RadioRow;
use super::report::{CostInput, CostReport, FigureSource, WayRow};
use super::step::CostStep;
use super::table::StepRow;
use super::way::{CostLink, compression_name, suite_name};
use crate::measure::BenchHost;

/// The report as one value, version 1.
pub fn record(report: &CostReport) -> Value {
    map(vec![
        ("v", Value::from(1_u64)),
        ("machine", machine(&report.machine)),
        ("input", input(&report.input)),
        ("steps", Value::Array(report.steps.iter().map(step).collect())),
        ("links", Value::Array(report.links.iter().map(link).collect())),
        ("radios", Value::Array(report.radios.iter().map(radio).collect())),
        ("ways", Value::Array(report.ways.iter().map(way).collect())),
        ("advice", texts(&report.advice)),
    ])
}

/// The head of every result.
pub(crate) fn machine(machine: &BenchHost) -> Value {
    map(vec![
        ("cpu", machine.cpu.as_str().into()),
        ("cores", (machine.cores as u64).into()),
        ("kernel", machine.kernel.as_str().into()),
        ("commit", machine.commit.as_str().into()),
        ("timeS", machine.time_s.into()),
        ("build", BenchHost::build().into()),
    ])
}

pub(crate) fn map(fields: Vec<(&str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

pub(crate) fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| text.as_str().into()).collect())
}

fn input(input: &CostInput) -> Value {
    map(vec![
        ("messages", input.seen.into()),
        ("bytes", input.bytes.into()),
        ("broken", input.broken.into()),
        ("refusals", texts(&input.refusals)),
        ("sampled", (input.sampled as u64).into()),
        ("opaque", (input.opaque as u64).into()),
        ("timed", (input.timed as u64).into()),
    ])
}

fn step(row: &StepRow) -> Value {
    let cost = &row.cost;
    map(vec![
        ("step", row.step.name().into()),
        ("variant", cost.name.as_str().into()),
        ("bytesBefore", Value::F64(row.bytes.0)),
        ("bytesAfter", Value::F64(row.bytes.1)),
        ("ns", Value::F64(cost.ns.median)),
        ("nsLow", Value::F64(cost.ns.low)),
        ("nsHigh", Value::F64(cost.ns.high)),
        ("allocations", Value::F64(cost.allocations)),
        ("allocatedBytes", Value::F64(cost.allocated_bytes)),
    ])
}

fn link(row: &LinkRow) -> Value {
    map(vec![
        ("name", row.name.into()),
        ("mtu", (row.mtu as u64).into()),
        ("bytesHeaders", (row.headers as u64).into()),
        ("bytesBodyAtOnce", (row.body_at_once as u64).into()),
        ("units", Value::F64(row.units)),
        ("bytesWire", Value::F64(row.wire)),
    ])
}

fn radio(row: &RadioRow) -> Value {
    map(vec![
        ("name", row.link.name().into()),
        ("codec", row.codec.name().into()),
        ("class", row.class.letter().to_string().into()),
        ("bytesUnit", (row.unit_bytes as u64).into()),
        ("units", Value::F64(row.units)),
        ("bytesAir", Value::F64(row.bytes)),
        ("airS", Value::F64(row.air_s)),
        ("duty", Value::F64(row.duty)),
        ("share", Value::F64(row.share())),
        ("messagesPerHour", Value::F64(row.messages_an_hour())),
    ])
}

fn way(row: &WayRow) -> Value {
    let optional = |value: Option<f64>| value.map_or(Value::Null, Value::F64);
    let (seal, cipher) = row.way.seal.map_or((Value::Null, Value::Null), |(class, suite)| {
        (class.letter().to_string().into(), suite_name(suite).into())
    });
    let (link, level) = match row.way.link {
        CostLink::Memory => ("memory", Value::Null),
        CostLink::WebSocket(level) => ("websocket", level.name().into()),
    };
    let composed = match &row.source {
        FigureSource::Measured => Value::Null,
        FigureSource::Composed { rest } => rest.as_str().into(),
    };
    let steps = CostStep::ALL.map(|step| (step.name(), Value::F64(row.steps[step as usize])));
    map(vec![
        ("name", row.way.to_string().into()),
        ("composedWith", composed),
        ("codec", row.way.codec.name().into()),
        ("compression", compression_name(row.way.compression).into()),
        ("class", seal),
        ("cipher", cipher),
        ("form", if row.way.form == sealane_seal::Form::Full { "full" } else { "compact" }.into()),
        ("link", link.into()),
        ("level", level),
        ("bytesBody", Value::F64(row.body)),
        ("bytesCompressed", Value::F64(row.pressed)),
        ("bytesWire", Value::F64(row.wire)),
        ("bytesRest", Value::F64(row.rest)),
        ("p50Ns", optional(row.latency_ns.map(|(p50, _)| p50))),
        ("p99Ns", optional(row.latency_ns.map(|(_, p99)| p99))),
        ("cpuSPerMillion", Value::F64(row.cpu_s_per_million())),
        ("cpuNsLow", Value::F64(row.cpu_ns.low)),
        ("cpuNsHigh", Value::F64(row.cpu_ns.high)),
        ("allocations", optional(row.allocations)),
        ("stepNs", map(steps.into())),
    ])
}
