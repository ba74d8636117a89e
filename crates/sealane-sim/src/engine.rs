//! The run of a scenario: what happens next, and to whom.

mod agenda;
mod air;
mod body;
mod contend;
mod cuts;
mod hear;
mod ledger;
mod lines;
mod near;
mod outside;
mod routes;
mod script;
mod slots;
mod state;
mod total;

use std::collections::BTreeMap;
use std::sync::Arc;

use agenda::SimAgenda;
use air::SharedMedium;
use body::{QueuedUnit, SimMachineState};
use cuts::SimLinkCuts;
pub(crate) use ledger::LatencyHistogram;
use ledger::{SimLedger, SimLedgerEntry};
use lines::SimLinkMedium;
use outside::OutsideOutbox;
pub(crate) use outside::{OutsideArrival, OutsideDeparture, OutsideTransition, SimPresence};
use routes::{SimRoute, SimRouteLoop, SimRouteTable};
use sealane_mesh::RouteTable;
use sealane_message::DataType;
pub(crate) use slots::SimEthernetHeader;
use slots::{SimUnitPool, SlotId};
use state::{SimClock, SimEther, SimFleet, SimMeshState, SimRunSources};

use crate::limits::MAX_SIM_PENDING;
use crate::motion::{NamedTrace, SimMotions};
use crate::node::{
    ProgramEffect, ProgramInput, SimMeshMembers, SimOffer, SimOutgoingUnit, SimProgram,
};
use crate::place::SimPlace;
use crate::scenario::{CapturedBehaviour, NodePlacement, Scenario};
use crate::watch::{LossReason, RunEvent, RunPage, SimMachineEvent, SimWatch};
use crate::{SimError, SimRandom, SimSpan, SimSummary, SimTime};

/// A run of a scenario, from its beginning to its end in virtual time.
pub struct SimRun<'w> {
    scenario: Scenario,
    seed: u64,
    clock: SimClock,
    fleet: SimFleet,
    ether: SimEther,
    mesh: SimMeshState,
    random: SimRunSources,
    ledger: SimLedger,
    /// The outbox to machines whose programs run outside.
    outbox: OutsideOutbox,
    watch: SimWatch<'w>,
}

/// The result of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct SimOutcome {
    /// The figures.
    pub summary: SimSummary,
    /// The map, if it was to be drawn.
    pub page: Option<RunPage>,
}

/// A medium as it is while a scenario runs.
#[derive(Debug)]
enum SimMedium {
    Air(SharedMedium),
    Lines(SimLinkMedium),
}

/// An event on the agenda.
#[derive(Debug, Clone, Copy)]
enum SimEvent {
    /// The machine's program asked for a tick.
    Wake {
        node: u32,
        life: u32,
    },
    /// A radio tries to send what waits.
    Attempt {
        medium: usize,
        node: u32,
        life: u32,
    },
    /// A radio acknowledges a unit of another one.
    Acknowledge {
        medium: usize,
        node: u32,
        life: u32,
        to: u32,
    },
    /// A radio has waited long enough for an acknowledgement.
    Unanswered {
        medium: usize,
        node: u32,
        life: u32,
    },
    /// A transmission through the air ends.
    End {
        medium: usize,
        transmission: usize,
    },
    /// A unit comes, which the event holds.
    Arrive {
        medium: usize,
        node: u32,
        from: u32,
        slot: SlotId,
    },
    /// Machines move.
    Step,
    /// Once a second: batteries, and what is shown of where machines are.
    Second,
    /// A machine that sleeps by turns falls asleep or wakes.
    Nap {
        node: u32,
        life: u32,
    },
    /// A machine is due to join or to leave.
    Joins {
        node: u32,
    },
    Leaves {
        node: u32,
    },
    /// An event of the scenario.
    Script {
        index: usize,
    },
    /// The next message of a flow, of one of its machines.
    Flow {
        index: usize,
        node: u32,
    },
    /// An answer to a message.
    Answer {
        node: u32,
        to: u32,
        bytes: usize,
        is_urgent: bool,
    },
    /// A machine that was taken makes noise.
    Noise {
        node: u32,
        life: u32,
    },
    /// The same machine sends again what it has heard, which the event holds.
    Replay {
        node: u32,
        life: u32,
        medium: usize,
        slot: SlotId,
    },
}

