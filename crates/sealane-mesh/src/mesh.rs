//! The machine itself: what it holds, and the order in which it works.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sealane_frame::PeerTag;
use sealane_seal::{Epoch, Slot};

use crate::budget::AirTimeBudget;
use crate::floods::MeshFloods;
use crate::interface::{FullUpdate, InterfaceNumbers, MeshInterface, NewsCause};
use crate::limits::MAX_MESH_INTERFACES;
use crate::links::NeighbourSlots;
use crate::neighbour::{LinkId, MeshNeighbour};
use crate::random::MeshRandom;
use crate::reports::GatewayReports;
use crate::routes::{MeshRoutes, NeighbourLink};
use crate::slots::SlotSet;
use crate::voice::MeshVoice;
use crate::ways::{NeighbourLinks, NextHops};
use crate::{
    CarriedSources, Config, InterfaceId, Keys, MachineRole, MeshCounters, MeshError, MeshEvent,
    MeshInput, MeshMedium, MeshNeighbourStatus, MeshOutput, MeshSpan, MeshTime, Rekeyed,
    RouteTable, SendUrgency, WayStatus,
};

mod carry;
mod documents;
mod hear;
mod orders;
mod requests;
mod settle;
mod tell;
mod tick;
mod trace;

/// One machine of a mesh.
pub struct Mesh {
    config: Config,
    voice: MeshVoice,
    random: MeshRandom,
    /// The amount added to the time for the time stamps of hellos: nobody knows it beforehand.
    clock: u32,
    now: MeshTime,
    started: MeshTime,
    /// When it obeyed an order last, or started: what it says since then has to be announced anew.
    obeyed_at: MeshTime,
    /// Nobody takes this machine any more for the one that it was before it started: all routes
    /// were asked for, and are taken.
    has_asked: bool,
    interfaces: BTreeMap<InterfaceId, MeshInterface>,
    /// Where interfaces that were gone go on counting.
    numbers: BTreeMap<InterfaceId, InterfaceNumbers>,
    /// The air time of interfaces that are gone: one that comes back has no more than before.
    budgets: BTreeMap<InterfaceId, AirTimeBudget>,
    neighbours: NeighbourSlots<MeshNeighbour>,
    routes: MeshRoutes,
    own_sequence: u16,
    own_raised: MeshTime,
    /// When the own routes were told last since somebody asked.
    own_answered: MeshTime,
    /// The sequence that others ask for.
    own_wanted: Option<u16>,
    traces: trace::TraceRates,
    /// Requests that were heard, passed on or made here lately.
    requests: VecDeque<requests::KnownRequest>,
    /// Machines to which there is no way, or a bad one; and when is asked again for what lacks.
    starving: SlotSet,
    /// Neighbours that have not told all routes.
    lacking: BTreeSet<LinkId>,
    starving_at: Option<MeshTime>,
    floods: MeshFloods,
    /// The digest that hellos carry of the held documents.
    digest: Option<[u8; 8]>,
    /// Documents are held here, or were.
    has_documents: bool,
    reports: GatewayReports,
    /// The sources whose frames are carried, each with its group; where there is none, everybody's.
    sources: Option<Arc<CarriedSources>>,
    report_at: Option<MeshTime>,
    /// Ways have to be chosen anew.
    is_stale: bool,
    /// Or ways to these machines alone.
    stale: SlotSet,
    /// The ways by neighbours when ways to all machines were chosen last.
    ways: NeighbourLinks,
    /// The next hops in use.
    used: NextHops,
    /// Members, or what is told of them beside their distance, have changed.
    is_renamed: bool,
    /// Nothing is to be done about a neighbour before.
    neighbours_at: MeshTime,
    table: Arc<RouteTable>,
    second_at: MeshTime,
    warned_at: Option<MeshTime>,
    /// Signatures that members have brought in this second that do not verify.
    bad_signatures: BTreeMap<Slot, u8>,
    /// When it was told of members that they are faulty.
    faulty: BTreeMap<Slot, MeshTime>,
    orders: orders::MeshOrders,
    counters: MeshCounters,
    outputs: VecDeque<MeshOutput>,
}

