//! Machines of the mesh with documents, over a model of links: loss, delay, repeats, partitions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use sealane_document::agent::{
    DocumentGroupKeys, DocumentNeighbour, OriginDuty, OutboxScope, StrangerGroup,
};
use sealane_document::{DocumentAgent, DocumentQuota, DocumentStore, ShelfKeeper, stream_name};
use sealane_frame::{FrameBuf, HeaderFields, PeerTag, seal_frame};
use sealane_mesh::{
    Config, InterfaceId, Mesh, MeshAddress, MeshInput, MeshMedium, MeshOutput, MeshProvision,
    MeshSpan, MeshTime, SendUrgency, UnitReceiver,
};
use sealane_message::DataType;
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, Group, History, Sealer, SenderContext, SigningKey,
    Slot, Term,
};
use sealane_testing::SeededRandom;

use crate::team::{GROUP, group, peer};

const RADIO: InterfaceId = InterfaceId(0);

/// The effect of links on units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) medium: MeshMedium,
    pub(crate) loss_percent: u64,
    pub(crate) repeat_percent: u64,
    /// A unit comes up to so much later, so that others overtake it.
    pub(crate) late: MeshSpan,
}

/// The data group's keys, as an authority has them.
pub(crate) struct Team {
    pub(crate) members: u16,
    /// The slots that each epoch has removed.
    pub(crate) removed: Vec<Vec<u16>>,
}

impl Team {
    fn newest(&self) -> Epoch {
        Epoch(self.removed.len() as u64)
    }

    fn signing(slot: u16) -> SigningKey {
        let mut seed = [0x5a; 32];
        seed[..2].copy_from_slice(&slot.to_le_bytes());
        SigningKey::from_seed(&seed).unwrap()
    }

    /// The keys of a member that has obeyed all orders up to an epoch.
    pub(crate) fn keys(&self, slot: u16, epoch: Epoch) -> DocumentGroupKeys {
        let group = group();
        let until = |slot: u16| {
            let epochs = self.removed.iter().zip(1_u64..).take(epoch.0 as usize);
            epochs.filter(|(gone, _)| gone.contains(&slot)).map(|(_, epoch)| Epoch(epoch)).next()
        };
        let terms = (0..self.members).map(|slot| Term {
            slot: Slot::new(slot).unwrap(),
            since: Epoch(0),
            until: until(slot),
            verifying_key: Self::signing(slot).verifying_key(),
        });
        let terms = terms.collect();
        let epochs = self.epochs(&group, epoch);
        DocumentGroupKeys { group, tag: GROUP, own: Slot::new(slot).unwrap(), epochs, terms }
    }

    pub(crate) fn epochs(&self, group: &Group, epoch: Epoch) -> Epochs {
        let secret = |epoch: u64| EpochSecret::new([epoch as u8 + 1; 32]);
        let mut epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret(0));
        for later in 1..=epoch.0 {
            epochs.insert(Epoch(later), secret(later)).unwrap();
        }
        epochs
    }

    pub(crate) fn sealer(&self, slot: u16, epoch: Epoch, context: u64) -> Sealer {
        let epochs = self.epochs(&group(), epoch);
        let of = Slot::new(slot).unwrap();
        let context = SenderContext(context.to_le_bytes());
        let mut sealer = Sealer::new(group(), of, context, &epochs, 0).unwrap();
        sealer.set_signing_key(Self::signing(slot));
        sealer
    }
}

/// The class that documents of a type travel in.
pub(crate) fn class_of(data_type: u16) -> Class {
    match data_type {
        5 | 7 | 8 | 9 => Class::Signed,
        _ => Class::Group,
    }
}

/// A machine.
pub(crate) struct Node {
    pub(crate) mesh: Mesh,
    pub(crate) agent: DocumentAgent,
    pub(crate) sealer: Option<Sealer>,
    pub(crate) is_up: bool,
    pub(crate) epoch: Epoch,
    told: Option<Option<[u8; 8]>>,
    queue: Vec<(SendUrgency, u64, UnitReceiver, Arc<[u8]>)>,
    is_sending: bool,
    wake: Option<MeshTime>,
    pub(crate) air: MeshSpan,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive { to: usize, from: usize, unit: Vec<u8> },
    Sent { node: usize },
    Wake { node: usize },
}

