//! Data on its way: to one machine, or to everybody.

use std::sync::Arc;

use sealane_frame::{ANNOUNCEMENT_TYPE, FrameAtHop, FrameKind, FrameView, Header, PeerTag};
use sealane_message::DataType;
use sealane_seal::{Class, Slot};

use super::Mesh;
use super::tell::in_form;
use crate::floods::{FloodId, QueuedFrame, TOLD_ENOUGH, WaitingFrame};
use crate::limits::{MAX_FLOOD_WAIT_MS, MAX_URGENT_TELLS, MIN_SEND_WINDOW_MS};
use crate::messages::{GatewayReport, MessageType};
use crate::neighbour::{COST_MIN, LinkId, NeighbourFrame};
use crate::reports::{FrameFate, GatewayPair, VanishProof};
use crate::table::NextHop;
use crate::{
    InterfaceId, MachineRole, MeshAddress, MeshEvent, MeshOutput, MeshSpan, RouteLeg, SendUrgency,
    UnitReceiver,
};

impl Mesh {
    /// Takes a frame that was made on this machine.
    pub(super) fn originate(&mut self, frame: &[u8]) {
        let mut frame = frame.to_vec();
        let own = self.voice.tag().to_bytes();
        if let Some(next_hop) = frame.get_mut(..own.len()) {
            next_hop.copy_from_slice(&own);
        }
        self.carry(frame, None);
    }

    /// Takes a frame in the full form, from a neighbour or from this machine.
    pub(super) fn carry(&mut self, mut frame: Vec<u8>, from: Option<LinkId>) {
        let Ok(at) = FrameAtHop::parse(&mut frame, self.voice.tag()) else {
            let is_frame = FrameView::parse(&frame).is_ok();
            let counter = match is_frame {
                true => &mut self.counters.false_hop,
                false => &mut self.counters.malformed,
            };
            *counter += 1;
            return;
        };
        let header = *at.header();
        let by = from.and_then(|from| self.neighbours.get(&from));
        if from.is_some() && by.is_none_or(|by| by.tag != header.previous_hop()) {
            self.counters.false_hop += 1;
            return;
        }
        if self.voice.has_left(header.source()) {
            self.counters.unopened += 1;
            return;
        }
        if let Some(from) = from.filter(|_| self.is_here(header.source())) {
            self.counters.reflected += 1;
            if header.destination() == PeerTag::BROADCAST {
                self.heard_again(self.floods.id(&header, &frame), &header, from);
            }
            return;
        }
        if self.is_stray(&header) {
            self.counters.unopened += 1;
            return;
        }
        if !self.is_known(&header) {
            self.counters.unknown_source += 1;
            return;
        }
        if header.destination() == PeerTag::BROADCAST {
            return self.flood(frame, &header, from);
        }
        if self.is_here(header.destination()) {
            return self.arrive(frame, &header);
        }
        self.bring_nearer(frame, &header, from);
    }

    /// Passes a frame on to the next hop to its destination.
    fn bring_nearer(&mut self, mut frame: Vec<u8>, header: &Header, from: Option<LinkId>) {
        let Some(hop) = self.table.next(header.destination()).copied() else {
            return self.leads_nowhere(from.is_none());
        };
        let via = LinkId { interface: hop.interface, slot: hop.slot };
        if from == Some(via) {
            self.counters.backwards += 1;
            return;
        }
        let passed = FrameAtHop::parse(&mut frame, self.voice.tag());
        if passed.and_then(|at| at.pass_on(hop.tag)).is_err() {
            self.counters.hop_limit += 1;
            return;
        }
        let leg = RouteLeg {
            interface: hop.interface,
            next_hop: hop.tag,
            source: header.source(),
            destination: header.destination(),
            hop_limit: header.hop_limit(),
        };
        self.went(&leg, 1);
        self.pass(frame.into(), header, &hop, from);
    }

    /// Drops a frame that nobody here can bring nearer.
    fn leads_nowhere(&mut self, is_own: bool) {
        self.counters.no_route += 1;
        self.counters.own_no_route += u64::from(is_own);
    }

    /// Whether a frame says that it is a message of the mesh that nobody sends on, whatever its hop
    /// limit: all but reports go from neighbour to neighbour.
    fn is_stray(&self, header: &Header) -> bool {
        let is_report = header.class() == Class::Signed
            && header.data_type() == MessageType::Report as u16
            && header.destination() == PeerTag::BROADCAST;
        header.is_routing(self.voice.group()) && !is_report
    }