impl Mesh {
    /// A machine without interfaces.
    ///
    /// # Errors
    ///
    /// [`MeshError::Config`]; what the seal refuses.
    pub fn new(config: Config, keys: Keys, start: MeshTime) -> Result<Self, MeshError> {
        config.check()?;
        let mut random = MeshRandom::new(&config.seed);
        let clock = random.word() as u32;
        // A machine that starts again goes on behind what it told before: sequences at random would
        // have no order, and the routes of three starts could lead in a circle.
        let own_sequence = (keys.start_ms / SEQUENCE_MS) as u16;
        let is_gateway = config.role == MachineRole::Gateway;
        // Machines that start at once are not to do at once what they do each second.
        let second_at = start + random.within(MeshSpan::seconds(1));
        let voice = MeshVoice::new(keys)?;
        let own = voice.kept_group();
        let mut mesh = Self {
            voice,
            floods: MeshFloods::new(&config.seed),
            digest: None,
            has_documents: false,
            config,
            random,
            clock,
            now: start,
            started: start,
            obeyed_at: start,
            has_asked: false,
            interfaces: BTreeMap::new(),
            numbers: BTreeMap::new(),
            budgets: BTreeMap::new(),
            neighbours: NeighbourSlots::default(),
            routes: MeshRoutes::default(),
            own_sequence,
            own_raised: start,
            own_answered: start,
            own_wanted: None,
            traces: trace::TraceRates::default(),
            requests: VecDeque::new(),
            starving: SlotSet::default(),
            lacking: BTreeSet::new(),
            starving_at: None,
            reports: GatewayReports::default(),
            sources: None,
            report_at: is_gateway.then_some(start + MeshSpan::seconds(1)),
            is_stale: false,
            stale: SlotSet::default(),
            ways: NeighbourLinks::default(),
            used: NextHops::default(),
            is_renamed: true,
            neighbours_at: start,
            table: Arc::default(),
            second_at,
            warned_at: None,
            bad_signatures: BTreeMap::new(),
            faulty: BTreeMap::new(),
            orders: orders::MeshOrders::default(),
            counters: MeshCounters::default(),
            outputs: VecDeque::new(),
        };
        own.into_iter().for_each(|own| mesh.keep_orders(own));
        Ok(mesh)
    }

    /// Takes what happens. What is bad about it is dropped and counted. The time never goes back.
    pub fn take(&mut self, now: MeshTime, input: MeshInput<'_>) {
        self.now = self.now.max(now);
        match input {
            MeshInput::Up { interface, medium } => self.up(interface, medium),
            MeshInput::Down { interface } => self.down(interface),
            MeshInput::Heard { interface, from, unit } => self.heard(interface, from, &unit),
            MeshInput::Data { frame } => self.originate(&frame),
            MeshInput::Keep(group) => self.keep_orders(group),
            MeshInput::Forget(group) => self.forget_orders(group),
            MeshInput::Notice { group, notice } => {
                // It is counted where it is refused.
                let _ = self.take_notice(group, &notice);
            }
            MeshInput::Trace { to, number } => self.trace(to, number),
            MeshInput::Came { source, frames } => self.came(source, frames),
            MeshInput::Went { leg, frames } => self.went(&leg, frames),
            MeshInput::Load { interface, busy_ppm } => {
                if let Some(interface) = self.interfaces.get_mut(&interface) {
                    interface.hear_load(now, busy_ppm);
                }
            }
            MeshInput::Digest { digest } => (self.digest, self.has_documents) = (digest, true),
            MeshInput::Documents { to, urgency, message } => {
                self.tell_documents(to, urgency, &message)
            }
            MeshInput::Tick => {}
        }
        self.tick();
        self.settle();
        debug_assert!(self.is_bounded(), "memory is bounded, whatever comes");
    }

