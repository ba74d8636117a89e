//! What runs in a machine: the closed set of programs that a scenario can name.

mod beacon;
mod flood;

use beacon::Beacon;
use flood::Flood;

use crate::scenario::Kind;
use crate::{Profile, Random, Time};

/// The program of a machine: no clock, no randomness but what it is given, no I/O.
#[derive(Debug)]
pub(crate) enum Program {
    Beacon(Beacon),
    Flood(Flood),
}

/// What a machine hears or is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// It can send on a port.
    Up { port: usize, profile: &'a Profile },
    /// A unit that was sent to everybody or to this machine.
    Heard { port: usize, unit: &'a [u8] },
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
}

/// What a machine does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Send(Send),
    /// A message is here that was for this machine.
    Deliver {
        message: u64,
    },
}

/// A unit for a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) port: usize,
    pub(crate) to: To,
    pub(crate) unit: Vec<u8>,
    pub(crate) urgency: Urgency,
}

/// Who is to take a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Everybody,
}

/// The order in which units wait. What a machine that was taken keeps to itself is all but the
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    Control,
    Urgent,
    Normal,
}

impl Program {
    /// Starts a program in the machine of this number, for the how manieth time.
    pub(crate) fn new(kind: &Kind, seed: u64, node: u32, start: u32, now: Time) -> Self {
        let random = Random::new(seed, "program", u64::from(start) << 32 | u64::from(node));
        match *kind {
            Kind::Beacon { every, bytes } => {
                Program::Beacon(Beacon::new(node, every, bytes, random, now))
            }
            Kind::Flood { hops } => Program::Flood(Flood::new(node, hops, random)),
        }
    }

    /// Takes an input, and appends what is to be done.
    pub(crate) fn take(&mut self, now: Time, input: Input<'_>, effects: &mut Vec<Effect>) {
        match self {
            Program::Beacon(beacon) => beacon.take(now, input, effects),
            Program::Flood(flood) => flood.take(now, input, effects),
        }
    }

    /// When it is to be given a tick.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        match self {
            Program::Beacon(beacon) => Some(beacon.next_wake()),
            Program::Flood(flood) => flood.next_wake(),
        }
    }
}
