//! Machines whose programs run outside of the simulator: what they send, and what is for them.

use std::sync::Arc;

use super::body::QueuedUnit;
use super::slots::SlotId;
use super::{SimEthernetHeader, SimRun};
use crate::node::{SimMeshMembers, SimUnitTarget, SimUrgency};
use crate::place::SimPlace;
use crate::scenario::{ProgramKind, Scenario};
use crate::watch::{LossReason, RunEvent};
use crate::{SimError, SimSpan, SimTime};

/// The events at machines outside since the outbox was read last.
#[derive(Debug, Default)]
pub(super) struct OutsideOutbox {
    departures: Vec<OutsideDeparture>,
    turns: Vec<OutsideTransition>,
}

/// A unit for a program outside.
#[derive(Debug)]
pub(crate) struct OutsideDeparture {
    pub(crate) node: u32,
    pub(crate) port: usize,
    pub(crate) from: u32,
    /// The Ethernet header of the unit, if the unit came from outside, too.
    pub(crate) cover: Option<SimEthernetHeader>,
    pub(crate) unit: Vec<u8>,
}

/// A machine outside has joined, or has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutsideTransition {
    pub(crate) node: u32,
    pub(crate) is_up: bool,
}

/// A unit that a program outside has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutsideArrival<'a> {
    pub(crate) node: u32,
    pub(crate) port: usize,
    pub(crate) to: SimUnitTarget,
    pub(crate) cover: SimEthernetHeader,
    pub(crate) unit: &'a [u8],
}

/// How a machine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimMachineStatus<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: SimPlace,
    pub(crate) state: SimPresence,
    pub(crate) is_taken: bool,
    /// How long it has sent and heard, on all media together.
    pub(crate) sent: SimSpan,
    pub(crate) heard: SimSpan,
}

/// Whether a machine is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimPresence {
    Away,
    Awake,
    Asleep,
}

impl SimRun<'_> {
    /// Whether the program of a machine runs outside.
    pub(super) fn is_outside(&self, node: u32) -> bool {
        let plan = self.scenario.nodes.get(node as usize);
        plan.is_some_and(|plan| plan.kind == ProgramKind::Process)
    }

    /// Keeps a unit for a program outside.
    pub(super) fn depart(&mut self, node: u32, port: usize, from: u32, slot: SlotId) {
        let (cover, unit) = (self.ether.slots.cover(slot), self.ether.slots.unit(slot).to_vec());
        self.outbox.departures.push(OutsideDeparture { node, port, from, cover, unit });
    }

    /// Keeps for a program outside that it is to begin or to end.
    pub(super) fn turn(&mut self, node: u32, is_up: bool) {
        if self.is_outside(node) {
            self.outbox.turns.push(OutsideTransition { node, is_up });
        }
    }

    /// A program outside sends a unit, now.
    pub(crate) fn enter(&mut self, entrance: &OutsideArrival<'_>) -> Result<(), SimError> {
        let OutsideArrival { node, port, to, cover, unit } = *entrance;
        let Some(body) = self.body(node).filter(|body| body.listens.is_some()) else {
            return self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::Gone));
        };
        let Some(medium) = body.ports.get(port).map(|port| port.medium) else { return Ok(()) };
        if body.capture.is_some() {
            // From here, its own units look like those that it sends on.
            return self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::Captured));
        }
        let slot = self.ether.slots.put(unit.into());
        self.ether.slots.set_cover(slot, cover);
        self.queue(medium, node, QueuedUnit { slot, to, urgency: SimUrgency::Normal })
    }

    /// Has the machines of the mesh be members of another group than that of the seed. To be called
    /// before anything is done.
    pub(crate) fn enlist(&mut self, crew: SimMeshMembers) {
        self.mesh.crew = Arc::new(crew);
    }

    /// The scenario that is run.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// When the next event is due.
    pub(crate) fn next_due(&self) -> Option<SimTime> {
        self.clock.agenda.next()
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> SimTime {
        self.clock.now
    }

    /// Moves what is for programs outside to the end of a list.
    pub(crate) fn take_departures(&mut self, departures: &mut Vec<OutsideDeparture>) {
        departures.append(&mut self.outbox.departures);
    }

    /// Which programs outside are to begin or to end, in this order.
    pub(crate) fn take_turns(&mut self) -> Vec<OutsideTransition> {
        std::mem::take(&mut self.outbox.turns)
    }

    /// The run ends now and not when its scenario says.
    pub(crate) fn cut_short(&mut self) {
        self.scenario.duration = self.scenario.duration.min(self.clock.now - SimTime(0));
    }

    /// How the machines are.
    pub(crate) fn standings(&self) -> impl Iterator<Item = SimMachineStatus<'_>> {
        self.scenario.nodes.iter().zip(&self.fleet.bodies).map(|(plan, body)| SimMachineStatus {
            name: &plan.name,
            place: body.place,
            state: match (body.is_up, body.listens) {
                (false, _) => SimPresence::Away,
                (true, None) => SimPresence::Asleep,
                (true, Some(_)) => SimPresence::Awake,
            },
            is_taken: body.capture.is_some(),
            sent: body.ports.iter().fold(SimSpan(0), |sum, port| sum + port.sent),
            heard: body.ports.iter().fold(SimSpan(0), |sum, port| sum + port.heard),
        })
    }
}
