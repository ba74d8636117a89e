//! Requests for routes of a later sequence, and what a machine does when it hears one.

use sealane_frame::limits::MAX_HOP_LIMIT;
use sealane_seal::Slot;

use super::Mesh;
use crate::hello::INFINITE;
use crate::interface::{NewsCause, RequestWaiting};
use crate::limits::MAX_REQUESTS_KNOWN;
use crate::messages::AdvertisedRoute;
use crate::neighbour::{LinkId, MeshNeighbour};
use crate::routes::is_later;
use crate::{MachineRole, MeshSpan, MeshTime, RouteDistance, RouteRequest};

/// A request that was heard, and perhaps passed on or made here.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownRequest {
    pub(super) request: RouteRequest,
    pub(super) at: MeshTime,
    /// It was passed on, or made here.
    is_passed: bool,
}

/// The senders of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestAsker {
    Alone,
    /// Others near pass on the same.
    OneOfMany,
}

impl Mesh {
    /// Takes what sequence of the own routes somebody knows. A later one is of a time before this
    /// machine started: nobody would take what it tells now.
    pub(super) fn hear_own(&mut self, sequence: u16) {
        if is_later(sequence, self.own_sequence) {
            self.want_own(sequence.wrapping_add(1));
        }
    }

    /// Has the own routes told soon, with that sequence or a later one.
    fn want_own(&mut self, sequence: u16) {
        let wanted = self.own_wanted.unwrap_or(self.own_sequence);
        if self.config.role != MachineRole::Quiet {
            self.own_wanted = Some(if is_later(sequence, wanted) { sequence } else { wanted });
        }
    }

    /// Asks for a route of a later sequence: one neighbour, or all.
    pub(super) fn ask_later(&mut self, slot: Slot, of: Option<LinkId>) {
        let Some(destination) = self.routes.get_mut(slot) else { return };
        if !destination.may_ask(self.now, REQUEST_PAUSE) {
            return;
        }
        let sequence = destination.wanted();
        // A machine without a way says so by the hops: see `hear_lost`.
        let hops = MAX_HOP_LIMIT - u8::from(destination.selected.is_some());
        self.request(RouteRequest { slot, sequence, hops, to: None }, of, RequestAsker::Alone);
    }

    /// Asks one neighbour, or all, for all routes: by a request for the own slot.
    pub(super) fn ask_all(&mut self, of: Option<LinkId>) {
        let (slot, sequence) = (self.voice.slot(), 0);
        self.request(RouteRequest { slot, sequence, hops: 0, to: None }, of, RequestAsker::Alone);
    }

    /// Asks a neighbour for all routes if it has not told them, and again until it has.
    pub(super) fn ask_lacking(&mut self, id: LinkId) {
        let may_insist = self.interfaces.get(&id.interface).is_some_and(|one| one.may_insist());
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        if !neighbour.lacks_routes(self.has_asked && may_insist) {
            return;
        }
        let pause = if may_insist { REQUEST_PAUSE } else { neighbour.hello.interval.times(2) };
        if neighbour.routes.may_ask_all(self.now, neighbour.hello.interval, pause) {
            self.ask_all(Some(id));
        }
        if may_insist {
            self.lacking.insert(id);
            self.starving_at.get_or_insert(self.now + REQUEST_PAUSE);
        }
    }

    /// Asks again for what has not come.
    pub(super) fn ask_again(&mut self) {
        self.starving_at = None;
        std::mem::take(&mut self.starving).iter().for_each(|slot| self.stale.insert(slot));
        std::mem::take(&mut self.lacking).into_iter().for_each(|id| self.ask_lacking(id));
    }

    /// Asks all neighbours for all routes: from now on they are taken.
    pub(super) fn ask_first(&mut self) {
        self.has_asked = true;
        self.ask_all(None);
        for id in self.neighbours.keys().copied().collect::<Vec<_>>() {
            let neighbour = self.neighbours.get_mut(&id).filter(|one| one.cost().is_some());
            let may_ask = |one: &mut MeshNeighbour| {
                one.routes.may_ask_all(self.now, one.hello.interval, MeshSpan(0))
            };
            if neighbour.is_some_and(may_ask) {
                self.ask_lacking(id);
            }
        }
    }

    /// Sends a request to one neighbour, or all.
    fn request(&mut self, request: RouteRequest, of: Option<LinkId>, asker: RequestAsker) {
        let request = RouteRequest { to: of.map(|of| of.slot), ..request };
        let ids: Vec<_> = match of {
            Some(of) => vec![of.interface],
            None => self.interfaces.keys().copied().collect(),
        };
        self.know_request(request, true);
        let passed_by = (asker == RequestAsker::OneOfMany).then_some(0);
        for id in ids {
            let window = self.interfaces.get(&id).map_or(MeshSpan(0), |one| one.ask_window());
            let at = self.now + self.random.within(window);
            if let Some(interface) = self.interfaces.get_mut(&id) {
                interface.requests.ask(at, RequestWaiting { request, passed_by });
            }
        }
    }