    /// Carries no frames from now on but those of these sources, each of its group. Without this
    /// call those of everybody are carried.
    pub fn set_sources(&mut self, sources: Arc<CarriedSources>) {
        self.sources = Some(sources);
    }

    /// When [`MeshInput::Tick`] is due. Later is allowed, and earlier does no harm.
    pub fn next_wake(&self) -> Option<MeshTime> {
        let ticks = self.interfaces.values().map(MeshInterface::due);
        let neighbours = (!self.neighbours.is_empty()).then_some(self.neighbours_at);
        let report = self.report_at.filter(|_| !self.interfaces.is_empty());
        let asks = if self.has_asked { None } else { self.remembered_until() };
        let others = [neighbours, self.floods.due(), report, asks, self.raise_at()];
        let others =
            others.into_iter().chain([self.orders.wake(), self.documents_wake(), self.starving_at]);
        let all = ticks.chain(others.flatten());
        all.min().map(|at| at.max(self.now + MeshSpan(1)))
    }

    /// The next thing that the machine wants done; to be called until there is none.
    pub fn next_output(&mut self) -> Option<MeshOutput> {
        self.outputs.pop_front()
    }

    /// The next hops of all machines that are reached.
    pub fn table(&self) -> Arc<RouteTable> {
        Arc::clone(&self.table)
    }

    /// The counts so far.
    pub fn counters(&self) -> MeshCounters {
        self.counters
    }

    /// How many frames wait for their moment, or for air time, that were not sent yet: those that
    /// were made here, and those of others.
    pub fn waiting(&self) -> [usize; 2] {
        [true, false].map(|is_own| self.floods.unsent(is_own))
    }

    /// The air time that an interface has spent, by urgency: [`SendUrgency::ALL`].
    pub fn spent(&self, interface: InterfaceId) -> [MeshSpan; 4] {
        self.interfaces.get(&interface).map(|one| one.budget.spent()).unwrap_or_default()
    }

    /// The neighbours, by interface and slot.
    pub fn neighbours(&self) -> Vec<MeshNeighbourStatus> {
        let status = |one: &MeshNeighbour| MeshNeighbourStatus {
            tag: one.tag,
            slot: one.id.slot,
            interface: one.id.interface,
            address: one.address,
            heard: one.quality.heard(),
            told: one.quality.told(),
            round_trip: one.quality.round_trip(),
            cost: one.cost(),
            is_avoided: one.blame.at(self.now).is_any(),
        };
        self.neighbours.values().map(status).collect()
    }

    /// The ways to a machine that are known, the one in use first.
    pub fn ways(&self, to: Slot) -> Vec<WayStatus> {
        let Some(destination) = self.routes.get(to) else { return vec![] };
        let status = |(via, told): (LinkId, u16)| WayStatus {
            via: via.slot,
            interface: via.interface,
            told,
            cost: self.neighbours.get(&via).and_then(MeshNeighbour::cost),
            is_used: destination.selected.is_some_and(|selected| selected.via == via),
            is_avoided: self
                .neighbours
                .get(&via)
                .is_some_and(|one| one.blame.at(self.now).is_any()),
        };
        let mut ways: Vec<_> = destination.ways().map(status).collect();
        ways.sort_by_key(|way| (!way.is_used, way.metric()));
        ways
    }

    /// The newest epoch of the mesh's group that is held.
    pub fn epoch(&self) -> Epoch {
        self.voice.epochs().newest()
    }

    /// The machine's slot.
    pub fn slot(&self) -> Slot {
        self.voice.slot()
    }

    /// The machine's address in the mesh.
    pub fn tag(&self) -> PeerTag {
        self.voice.tag()
    }