/// All machines.
pub(crate) struct Net {
    pub(crate) now: MeshTime,
    pub(crate) nodes: Vec<Node>,
    pub(crate) team: Team,
    pub(crate) near: BTreeSet<(usize, usize)>,
    pub(crate) random: SeededRandom,
    /// Links across this line are cut.
    pub(crate) cut: Option<usize>,
    /// Bytes on the air of all that is no control of the mesh.
    pub(crate) data_bytes: u64,
    /// The longest message of frames.
    pub(crate) longest_telling: usize,
    link: Link,
    provision: MeshProvision,
    events: BinaryHeap<Reverse<(MeshTime, u64, Event)>>,
    count: u64,
    starts: u64,
}

impl Net {
    /// Machines in rows, each of which hears its own row and the next ones; those that are named
    /// have no keys.
    pub(crate) fn new(seed: u64, rows: &[usize], keyless: &[usize], link: Link) -> Self {
        let members = rows.len() as u16;
        let mut near = BTreeSet::new();
        for (one, row) in rows.iter().enumerate() {
            for (other, next) in rows.iter().enumerate() {
                if one != other && row.abs_diff(*next) <= 1 {
                    near.insert((one, other));
                }
            }
        }
        let provision = MeshProvision::new([seed as u8; 32], members).unwrap();
        let mut net = Self {
            now: MeshTime(0),
            nodes: vec![],
            team: Team { members, removed: vec![] },
            near,
            random: SeededRandom::new(seed),
            cut: None,
            data_bytes: 0,
            longest_telling: 0,
            link,
            provision,
            events: BinaryHeap::new(),
            count: 0,
            starts: 1,
        };
        for node in 0..rows.len() {
            let keeper =
                if keyless.contains(&node) { ShelfKeeper::Relay } else { ShelfKeeper::Member };
            let store = DocumentStore::in_memory(keeper, DocumentQuota::default()).unwrap();
            let made = net.make(node, store);
            net.nodes.push(made);
            net.up(node);
        }
        net
    }