    /// Whether frames of a source are carried. The reports of the mesh's own group always are.
    fn is_known(&self, header: &Header) -> bool {
        let Some(sources) = self.sources.as_ref() else { return true };
        header.is_routing(self.voice.group())
            || sources.get(&header.source()) == Some(&header.group())
    }

    /// Counts frames that have come to this gateway by a data path of the driver's own.
    pub(super) fn came(&mut self, source: PeerTag, frames: u16) {
        if self.config.role == MachineRole::Gateway
            && let Some(slot) = self.machine_of(source)
        {
            self.reports.came(slot, frames);
        }
    }

    /// Counts frames that go to a gateway by the hop in use, if they may travel far enough to get
    /// there.
    pub(super) fn went(&mut self, leg: &RouteLeg, frames: u16) {
        let machine = self.table.machine(leg.destination);
        let route = machine.and_then(|slot| self.table.route(slot));
        let Some(gateway) = route.filter(|route| route.is_gateway) else { return };
        let NextHop { slot, tag, interface, .. } = gateway.hop;
        if (interface, tag) != (leg.interface, leg.next_hop) {
            // A data path may be a little behind. Nobody else is blamed for that.
            return;
        }
        let (hops, is_own) = (u16::from(leg.hop_limit), self.is_here(leg.source));
        let of = match is_own {
            true => Some(self.voice.slot()),
            false => self.table.machine(leg.source),
        };
        if let Some(of) = of.filter(|_| is_own || hops >= gateway.metric / COST_MIN) {
            let pair = GatewayPair { gateway: gateway.to, of };
            self.reports.carried(pair, LinkId { interface, slot }, frames.into());
        }
    }

    /// A frame has come that is for this machine.
    fn arrive(&mut self, frame: Vec<u8>, header: &Header) {
        self.came(header.source(), 1);
        self.counters.delivered += 1;
        self.outputs.push_back(MeshOutput::Deliver { frame });
    }

    /// The machine on which an address lives, whether there is a route to it or not.
    fn machine_of(&self, address: PeerTag) -> Option<Slot> {
        let members = self.voice.members().iter();
        let known = self.table.machine(address);
        known.or_else(|| members.filter(|one| one.tag == address).map(|one| one.term.slot).next())
    }

    /// Sends a frame to its next hop, or has it wait: the next hop sleeps, or there is no air time.
    fn pass(&mut self, frame: Arc<[u8]>, header: &Header, hop: &NextHop, from: Option<LinkId>) {
        let id = LinkId { interface: hop.interface, slot: hop.slot };
        let kept = NeighbourFrame { frame, urgency: urgency(header), from };
        match self.neighbours.get_mut(&id).filter(|one| one.hello.sleeps) {
            Some(neighbour) => {
                if let Some(left) = neighbour.kept.keep(kept) {
                    self.dropped(left.urgency, left.from.is_none());
                }
            }
            None => self.hand_on(hop.interface, hop.address, kept),
        }
    }

    /// Gives a neighbour that was heard what was kept for it.
    pub(super) fn give_kept(&mut self, id: LinkId) {
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        let (address, kept) = (neighbour.address, neighbour.kept.take());
        kept.into_iter().for_each(|kept| self.hand_on(id.interface, address, kept));
    }

    /// Has a frame for one neighbour wait for its air time.
    fn hand_on(&mut self, interface: InterfaceId, to: MeshAddress, kept: NeighbourFrame) {
        let NeighbourFrame { frame, urgency, from } = kept;
        let patience = match from {
            Some(_) => self.patience_on(interface, urgency, frame.len()),
            None => patience(urgency),
        };
        self.wait(WaitingFrame {
            interface,
            to: UnitReceiver::Neighbour(to),
            frame,
            urgency,
            due: self.now,
            until: self.now + patience,
            from,
            is_documents: false,
            flood: None,
            heard_of: vec![],
        });
    }

    pub(super) fn wait(&mut self, waiting: WaitingFrame) {
        if let Some(left) = self.floods.wait(waiting) {
            self.dropped(left.urgency, left.is_own());
        }
    }

