//! The report for people at a terminal.

use std::fmt;

use super::link::LinkRow;
use super::radio::RadioRow;
use super::report::{CostInput, CostReport, FigureSource, WayRow};
use super::step::CostStep;
use super::table::StepRow;
use crate::measure::{BenchFigure, FigureUnit};
use crate::text::table;

impl fmt::Display for CostReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(f, "{}\n", self.input)?;
        writeln!(f, "each step alone, one message on average")?;
        let rows: Vec<Vec<String>> = self.steps.iter().map(|row| step(row, "-")).collect();
        writeln!(f, "{}", table(&STEPS_HEAD, &rows, &[0, 1]))?;
        writeln!(f, "{LINKS}")?;
        let rows: Vec<Vec<String>> = self.links.iter().map(link).collect();
        writeln!(f, "{}", table(&LINKS_HEAD, &rows, &[0]))?;
        if !self.radios.is_empty() {
            writeln!(f, "{RADIOS}")?;
            let rows: Vec<Vec<String>> = self.radios.iter().map(radio).collect();
            writeln!(f, "{}", table(&RADIOS_HEAD, &rows, &[0, 1]))?;
        }
        writeln!(f, "from end to end, one message on average")?;
        let composed = |row: &WayRow| match row.source {
            FigureSource::Measured => row.way.to_string(),
            FigureSource::Composed { .. } => format!("{} (composed)", row.way),
        };
        let rows: Vec<Vec<String>> =
            self.ways.iter().map(|row| way(row, composed(row), "-")).collect();
        let head = ["way", "body", "wire", "rest", "p50", "p99", "allocations", "CPU s/million"];
        let head = [&head[..], &["where the CPU goes"]].concat();
        writeln!(f, "{}", table(&head, &rows, &[0, 8]))?;
        writeln!(
            f,
            "p50, p99: one message alone, in wall time. CPU: of all processes. composed: the ends \
             as measured in memory,\ncarrying and keeping as measured for `{}`\n",
            super::CostWay::composed().first().map_or(String::new(), |(_, rest)| rest.to_string())
        )?;
        self.advice.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for CostInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CostInput { seen, bytes, sampled, timed, broken, opaque, .. } = self;
        let bytes = BenchFigure::of(*bytes as f64, FigureUnit::Bytes);
        write!(f, "{seen} messages of {bytes}; {sampled} of them counted, {timed} timed")?;
        if *opaque > 0 {
            write!(f, "; {opaque} are bytes without a codec")?;
        }
        if *broken > 0 {
            write!(f, "; {broken} broken, left out:")?;
        }
        self.refusals.iter().try_for_each(|refusal| write!(f, "\n  {refusal}"))
    }
}

pub(crate) const STEPS_HEAD: [&str; 7] =
    ["step", "variant", "bytes", "after", "CPU", "middle half", "allocations"];

/// The cells of a step; `to` stands between the two ends of a range.
pub(crate) fn step(row: &StepRow, to: &str) -> Vec<String> {
    let StepRow { step, bytes, cost } = row;
    let whole = |value: f64| format!("{value:.0}");
    vec![
        step.name().to_owned(),
        cost.name.clone(),
        whole(bytes.0),
        whole(bytes.1),
        BenchFigure::ns(cost.ns.median).to_string(),
        format!("{} {to} {}", BenchFigure::ns(cost.ns.low), BenchFigure::ns(cost.ns.high)),
        BenchFigure::of(cost.allocations, FigureUnit::Allocations).to_string(),
    ]
}

/// The title above the links.
pub(crate) const LINKS: &str = "what each link makes of one message, encoded as CBOR and sealed in \
                                class C with AES";
pub(crate) const LINKS_HEAD: [&str; 6] =
    ["link", "MTU", "headers", "body at once", "units", "bytes on the wire"];

pub(crate) fn link(row: &LinkRow) -> Vec<String> {
    vec![
        row.name.to_owned(),
        row.mtu.to_string(),
        row.headers.to_string(),
        row.body_at_once.to_string(),
        format!("{:.2}", row.units),
        format!("{:.0}", row.wire),
    ]
}

/// The title above the radios.
pub(crate) const RADIOS: &str = "what each radio makes of one message for one hop: compact frame, \
                                 hop seal and acknowledgement; the duty cycle is the part of an \
                                 hour in which one sender may send";
pub(crate) const RADIOS_HEAD: [&str; 9] = [
    "radio",
    "message",
    "unit",
    "units",
    "bytes",
    "air time",
    "duty cycle",
    "share of it in an hour",
    "messages an hour",
];

pub(crate) fn radio(row: &RadioRow) -> Vec<String> {
    vec![
        row.link.name().to_owned(),
        format!("{}, class {}", row.codec.name(), row.class.letter()),
        row.unit_bytes.to_string(),
        format!("{:.2}", row.units),
        format!("{:.0}", row.bytes),
        BenchFigure::ns(row.air_s * 1e9).to_string(),
        format!("{} %", row.duty * 100.0),
        small_percent(row.share()),
        BenchFigure::of(row.messages_an_hour(), FigureUnit::Count).to_string(),
    ]
}

/// A part of one in percent, with three digits that say something however small it is.
fn small_percent(part: f64) -> String {
    let percent = part * 100.0;
    let decimals = (2.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{percent:.decimals$} %")
}

/// The cells of a way; `none` stands where nothing was measured.
pub(crate) fn way(row: &WayRow, name: String, none: &str) -> Vec<String> {
    let time =
        |ns: Option<f64>| ns.map_or_else(|| none.to_owned(), |ns| BenchFigure::ns(ns).to_string());
    let parts = row.largest();
    let parts = parts.iter().map(|(step, part)| format!("{} {:.0} %", step.name(), part * 100.0));
    let count = |count: f64| BenchFigure::of(count, FigureUnit::Allocations).to_string();
    vec![
        name,
        format!("{:.0}", row.body),
        format!("{:.0}", row.wire),
        format!("{:.0}", row.rest),
        time(row.latency_ns.map(|(p50, _)| p50)),
        time(row.latency_ns.map(|(_, p99)| p99)),
        row.allocations.map_or_else(|| none.to_owned(), count),
        format!("{:.2}", row.cpu_s_per_million()),
        parts.collect::<Vec<_>>().join(", "),
    ]
}

impl CostStep {
    /// The work of the step, for legends.
    pub(crate) fn says(self) -> &'static str {
        match self {
            CostStep::Encode => "value to bytes",
            CostStep::Compress => "fewer bytes",
            CostStep::Seal => "seal and frame",
            CostStep::Carry => "link, and for a hub both ends' sockets",
            CostStep::Relay => "a relay's rewrite",
            CostStep::Keep => "the hub's process",
            CostStep::Open => "check and open",
            CostStep::Decompress => "bytes again",
            CostStep::Decode => "bytes to value",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_is_not_shown_as_nothing() {
        let shown = [0.005_904, 0.000_000_428, 0.37, 1.0, 0.0].map(small_percent);
        assert_eq!(shown[..4], ["0.590 %", "0.0000428 %", "37.0 %", "100 %"]);
        assert!(shown[4].starts_with("0.0"), "{shown:?}");
    }
}
