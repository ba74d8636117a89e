//! A tiny model of links: every pair of machines may hear each other, with loss and delay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_mesh::{
    Config, InterfaceId, Keys, MachineRole, Mesh, MeshAddress, MeshEvent, MeshInput, MeshMedium,
    MeshOutput, MeshProvision, MeshSpan, MeshTime, RouteTable, RouteTrace, UnitReceiver,
};
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext, Slot,
    Suite,
};
use sealane_testing::SeededRandom;

pub(crate) const RADIO: InterfaceId = InterfaceId(0);

/// How one machine hears another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) loss_percent: u64,
    pub(crate) delay: MeshSpan,
}

impl Default for Link {
    fn default() -> Self {
        Self { loss_percent: 0, delay: MeshSpan(500) }
    }
}

/// Something on its way.
#[derive(Debug, Clone)]
struct Flight {
    from: usize,
    to: usize,
    unit: Arc<[u8]>,
}

/// A machine and what came out of it.
pub(crate) struct Node {
    pub(crate) mesh: Mesh,
    pub(crate) table: Arc<RouteTable>,
    pub(crate) events: Vec<(MeshTime, MeshEvent)>,
    pub(crate) delivered: Vec<(MeshTime, Vec<u8>)>,
    pub(crate) traced: Vec<RouteTrace>,
    pub(crate) sent_units: u64,
    pub(crate) sent_bytes: u64,
    /// Notices of groups that were given to the machine.
    pub(crate) notices: Vec<(MeshTime, GroupTag, Arc<[u8]>)>,
    /// When it has obeyed an order of the mesh's group.
    pub(crate) obeyed: Vec<MeshTime>,
    /// It takes what others tell of orders, and keeps it to itself.
    pub(crate) hoards: bool,
    /// It takes data of others and drops it.
    pub(crate) swallows: bool,
    /// It sends each frame of data that it hears on wires at once, with the highest hop limit, as
    /// often as it hears it; and how often it has done so.
    pub(crate) renews: bool,
    pub(crate) renewed: u64,
    sealer: Sealer,
    starts: u64,
}

/// All machines.
pub(crate) struct Net {
    pub(crate) now: MeshTime,
    pub(crate) provision: MeshProvision,
    pub(crate) nodes: BTreeMap<usize, Node>,
    pub(crate) links: BTreeMap<(usize, usize), Link>,
    pub(crate) chance: SeededRandom,
    pub(crate) medium: MeshMedium,
    /// Units as they were sent, for those who record them.
    pub(crate) heard: Vec<(usize, Arc<[u8]>)>,
    pub(crate) steps: u64,
    pub(crate) loops: u64,
    /// The members that each order of the mesh's group removes; an order that is not here is not
    /// obeyed.
    pub(crate) removed: BTreeMap<u64, Vec<u16>>,
    air: BTreeMap<(MeshTime, u64), Flight>,
    flights: u64,
    starts: u64,
}

