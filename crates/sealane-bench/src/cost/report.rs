//! The measurements, as people and programs are shown them.

use super::link::LinkRow;
use super::radio::RadioRow;
use super::step::CostStep;
use super::table::StepRow;
use super::way::CostWay;
use crate::measure::{BenchHost, FigureSpread};

/// The cost of the user's messages.
#[derive(Debug, Clone)]
pub struct CostReport {
    /// Where it was measured.
    pub machine: BenchHost,
    /// The messages that were read.
    pub input: CostInput,
    /// Each variant of each step.
    pub steps: Vec<StepRow>,
    /// The cost of a message on each link.
    pub links: Vec<LinkRow>,
    /// The cost of a message on each radio that was asked for.
    pub radios: Vec<RadioRow>,
    /// Ways from one end to the other.
    pub ways: Vec<WayRow>,
    /// The advice that follows, with the reason.
    pub advice: Vec<String>,
}

/// The messages that were read, and the part of them that was measured with.
#[derive(Debug, Clone, Default)]
pub struct CostInput {
    /// Messages.
    pub seen: u64,
    /// Their bytes, as they came.
    pub bytes: u64,
    /// Pieces that were no message.
    pub broken: u64,
    /// The first of those: where, and why.
    pub refusals: Vec<String>,
    /// Messages that were drawn.
    pub sampled: usize,
    /// Of them, those that are bytes without a codec.
    pub opaque: usize,
    /// Of the messages that were drawn, those that times are of.
    pub timed: usize,
}

/// Where a way's figures come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureSource {
    /// The way was run from end to end.
    Measured,
    /// The ends were run in memory, and the rest is that of another way.
    Composed {
        /// The way whose rest it is.
        rest: String,
    },
}

/// One way from end to end: what one message costs on average.
#[derive(Debug, Clone)]
pub struct WayRow {
    /// The way.
    pub way: CostWay,
    /// Where the figures come from.
    pub source: FigureSource,
    /// Bytes encoded.
    pub body: f64,
    /// Bytes compressed, where that is less.
    pub pressed: f64,
    /// Bytes that one link carries; over a hub, to it and from it together.
    pub wire: f64,
    /// Bytes at rest.
    pub rest: f64,
    /// Wall time of single messages, one after the other: median and 99th percentile, in
    /// nanoseconds.
    pub latency_ns: Option<(f64, f64)>,
    /// CPU of all processes, in nanoseconds.
    pub cpu_ns: FigureSpread,
    /// Calls of the allocator; not counted where other threads and processes take part.
    pub allocations: Option<f64>,
    /// CPU by step, in nanoseconds, in the order of [`CostStep::ALL`].
    pub steps: [f64; CostStep::ALL.len()],
}

impl WayRow {
    /// Seconds of CPU for a million messages.
    pub fn cpu_s_per_million(&self) -> f64 {
        self.cpu_ns.median / 1e3
    }

    /// The part of the whole that a step takes, from 0 to 1.
    pub fn share(&self, step: CostStep) -> f64 {
        let all: f64 = self.steps.iter().sum();
        let one = self.steps.get(step as usize).copied().unwrap_or(0.0);
        if all > 0.0 { one / all } else { 0.0 }
    }

    /// The three steps that take most, with their part.
    pub fn largest(&self) -> Vec<(CostStep, f64)> {
        let mut all: Vec<(CostStep, f64)> =
            CostStep::ALL.iter().map(|step| (*step, self.share(*step))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.into_iter().filter(|(_, share)| *share >= 0.01).take(3).collect()
    }
}
