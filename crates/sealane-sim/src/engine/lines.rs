//! Media of which every two machines have a link of their own: wires, and connections of Bluetooth.

use std::collections::BTreeMap;

use super::air::{Reach, chance, own_loss};
use super::body::{Body, Waiting};
use super::{Event, Medium, Run};
use crate::limits::MAX_PORT_WAITING;
use crate::place::Cells;
use crate::scenario::{LinkPlan, Manners, MediumPlan, Shape};
use crate::watch::Loss;
use crate::{Profile, Random, SimError, Span, Time};

/// How often a connection sends a packet again before it is given up: the packets of about half a
/// second at the usual interval, within the supervision timeout.
const MAX_REPEATS: u64 = 16;

/// A medium of links.
#[derive(Debug)]
pub(super) struct Lines {
    medium: usize,
    shape: Shape,
    /// Who is on it, in order.
    on: Vec<u32>,
    /// Those whom a machine has a link with, where the scenario lists them.
    listed: BTreeMap<u32, Vec<u32>>,
    /// What is special about a link.
    special: BTreeMap<Pair, LinkPlan>,
    /// Until when a link is taken.
    taken: BTreeMap<Pair, Time>,
    reach: Reach,
    pub(super) cells: Cells,
    pub(super) loss: f64,
    pub(super) random: Random,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    from: u32,
    to: u32,
}

/// How a unit gets over a link.
struct Crossing {
    /// When it is sent, the last time if it was repeated.
    ends: Time,
    arrives: bool,
}

impl Lines {
    pub(super) fn new(
        medium: usize,
        plan: &MediumPlan,
        on: Vec<u32>,
        links: &[LinkPlan],
        random: Random,
    ) -> Self {
        let own = links.iter().filter(|link| link.medium == medium);
        let mut listed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut special = BTreeMap::new();
        for link in own {
            let pair = Pair { from: link.from, to: link.to };
            if special.insert(pair, *link).is_none() {
                listed.entry(link.from).or_default().push(link.to);
            }
        }
        let reach = Reach::new(plan);
        Self {
            medium,
            shape: plan.shape,
            on,
            listed,
            special,
            taken: BTreeMap::new(),
            reach,
            cells: Cells::new(reach.farthest_m()),
            loss: plan.manners.loss,
            random,
        }
    }

    /// Whom a machine has a link with: by the shape, and by the list beside.
    fn others(&self, plan: &MediumPlan, from: u32, body: &Body) -> Vec<u32> {
        let beside = |step: isize| {
            let at = self.on.binary_search(&from).ok()?.checked_add_signed(step)?;
            self.on.get(at).copied()
        };
        let mut others: Vec<u32> = match self.shape {
            Shape::All if plan.profile.is_radio() => self.cells.around(body.place).collect(),
            Shape::All => self.on.clone(),
            Shape::Chain => [-1, 1].into_iter().filter_map(beside).collect(),
            Shape::Star => match self.on.first() {
                Some(hub) if *hub == from => self.on.clone(),
                hub => hub.copied().into_iter().collect(),
            },
            Shape::Listed => vec![],
        };
        others.extend(self.listed.get(&from).into_iter().flatten());
        others.sort_unstable();
        others.dedup();
        others.retain(|to| *to != from);
        others
    }

    /// What befalls units on a link.
    fn manners(&self, plan: &MediumPlan, pair: Pair) -> Manners {
        let link = self.special.get(&pair);
        Manners {
            loss: link.and_then(|link| link.loss).unwrap_or(self.loss),
            delay: link.and_then(|link| link.delay).unwrap_or(plan.manners.delay),
            jitter: link.and_then(|link| link.jitter).unwrap_or(plan.manners.jitter),
            duplicates: plan.manners.duplicates,
        }
    }

