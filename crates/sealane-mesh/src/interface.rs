//! An interface of a machine, and what is to be told there.

mod air;

use std::collections::{BTreeMap, VecDeque};

use sealane_frame::limits::MAX_SHORT_UNIT_BYTES;
use sealane_frame::{FRAGMENT_HEADER_BYTES, PeerTag, SHORT_FRAGMENT_HEADER_BYTES};
use sealane_seal::{Form, Slot};

pub(crate) use air::Told;
use air::Waiting;

use crate::budget::Budget;
use crate::config::ALWAYS_PPM;
pub(crate) use crate::config::{COMPACT_BYTES, FULL_BYTES};
use crate::hello::{
    DIGEST_BYTES, DISTANCE_BYTES, ECHO_BYTES, HELLO_BYTES_MIN, INTERVAL_STEP, LISTED_BYTES,
};
use crate::limits::{
    MAX_HELLO_ECHOES, MAX_HELLO_GATEWAYS, MAX_MESH_PARTIAL_BYTES, MAX_REQUESTS_KNOWN,
    MAX_STRANGER_PARTIAL_BYTES, MESH_PROBES, MIN_HELLO_MS, MIN_PROBE_GAP_MS,
};
use crate::messages::{Probe, Request};
use crate::parts::{Parts, SentParts, WantedParts};
use crate::strangers::{Asking, Asks, Manner, Strangers};
use crate::{Address, Hello, Medium, Span, Time, Urgency};

/// One interface.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) medium: Medium,
    pub(crate) budget: Budget,
    /// How often hellos are sent, and how often where few are in reach.
    pub(crate) interval: Span,
    least_interval: Span,
    /// How often on a free channel.
    free_interval: Span,
    pub(crate) hello_at: Time,
    pub(crate) hello_told: Time,
    /// Hellos that were sent since it came up.
    hellos: u64,
    pub(crate) numbers: Numbers,
    pub(crate) announce_at: Option<Time>,
    announced: Option<Time>,
    /// What there was no air time for: all else leaves it as much as it takes.
    first: Option<Waiting>,
    pub(crate) routes_at: Option<Time>,
    /// Routes, and requests, are not told again before: those of all neighbours together take a
    /// part of the channel.
    routes_free_at: Time,
    asks_free_at: Time,
    /// What is to be asked, and when.
    questions: Vec<Question>,
    pub(crate) ask_at: Option<Time>,
    /// Neighbours, and this machine.
    machines: u64,
    /// Destinations of which something new is to be told, and how often it still is.
    news: BTreeMap<Slot, u8>,
    /// All destinations are to be told.
    pub(crate) whole: Option<Whole>,
    strangers: Strangers,
    /// How busy the channel is, in millionths, followed with a quarter of each change.
    busy_ppm: u32,
    /// The time stamps of the last hellos, and when they were sent.
    stamps: VecDeque<(u32, Time)>,
    /// Who has which address.
    pub(crate) addresses: BTreeMap<Address, Slot>,
    /// What neighbours send in parts, and what others do.
    pub(crate) parts: Parts,
    pub(crate) stranger_parts: Parts,
    /// The announcement that went in parts last, and when it did so first.
    pub(crate) announced_in: Option<(u16, Time)>,
    pub(crate) sent_parts: SentParts,
    pub(crate) wanted_parts: WantedParts,
    /// Nothing is said of documents before, where air time is scarce.
    pub(crate) documents_at: Time,
    /// The digest of documents that hellos have, and how many hellos have come with it or without.
    digest: (Option<[u8; DIGEST_BYTES]>, u64),
}

/// A request that waits for its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) request: Request,
    /// Others who have heard the same may pass it on as well: so many were heard to do so.
    pub(crate) passed_by: Option<u8>,
}

/// What is counted on an interface, also over times without it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) hellos: u64,
    pub(crate) routes: u16,
    /// Names the next frame in parts.
    pub(crate) parts: u16,
}

/// Why something new is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It has changed: nobody says that it came.
    Changed,
    /// Somebody asked for it, and asks again if it does not come.
    Asked,
}

