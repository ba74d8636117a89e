//! The machine of `sealane-mesh`, as it is shipped, with frames that are made here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealane_document::agent::Neighbour;
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_group::{EpochSource, Notice};
use sealane_mesh as mesh;
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Form, Group, GroupId, History, Sealer, SenderContext,
    Slot, Suite,
};

use super::documents::{Air, Documents, Team};
use super::{Effect, Input, Mark, Offer, Send, Tidings, To, Urgency};
use crate::medium::{DOT11P_AIFS, DOT11P_SLOT, DOT11P_WINDOW};
use crate::scenario::{Kind, MeshRole, Scenario};
use crate::{Frames, Profile, Random, SimError, Span, Time};

/// The group of the data that travels over the mesh, whose keys the mesh does not have.
const DATA_GROUP: [u8; 32] = [0xda; 32];
const DATA_TAG: GroupTag = GroupTag::from_bytes([0xda; 4]);
/// Of `spec/policy.md`: what is urgent on its own, and what is not.
const EMERGENCY: u16 = 7;
const COUNTER: u16 = 1;

/// The members of the mesh of a scenario, and the source of their keys.
pub(crate) struct Crew {
    keys: Keys,
    seats: Vec<Seat>,
    seed: u64,
    /// Where a flow is of documents.
    team: Option<Team>,
}

/// A machine in the mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    pub(super) node: u32,
    pub(super) slot: Slot,
    pub(super) tag: PeerTag,
}

/// Where the keys of a mesh come from.
enum Keys {
    /// Nobody is in it.
    Nobody,
    /// They are those of the seed.
    Seed(mesh::Provision),
    /// Each machine is a member of a group of people, and obeys its orders.
    Held(BTreeMap<u32, Mutex<sealane_group::Member>>),
}

impl Crew {
    /// All machines of kind `mesh`, in their order, in a group of the seed.
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        let nodes = (0..).zip(&scenario.nodes);
        let nodes = nodes.filter(|(_, plan)| matches!(plan.kind, Kind::Mesh { .. }));
        let nodes: Vec<u32> = nodes.map(|(node, _)| node).collect();
        if nodes.is_empty() {
            return Ok(Self { keys: Keys::Nobody, seats: vec![], seed, team: None });
        }
        let mut random = Random::new(seed, "crew", 0);
        let members = u16::try_from(nodes.len()).unwrap_or(u16::MAX);
        let provision = mesh::Provision::new(key(&mut random), members);
        let provision = provision.map_err(|error| SimError::Value(format!("the mesh: {error}")))?;
        let seat =
            |(slot, node)| Some(Seat { node, slot: Slot::new(slot)?, tag: provision.tag(slot) });
        let seats = (0..).zip(nodes).filter_map(seat).collect();
        Self { keys: Keys::Seed(provision), seats, seed, team: None }.with_documents(scenario)
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
            Some((seat.node, Air::of(&media)?))
        });
        let mut random = Random::new(self.seed, "documents", 0);
        self.team = Some(Team::new(&self.seats, air.collect(), || key(&mut random))?);
        Ok(self)
    }

    /// Machines with the keys of a group of people, by their places in the list of all.
    ///
    /// # Errors
    ///
    /// A refusal of the group.
    pub(crate) fn of_group(
        members: BTreeMap<u32, sealane_group::Member>,
        seed: u64,
    ) -> Result<Self, sealane_group::Error> {
        let seat = |(node, member): (&u32, &sealane_group::Member)| {
            Ok(Seat { node: *node, slot: member.slot(), tag: member.source()? })
        };
        let seats = members.iter().map(seat).collect::<Result<Vec<_>, sealane_group::Error>>()?;
        let held = members.into_iter().map(|(node, member)| (node, Mutex::new(member)));
        Ok(Self { keys: Keys::Held(held.collect()), seats, seed, team: None })
    }

    /// The machine that has a slot.
    pub(crate) fn node(&self, slot: Slot) -> Option<u32> {
        // Slots of a seed are the places in this list.
        let likely = self.seats.get(usize::from(slot.number())).filter(|one| one.slot == slot);
        let seat = likely.or_else(|| self.seats.iter().find(|one| one.slot == slot));
        seat.map(|seat| seat.node)
    }

    fn seat(&self, node: u32) -> Option<&Seat> {
        let at = self.seats.binary_search_by_key(&node, |seat| seat.node).ok()?;
        self.seats.get(at)
    }

    /// The keys of a machine when it starts.
    fn keys(&self, node: u32, context: [u8; 8], start_ms: u64) -> Option<mesh::Keys> {
        match &self.keys {
            Keys::Nobody => None,
            Keys::Seed(provision) => {
                provision.keys(self.seat(node)?.slot.number(), context, start_ms).ok()
            }
            Keys::Held(members) => locked(members.get(&node)?).mesh_keys().ok(),
        }
    }

    /// Has a machine's member obey a notice, and gives what is new to the machine.
    fn obey(&self, node: u32, notice: &[u8]) -> Option<mesh::Rekeyed> {
        let Keys::Held(members) = &self.keys else { return None };
        let mut member = locked(members.get(&node)?);
        let before = member.orders();
        let notice = Notice::from_bytes(notice).ok()?;
        // A notice that cannot be obeyed leaves everything as it was.
        member.apply(&notice).ok()?;
        if member.orders() == before {
            return None;
        }
        member.mesh_rekeyed().ok()
    }
}

