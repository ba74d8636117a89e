//! The choice of ways, and the table that follows from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealane_seal::Slot;

use super::Mesh;
use crate::neighbour::LinkId;
use crate::routes::{Choice, Selected};
use crate::table::{Hop, Route};
use crate::{Event, Output, Table};

impl Mesh {
    /// Chooses ways anew, if anything has changed that they rest on.
    pub(super) fn settle(&mut self) {
        let news = std::mem::take(&mut self.stale);
        let slots: Vec<_> = match std::mem::take(&mut self.is_stale) {
            true => self.routes.iter().map(|(slot, _)| slot).collect(),
            false => news.into_iter().collect(),
        };
        let mut has_changed = self.routes.take_renamed();
        for slot in slots {
            let (neighbours, now) = (&self.neighbours, self.now);
            let way = |id| Self::way(neighbours, now, id);
            let Some(choice) = self.routes.choose(slot, now, &way) else { continue };
            has_changed |= is_other(choice);
            self.follow(slot, choice);
        }
        if has_changed {
            self.publish();
        }
    }

    /// Does what a choice asks for.
    fn follow(&mut self, slot: Slot, choice: Choice) {
        let via = |one: Option<Selected>| one.map(|one| one.via);
        match (choice.before, choice.now) {
            (before, Some(now)) if via(before) != Some(now.via) => {
                self.counters.flaps += u64::from(before.is_some());
                let (via, metric) = (now.via.slot, now.metric);
                self.event(Event::RouteChanged { to: slot, via, metric });
                self.news(slot);
            }
            (Some(before), Some(now)) if is_far(before.metric, now.metric) => self.news(slot),
            // Others may wait for it.
            (Some(before), Some(now))
                if before.sequence != now.sequence && self.was_asked(slot) =>
            {
                self.news(slot);
            }
            (Some(_), None) => {
                self.event(Event::RouteLost { to: slot });
                self.news(slot);
                self.ask_later(slot, None);
            }
            _ => {}
        }
        if choice.starves {
            self.ask_later(slot, None);
        }
    }

    /// Whether a later sequence of a destination was asked for lately, here or by others.
    fn was_asked(&self, slot: Slot) -> bool {
        self.requests.iter().any(|(request, at)| {
            request.slot == slot && self.now.since(*at) < crate::Span::seconds(2)
        })
    }

    /// Makes the table anew.
    fn publish(&mut self) {
        let mut table = Table::default();
        let mut used = BTreeSet::new();
        for (slot, destination) in self.routes.iter() {
            let Some(selected) = destination.selected else { continue };
            let Some(hop) = self.hop(selected.via) else { continue };
            used.insert(selected.via);
            let (is_gateway, metric) = (destination.is_gateway, selected.metric);
            let candidates = destination.candidates() as u8;
            let route = Route { to: slot, is_gateway, metric, hop, candidates };
            let own = self.voice.tag_of(slot).into_iter();
            table.insert(route, own.chain(destination.attached.iter().copied()));
        }
        self.used = used;
        self.table = Arc::new(table);
        self.outputs.push_back(Output::Table(Arc::clone(&self.table)));
    }

    fn hop(&self, via: LinkId) -> Option<Hop> {
        let neighbour = self.neighbours.get(&via)?;
        let (slot, interface) = (via.slot, via.interface);
        Some(Hop { slot, tag: neighbour.tag, interface, address: neighbour.address })
    }
}

/// Whether those who read the table have to know of a choice: of small changes of a metric they
/// need not.
fn is_other(choice: Choice) -> bool {
    match (choice.before, choice.now) {
        (Some(before), Some(now)) => before.via != now.via || is_far(before.metric, now.metric),
        (before, now) => before.is_some() != now.is_some(),
    }
}

/// Whether a metric has changed so much that others should know at once.
fn is_far(before: u16, now: u16) -> bool {
    before.abs_diff(now) > (before / 4).max(crate::neighbour::COST_MIN)
}