/// What is told when all is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    Distances,
    /// The addresses of other groups too.
    Addresses,
}

/// How much a hello lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HelloRoom {
    pub(crate) neighbours: usize,
    pub(crate) echoes: usize,
}

/// How many neighbours are in reach, and how many of them are to be told something: a way is not
/// used before, or not as it should be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Near {
    pub(crate) neighbours: usize,
    pub(crate) new: usize,
}

/// The longest hello interval that a hello can say.
const INTERVAL_MAX: Span = INTERVAL_STEP.times(u16::MAX as u64);
/// Hellos between two tellings of all routes.
pub(crate) const WHOLE_HELLOS: u64 = 8;
/// Tellings of all routes between two that tell addresses too.
const ADDRESS_WHOLES: u64 = 4;
/// The body of a hello of eight neighbours with two echoes and two gateways.
const HELLO_BODY_BYTES: usize = HELLO_BYTES_MIN
    + FEW.neighbours * LISTED_BYTES
    + FEW.echoes * ECHO_BYTES
    + MAX_HELLO_GATEWAYS * DISTANCE_BYTES;
/// The room for a body that a narrow interface has by parts.
const NARROW_ROOM_BYTES: usize = HELLO_BODY_BYTES;
/// Neighbours and echoes of a hello where air time is scarce, or very many are in reach.
const FEW: HelloRoom = HelloRoom { neighbours: 8, echoes: 2 };
/// Neighbours and echoes of a hello elsewhere.
const MORE: HelloRoom = HelloRoom { neighbours: 16, echoes: 4 };
/// The same where many are new; and the most where few are in reach, if there is room.
const MOST: HelloRoom = HelloRoom { neighbours: 16, echoes: MAX_HELLO_ECHOES };
/// Where air time is scarce, so many hellos have a digest that is new, and then one of so many.
const DIGESTS_FIRST: u64 = 3;
const DIGEST_HELLOS: u64 = 2;
/// More than so many machines are a crowd.
const CROWD: u64 = 9;
/// Up to so many machines ask again soon.
const INSISTING: u64 = 17;
/// Below this speed air time is scarce.
const SLOW_BYTES_PER_SECOND: u32 = 50_000;
/// Time stamps that are remembered.
const STAMPS: usize = 64;
/// A hello takes no more than one part of so many of the duty cycle.
const HELLO_SHARE: u64 = 4;
/// The hellos and routes of all who hear each other take no more than one part of so many of the
/// channel.
const CHANNEL_SHARE: u64 = 25;
/// What else is told of routes, and the requests, take no more than one part of so many.
const NEWS_SHARE: u64 = 20;
const ASKS_SHARE: u64 = 20;
/// What is told of routes, and asked, may run ahead of that part by so much: a few messages where
/// few are in reach, and none in a crowd.
const AHEAD: Span = Span::millis(250);
/// How often something new is told where air time is not scarce: nobody says that it came.
const TELLINGS: u8 = 3;
/// The bytes of an announcement on the air, at most.
pub(crate) const ANNOUNCEMENT_BYTES: usize = 170;
/// A request that so many others have passed on need not be passed on.
const ENOUGH_PASS: u8 = 2;
/// The shortest time within which a request finds its moment.
const ASK_WINDOW: Span = Span::millis(30);
/// A load is that of so many seconds, and of the time that so many hellos take: one hello alone is
/// no busy channel, however slow the radio is.
const LOAD_SECONDS_MIN: u32 = 4;
const LOAD_HELLOS: u64 = 24;
/// The bytes of a usual hello.
const HELLO_UNIT_BYTES: usize = 96;

