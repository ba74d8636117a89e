//! Media that all share: whoever sends is heard by all that are near, and by nobody who sends.

use super::body::{Backoff, Body, Waiting};
use super::slots::SlotId;
use super::{Event, Medium, Run};
use crate::medium::{BLE_ADVERTISING_DELAY, DOT11P_AIFS, DOT11P_SLOT, DOT11P_WINDOW};
use crate::node::To;
use crate::place::{Cells, Place};
use crate::scenario::MediumPlan;
use crate::watch::{Loss, Sent};
use crate::{Profile, Random, SimError, Span, Time};

/// A stronger transmission is received though others are heard, if it has four times the power of
/// all of them together: 6 dB, as measured for LoRa and for 802.11 with strong codes.
const CAPTURE: f64 = 4.0;
/// A radio finds a channel busy that has half the power that it needs to receive.
const SENSES: f64 = 0.5;
/// Nearer than this power does not grow.
const NEAREST_M: f64 = 1.0;

/// A shared medium.
#[derive(Debug)]
pub(super) struct Air {
    reach: Reach,
    pub(super) loss: f64,
    pub(super) cells: Cells,
    transmissions: Vec<Option<Transmission>>,
    /// The places of those under way.
    active: Vec<usize>,
    free: Vec<usize>,
    random: Random,
}

/// What decides who hears whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    range_m: f64,
    exponent: f64,
    /// Within it a radio finds the channel busy.
    senses_m: f64,
    /// Beyond it nobody hears anything.
    farthest_m: f64,
}

/// A unit that is in the air.
#[derive(Debug)]
struct Transmission {
    from: u32,
    life: u32,
    side: u16,
    place: Place,
    slot: SlotId,
    to: To,
    starts: Time,
    ends: Time,
    /// Who sent at the same time.
    over: Vec<Rival>,
}

#[derive(Debug, Clone, Copy)]
struct Rival {
    from: u32,
    place: Place,
    side: u16,
}

/// What became of a unit at one machine.
enum Fate {
    /// It is no receiver: too far, away, or not meant.
    Nothing,
    Heard,
    Lost(Loss),
}

impl Reach {
    pub(super) fn new(plan: &MediumPlan) -> Self {
        let farthest_m = plan.fading.map_or(plan.range_m, |fading| fading.reach_m());
        let senses_m = plan.range_m * SENSES.powf(-plan.exponent.recip());
        Self { range_m: plan.range_m, exponent: plan.exponent, senses_m, farthest_m }
    }

    pub(super) fn farthest_m(&self) -> f64 {
        self.farthest_m
    }

    /// The mean power, where 1 is what is just received.
    fn power(&self, metres: f64) -> f64 {
        (self.range_m / metres.max(NEAREST_M)).powf(self.exponent)
    }
}

/// The chance that a unit arrives over a distance, for what the radio does to it.
pub(super) fn chance(plan: &MediumPlan, metres: f64) -> f64 {
    match plan.fading {
        Some(fading) => fading.arrives(metres),
        None => f64::from(u8::from(metres <= plan.range_m)),
    }
}

/// What a direction of a pair loses beside: the same throughout a run.
pub(super) fn own_loss(plan: &MediumPlan, seed: u64, from: u32, to: u32) -> f64 {
    if plan.asymmetry == 0.0 {
        return 0.0;
    }
    let pair = u64::from(from) << 32 | u64::from(to);
    plan.asymmetry * Random::new(seed, "asymmetry", pair).part()
}

impl Air {
    pub(super) fn new(plan: &MediumPlan, random: Random) -> Self {
        let reach = Reach::new(plan);
        Self {
            reach,
            loss: plan.manners.loss,
            cells: Cells::new(reach.farthest_m),
            transmissions: vec![],
            active: vec![],
            free: vec![],
            random,
        }
    }

    fn active(&self) -> impl Iterator<Item = &Transmission> {
        self.active.iter().filter_map(|at| self.transmissions.get(*at)?.as_ref())
    }

