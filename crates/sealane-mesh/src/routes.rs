//! Routes without loops: the feasibility condition and the requests of RFC 8966, where each
//! destination is one machine and its slot is the router id.

use sealane_frame::PeerTag;
use sealane_seal::Slot;

use crate::candidates::RouteCandidates;
use crate::hello::{INFINITE, RouteDistance};
use crate::interface::WHOLE_HELLOS;
use crate::limits::{MAX_ATTACHED_TOTAL, MAX_CANDIDATES, MAX_SEQUENCE_AHEAD};
use crate::messages::AdvertisedRoute;
use crate::neighbour::{LinkId, NeighbourBlame};
use crate::slots::BySlot;
use crate::{MeshSpan, MeshTime};

/// The known routes to all machines.
#[derive(Debug, Default)]
pub(crate) struct MeshRoutes {
    destinations: BySlot<RouteDestination>,
    attached: usize,
    /// Addresses, or who is a gateway, have changed since that was asked last.
    is_renamed: bool,
    /// The longest hello interval: how seldom others are told.
    interval: MeshSpan,
}

/// The known routes to one machine.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct RouteDestination {
    /// The shortest distance that was ever told to others, of the latest sequence.
    feasible: Option<FeasibleDistance>,
    candidates: RouteCandidates<RouteCandidate>,
    pub(crate) selected: Option<SelectedRoute>,
    /// Another way is better since then.
    better: Option<BetterRoute>,
    pub(crate) is_gateway: bool,
    pub(crate) attached: Vec<PeerTag>,
    /// When a later sequence was asked for last.
    asked: Option<MeshTime>,
    /// A sequence that others have asked for again.
    wanted: Option<SequenceWanted>,
    /// The sequence of the last route, and when it was lost.
    lost: Option<(u16, MeshTime)>,
    found_at: MeshTime,
    told_at: MeshTime,
    /// The metric that others know, if it was told since the way was found.
    told: Option<u16>,
    /// Until then a choice changes nothing, as long as the ways stay what they are.
    rests_until: MeshTime,
}

/// A sequence and a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FeasibleDistance {
    sequence: u16,
    metric: u16,
}

/// The route that one neighbour told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RouteCandidate {
    via: LinkId,
    sequence: u16,
    metric: u16,
    until: MeshTime,
}

/// The way that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectedRoute {
    pub(crate) via: LinkId,
    pub(crate) sequence: u16,
    /// From here on, the hop to the neighbour too.
    pub(crate) metric: u16,
    blame: NeighbourBlame,
    is_anew: bool,
}

impl SelectedRoute {
    /// The best way has the least.
    fn rank(&self) -> (NeighbourBlame, u16, LinkId) {
        (self.blame, self.metric, self.via)
    }
}

/// A way, as a choice sees it.
#[derive(Debug, Clone, Copy)]
struct WeighedRoute {
    way: SelectedRoute,
    /// How long another one has to be better.
    patience: MeshSpan,
    is_feasible: bool,
}

/// A sequence that somebody asks for again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SequenceWanted {
    sequence: u16,
    until: MeshTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BetterRoute {
    via: LinkId,
    since: MeshTime,
}

/// The machine's knowledge of a neighbour, as a choice needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeighbourLink {
    pub(crate) cost: u16,
    pub(crate) blame: NeighbourBlame,
    /// That was just now.
    pub(crate) is_anew: bool,
    /// How long another way has to be better than this one: some hello intervals.
    pub(crate) patience: MeshSpan,
}

/// The result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateResult {
    /// It counts.
    Taken,
    /// It says what was known: nothing follows from it.
    Known,
    /// It may be a loop: a route of a later sequence is wanted.
    Unfeasible,
}

/// The change that a choice has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteChoice {
    pub(crate) before: Option<SelectedRoute>,
    pub(crate) now: Option<SelectedRoute>,
    /// There are ways, but none that is surely without a loop; or the last was lost, or blamed,
    /// just now.
    pub(crate) starves: bool,
}