    /// How long a frame of others waits for air time: where there is a duty cycle, as long as it
    /// takes to earn that of two such frames, since it has cost air time already.
    fn patience_on(&self, id: InterfaceId, urgency: SendUrgency, bytes: usize) -> MeshSpan {
        let interface = self.interfaces.get(&id).filter(|one| one.medium.has_duty());
        let earned = interface.map(|one| one.budget.paced(urgency, one.air(bytes).times(2)));
        earned.unwrap_or_default().max(patience(urgency))
    }

    /// Takes a frame to everybody.
    fn flood(&mut self, frame: Vec<u8>, header: &Header, from: Option<LinkId>) {
        let id = self.floods.id(header, &frame);
        if !self.floods.is_new(id) {
            self.counters.repeats += 1;
            if let Some(from) = from {
                self.heard_again(id, header, from);
            }
            return;
        }
        let mut onward = frame.clone();
        let at = FrameAtHop::parse(&mut onward, self.voice.tag());
        let goes_on = at.and_then(|at| at.pass_on(PeerTag::BROADCAST)).is_ok();
        if goes_on {
            self.flood_on(onward.into(), header, from, id);
        } else {
            self.counters.hop_limit += 1;
        }
        let Some(from) = from else { return };
        if is_report(header) {
            self.hear_report(&frame, from);
        } else {
            self.counters.delivered += 1;
            self.outputs.push_back(MeshOutput::Deliver { frame });
        }
    }

    /// Has a frame to everybody wait on each interface where others may not have heard it.
    fn flood_on(&mut self, frame: Arc<[u8]>, header: &Header, from: Option<LinkId>, id: FloodId) {
        let urgency = urgency(header);
        let mut is_heard = false;
        for interface in self.interfaces.keys().copied().collect::<Vec<_>>() {
            let others = self.neighbours.keys().filter(|one| one.interface == interface);
            let others = others.filter(|one| Some(**one) != from).count() as u64;
            if others == 0 {
                continue;
            }
            is_heard = true;
            let brought = from.filter(|from| from.interface == interface);
            let moments = self.moments(interface, frame.len(), others);
            let late = match from {
                Some(_) => {
                    let stage = self.random.word() % moments.stages;
                    moments.window.times(stage) + self.random.within(moments.window)
                }
                None => MeshSpan(0),
            };
            self.wait(WaitingFrame {
                interface,
                to: UnitReceiver::Everybody,
                frame: Arc::clone(&frame),
                urgency,
                due: self.now + late,
                until: self.now + late + patience(urgency),
                from,
                is_documents: false,
                flood: Some(id),
                heard_of: brought.into_iter().map(|from| from.slot).collect(),
            });
        }
        if from.is_none() && !is_heard {
            self.leads_nowhere(true);
        }
    }

    /// When those send a frame on who hear each other: the more of them, the more moments.
    fn moments(&self, interface: InterfaceId, bytes: usize, others: u64) -> ForwardWindows {
        let air = self.interfaces.get(&interface).map(|one| one.air(bytes));
        let window = air
            .unwrap_or_default()
            .times(2 * others.min(STAGE))
            .max(MeshSpan::millis(MIN_SEND_WINDOW_MS));
        ForwardWindows { window, stages: others.div_ceil(STAGE).clamp(1, STAGES) }
    }

    /// A frame that waits here was sent on by a neighbour. It is dropped if it was heard twice, and
    /// no neighbour is known that has heard neither. Whoever misses a report hears the next one.
    fn heard_again(&mut self, id: FloodId, header: &Header, from: LinkId) {
        let near = self.neighbours.values().filter(|one| one.id.interface == from.interface);
        let near: Vec<_> = near.collect();
        let has_duty = self.has_duty(from.interface);
        // Where hellos are seldom nobody knows who is in a crowd: so many neighbours are one.
        let is_scarce = has_duty && near.len() > STAGE as usize;
        let is_enough = |heard_of: &[Slot]| {
            is_scarce
                || is_report(header)
                || near.iter().filter(|one| !one.hello.is_in_crowd()).all(|one| {
                    let hears = |slot: &Slot| *slot == one.id.slot || one.hello.is_near(*slot);
                    heard_of.iter().any(hears)
                })
        };
        let enough = TOLD_ENOUGH.min(near.len());
        self.counters.suppressed += self.floods.heard(id, from, enough, is_enough) as u64;
    }