impl<'w> SimRun<'w> {
    /// Prepares a run.
    ///
    /// # Errors
    ///
    /// [`SimError::Trace`] where a trace is missing or has too few vehicles,
    /// [`SimError::Value`] where streets have no room for all machines.
    pub fn new(
        scenario: Scenario,
        seed: u64,
        traces: &[NamedTrace],
        watch: SimWatch<'w>,
    ) -> Result<Self, SimError> {
        let motions = SimMotions::new(&scenario, seed, traces)?;
        let mut places = SimRandom::new(seed, "place", 0);
        let bodies = scenario.nodes.iter().map(|plan| {
            let home = match plan.place {
                NodePlacement::At(place) => place,
                NodePlacement::Within { at, area } => {
                    SimPlace { x: at.x + places.part() * area.x, y: at.y + places.part() * area.y }
                }
            };
            SimMachineState::new(plan, &scenario.media, home)
        });
        let bodies: Vec<_> = bodies.collect();
        let media = (0..).zip(&scenario.media).map(|(number, plan)| {
            let source = SimRandom::new(seed, "medium", number as u64).word();
            if plan.profile.is_shared() {
                return SimMedium::Air(SharedMedium::new(plan, source));
            }
            let on = (0..).zip(&scenario.nodes).filter(|(_, node)| node.media.contains(&number));
            let on = on.map(|(node, _)| node).collect();
            SimMedium::Lines(SimLinkMedium::new(number, plan, on, &scenario.links, source))
        });
        let flows = (0..).zip(&scenario.flows).map(|(n, _)| SimRandom::new(seed, "flow", n));
        let random = SimRunSources {
            flows: flows.collect(),
            noise: SimRandom::new(seed, "noise", 0),
            naps: SimRandom::new(seed, "nap", 0),
            answers: SimRandom::new(seed, "answer", 0),
        };
        let programs = bodies.iter().map(|_| None).collect();
        let mut run = Self {
            seed,
            clock: SimClock { now: SimTime(0), agenda: SimAgenda::new(), done: 0 },
            ether: SimEther {
                media: media.collect(),
                slots: SimUnitPool::default(),
                cuts: SimLinkCuts::default(),
            },
            fleet: SimFleet { bodies, programs, motions, effects: vec![] },
            mesh: SimMeshState {
                crew: Arc::new(SimMeshMembers::new(&scenario, seed)?),
                routes: SimRouteTable::new(scenario.nodes.len()),
                marks: BTreeMap::new(),
            },
            random,
            ledger: SimLedger::default(),
            outbox: OutsideOutbox::default(),
            watch,
            scenario,
        };
        run.begin()?;
        Ok(run)
    }

    /// Runs to the end, and gives what it came to, with the page if one was to be drawn.
    ///
    /// # Errors
    ///
    /// [`SimError::Output`], [`SimError::Pending`].
    pub fn finish(mut self) -> Result<SimOutcome, SimError> {
        self.advance(SimTime(0) + self.scenario.duration)?;
        let summary = self.summary();
        let page = self.watch.finish(&summary)?;
        Ok(SimOutcome { summary, page })
    }

    /// Does all that is due until then.
    pub(crate) fn advance(&mut self, until: SimTime) -> Result<(), SimError> {
        while let Some((at, event)) = self.clock.agenda.take(until) {
            self.clock.now = at;
            self.clock.done += 1;
            self.handle(event)?;
            if self.clock.agenda.len() > MAX_SIM_PENDING {
                return Err(SimError::Pending { at, most: MAX_SIM_PENDING });
            }
        }
        self.clock.now = self.clock.now.max(until);
        Ok(())
    }

