//! The handling of the units that a machine hears.

use sealane_frame::{CompactUnit, FrameError, FrameKind, FrameUnit, FrameView, PeerTag};
use sealane_seal::{Form, Slot};

use super::Mesh;
use crate::hop::{HopReader, HopSender};
use crate::interface::MeshInterface;
use crate::limits::MAX_MESH_NEIGHBOURS;
use crate::messages::{AdvertisedRoute, MessageType};
use crate::neighbour::{HeardAt, HelloStamp, LinkId, MeshNeighbour};
use crate::parts::PartAt;
use crate::routes::{ROUTE_INTERVALS, UpdateResult, is_later};
use crate::strangers::StrangerAsk;
use crate::voice::HopMessage;
use crate::{
    HelloMessage, InterfaceId, MeshAddress, MeshError, MeshEvent, MeshSpan, MeshTime, MissingParts,
    NeighbourProbe, RouteDistance, RouteMessage, RouteRequest, RouteTrace, UnitReceiver,
};

/// Where a unit came from.
#[derive(Debug, Clone, Copy)]
struct UnitOrigin {
    interface: InterfaceId,
    address: MeshAddress,
}

impl Mesh {
    pub(super) fn heard(&mut self, interface: InterfaceId, address: MeshAddress, unit: &[u8]) {
        let Some(form) = self.interfaces.get(&interface).map(|one| one.medium.form) else {
            return;
        };
        let from = UnitOrigin { interface, address };
        let heard = match form {
            Form::Full => self.full_unit(from, unit),
            Form::Compact => self.compact_unit(from, unit),
        };
        if let Err(error) = heard
            && self.refuse(error)
        {
            let slot = self.voice.claimed_by_unit(form, unit);
            self.ask_strangers(interface, slot);
        }
    }

    /// Counts what was refused. Whether its sender is to announce itself.
    fn refuse(&mut self, error: MeshError) -> bool {
        use sealane_seal::Error as Seal;
        match error {
            MeshError::Frame(FrameError::Seal(Seal::Reflected)) => {
                self.counters.reflected += 1;
                let is_told = self.warned_at.is_some_and(|at| self.now.since(at) < WARN_PAUSE);
                if !is_told {
                    self.warned_at = Some(self.now);
                    self.event(MeshEvent::OwnSlotHeard);
                }
                false
            }
            MeshError::Frame(FrameError::Seal(Seal::Replayed | Seal::Stale))
            | MeshError::HopReplayed => {
                self.counters.repeats += 1;
                false
            }
            MeshError::Frame(
                // In an epoch that is not known here, somebody has gone on who can give its
                // order. Who has obeyed one since it announced itself is not authentic before it
                // does so again.
                FrameError::Seal(
                    Seal::Unannounced | Seal::NotMember | Seal::EpochUnknown | Seal::NotAuthentic,
                )
                | FrameError::Unannounced
                | FrameError::UnknownSource,
            ) => {
                self.counters.unopened += 1;
                true
            }
            MeshError::Frame(FrameError::Seal(_)) | MeshError::HopSeal | MeshError::NotOurs => {
                self.counters.unopened += 1;
                false
            }
            _ => {
                self.counters.malformed += 1;
                false
            }
        }
    }

    /// Somebody is there who is to announce itself, and may not know this machine either. Nothing
    /// proves the slot that it claims.
    fn ask_strangers(&mut self, id: InterfaceId, slot: Option<Slot>) {
        let (announce, hello) = (self.soon(id, 16), self.soon(id, 8));
        // A neighbour's slot is not told as one that is not heard because somebody claims it.
        let is_free =
            |slot: &Slot| !self.neighbours.contains_key(&LinkId { interface: id, slot: *slot });
        let slot = slot.filter(is_free);
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        let asking = interface.ask_stranger(self.now, slot);
        if asking == StrangerAsk::Soon {
            interface.hasten_announcement(announce);
        }
        if asking != StrangerAsk::NotNow {
            interface.hasten_hello(hello.max(announce));
        }
    }

    fn full_unit(&mut self, from: UnitOrigin, unit: &[u8]) -> Result<(), MeshError> {
        match FrameUnit::parse(unit)? {
            FrameUnit::Frame(frame) => self.frame(from, Form::Full, frame),
            FrameUnit::Fragment(_) => self.part(from, unit),
            FrameUnit::Batch(batch) => {
                for one in batch {
                    self.full_unit(from, one)?;
                }
                Ok(())
            }
        }
    }