    /// The first and the last moment of what is heard at a place now, if anything is. What began
    /// less than a slot ago nobody can have noticed.
    fn busy(&self, node: u32, body: &Body, now: Time) -> Option<Busy> {
        let heard = self.active().filter(|other| {
            let metres = other.place.metres_to(body.place);
            other.from != node && metres <= self.reach.senses_m && other.starts + DOT11P_SLOT <= now
        });
        heard.fold(None, |busy, other| {
            let Busy { since, until } =
                busy.unwrap_or(Busy { since: other.starts, until: other.ends });
            Some(Busy { since: since.min(other.starts), until: until.max(other.ends) })
        })
    }

    /// Puts a transmission into the air.
    fn begin(&mut self, mut transmission: Transmission) -> usize {
        let own = transmission.rival();
        for at in &self.active {
            let Some(Some(other)) = self.transmissions.get_mut(*at) else { continue };
            // One that ends at this moment is over.
            if other.ends > transmission.starts {
                other.over.push(own);
                transmission.over.push(other.rival());
            }
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.transmissions.push(None);
            self.transmissions.len() - 1
        });
        if let Some(place) = self.transmissions.get_mut(at) {
            *place = Some(transmission);
        }
        self.active.push(at);
        at
    }

    fn take(&mut self, at: usize) -> Option<Transmission> {
        self.active.retain(|other| *other != at);
        let transmission = self.transmissions.get_mut(at)?.take()?;
        self.free.push(at);
        Some(transmission)
    }
}

/// When a channel is busy.
struct Busy {
    since: Time,
    until: Time,
}

