//! How machines move: by way points, at random, along streets, or as a trace says.

mod streets;
mod trace;
mod walk;

use std::sync::Arc;

use streets::StreetMotion;
pub use trace::VehicleTrace;
use walk::{MotionPath, RandomWalker};

use crate::place::SimPlace;
use crate::scenario::{MotionKind, Scenario};
use crate::{SimError, SimSpan, SimTime};

/// The motions of a run. Each has a seat for every machine that moves by it.
#[derive(Debug)]
pub(crate) struct SimMotions(Vec<SimMotion>);

#[derive(Debug)]
enum SimMotion {
    Path(MotionPath),
    Wander(Vec<RandomWalker>),
    Streets(StreetMotion),
    Trace(Arc<VehicleTrace>),
}

/// A trace that was read, by the name that the scenario has for it.
#[derive(Debug)]
pub struct NamedTrace {
    /// The name of its file in the scenario.
    pub file: String,
    /// The trace that was read.
    pub trace: Arc<VehicleTrace>,
}

impl SimMotions {
    /// The motions of a scenario, at its beginning.
    pub(crate) fn new(
        scenario: &Scenario,
        seed: u64,
        traces: &[NamedTrace],
    ) -> Result<Self, SimError> {
        let motions = (0..).zip(&scenario.motions).map(|(number, plan)| {
            let riders = scenario.nodes.iter().filter_map(|node| node.motion);
            let seats = riders.filter(|rider| rider.motion == number).count();
            Ok(match &plan.kind {
                MotionKind::WayPoints { points, speed_mps, pause_s, repeats } => {
                    SimMotion::Path(MotionPath::new(points, *speed_mps, *pause_s, *repeats))
                }
                &MotionKind::Wander { at, area, speed_mps, pause_s } => {
                    let walker = |seat: usize| RandomWalker::new(seed, number, seat, at, area);
                    let with = |walker: RandomWalker| walker.at_speed(speed_mps, pause_s);
                    SimMotion::Wander((0..seats).map(walker).map(with).collect())
                }
                MotionKind::Streets(plan) => {
                    SimMotion::Streets(StreetMotion::new(*plan, seed, number as u64, seats)?)
                }
                MotionKind::Trace { file } => {
                    let named = traces.iter().find(|named| named.file == *file);
                    let missing = || SimError::Trace(format!("{file}: it was not read"));
                    let trace = Arc::clone(&named.ok_or_else(missing)?.trace);
                    if trace.vehicles() < seats {
                        let has = trace.vehicles();
                        let what =
                            format!("{file}: {has} vehicles are fewer than {seats} machines");
                        return Err(SimError::Trace(what));
                    }
                    SimMotion::Trace(trace)
                }
            })
        });
        motions.collect::<Result<_, _>>().map(Self)
    }

    /// Goes on by a step.
    pub(crate) fn step(&mut self, step: SimSpan) {
        for motion in &mut self.0 {
            match motion {
                SimMotion::Wander(walkers) => {
                    walkers.iter_mut().for_each(|one| one.step(step.as_s()))
                }
                SimMotion::Streets(streets) => streets.step(step.as_s()),
                // Their places depend on the time alone.
                SimMotion::Path(_) | SimMotion::Trace(_) => {}
            }
        }
    }

    /// Where a seat is at a time, if it is anywhere; `home` is where its machine began.
    pub(crate) fn place(
        &self,
        motion: usize,
        seat: usize,
        home: SimPlace,
        now: SimTime,
    ) -> Option<SimPlace> {
        match self.0.get(motion)? {
            SimMotion::Path(path) => {
                let offset = path.at((now - SimTime(0)).as_s());
                Some(SimPlace { x: home.x + offset.x, y: home.y + offset.y })
            }
            SimMotion::Wander(walkers) => walkers.get(seat).map(RandomWalker::place),
            SimMotion::Streets(streets) => streets.place(seat),
            SimMotion::Trace(trace) => trace.place(seat, now),
        }
    }
}