    /// Takes over the changes of an order of the group. A machine that is no member any more is no
    /// neighbour and no destination.
    ///
    /// # Errors
    ///
    /// The errors of the seal. The machine is to be made anew then.
    pub fn rekey(&mut self, now: MeshTime, rekeyed: Rekeyed) -> Result<(), MeshError> {
        self.now = self.now.max(now);
        let orders = rekeyed.orders;
        let stays = self.voice.rekey(rekeyed)?;
        self.sweep_members();
        self.obeyed(orders, stays);
        self.obeyed_at = self.now;
        self.neighbours.values_mut().for_each(|one| one.proof.has_opened = false);
        for interface in self.interfaces.values_mut() {
            interface.hasten_announcement(self.now);
            interface.hasten_hello(self.now);
        }
        (self.is_stale, self.is_renamed) = (true, true);
        self.tick();
        self.settle();
        Ok(())
    }

    /// Forgets those who are members no more.
    fn sweep_members(&mut self) {
        let voice = &self.voice;
        let gone: Vec<_> =
            self.neighbours.keys().filter(|id| !voice.is_member(id.slot)).copied().collect();
        self.routes.sweep(self.now, |slot| voice.is_member(slot));
        self.reports.sweep(|slot| voice.is_member(slot));
        gone.into_iter().for_each(|id| self.lose(id));
        self.is_stale = true;
    }

    /// The members that are about to be removed from the mesh's group, each with its order. An
    /// order that has come is left out.
    pub fn leaving(&self) -> Vec<(Slot, u64)> {
        self.voice.leaving().map(|one| (one.slot, one.order)).collect()
    }

    fn up(&mut self, id: InterfaceId, medium: MeshMedium) {
        let has_room =
            self.interfaces.len() < MAX_MESH_INTERFACES || self.interfaces.contains_key(&id);
        if medium.check().is_err() || !has_room {
            self.counters.no_room += 1;
            return;
        }
        self.down(id);
        let fresh =
            InterfaceNumbers { parts: self.random.word() as u16, ..InterfaceNumbers::default() };
        let numbers = *self.numbers.entry(id).or_insert(fresh);
        let mut interface = MeshInterface::new(medium, self.now, numbers);
        if let Some(budget) = self.budgets.remove(&id).filter(|budget| budget.is_of(&medium)) {
            interface.budget = budget;
        }
        self.interfaces.insert(id, interface);
    }

    fn down(&mut self, id: InterfaceId) {
        let gone = self.neighbours.keys().filter(|link| link.interface == id);
        gone.copied().collect::<Vec<_>>().into_iter().for_each(|link| self.lose(link));
        self.floods.down(id);
        self.orders.down(id);
        if let Some(interface) = self.interfaces.remove(&id) {
            self.numbers.insert(id, interface.numbers);
            self.budgets.insert(id, interface.budget);
        }
    }

    /// Until when others may have routes by this machine from before it started, of which it knows
    /// nothing: until then it takes none but those to neighbours.
    fn remembered_until(&self) -> Option<MeshTime> {
        let memory = self.interfaces.values().map(|one| one.memory()).max()?;
        Some(self.started + memory)
    }

    /// Forgets a neighbour.
    fn lose(&mut self, id: LinkId) {
        let Some(neighbour) = self.neighbours.remove(&id) else { return };
        if let Some(interface) = self.interfaces.get_mut(&id.interface) {
            interface.addresses.remove(&neighbour.address);
        }
        self.routes.forget(id);
        self.is_stale = true;
        self.event(MeshEvent::NeighbourLost { slot: id.slot, interface: id.interface });
    }

    /// Tells people something. That somebody is faulty is told once in a while, or it would fill
    /// their logs.
    fn event(&mut self, event: MeshEvent) {
        if let MeshEvent::Faulty { slot } = event {
            let now = self.now;
            self.faulty.retain(|_, told| now.since(*told) < FAULTY_PAUSE);
            if self.faulty.contains_key(&slot) {
                return;
            }
            self.faulty.insert(slot, now);
        }
        self.outputs.push_back(MeshOutput::Event(event));
    }