/// Hello intervals for which a route holds that is not told again.
pub(crate) const ROUTE_INTERVALS: u64 = 5 * WHOLE_HELLOS + 4;
/// A route is told as lost for so long, and at least once with all others.
const LOST: MeshSpan = MeshSpan::seconds(30);
const LOST_INTERVALS: u64 = WHOLE_HELLOS + 1;
/// A route that was lost is asked for again and again for so long.
const MISSED: MeshSpan = MeshSpan::seconds(4);
/// The feasible distance of a destination is remembered for so long: RFC 8966, appendix B. It is
/// kept at least for as long as others hold a route by this machine that it has told.
const REMEMBERED: MeshSpan = MeshSpan::seconds(180);
const REMEMBERED_INTERVALS: u64 = ROUTE_INTERVALS + 4;

/// Of the destinations that rest one of so many is looked at, where assertions are.
const LOOKED_AT: u64 = 16;

/// Whether a sequence is later than another one.
pub(crate) fn is_later(sequence: u16, than: u16) -> bool {
    let ahead = sequence.wrapping_sub(than);
    ahead != 0 && ahead < 1 << 15
}

impl RouteDestination {
    /// RFC 8966, section 3.5.1: shorter than all that was ever told, or of a later sequence.
    fn is_feasible(&self, sequence: u16, metric: u16) -> bool {
        self.feasible.is_none_or(|told| {
            let ahead = sequence.wrapping_sub(told.sequence);
            (1..=MAX_SEQUENCE_AHEAD).contains(&ahead) || ahead == 0 && metric < told.metric
        })
    }

    /// The sequence of which any route would be feasible.
    pub(crate) fn wanted(&self) -> u16 {
        let lost = self.lost.map(|(sequence, _)| sequence);
        let told = self.feasible.map(|told| told.sequence);
        told.or(lost).map_or(0, |sequence| sequence.wrapping_add(1))
    }

    /// Whether a later sequence may be asked for again.
    pub(crate) fn may_ask(&mut self, now: MeshTime, pause: MeshSpan) -> bool {
        let may = self.asked.is_none_or(|asked| now.since(asked) >= pause);
        if may {
            self.asked = Some(now);
        }
        may
    }

    pub(crate) fn candidates(&self) -> usize {
        self.candidates.len()
    }

