//! The measurements, as people and programs are shown them.

use super::link::LinkRow;
use super::radio::RadioRow;
use super::step::CostStep;
use super::table::StepRow;
use super::way::CostWay;
use crate::measure::{BenchHost, FigureSpread};

/// The cost of the user's messages.
#[derive(Debug, Clone)]
pub(crate) struct CostReport {
    pub(crate) machine: BenchHost,
    pub(crate) input: CostInput,
    pub(crate) steps: Vec<StepRow>,
    /// The cost of a message on each link.
    pub(crate) links: Vec<LinkRow>,
    /// The cost of a message on each radio that was asked for.
    pub(crate) radios: Vec<RadioRow>,
    pub(crate) ways: Vec<WayRow>,
    /// The advice that follows, with the reason.
    pub(crate) advice: Vec<String>,
}

/// The messages that were read, and the part of them that was measured with.
#[derive(Debug, Clone, Default)]
pub(crate) struct CostInput {
    pub(crate) seen: u64,
    /// Their bytes, as they came.
    pub(crate) bytes: u64,
    /// Pieces that were no message.
    pub(crate) broken: u64,
    /// The first of those: where, and why.
    pub(crate) refusals: Vec<String>,
    /// Messages that were drawn.
    pub(crate) sampled: usize,
    /// Of them, those that are bytes without a codec.
    pub(crate) opaque: usize,
    /// Of the messages that were drawn, those that times are of.
    pub(crate) timed: usize,
}

/// Where a way's figures come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FigureSource {
    Measured,
    /// The ends were run in memory, and the rest is that of another way.
    Composed {
        /// The way whose rest it is.
        rest: String,
    },
}

/// One way from end to end: what one message costs on average.
#[derive(Debug, Clone)]
pub(crate) struct WayRow {
    pub(crate) way: CostWay,
    pub(crate) source: FigureSource,
    pub(crate) body: f64,
    /// Bytes compressed, where that is less.
    pub(crate) pressed: f64,
    /// Bytes that one link carries; over a hub, to it and from it together.
    pub(crate) wire: f64,
    pub(crate) rest: f64,
    /// Wall time of single messages, one after the other: median and 99th percentile, in
    /// nanoseconds.
    pub(crate) latency_ns: Option<(f64, f64)>,
    /// CPU of all processes, in nanoseconds.
    pub(crate) cpu_ns: FigureSpread,
    /// Calls of the allocator; not counted where other threads and processes take part.
    pub(crate) allocations: Option<f64>,
    /// CPU by step, in nanoseconds, in the order of [`CostStep::ALL`].
    pub(crate) steps: [f64; CostStep::ALL.len()],
}

impl WayRow {
    /// Seconds of CPU for a million messages.
    pub(crate) fn cpu_s_per_million(&self) -> f64 {
        self.cpu_ns.median / 1e3
    }

    /// The part of the whole that a step takes, from 0 to 1.
    pub(crate) fn share(&self, step: CostStep) -> f64 {
        let all: f64 = self.steps.iter().sum();
        let one = self.steps.get(step as usize).copied().unwrap_or(0.0);
        if all > 0.0 { one / all } else { 0.0 }
    }

    /// The three steps that take most, with their part.
    pub(crate) fn largest(&self) -> Vec<(CostStep, f64)> {
        let mut all: Vec<(CostStep, f64)> =
            CostStep::ALL.iter().map(|step| (*step, self.share(*step))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.into_iter().filter(|(_, share)| *share >= 0.01).take(3).collect()
    }
}
