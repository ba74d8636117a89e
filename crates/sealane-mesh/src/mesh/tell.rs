//! The messages from a machine to its neighbours.

use std::sync::Arc;

use sealane_frame::limits::MAX_SHORT_UNIT_BYTES;
use sealane_frame::{Fragment, LongFrame, ShortFragment};
use sealane_seal::{Form, Slot};

use super::Mesh;
use crate::hello::{BEST, HelloEcho, HelloNeighbour, INTERVAL_STEP, RouteDistance};
use crate::interface::{FullUpdate, NeighboursNear, ScarceTurn};
use crate::limits::MAX_MESSAGE_ROUTES;
use crate::messages::{AdvertisedRoute, MessageType, ROUTES_BYTES_MIN};
use crate::neighbour::LAG_PART;
use crate::parts::SentFrame;
use crate::strangers::AnnounceAsks;
use crate::{
    HelloMessage, InterfaceId, MachineRole, MeshOutput, MeshSpan, MeshTime, NeighbourProbe,
    RouteMessage, RouteRequest, SendUrgency, UnitReceiver,
};

impl Mesh {
    /// Sends a message of the mesh, whatever air time is left: its caller has spent it.
    pub(super) fn say(
        &mut self,
        id: InterfaceId,
        what: MessageType,
        body: &[u8],
        to: UnitReceiver,
    ) {
        let Some(interface) = self.interfaces.get(&id) else { return };
        let Ok(unit) = self.voice.say(interface.medium.form, what, body) else { return };
        self.counters.control_bytes += unit.len() as u64;
        self.send(id, to, unit, SendUrgency::Control);
    }