    /// The ways that are known: the neighbour, and how far it told to be.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (LinkId, u16)> + '_ {
        self.candidates.iter().map(|one| (one.via, one.metric))
    }

    fn hear(&mut self, via: LinkId, distance: RouteDistance, until: MeshTime) -> UpdateResult {
        let RouteDistance { sequence, metric, .. } = distance;
        let known = self.candidates.iter().position(|one| one.via == via);
        if metric == INFINITE {
            self.rests_until = MeshTime(0);
            self.candidates.retain(|one| one.via != via);
            return if known.is_some() { UpdateResult::Taken } else { UpdateResult::Known };
        }
        let fresh = RouteCandidate { via, sequence, metric, until };
        let is_feasible = self.is_feasible(sequence, metric);
        let is_selected = self.selected.is_some_and(|selected| selected.via == via);
        if !is_feasible && is_selected {
            // The neighbour's earlier route stays true for the question of loops.
            let told = known.and_then(|at| self.candidates.get_mut(at));
            told.into_iter().for_each(|candidate| candidate.until = until);
            self.rests_until = self.rests_until.min(until);
            return UpdateResult::Unfeasible;
        }
        match known.and_then(|at| self.candidates.get_mut(at)) {
            Some(candidate) if (candidate.sequence, candidate.metric) == (sequence, metric) => {
                candidate.until = until;
                self.rests_until = self.rests_until.min(until);
                if is_feasible {
                    return UpdateResult::Known;
                }
            }
            Some(candidate) => {
                *candidate = fresh;
                self.rests_until = MeshTime(0);
            }
            None => {
                let is_kept = self.candidates.push(fresh) || self.replace_worst(fresh);
                if !is_kept && (is_feasible || self.selected.is_some()) {
                    // There are better ways enough.
                    return UpdateResult::Known;
                }
                self.rests_until = MeshTime(0);
            }
        }
        match is_feasible || self.selected.is_some() {
            true => UpdateResult::Taken,
            false => UpdateResult::Unfeasible,
        }
    }

    /// Takes a way in place of the worst of the others, if that is worse. Whether it did.
    fn replace_worst(&mut self, fresh: RouteCandidate) -> bool {
        let selected = self.selected.map(|selected| selected.via);
        let rank = |one: &RouteCandidate| (self.is_feasible(one.sequence, one.metric), one.metric);
        let worse = |one: &RouteCandidate| {
            let (feasible, metric) = rank(one);
            (!feasible, metric)
        };
        let others = self.candidates.iter().enumerate();
        let others = others.filter(|(_, one)| Some(one.via) != selected);
        let worst = others.max_by_key(|(_, one)| worse(one)).map(|(at, one)| (at, worse(one)));
        let Some((at, _)) = worst.filter(|(_, worst)| worse(&fresh) < *worst) else { return false };
        let place = self.candidates.get_mut(at);
        place.map(|place| *place = fresh).is_some()
    }

    /// Has a way of that sequence taken at once if there is one: it was asked for again.
    pub(crate) fn want(&mut self, sequence: u16, until: MeshTime) {
        self.wanted = Some(SequenceWanted { sequence, until });
        self.rests_until = MeshTime(0);
    }

    /// Chooses a way. The one in use stays unless it is lost, or another is clearly better for a
    /// while.
    fn choose(
        &mut self,
        now: MeshTime,
        way: &impl Fn(LinkId) -> Option<NeighbourLink>,
    ) -> RouteChoice {
        self.rests_until = MeshTime(0);
        self.candidates.retain(|one| now < one.until);
        let mut ways = [None; MAX_CANDIDATES];
        for (place, one) in ways.iter_mut().zip(self.candidates.iter()) {
            *place = self.weigh(one, way);
        }
        let usable = || ways.iter().flatten().filter(|one| one.is_feasible);
        let best = usable().min_by_key(|one| one.way.rank()).map(|one| one.way);
        let before = self.selected;
        let current =
            before.and_then(|before| usable().find(|one| one.way.via == before.via)).copied();
        let chosen = match (current, best) {
            (Some(current), Some(best)) => Some(self.stay_or_go(now, current, best, &ways)),
            (_, best) => best,
        };
        self.select(now, chosen);
        let is_missed = self.lost.is_some_and(|(_, at)| now.since(at) < MISSED);
        let has_none = chosen.is_none() && (is_missed || ways.iter().any(Option::is_some));
        let starves = has_none || chosen.is_some_and(|one| one.is_anew);
        RouteChoice { before, now: chosen, starves }
    }

    fn stay_or_go(
        &mut self,
        now: MeshTime,
        current: WeighedRoute,
        best: SelectedRoute,
        ways: &[Option<WeighedRoute>],
    ) -> SelectedRoute {
        let WeighedRoute { way: current, patience, .. } = current;
        if best.blame < current.blame {
            return best;
        }
        if let Some(wanted) = self.wanted_way(now, current, ways) {
            return wanted;
        }
        let is_clear =
            |one: SelectedRoute| one.metric.saturating_add(margin(current.metric)) < current.metric;
        if best.via != current.via && is_clear(best) {
            return if self.is_better_long(now, best.via, patience) { best } else { current };
        }
        // One that is not feasible until it is told with the latest sequence is better too.
        let waits = |better: BetterRoute| {
            let mut others = ways.iter().flatten().filter(|one| one.way.via == better.via);
            others.any(|one| !one.is_feasible && is_clear(one.way))
        };
        self.better = self.better.filter(|better| waits(*better));
        current
    }

    /// The best way of the sequence that was asked for again, if the one in use is of an earlier
    /// one.
    fn wanted_way(
        &self,
        now: MeshTime,
        current: SelectedRoute,
        ways: &[Option<WeighedRoute>],
    ) -> Option<SelectedRoute> {
        let wanted = self.wanted.filter(|wanted| now < wanted.until)?;
        let is_it = |one: &SelectedRoute| !is_later(wanted.sequence, one.sequence);
        let others = ways.iter().flatten().filter(|one| one.is_feasible).map(|one| one.way);
        let others = others.filter(|one| is_it(one) && one.blame <= current.blame);
        others.min_by_key(SelectedRoute::rank).filter(|_| !is_it(&current))
    }

    /// The metric of a way, with the hop to the neighbour.
    fn weigh(
        &self,
        one: &RouteCandidate,
        way: &impl Fn(LinkId) -> Option<NeighbourLink>,
    ) -> Option<WeighedRoute> {
        let way = way(one.via)?;
        let metric = one.metric.checked_add(way.cost).filter(|metric| *metric < INFINITE)?;
        let is_feasible = self.is_feasible(one.sequence, one.metric);
        let (via, sequence) = (one.via, one.sequence);
        let NeighbourLink { blame, is_anew, patience, .. } = way;
        let way = SelectedRoute { via, sequence, metric, blame, is_anew };
        Some(WeighedRoute { way, patience, is_feasible })
    }

    /// Whether one way has been the better one for as long as that.
    fn is_better_long(&mut self, now: MeshTime, via: LinkId, patience: MeshSpan) -> bool {
        match self.better {
            Some(better) if better.via == via => {
                // The first way that was found is seldom the best.
                let is_young = better.since.since(self.found_at) < patience.part(4);
                let patience = if is_young { patience.part(8) } else { patience };
                now.since(better.since) >= patience
            }
            _ => {
                self.better = Some(BetterRoute { via, since: now });
                false
            }
        }
    }

    fn select(&mut self, now: MeshTime, chosen: Option<SelectedRoute>) {
        match (self.selected, chosen) {
            (Some(before), None) => {
                self.lost = Some((before.sequence, now));
                self.told = None;
            }
            (None, Some(_)) => (self.lost, self.found_at) = (None, now),
            _ => {}
        }
        if self.selected.map(|one| one.via) != chosen.map(|one| one.via) {
            self.better = None;
        }
        self.selected = chosen;
    }

    /// The distance to tell others. What is told is remembered, so that nothing longer is taken.
    fn tell(&mut self, slot: Slot, now: MeshTime, interval: MeshSpan) -> Option<RouteDistance> {
        let Some(selected) = self.selected else {
            let (sequence, at) = self.lost?;
            let is_fresh = now.since(at) < LOST.max(interval.times(LOST_INTERVALS));
            return is_fresh.then_some(RouteDistance { slot, sequence, metric: INFINITE });
        };
        let SelectedRoute { sequence, metric, is_anew, .. } = selected;
        if is_anew {
            // Another way is looked for. Were this one told with a later sequence, the others of
            // that sequence would not be feasible.
            return None;
        }
        if self.is_feasible(sequence, metric) {
            self.feasible = Some(FeasibleDistance { sequence, metric });
            self.rests_until = MeshTime(0);
        }
        self.told_at = now;
        self.told = Some(metric);
        Some(RouteDistance { slot, sequence, metric })
    }

    /// Notes that nothing has followed from the choice that was just made: nothing does until a way
    /// runs out, or is another one. Whoever waits for a better way to stay so does not rest.
    fn rest(&mut self) {
        let runs_out = self.candidates.iter().map(|one| one.until).min();
        if self.better.is_none() {
            self.rests_until = runs_out.unwrap_or(MeshTime(u64::MAX));
        }
    }

    /// Whether a choice would leave all as it is.
    fn is_same_chosen_again(
        &self,
        now: MeshTime,
        way: &impl Fn(LinkId) -> Option<NeighbourLink>,
    ) -> bool {
        let mut again = self.clone();
        let choice = again.choose(now, way);
        again.rests_until = self.rests_until;
        again == *self && choice.before == choice.now && !choice.starves
    }

    /// Whether a choice would change nothing, now that the ways by some neighbours are others.
    fn rests(&self, now: MeshTime, others: &[LinkId]) -> bool {
        let is_by = |one: &RouteCandidate| others.contains(&one.via);
        now < self.rests_until && !self.candidates.iter().any(is_by)
    }

    fn is_forgotten(&self, now: MeshTime, interval: MeshSpan) -> bool {
        let is_used = self.selected.is_some() || !self.candidates.is_empty();
        let lost = self.lost.map_or(self.told_at, |(_, at)| at.max(self.told_at));
        !is_used && now.since(lost) >= REMEMBERED.max(interval.times(REMEMBERED_INTERVALS))
    }
}