impl Net {
    pub(crate) fn new(seed: u64, members: u16, medium: MeshMedium) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            now: MeshTime(0),
            provision: MeshProvision::new(key, members).unwrap(),
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            chance: SeededRandom::new(seed),
            medium,
            heard: vec![],
            steps: 0,
            loops: 0,
            removed: BTreeMap::new(),
            air: BTreeMap::new(),
            flights: 0,
            starts: 0,
        }
    }

    pub(crate) fn keys(&mut self, slot: usize) -> Keys {
        self.starts += 1;
        self.provision.keys(slot as u16, self.starts.to_le_bytes(), self.starts).unwrap()
    }

    /// Starts a machine.
    pub(crate) fn start(&mut self, slot: usize, role: MachineRole) {
        self.start_with(slot, Config { role, ..Config::default() });
    }

    /// Starts one that sleeps between its hellos.
    pub(crate) fn start_sleeper(&mut self, slot: usize) {
        self.start_with(slot, Config { sleeps: true, ..Config::default() });
    }

    fn start_with(&mut self, slot: usize, config: Config) {
        let keys = self.keys(slot);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.chance.next().to_le_bytes());
        let config = Config { seed, ..config };
        let mesh = Mesh::new(config, keys, self.now).unwrap();
        let node = Node {
            mesh,
            table: Arc::default(),
            events: vec![],
            delivered: vec![],
            notices: vec![],
            obeyed: vec![],
            hoards: false,
            traced: vec![],
            sent_units: 0,
            sent_bytes: 0,
            swallows: false,
            renews: false,
            renewed: 0,
            sealer: sealer(slot, self.starts),
            starts: self.starts,
        };
        self.nodes.insert(slot, node);
        let medium = self.medium;
        self.take(slot, MeshInput::Up { interface: RADIO, medium });
    }

    pub(crate) fn stop(&mut self, slot: usize) {
        self.nodes.remove(&slot);
    }

    /// Both hear each other.
    pub(crate) fn join(&mut self, one: usize, other: usize, link: Link) {
        self.links.insert((one, other), link);
        self.links.insert((other, one), link);
    }

    pub(crate) fn cut(&mut self, one: usize, other: usize) {
        self.links.remove(&(one, other));
        self.links.remove(&(other, one));
    }

    pub(crate) fn chain(&mut self, slots: &[usize], link: Link) {
        slots.windows(2).for_each(|pair| self.join(pair[0], pair[1], link));
    }

    pub(crate) fn node(&self, slot: usize) -> &Node {
        &self.nodes[&slot]
    }

    pub(crate) fn take(&mut self, slot: usize, input: MeshInput<'_>) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&slot) else { return };
        node.mesh.take(now, input);
        self.steps += 1;
        self.drain(slot);
    }

    fn drain(&mut self, slot: usize) {
        let mut has_changed = false;
        while let Some(output) = self.nodes.get_mut(&slot).and_then(|one| one.mesh.next_output()) {
            let node = self.nodes.get_mut(&slot).unwrap();
            match output {
                // Messages of orders have a hop limit of 0, as all that is told from hop to hop.
                MeshOutput::Send { unit, .. } if node.hoards && is_of_orders(&unit) => {}
                MeshOutput::Send { to, unit, .. } => {
                    assert!(unit.len() <= self.medium.mtu);
                    node.sent_units += 1;
                    node.sent_bytes += unit.len() as u64;
                    self.send(slot, to, unit);
                }
                MeshOutput::Deliver { frame } => node.delivered.push((self.now, frame)),
                MeshOutput::Notice { group, notice } => {
                    node.notices.push((self.now, group, Arc::clone(&notice)));
                    self.obey(slot, group, &notice);
                }
                MeshOutput::Traced(trace) => node.traced.push(trace),
                MeshOutput::Event(event) => node.events.push((self.now, event)),
                MeshOutput::Table(table) => {
                    node.table = table;
                    has_changed = true;
                }
                MeshOutput::Digest { .. } | MeshOutput::Documents { .. } => {}
            }
        }
        if has_changed {
            self.find_loops(slot);
        }
    }

    /// Has a machine obey an order of the mesh's group, as its driver does.
    fn obey(&mut self, slot: usize, group: GroupTag, notice: &[u8]) {
        let number = notice.get(1..9).and_then(<[u8]>::first_chunk).copied();
        let number = u64::from_be_bytes(number.unwrap_or_default());
        let removed = self.removed.get(&number).filter(|_| notice[0] == 1);
        let Some(removed) = removed.filter(|_| group == self.provision.group_tag()) else { return };
        if removed.contains(&(slot as u16)) {
            return;
        }
        let gone: Vec<u16> =
            self.removed.range(..=number).flat_map(|(_, gone)| gone.clone()).collect();
        let rekeyed = self.provision.without(&gone, number + 1, slot as u16).unwrap();
        let (now, node) = (self.now, self.nodes.get_mut(&slot).unwrap());
        node.mesh.rekey(now, rekeyed).unwrap();
        node.obeyed.push(now);
    }

    /// Gives a machine a notice of the mesh's group.
    pub(crate) fn give(&mut self, slot: usize, notice: &[u8]) {
        let group = self.provision.group_tag();
        self.take(slot, MeshInput::Notice { group, notice: notice.into() });
    }

    fn send(&mut self, from: usize, to: UnitReceiver, unit: Arc<[u8]>) {
        self.heard.push((from, Arc::clone(&unit)));
        let over = self.heard.len().saturating_sub(4096);
        self.heard.drain(..over);
        let links: Vec<_> = self
            .links
            .range((from, 0)..=(from, usize::MAX))
            .map(|((_, other), link)| (*other, *link))
            .collect();
        for (other, link) in links {
            let is_for = to == UnitReceiver::Everybody
                || to == UnitReceiver::Neighbour(MeshAddress(other as u64));
            if !is_for || self.chance.is(link.loss_percent) {
                continue;
            }
            self.fly(from, other, Arc::clone(&unit), link.delay);
        }
    }

    /// Puts a unit on its way to a machine.
    pub(crate) fn fly(&mut self, from: usize, to: usize, unit: Arc<[u8]>, delay: MeshSpan) {
        self.flights += 1;
        let jitter = MeshSpan(self.chance.below(delay.0 / 4 + 1));
        let at = self.now + delay + jitter;
        self.air.insert((at, self.flights), Flight { from, to, unit });
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: MeshSpan) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// Does what comes next before `end`.
    pub(crate) fn step(&mut self, end: MeshTime) -> bool {
        let flight = self.air.first_key_value().map(|((at, _), _)| *at);
        let wakes =
            self.nodes.iter().filter_map(|(slot, one)| Some((one.mesh.next_wake()?, *slot)));
        let wake = wakes.min();
        let next = flight.into_iter().chain(wake.map(|(at, _)| at)).min();
        let Some(at) = next.filter(|at| *at < end) else { return false };
        self.now = self.now.max(at);
        match wake {
            Some((at, slot)) if flight.is_none_or(|flight| at <= flight) => {
                self.take(slot, MeshInput::Tick);
            }
            _ => {
                let Some((_, flight)) = self.air.pop_first() else { return false };
                self.land(&flight);
            }
        }
        true
    }

    fn land(&mut self, flight: &Flight) {
        let Flight { from, to, unit } = flight;
        // A frame in the full form without its hops, of kind 0.
        let is_data = unit[0] == 2 && unit.get(3) == Some(&0);
        if is_data && self.nodes.get(to).is_some_and(|node| node.swallows) {
            return;
        }
        if self.renew(*to, unit) {
            return;
        }
        let from = MeshAddress(*from as u64);
        self.take(*to, MeshInput::Heard { interface: RADIO, from, unit: (&**unit).into() });
    }

    /// Has a machine that renews hop limits do so, if it is a frame of data in the full form.
    fn renew(&mut self, at: usize, unit: &[u8]) -> bool {
        let tag = self.provision.tag(at as u16).to_bytes();
        let Some(node) = self.nodes.get_mut(&at).filter(|node| node.renews) else { return false };
        if unit.get(18) != Some(&0) {
            return false;
        }
        node.renewed += 1;
        let mut renewed = unit.to_vec();
        renewed[8..16].copy_from_slice(&tag);
        renewed[16] = 15;
        self.send(at, UnitReceiver::Everybody, renewed.into());
        true
    }

    /// Counts destinations for which the machine that has just changed is on a cycle of next hops.
    fn find_loops(&mut self, changed: usize) {
        for slot in self.nodes[&changed].table.routes().map(|route| route.to) {
            let mut at = changed;
            for _ in 0..=self.nodes.len() {
                let Some(hop) = self.nodes.get(&at).and_then(|one| one.table.hop(slot)) else {
                    break;
                };
                at = usize::from(hop.slot.number());
                self.loops += u64::from(at == changed);
            }
        }
    }

    /// Whether frames of one machine come to another one, by the tables of all.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        let (mut at, slot) = (from, Slot::new(to as u16).unwrap());
        for _ in 0..=self.nodes.len() {
            if at == to {
                return true;
            }
            let Some(hop) = self.nodes.get(&at).and_then(|one| one.table.hop(slot)) else {
                return false;
            };
            let next = usize::from(hop.slot.number());
            if !self.links.contains_key(&(at, next)) {
                return false;
            }
            at = next;
        }
        false
    }

    /// The nodes that are connected with one by links.
    pub(crate) fn connected(&self, from: usize) -> BTreeSet<usize> {
        let (mut found, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = next.pop() {
            for (_, other) in self.links.keys().filter(|(one, _)| *one == at) {
                if self.nodes.contains_key(other) && found.insert(*other) {
                    next.push(*other);
                }
            }
        }
        found
    }

    /// A frame of a machine's data group, from one to another, or to everybody.
    pub(crate) fn frame(
        &mut self,
        from: usize,
        to: Option<usize>,
        what: u16,
        body: &[u8],
    ) -> Vec<u8> {
        let destination = to.map_or(PeerTag::BROADCAST, |to| self.provision.tag(to as u16));
        let group = sealane_frame::GroupTag::from_bytes([0xda; 4]);
        let fields = HeaderFields {
            destination,
            codec: 0,
            ..HeaderFields::new(group, self.provision.tag(from as u16), what)
        };
        let node = self.nodes.get_mut(&from).unwrap();
        let mut buf = FrameBuf::new();
        seal_frame(&mut node.sealer, &fields, &Binding::link(), body, &mut buf).unwrap().to_vec()
    }

    /// Has a machine send data.
    pub(crate) fn data(&mut self, from: usize, to: Option<usize>, what: u16, body: &[u8]) {
        let frame = self.frame(from, to, what, body);
        self.take(from, MeshInput::Data { frame: (&frame).into() });
    }

    pub(crate) fn via(&self, at: usize, to: usize) -> Option<usize> {
        let hop = self.node(at).table.hop(Slot::new(to as u16).unwrap())?;
        Some(usize::from(hop.slot.number()))
    }

    pub(crate) fn start_number(&self, slot: usize) -> u64 {
        self.node(slot).starts
    }
}

/// Whether a unit is a message of orders, in the compact form or as a long frame.
pub(crate) fn is_of_orders(unit: &[u8]) -> bool {
    let types = 9..=12;
    let is_compact = unit[0] >> 4 == 0xa && types.contains(&unit[3]);
    is_compact
        || unit[0] == 2 && unit.get(3) == Some(&2) && unit.get(6).is_some_and(|n| types.contains(n))
}

fn sealer(slot: usize, start: u64) -> Sealer {
    let group = Group::new(GroupId([0xda; 32]), Suite::ChaCha20Poly1305);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]));
    let slot = Slot::new(slot as u16).unwrap();
    Sealer::new(group, slot, SenderContext(start.to_le_bytes()), &epochs, 0).unwrap()
}
