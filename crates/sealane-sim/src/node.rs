//! The programs of machines: the closed set that a scenario can name.

mod beacon;
mod documents;
mod flood;
mod mesh;

use beacon::BeaconProgram;
use flood::FloodProgram;
pub(crate) use mesh::SimMeshMembers;
use mesh::{SimMeshAssignment, SimMeshMachine};

use std::sync::Arc;

use sealane_mesh::RouteTable;
use sealane_message::DataType;

use crate::scenario::{NodePlan, ProgramKind};
use crate::{SimFrameCounts, SimMediumProfile, SimRandom, SimTime};

/// The program of a machine: no clock, no randomness but what it is given, no I/O.
#[derive(Debug)]
pub(crate) enum SimProgram {
    Beacon(BeaconProgram),
    Flood(FloodProgram),
    Mesh(Box<SimMeshMachine>),
}

/// The input of a machine: something that it hears or is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProgramInput<'a> {
    /// It can send on a port.
    Up { port: usize, profile: &'a SimMediumProfile, duty_ppm: u32 },
    /// A unit that was sent to everybody or to this machine.
    Heard { port: usize, from: u32, unit: &'a [u8] },
    /// How busy the channel was in the last second.
    Load { port: usize, busy_ppm: u32 },
    /// A message of this machine for others.
    Offer(&'a SimOffer),
    /// The time has come that it asked for, or later.
    Tick,
}

/// A message that a scenario has a machine send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimOffer {
    pub(crate) message: u64,
    /// One machine, or everybody.
    pub(crate) to: Option<u32>,
    pub(crate) bytes: usize,
    pub(crate) is_urgent: bool,
    /// It is the body of a document of this type.
    pub(crate) document: Option<DataType>,
}

/// An action of a machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProgramEffect {
    Send(SimOutgoingUnit),
    /// A message is here that was for this machine.
    Deliver {
        message: u64,
    },
    /// A message left in a frame with this mark.
    Mark {
        message: u64,
        mark: SimFrameMark,
    },
    /// A frame is here that was for this machine.
    Frame {
        mark: SimFrameMark,
    },
    /// Other routes are in use.
    Table(Arc<RouteTable>),
    /// Something that people want to know.
    Tidings(SimMeshFinding),
}

/// The tag at the end of a sealed frame, which no relay changes: by it a frame is known again,
/// though nobody but its receiver can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SimFrameMark([u8; 16]);

impl SimFrameMark {
    pub(crate) fn of(frame: &[u8]) -> Self {
        Self(frame.last_chunk().copied().unwrap_or_default())
    }
}

/// A finding of a machine about other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimMeshFinding {
    pub(crate) what: &'static str,
    pub(crate) of: Option<u32>,
    pub(crate) via: Option<u32>,
}

/// A unit for a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimOutgoingUnit {
    pub(crate) port: usize,
    pub(crate) to: SimUnitTarget,
    pub(crate) unit: Arc<[u8]>,
    pub(crate) urgency: SimUrgency,
}

/// The receiver of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimUnitTarget {
    Everybody,
    One(u32),
}

impl SimUnitTarget {
    /// Whether a machine is meant.
    pub(crate) fn is(self, node: u32) -> bool {
        match self {
            SimUnitTarget::Everybody => true,
            SimUnitTarget::One(to) => to == node,
        }
    }
}

/// The order in which units wait. What a machine that was taken keeps to itself is all but the
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SimUrgency {
    Control,
    Urgent,
    Normal,
    Low,
}

impl SimProgram {
    /// Starts a program in the machine of this number, for the how manieth time; nothing where it
    /// runs outside, and where the mesh has no room for it, which reading a scenario makes sure of.
    pub(crate) fn new(
        plan: &NodePlan,
        crew: &Arc<SimMeshMembers>,
        seed: u64,
        node: u32,
        start: u32,
        now: SimTime,
    ) -> Option<Self> {
        let random = SimRandom::new(seed, "program", u64::from(start) << 32 | u64::from(node));
        Some(match plan.kind {
            ProgramKind::Beacon { every, bytes } => {
                SimProgram::Beacon(BeaconProgram::new(node, every, bytes, random, now))
            }
            ProgramKind::Flood { hops } => SimProgram::Flood(FloodProgram::new(node, hops, random)),
            ProgramKind::Mesh { role } => {
                let post = SimMeshAssignment {
                    role,
                    turn: plan.sleep.map(|sleep| sleep.awake + sleep.asleep),
                };
                SimProgram::Mesh(Box::new(SimMeshMachine::new(crew, post, node, start, now)?))
            }
            ProgramKind::Process => return None,
        })
    }

    /// Takes an input, and appends what is to be done.
    #[inline]
    pub(crate) fn take(
        &mut self,
        now: SimTime,
        input: ProgramInput<'_>,
        effects: &mut Vec<ProgramEffect>,
    ) {
        match self {
            SimProgram::Beacon(beacon) => beacon.take(now, input, effects),
            SimProgram::Flood(flood) => flood.take(now, input, effects),
            SimProgram::Mesh(member) => member.take(now, input, effects),
        }
    }

    /// The fates of the data frames that were here, if this is a machine of the mesh.
    pub(crate) fn frames(&self) -> SimFrameCounts {
        match self {
            SimProgram::Beacon(_) | SimProgram::Flood(_) => SimFrameCounts::default(),
            SimProgram::Mesh(member) => member.frames(),
        }
    }

    /// When it is to be given a tick.
    #[inline]
    pub(crate) fn next_wake(&self) -> Option<SimTime> {
        match self {
            SimProgram::Beacon(beacon) => Some(beacon.next_wake()),
            SimProgram::Flood(flood) => flood.next_wake(),
            SimProgram::Mesh(member) => member.next_wake(),
        }
    }
}
