//! An interface of a machine, and what is to be told there.

mod air;
mod hello;
mod routes;

use std::collections::BTreeMap;

use sealane_frame::limits::MAX_SHORT_UNIT_BYTES;
use sealane_frame::{FRAGMENT_HEADER_BYTES, PeerTag, SHORT_FRAGMENT_HEADER_BYTES};
use sealane_seal::{Form, Slot};

pub(crate) use air::{AirTurns, ScarceTurn};
use hello::INTERVAL_MAX;
pub(crate) use hello::{AnnouncementClock, HelloClock};
pub(crate) use routes::{FullUpdate, NewsCause, RequestQueue, RequestWaiting, RouteNews};

use crate::budget::AirTimeBudget;
use crate::config::ALWAYS_PPM;
pub(crate) use crate::config::{COMPACT_BYTES, FULL_BYTES};
use crate::hello::{DIGEST_BYTES, DISTANCE_BYTES, ECHO_BYTES, HELLO_BYTES_MIN, LISTED_BYTES};
use crate::limits::{
    MAX_HELLO_ECHOES, MAX_HELLO_GATEWAYS, MAX_MESH_PARTIAL_BYTES, MAX_STRANGER_PARTIAL_BYTES,
    MESH_PROBES, MIN_HELLO_MS, MIN_PROBE_GAP_MS,
};
use crate::messages::{NeighbourProbe, RouteRequest};
use crate::parts::{FrameParts, SentParts, WantedParts};
use crate::strangers::{AskManner, MeshStrangers, StrangerAsk};
use crate::{HelloMessage, MeshAddress, MeshMedium, MeshSpan, MeshTime, SendUrgency};

/// One interface.
#[derive(Debug)]
pub(crate) struct MeshInterface {
    pub(crate) medium: MeshMedium,
    pub(crate) budget: AirTimeBudget,
    pub(crate) numbers: InterfaceNumbers,
    /// The slot behind each address.
    pub(crate) addresses: BTreeMap<MeshAddress, Slot>,
    pub(crate) hello: HelloClock,
    pub(crate) announcement: AnnouncementClock,
    pub(crate) routes: RouteNews,
    pub(crate) requests: RequestQueue,
    pub(crate) parts: PartRooms,
    pub(crate) turns: AirTurns,
    pub(crate) channel: ChannelCrowd,
    pub(crate) strangers: MeshStrangers,
}

/// Frames that go and come in parts.
#[derive(Debug)]
pub(crate) struct PartRooms {
    /// Frames of neighbours.
    pub(crate) known: FrameParts,
    /// Frames of others, in a room of their own: made-up senders would else take that of
    /// neighbours.
    pub(crate) strangers: FrameParts,
    pub(crate) sent: SentParts,
    pub(crate) wanted: WantedParts,
}

/// How many share the channel, and how busy it is.
#[derive(Debug)]
pub(crate) struct ChannelCrowd {
    /// Neighbours, and this machine.
    machines: u64,
    /// In millionths, followed with a quarter of each change.
    busy_ppm: u32,
}

/// The counters of an interface, kept also over times without it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct InterfaceNumbers {
    pub(crate) hellos: u64,
    pub(crate) routes: u16,
    /// Names the next frame in parts.
    pub(crate) parts: u16,
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
pub(crate) struct NeighboursNear {
    pub(crate) neighbours: usize,
    pub(crate) new: usize,
}

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
/// More than so many machines are a crowd.
const CROWD: u64 = 9;
/// Up to so many machines ask again soon.
const INSISTING: u64 = 17;
/// Below this speed air time is scarce.
const SLOW_BYTES_PER_SECOND: u32 = 50_000;
/// A hello takes no more than one part of so many of the duty cycle.
const HELLO_SHARE: u64 = 4;
/// The hellos and routes of all who hear each other take no more than one part of so many of the
/// channel.
const CHANNEL_SHARE: u64 = 25;
/// The other messages about routes, and the requests, take no more than one part of so many.
const NEWS_SHARE: u64 = 20;
const ASKS_SHARE: u64 = 20;
/// The bytes of an announcement on the air, at most.
pub(crate) const ANNOUNCEMENT_BYTES: usize = 170;
/// The shortest time within which a request finds its moment.
const ASK_WINDOW: MeshSpan = MeshSpan::millis(30);
/// A load is that of so many seconds, and of the time that so many hellos take: one hello alone is
/// no busy channel, however slow the radio is.
const LOAD_SECONDS_MIN: u32 = 4;
const LOAD_HELLOS: u64 = 24;
/// The bytes of a usual hello.
const HELLO_UNIT_BYTES: usize = 96;

