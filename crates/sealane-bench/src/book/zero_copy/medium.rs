//! The work of the report's simulator for each receiver of a frame, and the work of Sealane's.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use sealane_sim::{Scenario, SimRun, SimWatch};

use super::super::{BookRow, BookTable};
use crate::baseline::packet::BaselineFixedPacket;
use crate::failure::Result;
use crate::measure::{BenchFigure, FigureSpread, FigureUnit, MeasurePlan};

/// Those who hear each frame.
const RECEIVERS: usize = 16;
const UNIT_BYTES: usize = 1400;
/// Frames of a round of the report's way.
const PACKETS: usize = 500;

pub(super) fn table(plan: &MeasurePlan) -> Result<BookTable> {
    let scenario = scenario()?;
    let mut queues: Vec<VecDeque<BaselineFixedPacket>> =
        (0..RECEIVERS).map(|_| VecDeque::with_capacity(32)).collect();
    let [mut theirs, mut ours] = [vec![], vec![]];
    for round in 0..plan.warm_up + plan.rounds {
        let times = [copied(&mut queues), simulated(&scenario)?];
        if round >= plan.warm_up {
            let [copied, simulated] = times;
            theirs.push(copied);
            ours.push(simulated);
        }
    }
    let rate = |mut ns: Vec<f64>| {
        BenchFigure::of(1e9 / FigureSpread::of(&mut ns).median, FigureUnit::PerSecond)
    };
    let row = BookRow::new(format!("deliveries a second, {RECEIVERS} receivers"))
        .baseline(rate(theirs))
        .sealane(rate(ours));
    let note = "Baseline: a packet of 9,000 bytes, however much of it is used, is copied by value \
                into the queue of each receiver and out of it. Sealane: a whole run of the \
                simulator, with its agenda, chance, back-off, programs and counts; a frame lies in \
                one place. Wall time of one thread, in turns.";
    Ok(BookTable::new("The simulator's medium", note, vec![row]))
}

fn scenario() -> Result<Scenario> {
    let scenario = Scenario::parse(&format!(
        "version = 1\nduration_s = 3\n\
         [[medium]]\nname = \"m\"\nprofile = \"11p\"\n\
         [[node]]\nname = \"sender\"\nkind = \"beacon\"\nmedia = [\"m\"]\n\
         beacon_ms = 3\nbeacon_bytes = {UNIT_BYTES}\n\
         [[node]]\nname = \"receiver\"\ncount = {RECEIVERS}\nkind = \"flood\"\nmedia = [\"m\"]\n\
         ring_m = 20\n"
    ));
    Ok(scenario?)
}

/// Nanoseconds of a delivery.
fn simulated(scenario: &Scenario) -> Result<f64> {
    let run = SimRun::new(scenario.clone(), 1, &[], SimWatch::new())?;
    let started = Instant::now();
    let summary = run.finish()?.summary;
    Ok(started.elapsed().as_nanos() as f64 / black_box(&summary).arrived().max(1) as f64)
}

/// The same as the report's simulator does it.
fn copied(queues: &mut [VecDeque<BaselineFixedPacket>]) -> f64 {
    let packet = black_box(BaselineFixedPacket::new(UNIT_BYTES));
    let mut sum = 0;
    let started = Instant::now();
    for _ in 0..PACKETS {
        queues.iter_mut().for_each(|queue| queue.push_back(black_box(packet)));
        let taken = queues.iter_mut().filter_map(VecDeque::pop_front);
        sum += taken.map(|packet| black_box(packet).last()).sum::<u64>();
    }
    black_box(sum);
    started.elapsed().as_nanos() as f64 / (PACKETS * queues.len()) as f64
}
