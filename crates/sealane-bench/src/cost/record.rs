//! The report for programs: `docs/BENCHMARKING.md`, section *The report as JSON*.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::link::LinkRow;
use super::radio::RadioRow;
use super::report::{CostInput, CostReport, FigureSource, WayRow};
use super::step::CostStep;
use super::table::StepRow;
use super::way::{CostLink, compression_name, suite_name};

/// The report as one value.
pub(crate) fn record(report: &CostReport) -> impl Serialize {
    json!({
        "machine": report.machine,
        "input": input(&report.input),
        "steps": report.steps.iter().map(step).collect::<Value>(),
        "links": report.links.iter().map(link).collect::<Value>(),
        "radios": report.radios.iter().map(radio).collect::<Value>(),
        "ways": report.ways.iter().map(way).collect::<Value>(),
        "advice": report.advice,
    })
}

fn input(input: &CostInput) -> Value {
    let CostInput { seen, bytes, broken, refusals, sampled, opaque, timed } = input;
    json!({
        "messages": seen, "bytes": bytes, "broken": broken, "refusals": refusals,
        "sampled": sampled, "opaque": opaque, "timed": timed,
    })
}

fn step(row: &StepRow) -> Value {
    let (cost, (before, after)) = (&row.cost, row.bytes);
    json!({
        "step": row.step.name(), "variant": cost.name,
        "bytesBefore": before, "bytesAfter": after,
        "ns": cost.ns.median, "nsLow": cost.ns.low, "nsHigh": cost.ns.high,
        "allocations": cost.allocations, "allocatedBytes": cost.allocated_bytes,
    })
}

fn link(row: &LinkRow) -> Value {
    json!({
        "name": row.name, "mtu": row.mtu, "bytesHeaders": row.headers,
        "bytesBodyAtOnce": row.body_at_once, "units": row.units, "bytesWire": row.wire,
    })
}

fn radio(row: &RadioRow) -> Value {
    json!({
        "name": row.link.name(), "codec": row.codec.name(), "class": row.class.letter(),
        "bytesUnit": row.unit_bytes, "units": row.units, "bytesAir": row.bytes,
        "airS": row.air_s, "duty": row.duty, "share": row.share(),
        "messagesPerHour": row.messages_an_hour(),
    })
}

fn way(row: &WayRow) -> Value {
    let (class, cipher) =
        row.way.seal.map(|(class, suite)| (class.letter(), suite_name(suite))).unzip();
    let (link, level) = match row.way.link {
        CostLink::Memory => ("memory", None),
        CostLink::WebSocket(level) => ("websocket", Some(level.name())),
    };
    let composed = match &row.source {
        FigureSource::Measured => None,
        FigureSource::Composed { rest } => Some(rest),
    };
    let (p50, p99) = row.latency_ns.unzip();
    let steps = CostStep::ALL.map(|step| (step.name().to_owned(), row.steps[step as usize].into()));
    json!({
        "name": row.way.to_string(), "composedWith": composed,
        "codec": row.way.codec.name(), "compression": compression_name(row.way.compression),
        "class": class, "cipher": cipher,
        "form": if row.way.form == sealane_seal::Form::Full { "full" } else { "compact" },
        "link": link, "level": level,
        "bytesBody": row.body, "bytesCompressed": row.pressed,
        "bytesWire": row.wire, "bytesRest": row.rest,
        "p50Ns": p50, "p99Ns": p99,
        "cpuSPerMillion": row.cpu_s_per_million(),
        "cpuNsLow": row.cpu_ns.low, "cpuNsHigh": row.cpu_ns.high,
        "allocations": row.allocations,
        "stepNs": Map::from_iter(steps),
    })
}
