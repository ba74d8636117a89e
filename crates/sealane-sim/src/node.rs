//! The programs of machines: the closed set that a scenario can name.

mod beacon;
mod documents;
mod flood;
mod mesh;

use beacon::Beacon;
use flood::Flood;
pub(crate) use mesh::Crew;
use mesh::{Member, Post};

use std::sync::Arc;

use sealane_mesh::Table;
use sealane_message::DataType;

use crate::scenario::{Kind, NodePlan};
use crate::{Frames, Profile, Random, Time};

/// The program of a machine: no clock, no randomness but what it is given, no I/O.
#[derive(Debug)]
pub(crate) enum Program {
    Beacon(Beacon),
    Flood(Flood),
    Mesh(Box<Member>),
}

/// The input of a machine: something that it hears or is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// It can send on a port.
    Up { port: usize, profile: &'a Profile, duty_ppm: u32 },
    /// A unit that was sent to everybody or to this machine.
    Heard { port: usize, from: u32, unit: &'a [u8] },
    /// How busy the channel was in the last second.
    Load { port: usize, busy_ppm: u32 },
    /// A message of this machine for others.
    Offer(&'a Offer),
    /// The time has come that it asked for, or later.
    Tick,
}

/// A message that a scenario has a machine send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
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
pub(crate) enum Effect {
    Send(Send),
    /// A message is here that was for this machine.
    Deliver {
        message: u64,
    },
    /// A message left in a frame with this mark.
    Mark {
        message: u64,
        mark: Mark,
    },
    /// A frame is here that was for this machine.
    Frame {
        mark: Mark,
    },
    /// Other routes are in use.
    Table(Arc<Table>),
    /// Something that people want to know.
    Tidings(Tidings),
}

/// The tag at the end of a sealed frame, which no relay changes: by it a frame is known again,
/// though nobody but its receiver can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark([u8; 16]);

impl Mark {
    pub(crate) fn of(frame: &[u8]) -> Self {
        Self(frame.last_chunk().copied().unwrap_or_default())
    }
}

/// A finding of a machine about other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tidings {
    pub(crate) what: &'static str,
    pub(crate) of: Option<u32>,
    pub(crate) via: Option<u32>,
}

/// A unit for a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) port: usize,
    pub(crate) to: To,
    pub(crate) unit: Arc<[u8]>,
    pub(crate) urgency: Urgency,
}

/// The receiver of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Everybody,
    One(u32),
}

impl To {
    /// Whether a machine is meant.
    pub(crate) fn is(self, node: u32) -> bool {
        match self {
            To::Everybody => true,
            To::One(to) => to == node,
        }
    }
}

/// The order in which units wait. What a machine that was taken keeps to itself is all but the
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    Control,
    Urgent,
    Normal,
    Low,
}

impl Program {
    /// Starts a program in the machine of this number, for the how manieth time; nothing where it
    /// runs outside, and where the mesh has no room for it, which reading a scenario makes sure of.
    pub(crate) fn new(
        plan: &NodePlan,
        crew: &Arc<Crew>,
        seed: u64,
        node: u32,
        start: u32,
        now: Time,
    ) -> Option<Self> {
        let random = Random::new(seed, "program", u64::from(start) << 32 | u64::from(node));
        Some(match plan.kind {
            Kind::Beacon { every, bytes } => {
                Program::Beacon(Beacon::new(node, every, bytes, random, now))
            }
            Kind::Flood { hops } => Program::Flood(Flood::new(node, hops, random)),
            Kind::Mesh { role } => {
                let post = Post { role, turn: plan.sleep.map(|sleep| sleep.awake + sleep.asleep) };
                Program::Mesh(Box::new(Member::new(crew, post, node, start, now)?))
            }
            Kind::Process => return None,
        })
    }

    /// Takes an input, and appends what is to be done.
    #[inline]
    pub(crate) fn take(&mut self, now: Time, input: Input<'_>, effects: &mut Vec<Effect>) {
        match self {
            Program::Beacon(beacon) => beacon.take(now, input, effects),
            Program::Flood(flood) => flood.take(now, input, effects),
            Program::Mesh(member) => member.take(now, input, effects),
        }
    }

    /// The fates of the data frames that were here, if this is a machine of the mesh.
    pub(crate) fn frames(&self) -> Frames {
        match self {
            Program::Beacon(_) | Program::Flood(_) => Frames::default(),
            Program::Mesh(member) => member.frames(),
        }
    }

    /// When it is to be given a tick.
    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Time> {
        match self {
            Program::Beacon(beacon) => Some(beacon.next_wake()),
            Program::Flood(flood) => flood.next_wake(),
            Program::Mesh(member) => member.next_wake(),
        }
    }
}
