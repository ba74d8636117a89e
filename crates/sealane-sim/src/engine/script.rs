//! The events of machines: they join and leave, move, sleep, and are captured.

use super::body::QueuedUnit;
use super::ledger::{AnswerTerms, SimLedgerEntry};
use super::{SimEvent, SimMedium, SimRun};
use crate::node::{ProgramInput, SimProgram, SimUnitTarget, SimUrgency};
use crate::random::DrawOdds;
use crate::scenario::{CapturedBehaviour, FlowReceivers, ScenarioAction};
use crate::watch::{LossReason, RunEvent, SimMachineEvent};
use crate::{SimError, SimSpan, SimTime};

/// How often a machine that was taken makes noise, and how much at once at most.
const NOISE_EVERY: SimSpan = SimSpan::from_ms(100);
const NOISE_BYTES: usize = 200;
/// A machine is told of again when it is so far from where it was.
const MOVED_M: f64 = 1.0;

impl SimRun<'_> {
    /// A machine joins, unless it is there.
    pub(super) fn join(&mut self, node: u32) -> Result<(), SimError> {
        let now = self.clock.now;
        // A machine of a trace is there while its vehicle is.
        if !self.put_in_place(node) {
            return Ok(());
        }
        let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return Ok(()) };
        if body.is_up || body.is_empty() {
            return Ok(());
        }
        body.reckon(now);
        body.is_up = true;
        body.listens = Some(now);
        body.life += 1;
        body.wakes = None;
        let (life, place) = (body.life, body.place);
        let Some(plan) = self.scenario.nodes.get(node as usize) else { return Ok(()) };
        let program = SimProgram::new(plan, &self.mesh.crew, self.seed, node, life, now);
        let media: Vec<_> = plan.media.iter().copied().enumerate().collect();
        let sleep = plan.sleep;
        if let Some(slot) = self.fleet.programs.get_mut(node as usize) {
            *slot = program;
        }
        self.turn(node, true);
        self.watch.tells(now, node, RunEvent::at(SimMachineEvent::Join, place))?;
        for (port, medium) in media {
            let Some(plan) = self.scenario.media.get(medium) else { continue };
            let (profile, duty_ppm) = (plan.profile, plan.duty_ppm);
            self.give(node, ProgramInput::Up { port, profile: &profile, duty_ppm })?;
        }
        if let Some(sleep) = sleep {
            let at = now + SimSpan(self.random.naps.below(sleep.awake.0).max(1));
            self.clock.agenda.put(at, SimEvent::Nap { node, life });
        }
        Ok(())
    }

    /// A machine leaves, if it is there.
    pub(super) fn leave(&mut self, node: u32, why: SimMachineEvent) -> Result<(), SimError> {
        let now = self.clock.now;
        let Some(body) = self.fleet.bodies.get_mut(node as usize).filter(|body| body.is_up) else {
            return Ok(());
        };
        body.reckon(now);
        body.is_up = false;
        body.listens = None;
        body.wakes = None;
        let place = body.place;
        for port in &mut body.ports {
            for waiting in port.clear() {
                self.ether.slots.release(waiting.slot);
            }
        }
        if let Some(program) = self.fleet.programs.get_mut(node as usize) {
            *program = None;
        }
        self.mesh.routes.forget(node);
        self.turn(node, false);
        self.watch.tells(now, node, RunEvent::at(why, place))
    }

    /// A machine falls asleep or wakes, if it is not so already.
    fn set_awake(&mut self, node: u32, is_awake: bool) -> Result<(), SimError> {
        let now = self.clock.now;
        let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return Ok(()) };
        if !body.is_up || body.listens.is_some() == is_awake {
            return Ok(());
        }
        body.reckon(now);
        body.listens = is_awake.then_some(now);
        body.wakes = None;
        let (place, media) = (body.place, body.ports.iter().map(|port| port.medium));
        let media: Vec<_> = media.collect();
        let why = if is_awake { SimMachineEvent::Wake } else { SimMachineEvent::Sleep };
        self.watch.tells(now, node, RunEvent::at(why, place))?;
        if is_awake {
            // The machine now does the work of the time that it slept, and the waiting units are
            // sent.
            self.give(node, ProgramInput::Tick)?;
            media.into_iter().try_for_each(|medium| self.contend(medium, node))?;
        }
        Ok(())
    }

    /// A machine that sleeps by turns.
    pub(super) fn nap(&mut self, node: u32, life: u32) -> Result<(), SimError> {
        if !self.is_alive(node, life) {
            return Ok(());
        }
        let sleep = self.scenario.nodes.get(node as usize).and_then(|plan| plan.sleep);
        let is_awake = self.body(node).is_some_and(|body| body.listens.is_some());
        if let Some(sleep) = sleep {
            let next = if is_awake { sleep.asleep } else { sleep.awake };
            self.clock.agenda.put(self.clock.now + next, SimEvent::Nap { node, life });
        }
        self.set_awake(node, !is_awake)
    }

    /// Puts a machine where its motion has it. Whether it is anywhere.
    pub(super) fn put_in_place(&mut self, node: u32) -> bool {
        let rider = self.scenario.nodes.get(node as usize).and_then(|plan| plan.motion);
        let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return false };
        let Some(rider) = rider else { return true };
        match self.fleet.motions.place(rider.motion, rider.seat, body.home, self.clock.now) {
            Some(place) => {
                body.place = place;
                true
            }
            None => false,
        }
    }

    /// All that are carried go on, and those whose vehicle comes or goes join or leave.
    pub(super) fn step(&mut self) -> Result<(), SimError> {
        self.fleet.motions.step(self.scenario.step);
        for node in 0..self.fleet.bodies.len() as u32 {
            if !self.body(node).is_some_and(|body| body.is_carried) {
                continue;
            }
            let is_there = self.put_in_place(node);
            let is_up = self.body(node).is_some_and(|body| body.is_up);
            let is_new = self.body(node).is_some_and(|body| body.life == 0);
            let joins = self.scenario.nodes.get(node as usize).map(|plan| plan.joins);
            if !is_there && is_up {
                self.leave(node, SimMachineEvent::Leave)?;
            } else if is_there
                && is_new
                && joins.is_some_and(|at| SimTime(0) + at <= self.clock.now)
            {
                self.join(node)?;
            }
        }
        self.fill_cells();
        self.clock.agenda.put(self.clock.now + self.scenario.step, SimEvent::Step);
        Ok(())
    }

    /// Tells the media where machines are.
    pub(super) fn fill_cells(&mut self) {
        for (number, medium) in (0..).zip(&mut self.ether.media) {
            let cells = match medium {
                SimMedium::Air(air) => {
                    air.nears.forget();
                    &mut air.cells
                }
                SimMedium::Lines(lines) => &mut lines.cells,
            };
            let on =
                (0..).zip(&self.fleet.bodies).filter(|(_, body)| body.port_on(number).is_some());
            cells.fill(on.map(|(node, body)| (node, body.place)));
        }
    }

    /// Once a second.
    pub(super) fn second(&mut self) -> Result<(), SimError> {
        let now = self.clock.now;
        for node in 0..self.fleet.bodies.len() as u32 {
            let Some(body) = self.fleet.bodies.get_mut(node as usize) else { continue };
            if body.is_up && body.battery.is_some() {
                body.reckon(now);
                if body.is_empty() {
                    self.leave(node, SimMachineEvent::Empty)?;
                }
            }
        }
        self.tell_loads()?;
        for (node, body) in (0..).zip(&mut self.fleet.bodies) {
            let has_moved = body.told.metres_to(body.place) >= MOVED_M;
            if body.is_carried && body.is_up && has_moved {
                body.told = body.place;
                self.watch.tells(now, node, RunEvent::at(SimMachineEvent::Move, body.place))?;
            }
        }
        self.clock.agenda.put(now + SimSpan::from_s(1), SimEvent::Second);
        Ok(())
    }

    /// Tells programs how busy their channels were in the last second.
    fn tell_loads(&mut self) -> Result<(), SimError> {
        let mut loads = vec![];
        for (node, body) in
            (0..).zip(&mut self.fleet.bodies).filter(|(_, body)| body.listens.is_some())
        {
            for (port, radio) in body.ports.iter_mut().enumerate() {
                let busy = radio.heard + radio.sent;
                let busy_ppm = busy.0.saturating_sub(radio.told.0).min(1_000_000) as u32;
                radio.told = busy;
                loads.push((node, ProgramInput::Load { port, busy_ppm }));
            }
        }
        loads.into_iter().try_for_each(|(node, load)| self.give(node, load))
    }

    /// An event of the scenario.
    pub(super) fn script(&mut self, index: usize) -> Result<(), SimError> {
        let act = self.scenario.events.get(index).map(|event| event.act.clone());
        act.map_or(Ok(()), |act| self.act(act))
    }

    /// Does what an event of the scenario says, or what somebody wants done in a live run.
    pub(crate) fn act(&mut self, act: ScenarioAction) -> Result<(), SimError> {
        match act {
            ScenarioAction::Join(who) => who.into_iter().try_for_each(|node| self.join(node)),
            ScenarioAction::Leave(who) => {
                who.into_iter().try_for_each(|node| self.leave(node, SimMachineEvent::Leave))
            }
            ScenarioAction::Sleep(who) => {
                who.into_iter().try_for_each(|node| self.set_awake(node, false))
            }
            ScenarioAction::Wake(who) => {
                who.into_iter().try_for_each(|node| self.set_awake(node, true))
            }
            ScenarioAction::Capture { who, by } => {
                who.into_iter().try_for_each(|node| self.capture(node, by))
            }
            ScenarioAction::Move { who, to } => {
                for node in who {
                    if let Some(body) = self.body_mut(node) {
                        body.place = to;
                        body.home = to;
                    }
                    self.watch.tells(
                        self.clock.now,
                        node,
                        RunEvent::at(SimMachineEvent::Move, to),
                    )?;
                }
                self.fill_cells();
                Ok(())
            }
            ScenarioAction::Partition(sides) => {
                self.fleet.bodies.iter_mut().for_each(|body| body.side = 0);
                for (side, who) in (1..).zip(sides) {
                    for node in who {
                        if let Some(body) = self.body_mut(node) {
                            body.side = side;
                        }
                    }
                }
                self.watch.notes(self.clock.now, "partition")
            }
            ScenarioAction::Heal => {
                self.fleet.bodies.iter_mut().for_each(|body| body.side = 0);
                self.watch.notes(self.clock.now, "heal")
            }
            ScenarioAction::Cut { one, other } => {
                self.ether.cuts.add(&one, &other);
                self.watch.notes(self.clock.now, "cut")
            }
            ScenarioAction::Mend { one, other } => {
                self.ether.cuts.remove(&one, &other);
                self.watch.notes(self.clock.now, "mend")
            }
            ScenarioAction::Loss { medium, loss } => {
                match self.ether.media.get_mut(medium) {
                    Some(SimMedium::Air(air)) => air.loss = DrawOdds::of(loss),
                    Some(SimMedium::Lines(lines)) => lines.loss = loss,
                    None => {}
                }
                self.watch.notes(self.clock.now, "loss")
            }
        }
    }

    fn capture(&mut self, node: u32, by: CapturedBehaviour) -> Result<(), SimError> {
        let now = self.clock.now;
        let Some(body) = self.body_mut(node) else { return Ok(()) };
        body.capture = Some(by);
        let (life, place, is_up) = (body.life, body.place, body.is_up);
        // The units that waited for its radios are not sent either, whichever machine made them.
        let waiting: Vec<_> = body.ports.iter_mut().flat_map(|port| port.clear()).collect();
        for unit in waiting {
            self.ether.slots.release(unit.slot);
            self.watch.tells(now, node, RunEvent::Drop(LossReason::Captured))?;
        }
        if by == CapturedBehaviour::Noise && is_up {
            self.clock.agenda.put(now + NOISE_EVERY, SimEvent::Noise { node, life });
        }
        self.watch.tells(now, node, RunEvent::at(SimMachineEvent::Capture, place))
    }

    /// Bytes of chance on every port.
    pub(super) fn make_noise(&mut self, node: u32, life: u32) -> Result<(), SimError> {
        if !self.is_alive(node, life) {
            return Ok(());
        }
        let media: Vec<_> = match self.body(node) {
            Some(body) => body.ports.iter().map(|port| port.medium).collect(),
            None => vec![],
        };
        for medium in media {
            let most = self.scenario.media.get(medium).map_or(0, |plan| plan.profile.unit_bytes());
            let length = 1 + self.random.noise.below(most.min(NOISE_BYTES) as u64) as usize;
            let unit: Vec<u8> = (0..length).map(|_| self.random.noise.word() as u8).collect();
            let slot = self.ether.slots.put(unit.into());
            let unit =
                QueuedUnit { slot, to: SimUnitTarget::Everybody, urgency: SimUrgency::Control };
            self.queue(medium, node, unit)?;
        }
        self.clock.agenda.put(self.clock.now + NOISE_EVERY, SimEvent::Noise { node, life });
        Ok(())
    }

    /// Sends again what was heard, unchanged.
    pub(super) fn replay(
        &mut self,
        node: u32,
        medium: usize,
        slot: super::SlotId,
    ) -> Result<(), SimError> {
        self.ether.slots.hold(slot);
        let unit = QueuedUnit { slot, to: SimUnitTarget::Everybody, urgency: SimUrgency::Control };
        self.queue(medium, node, unit)
    }

    /// The next message of a flow.
    pub(super) fn flow(&mut self, index: usize, node: u32) -> Result<(), SimError> {
        let Some(flow) = self.scenario.flows.get(index) else { return Ok(()) };
        let Some(random) = self.random.flows.get_mut(index) else { return Ok(()) };
        let to = match &flow.to {
            FlowReceivers::Everybody => None,
            FlowReceivers::OneOf(range) => {
                // Nobody sends to itself: the last one stands in for the sender.
                let others = range.clone().filter(|other| *other != node as usize).count() as u64;
                let chosen = range.start as u32 + random.below(others.max(1)) as u32;
                let last = range.end.saturating_sub(1) as u32;
                Some(if chosen == node { last } else { chosen })
            }
        };
        let every = match flow.is_random {
            // The waits of events that come by chance (Poisson).
            true => SimSpan((-(1.0 - random.part()).ln() * flow.every.0 as f64).ceil() as u64),
            false => flow.every,
        };
        let next = self.clock.now + every;
        let (bytes, is_urgent, ends) = (flow.bytes, flow.is_urgent, SimTime(0) + flow.ends);
        let document = flow.document;
        let asked = flow.answered.map(|within| AnswerTerms { bytes, within });
        if next <= ends {
            self.clock.agenda.put(next, SimEvent::Flow { index, node });
        }
        if to == Some(node) {
            return Ok(());
        }
        self.offer(SimLedgerEntry { from: node, to, asked, is_urgent }, bytes, document)
    }
}