impl Interface {
    pub(crate) fn new(medium: Medium, now: Time, numbers: Numbers) -> Self {
        let air = air_in_parts(&medium, HELLO_UNIT_BYTES);
        let air = air.0.saturating_mul(HELLO_SHARE * u64::from(ALWAYS_PPM));
        let least = Span(if medium.has_duty() { air / u64::from(medium.duty_ppm) } else { 0 });
        let interval = medium.hello.max(least).clamp(Span::millis(MIN_HELLO_MS), INTERVAL_MAX);
        Self {
            medium,
            budget: Budget::new(medium, now),
            interval,
            least_interval: interval,
            free_interval: interval,
            hello_at: now,
            hello_told: now,
            hellos: 0,
            numbers,
            announce_at: Some(now),
            announced: None,
            first: None,
            routes_at: None,
            routes_free_at: now,
            asks_free_at: now,
            questions: Vec::new(),
            ask_at: None,
            machines: 1,
            news: BTreeMap::new(),
            whole: None,
            strangers: Strangers::default(),
            busy_ppm: 0,
            stamps: VecDeque::new(),
            addresses: BTreeMap::new(),
            parts: Parts::within(MAX_MESH_PARTIAL_BYTES),
            stranger_parts: Parts::within(MAX_STRANGER_PARTIAL_BYTES),
            announced_in: None,
            sent_parts: SentParts::default(),
            wanted_parts: WantedParts::default(),
            documents_at: now,
            digest: (None, 0),
        }
    }

    /// When something is to be told or asked next.
    pub(crate) fn due(&self) -> Time {
        let others = [self.announce_at, self.routes_at, self.ask_at, self.wanted_parts.due()];
        others.into_iter().flatten().fold(self.hello_at, Time::min)
    }

    /// Sets how often hellos are sent where so many neighbours are in reach, and so many routes are
    /// told with every eighth hello: what all neighbours say takes a part of the channel. Where
    /// that is busy all the same, hellos come less often.
    pub(crate) fn adapt(&mut self, neighbours: usize, routes: usize) {
        self.machines = neighbours as u64 + 1;
        let told = self.air(COMPACT_BYTES + (routes + 1) * DISTANCE_BYTES).part(WHOLE_HELLOS);
        let air = (self.air(HELLO_UNIT_BYTES) + told).times(self.machines);
        self.free_interval = air.times(CHANNEL_SHARE).max(self.least_interval);
        self.interval = self.budget.press().stretch(self.free_interval).min(INTERVAL_MAX);
    }

    /// Takes how busy the radio finds its channel.
    pub(crate) fn hear_load(&mut self, now: Time, busy_ppm: u32) {
        let seconds = self.air(HELLO_UNIT_BYTES).times(LOAD_HELLOS).0 / 1_000_000;
        let weight = u32::try_from(seconds).unwrap_or(u32::MAX).max(LOAD_SECONDS_MIN);
        self.busy_ppm = self.busy_ppm / weight * (weight - 1) + busy_ppm.min(ALWAYS_PPM) / weight;
        self.budget.press_by(now, self.busy_ppm);
        self.interval = self.budget.press().stretch(self.free_interval).min(INTERVAL_MAX);
    }

    /// How busy the channel is: 255 is always.
    pub(crate) fn load(&self) -> u8 {
        (self.busy_ppm / 3922).min(255) as u8
    }

    /// Whether so many are in reach that they are better told something at once.
    pub(crate) fn is_crowded(&self) -> bool {
        self.machines > CROWD
    }

    /// The time between two probes.
    pub(crate) fn gap(&self) -> Span {
        let air = self.medium.air(COMPACT_BYTES + Probe::BYTES);
        air.times(4).max(Span::millis(MIN_PROBE_GAP_MS))
    }

    /// How long a neighbour may be overdue: as long as all probes take, and longer where there may
    /// be no air time for them, or a hello comes in parts that are asked for.
    pub(crate) fn grace(&self) -> Span {
        let probes = self.gap().times(MESH_PROBES.into());
        let is_slow = self.medium.has_duty() || self.medium.mtu < HELLO_UNIT_BYTES;
        if is_slow { self.interval.times(2).max(probes) } else { probes }
    }

    /// How long others may take a machine for the one that it was before it started anew.
    pub(crate) fn memory(&self) -> Span {
        self.interval + self.grace() + self.gap()
    }