impl MeshRoutes {
    /// Takes what a neighbour tells of a destination that is not this machine.
    pub(crate) fn hear(
        &mut self,
        via: LinkId,
        told: &AdvertisedRoute,
        until: MeshTime,
    ) -> UpdateResult {
        let slot = told.distance.slot;
        let is_lost = told.distance.metric == INFINITE;
        if !is_lost && self.destinations.get(slot).is_none() {
            self.destinations.insert(slot, RouteDestination::default());
        }
        let Some(destination) = self.destinations.get_mut(slot) else { return UpdateResult::Known };
        let heard = destination.hear(via, told.distance, until);
        let is_its = destination.selected.is_none_or(|selected| selected.via == via);
        if !is_lost && is_its {
            self.is_renamed |= destination.is_gateway != told.is_gateway;
            destination.is_gateway = told.is_gateway;
            if let Some(tags) = &told.attached {
                let others = self.attached - destination.attached.len();
                if others + tags.len() <= MAX_ATTACHED_TOTAL {
                    self.attached = others + tags.len();
                    self.is_renamed |= destination.attached != *tags;
                    destination.attached.clone_from(tags);
                }
            }
        }
        heard
    }

    /// Takes how seldom this machine says hello.
    pub(crate) fn pace(&mut self, interval: MeshSpan) {
        self.interval = interval;
    }