    fn compact_unit(&mut self, from: UnitOrigin, unit: &[u8]) -> Result<(), MeshError> {
        match CompactUnit::parse(unit)? {
            CompactUnit::Frame(frame) => {
                let said = self.voice.hear(Form::Compact, frame)?;
                self.said(from, said)
            }
            CompactUnit::Long(_) => self.frame(from, Form::Compact, unit),
            CompactUnit::Fragment(_) | CompactUnit::Short(_) => self.part(from, unit),
            CompactUnit::Batch(batch) => {
                for one in batch {
                    self.compact_unit(from, one)?;
                }
                Ok(())
            }
            // Words of other groups: frames of theirs come in the full form here.
            CompactUnit::Definition(_) | CompactUnit::Ask(_) => Ok(()),
        }
    }

    /// Takes a part of a frame, and the frame if it was the last one.
    fn part(&mut self, from: UnitOrigin, unit: &[u8]) -> Result<(), MeshError> {
        let now = self.now;
        let Some(interface) = self.interfaces.get_mut(&from.interface) else { return Ok(()) };
        let name = MeshInterface::name_of(from.address);
        let part = CompactUnit::parse(unit)?;
        let at = match &part {
            CompactUnit::Short(part) => part_at(from.address, &part.header()),
            CompactUnit::Fragment(part) => part_at(from.address, &part.header()),
            _ => return Ok(()),
        };
        if at.is_some_and(|at| interface.parts.wanted.has_ended(now, at.from, at.id)) {
            return Ok(());
        }
        let is_known = interface.addresses.contains_key(&from.address);
        // Those whom nobody knows take no room from neighbours, however many they make up.
        let parts =
            if is_known { &mut interface.parts.known } else { &mut interface.parts.strangers };
        let Ok(whole) = parts.take(now, name, &part) else {
            self.counters.fragments += 1;
            return Ok(());
        };
        let pause = interface.medium.air(interface.medium.mtu).times(4).max(PART_PAUSE);
        let Some(whole) = whole else {
            match at {
                Some(at) if is_known => interface.parts.wanted.came(now, at, pause),
                // Perhaps parts of an announcement, or of what cannot be read without one.
                _ => self.ask_strangers(from.interface, None),
            }
            return Ok(());
        };
        if let Some(at) = at {
            interface.parts.wanted.ends(now, at.from, at.id, pause);
        }
        match (interface.medium.form, whole.first()) {
            // A frame of parts may not be one of parts again, or several.
            (_, None | Some(0 | 1)) | (Form::Compact, Some(64..=127)) => {
                Err(FrameError::BadFragment.into())
            }
            (Form::Full, _) => self.full_unit(from, &whole),
            (Form::Compact, _) => self.compact_unit(from, &whole),
        }
    }

    /// Takes a frame in the full form, or a unit that holds one without its hops.
    fn frame(&mut self, from: UnitOrigin, form: Form, unit: &[u8]) -> Result<(), MeshError> {
        let own = self.voice.tag();
        let by = self.neighbour_at(from);
        let tag = by.and_then(|by| self.neighbours.get(&by)).map(|one| one.tag);
        let whole = |unit: &[u8]| -> Result<Vec<u8>, MeshError> {
            let CompactUnit::Long(long) = CompactUnit::parse(unit)? else {
                return Err(FrameError::UnknownVersion.into());
            };
            let mut frame = vec![];
            long.expand(own, tag.unwrap_or(PeerTag::NOBODY), &mut frame);
            Ok(frame)
        };
        let frame = if form == Form::Full { unit.to_vec() } else { whole(unit)? };
        if self.voice.is_own(&frame) {
            return self.own_frame(from, &frame);
        }
        let Some(by) = by else {
            self.counters.stranger += 1;
            return Ok(());
        };
        let is_sealed = self.interfaces.get(&from.interface).is_some_and(|i| i.medium.hop_seal);
        if !is_sealed {
            self.carry(frame, Some(by));
            return Ok(());
        }
        let Some(neighbour) = self.neighbours.get_mut(&by) else { return Ok(()) };
        let opened = neighbour.hop.open(unit)?;
        neighbour.is_there(self.now);
        self.look_at(by);
        let frame = if form == Form::Full { opened.to_vec() } else { whole(opened)? };
        self.carry(frame, Some(by));
        Ok(())
    }

    fn neighbour_at(&self, from: UnitOrigin) -> Option<LinkId> {
        let slot = *self.interfaces.get(&from.interface)?.addresses.get(&from.address)?;
        Some(LinkId { interface: from.interface, slot })
    }

