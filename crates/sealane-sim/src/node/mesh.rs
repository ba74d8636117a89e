//! The machine of `sealane-mesh`, as it is shipped, with frames that are made here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealane_document::agent::DocumentNeighbour;
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_group::{EpochSource, GroupNotice};
use sealane_mesh as mesh;
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Form, Group, GroupId, History, Sealer, SenderContext,
    Slot, Suite,
};

use super::documents::{DocumentTeam, SimDocumentLimits, SimDocuments};
use super::{
    ProgramEffect, ProgramInput, SimFrameMark, SimMeshFinding, SimOffer, SimOutgoingUnit,
    SimUnitTarget, SimUrgency,
};
use crate::medium::{DOT11P_AIFS, DOT11P_SLOT, DOT11P_WINDOW};
use crate::scenario::{MeshRole, ProgramKind, Scenario};
use crate::{SimError, SimFrameCounts, SimMediumProfile, SimRandom, SimSpan, SimTime};

/// The group of the data that travels over the mesh, whose keys the mesh does not have.
const DATA_GROUP: [u8; 32] = [0xda; 32];
const DATA_TAG: GroupTag = GroupTag::from_bytes([0xda; 4]);
/// Of `spec/policy.md`: what is urgent on its own, and what is not.
const EMERGENCY: u16 = 7;
const COUNTER: u16 = 1;

/// The members of the mesh of a scenario, and the source of their keys.
pub(crate) struct SimMeshMembers {
    keys: SimMeshKeys,
    seats: Vec<SimMeshSeat>,
    seed: u64,
    /// Where a flow is of documents.
    team: Option<DocumentTeam>,
}

/// A machine in the mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimMeshSeat {
    pub(super) node: u32,
    pub(super) slot: Slot,
    pub(super) tag: PeerTag,
}

/// Where the keys of a mesh come from.
enum SimMeshKeys {
    /// Nobody is in it.
    Nobody,
    /// They are those of the seed.
    Seed(mesh::MeshProvision),
    /// Each machine is a member of a group of people, and obeys its orders.
    Held(BTreeMap<u32, Mutex<sealane_group::GroupMember>>),
}