    /// Whether a signature that a member brings is worth the time that it takes to verify.
    fn may_verify(&self, by: LinkId) -> bool {
        let bad = self.bad_signatures.get(&by.slot);
        bad.is_none_or(|bad| *bad < crate::limits::MAX_BAD_SIGNATURES)
    }

    /// Notes that a member has brought a signature that does not verify.
    fn did_not_verify(&mut self, by: LinkId) {
        let bad = self.bad_signatures.entry(by.slot).or_default();
        *bad = bad.saturating_add(1);
    }

    /// A moment within the next part of a hello interval.
    fn soon(&mut self, interface: InterfaceId, part: u64) -> MeshTime {
        let interval =
            self.interfaces.get(&interface).map_or(MeshSpan(0), |one| one.hello.interval);
        self.now + self.random.within(interval.part(part))
    }

    /// The clock of time stamps.
    fn stamp(&self) -> u32 {
        (self.now.0 as u32).wrapping_add(self.clock)
    }

    /// The properties of a neighbour that a choice of ways needs.
    fn way_by(neighbour: &MeshNeighbour, now: MeshTime) -> Option<NeighbourLink> {
        let cost = neighbour.cost()?;
        let patience = neighbour.hello.interval.times(PATIENCE);
        let (blame, is_anew) = (neighbour.blame.at(now), neighbour.blame.is_anew(now));
        Some(NeighbourLink { cost, blame, is_anew, patience })
    }

    /// Has the route to a destination told soon to all neighbours.
    fn news(&mut self, slot: Slot, news: NewsCause) {
        for id in self.interfaces.keys().copied().collect::<Vec<_>>() {
            self.news_on(id, slot, news);
        }
    }

    /// Has the route to a destination told soon to the neighbours of an interface. What comes
    /// meanwhile goes with it.
    fn news_on(&mut self, id: InterfaceId, slot: Slot, news: NewsCause) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        if interface.note_news(slot, news) {
            let at = self.soon(id, 16);
            if let Some(interface) = self.interfaces.get_mut(&id) {
                interface.routes.hasten(at);
            }
        }
    }

    /// Has all routes told to the neighbours of an interface.
    fn tell_all(&mut self, id: InterfaceId) {
        let at = self.soon(id, 8);
        if let Some(interface) = self.interfaces.get_mut(&id) {
            interface.routes.want_all(at, FullUpdate::Addresses);
        }
    }

    fn is_bounded(&self) -> bool {
        use crate::limits::{MAX_MESH_NEIGHBOURS, MAX_REQUESTS_KNOWN};
        self.neighbours.len() <= MAX_MESH_NEIGHBOURS
            && self.requests.len() <= MAX_REQUESTS_KNOWN
            && self.floods.brought() <= crate::limits::MAX_FLOODS_WAITING
            && self.orders.is_bounded()
    }

    /// Whether a destination is this machine.
    fn is_here(&self, tag: PeerTag) -> bool {
        tag == self.voice.tag() || self.config.attached.contains(&tag)
    }

    fn dropped(&mut self, urgency: SendUrgency, is_own: bool) {
        debug_assert!(urgency != SendUrgency::Control, "what controls is not dropped but put off");
        self.counters.no_air_time += 1;
        self.counters.own_no_air_time += u64::from(is_own);
    }
}

/// The shortest time between two warnings of one faulty member.
const FAULTY_PAUSE: MeshSpan = MeshSpan::seconds(60);
/// Hello intervals for which another way has to be better.
const PATIENCE: u64 = 16;
/// So many milliseconds of a machine's clock are one sequence of its routes, when it starts: more
/// than it takes for one while it runs.
const SEQUENCE_MS: u64 = 1024;