impl Run<'_> {
    /// A unit for a shared medium: it waits for the radio.
    pub(super) fn queue_for_air(
        &mut self,
        medium: usize,
        node: u32,
        unit: Waiting,
    ) -> Result<(), SimError> {
        let Some(port) = self.body_mut(node).and_then(|body| body.port_mut(medium)) else {
            self.slots.release(unit.slot);
            return Ok(());
        };
        if !port.queue(unit) {
            self.slots.release(unit.slot);
            return self.watch.loses(self.now, node, Loss::Full);
        }
        self.contend(medium, node);
        Ok(())
    }

    /// Begins to try, if something waits and nothing is under way.
    pub(super) fn contend(&mut self, medium: usize, node: u32) {
        let now = self.now;
        let Some(profile) = self.scenario.media.get(medium).map(|plan| plan.profile) else {
            return;
        };
        let Some(Medium::Air(air)) = self.media.get_mut(medium) else { return };
        let Some(body) = self.bodies.get_mut(node as usize) else { return };
        let is_awake = body.listens.is_some();
        let busy = air.busy(node, body, now);
        let life = body.life;
        let Some(port) = body.port_mut(medium) else { return };
        if !is_awake || port.is_busy || !port.has_waiting() {
            return;
        }
        port.is_busy = true;
        let at = match profile {
            Profile::Dot11p => {
                // A channel that has been free for a while is taken; otherwise the radio waits for
                // its end and counts down a number of chance.
                let from = busy.as_ref().map_or(now, |busy| busy.until);
                let is_free = busy.is_none() && port.heard_until + DOT11P_AIFS <= now;
                let slots = if is_free { 0 } else { air.random.below(DOT11P_WINDOW) };
                port.backoff = Backoff { slots, counts_from: from + DOT11P_AIFS };
                due(port.backoff)
            }
            Profile::BleAdvertising(_) => now + Span(air.random.below(BLE_ADVERTISING_DELAY.0)),
            _ => now,
        };
        self.agenda.put(at, Event::Attempt { medium, node, life });
    }

    /// A radio's turn may have come.
    pub(super) fn attempt(&mut self, medium: usize, node: u32, life: u32) -> Result<(), SimError> {
        let now = self.now;
        if !self.is_alive(node, life) {
            return Ok(());
        }
        let Some(profile) = self.scenario.media.get(medium).map(|plan| plan.profile) else {
            return Ok(());
        };
        let Some(Medium::Air(air)) = self.media.get_mut(medium) else { return Ok(()) };
        let Some(body) = self.bodies.get_mut(node as usize) else { return Ok(()) };
        let busy = air.busy(node, body, now).filter(|_| matches!(profile, Profile::Dot11p));
        let is_awake = body.listens.is_some();
        let Some(port) = body.port_mut(medium) else { return Ok(()) };
        if !is_awake {
            port.is_busy = false;
            return Ok(());
        }
        if let Some(busy) = busy {
            // The slots that passed before it became busy are done; of none that was left, a
            // number of chance.
            let passed = (busy.since - port.backoff.counts_from).0 / DOT11P_SLOT.0;
            let left = port.backoff.slots.saturating_sub(passed);
            let slots = if left > 0 { left } else { air.random.below(DOT11P_WINDOW) };
            port.backoff = Backoff { slots, counts_from: busy.until + DOT11P_AIFS };
            self.agenda.put(due(port.backoff), Event::Attempt { medium, node, life });
            return Ok(());
        }
        self.transmit(medium, node, &profile)
    }

    /// Sends what waits first.
    fn transmit(&mut self, medium: usize, node: u32, profile: &Profile) -> Result<(), SimError> {
        let now = self.now;
        loop {
            let Some(body) = self.bodies.get_mut(node as usize) else { return Ok(()) };
            let Some(index) = body.port_on(medium) else { return Ok(()) };
            let Some(port) = body.ports.get_mut(index) else { return Ok(()) };
            let Some(unit) = port.next() else {
                port.is_busy = false;
                return Ok(());
            };
            let air_time = profile.air_time(self.slots.unit(unit.slot).len());
            if port.duty.as_mut().is_some_and(|duty| !duty.spend(now, air_time)) {
                self.slots.release(unit.slot);
                self.watch.loses(now, node, Loss::Duty)?;
                continue;
            }
            port.sent += air_time;
            body.pays(index, air_time);
            let transmission = Transmission {
                from: node,
                life: body.life,
                side: body.side,
                place: body.place,
                slot: unit.slot,
                to: unit.to,
                starts: now,
                ends: now + air_time,
                over: vec![],
            };
            if let Some(Medium::Air(air)) = self.media.get_mut(medium) {
                let transmission = air.begin(transmission);
                self.agenda.put(now + air_time, Event::End { medium, transmission });
            }
            return Ok(());
        }
    }

    /// A transmission is over: who has it?
    pub(super) fn end(&mut self, medium: usize, transmission: usize) -> Result<(), SimError> {
        let Some(Medium::Air(air)) = self.media.get_mut(medium) else { return Ok(()) };
        let Some(over) = air.take(transmission) else { return Ok(()) };
        let is_whole = self.is_alive(over.from, over.life);
        let sent = self.receivers(medium, &over, is_whole);
        self.watch.sends(self.now, &sent, self.slots.unit(over.slot))?;
        for node in &sent.heard {
            self.hand_over(medium, *node, over.from, over.slot)?;
        }
        self.watch.keep(sent);
        self.slots.release(over.slot);
        if is_whole {
            if let Some(port) = self.body_mut(over.from).and_then(|body| body.port_mut(medium)) {
                port.is_busy = false;
                port.heard_until = port.heard_until.max(over.ends);
            }
            self.contend(medium, over.from);
        }
        Ok(())
    }

    /// Who has heard a transmission, and why the others near have not.
    fn receivers(&mut self, medium: usize, over: &Transmission, is_whole: bool) -> Sent {
        let air_time = over.ends - over.starts;
        let mut sent = self.watch.fresh(over.from, medium as u32, over.starts, air_time);
        let Some(plan) = self.scenario.media.get(medium) else { return sent };
        let Some(Medium::Air(air)) = self.media.get_mut(medium) else { return sent };
        let Air { reach, loss, cells, random, .. } = air;
        for node in cells.around(over.place).filter(|node| *node != over.from) {
            let Some(body) = self.bodies.get_mut(node as usize) else { continue };
            let metres = body.place.metres_to(over.place);
            let is_apart = body.side != over.side || self.cuts.part(over.from, node);
            if metres > reach.farthest_m || is_apart {
                continue;
            }
            if metres <= reach.senses_m
                && body.listens.is_some()
                && let Some(port) = body.port_mut(medium)
            {
                port.hears(over.starts, over.ends);
            }
            if !is_whole || !body.has_listened_since(over.starts) || !over.is_for(node) {
                continue;
            }
            let draws = Draws::new(random, *loss);
            let fate = if draws.fades >= chance(plan, metres) {
                // Far from the range most of what is sent is not heard, which is no loss.
                if metres > reach.range_m { Fate::Nothing } else { Fate::Lost(Loss::Faded) }
            } else if over.over.iter().any(|rival| rival.from == node) {
                Fate::Lost(Loss::Deaf)
            } else if over.is_drowned(reach, body, metres) {
                Fate::Lost(Loss::Collision)
            } else if draws.is_lost || draws.own < own_loss(plan, self.seed, over.from, node) {
                Fate::Lost(Loss::Medium)
            } else {
                Fate::Heard
            };
            match fate {
                Fate::Nothing => {}
                Fate::Heard => sent.heard.push(node),
                Fate::Lost(loss) => sent.loses(loss),
            }
        }
        sent
    }

    /// A unit that was heard comes at once, or later and perhaps twice, as the medium has it.
    pub(super) fn hand_over(
        &mut self,
        medium: usize,
        node: u32,
        from: u32,
        slot: SlotId,
    ) -> Result<(), SimError> {
        let Some(manners) = self.scenario.media.get(medium).map(|plan| plan.manners) else {
            return Ok(());
        };
        let random = match self.media.get_mut(medium) {
            Some(Medium::Air(air)) => &mut air.random,
            Some(Medium::Lines(lines)) => &mut lines.random,
            None => return Ok(()),
        };
        let copies = 1 + u32::from(manners.duplicates > 0.0 && random.happens(manners.duplicates));
        if copies == 1 && manners.delay == Span(0) && manners.jitter == Span(0) {
            return self.arrive(medium, node, from, slot);
        }
        for _ in 0..copies {
            let at = self.now + manners.delay + Span(random.below(manners.jitter.0 + 1));
            self.slots.hold(slot);
            self.agenda.put(at, Event::Arrive { medium, node, from, slot });
        }
        Ok(())
    }
}

/// Drawn in any case, so that what one decides changes nothing for the others.
struct Draws {
    fades: f64,
    is_lost: bool,
    own: f64,
}

impl Draws {
    fn new(random: &mut Random, loss: f64) -> Self {
        Self { fades: random.part(), is_lost: random.happens(loss), own: random.part() }
    }
}

impl Transmission {
    fn rival(&self) -> Rival {
        Rival { from: self.from, place: self.place, side: self.side }
    }

    fn is_for(&self, node: u32) -> bool {
        self.to.is(node)
    }

    /// Whether others were too loud at a machine.
    fn is_drowned(&self, reach: &Reach, body: &Body, metres: f64) -> bool {
        let near = self.over.iter().filter(|rival| rival.side == body.side);
        let others = near.map(|rival| rival.place.metres_to(body.place));
        let others = others.filter(|metres| *metres <= reach.farthest_m);
        others.map(|metres| reach.power(metres)).sum::<f64>() * CAPTURE > reach.power(metres)
    }
}

/// When a radio's slots have passed.
fn due(backoff: Backoff) -> Time {
    backoff.counts_from + Span(backoff.slots * DOT11P_SLOT.0)
}