impl SimMeshMembers {
    /// All machines of kind `mesh`, in their order, in a group of the seed.
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        let nodes = (0..).zip(&scenario.nodes);
        let nodes = nodes.filter(|(_, plan)| matches!(plan.kind, ProgramKind::Mesh { .. }));
        let nodes: Vec<u32> = nodes.map(|(node, _)| node).collect();
        if nodes.is_empty() {
            return Ok(Self { keys: SimMeshKeys::Nobody, seats: vec![], seed, team: None });
        }
        let mut random = SimRandom::new(seed, "crew", 0);
        let members = u16::try_from(nodes.len()).unwrap_or(u16::MAX);
        let provision = mesh::MeshProvision::new(key(&mut random), members);
        let provision = provision.map_err(|error| SimError::Value(format!("the mesh: {error}")))?;
        let seat = |(slot, node)| {
            Some(SimMeshSeat { node, slot: Slot::new(slot)?, tag: provision.tag(slot) })
        };
        let seats = (0..).zip(nodes).filter_map(seat).collect();
        Self { keys: SimMeshKeys::Seed(provision), seats, seed, team: None }
            .with_documents(scenario)
    }

    /// Has its machines keep documents, if a flow of the scenario is of them.
    pub(crate) fn with_documents(mut self, scenario: &Scenario) -> Result<Self, SimError> {
        if scenario.flows.iter().all(|flow| flow.document.is_none()) {
            return Ok(self);
        }
        let air = self.seats.iter().filter_map(|seat| {
            let plan = scenario.nodes.get(seat.node as usize)?;
            let media = plan.media.iter().filter_map(|at| scenario.media.get(*at));
            let media: Vec<_> = media.map(|one| medium(&one.profile, one.duty_ppm)).collect();
            Some((seat.node, SimDocumentLimits::of(&media)?))
        });
        let mut random = SimRandom::new(self.seed, "documents", 0);
        self.team = Some(DocumentTeam::new(&self.seats, air.collect(), || key(&mut random))?);
        Ok(self)
    }

    /// Machines with the keys of a group of people, by their places in the list of all.
    ///
    /// # Errors
    ///
    /// A refusal of the group.
    pub(crate) fn of_group(
        members: BTreeMap<u32, sealane_group::GroupMember>,
        seed: u64,
    ) -> Result<Self, sealane_group::Error> {
        let seat = |(node, member): (&u32, &sealane_group::GroupMember)| {
            Ok(SimMeshSeat { node: *node, slot: member.slot(), tag: member.source()? })
        };
        let seats = members.iter().map(seat).collect::<Result<Vec<_>, sealane_group::Error>>()?;
        let held = members.into_iter().map(|(node, member)| (node, Mutex::new(member)));
        Ok(Self { keys: SimMeshKeys::Held(held.collect()), seats, seed, team: None })
    }

    /// The machine that has a slot.
    pub(crate) fn node(&self, slot: Slot) -> Option<u32> {
        // Slots of a seed are the places in this list.
        let likely = self.seats.get(usize::from(slot.number())).filter(|one| one.slot == slot);
        let seat = likely.or_else(|| self.seats.iter().find(|one| one.slot == slot));
        seat.map(|seat| seat.node)
    }

    fn seat(&self, node: u32) -> Option<&SimMeshSeat> {
        let at = self.seats.binary_search_by_key(&node, |seat| seat.node).ok()?;
        self.seats.get(at)
    }

    /// The keys of a machine when it starts.
    fn keys(&self, node: u32, context: [u8; 8], start_ms: u64) -> Option<mesh::Keys> {
        match &self.keys {
            SimMeshKeys::Nobody => None,
            SimMeshKeys::Seed(provision) => {
                provision.keys(self.seat(node)?.slot.number(), context, start_ms).ok()
            }
            SimMeshKeys::Held(members) => locked(members.get(&node)?).mesh_keys().ok(),
        }
    }

    /// Has a machine's member obey a notice, and gives what is new to the machine.
    fn obey(&self, node: u32, notice: &[u8]) -> Option<mesh::Rekeyed> {
        let SimMeshKeys::Held(members) = &self.keys else { return None };
        let mut member = locked(members.get(&node)?);
        let before = member.orders();
        let notice = GroupNotice::from_bytes(notice).ok()?;
        // A notice that cannot be obeyed leaves everything as it was.
        member.apply(&notice).ok()?;
        if member.orders() == before {
            return None;
        }
        member.mesh_rekeyed().ok()
    }
}

fn locked(
    member: &Mutex<sealane_group::GroupMember>,
) -> MutexGuard<'_, sealane_group::GroupMember> {
    member.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for SimMeshMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("seats", &self.seats).finish_non_exhaustive()
    }
}

/// The part that a scenario gives a machine in the mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimMeshAssignment {
    pub(super) role: MeshRole,
    /// Its turns, if it sleeps by turns: it tells its neighbours that it sleeps, and wishes to say
    /// hello once in each turn, so that they keep its frames so long.
    pub(super) turn: Option<SimSpan>,
}

/// A machine of the mesh.
pub(crate) struct SimMeshMachine {
    crew: Arc<SimMeshMembers>,
    node: u32,
    /// The mesh's own group.
    group: GroupTag,
    mesh: Box<mesh::Mesh>,
    sealer: Box<Sealer>,
    tag: PeerTag,
    turn: Option<SimSpan>,
    frame: FrameBuf,
    /// When the machine wants a tick, as it said after its last input.
    wakes: Option<SimTime>,
    /// Messages that were sealed and given to the mesh.
    offered: u64,
    documents: Option<Box<SimDocuments>>,
}

