//! Media of which every two machines have a link of their own: wires, and connections of Bluetooth.

use std::collections::BTreeMap;

use super::air::{RadioReach, chance, own_loss};
use super::body::{QueuedUnit, SimMachineState};
use super::{SimEvent, SimMedium, SimRun};
use crate::limits::MAX_PORT_WAITING;
use crate::node::SimUnitTarget;
use crate::place::PlaceGrid;
use crate::random::{DrawOdds, DrawPurpose, TransmissionDraws};
use crate::scenario::{LinkImpairments, LinkPlan, MediumPlan, MediumTopology};
use crate::watch::{LossReason, RunEvent};
use crate::{SimError, SimMediumProfile, SimSpan, SimTime};

/// How often a connection sends a packet before it is given up: the packets of about half a second
/// at the usual interval, within the supervision timeout.
const TRIES: u64 = 17;

/// A medium of links.
#[derive(Debug)]
pub(super) struct SimLinkMedium {
    medium: usize,
    shape: MediumTopology,
    /// The machines on the medium, in order.
    on: Vec<u32>,
    /// Those whom a machine has a link with, where the scenario lists them.
    listed: BTreeMap<u32, Vec<u32>>,
    /// The links with settings of their own.
    special: BTreeMap<LinkDirection, LinkPlan>,
    used: BTreeMap<LinkDirection, SimLinkUsage>,
    reach: RadioReach,
    pub(super) cells: PlaceGrid,
    pub(super) loss: f64,
    /// Where the chances of its links come from.
    source: u64,
}

/// The traffic that a link has carried.
#[derive(Debug, Clone, Copy, Default)]
struct SimLinkUsage {
    /// Until when it is taken.
    until: SimTime,
    units: u64,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinkDirection {
    from: u32,
    to: u32,
}

/// How a unit gets over a link.
struct LinkCrossing {
    /// When it is sent, the last time if it was repeated.
    ends: SimTime,
    /// How often it is sent.
    tries: u64,
    /// Why it does not arrive, if it does not.
    lost: Option<LossReason>,
    draws: TransmissionDraws,
}

/// The odds of each packet that is sent over a link.
#[derive(Clone, Copy)]
struct LinkOdds {
    arrives: DrawOdds,
    loss: DrawOdds,
    own_loss: DrawOdds,
}

impl SimLinkMedium {
    pub(super) fn new(
        medium: usize,
        plan: &MediumPlan,
        on: Vec<u32>,
        links: &[LinkPlan],
        source: u64,
    ) -> Self {
        let own = links.iter().filter(|link| link.medium == medium);
        let mut listed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut special = BTreeMap::new();
        for link in own {
            let pair = LinkDirection { from: link.from, to: link.to };
            if special.insert(pair, *link).is_none() {
                listed.entry(link.from).or_default().push(link.to);
            }
        }
        let reach = RadioReach::new(plan);
        Self {
            medium,
            shape: plan.shape,
            on,
            listed,
            special,
            used: BTreeMap::new(),
            reach,
            cells: PlaceGrid::new(reach.farthest_m()),
            loss: plan.manners.loss,
            source,
        }
    }

    /// Whom a machine has a link with: by the shape, and by the list beside.
    fn others(&self, plan: &MediumPlan, from: u32, body: &SimMachineState) -> Vec<u32> {
        let beside = |step: isize| {
            let at = self.on.binary_search(&from).ok()?.checked_add_signed(step)?;
            self.on.get(at).copied()
        };
        let mut others: Vec<u32> = match self.shape {
            MediumTopology::All if plan.profile.is_radio() => {
                self.cells.around(body.place).collect()
            }
            MediumTopology::All => self.on.clone(),
            MediumTopology::Chain => [-1, 1].into_iter().filter_map(beside).collect(),
            MediumTopology::Star => match self.on.first() {
                Some(hub) if *hub == from => self.on.clone(),
                hub => hub.copied().into_iter().collect(),
            },
            MediumTopology::Listed => vec![],
        };
        others.extend(self.listed.get(&from).into_iter().flatten());
        others.sort_unstable();
        others.dedup();
        others.retain(|to| *to != from);
        others
    }

    /// Whether a machine has a link with another one.
    fn has_link(&self, from: u32, to: u32) -> bool {
        let place = |node: u32| self.on.binary_search(&node).ok();
        let (Some(own), Some(other)) = (place(from), place(to)) else { return false };
        let by_shape = match self.shape {
            // A machine that is too far for a radio is found out when a unit is sent.
            MediumTopology::All => true,
            MediumTopology::Chain => own.abs_diff(other) == 1,
            MediumTopology::Star => own == 0 || other == 0,
            MediumTopology::Listed => false,
        };
        own != other
            && (by_shape || self.listed.get(&from).is_some_and(|others| others.contains(&to)))
    }

    /// The impairments of units on a link.
    fn manners(&self, plan: &MediumPlan, pair: LinkDirection) -> LinkImpairments {
        let link = self.special.get(&pair);
        LinkImpairments {
            loss: link.and_then(|link| link.loss).unwrap_or(self.loss),
            delay: link.and_then(|link| link.delay).unwrap_or(plan.manners.delay),
            jitter: link.and_then(|link| link.jitter).unwrap_or(plan.manners.jitter),
            duplicates: plan.manners.duplicates,
        }
    }