    /// Puts there what the scenario asks for.
    fn begin(&mut self) -> Result<(), SimError> {
        self.watch.begin(&self.scenario, self.seed)?;
        for index in 0..self.fleet.bodies.len() {
            self.put_in_place(index as u32);
        }
        self.fill_cells();
        let nodes: Vec<_> = self.scenario.nodes.iter().map(|n| (n.joins, n.leaves)).collect();
        for (node, (joins, leaves)) in (0..).zip(nodes) {
            self.clock.agenda.put(SimTime(0) + joins, SimEvent::Joins { node });
            if let Some(leaves) = leaves {
                self.clock.agenda.put(SimTime(0) + leaves, SimEvent::Leaves { node });
            }
        }
        for (index, event) in (0..).zip(&self.scenario.events) {
            self.clock.agenda.put(SimTime(0) + event.at, SimEvent::Script { index });
        }
        for (index, flow) in (0..).zip(&self.scenario.flows) {
            for node in flow.from.clone() {
                // Spread over the first period, so that machines do not speak at once.
                let Some(random) = self.random.flows.get_mut(index) else { continue };
                let at = SimTime(0) + flow.starts + SimSpan(random.below(flow.every.0));
                self.clock.agenda.put(at, SimEvent::Flow { index, node: node as u32 });
            }
        }
        if self.fleet.bodies.iter().any(|body| body.is_carried) {
            self.clock.agenda.put(SimTime(0) + self.scenario.step, SimEvent::Step);
        }
        self.clock.agenda.put(SimTime(0), SimEvent::Second);
        Ok(())
    }

    fn handle(&mut self, event: SimEvent) -> Result<(), SimError> {
        match event {
            SimEvent::Wake { node, life } => self.wake(node, life),
            SimEvent::Attempt { medium, node, life } => self.attempt(medium, node, life),
            SimEvent::Acknowledge { medium, node, life, to } => {
                self.acknowledge(medium, node, life, to)
            }
            SimEvent::Unanswered { medium, node, life } => self.unanswered(medium, node, life),
            SimEvent::End { medium, transmission } => self.end(medium, transmission),
            SimEvent::Arrive { medium, node, from, slot } => {
                let arrived = self.arrive(medium, node, from, slot);
                self.ether.slots.release(slot);
                arrived
            }
            SimEvent::Step => self.step(),
            SimEvent::Second => self.second(),
            SimEvent::Nap { node, life } => self.nap(node, life),
            SimEvent::Joins { node } => self.join(node),
            SimEvent::Leaves { node } => self.leave(node, SimMachineEvent::Leave),
            SimEvent::Script { index } => self.script(index),
            SimEvent::Flow { index, node } => self.flow(index, node),
            SimEvent::Answer { node, to, bytes, is_urgent } => {
                let entry = SimLedgerEntry { from: node, to: Some(to), asked: None, is_urgent };
                self.offer(entry, bytes, None)
            }
            SimEvent::Noise { node, life } => self.make_noise(node, life),
            SimEvent::Replay { node, life, medium, slot } => {
                let is_there = self.is_alive(node, life);
                let replayed = if is_there { self.replay(node, medium, slot) } else { Ok(()) };
                self.ether.slots.release(slot);
                replayed
            }
        }
    }

    /// Whether a machine is still in this life.
    fn is_alive(&self, node: u32, life: u32) -> bool {
        self.body(node).is_some_and(|body| body.is_up && body.life == life)
    }

    fn body(&self, node: u32) -> Option<&SimMachineState> {
        self.fleet.bodies.get(node as usize)
    }

    fn body_mut(&mut self, node: u32) -> Option<&mut SimMachineState> {
        self.fleet.bodies.get_mut(node as usize)
    }

    fn wake(&mut self, node: u32, life: u32) -> Result<(), SimError> {
        let now = self.clock.now;
        let Some(body) = self.body_mut(node) else { return Ok(()) };
        if body.life != life || body.wakes != Some(now) {
            return Ok(());
        }
        body.wakes = None;
        if body.listens.is_none() {
            return Ok(());
        }
        self.give(node, ProgramInput::Tick)
    }

    /// Gives a machine's program an input, and does what it says.
    fn give(&mut self, node: u32, input: ProgramInput<'_>) -> Result<(), SimError> {
        let Some(Some(program)) = self.fleet.programs.get_mut(node as usize) else { return Ok(()) };
        program.take(self.clock.now, input, &mut self.fleet.effects);
        self.settle(node)
    }

    /// Does what a program has said, and notes when it is to be given a tick.
    fn settle(&mut self, node: u32) -> Result<(), SimError> {
        let effects = std::mem::take(&mut self.fleet.effects);
        self.do_all(node, effects)?;
        self.plan_wake(node);
        Ok(())
    }

