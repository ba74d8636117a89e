//! Machines whose programs run outside of the simulator: what they send, and what is for them.

use std::sync::Arc;

use super::body::Waiting;
use super::slots::SlotId;
use super::{Cover, Run};
use crate::node::{Crew, To, Urgency};
use crate::place::Place;
use crate::scenario::{Kind, Scenario};
use crate::watch::Loss;
use crate::{SimError, Span, Time};

/// The events at machines outside since the outbox was read last.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    departures: Vec<Departure>,
    turns: Vec<Turn>,
}

/// A unit for a program outside.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) node: u32,
    pub(crate) port: usize,
    pub(crate) from: u32,
    /// The Ethernet header of the unit, if the unit came from outside, too.
    pub(crate) cover: Option<Cover>,
    pub(crate) unit: Vec<u8>,
}

/// A machine outside has joined, or has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) node: u32,
    pub(crate) is_up: bool,
}

/// A unit that a program outside has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entrance<'a> {
    pub(crate) node: u32,
    pub(crate) port: usize,
    pub(crate) to: To,
    pub(crate) cover: Cover,
    pub(crate) unit: &'a [u8],
}

/// How a machine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    pub(crate) state: State,
    pub(crate) is_taken: bool,
    /// How long it has sent and heard, on all media together.
    pub(crate) sent: Span,
    pub(crate) heard: Span,
}

/// Whether a machine is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Away,
    Awake,
    Asleep,
}

impl Run<'_> {
    /// Whether the program of a machine runs outside.
    pub(super) fn is_outside(&self, node: u32) -> bool {
        let plan = self.scenario.nodes.get(node as usize);
        plan.is_some_and(|plan| plan.kind == Kind::Process)
    }

    /// Keeps a unit for a program outside.
    pub(super) fn depart(&mut self, node: u32, port: usize, from: u32, slot: SlotId) {
        let (cover, unit) = (self.slots.cover(slot), self.slots.unit(slot).to_vec());
        self.outbox.departures.push(Departure { node, port, from, cover, unit });
    }

    /// Keeps for a program outside that it is to begin or to end.
    pub(super) fn turn(&mut self, node: u32, is_up: bool) {
        if self.is_outside(node) {
            self.outbox.turns.push(Turn { node, is_up });
        }
    }

    /// A program outside sends a unit, now.
    pub(crate) fn enter(&mut self, entrance: &Entrance<'_>) -> Result<(), SimError> {
        let Entrance { node, port, to, cover, unit } = *entrance;
        let Some(body) = self.body(node).filter(|body| body.listens.is_some()) else {
            return self.watch.loses(self.now, node, Loss::Gone);
        };
        let Some(medium) = body.ports.get(port).map(|port| port.medium) else { return Ok(()) };
        if body.capture.is_some() {
            // From here, its own units look like those that it sends on.
            return self.watch.loses(self.now, node, Loss::Captured);
        }
        let slot = self.slots.put(unit.into());
        self.slots.set_cover(slot, cover);
        self.queue(medium, node, Waiting { slot, to, urgency: Urgency::Normal })
    }

    /// Has the machines of the mesh be members of another group than that of the seed. To be called
    /// before anything is done.
    pub(crate) fn enlist(&mut self, crew: Crew) {
        self.crew = Arc::new(crew);
    }

    /// The scenario that is run.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// When the next event is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.agenda.next()
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Moves what is for programs outside to the end of a list.
    pub(crate) fn take_departures(&mut self, departures: &mut Vec<Departure>) {
        departures.append(&mut self.outbox.departures);
    }

    /// Which programs outside are to begin or to end, in this order.
    pub(crate) fn take_turns(&mut self) -> Vec<Turn> {
        std::mem::take(&mut self.outbox.turns)
    }

    /// The run ends now and not when its scenario says.
    pub(crate) fn cut_short(&mut self) {
        self.scenario.duration = self.scenario.duration.min(self.now - Time(0));
    }

    /// How the machines are.
    pub(crate) fn standings(&self) -> impl Iterator<Item = Standing<'_>> {
        self.scenario.nodes.iter().zip(&self.bodies).map(|(plan, body)| Standing {
            name: &plan.name,
            place: body.place,
            state: match (body.is_up, body.listens) {
                (false, _) => State::Away,
                (true, None) => State::Asleep,
                (true, Some(_)) => State::Awake,
            },
            is_taken: body.capture.is_some(),
            sent: body.ports.iter().fold(Span(0), |sum, port| sum + port.sent),
            heard: body.ports.iter().fold(Span(0), |sum, port| sum + port.heard),
        })
    }
}
