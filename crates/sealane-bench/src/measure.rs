//! How everything here is measured: in turns, in CPU time, with counts beside the times.
//!
//! *Variants* of one thing are timed in rounds, each variant once a round, so that a disturbance of
//! the machine hits all of them alike. The first rounds warm up. The clock is the CPU time of the
//! thread, which other processes disturb less than the wall's. Bytes and allocations are counted
//! in a run of their own: they are the same in every run.
//!
//! ```
//! use sealane_bench::measure::{self, MeasurePlan, BenchVariant};
//!
//! let numbers: Vec<u64> = (0..100).collect();
//! let sum = BenchVariant::new("sum", 1, || {
//!     std::hint::black_box(numbers.iter().sum::<u64>());
//! });
//! let copy = BenchVariant::new("copy", 1, || drop(std::hint::black_box(numbers.clone())));
//! let costs = measure::in_turns(&MeasurePlan::quick(), vec![sum, copy], &mut |_| ());
//! assert_eq!([costs[0].allocations, costs[1].allocations], [0.0, 1.0]);
//! ```

mod clock;
mod figure;
mod spread;

use std::time::Duration;

pub(crate) use crate::load::BenchHost;
pub use clock::{cpu_ns, process_cpu_ns};
pub use figure::{BenchFigure, FigureUnit};
pub use spread::{FigureSpread, percentile};

/// How often, and how long, variants are timed.
#[derive(Debug, Clone, Copy)]
pub struct MeasurePlan {
    /// Rounds that are thrown away.
    pub warm_up: usize,
    /// Rounds that count.
    pub rounds: usize,
    /// The time that one turn of one variant should take. It calls as often as it needs to.
    pub turn: Duration,
}

impl MeasurePlan {
    /// For figures that are published.
    pub fn full() -> Self {
        Self { warm_up: 5, rounds: 41, turn: Duration::from_millis(5) }
    }

    /// For a look.
    pub fn quick() -> Self {
        Self { warm_up: 2, rounds: 11, turn: Duration::from_micros(800) }
    }
}

/// One way to do the work that its siblings do otherwise.
pub struct BenchVariant<'a> {
    name: String,
    messages: usize,
    work: Box<dyn FnMut() + 'a>,
}

impl<'a> BenchVariant<'a> {
    /// A variant that does the work of so many `messages` at each call.
    pub fn new(name: impl Into<String>, messages: usize, work: impl FnMut() + 'a) -> Self {
        Self { name: name.into(), messages: messages.max(1), work: Box::new(work) }
    }
}

impl std::fmt::Debug for BenchVariant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variant").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The cost of one variant for each message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantCost {
    /// The variant.
    pub name: String,
    /// Nanoseconds of CPU for each message, over the rounds.
    pub ns: FigureSpread,
    /// Calls of the allocator for each message, once everything is warm.
    pub allocations: f64,
    /// Bytes asked of the allocator for each message, once everything is warm.
    pub allocated_bytes: f64,
}

/// Allocations, and their bytes, of `work` on this thread.
pub fn allocations(work: impl FnOnce()) -> (u64, u64) {
    let counted = allocation_counter::measure(work);
    (counted.count_total, counted.bytes_total)
}

/// A variant that does the work of one message at each call.
pub fn timed<'a>(work: impl FnMut() + 'a) -> BenchVariant<'a> {
    BenchVariant::new("", 1, work)
}

/// Times so many variants in turns.
pub fn costs<const N: usize>(
    plan: &MeasurePlan,
    variants: [BenchVariant<'_>; N],
) -> [VariantCost; N] {
    let mut costs = in_turns(plan, variants.into(), &mut |_| ()).into_iter();
    std::array::from_fn(|_| costs.next().unwrap_or_default())
}

/// The same: the median of each, in nanoseconds of CPU.
pub fn medians<const N: usize>(plan: &MeasurePlan, variants: [BenchVariant<'_>; N]) -> [f64; N] {
    costs(plan, variants).map(|cost| cost.ns.median)
}

/// Times all variants in turns; `progress` is told the part that is done.
pub fn in_turns(
    plan: &MeasurePlan,
    variants: Vec<BenchVariant<'_>>,
    progress: &mut dyn FnMut(f64),
) -> Vec<VariantCost> {
    let mut timed: Vec<TimedVariant<'_>> =
        variants.into_iter().map(|v| TimedVariant::new(plan, v)).collect();
    let all = plan.warm_up + plan.rounds;
    for round in 0..all {
        for variant in &mut timed {
            let ns = variant.turn();
            if round >= plan.warm_up {
                variant.rounds.push(ns);
            }
        }
        progress((round + 1) as f64 / all as f64);
    }
    timed.into_iter().map(TimedVariant::cost).collect()
}

struct TimedVariant<'a> {
    variant: BenchVariant<'a>,
    calls: u32,
    rounds: Vec<f64>,
}

impl<'a> TimedVariant<'a> {
    /// Finds out how many calls fill a turn. The calls before make the buffers warm.
    fn new(plan: &MeasurePlan, mut variant: BenchVariant<'a>) -> Self {
        let (mut calls, wanted) = (1_u32, plan.turn.as_nanos() as f64);
        (variant.work)();
        loop {
            let started = cpu_ns();
            (0..calls).for_each(|_| (variant.work)());
            let spent = cpu_ns() - started;
            if spent >= wanted || calls >= 1 << 24 {
                return Self { variant, calls, rounds: Vec::with_capacity(plan.rounds) };
            }
            let factor = (wanted / spent.max(1.0)).clamp(1.2, 10.0);
            calls = (f64::from(calls) * factor).ceil() as u32;
        }
    }

    fn turn(&mut self) -> f64 {
        let started = cpu_ns();
        (0..self.calls).for_each(|_| (self.variant.work)());
        (cpu_ns() - started) / f64::from(self.calls) / self.variant.messages as f64
    }

    fn cost(mut self) -> VariantCost {
        let (count, bytes) = allocations(|| (self.variant.work)());
        let messages = self.variant.messages as f64;
        VariantCost {
            name: self.variant.name,
            ns: FigureSpread::of(&mut self.rounds),
            allocations: count as f64 / messages,
            allocated_bytes: bytes as f64 / messages,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn variants_take_turns_and_warm_up_is_left_out() {
        let order = std::cell::RefCell::new(vec![]);
        let plan = MeasurePlan { warm_up: 1, rounds: 3, turn: Duration::ZERO };
        let say = |name: char| {
            let order = &order;
            BenchVariant::new(name, 2, move || order.borrow_mut().push(name))
        };
        let costs = in_turns(&plan, vec![say('a'), say('b')], &mut |_| ());
        assert_eq!(costs.iter().map(|cost| &*cost.name).collect::<String>(), "ab");
        let order: String = order.into_inner().into_iter().collect();
        assert!(order.contains("abababab"), "{order}");
    }

    #[test]
    fn counts_are_for_each_message_and_the_same_every_time() {
        let kept = Cell::new(0);
        let count = || {
            let four = BenchVariant::new("four", 4, || {
                let boxes: Vec<Box<u64>> = (0..8).map(Box::new).collect();
                kept.set(boxes.len());
            });
            in_turns(&MeasurePlan::quick(), vec![four], &mut |_| ()).remove(0)
        };
        let (one, two) = (count(), count());
        assert_eq!((one.allocations, one.allocated_bytes), (9.0 / 4.0, 128.0 / 4.0));
        assert_eq!(one.allocations, two.allocations);
        assert!(one.ns.median > 0.0 && one.ns.low <= one.ns.median);
    }
}