impl SimMeshMachine {
    /// Starts the machine, for the how manieth time; nothing if it is in no mesh.
    pub(super) fn new(
        crew: &Arc<SimMeshMembers>,
        post: SimMeshAssignment,
        node: u32,
        start: u32,
        now: SimTime,
    ) -> Option<Self> {
        let seat = *crew.seat(node)?;
        let mut random =
            SimRandom::new(crew.seed, "mesh", u64::from(start) << 32 | u64::from(node));
        let context = random.word().to_le_bytes();
        // Later than all earlier starts of the same machine.
        let start_ms = now.0 / 1000 + u64::from(start);
        let keys = crew.keys(node, context, start_ms)?;
        let own = keys.tag;
        let role = match post.role {
            MeshRole::Gateway => mesh::MachineRole::Gateway,
            MeshRole::Member => mesh::MachineRole::Member,
            MeshRole::Quiet => mesh::MachineRole::Quiet,
        };
        let (seed, sleeps) = (key(&mut random), post.turn.is_some());
        let config = mesh::Config { role, seed, sleeps, ..mesh::Config::default() };
        let group = Group::new(GroupId(DATA_GROUP), Suite::ChaCha20Poly1305);
        let secret = EpochSecret::new(DATA_GROUP);
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
        let mut sealer = Sealer::new(group, seat.slot, SenderContext(context), &epochs, 0).ok()?;
        let mut documents = None;
        if let Some(team) = &crew.team {
            sealer.set_signing_key(team.signing_key(node)?);
            documents = Some(Box::new(SimDocuments::new(team, seat, (group, DATA_TAG), epochs)?));
        }
        let mesh = Box::new(mesh::Mesh::new(config, keys, mesh::MeshTime(now.0)).ok()?);
        Some(Self {
            wakes: wakes(&mesh),
            mesh,
            sealer: Box::new(sealer),
            tag: seat.tag,
            turn: post.turn,
            node,
            group: own,
            crew: Arc::clone(crew),
            frame: FrameBuf::new(),
            offered: 0,
            documents,
        })
    }

    pub(super) fn next_wake(&self) -> Option<SimTime> {
        self.wakes
    }

    #[inline(never)]
    pub(super) fn take(
        &mut self,
        now: SimTime,
        input: ProgramInput<'_>,
        effects: &mut Vec<ProgramEffect>,
    ) {
        let at = mesh::MeshTime(now.0);
        let id = |port: usize| mesh::InterfaceId(port as u8);
        match input {
            ProgramInput::Up { port, profile, duty_ppm } => {
                let medium = medium(profile, duty_ppm);
                let turn = self.turn.map_or(medium.hello, |turn| mesh::MeshSpan(turn.0));
                let medium = mesh::MeshMedium { hello: medium.hello.max(turn), ..medium };
                self.mesh.take(at, mesh::MeshInput::Up { interface: id(port), medium });
            }
            ProgramInput::Heard { port, from, unit } => {
                let from = mesh::MeshAddress(u64::from(from));
                self.mesh.take(
                    at,
                    mesh::MeshInput::Heard { interface: id(port), from, unit: unit.into() },
                );
            }
            ProgramInput::Load { port, busy_ppm } => {
                self.mesh.take(at, mesh::MeshInput::Load { interface: id(port), busy_ppm });
            }
            ProgramInput::Offer(offer) => self.offer(at, offer, effects),
            ProgramInput::Tick => self.mesh.take(at, mesh::MeshInput::Tick),
        }
        self.follow(now, effects);
        self.wakes = wakes(&self.mesh);
    }

    /// Does what comes out of the mesh, and has it told what follows for documents.
    fn follow(&mut self, now: SimTime, effects: &mut Vec<ProgramEffect>) {
        loop {
            while let Some(output) = self.mesh.next_output() {
                match &output {
                    mesh::MeshOutput::Notice { group, notice } => {
                        self.obey(mesh::MeshTime(now.0), *group, notice);
                    }
                    mesh::MeshOutput::Digest { .. } | mesh::MeshOutput::Documents { .. } => {
                        self.hear_documents(&output, effects);
                    }
                    _ => effects.extend(self.effect(output)),
                }
            }
            let Some(documents) = &mut self.documents else { return };
            if !documents.tell(now, &mut self.mesh, &mut self.sealer) {
                return;
            }
        }
    }