fn locked(member: &Mutex<sealane_group::Member>) -> MutexGuard<'_, sealane_group::Member> {
    member.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("seats", &self.seats).finish_non_exhaustive()
    }
}

/// The part that a scenario gives a machine in the mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Post {
    pub(super) role: MeshRole,
    /// Its turns, if it sleeps by turns: it tells its neighbours that it sleeps, and wishes to say
    /// hello once in each turn, so that they keep its frames so long.
    pub(super) turn: Option<Span>,
}

/// A machine of the mesh.
pub(crate) struct Member {
    crew: Arc<Crew>,
    node: u32,
    /// The mesh's own group.
    group: GroupTag,
    mesh: Box<mesh::Mesh>,
    sealer: Box<Sealer>,
    tag: PeerTag,
    turn: Option<Span>,
    frame: FrameBuf,
    /// When the machine wants a tick, as it said after its last input.
    wakes: Option<Time>,
    /// Messages that were sealed and given to the mesh.
    offered: u64,
    documents: Option<Box<Documents>>,
}

impl Member {
    /// Starts the machine, for the how manieth time; nothing if it is in no mesh.
    pub(super) fn new(
        crew: &Arc<Crew>,
        post: Post,
        node: u32,
        start: u32,
        now: Time,
    ) -> Option<Self> {
        let seat = *crew.seat(node)?;
        let mut random = Random::new(crew.seed, "mesh", u64::from(start) << 32 | u64::from(node));
        let context = random.word().to_le_bytes();
        // Later than all earlier starts of the same machine.
        let start_ms = now.0 / 1000 + u64::from(start);
        let keys = crew.keys(node, context, start_ms)?;
        let own = keys.tag;
        let role = match post.role {
            MeshRole::Gateway => mesh::Role::Gateway,
            MeshRole::Member => mesh::Role::Member,
            MeshRole::Quiet => mesh::Role::Quiet,
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
            documents = Some(Box::new(Documents::new(team, seat, (group, DATA_TAG), epochs)?));
        }
        let mesh = Box::new(mesh::Mesh::new(config, keys, mesh::Time(now.0)).ok()?);
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

    pub(super) fn next_wake(&self) -> Option<Time> {
        self.wakes
    }

    #[inline(never)]
    pub(super) fn take(&mut self, now: Time, input: Input<'_>, effects: &mut Vec<Effect>) {
        let at = mesh::Time(now.0);
        let id = |port: usize| mesh::InterfaceId(port as u8);
        match input {
            Input::Up { port, profile, duty_ppm } => {
                let medium = medium(profile, duty_ppm);
                let turn = self.turn.map_or(medium.hello, |turn| mesh::Span(turn.0));
                let medium = mesh::Medium { hello: medium.hello.max(turn), ..medium };
                self.mesh.take(at, mesh::Input::Up { interface: id(port), medium });
            }
            Input::Heard { port, from, unit } => {
                let from = mesh::Address(u64::from(from));
                self.mesh.take(at, mesh::Input::Heard { interface: id(port), from, unit });
            }
            Input::Load { port, busy_ppm } => {
                self.mesh.take(at, mesh::Input::Load { interface: id(port), busy_ppm });
            }
            Input::Offer(offer) => self.offer(at, offer, effects),
            Input::Tick => self.mesh.take(at, mesh::Input::Tick),
        }
        self.follow(now, effects);
        self.wakes = wakes(&self.mesh);
    }

    /// Does what comes out of the mesh, and has it told what follows for documents.
    fn follow(&mut self, now: Time, effects: &mut Vec<Effect>) {
        loop {
            while let Some(output) = self.mesh.next_output() {
                match &output {
                    mesh::Output::Notice { group, notice } => {
                        self.obey(mesh::Time(now.0), *group, notice);
                    }
                    mesh::Output::Digest { .. } | mesh::Output::Documents { .. } => {
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
    fn hear_documents(&mut self, output: &mesh::Output, effects: &mut Vec<Effect>) {
        let Some(documents) = &mut self.documents else { return };
        match output {
            mesh::Output::Digest { by, digest } => documents.hear_digest(*by, *digest),
            mesh::Output::Documents { by, tag, is_proven, message } => {
                let by = Neighbour { slot: *by, tag: *tag, is_proven: *is_proven };
                documents.hear(by, message);
                effects.extend(documents.news().into_iter().map(|mark| Effect::Frame { mark }));
            }
            _ => {}
        }
    }

    pub(super) fn frames(&self) -> Frames {
        let counters = self.mesh.counters();
        let [waiting, waiting_on_way] = self.mesh.waiting().map(|count| count as u64);
        Frames {
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
    fn obey(&mut self, at: mesh::Time, group: GroupTag, notice: &[u8]) {
        let rekeyed = (group == self.group).then(|| self.crew.obey(self.node, notice)).flatten();
        if let Some(rekeyed) = rekeyed {
            // A machine that cannot follow goes on in the epochs that it knows, and is left.
            let _ = self.mesh.rekey(at, rekeyed);
        }
    }

    /// Seals a message and has it routed.
    fn offer(&mut self, at: mesh::Time, offer: &Offer, effects: &mut Vec<Effect>) {
        let mut body = offer.message.to_le_bytes().to_vec();
        body.resize(offer.bytes, 0);
        if let Some(data_type) = offer.document {
            let Some(documents) = &mut self.documents else { return };
            let written = documents.write(&mut self.sealer, data_type, &body);
            effects.extend(written.map(|mark| Effect::Mark { message: offer.message, mark }));
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
        effects.push(Effect::Mark { message: offer.message, mark: Mark::of(frame) });
        self.mesh.take(at, mesh::Input::Data { frame });
    }

    fn effect(&self, output: mesh::Output) -> Option<Effect> {
        match output {
            mesh::Output::Send { interface, to, unit, urgency } => {
                let to = match to {
                    mesh::To::Everybody => To::Everybody,
                    mesh::To::Neighbour(address) => To::One(address.0 as u32),
                };
                let urgency = match urgency {
                    mesh::Urgency::Control => Urgency::Control,
                    mesh::Urgency::Urgent => Urgency::Urgent,
                    mesh::Urgency::Normal => Urgency::Normal,
                    mesh::Urgency::Low => Urgency::Low,
                };
                Some(Effect::Send(Send { port: usize::from(interface.0), to, unit, urgency }))
            }
            mesh::Output::Deliver { frame } => Some(Effect::Frame { mark: Mark::of(&frame) }),
            // It was obeyed.
            mesh::Output::Notice { .. } => None,
            mesh::Output::Table(table) => Some(Effect::Table(table)),
            // They were heard.
            mesh::Output::Digest { .. } | mesh::Output::Documents { .. } => None,
            mesh::Output::Event(event) => self.tidings(event).map(Effect::Tidings),
            // No node of a scenario asks for a way.
            mesh::Output::Traced(_) => None,
        }
    }

    /// A mesh event that people want to know, with machines instead of slots.
    fn tidings(&self, event: mesh::Event) -> Option<Tidings> {
        let (what, of, via) = match event {
            mesh::Event::NeighbourFound { slot, .. } => ("neighbour-found", Some(slot), None),
            mesh::Event::NeighbourLost { slot, .. } => ("neighbour-lost", Some(slot), None),
            mesh::Event::NextHopSilent { slot, .. } => ("next-hop-silent", Some(slot), None),
            mesh::Event::RouteChanged { to, via, .. } => ("route", Some(to), Some(via)),
            mesh::Event::RouteLost { to } => ("route-lost", Some(to), None),
            mesh::Event::BlackHole { via, gateway } => ("black-hole", Some(gateway), Some(via)),
            mesh::Event::Faulty { slot } => ("faulty", Some(slot), None),
            mesh::Event::Leaving { slot, .. } => ("leaving", Some(slot), None),
            mesh::Event::Stays { slot, .. } => ("stays", Some(slot), None),
            mesh::Event::OwnSlotHeard => ("own-slot-heard", None, None),
            _ => return None,
        };
        let node = |slot: Option<Slot>| slot.and_then(|slot| self.crew.node(slot));
        Some(Tidings { what, of: node(of), via: node(via) })
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// When a machine wants a tick.
fn wakes(mesh: &mesh::Mesh) -> Option<Time> {
    mesh.next_wake().map(|at| Time(at.0))
}

fn key(random: &mut Random) -> [u8; 32] {
    let mut key = [0; 32];
    for part in key.chunks_mut(8) {
        part.copy_from_slice(&random.word().to_le_bytes());
    }
    key
}

/// The medium, as the mesh has to know it.
fn medium(profile: &Profile, duty_ppm: u32) -> mesh::Medium {
    let mtu = profile.unit_bytes();
    let fixed = profile.air_time(0);
    let hundred = profile.air_time(100).0.saturating_sub(fixed.0).max(1);
    let speed = mesh::Medium {
        mtu,
        fixed: mesh::Span(fixed.0),
        bytes_per_second: u32::try_from(100_000_000 / hundred).unwrap_or(u32::MAX),
        duty_ppm,
        ..mesh::Medium::wire(mtu)
    };
    let radio = mesh::Medium { form: Form::Compact, hop_seal: true, ..speed };
    match profile {
        Profile::Wire { .. } => speed,
        Profile::Lora(_) => mesh::Medium { hello: mesh::Medium::lora_sf7().hello, ..radio },
        Profile::Dot11p => {
            // The gap before a frame and the mean back-off are air time too.
            let fixed = fixed + DOT11P_AIFS + Span((DOT11P_WINDOW - 1) * DOT11P_SLOT.0 / 2);
            let hello = mesh::Medium::dot11p().hello;
            mesh::Medium { fixed: mesh::Span(fixed.0), hello, ..radio }
        }
        Profile::BleAdvertising(_) | Profile::BleConnection { .. } => radio,
    }
}