    /// Remembers that a later sequence is asked for.
    fn know_request(&mut self, request: RouteRequest, is_passed: bool) {
        let now = self.now;
        let is_other = |one: &KnownRequest| one.request != request || one.is_passed != is_passed;
        self.requests.retain(|one| is_other(one) && now.since(one.at) < REQUESTS_KEPT);
        if self.requests.len() == MAX_REQUESTS_KNOWN {
            self.requests.pop_front();
        }
        self.requests.push_back(KnownRequest { request, at: now, is_passed });
    }

    pub(super) fn hear_request(&mut self, by: LinkId, request: RouteRequest) {
        let is_proven = self.neighbours.get(&by).is_some_and(|one| one.proof.is_proven);
        let is_for_us = request.to.is_none_or(|to| to == self.voice.slot());
        if is_proven && !is_for_us && request.slot != by.slot {
            // The answer is told here too: then all machines near have the same sequence.
            self.know_request(request, false);
            if let Some(interface) = self.interfaces.get_mut(&by.interface) {
                interface.requests.hear_passed(&request);
            }
        }
        if is_proven {
            self.hear_lost(by, &request);
        }
        if !is_proven || !is_for_us {
            return;
        }
        if request.slot == by.slot {
            // Of the own routes nobody else tells.
            self.news_on(by.interface, self.voice.slot(), NewsCause::Asked);
            return self.tell_all(by.interface);
        }
        if request.slot == self.voice.slot() {
            // That it was told already was not heard everywhere.
            return self.want_own(request.sequence);
        }
        let Some(selected) = self.routes.get(request.slot).map(|one| one.selected) else { return };
        let selected = selected.filter(|one| one.via != by);
        if selected.is_some_and(|one| !is_later(request.sequence, one.sequence)) {
            return self.news_on(by.interface, request.slot, NewsCause::Asked);
        }
        let passed = self.passed(&request);
        if request.hops == 0 || passed.is_some_and(|ago| ago < PASS_PAUSE) {
            return;
        }
        // A request that was passed on along the way and comes again was lost there.
        let is_scarce = self.interfaces.get(&by.interface).is_none_or(|one| one.is_scarce());
        let is_lost = passed.is_some() && !is_scarce;
        if is_lost && let Some(destination) = self.routes.get_mut(request.slot) {
            destination.want(request.sequence, self.now + REQUESTS_KEPT);
            self.stale.insert(request.slot);
        }
        self.pass_on(
            by,
            RouteRequest { hops: request.hops.min(MAX_HOP_LIMIT) - 1, ..request },
            is_lost,
        );
    }

    /// A neighbour that asks for itself, and has no way, cannot be one: that may be heard where
    /// what it has told of that was lost.
    fn hear_lost(&mut self, by: LinkId, request: &RouteRequest) {
        let is_its = request.slot == by.slot || request.slot == self.voice.slot();
        if request.hops < MAX_HOP_LIMIT || is_its {
            return;
        }
        let RouteRequest { slot, sequence, .. } = *request;
        let distance = RouteDistance { slot, sequence, metric: INFINITE };
        let told = AdvertisedRoute { distance, is_gateway: false, attached: None };
        self.hear_route(by, &told, self.now);
    }

    /// Passes a request on: to the next hop, or one that is known beside it (RFC 8966, section
    /// 3.8.1.2). What comes again goes to all.
    fn pass_on(&mut self, by: LinkId, request: RouteRequest, is_lost: bool) {
        let Some(destination) = self.routes.get(request.slot) else { return };
        let selected = destination.selected.map(|one| one.via);
        let others = destination.ways().map(|(via, _)| via);
        let via = selected.into_iter().chain(others).find(|via| *via != by);
        // If the request was to all, each other machine that heard it passes it on, too.
        let asker =
            if request.to.is_none() { RequestAsker::OneOfMany } else { RequestAsker::Alone };
        match via {
            _ if is_lost => self.request(request, None, RequestAsker::Alone),
            Some(via) => self.request(request, Some(via), asker),
            None => self.know_request(request, true),
        }
    }

    /// How long ago the same was passed on, or asked here, if that was lately.
    fn passed(&self, request: &RouteRequest) -> Option<MeshSpan> {
        let is_same = |one: &&KnownRequest| {
            let known = one.request;
            one.is_passed && (known.slot, known.sequence) == (request.slot, request.sequence)
        };
        let ages = self.requests.iter().filter(is_same).map(|one| self.now.since(one.at));
        ages.min().filter(|ago| *ago < REQUESTS_KEPT)
    }
}

/// The shortest time between two requests for one destination.
pub(super) const REQUEST_PAUSE: MeshSpan = MeshSpan::millis(300);
/// The shortest time after which the same request is passed on again.
const PASS_PAUSE: MeshSpan = MeshSpan::millis(250);
/// How long a request is remembered.
pub(super) const REQUESTS_KEPT: MeshSpan = MeshSpan::seconds(2);