    /// The bytes of a body that travels whole, or of one that is worth parts.
    pub(crate) fn room(&self) -> usize {
        match self.medium.form {
            Form::Full => self.medium.mtu.saturating_sub(FULL_BYTES),
            Form::Compact => self.medium.mtu.saturating_sub(COMPACT_BYTES).max(NARROW_ROOM_BYTES),
        }
    }

    /// The bytes that a message of the mesh has around its body, at most.
    pub(crate) fn around(&self) -> usize {
        self.medium.around()
    }

    /// Whether air time is scarce.
    pub(crate) fn is_scarce(&self) -> bool {
        self.medium.bytes_per_second < SLOW_BYTES_PER_SECOND || self.medium.has_duty()
    }

    /// Whether there is air time to ask each neighbour again soon for what it has not told.
    pub(crate) fn may_insist(&self) -> bool {
        !self.is_scarce() && self.machines <= INSISTING
    }

    /// The routes of one message, at most.
    pub(crate) fn routes_at_once(&self) -> usize {
        self.room() / DISTANCE_BYTES
    }

    /// What a hello lists here, beside the gateways and the digest that it has already. Where few
    /// neighbours are in reach it stays within the usual length, and gives back as many time stamps
    /// as find room there.
    pub(crate) fn hello_room(&self, near: Near, hello: &Hello) -> HelloRoom {
        let is_few = near.neighbours <= FEW.neighbours;
        let most = match (self.is_scarce(), near.neighbours > MORE.neighbours) {
            (true, _) => FEW,
            (false, _) if is_few || near.new > MORE.echoes => MOST,
            (false, false) => MORE,
            (false, true) => FEW,
        };
        let has_digest = hello.digest.is_some();
        let digest = if has_digest { DIGEST_BYTES } else { 0 };
        let fixed = HELLO_BYTES_MIN + hello.gateways.len() * DISTANCE_BYTES + digest;
        let body = if is_few { HELLO_BODY_BYTES } else { self.room() };
        let left = body.saturating_sub(fixed);
        let listed = near.neighbours.min(FEW.neighbours) * LISTED_BYTES;
        // A digest stands in the place of an echo.
        let echoes = most.echoes - usize::from(has_digest);
        let echoes = echoes.min(left.saturating_sub(listed) / ECHO_BYTES);
        let left = left.saturating_sub(echoes * ECHO_BYTES);
        HelloRoom { neighbours: most.neighbours.min(left / LISTED_BYTES), echoes }
    }

    /// Remembers the time stamp of a hello.
    pub(crate) fn stamped(&mut self, stamp: u32, now: Time) {
        if self.stamps.len() == STAMPS {
            self.stamps.pop_front();
        }
        self.stamps.push_back((stamp, now));
    }

    /// When the hello with that time stamp was sent.
    pub(crate) fn stamp(&self, stamp: u32) -> Option<Time> {
        self.stamps.iter().find(|(one, _)| *one == stamp).map(|(_, at)| *at)
    }

    /// Has the next hello come sooner, but not right behind the last one: in a crowd that starts at
    /// once each would go on for each. Nor where something waits for the air time.
    pub(crate) fn hasten_hello(&mut self, at: Time) {
        if self.waits(at).is_some() {
            return;
        }
        let crowd = self.air(HELLO_UNIT_BYTES).times(self.machines).times(CHANNEL_SHARE / 2);
        let least = self.hello_told + self.interval.part(4).max(crowd.min(self.interval));
        let is_first = self.hellos == 0;
        self.hello_at = self.hello_at.min(if is_first { at } else { at.max(least) });
    }

    /// Has whoever claims this slot asked to announce itself with the next hello, or everybody
    /// where none is claimed. Where announcements go in parts each question may bring those that
    /// lack, and they are asked for as long as it takes. Where air time is scarce everybody is
    /// asked: hellos are seldom, and one announcement is for many.
    pub(crate) fn ask_stranger(&mut self, now: Time, slot: Option<Slot>) -> Asking {
        let is_narrow = self.medium.mtu < ANNOUNCEMENT_BYTES;
        let is_scarce = self.is_scarce();
        self.strangers.ask(slot, now, self.interval, Manner { is_narrow, is_scarce })
    }