    /// Sends over a link, if not too much waits for it.
    fn cross(
        &mut self,
        profile: &SimMediumProfile,
        pair: LinkDirection,
        now: SimTime,
        air_time: SimSpan,
        odd: LinkOdds,
    ) -> Option<LinkCrossing> {
        let used = self.used.entry(pair).or_default();
        let free = used.until;
        // The time until the link is free tells how much waits for it.
        let turn = match profile {
            SimMediumProfile::BleConnection { interval, .. } => *interval,
            _ => air_time,
        };
        if free > now && free - now > SimSpan(turn.0.saturating_mul(MAX_PORT_WAITING as u64)) {
            return None;
        }
        let starts = match profile {
            // A link that is in use goes on; another one waits until its two ends meet.
            SimMediumProfile::BleConnection { interval, .. } if free <= now => {
                let phase = u64::from(pair.from ^ pair.to) * 7919 % interval.0;
                let meets = (now.0.saturating_sub(phase)).div_ceil(interval.0) * interval.0 + phase;
                SimTime(meets.max(now.0))
            }
            _ => free.max(now),
        };
        used.units += 1;
        let number = used.units * (TRIES + 1);
        let draws = |tries: u64| TransmissionDraws::new(self.source, pair.from, number + tries);
        let lost = |tries: u64| odd.loses(draws(tries), pair.to);
        let is_repeated = profile.acknowledges();
        let arrives_at = (0..TRIES).find(|tries| !is_repeated || lost(*tries).is_none());
        let repeats = arrives_at.unwrap_or(TRIES - 1);
        let ends = starts + air_time + SimSpan(turn.0.saturating_mul(repeats));
        used.until = ends;
        let lost = match is_repeated {
            true => arrives_at.is_none().then_some(LossReason::Unanswered),
            false => lost(0),
        };
        Some(LinkCrossing { ends, tries: repeats + 1, lost, draws: draws(TRIES) })
    }
}

impl LinkOdds {
    fn loses(self, draws: TransmissionDraws, to: u32) -> Option<LossReason> {
        if !draws.happens(to, DrawPurpose::Fading, self.arrives) {
            return Some(LossReason::Faded);
        }
        let is_lost = draws.happens(to, DrawPurpose::Medium, self.loss)
            || draws.happens(to, DrawPurpose::Direction, self.own_loss);
        is_lost.then_some(LossReason::Medium)
    }
}

impl SimRun<'_> {
    /// A unit for each link of a machine.
    pub(super) fn send_by_lines(
        &mut self,
        medium: usize,
        node: u32,
        unit: QueuedUnit,
    ) -> Result<(), SimError> {
        let (Some(SimMedium::Lines(lines)), Some(plan)) =
            (self.ether.media.get(medium), self.scenario.media.get(medium))
        else {
            return Ok(());
        };
        let others = match (unit.to, self.body(node)) {
            (SimUnitTarget::One(to), _) if lines.has_link(node, to) => vec![to],
            (SimUnitTarget::Everybody, Some(body)) => lines.others(plan, node, body),
            _ => vec![],
        };
        for to in others {
            self.send_by_line(medium, LinkDirection { from: node, to }, unit)?;
        }
        self.ether.slots.release(unit.slot);
        Ok(())
    }

    fn send_by_line(
        &mut self,
        medium: usize,
        pair: LinkDirection,
        unit: QueuedUnit,
    ) -> Result<(), SimError> {
        let now = self.clock.now;
        let Some(plan) = self.scenario.media.get(medium) else { return Ok(()) };
        let [Some(from), Some(to)] =
            [pair.from, pair.to].map(|node| self.fleet.bodies.get(node as usize))
        else {
            return Ok(());
        };
        let metres = from.place.metres_to(to.place);
        let Some(SimMedium::Lines(lines)) = self.ether.media.get_mut(medium) else { return Ok(()) };
        let is_near = !plan.profile.is_radio() || metres <= lines.reach.farthest_m();
        let is_apart = from.side != to.side || self.ether.cuts.part(pair.from, pair.to);
        if !is_near || is_apart || to.listens.is_none() {
            return Ok(());
        }
        let air_time = plan.profile.air_time(self.ether.slots.unit(unit.slot).len());
        let manners = lines.manners(plan, pair);
        let chance = if plan.profile.is_radio() { chance(plan, metres) } else { 1.0 };
        let odd = LinkOdds {
            arrives: DrawOdds::of(chance),
            loss: DrawOdds::of(manners.loss),
            own_loss: DrawOdds::of(own_loss(plan, self.seed, pair.from, pair.to)),
        };
        let Some(crossing) = lines.cross(&plan.profile, pair, now, air_time, odd) else {
            return self.watch.tells(now, pair.from, RunEvent::Drop(LossReason::Full));
        };
        debug_assert_eq!(lines.medium, medium);
        let air_time = SimSpan(air_time.0.saturating_mul(crossing.tries));
        let mut sent = self.watch.fresh(pair.from, medium as u32, now, air_time);
        match crossing.lost {
            Some(loss) => sent.loses(loss),
            None => sent.heard.push(pair.to),
        }
        for delay in manners.delays(crossing.draws, pair.to).take_while(|_| crossing.lost.is_none())
        {
            self.ether.slots.hold(unit.slot);
            let (node, from, slot) = (pair.to, pair.from, unit.slot);
            let event = SimEvent::Arrive { medium, node, from, slot };
            self.clock.agenda.put(crossing.ends + delay, event);
        }
        self.watch.sends(now, &sent, self.ether.slots.unit(unit.slot))?;
        self.watch.keep(sent);
        if let Some(index) =
            self.fleet.bodies.get(pair.from as usize).and_then(|b| b.port_on(medium))
            && let Some(body) = self.fleet.bodies.get_mut(pair.from as usize)
        {
            body.pays(index, air_time);
            if let Some(port) = body.ports.get_mut(index) {
                port.sent += air_time;
            }
        }
        Ok(())
    }
}