    /// Sends a unit, in parts if it is longer than the interface carries.
    pub(super) fn send(
        &mut self,
        id: InterfaceId,
        to: UnitReceiver,
        unit: Vec<u8>,
        urgency: SendUrgency,
    ) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        let air = interface.air(unit.len());
        interface.budget.spend(self.now, urgency, to, air);
        if unit.len() <= interface.medium.mtu {
            let unit = unit.into();
            self.outputs.push_back(MeshOutput::Send { interface: id, to, unit, urgency });
            return;
        }
        let parts = interface.numbers.parts;
        let Some(units) = split(&unit, interface.medium.mtu, parts) else {
            self.counters.fragments += 1;
            return;
        };
        let name = interface.part_name();
        interface.numbers.parts = parts.wrapping_add(1);
        interface.parts.sent.keep(SentFrame::new(name, to, units.clone()));
        let outputs = units.into_iter();
        self.outputs.extend(outputs.map(|unit| MeshOutput::Send {
            interface: id,
            to,
            unit,
            urgency,
        }));
    }

    /// Announces the machine.
    pub(super) fn announce(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        if !interface.may_announce(self.now) {
            return;
        }
        interface.announcement.told(self.now);
        let again =
            interface.announcement.in_parts.filter(|(_, at)| self.now.since(*at) < PARTS_KEPT);
        let again = again.and_then(|(id, _)| interface.parts.sent.get(id));
        if let Some(units) = again.map(|sent| sent.units.clone()) {
            // A neighbour that has heard some of these parts needs the others only.
            return self.send_parts(id, UnitReceiver::Everybody, SendUrgency::Control, units);
        }
        let parts = interface.part_name();
        interface.announcement.in_parts = Some((parts, self.now));
        let form = interface.medium.form;
        let Ok(frame) = self.voice.announcement() else { return };
        let Some(unit) = in_form(form, frame) else { return };
        self.counters.announcements += 1;
        self.counters.control_bytes += unit.len() as u64;
        self.send(id, UnitReceiver::Everybody, unit, SendUrgency::Control);
    }

    /// Says hello on an interface, and sets when the next one is due.
    pub(super) fn hello(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        if let Err(ready) = interface.may_greet(self.now) {
            interface.hello.at = ready;
            return;
        }
        let neighbours = self.neighbours.keys().filter(|link| link.interface == id).count();
        interface.adapt(neighbours, self.routes.len());
        // Never later than told, so that one that is late is one that is lost.
        let (least, most) =
            (interface.hello.interval.part(LAG_PART), interface.hello.interval.part(8));
        let early = least + self.random.within(MeshSpan(most.0 - least.0));
        let next = self.now + MeshSpan(interface.hello.interval.0 - early.0);
        let asks = interface.strangers.asks().clone();
        interface.count_hello(self.now, next);
        let (interval, load) = (interface.hello.interval, interface.channel.load());
        let hellos = interface.numbers.hellos;
        let digest = interface.digest_to_tell(self.digest);
        let mut hello = HelloMessage {
            sleeps: self.config.sleeps,
            asks: asks != AnnounceAsks::Nobody,
            sequence: hellos as u16,
            sent: self.stamp(),
            interval: interval.0.div_ceil(INTERVAL_STEP.0).min(u16::MAX.into()) as u16,
            load,
            hop_counter: (self.voice.hop().next() >> 8) as u32 & 0x00ff_ffff,
            digest,
            ..HelloMessage::default()
        };
        hello.gateways = self.nearest_gateways();
        self.list(id, hellos, asks.strangers(), &mut hello);
        if let Some(interface) = self.interfaces.get_mut(&id) {
            interface.hello.stamped(hello.sent, self.now);
        }
        self.counters.hellos += 1;
        self.counters.digests += u64::from(hello.digest.is_some());
        self.say(id, MessageType::Hello, &hello.to_bytes(), UnitReceiver::Everybody);
    }

    /// Lists the neighbours that have not been listed for longest, and gives time stamps back.
    /// Strangers take room of theirs.
    fn list(&mut self, id: InterfaceId, hellos: u64, strangers: &[Slot], hello: &mut HelloMessage) {
        let here = |link: &crate::neighbour::LinkId| link.interface == id;
        let near = || self.neighbours.values().filter(|one| here(&one.id));
        let new = near().filter(|one| one.has_news()).count();
        let near = NeighboursNear { neighbours: near().count(), new };
        let room = self.interfaces.get(&id).map(|one| one.hello_room(near, hello));
        let Some(room) = room else { return };
        let asks = hello.asks;
        let ones = self.neighbours.values_mut().filter(|one| here(&one.id));
        // One that is not heard and does not hear would be taken for a stranger.
        let mut ones: Vec<_> =
            ones.filter(|one| !(asks && one.quality.is_lost_both_ways())).collect();
        ones.sort_by_key(|one| (one.listing.listed, one.id));
        ones.truncate(room.neighbours.saturating_sub(strangers.len()));
        for one in &mut ones {
            one.listing.listed = hellos;
            let (slot, told) = (one.id.slot, one.quality.told().min(BEST));
            hello.neighbours.push(HelloNeighbour { slot, heard: one.tell_heard(), told });
        }
        let mut stamps: Vec<_> = ones.into_iter().enumerate().collect();
        stamps.retain(|(_, one)| one.listing.stamp.is_some());
        stamps.sort_by_key(|(at, one)| (one.listing.echoed, *at));
        for (at, one) in stamps.into_iter().take(room.echoes) {
            let Some(stamp) = one.listing.stamp.take() else { continue };
            one.listing.echoed = hellos;
            let index = at as u8;
            hello.echoes.push(HelloEcho { index, sent: stamp.sent, heard: stamp.heard });
        }
        hello.neighbours.extend(strangers.iter().map(|slot| HelloNeighbour::stranger(*slot)));
    }

    /// The two nearest gateways, or this one and the nearest other.
    fn nearest_gateways(&mut self) -> Vec<RouteDistance> {
        let mut slots: Vec<_> = self
            .routes
            .iter()
            .filter(|(_, one)| one.is_gateway)
            .filter_map(|(slot, one)| Some((one.selected?.metric, slot)))
            .collect();
        slots.sort_unstable();
        let mut gateways = vec![];
        if self.config.role == MachineRole::Gateway {
            gateways.push(self.own_distance());
        }
        let room = crate::limits::MAX_HELLO_GATEWAYS - gateways.len();
        for (_, slot) in slots.into_iter().take(room) {
            let told = self.routes.tell(slot, self.now, false);
            gateways.extend(told.map(|told| told.distance));
        }
        gateways
    }

    fn own_distance(&self) -> RouteDistance {
        RouteDistance { slot: self.voice.slot(), sequence: self.own_sequence, metric: 0 }
    }

    /// Tells neighbours the routes that are new, or all of them.
    pub(super) fn tell_routes(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        let (news, whole) = interface.routes.take();
        let own = self.voice.slot();
        let slots: Vec<_> = match whole {
            Some(_) => std::iter::once(own).chain(self.routes.iter().map(|one| one.0)).collect(),
            None => news,
        };
        self.tell_these(id, slots, whole);
        // By chance: two who were not heard since they told at once are not to do so again.
        let again = self.soon(id, AGAIN_PART);
        if let Some(interface) = self.interfaces.get_mut(&id).filter(|one| one.routes.is_any()) {
            interface.routes.hasten(again);
        }
    }

    fn tell_these(&mut self, id: InterfaceId, slots: Vec<Slot>, whole: Option<FullUpdate>) {
        let room = self.interfaces.get(&id).map_or(0, |one| one.room());
        let own = self.voice.slot();
        let (mut message, mut bytes) = (vec![], ROUTES_BYTES_MIN);
        let mut rest = slots.into_iter();
        while let Some(slot) = rest.next() {
            // A new route is told with its addresses: they may be new too.
            let with_addresses = whole != Some(FullUpdate::Distances);
            let told = if slot == own {
                self.own_route(with_addresses)
            } else {
                self.routes.tell(slot, self.now, with_addresses)
            };
            let Some(told) = told else { continue };
            if bytes + told.bytes() > room || message.len() == MAX_MESSAGE_ROUTES {
                let full = std::mem::take(&mut message);
                bytes = ROUTES_BYTES_MIN;
                if !self.say_routes(id, full) {
                    self.put_off(id, std::iter::once(slot).chain(rest));
                    return;
                }
            }
            bytes += told.bytes();
            message.push(told);
        }
        if !message.is_empty() {
            self.say_routes(id, message);
        }
    }

    fn own_route(&self, with_addresses: bool) -> Option<AdvertisedRoute> {
        if self.config.role == MachineRole::Quiet {
            return None;
        }
        let attached = Some(self.config.attached.clone());
        Some(AdvertisedRoute {
            distance: self.own_distance(),
            is_gateway: self.config.role == MachineRole::Gateway,
            attached: attached.filter(|tags| with_addresses && !tags.is_empty()),
        })
    }

    /// Sends one route message if there is air time; else its routes are put off.
    fn say_routes(&mut self, id: InterfaceId, routes: Vec<AdvertisedRoute>) -> bool {
        let Some(interface) = self.interfaces.get_mut(&id) else { return false };
        let bytes: usize = routes.iter().map(AdvertisedRoute::bytes).sum();
        if interface.may_tell(self.now, ScarceTurn::Routes, bytes + CONTROL_BYTES).is_err() {
            self.put_off(id, routes.iter().map(|route| route.distance.slot));
            return false;
        }
        interface.numbers.routes = interface.numbers.routes.wrapping_add(1);
        interface.told_routes(self.now, bytes + CONTROL_BYTES);
        let message = RouteMessage { sequence: interface.numbers.routes, routes };
        self.counters.route_messages += 1;
        self.say(id, MessageType::Routes, &message.to_bytes(), UnitReceiver::Everybody);
        true
    }

    /// Tells routes later, when there is air time again.
    fn put_off(&mut self, id: InterfaceId, slots: impl Iterator<Item = Slot>) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        interface.routes.put_off(slots);
        let room = interface.room() + CONTROL_BYTES;
        let ready = interface.may_tell(self.now, ScarceTurn::Routes, room).err();
        interface.routes.hasten(ready.unwrap_or(self.now + MeshSpan::millis(10)));
    }

    /// Sends the requests that wait on an interface.
    pub(super) fn ask_routes(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        let requests = interface.take_questions(self.now);
        if !requests.is_empty() {
            self.counters.requests += requests.len() as u64;
            self.say(
                id,
                MessageType::Request,
                &RouteRequest::write(&requests),
                UnitReceiver::Everybody,
            );
        }
    }

    /// Sends a probe, or an answer, if there is air time; else gives when there is.
    pub(super) fn probe(
        &mut self,
        id: InterfaceId,
        to: UnitReceiver,
        probe: NeighbourProbe,
    ) -> Result<(), MeshTime> {
        let interface = self.interfaces.get_mut(&id).ok_or(self.now)?;
        interface.may_tell(self.now, ScarceTurn::Probe, CONTROL_BYTES + NeighbourProbe::BYTES)?;
        self.counters.probes += 1;
        self.say(id, MessageType::Probe, &probe.to_bytes(), to);
        Ok(())
    }
}