    /// Who is asked to announce itself with the next hello.
    pub(crate) fn asks(&self) -> &Asks {
        self.strangers.asks()
    }

    /// Has an announcement come, but not right behind the last one.
    pub(crate) fn hasten_announcement(&mut self, at: Time) {
        let least = self.announced.map_or(at, |told| told + self.interval.part(2));
        let at = at.max(least);
        self.announce_at = Some(self.announce_at.map_or(at, |known| known.min(at)));
    }

    /// Notes that the machine has announced itself.
    pub(crate) fn announced(&mut self, now: Time) {
        self.announced = Some(now);
        self.announce_at = None;
    }

    /// Has a route message come soon, but not right behind the last ones.
    pub(crate) fn hasten_routes(&mut self, at: Time) {
        let at = at.max(ahead(self.routes_free_at));
        self.routes_at = Some(self.routes_at.map_or(at, |known| known.min(at)));
    }

    /// Has the route to a destination told as something new, and says whether it is the first.
    pub(crate) fn note_news(&mut self, slot: Slot, news: News) -> bool {
        let is_once = news == News::Asked || self.is_scarce();
        let tellings = if is_once { 1 } else { TELLINGS };
        let is_first =
            self.news.is_empty() || !is_once && self.news.values().all(|left| *left < tellings);
        let left = self.news.entry(slot).or_default();
        *left = tellings.max(*left);
        is_first
    }

    /// Has routes told later that could not be told now.
    pub(crate) fn put_off_news(&mut self, slots: impl Iterator<Item = Slot>) {
        for slot in slots {
            self.news.entry(slot).or_insert(1);
        }
    }

    /// Whether something new is to be told, for the first time or again.
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The destinations that are to be told as something new. They are to be told again a few
    /// times.
    pub(crate) fn take_news(&mut self) -> Vec<Slot> {
        let slots = self.news.keys().copied().collect();
        self.news.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        slots
    }

    /// Notes that routes were told which had so many bytes.
    pub(crate) fn told_routes(&mut self, now: Time, bytes: usize) {
        self.routes_free_at = self.routes_free_at.max(now) + self.rest(bytes, NEWS_SHARE);
    }

    /// How long nothing like it is to follow so many bytes, so that what all say takes that part of
    /// the channel at most: where air time is scarce, the budget decides.
    fn rest(&self, bytes: usize, share: u64) -> Span {
        self.air(bytes).times(self.machines).times(share).min(self.interval.part(2))
    }

    /// Within which time a request finds its moment: many ask when one has fallen silent, and those
    /// who ask at once are not heard.
    pub(crate) fn ask_window(&self) -> Span {
        self.air(COMPACT_BYTES + Request::BYTES).times(2 * self.machines.min(16)).max(ASK_WINDOW)
    }

    /// Has a request sent at that time, or later if one was sent just before.
    pub(crate) fn ask(&mut self, at: Time, question: Question) {
        let is_there = self.questions.iter().any(|one| one.request == question.request);
        if self.questions.len() < MAX_REQUESTS_KNOWN && !is_there {
            self.questions.push(question);
        }
        self.ask_at = Some(self.ask_at.unwrap_or(at.max(ahead(self.asks_free_at))));
    }

    /// Notes that somebody else has passed a request on to a next hop: where enough have done so,
    /// it need not be passed on from here.
    pub(crate) fn hear_passed(&mut self, request: &Request) {
        self.questions.retain_mut(|one| {
            let known = one.request;
            let is_same = (known.slot, known.sequence) == (request.slot, request.sequence);
            let Some(passed_by) = one.passed_by.as_mut().filter(|_| is_same) else { return true };
            *passed_by += 1;
            *passed_by < ENOUGH_PASS
        });
    }