    /// Whether addresses, or who is a gateway, have changed since the last call.
    pub(crate) fn take_renamed(&mut self) -> bool {
        std::mem::take(&mut self.is_renamed)
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&RouteDestination> {
        self.destinations.get(slot)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut RouteDestination> {
        self.destinations.get_mut(slot)
    }

    /// How many destinations are known.
    pub(crate) fn len(&self) -> usize {
        self.destinations.len()
    }

    /// The metric that others know of a destination in use, if they know one.
    pub(crate) fn told(&self, slot: Slot) -> Option<u16> {
        self.destinations.get(slot)?.told
    }

    /// All destinations, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &RouteDestination)> {
        self.destinations.iter()
    }

    /// Chooses a way to a destination.
    pub(crate) fn choose(
        &mut self,
        slot: Slot,
        now: MeshTime,
        way: &impl Fn(LinkId) -> Option<NeighbourLink>,
    ) -> Option<RouteChoice> {
        self.destinations.get_mut(slot).map(|destination| destination.choose(now, way))
    }

    /// The destinations of which a choice may change something, now that the ways by some
    /// neighbours are others.
    pub(crate) fn restless(
        &self,
        now: MeshTime,
        others: &[LinkId],
        way: &impl Fn(LinkId) -> Option<NeighbourLink>,
    ) -> Vec<Slot> {
        let mut restless = vec![];
        for (slot, one) in self.destinations.iter() {
            if !one.rests(now, others) {
                restless.push(slot);
                continue;
            }
            // Some are looked at all the same, others each time: to look at all takes too long.
            let is_looked_at = now.0 % LOOKED_AT == u64::from(slot.number()) % LOOKED_AT;
            debug_assert!(!is_looked_at || one.is_same_chosen_again(now, way), "{one:?}");
        }
        restless
    }

    /// Notes that nothing has followed from the choice of a way to a destination.
    pub(crate) fn rest(&mut self, slot: Slot) {
        if let Some(destination) = self.destinations.get_mut(slot) {
            destination.rest();
        }
    }

    /// The route that is told of a destination.
    pub(crate) fn tell(
        &mut self,
        slot: Slot,
        now: MeshTime,
        with_tags: bool,
    ) -> Option<AdvertisedRoute> {
        let destination = self.destinations.get_mut(slot)?;
        let distance = destination.tell(slot, now, self.interval)?;
        let has_tags = with_tags && distance.metric < INFINITE;
        let attached = has_tags.then(|| destination.attached.clone());
        let attached = attached.filter(|tags| !tags.is_empty());
        Some(AdvertisedRoute { distance, is_gateway: destination.is_gateway, attached })
    }

    /// Forgets all that a neighbour told.
    pub(crate) fn forget(&mut self, via: LinkId) {
        for destination in self.destinations.values_mut() {
            destination.candidates.retain(|one| one.via != via);
            destination.rests_until = MeshTime(0);
        }
    }

    /// Forgets the destinations of which nothing was known for long, and those that are no members
    /// any more.
    pub(crate) fn sweep(&mut self, now: MeshTime, is_member: impl Fn(Slot) -> bool) {
        let interval = self.interval;
        self.destinations.retain(|slot, one| is_member(slot) && !one.is_forgotten(now, interval));
        let attached = self.destinations.iter().map(|(_, one)| one.attached.len()).sum();
        self.is_renamed |= attached != self.attached;
        self.attached = attached;
    }
}

/// By how much another way has to be better than one in use of that metric, to be taken instead:
/// `spec/mesh.md`, *Routes*.
pub fn margin(metric: u16) -> u16 {
    (metric / 8 * 3).max(crate::neighbour::COST_MIN / 2)
}

#[cfg(test)]
mod tests;