/// A frame as a unit of an interface.
pub(super) fn in_form(form: Form, frame: Vec<u8>) -> Option<Vec<u8>> {
    if form == Form::Full {
        return Some(frame);
    }
    let mut unit = Vec::with_capacity(frame.len());
    LongFrame::of(&frame).ok()?.write(&mut unit);
    Some(unit)
}

/// A unit in parts of at most `mtu` bytes.
fn split(unit: &[u8], mtu: usize, id: u16) -> Option<Vec<Arc<[u8]>>> {
    let mut units = vec![];
    let mut keep = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut part = Vec::with_capacity(mtu);
        write(&mut part);
        units.push(part.into());
    };
    if mtu <= MAX_SHORT_UNIT_BYTES {
        let parts = ShortFragment::split(unit, id as u8, mtu).ok()?;
        parts.for_each(|part| keep(&|out| part.write(out)));
    } else {
        let parts = Fragment::split(unit, id, mtu).ok()?;
        parts.for_each(|part| keep(&|out| part.write(out)));
    }
    Some(units)
}

/// Something new is told again within one part of so many of a hello interval.
const AGAIN_PART: u64 = 2;
/// For so long parts of an announcement are sent again under their name: less than those who hear
/// some of them wait for the others.
const PARTS_KEPT: MeshSpan = MeshSpan::millis(4000);
/// The bytes around the body of a message of the mesh, about.
const CONTROL_BYTES: usize = crate::interface::COMPACT_BYTES;