    /// Takes what a neighbour says of documents. What came of others is delivered.
    fn hear_documents(&mut self, output: &mesh::MeshOutput, effects: &mut Vec<ProgramEffect>) {
        let Some(documents) = &mut self.documents else { return };
        match output {
            mesh::MeshOutput::Digest { by, digest } => documents.hear_digest(*by, *digest),
            mesh::MeshOutput::Documents { by, tag, is_proven, message } => {
                let by = DocumentNeighbour { slot: *by, tag: *tag, is_proven: *is_proven };
                documents.hear(by, message);
                effects
                    .extend(documents.news().into_iter().map(|mark| ProgramEffect::Frame { mark }));
            }
            _ => {}
        }
    }

    pub(super) fn frames(&self) -> SimFrameCounts {
        let counters = self.mesh.counters();
        let [waiting, waiting_on_way] = self.mesh.waiting().map(|count| count as u64);
        SimFrameCounts {
            made: self.offered + counters.reports,
            left: counters.own_sent,
            refused_at_source: counters.own_no_air_time,
            without_way: counters.own_no_route,
            waiting,
            refused_on_way: counters.no_air_time - counters.own_no_air_time,
            without_way_on_way: counters.no_route - counters.own_no_route,
            waiting_on_way,
            told_again: counters.told_again,
        }
    }

    /// Does what the authority of the mesh's own group has ordered.
    fn obey(&mut self, at: mesh::MeshTime, group: GroupTag, notice: &[u8]) {
        let rekeyed = (group == self.group).then(|| self.crew.obey(self.node, notice)).flatten();
        if let Some(rekeyed) = rekeyed {
            // A machine that cannot follow goes on in the epochs that it knows, and is left.
            let _ = self.mesh.rekey(at, rekeyed);
        }
    }

    /// Seals a message and has it routed.
    fn offer(&mut self, at: mesh::MeshTime, offer: &SimOffer, effects: &mut Vec<ProgramEffect>) {
        let mut body = offer.message.to_le_bytes().to_vec();
        body.resize(offer.bytes, 0);
        if let Some(data_type) = offer.document {
            let Some(documents) = &mut self.documents else { return };
            let written = documents.write(&mut self.sealer, data_type, &body);
            effects
                .extend(written.map(|mark| ProgramEffect::Mark { message: offer.message, mark }));
            return;
        }
        let destination = match offer.to {
            None => PeerTag::BROADCAST,
            Some(node) => self.crew.seat(node).map_or(PeerTag::NOBODY, |seat| seat.tag),
        };
        let what = if offer.is_urgent { EMERGENCY } else { COUNTER };
        let fields = HeaderFields { destination, ..HeaderFields::new(DATA_TAG, self.tag, what) };
        let binding = Binding::link();
        let sealed = seal_frame(&mut self.sealer, &fields, &binding, &body, &mut self.frame);
        let Ok(frame) = sealed else { return };
        self.offered += 1;
        effects.push(ProgramEffect::Mark { message: offer.message, mark: SimFrameMark::of(frame) });
        self.mesh.take(at, mesh::MeshInput::Data { frame: (&*frame).into() });
    }

    fn effect(&self, output: mesh::MeshOutput) -> Option<ProgramEffect> {
        match output {
            mesh::MeshOutput::Send { interface, to, unit, urgency } => {
                let to = match to {
                    mesh::UnitReceiver::Everybody => SimUnitTarget::Everybody,
                    mesh::UnitReceiver::Neighbour(address) => SimUnitTarget::One(address.0 as u32),
                };
                let urgency = match urgency {
                    mesh::SendUrgency::Control => SimUrgency::Control,
                    mesh::SendUrgency::Urgent => SimUrgency::Urgent,
                    mesh::SendUrgency::Normal => SimUrgency::Normal,
                    mesh::SendUrgency::Low => SimUrgency::Low,
                };
                Some(ProgramEffect::Send(SimOutgoingUnit {
                    port: usize::from(interface.0),
                    to,
                    unit,
                    urgency,
                }))
            }
            mesh::MeshOutput::Deliver { frame } => {
                Some(ProgramEffect::Frame { mark: SimFrameMark::of(&frame) })
            }
            // It was obeyed.
            mesh::MeshOutput::Notice { .. } => None,
            mesh::MeshOutput::Table(table) => Some(ProgramEffect::Table(table)),
            // They were heard.
            mesh::MeshOutput::Digest { .. } | mesh::MeshOutput::Documents { .. } => None,
            mesh::MeshOutput::Event(event) => self.tidings(event).map(ProgramEffect::Tidings),
            // No node of a scenario asks for a way.
            mesh::MeshOutput::Traced(_) => None,
        }
    }

