//! The routes that an interface is to tell, and the requests that it is to send.

use std::collections::BTreeMap;

use sealane_seal::Slot;

use crate::limits::MAX_REQUESTS_KNOWN;
use crate::messages::RouteRequest;
use crate::{MeshSpan, MeshTime};

/// The destinations that are to be told.
#[derive(Debug)]
pub(crate) struct RouteNews {
    pub(crate) at: Option<MeshTime>,
    /// Routes are not told again before: those of all neighbours together take a part of the
    /// channel.
    free_at: MeshTime,
    /// Destinations of which something new is to be told, and how often it still is.
    news: BTreeMap<Slot, u8>,
    /// All destinations are to be told.
    whole: Option<FullUpdate>,
}

/// Why something new is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewsCause {
    /// It has changed: nobody says that it came.
    Changed,
    /// Somebody asked for it, and asks again if it does not come.
    Asked,
}

/// The extent of a full update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FullUpdate {
    Distances,
    /// The addresses of other groups too.
    Addresses,
}

impl RouteNews {
    pub(super) fn new(now: MeshTime) -> Self {
        Self { at: None, free_at: now, news: BTreeMap::new(), whole: None }
    }

    /// Has a route message come soon, but not right behind the last ones.
    pub(crate) fn hasten(&mut self, at: MeshTime) {
        let at = at.max(ahead(self.free_at));
        self.at = Some(self.at.map_or(at, |known| known.min(at)));
    }

    /// Has the route to a destination told as something new, and says whether it is the first.
    pub(super) fn note(&mut self, slot: Slot, is_once: bool) -> bool {
        let tellings = if is_once { 1 } else { TELLINGS };
        let is_first =
            self.news.is_empty() || !is_once && self.news.values().all(|left| *left < tellings);
        let left = self.news.entry(slot).or_default();
        *left = tellings.max(*left);
        is_first
    }

    /// Has routes told later that could not be told now.
    pub(crate) fn put_off(&mut self, slots: impl Iterator<Item = Slot>) {
        for slot in slots {
            self.news.entry(slot).or_insert(1);
        }
    }

    /// Whether something new is to be told, for the first time or again.
    pub(crate) fn is_any(&self) -> bool {
        !self.news.is_empty()
    }

    /// The destinations that are to be told as something new, and whether all are. The new ones are
    /// to be told again a few times.
    pub(crate) fn take(&mut self) -> (Vec<Slot>, Option<FullUpdate>) {
        self.at = None;
        let slots = self.news.keys().copied().collect();
        self.news.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        (slots, self.whole.take())
    }

    /// Notes that routes were told, after which nothing like it goes for `rest`.
    pub(super) fn told(&mut self, now: MeshTime, rest: MeshSpan) {
        self.free_at = self.free_at.max(now) + rest;
    }

    /// Has all routes told soon.
    pub(crate) fn want_all(&mut self, at: MeshTime, whole: FullUpdate) {
        // A telling with addresses holds what one without them would say.
        if self.whole != Some(FullUpdate::Addresses) {
            self.whole = Some(whole);
        }
        self.hasten(at);
    }
}

/// A request that waits for its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestWaiting {
    pub(crate) request: RouteRequest,
    /// Others who have heard the same may pass it on as well: so many were heard to do so.
    pub(crate) passed_by: Option<u8>,
}

/// The requests that wait for their moment.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    pub(crate) at: Option<MeshTime>,
    /// Nothing is asked again before.
    free_at: MeshTime,
    questions: Vec<RequestWaiting>,
}

impl RequestQueue {
    pub(super) fn new(now: MeshTime) -> Self {
        Self { at: None, free_at: now, questions: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.questions.len()
    }

    /// Has a request sent at that time, or later if one was sent just before.
    pub(crate) fn ask(&mut self, at: MeshTime, question: RequestWaiting) {
        let is_there = self.questions.iter().any(|one| one.request == question.request);
        if self.questions.len() < MAX_REQUESTS_KNOWN && !is_there {
            self.questions.push(question);
        }
        self.at = Some(self.at.unwrap_or(at.max(ahead(self.free_at))));
    }

    /// Notes that somebody else has passed a request on to a next hop: where enough have done so,
    /// it need not be passed on from here.
    pub(crate) fn hear_passed(&mut self, request: &RouteRequest) {
        self.questions.retain_mut(|one| {
            let known = one.request;
            let is_same = (known.slot, known.sequence) == (request.slot, request.sequence);
            let Some(passed_by) = one.passed_by.as_mut().filter(|_| is_same) else { return true };
            *passed_by += 1;
            *passed_by < ENOUGH_PASS
        });
    }

    /// Takes so many requests, which go now. Nothing like it goes for `rest`.
    pub(super) fn take(
        &mut self,
        now: MeshTime,
        count: usize,
        rest: MeshSpan,
    ) -> Vec<RouteRequest> {
        self.free_at = self.free_at.max(now) + rest;
        let taken = self.questions.drain(..count).map(|one| one.request).collect();
        if !self.questions.is_empty() {
            self.at = Some(ahead(self.free_at).max(now + MeshSpan(1)));
        }
        taken
    }
}

/// From when on something may be told that has its turn then.
fn ahead(turn: MeshTime) -> MeshTime {
    MeshTime(turn.0.saturating_sub(AHEAD.0))
}

/// Route updates and requests may run so far ahead of their part of the channel. That is a few
/// messages where few are in reach, and none in a crowd.
const AHEAD: MeshSpan = MeshSpan::millis(250);
/// How often something new is told where air time is not scarce: nobody says that it came.
const TELLINGS: u8 = 3;
/// A request that so many others have passed on need not be passed on.
const ENOUGH_PASS: u8 = 2;
