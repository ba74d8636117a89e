//! The machines that hear a transmission, and its fate at each of them.

use super::air::{RadioTransmission, SharedMedium, TransmissionKind};
use super::near::{NearListInputs, NearMachine};
use super::slots::SlotId;
use super::{SimEvent, SimMedium, SimRun};
use crate::medium::{DOT11P_ACK_TIMEOUT, DOT11P_SIFS};
use crate::node::SimUnitTarget;
use crate::random::{DrawPurpose, TransmissionDraws};
use crate::scenario::{CapturedBehaviour, LinkImpairments};
use crate::watch::{FinishedTransmission, LossReason};
use crate::{SimError, SimSpan};

/// The fate of a unit at one machine.
enum ReceptionFate {
    /// It is no receiver: too far, away, or not meant.
    Nothing,
    Heard,
    Lost(LossReason),
}

/// Which of the machines in reach are to get something.
#[derive(Clone, Copy)]
struct TransmissionTarget {
    to: SimUnitTarget,
    /// Nobody gets what was cut off because its sender left.
    is_whole: bool,
}

impl SimRun<'_> {
    /// A transmission is over: who has it?
    pub(super) fn end(&mut self, medium: usize, transmission: usize) -> Result<(), SimError> {
        let Some(SimMedium::Air(air)) = self.ether.media.get_mut(medium) else { return Ok(()) };
        let Some(over) = air.take(transmission) else { return Ok(()) };
        let is_whole = self.is_alive(over.from, over.life);
        match over.what {
            TransmissionKind::Unit { slot, to } => {
                self.end_unit(medium, &over, slot, TransmissionTarget { to, is_whole })
            }
            TransmissionKind::Acknowledgement { to } => {
                let sent = self.receivers(
                    medium,
                    &over,
                    TransmissionTarget { to: SimUnitTarget::One(to), is_whole },
                );
                let is_heard = !sent.heard.is_empty();
                self.watch.keep(sent);
                self.answered(medium, to, is_heard)
            }
        }
    }

    fn end_unit(
        &mut self,
        medium: usize,
        over: &RadioTransmission,
        slot: SlotId,
        meant: TransmissionTarget,
    ) -> Result<(), SimError> {
        let Some(plan) = self.scenario.media.get(medium) else { return Ok(()) };
        let (manners, profile) = (plan.manners, plan.profile);
        let sent = self.receivers(medium, over, meant);
        self.watch.sends(self.clock.now, &sent, self.ether.slots.unit(slot))?;
        let answers = match meant.to {
            SimUnitTarget::One(to) if profile.acknowledges() => Some(to),
            _ => None,
        };
        // A unit that comes again, because its acknowledgement was lost, is not taken again.
        let is_new =
            answers.is_none() || !self.was_taken(medium, over.from, !sent.heard.is_empty());
        match (is_new, manners.are_plain()) {
            (false, _) => {}
            (true, true) => self.take_in(medium, &sent.heard, over.from, slot)?,
            (true, false) => {
                let heard = sent.heard.iter();
                heard.for_each(|to| self.arrives_later(medium, *to, over, slot, manners));
            }
        }
        let is_heard = !sent.heard.is_empty();
        self.watch.keep(sent);
        self.ether.slots.release(slot);
        if !meant.is_whole {
            return Ok(());
        }
        if let Some(port) = self.body_mut(over.from).and_then(|body| body.port_mut(medium)) {
            port.heard_until = port.heard_until.max(over.ends);
            port.is_busy = answers.is_some() && port.trying.is_some();
        }
        match answers {
            Some(to) => self.await_answer(medium, over, to, is_heard),
            None => self.contend(medium, over.from),
        }
    }

    /// Whether a machine has taken before the unit that a radio tries to send; notes that it has
    /// now.
    fn was_taken(&mut self, medium: usize, from: u32, is_heard: bool) -> bool {
        let port = self.body_mut(from).and_then(|body| body.port_mut(medium));
        let Some(trying) = port.and_then(|port| port.trying.as_mut()) else { return false };
        let was_taken = trying.is_taken;
        trying.is_taken |= is_heard;
        was_taken
    }

    /// Puts there when a radio will know what has become of its unit.
    fn await_answer(
        &mut self,
        medium: usize,
        over: &RadioTransmission,
        to: u32,
        is_heard: bool,
    ) -> Result<(), SimError> {
        // A machine that says nothing does not say this either.
        let body = self.body(to).filter(|body| body.capture != Some(CapturedBehaviour::Silence));
        match body.filter(|_| is_heard).map(|body| body.life) {
            Some(life) => {
                let event = SimEvent::Acknowledge { medium, node: to, life, to: over.from };
                self.clock.agenda.put(self.clock.now + DOT11P_SIFS, event);
            }
            None => {
                let (node, life) = (over.from, over.life);
                let event = SimEvent::Unanswered { medium, node, life };
                self.clock.agenda.put(self.clock.now + DOT11P_ACK_TIMEOUT, event);
            }
        }
        Ok(())
    }

    /// The machines that have heard a transmission, and why the others near have not.
    fn receivers(
        &mut self,
        medium: usize,
        over: &RadioTransmission,
        meant: TransmissionTarget,
    ) -> FinishedTransmission {
        let air_time = over.ends - over.starts;
        let mut sent = self.watch.fresh(over.from, medium as u32, over.starts, air_time);
        let Some(plan) = self.scenario.media.get(medium) else { return sent };
        let Some(SimMedium::Air(air)) = self.ether.media.get_mut(medium) else { return sent };
        let (seed, bodies) = (self.seed, &self.fleet.bodies);
        let SharedMedium { nears, reach, cells, .. } = air;
        let nears =
            nears.lend(over.from, NearListInputs { medium, plan, seed, reach, cells, bodies });
        for near in &nears {
            let Some(body) = self.fleet.bodies.get_mut(near.node as usize) else { continue };
            if body.side != over.side || self.ether.cuts.part(over.from, near.node) {
                continue;
            }
            let Some(since) = body.listens else { continue };
            let is_meant = meant.is_whole && since <= over.starts && meant.to.is(near.node);
            let fate = if is_meant { air.fate(over, near, body) } else { ReceptionFate::Nothing };
            let is_heard = matches!(fate, ReceptionFate::Heard);
            if near.senses || is_heard {
                let port = body.ports.get_mut(usize::from(near.port));
                port.into_iter().for_each(|port| port.hears(over.starts, over.ends));
            }
            match fate {
                ReceptionFate::Nothing => {}
                ReceptionFate::Heard => sent.heard.push(near.node),
                ReceptionFate::Lost(loss) => sent.loses(loss),
            }
        }
        air.nears.keep(over.from, nears);
        sent
    }

    /// A unit that was heard comes later, and perhaps twice, as the medium has it.
    fn arrives_later(
        &mut self,
        medium: usize,
        node: u32,
        over: &RadioTransmission,
        slot: SlotId,
        manners: LinkImpairments,
    ) {
        for delay in manners.delays(over.draws, node) {
            self.ether.slots.hold(slot);
            let from = over.from;
            self.clock
                .agenda
                .put(self.clock.now + delay, SimEvent::Arrive { medium, node, from, slot });
        }
    }
}