impl MeshInterface {
    pub(crate) fn new(medium: MeshMedium, now: MeshTime, numbers: InterfaceNumbers) -> Self {
        let air = air_in_parts(&medium, HELLO_UNIT_BYTES);
        let air = air.0.saturating_mul(HELLO_SHARE * u64::from(ALWAYS_PPM));
        let least = MeshSpan(if medium.has_duty() { air / u64::from(medium.duty_ppm) } else { 0 });
        let interval = medium.hello.max(least).clamp(MeshSpan::millis(MIN_HELLO_MS), INTERVAL_MAX);
        Self {
            medium,
            budget: AirTimeBudget::new(medium, now),
            numbers,
            addresses: BTreeMap::new(),
            hello: HelloClock::new(interval, now),
            announcement: AnnouncementClock::new(now),
            routes: RouteNews::new(now),
            requests: RequestQueue::new(now),
            parts: PartRooms {
                known: FrameParts::within(MAX_MESH_PARTIAL_BYTES),
                strangers: FrameParts::within(MAX_STRANGER_PARTIAL_BYTES),
                sent: SentParts::default(),
                wanted: WantedParts::default(),
            },
            turns: AirTurns { first: None, documents_at: now },
            channel: ChannelCrowd { machines: 1, busy_ppm: 0 },
            strangers: MeshStrangers::default(),
        }
    }

    /// When something is to be told or asked next.
    pub(crate) fn due(&self) -> MeshTime {
        let others = [self.announcement.at, self.routes.at, self.requests.at];
        let others = others.into_iter().chain([self.parts.wanted.due()]).flatten();
        others.fold(self.hello.at, MeshTime::min)
    }

    /// Sets how often hellos are sent where so many neighbours are in reach, and so many routes are
    /// told with every eighth hello: what all neighbours say takes a part of the channel. Where
    /// that is busy all the same, hellos come less often.
    pub(crate) fn adapt(&mut self, neighbours: usize, routes: usize) {
        self.channel.machines = neighbours as u64 + 1;
        let told = self.air(COMPACT_BYTES + (routes + 1) * DISTANCE_BYTES).part(WHOLE_HELLOS);
        let air = (self.air(HELLO_UNIT_BYTES) + told).times(self.channel.machines);
        self.hello.pace(air.times(CHANNEL_SHARE), self.budget.press());
    }

    /// Takes how busy the radio finds its channel.
    pub(crate) fn hear_load(&mut self, now: MeshTime, busy_ppm: u32) {
        let seconds = self.air(HELLO_UNIT_BYTES).times(LOAD_HELLOS).0 / 1_000_000;
        let weight = u32::try_from(seconds).unwrap_or(u32::MAX).max(LOAD_SECONDS_MIN);
        self.channel.follow(busy_ppm, weight);
        self.budget.press_by(now, self.channel.busy_ppm);
        self.hello.press(self.budget.press());
    }

    /// The time between two probes.
    pub(crate) fn gap(&self) -> MeshSpan {
        let air = self.medium.air(COMPACT_BYTES + NeighbourProbe::BYTES);
        air.times(4).max(MeshSpan::millis(MIN_PROBE_GAP_MS))
    }

