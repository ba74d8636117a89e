//! The machines that hear a transmission, and its fate at each of them.

use super::air::{Air, Transmission, What};
use super::near::{Near, Scene};
use super::slots::SlotId;
use super::{Event, Medium, Run};
use crate::medium::{DOT11P_ACK_TIMEOUT, DOT11P_SIFS};
use crate::node::To;
use crate::random::{About, Draws};
use crate::scenario::{Capture, Manners};
use crate::watch::{Loss, Sent};
use crate::{SimError, Span};

/// The fate of a unit at one machine.
enum Fate {
    /// It is no receiver: too far, away, or not meant.
    Nothing,
    Heard,
    Lost(Loss),
}

/// Which of the machines in reach are to get something.
#[derive(Clone, Copy)]
struct Meant {
    to: To,
    /// Nobody gets what was cut off because its sender left.
    is_whole: bool,
}

impl Run<'_> {
    /// A transmission is over: who has it?
    pub(super) fn end(&mut self, medium: usize, transmission: usize) -> Result<(), SimError> {
        let Some(Medium::Air(air)) = self.media.get_mut(medium) else { return Ok(()) };
        let Some(over) = air.take(transmission) else { return Ok(()) };
        let is_whole = self.is_alive(over.from, over.life);
        match over.what {
            What::Unit { slot, to } => self.end_unit(medium, &over, slot, Meant { to, is_whole }),
            What::Acknowledgement { to } => {
                let sent = self.receivers(medium, &over, Meant { to: To::One(to), is_whole });
                let is_heard = !sent.heard.is_empty();
                self.watch.keep(sent);
                self.answered(medium, to, is_heard)
            }
        }
    }

    fn end_unit(
        &mut self,
        medium: usize,
        over: &Transmission,
        slot: SlotId,
        meant: Meant,
    ) -> Result<(), SimError> {
        let Some(plan) = self.scenario.media.get(medium) else { return Ok(()) };
        let (manners, profile) = (plan.manners, plan.profile);
        let sent = self.receivers(medium, over, meant);
        self.watch.sends(self.now, &sent, self.slots.unit(slot))?;
        let answers = match meant.to {
            To::One(to) if profile.acknowledges() => Some(to),
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
        self.slots.release(slot);
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
        over: &Transmission,
        to: u32,
        is_heard: bool,
    ) -> Result<(), SimError> {
        // A machine that says nothing does not say this either.
        let body = self.body(to).filter(|body| body.capture != Some(Capture::Silence));
        match body.filter(|_| is_heard).map(|body| body.life) {
            Some(life) => {
                let event = Event::Acknowledge { medium, node: to, life, to: over.from };
                self.agenda.put(self.now + DOT11P_SIFS, event);
            }
            None => {
                let (node, life) = (over.from, over.life);
                let event = Event::Unanswered { medium, node, life };
                self.agenda.put(self.now + DOT11P_ACK_TIMEOUT, event);
            }
        }
        Ok(())
    }

    /// The machines that have heard a transmission, and why the others near have not.
    fn receivers(&mut self, medium: usize, over: &Transmission, meant: Meant) -> Sent {
        let air_time = over.ends - over.starts;
        let mut sent = self.watch.fresh(over.from, medium as u32, over.starts, air_time);
        let Some(plan) = self.scenario.media.get(medium) else { return sent };
        let Some(Medium::Air(air)) = self.media.get_mut(medium) else { return sent };
        let (seed, bodies) = (self.seed, &self.bodies);
        let Air { nears, reach, cells, .. } = air;
        let nears = nears.lend(over.from, Scene { medium, plan, seed, reach, cells, bodies });
        for near in &nears {
            let Some(body) = self.bodies.get_mut(near.node as usize) else { continue };
            if body.side != over.side || self.cuts.part(over.from, near.node) {
                continue;
            }
            let Some(since) = body.listens else { continue };
            let is_meant = meant.is_whole && since <= over.starts && meant.to.is(near.node);
            let fate = if is_meant { air.fate(over, near, body) } else { Fate::Nothing };
            let is_heard = matches!(fate, Fate::Heard);
            if near.senses || is_heard {
                let port = body.ports.get_mut(usize::from(near.port));
                port.into_iter().for_each(|port| port.hears(over.starts, over.ends));
            }
            match fate {
                Fate::Nothing => {}
                Fate::Heard => sent.heard.push(near.node),
                Fate::Lost(loss) => sent.loses(loss),
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
        over: &Transmission,
        slot: SlotId,
        manners: Manners,
    ) {
        for delay in manners.delays(over.draws, node) {
            self.slots.hold(slot);
            let from = over.from;
            self.agenda.put(self.now + delay, Event::Arrive { medium, node, from, slot });
        }
    }
}

impl Air {
    /// The fate of a transmission at a machine that listened throughout.
    #[inline]
    fn fate(&self, over: &Transmission, near: &Near, body: &super::Body) -> Fate {
        let happens = |about, odds| over.draws.happens(near.node, about, odds);
        if !happens(About::Fading, near.arrives) {
            if near.is_in_range { Fate::Lost(Loss::Faded) } else { Fate::Nothing }
        } else if over.over.iter().any(|rival| rival.from == near.node) {
            Fate::Lost(Loss::Deaf)
        } else if !over.over.is_empty() && over.is_drowned(&self.reach, body, near) {
            Fate::Lost(Loss::Collision)
        } else if happens(About::Medium, self.loss) || happens(About::Direction, near.own_loss) {
            Fate::Lost(Loss::Medium)
        } else {
            Fate::Heard
        }
    }
}

impl Manners {
    /// Whether each unit comes once and at once.
    fn are_plain(&self) -> bool {
        self.duplicates == 0.0 && self.delay == Span(0) && self.jitter == Span(0)
    }

    /// How much later a unit comes, once or twice.
    pub(super) fn delays(self, draws: Draws, node: u32) -> impl Iterator<Item = Span> {
        let is_double =
            draws.happens(node, About::Copies, crate::random::Odds::of(self.duplicates));
        let copies = [Some(About::Jitter), is_double.then_some(About::SecondJitter)];
        copies.into_iter().flatten().map(move |about| {
            self.delay + Span(draws.below(node, about, self.jitter.0.saturating_add(1)))
        })
    }
}