    fn do_all(&mut self, node: u32, mut effects: Vec<ProgramEffect>) -> Result<(), SimError> {
        for effect in effects.drain(..) {
            match effect {
                ProgramEffect::Send(send) => self.send(node, send)?,
                ProgramEffect::Deliver { message } => self.deliver(node, message)?,
                ProgramEffect::Mark { message, mark } => {
                    self.mesh.marks.insert(mark, message);
                }
                ProgramEffect::Frame { mark } => match self.mesh.marks.get(&mark) {
                    Some(message) => self.deliver(node, *message)?,
                    None => self.ledger.tally.astray += 1,
                },
                ProgramEffect::Table(table) => self.follow(node, &table)?,
                ProgramEffect::Tidings(tidings) => {
                    self.watch.tells(self.clock.now, node, RunEvent::Mesh(tidings))?
                }
            }
        }
        self.fleet.effects = effects;
        Ok(())
    }

    /// Other routes are in use: do they lead in circles?
    fn follow(&mut self, node: u32, table: &RouteTable) -> Result<(), SimError> {
        let crew = &self.mesh.crew;
        let ways = table.routes().filter_map(|route| {
            Some(SimRoute { to: crew.node(route.to)?, next: crew.node(route.hop.slot)? })
        });
        for SimRouteLoop { to, length } in self.mesh.routes.take(node, ways) {
            self.watch.tells(self.clock.now, node, RunEvent::Loop { to, length })?;
        }
        Ok(())
    }