    /// A mesh event that people want to know, with machines instead of slots.
    fn tidings(&self, event: mesh::MeshEvent) -> Option<SimMeshFinding> {
        let (what, of, via) = match event {
            mesh::MeshEvent::NeighbourFound { slot, .. } => ("neighbour-found", Some(slot), None),
            mesh::MeshEvent::NeighbourLost { slot, .. } => ("neighbour-lost", Some(slot), None),
            mesh::MeshEvent::NextHopSilent { slot, .. } => ("next-hop-silent", Some(slot), None),
            mesh::MeshEvent::RouteChanged { to, via, .. } => ("route", Some(to), Some(via)),
            mesh::MeshEvent::RouteLost { to } => ("route-lost", Some(to), None),
            mesh::MeshEvent::BlackHole { via, gateway } => ("black-hole", Some(gateway), Some(via)),
            mesh::MeshEvent::Faulty { slot } => ("faulty", Some(slot), None),
            mesh::MeshEvent::Leaving { slot, .. } => ("leaving", Some(slot), None),
            mesh::MeshEvent::Stays { slot, .. } => ("stays", Some(slot), None),
            mesh::MeshEvent::OwnSlotHeard => ("own-slot-heard", None, None),
            _ => return None,
        };
        let node = |slot: Option<Slot>| slot.and_then(|slot| self.crew.node(slot));
        Some(SimMeshFinding { what, of: node(of), via: node(via) })
    }
}

impl fmt::Debug for SimMeshMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// When a machine wants a tick.
fn wakes(mesh: &mesh::Mesh) -> Option<SimTime> {
    mesh.next_wake().map(|at| SimTime(at.0))
}

fn key(random: &mut SimRandom) -> [u8; 32] {
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        part.copy_from_slice(&random.word().to_le_bytes());
    }
    key
}

/// The medium, as the mesh has to know it.
fn medium(profile: &SimMediumProfile, duty_ppm: u32) -> mesh::MeshMedium {
    let mtu = profile.unit_bytes();
    let fixed = profile.air_time(0);
    let hundred = profile.air_time(100).0.saturating_sub(fixed.0).max(1);
    let speed = mesh::MeshMedium {
        mtu,
        fixed: mesh::MeshSpan(fixed.0),
        bytes_per_second: u32::try_from(100_000_000 / hundred).unwrap_or(u32::MAX),
        duty_ppm,
        ..mesh::MeshMedium::wire(mtu)
    };
    let radio = mesh::MeshMedium { form: Form::Compact, hop_seal: true, ..speed };
    match profile {
        SimMediumProfile::Wire { .. } => speed,
        SimMediumProfile::Lora(_) => {
            mesh::MeshMedium { hello: mesh::MeshMedium::lora_sf7().hello, ..radio }
        }
        SimMediumProfile::Dot11p => {
            // The gap before a frame and the mean back-off are air time too.
            let fixed = fixed + DOT11P_AIFS + SimSpan((DOT11P_WINDOW - 1) * DOT11P_SLOT.0 / 2);
            let hello = mesh::MeshMedium::dot11p().hello;
            mesh::MeshMedium { fixed: mesh::MeshSpan(fixed.0), hello, ..radio }
        }
        SimMediumProfile::BleAdvertising(_) | SimMediumProfile::BleConnection { .. } => radio,
    }
}