    /// Takes the requests that are to be sent now, as many as fit, if there is air time.
    pub(crate) fn take_questions(&mut self, now: Time) -> Vec<Request> {
        let fit = self.room().saturating_sub(1) / Request::BYTES;
        let count = self.questions.len().min(fit.max(1));
        let bytes = COMPACT_BYTES + 1 + count * Request::BYTES;
        self.ask_at = None;
        if count == 0 {
            return vec![];
        }
        if let Err(ready) = self.may_tell(now, Told::Requests, bytes) {
            self.ask_at = Some(ready);
            return vec![];
        }
        self.asks_free_at = self.asks_free_at.max(now) + self.rest(bytes, ASKS_SHARE);
        let rest = self.questions.split_off(count);
        let taken = std::mem::replace(&mut self.questions, rest);
        let taken = taken.into_iter().map(|one| one.request).collect();
        if !self.questions.is_empty() {
            self.ask_at = Some(ahead(self.asks_free_at).max(now + Span(1)));
        }
        taken
    }

    /// Has all routes told soon.
    pub(crate) fn tell_all(&mut self, at: Time, whole: Whole) {
        if self.whole != Some(Whole::Addresses) {
            self.whole = Some(whole);
        }
        self.hasten_routes(at);
    }

    /// Counts a hello: now and then all routes are told with it.
    pub(crate) fn count_hello(&mut self, now: Time, next: Time) {
        self.hellos += 1;
        self.numbers.hellos += 1;
        (self.hello_told, self.hello_at) = (now, next);
        self.strangers.asked();
        if self.hellos.is_multiple_of(WHOLE_HELLOS) {
            let wholes = self.hellos / WHOLE_HELLOS;
            let has_addresses = wholes.is_multiple_of(ADDRESS_WHOLES);
            let whole = if has_addresses { Whole::Addresses } else { Whole::Distances };
            self.tell_all(now + self.interval.part(8), whole);
        }
    }

    /// What the next hello says of documents. Where air time is scarce it says the same three
    /// times, and then now and then.
    pub(crate) fn digest_to_tell(
        &mut self,
        digest: Option<[u8; DIGEST_BYTES]>,
    ) -> Option<[u8; DIGEST_BYTES]> {
        if self.digest.0 != digest {
            self.digest = (digest, 0);
        }
        let hellos = self.digest.1;
        self.digest.1 += 1;
        let is_told = hellos < DIGESTS_FIRST || hellos.is_multiple_of(DIGEST_HELLOS);
        digest.filter(|_| is_told || !self.medium.has_duty())
    }

    /// When a message about documents can go.
    pub(crate) fn documents_ready(&self, now: Time, urgency: Urgency) -> Time {
        let air = self.air(self.medium.documents_bytes() + self.around());
        self.budget.ready(now, urgency, air).max(self.documents_at)
    }

    /// The air time of a frame with those bytes: that of its parts.
    pub(crate) fn air(&self, bytes: usize) -> Span {
        air_in_parts(&self.medium, bytes)
    }

    /// The name that the next frame in parts has, as its parts carry it.
    pub(crate) fn part_name(&self) -> u16 {
        let is_short = self.medium.mtu <= MAX_SHORT_UNIT_BYTES;
        if is_short { self.numbers.parts & 0x7f } else { self.numbers.parts }
    }

    /// The name under which parts of an address are put together.
    pub(crate) fn name_of(address: Address) -> PeerTag {
        PeerTag::from_hash(address.0.to_be_bytes())
    }
}

/// The air time of a frame with those bytes: that of its parts.
fn air_in_parts(medium: &Medium, bytes: usize) -> Span {
    if bytes <= medium.mtu {
        return medium.air(bytes);
    }
    let is_short = medium.mtu <= MAX_SHORT_UNIT_BYTES;
    let head = if is_short { SHORT_FRAGMENT_HEADER_BYTES } else { FRAGMENT_HEADER_BYTES };
    let parts = bytes.div_ceil(medium.mtu.saturating_sub(head).max(1));
    let more = medium.fixed.times(parts.saturating_sub(1) as u64);
    medium.air(bytes + parts * head) + more
}

/// From when on something may be told that has its turn then.
fn ahead(turn: Time) -> Time {
    Time(turn.0.saturating_sub(AHEAD.0))
}

#[cfg(test)]
mod tests;
