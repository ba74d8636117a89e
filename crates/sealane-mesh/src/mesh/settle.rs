//! The choice of ways, and the table that follows from it.

use std::sync::Arc;

use sealane_seal::Slot;

use super::Mesh;
use super::requests::{REQUEST_PAUSE, REQUESTS_KEPT};
use crate::interface::NewsCause;
use crate::neighbour::LinkId;
use crate::routes::{RouteChoice, SelectedRoute};
use crate::table::{AddressClaim, MeshRoute, NextHop};
use crate::ways::KnownWay;
use crate::{MeshEvent, MeshOutput};

impl Mesh {
    /// Chooses ways anew, if anything has changed that they rest on.
    pub(super) fn settle(&mut self) {
        let is_renamed = self.routes.take_renamed() | std::mem::take(&mut self.is_renamed);
        let is_whole = std::mem::take(&mut self.is_stale);
        if !is_renamed && !is_whole && self.stale.is_empty() {
            return;
        }
        let news = std::mem::take(&mut self.stale);
        let slots: Vec<_> = match is_whole {
            true => self.restless(),
            false => news.iter().collect(),
        };
        let mut changed = vec![];
        for slot in slots {
            let ways = &self.ways;
            let choice = self.routes.choose(slot, self.now, &|id| ways.get(id));
            let Some(choice) = choice else { continue };
            if is_renamed || self.is_other(slot, choice.now) {
                changed.push(slot);
            }
            let is_followed = self.follow(slot, choice);
            if !is_followed {
                self.routes.rest(slot);
            }
        }
        if is_renamed {
            self.publish_names();
        } else if !changed.is_empty() {
            self.publish(&changed);
        }
    }

    /// The destinations of which a choice may change something, out of all: most rest.
    fn restless(&mut self) -> Vec<Slot> {
        let (neighbours, now) = (&self.neighbours, self.now);
        let ways = neighbours.iter().filter_map(|(id, neighbour)| {
            Some(KnownWay { id: *id, way: Self::way_by(neighbour, now)? })
        });
        let others = self.ways.renew(ways);
        let ways = &self.ways;
        self.routes.restless(now, &others, &|id| ways.get(id))
    }

    /// Does what a choice asks for. Whether that was anything.
    fn follow(&mut self, slot: Slot, choice: RouteChoice) -> bool {
        let via = |one: Option<SelectedRoute>| one.map(|one| one.via);
        let mut is_followed = true;
        match (choice.before, choice.now) {
            (before, Some(now)) if via(before) != Some(now.via) => {
                self.counters.flaps += u64::from(before.is_some());
                let (via, metric) = (now.via.slot, now.metric);
                self.event(MeshEvent::RouteChanged { to: slot, via, metric });
                match before {
                    None => self.news(slot, NewsCause::Changed),
                    Some(before) => _ = self.tell_change(slot, before, now),
                }
            }
            (Some(before), Some(now)) => is_followed = self.tell_change(slot, before, now),
            (Some(_), None) => {
                self.event(MeshEvent::RouteLost { to: slot });
                self.news(slot, NewsCause::Changed);
                self.ask_later(slot, None);
            }
            _ => is_followed = false,
        }
        if choice.starves {
            self.ask_later(slot, None);
            self.starving.insert(slot);
            self.starving_at.get_or_insert(self.now + REQUEST_PAUSE);
        }
        is_followed || choice.starves
    }

    /// Has others told soon of a way that was another one before, if they should know: it is much
    /// longer than they know, or of a sequence for which somebody may wait. Whether they should.
    fn tell_change(&mut self, slot: Slot, before: SelectedRoute, now: SelectedRoute) -> bool {
        let is_worse = self.is_worse(slot, now.metric);
        let is_wanted = before.sequence != now.sequence && self.was_asked(slot);
        if is_worse || is_wanted {
            self.news(slot, NewsCause::Changed);
        }
        is_worse || is_wanted
    }

    /// Whether a later sequence of a destination was asked for lately, here or by others.
    fn was_asked(&self, slot: Slot) -> bool {
        self.requests
            .iter()
            .any(|one| one.request.slot == slot && self.now.since(one.at) < REQUESTS_KEPT)
    }

    /// Whether others know a much shorter distance than it is now. That it is shorter than they
    /// know can wait until all is told.
    fn is_worse(&self, slot: Slot, metric: u16) -> bool {
        self.routes.told(slot).is_none_or(|told| metric > told && is_far(told, metric))
    }

    /// Whether those who read the table have to know of a choice: of small changes of a metric they
    /// need not.
    fn is_other(&self, slot: Slot, now: Option<SelectedRoute>) -> bool {
        match (self.table.route(slot), now) {
            (Some(known), Some(now)) => {
                link(&known.hop) != now.via || is_far(known.metric, now.metric)
            }
            (known, now) => known.is_some() != now.is_some(),
        }
    }

    /// Brings the ways to these machines into the table.
    fn publish(&mut self, slots: &[Slot]) {
        let fresh: Vec<_> = slots.iter().map(|slot| self.route(*slot)).collect();
        let table = Arc::make_mut(&mut self.table);
        for (slot, route) in slots.iter().zip(fresh) {
            let now = route.map(|route| link(&route.hop));
            let before = table.set(*slot, route).map(|route| link(&route.hop));
            now.into_iter().for_each(|hop| self.used.take(hop));
            before.into_iter().for_each(|hop| self.used.leave(hop));
        }
        debug_assert_eq!(self.used.reached(), self.table.reached(), "each by one hop");
        self.neighbours_at = self.now;
        self.outputs.push_back(MeshOutput::Table(Arc::clone(&self.table)));
    }

    /// Brings all into the table, who is a gateway and which addresses live where too.
    fn publish_names(&mut self) {
        let own = self.voice.tags().map(|(by, address)| AddressClaim { address, by });
        let attached = self.routes.iter().flat_map(|(by, destination)| {
            destination.attached.iter().map(move |address| AddressClaim { address: *address, by })
        });
        let claims = own.chain(attached).collect();
        let mut slots: Vec<_> = self.table.routes().map(|route| route.to).collect();
        slots.extend(self.routes.iter().map(|(slot, _)| slot));
        Arc::make_mut(&mut self.table).set_claims(claims);
        self.publish(&slots);
    }

    /// The way to a machine as the table has it.
    fn route(&self, to: Slot) -> Option<MeshRoute> {
        let destination = self.routes.get(to)?;
        let selected = destination.selected?;
        let hop = self.hop(selected.via)?;
        let (is_gateway, metric) = (destination.is_gateway, selected.metric);
        Some(MeshRoute { to, is_gateway, metric, hop, candidates: destination.candidates() as u8 })
    }

    fn hop(&self, via: LinkId) -> Option<NextHop> {
        let neighbour = self.neighbours.get(&via)?;
        let (slot, interface) = (via.slot, via.interface);
        Some(NextHop { slot, tag: neighbour.tag, interface, address: neighbour.address })
    }
}

/// The neighbour of a hop.
fn link(hop: &NextHop) -> LinkId {
    LinkId { interface: hop.interface, slot: hop.slot }
}

/// Whether a metric has changed so much that others should know at once.
fn is_far(before: u16, now: u16) -> bool {
    before.abs_diff(now) > (before / 4).max(crate::neighbour::COST_MIN)
}