impl SharedMedium {
    /// The fate of a transmission at a machine that listened throughout.
    #[inline]
    fn fate(
        &self,
        over: &RadioTransmission,
        near: &NearMachine,
        body: &super::SimMachineState,
    ) -> ReceptionFate {
        let happens = |about, odds| over.draws.happens(near.node, about, odds);
        if !happens(DrawPurpose::Fading, near.arrives) {
            if near.is_in_range {
                ReceptionFate::Lost(LossReason::Faded)
            } else {
                ReceptionFate::Nothing
            }
        } else if over.over.iter().any(|rival| rival.from == near.node) {
            ReceptionFate::Lost(LossReason::Deaf)
        } else if !over.over.is_empty() && over.is_drowned(&self.reach, body, near) {
            ReceptionFate::Lost(LossReason::Collision)
        } else if happens(DrawPurpose::Medium, self.loss)
            || happens(DrawPurpose::Direction, near.own_loss)
        {
            ReceptionFate::Lost(LossReason::Medium)
        } else {
            ReceptionFate::Heard
        }
    }
}

impl LinkImpairments {
    /// Whether each unit comes once and at once.
    fn are_plain(&self) -> bool {
        self.duplicates == 0.0 && self.delay == SimSpan(0) && self.jitter == SimSpan(0)
    }

    /// How much later a unit comes, once or twice.
    pub(super) fn delays(
        self,
        draws: TransmissionDraws,
        node: u32,
    ) -> impl Iterator<Item = SimSpan> {
        let is_double =
            draws.happens(node, DrawPurpose::Copies, crate::random::DrawOdds::of(self.duplicates));
        let copies = [Some(DrawPurpose::Jitter), is_double.then_some(DrawPurpose::SecondJitter)];
        copies.into_iter().flatten().map(move |about| {
            self.delay + SimSpan(draws.below(node, about, self.jitter.0.saturating_add(1)))
        })
    }
}