    /// How long a neighbour may be overdue: as long as all probes take, and longer where there may
    /// be no air time for them, or a hello comes in parts that are asked for.
    pub(crate) fn grace(&self) -> MeshSpan {
        let probes = self.gap().times(MESH_PROBES.into());
        let is_slow = self.medium.has_duty() || self.medium.mtu < HELLO_UNIT_BYTES;
        if is_slow { self.hello.interval.times(2).max(probes) } else { probes }
    }

    /// How long others may take a machine for the one that it was before it started anew.
    pub(crate) fn memory(&self) -> MeshSpan {
        self.hello.interval + self.grace() + self.gap()
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
        !self.is_scarce() && self.channel.machines <= INSISTING
    }

    /// The routes of one message, at most.
    pub(crate) fn routes_at_once(&self) -> usize {
        self.room() / DISTANCE_BYTES
    }

    /// The room of a hello here, beside the gateways and the digest that it has already. If few
    /// neighbours are in reach, it stays within the usual length. It then gives back as many time
    /// stamps as find room there.
    pub(crate) fn hello_room(&self, near: NeighboursNear, hello: &HelloMessage) -> HelloRoom {
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

    /// Has the next hello come sooner, but not right behind the last one: in a crowd that starts at
    /// once each would go on for each. Nor where something waits for the air time.
    pub(crate) fn hasten_hello(&mut self, at: MeshTime) {
        if self.waits(at).is_some() {
            return;
        }
        let crowd = self.air(HELLO_UNIT_BYTES).times(self.channel.machines);
        let interval = self.hello.interval;
        let crowd = crowd.times(CHANNEL_SHARE / 2).min(interval);
        self.hello.hasten(at, interval.part(4).max(crowd));
    }

    /// Has whoever claims this slot asked to announce itself with the next hello, or everybody
    /// where none is claimed. Where announcements go in parts each question may bring those that
    /// lack, and they are asked for as long as it takes. Where air time is scarce everybody is
    /// asked: hellos are seldom, and one announcement is for many.
    pub(crate) fn ask_stranger(&mut self, now: MeshTime, slot: Option<Slot>) -> StrangerAsk {
        let is_narrow = self.medium.mtu < ANNOUNCEMENT_BYTES;
        let is_scarce = self.is_scarce();
        self.strangers.ask(slot, now, self.hello.interval, AskManner { is_narrow, is_scarce })
    }

    /// Has an announcement come, but not right behind the last one.
    pub(crate) fn hasten_announcement(&mut self, at: MeshTime) {
        self.announcement.hasten(at, self.hello.interval.part(2));
    }

    /// Has the route to a destination told as something new, and says whether it is the first.
    pub(crate) fn note_news(&mut self, slot: Slot, news: NewsCause) -> bool {
        self.routes.note(slot, news == NewsCause::Asked || self.is_scarce())
    }

    /// Notes that routes were told which had so many bytes.
    pub(crate) fn told_routes(&mut self, now: MeshTime, bytes: usize) {
        let rest = self.rest(bytes, NEWS_SHARE);
        self.routes.told(now, rest);
    }

    /// How long nothing like it is to follow so many bytes, so that what all say takes that part of
    /// the channel at most: where air time is scarce, the budget decides.
    fn rest(&self, bytes: usize, share: u64) -> MeshSpan {
        let all = self.air(bytes).times(self.channel.machines).times(share);
        all.min(self.hello.interval.part(2))
    }

    /// Within which time a request finds its moment: many ask when one has fallen silent, and those
    /// who ask at once are not heard.
    pub(crate) fn ask_window(&self) -> MeshSpan {
        let machines = self.channel.machines.min(16);
        self.air(COMPACT_BYTES + RouteRequest::BYTES).times(2 * machines).max(ASK_WINDOW)
    }

    /// Takes the requests that are to be sent now, as many as fit, if there is air time.
    pub(crate) fn take_questions(&mut self, now: MeshTime) -> Vec<RouteRequest> {
        let fit = self.room().saturating_sub(1) / RouteRequest::BYTES;
        let count = self.requests.len().min(fit.max(1));
        let bytes = COMPACT_BYTES + 1 + count * RouteRequest::BYTES;
        self.requests.at = None;
        if count == 0 {
            return vec![];
        }
        if let Err(ready) = self.may_tell(now, ScarceTurn::Requests, bytes) {
            self.requests.at = Some(ready);
            return vec![];
        }
        let rest = self.rest(bytes, ASKS_SHARE);
        self.requests.take(now, count, rest)
    }

    /// Counts a hello: now and then all routes are told with it.
    pub(crate) fn count_hello(&mut self, now: MeshTime, next: MeshTime) {
        self.numbers.hellos += 1;
        self.strangers.asked();
        let hellos = self.hello.count(now, next);
        if hellos.is_multiple_of(WHOLE_HELLOS) {
            let has_addresses = (hellos / WHOLE_HELLOS).is_multiple_of(ADDRESS_WHOLES);
            let whole = if has_addresses { FullUpdate::Addresses } else { FullUpdate::Distances };
            self.routes.want_all(now + self.hello.interval.part(8), whole);
        }
    }

    /// The digest of documents for the next hello.
    pub(crate) fn digest_to_tell(
        &mut self,
        digest: Option<[u8; DIGEST_BYTES]>,
    ) -> Option<[u8; DIGEST_BYTES]> {
        self.hello.digest_to_tell(digest, self.medium.has_duty())
    }

    /// When a message about documents can go.
    pub(crate) fn documents_ready(&self, now: MeshTime, urgency: SendUrgency) -> MeshTime {
        let air = self.air(self.medium.documents_bytes() + self.around());
        self.budget.ready(now, urgency, air).max(self.turns.documents_at)
    }

    /// The air time of a frame with those bytes: that of its parts.
    pub(crate) fn air(&self, bytes: usize) -> MeshSpan {
        air_in_parts(&self.medium, bytes)
    }

    /// The name that the next frame in parts has, as its parts carry it.
    pub(crate) fn part_name(&self) -> u16 {
        let is_short = self.medium.mtu <= MAX_SHORT_UNIT_BYTES;
        if is_short { self.numbers.parts & 0x7f } else { self.numbers.parts }
    }

    /// The name under which parts of an address are put together.
    pub(crate) fn name_of(address: MeshAddress) -> PeerTag {
        PeerTag::from_hash(address.0.to_be_bytes())
    }
}

impl ChannelCrowd {
    /// Follows how busy the channel is: each report counts one part of so many.
    fn follow(&mut self, busy_ppm: u32, weight: u32) {
        self.busy_ppm = self.busy_ppm / weight * (weight - 1) + busy_ppm.min(ALWAYS_PPM) / weight;
    }

    /// How busy the channel is: 255 is always.
    pub(crate) fn load(&self) -> u8 {
        (self.busy_ppm / 3922).min(255) as u8
    }

    /// Whether so many are in reach that they are better told something at once.
    pub(crate) fn is_crowded(&self) -> bool {
        self.machines > CROWD
    }
}

/// The air time of a frame with those bytes: that of its parts.
fn air_in_parts(medium: &MeshMedium, bytes: usize) -> MeshSpan {
    if bytes <= medium.mtu {
        return medium.air(bytes);
    }
    let is_short = medium.mtu <= MAX_SHORT_UNIT_BYTES;
    let head = if is_short { SHORT_FRAGMENT_HEADER_BYTES } else { FRAGMENT_HEADER_BYTES };
    let parts = bytes.div_ceil(medium.mtu.saturating_sub(head).max(1));
    let more = medium.fixed.times(parts.saturating_sub(1) as u64);
    medium.air(bytes + parts * head) + more
}

#[cfg(test)]
mod tests;