    fn has_duty(&self, id: InterfaceId) -> bool {
        self.interfaces.get(&id).is_some_and(|one| one.medium.has_duty())
    }

    /// Has an urgent frame to everybody that was sent told again, unless enough neighbours were
    /// heard sending it on, or are until then. Nobody acknowledges what is for everybody, and where
    /// there is a duty cycle a frame that met another one is lost for long.
    fn tell_again(&mut self, queued: QueuedFrame) {
        let QueuedFrame { told, one, .. } = &queued;
        let has_duty = self.has_duty(one.interface);
        let near = self.neighbours.keys().filter(|id| id.interface == one.interface).count();
        let is_done = told + 1 >= MAX_URGENT_TELLS || one.heard_of.len() >= TOLD_ENOUGH.min(near);
        let is_urgent = one.flood.is_some() && one.urgency == SendUrgency::Urgent;
        if !is_urgent || !has_duty || is_done {
            return;
        }
        let moments = self.moments(one.interface, one.frame.len(), near as u64);
        let late = moments.window.times(moments.stages) + self.random.within(moments.window);
        let (due, until) = (self.now + late, self.now + late + patience(one.urgency));
        let one = WaitingFrame { due, until, ..queued.one };
        self.floods.put_back(QueuedFrame { told: queued.told + 1, one, ..queued });
    }

    /// Sends what waited and may go now.
    pub(super) fn send_waiting(&mut self) {
        let mut put_off: Vec<QueuedFrame> = vec![];
        while let Some(mut queued) = self.floods.next(self.now) {
            let one = &mut queued.one;
            let Some(interface) = self.interfaces.get_mut(&one.interface) else { continue };
            let around = match (one.is_documents, interface.medium.hop_seal) {
                (true, _) => interface.around(),
                (false, true) => crate::HOP_SEAL_BYTES,
                (false, false) => 0,
            };
            let air = interface.air(one.frame.len() + around);
            // A short frame does not take the air time for which a longer one has waited.
            let is_alike = |other: &&QueuedFrame| {
                (other.one.interface, other.one.urgency) == (one.interface, one.urgency)
            };
            let is_free = interface.budget.is_free(one.urgency, one.to);
            let ahead = put_off.iter().find(is_alike).filter(|_| !is_free).map(|one| one.one.due);
            if ahead.is_none() && interface.budget.may(self.now, one.urgency, one.to, air) {
                if !is_free {
                    self.floods.took_turn(one.is_own());
                }
                self.send_frame(&queued);
                self.tell_again(queued);
                continue;
            }
            if self.now >= one.until || !is_free && !interface.budget.fits(one.urgency, air) {
                let (urgency, is_own) = (one.urgency, one.is_own());
                if queued.told == 0 {
                    self.dropped(urgency, is_own);
                }
                continue;
            }
            let ready = ahead.unwrap_or_else(|| interface.budget.ready(self.now, one.urgency, air));
            one.due = ready.max(self.now + MeshSpan::millis(1)).min(one.until);
            put_off.push(queued);
        }
        put_off.into_iter().for_each(|one| self.floods.put_back(one));
    }

    fn send_frame(&mut self, queued: &QueuedFrame) {
        let QueuedFrame { told, one, .. } = queued;
        if one.is_documents {
            return self.send_documents(one);
        }
        let Some(interface) = self.interfaces.get(&one.interface) else { return };
        let medium = interface.medium;
        let Some(mut unit) = in_form(medium.form, one.frame.to_vec()) else { return };
        if medium.hop_seal {
            self.voice.hop().seal(&mut unit);
        }
        let counter = match one.flood {
            Some(_) => &mut self.counters.flooded,
            None => &mut self.counters.carried,
        };
        *counter += 1;
        self.counters.own_sent += u64::from(one.is_own() && *told == 0);
        self.counters.told_again += u64::from(*told > 0);
        self.send(one.interface, one.to, unit, one.urgency);
    }

    /// Sends parts of a frame again, as far as there is air time.
    pub(super) fn send_parts(
        &mut self,
        id: InterfaceId,
        to: UnitReceiver,
        urgency: SendUrgency,
        units: Vec<Arc<[u8]>>,
    ) {
        for unit in units {
            let Some(interface) = self.interfaces.get_mut(&id) else { return };
            let air = interface.air(unit.len());
            if !interface.budget.may(self.now, urgency, to, air) {
                return;
            }
            interface.budget.spend(self.now, urgency, to, air);
            self.counters.parts_again += 1;
            self.outputs.push_back(MeshOutput::Send { interface: id, to, unit, urgency });
        }
    }