    fn make(&mut self, node: usize, store: DocumentStore) -> Node {
        self.starts += 1;
        let slot = node as u16;
        let context = (self.starts << 16 | node as u64).to_le_bytes();
        let keys = self.provision.keys(slot, context, self.starts).unwrap();
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&self.random.next().to_le_bytes());
        let config = Config { seed, ..Config::default() };
        let mesh = Mesh::new(config, keys, self.now).unwrap();
        let has_keys = store.keeper() == ShelfKeeper::Member;
        let medium = self.link.medium;
        let mut agent =
            DocumentAgent::new(Slot::new(slot).unwrap(), store, medium.documents_bytes());
        agent.set_scarce(medium.has_duty());
        let epoch = self.team.newest();
        if has_keys {
            agent.set_group(self.team.keys(slot, epoch)).unwrap();
        } else {
            agent.set_strangers(vec![stranger(self.team.members, epoch)]);
        }
        let sealer = has_keys.then(|| self.team.sealer(slot, epoch, u64::from_le_bytes(context)));
        Node {
            mesh,
            agent,
            sealer,
            is_up: false,
            epoch,
            told: None,
            queue: vec![],
            is_sending: false,
            wake: None,
            air: MeshSpan(0),
        }
    }

    /// The machine starts anew, with what it has stored.
    pub(crate) fn restart(&mut self, node: usize, store: DocumentStore) {
        self.nodes[node] = self.make(node, store);
        self.up(node);
    }

    /// A machine says something to all its neighbours that its own agent would not.
    pub(crate) fn inject(&mut self, node: usize, message: &[u8]) {
        let to = sealane_mesh::DocumentAudience::All { but: None };
        let said =
            MeshInput::Documents { to, urgency: SendUrgency::Urgent, message: message.into() };
        self.nodes[node].mesh.take(self.now, said);
        self.pump(node);
    }

    pub(crate) fn up(&mut self, node: usize) {
        self.nodes[node].is_up = true;
        let medium = self.link.medium;
        self.nodes[node].mesh.take(self.now, MeshInput::Up { interface: RADIO, medium });
        self.pump(node);
    }

    /// The machine is out of reach of all, and what was on its way to it is lost.
    pub(crate) fn down(&mut self, node: usize) {
        let one = &mut self.nodes[node];
        one.is_up = false;
        one.queue.clear();
        one.mesh.take(self.now, MeshInput::Down { interface: RADIO });
    }

    /// The machine obeys all orders there are.
    pub(crate) fn rekey(&mut self, node: usize) {
        let newest = self.team.newest();
        self.starts += 1;
        let context = self.starts << 16 | node as u64;
        let keys = self.team.keys(node as u16, newest);
        let one = &mut self.nodes[node];
        if one.sealer.is_none() || one.epoch == newest {
            return;
        }
        one.epoch = newest;
        one.sealer = Some(self.team.sealer(node as u16, newest, context));
        one.agent.set_group(keys).unwrap();
        self.pump(node);
    }

    /// A member writes a document, which every neighbour is handed.
    pub(crate) fn write(&mut self, node: usize, data_type: u16, body: &[u8]) -> Vec<u8> {
        let sealer = self.nodes[node].sealer.as_mut().unwrap();
        let frame = seal(sealer, node as u16, data_type, body);
        self.keep(node, &frame);
        frame
    }

    /// Keeps a frame that a member has sealed.
    pub(crate) fn keep(&mut self, node: usize, frame: &[u8]) {
        self.nodes[node].agent.write(frame, peer(node as u16)).unwrap();
        self.pump(node);
    }

    pub(crate) fn run_until(
        &mut self,
        until: MeshTime,
        mut is_done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let mut look = self.now + MeshSpan::millis(50);
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > until {
                self.events.push(Reverse((at, 0, event)));
                self.now = until;
                return is_done(self);
            }
            self.now = at;
            match event {
                Event::Arrive { to, from, unit } if self.nodes[to].is_up => {
                    let from = MeshAddress(from as u64);
                    let heard = MeshInput::Heard { interface: RADIO, from, unit: (&unit).into() };
                    self.nodes[to].mesh.take(self.now, heard);
                    self.pump(to);
                }
                Event::Arrive { .. } => {}
                Event::Sent { node } => {
                    self.nodes[node].is_sending = false;
                    self.pump(node);
                }
                Event::Wake { node } => {
                    if self.nodes[node].wake == Some(at) {
                        self.nodes[node].wake = None;
                        self.nodes[node].mesh.take(self.now, MeshInput::Tick);
                        self.pump(node);
                    }
                }
            }
            if self.now >= look {
                look = self.now + MeshSpan::millis(50);
                if is_done(self) {
                    return true;
                }
            }
        }
        false
    }

    pub(crate) fn run(&mut self, span: MeshSpan) {
        self.run_until(self.now + span, |_| false);
    }

    fn push(&mut self, at: MeshTime, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    /// Does all that a machine wants done now.
    fn pump(&mut self, node: usize) {
        let now = self.now;
        let Node { mesh, agent, sealer, told, queue, .. } = &mut self.nodes[node];
        loop {
            let mut is_idle = true;
            while let Some(output) = mesh.next_output() {
                is_idle = false;
                match output {
                    MeshOutput::Send { to, unit, urgency, .. } => {
                        self.count += 1;
                        queue.push((urgency, self.count, to, unit));
                    }
                    MeshOutput::Digest { by, digest } => agent.hear_digest(by, digest),
                    MeshOutput::Documents { by, tag, is_proven, message } => {
                        let by = DocumentNeighbour { slot: by, tag, is_proven };
                        agent.hear(by, &message).unwrap();
                    }
                    _ => {}
                }
            }
            while let (Some(duty), Some(sealer)) = (agent.next_duty(), sealer.as_mut()) {
                is_idle = false;
                obey(agent, sealer, node as u16, duty);
            }
            let digest = agent.told_digest();
            if *told != Some(digest) {
                *told = Some(digest);
                mesh.take(now, MeshInput::Digest { digest });
            }
            while let Some(lot) = room(mesh) {
                let Some(telling) = agent.next_telling(now.0 / 1000, lot) else { break };
                is_idle = false;
                let urgency =
                    if telling.is_urgent { SendUrgency::Urgent } else { SendUrgency::Normal };
                let message = &telling.message;
                // Only frames can be divided among messages everywhere.
                let frames = if message[4] == 4 { message.len() } else { 0 };
                self.longest_telling = self.longest_telling.max(frames);
                mesh.take(
                    now,
                    MeshInput::Documents { to: telling.to, urgency, message: message.into() },
                );
            }
            if is_idle {
                break;
            }
        }
        self.send(node);
        let one = &self.nodes[node];
        let gathered = one.agent.gathered_ms().map(|ms| MeshTime(ms * 1000)).filter(|at| *at > now);
        let wake = one.mesh.next_wake().into_iter().chain(gathered).min();
        if let Some(at) = wake.filter(|at| self.nodes[node].wake.is_none_or(|known| *at < known)) {
            self.nodes[node].wake = Some(at);
            self.push(at, Event::Wake { node });
        }
    }

    /// Sends the first of what waits, if nothing is being sent.
    fn send(&mut self, node: usize) {
        let one = &mut self.nodes[node];
        if one.is_sending || !one.is_up {
            return;
        }
        let first =
            one.queue.iter().enumerate().min_by_key(|(_, (urgency, count, ..))| (*urgency, *count));
        let Some(at) = first.map(|(at, _)| at) else { return };
        let (urgency, _, to, unit) = one.queue.remove(at);
        if urgency != SendUrgency::Control {
            self.data_bytes += unit.len() as u64;
        }
        one.is_sending = true;
        let air = self.link.medium.air(unit.len());
        one.air = one.air + air;
        let sent = self.now + air;
        self.push(sent, Event::Sent { node });
        for other in 0..self.nodes.len() {
            let is_meant = match to {
                UnitReceiver::Everybody => true,
                UnitReceiver::Neighbour(address) => address.0 == other as u64,
            };
            let crosses = self.cut.is_some_and(|cut| (node < cut) != (other < cut));
            if !is_meant || crosses || !self.near.contains(&(node, other)) {
                continue;
            }
            let copies = 1 + u64::from(self.random.below(100) < self.link.repeat_percent);
            for _ in 0..copies {
                if self.random.below(100) < self.link.loss_percent {
                    continue;
                }
                let late = MeshSpan(self.random.below(self.link.late.0 + 1));
                let event = Event::Arrive { to: other, from: node, unit: unit.to_vec() };
                self.push(sent + late, event);
            }
        }
    }

    /// The members that have obeyed all orders and are in reach.
    pub(crate) fn members(&self) -> Vec<usize> {
        let newest = self.team.newest();
        let all = 0..self.nodes.len();
        all.filter(|node| {
            let one = &self.nodes[*node];
            one.is_up && one.sealer.is_some() && one.epoch == newest
        })
        .collect()
    }

    /// Whether all of them hold the same.
    pub(crate) fn is_same(&mut self) -> bool {
        let digests: BTreeSet<[u8; 8]> =
            self.members().into_iter().map(|node| self.nodes[node].agent.digest()).collect();
        digests.len() <= 1
    }

    /// The frames that a machine holds, as bytes.
    pub(crate) fn held(&self, node: usize) -> Vec<Vec<u8>> {
        let registers = self.nodes[node].agent.store().registers(GROUP);
        registers.into_iter().flat_map(|r| r.iter()).map(|e| e.frame().to_vec()).collect()
    }

    /// The frames that not all members hold, and the members that hold them.
    pub(crate) fn differences(&self) -> Vec<String> {
        let mut who: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let members = self.members();
        for node in &members {
            let registers = self.nodes[*node].agent.store().registers(GROUP);
            for entry in registers.into_iter().flat_map(|r| r.iter()) {
                let key = (entry.origin, entry.data_type, entry.stamp);
                who.entry(key).or_default().push(*node);
            }
        }
        who.retain(|_, nodes| nodes.len() < members.len());
        let all = who.iter().map(|((origin, of, stamp), nodes)| {
            format!("{} {of} {}.{}: {nodes:?}", origin.number(), stamp.epoch.0, stamp.counter)
        });
        all.chain([format!("{:?}", refusals(self))]).collect()
    }

    /// How many of all that members have to hold are there, in millionths.
    pub(crate) fn spread_ppm(&self, all: &[[u8; 32]]) -> u64 {
        let members = self.members();
        let held: usize = members
            .iter()
            .map(|node| {
                let registers = self.nodes[*node].agent.store().registers(GROUP);
                let held = registers.into_iter().flat_map(|r| r.iter());
                held.filter(|entry| all.contains(&entry.mark().0)).count()
            })
            .sum();
        (held * 1_000_000 / (all.len() * members.len()).max(1)) as u64
    }

    /// The bytes that documents have cost on the air, with the digests in hellos.
    pub(crate) fn documents_bytes(&self) -> u64 {
        let digests: u64 = self.nodes.iter().map(|node| node.mesh.counters().digests).sum();
        self.data_bytes + 8 * digests
    }
}