    /// Sends over a link, if not too much waits for it.
    fn cross(
        &mut self,
        plan: &MediumPlan,
        pair: Pair,
        now: Time,
        air_time: Span,
        chance: f64,
    ) -> Option<Crossing> {
        let free = self.taken.get(&pair).copied().unwrap_or_default();
        // What waits is told by when the link will be free.
        let turn = match plan.profile {
            Profile::BleConnection { interval, .. } => interval,
            _ => air_time,
        };
        if free > now && free - now > Span(turn.0.saturating_mul(MAX_PORT_WAITING as u64)) {
            return None;
        }
        let starts = match plan.profile {
            // A link that is in use goes on; another one waits until its two ends meet.
            Profile::BleConnection { interval, .. } if free <= now => {
                let phase = u64::from(pair.from ^ pair.to) * 7919 % interval.0;
                let meets = (now.0.saturating_sub(phase)).div_ceil(interval.0) * interval.0 + phase;
                Time(meets.max(now.0))
            }
            _ => free.max(now),
        };
        let mut repeats = 0;
        if let Profile::BleConnection { interval, .. } = plan.profile {
            while repeats <= MAX_REPEATS && !self.random.happens(chance) {
                repeats += 1;
            }
            let ends = starts + air_time + Span(interval.0 * repeats.min(MAX_REPEATS));
            self.taken.insert(pair, ends);
            return Some(Crossing { ends, arrives: repeats <= MAX_REPEATS });
        }
        let ends = starts + air_time;
        self.taken.insert(pair, ends);
        Some(Crossing { ends, arrives: true })
    }
}

impl Run<'_> {
    /// A unit for each link of a machine.
    pub(super) fn send_by_lines(
        &mut self,
        medium: usize,
        node: u32,
        unit: Waiting,
    ) -> Result<(), SimError> {
        let others = match (self.media.get(medium), self.scenario.media.get(medium)) {
            (Some(Medium::Lines(lines)), Some(plan)) => {
                self.body(node).map(|body| lines.others(plan, node, body)).unwrap_or_default()
            }
            _ => vec![],
        };
        for to in others.into_iter().filter(|to| unit.to.is(*to)) {
            self.send_by_line(medium, Pair { from: node, to }, unit)?;
        }
        self.slots.release(unit.slot);
        Ok(())
    }

    fn send_by_line(&mut self, medium: usize, pair: Pair, unit: Waiting) -> Result<(), SimError> {
        let now = self.now;
        let Some(plan) = self.scenario.media.get(medium) else { return Ok(()) };
        let [Some(from), Some(to)] =
            [pair.from, pair.to].map(|node| self.bodies.get(node as usize))
        else {
            return Ok(());
        };
        let metres = from.place.metres_to(to.place);
        let Some(Medium::Lines(lines)) = self.media.get_mut(medium) else { return Ok(()) };
        let is_near = !plan.profile.is_radio() || metres <= lines.reach.farthest_m();
        let is_apart = from.side != to.side || self.cuts.part(pair.from, pair.to);
        if !is_near || is_apart || to.listens.is_none() {
            return Ok(());
        }
        let air_time = plan.profile.air_time(self.slots.unit(unit.slot).len());
        let chance = if plan.profile.is_radio() { chance(plan, metres) } else { 1.0 };
        let Some(crossing) = lines.cross(plan, pair, now, air_time, chance) else {
            return self.watch.loses(now, pair.from, Loss::Full);
        };
        debug_assert_eq!(lines.medium, medium);
        let manners = lines.manners(plan, pair);
        let own_loss = own_loss(plan, self.seed, pair.from, pair.to);
        let is_lost = lines.random.happens(manners.loss) | (lines.random.part() < own_loss);
        let mut sent = self.watch.fresh(pair.from, medium as u32, now, air_time);
        if !crossing.arrives {
            sent.loses(Loss::Faded);
        } else if is_lost {
            sent.loses(Loss::Medium);
        } else {
            sent.heard.push(pair.to);
            let copies = 1 + u32::from(lines.random.happens(manners.duplicates));
            for _ in 0..copies {
                let jitter = Span(lines.random.below(manners.jitter.0 + 1));
                let at = crossing.ends + manners.delay + jitter;
                self.slots.hold(unit.slot);
                let (node, from, slot) = (pair.to, pair.from, unit.slot);
                self.agenda.put(at, Event::Arrive { medium, node, from, slot });
            }
        }
        self.watch.sends(now, &sent, self.slots.unit(unit.slot))?;
        self.watch.keep(sent);
        if let Some(index) = self.bodies.get(pair.from as usize).and_then(|b| b.port_on(medium))
            && let Some(body) = self.bodies.get_mut(pair.from as usize)
        {
            body.pays(index, air_time);
            if let Some(port) = body.ports.get_mut(index) {
                port.sent += air_time;
            }
        }
        Ok(())
    }
}