    /// Tells all machines how many of their frames came to this gateway.
    pub(super) fn report(&mut self) {
        let report = self.reports.next(self.voice.start_ms());
        if let Ok(frame) = self.voice.report(&report.to_bytes()) {
            self.counters.reports += 1;
            self.originate(&frame);
        }
    }

    /// Looks in a gateway's report for what has become of frames that were sent or carried to it.
    fn hear_report(&mut self, frame: &[u8], from: LinkId) {
        let by = self.voice.claimed(frame);
        if !by.is_some_and(|gateway| self.reports.awaits(gateway)) || !self.may_verify(from) {
            // No signature has to be verified for what nothing follows from.
            return;
        }
        let said = self.voice.hear_report(frame);
        let report = said.and_then(|said| {
            let report = GatewayReport::parse(&said.body)?;
            Ok((said, report))
        });
        let Ok((said, report)) = report else {
            self.did_not_verify(from);
            self.counters.unopened += 1;
            return;
        };
        debug_assert!(said.what == MessageType::Report, "nothing else is signed");
        let gateway = said.by.slot;
        let destination = self.routes.get(gateway);
        let interfaces = &self.interfaces;
        let is_scarce =
            |via: LinkId| interfaces.get(&via.interface).is_none_or(|one| one.is_scarce());
        let needed = |via| {
            let told = destination.and_then(|one| one.ways().find(|(by, _)| *by == via));
            // Those behind it who carry the same frames leave a hole at once.
            let is_far = told.is_some_and(|(_, metric)| metric >= 2 * COST_MIN);
            let reports = if is_far { FAR } else { NEAR };
            VanishProof { reports, frames: if is_scarce(via) { FRAMES_SCARCE } else { FRAMES } }
        };
        for (via, fate) in self.reports.hear(gateway, &report, needed) {
            let route = self.table.route(gateway);
            if route.is_none_or(|route| route.hop.slot != via.slot) {
                continue;
            }
            let Some(neighbour) = self.neighbours.get_mut(&via) else { continue };
            if fate == FrameFate::Arrive {
                self.is_stale |= neighbour.blame.at(self.now).is_any();
                neighbour.blame.forgive();
                continue;
            }
            self.is_stale = true;
            neighbour.blame.blame(self.now);
            self.event(MeshEvent::BlackHole { via: via.slot, gateway });
            self.ask_later(gateway, None);
        }
    }
}

/// Whether a frame to everybody that is known to be carried is a report of a gateway.
fn is_report(header: &Header) -> bool {
    header.kind() == FrameKind::Routing
}

/// In which share of the air time a frame goes. A sender can choose the share, but not its size.
fn urgency(header: &Header) -> SendUrgency {
    match header.kind() {
        FrameKind::Control if header.data_type() == ANNOUNCEMENT_TYPE => SendUrgency::Low,
        FrameKind::Control => SendUrgency::Urgent,
        FrameKind::Message if DataType::from_number(header.data_type()).is_urgent() => {
            SendUrgency::Urgent
        }
        _ => SendUrgency::Normal,
    }
}

/// How long a frame waits for air time.
pub(super) fn patience(urgency: SendUrgency) -> MeshSpan {
    let usual = MeshSpan::millis(MAX_FLOOD_WAIT_MS);
    if urgency == SendUrgency::Urgent { usual.times(12) } else { usual }
}

/// When those send a frame on who hear each other: anywhere in one of so many windows.
struct ForwardWindows {
    window: MeshSpan,
    stages: u64,
}

/// Reports by which all has to vanish behind a next hop that reaches the gateway itself, and behind
/// another one.
const NEAR: u8 = 1;
const FAR: u8 = 2;
/// Frames of which all have to vanish; and as many where air time is scarce, and nothing is sent
/// again at the link, so that more are lost by chance.
const FRAMES: u32 = 6;
const FRAMES_SCARCE: u32 = 8;
/// So many neighbours find different moments in one window; where there are more, they choose one
/// of several, of which the later ones hear what was sent in the first.
const STAGE: u64 = 16;
/// Windows at most.
const STAGES: u64 = 8;