/// The messages that a machine has room for.
fn room(mesh: &Mesh) -> Option<OutboxScope> {
    let has_room = |urgency| mesh.documents_room(urgency) > 0;
    match (has_room(SendUrgency::Normal), has_room(SendUrgency::Urgent)) {
        (true, _) => Some(OutboxScope::All),
        (false, true) => Some(OutboxScope::Urgent),
        (false, false) => None,
    }
}

/// The relay card's description of the team.
pub(crate) fn stranger(members: u16, newest: Epoch) -> StrangerGroup {
    let members = (0..members).map(|slot| (Slot::new(slot).unwrap(), peer(slot)));
    StrangerGroup { group: GROUP, newest, members: members.collect() }
}

/// Seals a body as a document.
pub(crate) fn seal(sealer: &mut Sealer, slot: u16, data_type: u16, body: &[u8]) -> Vec<u8> {
    let binding = Binding::stream(&stream_name(GROUP, DataType::from_number(data_type)));
    let class = class_of(data_type);
    let fields = HeaderFields { class, ..HeaderFields::new(GROUP, peer(slot), data_type) };
    seal_frame(sealer, &fields, &binding, body, &mut FrameBuf::new()).unwrap().to_vec()
}

fn obey(agent: &mut DocumentAgent, sealer: &mut Sealer, slot: u16, duty: OriginDuty) {
    match duty {
        OriginDuty::GoOn { counter, .. } => {
            if counter >= sealer.next_counter().unwrap() {
                sealer.go_on_at(counter + 1);
            }
        }
        OriginDuty::Reseal { group, entry } => {
            let body = agent.body(group, &entry).unwrap();
            let frame = seal(sealer, slot, entry.data_type.number(), &body);
            agent.write(&frame, PeerTag::from_hash([slot as u8 + 2; 8])).unwrap();
            agent.resealed(group, &entry).unwrap();
        }
    }
}

/// Counts of all machines, by name.
pub(crate) fn refusals(net: &Net) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for node in &net.nodes {
        let c = node.agent.counters();
        for (name, count) in [
            ("malformed", c.malformed),
            ("unknown epoch", c.unknown_epoch),
            ("no member", c.no_member),
            ("stale epoch", c.stale_epoch),
            ("below floor", c.below_floor),
            ("forged", c.forged),
            ("no document", c.no_document),
            ("malformed body", c.malformed_body),
        ] {
            *all.entry(name).or_default() += count;
        }
    }
    all
}