    /// Puts the tick on the agenda that a program asks for, if it is another one than before.
    fn plan_wake(&mut self, node: u32) {
        let program = self.fleet.programs.get(node as usize).and_then(Option::as_ref);
        let wakes = program.and_then(SimProgram::next_wake);
        let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return };
        if wakes != body.wakes {
            let wakes = wakes.map(|at| at.max(self.clock.now + SimSpan(1)));
            body.wakes = wakes;
            let life = body.life;
            if let Some(at) = wakes {
                self.clock.agenda.put(at, SimEvent::Wake { node, life });
            }
        }
    }

    /// A program sends a unit.
    fn send(&mut self, node: u32, send: SimOutgoingUnit) -> Result<(), SimError> {
        let Some(body) = self.fleet.bodies.get(node as usize) else { return Ok(()) };
        let Some(medium) = body.ports.get(send.port).map(|port| port.medium) else {
            return Ok(());
        };
        let is_kept = match body.capture {
            Some(CapturedBehaviour::BlackHole) => send.urgency != crate::node::SimUrgency::Control,
            Some(
                CapturedBehaviour::Replay | CapturedBehaviour::Noise | CapturedBehaviour::Silence,
            ) => true,
            None => false,
        };
        if is_kept {
            return self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::Captured));
        }
        let slot = self.ether.slots.put(send.unit);
        let unit = QueuedUnit { slot, to: send.to, urgency: send.urgency };
        self.queue(medium, node, unit)
    }

    /// A unit, which is held once, for a medium.
    fn queue(&mut self, medium: usize, node: u32, unit: QueuedUnit) -> Result<(), SimError> {
        let length = self.ether.slots.unit(unit.slot).len();
        let plan = self.scenario.media.get(medium);
        if plan.is_none_or(|plan| length > plan.profile.unit_bytes()) {
            self.ether.slots.release(unit.slot);
            return self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::TooLong));
        }
        match self.ether.media.get(medium) {
            Some(SimMedium::Air(_)) => self.queue_for_air(medium, node, unit),
            Some(SimMedium::Lines(_)) => self.send_by_lines(medium, node, unit),
            None => Ok(()),
        }
    }

    /// A unit comes to a machine, if it still listens and is reached.
    fn arrive(
        &mut self,
        medium: usize,
        node: u32,
        from: u32,
        slot: SlotId,
    ) -> Result<(), SimError> {
        let side = self.body(from).map(|body| body.side);
        let body = self.body(node).filter(|body| body.listens.is_some());
        let is_there =
            |body: &&SimMachineState| side == Some(body.side) && !self.ether.cuts.part(from, node);
        match body.filter(is_there) {
            Some(_) => self.take_in(medium, &[node], from, slot),
            None => self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::Gone)),
        }
    }

    /// A unit is at machines that listen.
    fn take_in(
        &mut self,
        medium: usize,
        mut nodes: &[u32],
        from: u32,
        slot: SlotId,
    ) -> Result<(), SimError> {
        self.watch.arrives(nodes.len());
        while let Some(node) = self.take_in_quietly(medium, &mut nodes, from, slot) {
            let Some(body) = self.fleet.bodies.get(node as usize) else { continue };
            let looks = matches!(body.capture, None | Some(CapturedBehaviour::BlackHole));
            if looks && self.is_outside(node) {
                let port = body.port_on(medium);
                port.into_iter().for_each(|port| self.depart(node, port, from, slot));
                continue;
            }
            if body.capture == Some(CapturedBehaviour::Replay) {
                let life = body.life;
                self.ether.slots.hold(slot);
                let at = self.clock.now + SimSpan::from_s(1);
                self.clock.agenda.put(at, SimEvent::Replay { node, life, medium, slot });
            }
            self.settle(node)?;
        }
        Ok(())
    }

    /// Gives a unit to the programs of machines up to one that has something to do then, which is
    /// taken from the list with those before. Most of what is heard asks for nothing.
    fn take_in_quietly(
        &mut self,
        medium: usize,
        nodes: &mut &[u32],
        from: u32,
        slot: SlotId,
    ) -> Option<u32> {
        let unit = self.ether.slots.unit(slot);
        let is_unit = self.ether.slots.cover(slot).is_none_or(|cover| cover.is_unit);
        while let Some((&node, rest)) = nodes.split_first() {
            *nodes = rest;
            let body = self.fleet.bodies.get(node as usize)?;
            if body.capture.is_some_and(|by| by != CapturedBehaviour::BlackHole) {
                return Some(node);
            }
            let Some(port) = body.port_on(medium) else { continue };
            // The program of a machine without one may be outside.
            let Some(Some(program)) = self.fleet.programs.get_mut(node as usize) else {
                return Some(node);
            };
            if !is_unit {
                continue;
            }
            program.take(
                self.clock.now,
                ProgramInput::Heard { port, from, unit },
                &mut self.fleet.effects,
            );
            if !self.fleet.effects.is_empty() || program.next_wake() != body.wakes {
                return Some(node);
            }
        }
        None
    }

    /// A program has a message that was for its machine.
    fn deliver(&mut self, node: u32, message: u64) -> Result<(), SimError> {
        let Some(delivery) = self.ledger.deliver(self.clock.now, message, node) else {
            return Ok(());
        };
        let delivered = RunEvent::Deliver { message, took: delivery.took };
        self.watch.tells(self.clock.now, node, delivered)?;
        if let Some(answer) = delivery.answer {
            let (to, bytes, is_urgent) = (answer.to, answer.asked.bytes, answer.is_urgent);
            let at = self.clock.now + SimSpan(self.random.answers.below(answer.asked.within.0 + 1));
            self.clock.agenda.put(at, SimEvent::Answer { node, to, bytes, is_urgent });
        }
        Ok(())
    }

    /// A message of a machine, if it is there.
    fn offer(
        &mut self,
        entry: SimLedgerEntry,
        bytes: usize,
        document: Option<DataType>,
    ) -> Result<(), SimError> {
        let node = entry.from;
        if self.body(node).is_none_or(|body| body.listens.is_none()) {
            return Ok(());
        }
        // Everybody is all who run the same program.
        let plan = self.scenario.nodes.get(node as usize);
        let machines = (0..).zip(self.fleet.bodies.iter().zip(&self.scenario.nodes));
        let there = machines.filter(|(_, (body, other))| {
            body.is_up && plan.is_some_and(|plan| plan.kind.talks_to(&other.kind))
        });
        let there = there.map(|(node, _)| node);
        let Some(message) = self.ledger.enter(self.clock.now, entry, there) else { return Ok(()) };
        let SimLedgerEntry { to, is_urgent, .. } = entry;
        let offer = SimOffer { message, to, bytes, is_urgent, document };
        self.watch.tells(self.clock.now, node, RunEvent::Offer(&offer))?;
        self.give(node, ProgramInput::Offer(&offer))
    }
}