    /// Takes a frame that the mesh's own seal protects.
    fn own_frame(&mut self, from: UnitOrigin, frame: &[u8]) -> Result<(), MeshError> {
        let is_control = FrameView::peek(frame).is_some_and(|one| one.kind() == FrameKind::Control);
        if is_control {
            match self.voice.hear_announcement(frame) {
                Ok(true) => self.started_anew(from.interface),
                Ok(false) => {}
                Err(error) if is_past(&error) => self.hear_behind(from.interface, frame)?,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
        match self.voice.hear(Form::Full, frame) {
            Ok(said) => self.said(from, said),
            Err(error) if is_past(&error) => self.hear_behind(from.interface, frame),
            Err(error) => Err(error),
        }
    }

    /// A neighbour has started: it knows nobody.
    fn started_anew(&mut self, id: InterfaceId) {
        let (announce, hello) = (self.soon(id, 16), self.soon(id, 8));
        if let Some(interface) = self.interfaces.get_mut(&id) {
            interface.hasten_announcement(announce);
            interface.hasten_hello(hello);
        }
    }

    fn said(&mut self, from: UnitOrigin, said: HopMessage) -> Result<(), MeshError> {
        if !self.voice.is_member(said.by.slot) {
            // It still holds the epoch before the one in which it was removed.
            return Err(MeshError::NotOurs);
        }
        let link = LinkId { interface: from.interface, slot: said.by.slot };
        self.forget_before(link, said.by);
        self.note_epoch(link, said.by.epoch);
        let done = match said.what {
            MessageType::Hello => HelloMessage::parse(&said.body).and_then(|hello| {
                check_distances(link.slot, hello.gateways.iter())?;
                self.hear_hello(from, &said, &hello);
                Ok(())
            }),
            MessageType::Routes => RouteMessage::parse(&said.body).and_then(|told| {
                check_distances(link.slot, told.routes.iter().map(|route| &route.distance))?;
                self.hear_routes(link, &told);
                Ok(())
            }),
            MessageType::Request => RouteRequest::parse(&said.body)
                .map(|all| all.iter().for_each(|one| self.hear_request(link, *one))),
            MessageType::Probe => {
                NeighbourProbe::parse(&said.body).map(|probe| self.hear_probe(link, probe))
            }
            MessageType::Missing => {
                MissingParts::parse(&said.body).map(|missing| self.hear_missing(link, missing))
            }
            MessageType::Trace => {
                RouteTrace::parse(&said.body).map(|trace| self.hear_trace(link, trace))
            }
            MessageType::Documents => self.hear_documents(link, &said.body),
            MessageType::Report => Err(MeshError::NotOurs),
            MessageType::Held | MessageType::Asked | MessageType::Pieces | MessageType::Removal => {
                self.hear_orders(link, &said)
            }
        };
        if done.is_err() {
            self.event(MeshEvent::Faulty { slot: said.by.slot });
        }
        done
    }

    /// Forgets a neighbour that has started anew, whatever it is heard by first. What it told
    /// before holds no more: it may learn it back from here.
    fn forget_before(&mut self, id: LinkId, by: HopSender) {
        if self.neighbours.get(&id).is_some_and(|one| one.hop.sender().context != by.context) {
            self.lose(id);
        }
    }

    fn hear_hello(&mut self, from: UnitOrigin, said: &HopMessage, hello: &HelloMessage) {
        let id = LinkId { interface: from.interface, slot: said.by.slot };
        let at = HeardAt { id, tag: said.tag, address: from.address, now: self.now };
        if !self.neighbours.contains_key(&id) && !self.meet(at, said.by, hello) {
            return;
        }
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        if !is_later(hello.sequence, neighbour.hello.sequence) {
            self.counters.repeats += 1;
            return;
        }
        if neighbour.hop.sender() == said.by {
            neighbour.hop.go_on_at(u64::from(hello.hop_counter) << 8);
        } else if let Some(hop) = hop_reader(&self.voice, said.by, hello) {
            neighbour.hop = hop;
        }
        let stamp =
            HelloStamp { sent: hello.sent, heard: (self.now.0 as u32).wrapping_add(self.clock) };
        let Some(interface) = self.interfaces.get_mut(&from.interface) else { return };
        if neighbour.address != from.address {
            interface.addresses.remove(&neighbour.address);
            interface.addresses.insert(from.address, id.slot);
        }
        let is_back = neighbour.watch.is_silent();
        neighbour.hear(at, hello);
        neighbour.listing.stamp = Some(stamp);
        let was_usable = neighbour.cost().is_some();
        let own = self.voice.slot();
        if let Some(listed) = hello.neighbours.iter().find(|listed| listed.slot == own) {
            neighbour.quality.note_told(listed.heard, self.now);
        }
        let reader = HelloReader { own, now: self.now, since: self.obeyed_at };
        self.counters.bad_echoes += take_echoes(neighbour, interface, hello, reader);
        neighbour.settle(self.now);
        let is_proven = neighbour.proof.is_proven;
        let is_usable = neighbour.cost().is_some();
        let knows_this = neighbour.knows_this(self.now);
        let until = self.now + neighbour.hello.interval.times(ROUTE_INTERVALS);
        if hello.asks_of(own) && !knows_this {
            let at = self.soon(from.interface, 8);
            if let Some(interface) = self.interfaces.get_mut(&from.interface) {
                interface.hasten_announcement(at);
            }
        }
        if is_usable && !was_usable {
            self.tell_all(from.interface);
        }
        self.ask_lacking(id);
        self.look_at(id);
        // Slow changes are looked at once a second.
        self.is_stale |= is_usable != was_usable || is_back;
        self.hear_digest(id, hello.digest, is_proven);
        for distance in hello.gateways.iter().filter(|_| is_proven) {
            let told = AdvertisedRoute { distance: *distance, is_gateway: true, attached: None };
            self.hear_route(id, &told, until);
        }
        self.give_kept(id);
    }

    /// Begins to know a neighbour, if there is room.
    fn meet(&mut self, at: HeardAt, by: HopSender, hello: &HelloMessage) -> bool {
        let hop = hop_reader(&self.voice, by, hello);
        let Some(hop) = hop.filter(|_| self.neighbours.len() < MAX_MESH_NEIGHBOURS) else {
            self.counters.no_room += 1;
            return false;
        };
        self.neighbours.insert(at.id, MeshNeighbour::new(at, hello, hop));
        let soon = self.soon(at.id.interface, 8);
        if let Some(interface) = self.interfaces.get_mut(&at.id.interface) {
            interface.addresses.insert(at.address, at.id.slot);
            interface.hasten_hello(soon);
        }
        self.event(MeshEvent::NeighbourFound { slot: at.id.slot, interface: at.id.interface });
        self.hasten_held(at.id.interface);
        true
    }

    fn hear_routes(&mut self, id: LinkId, told: &RouteMessage) {
        let at_once = self.interfaces.get(&id.interface).map_or(0, |one| one.routes_at_once());
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        let is_new = neighbour.routes.sequence.is_none_or(|last| is_later(told.sequence, last));
        if !neighbour.proof.is_proven || !is_new {
            self.counters.repeats += u64::from(!is_new);
            return;
        }
        neighbour.routes.sequence = Some(told.sequence);
        // A new route is told by itself; of all routes the own one is the first.
        let first = told.routes.first().map(|route| route.distance.slot);
        let is_most = 2 * told.routes.len() >= self.routes.len().min(at_once);
        neighbour.routes.has_told_all |= self.has_asked && first == Some(id.slot) && is_most;
        self.is_stale |= neighbour.watch.is_silent();
        neighbour.is_there(self.now);
        let until = self.now + neighbour.hello.interval.times(ROUTE_INTERVALS);
        self.look_at(id);
        told.routes.iter().for_each(|route| self.hear_route(id, route, until));
    }

    pub(super) fn hear_route(&mut self, id: LinkId, told: &AdvertisedRoute, until: MeshTime) {
        let slot = told.distance.slot;
        if slot == self.voice.slot() {
            return self.hear_own(told.distance.sequence);
        }
        if !self.voice.is_member(slot) {
            return;
        }
        if !self.has_asked && told.distance.metric > 0 {
            // It may lead to those who take this machine for what it was before it started anew.
            return;
        }
        match self.routes.hear(id, told, until) {
            UpdateResult::Known => return,
            UpdateResult::Taken => {}
            UpdateResult::Unfeasible => self.ask_later(slot, Some(id)),
        }
        self.stale.insert(slot);
    }

    fn hear_probe(&mut self, id: LinkId, probe: NeighbourProbe) {
        let is_for_us = probe.to == self.voice.slot();
        if !is_for_us && !probe.is_answer {
            return;
        }
        let now = self.now;
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        let address = neighbour.address;
        if !is_for_us {
            // Others missed the same hello.
            neighbour.is_there(now);
            return self.look_at(id);
        }
        if !probe.is_answer {
            neighbour.is_there(now);
            self.look_at(id);
            let is_crowded =
                self.interfaces.get(&id.interface).is_some_and(|i| i.channel.is_crowded());
            let to =
                if is_crowded { UnitReceiver::Everybody } else { UnitReceiver::Neighbour(address) };
            // Without air time for the answer the neighbour asks again.
            let _ = self.probe(
                id.interface,
                to,
                NeighbourProbe { is_answer: true, to: id.slot, ..probe },
            );
            return;
        }
        if let Some(sent) = neighbour.watch.answered(probe.number) {
            self.is_stale |= neighbour.watch.is_silent();
            neighbour.is_there(now);
            neighbour.quality.took(now.since(sent));
            self.look_at(id);
        }
    }

    /// Sends parts again that a neighbour lacks.
    fn hear_missing(&mut self, id: LinkId, missing: MissingParts) {
        if missing.to != self.voice.slot() || !self.neighbours.contains_key(&id) {
            return;
        }
        let Some(interface) = self.interfaces.get_mut(&id.interface) else { return };
        let Some(sent) = interface.parts.sent.get(missing.id) else { return };
        let address = self.neighbours.get(&id).map(|one| one.address);
        if sent.to != UnitReceiver::Everybody
            && Some(sent.to) != address.map(UnitReceiver::Neighbour)
        {
            return;
        }
        let (to, units) = (sent.to, sent.lacking(missing.parts));
        self.send_parts(id.interface, to, crate::SendUrgency::Normal, units);
    }
}

/// Whether a frame was refused since its sender holds an earlier epoch.
fn is_past(error: &MeshError) -> bool {
    matches!(error, MeshError::Frame(FrameError::Seal(sealane_seal::Error::EpochPast)))
}

/// Refuses a message in which another machine than its sender has the metric 0. After a start such
/// a distance is taken for that of a neighbour.
fn check_distances<'a>(
    by: Slot,
    mut told: impl Iterator<Item = &'a RouteDistance>,
) -> Result<(), MeshError> {
    let is_false = told.any(|distance| distance.metric == 0 && distance.slot != by);
    if is_false { Err(MeshError::Range) } else { Ok(()) }
}

/// The reader of a hello, and the time.
#[derive(Debug, Clone, Copy)]
struct HelloReader {
    own: Slot,
    now: MeshTime,
    /// When it started, or obeyed its last order.
    since: MeshTime,
}

/// Takes the time stamps that come back to this machine, and counts those that cannot be.
fn take_echoes(
    neighbour: &mut MeshNeighbour,
    interface: &MeshInterface,
    hello: &HelloMessage,
    reader: HelloReader,
) -> u64 {
    let HelloReader { own, now, since } = reader;
    let mut bad = 0;
    for echo in &hello.echoes {
        let listed = hello.neighbours.get(usize::from(echo.index));
        if listed.is_none_or(|listed| listed.slot != own) {
            continue;
        }
        let held = MeshSpan(hello.sent.wrapping_sub(echo.heard).into());
        let whole = interface.hello.stamp(echo.sent).map(|sent| now.since(sent));
        let round_trip = whole.and_then(|whole| whole.0.checked_sub(held.0)).map(MeshSpan);
        match round_trip {
            Some(round_trip) if neighbour.quality.took(round_trip) => {
                neighbour.proof.is_proven = true;
                neighbour.proof.has_opened |= whole.is_some_and(|whole| now.since(since) >= whole);
            }
            _ => bad += 1,
        }
    }
    bad
}

fn hop_reader(
    voice: &crate::voice::MeshVoice,
    by: HopSender,
    hello: &HelloMessage,
) -> Option<HopReader> {
    let secret = voice.epochs().secret(by.epoch)?;
    Some(HopReader::new(secret, by, u64::from(hello.hop_counter) << 8))
}

/// The place of a part, from its header.
fn part_at(from: MeshAddress, header: &[u8]) -> Option<PartAt> {
    match *header {
        [first, second] => Some(PartAt {
            from,
            id: u16::from((first << 1 | second >> 7) & 0x7f),
            index: u16::from(second & 0x3f),
            is_last: second & 0x40 != 0,
        }),
        [_, id_low, id_high, low, high, ..] => {
            let index = u16::from_le_bytes([low, high]);
            let id = u16::from_le_bytes([id_low, id_high]);
            Some(PartAt { from, id, index: index & 0x7fff, is_last: index >> 15 == 1 })
        }
        _ => None,
    }
}

/// How long the sender of parts may be silent between two of them, at least.
const PART_PAUSE: MeshSpan = MeshSpan::millis(20);
/// The shortest time between two warnings of the own slot.
const WARN_PAUSE: MeshSpan = MeshSpan::seconds(60);
