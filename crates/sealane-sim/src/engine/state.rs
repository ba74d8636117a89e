//! The parts that a run is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agenda::SimAgenda;
use super::body::SimMachineState;
use super::cuts::SimLinkCuts;
use super::routes::SimRouteTable;
use super::slots::SimUnitPool;
use super::{SimEvent, SimMedium};
use crate::motion::SimMotions;
use crate::node::{ProgramEffect, SimFrameMark, SimMeshMembers, SimProgram};
use crate::{SimRandom, SimTime};

/// The virtual time, and what is due.
pub(super) struct SimClock {
    pub(super) now: SimTime,
    pub(super) agenda: SimAgenda<SimEvent>,
    /// Events so far.
    pub(super) done: u64,
}

/// The machines.
pub(super) struct SimFleet {
    pub(super) bodies: Vec<SimMachineState>,
    /// The program of each machine that is up.
    pub(super) programs: Vec<Option<SimProgram>>,
    pub(super) motions: SimMotions,
    /// The effects that a program asks for; empty between events, and kept for its room.
    pub(super) effects: Vec<ProgramEffect>,
}

/// The media, and the units on them.
pub(super) struct SimEther {
    pub(super) media: Vec<SimMedium>,
    pub(super) slots: SimUnitPool,
    /// The pairs of near machines that do not hear each other.
    pub(super) cuts: SimLinkCuts,
}

/// The members of the mesh, and the routes that they use.
pub(super) struct SimMeshState {
    pub(super) crew: Arc<SimMeshMembers>,
    pub(super) routes: SimRouteTable,
    /// The frames that messages left in.
    pub(super) marks: BTreeMap<SimFrameMark, u64>,
}

/// Sources of chance, each of which depends on the seed alone.
pub(super) struct SimRunSources {
    /// A source for each flow, of times and of receivers.
    pub(super) flows: Vec<SimRandom>,
    pub(super) noise: SimRandom,
    pub(super) naps: SimRandom,
    pub(super) answers: SimRandom,
}
