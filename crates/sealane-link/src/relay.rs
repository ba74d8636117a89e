//! A relay: its threads, and what they share.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use sealane_frame::PeerTag;
use sealane_mesh::{Mesh, MeshInput};
use tracing::debug;

use crate::capture::CaptureTap;
use crate::config::{Config, LinkConfig};
use crate::counters::{DropReason, FrameTally, RelayCounters};
use crate::floods::RelayFloods;
use crate::link::RelayLink;
use crate::outlet::LinkOutlet;
use crate::partial::PartialRoom;
use crate::port::RelayPort;
use crate::reload::{ConfigChange, ReloadTally};
use crate::routing::{
    IntakeLane, MulticastReceiver, RoutingDriver, RoutingFound, RoutingGate, RoutingHandle,
    RoutingSecrets, RoutingShared, RoutingStatus, RoutingTask,
};
use crate::status::RelayWatch;
use crate::table::{OwnAddresses, RelayTable};
use crate::worker::RelayWorker;
use crate::{LinkError, RelayCard};

/// A relay that runs: one thread for each link. It holds no key and opens nothing.
#[derive(Debug)]
pub struct LinkRelay {
    shared: Arc<RelayShared>,
    opened: Arc<[RelayLink]>,
    threads: Vec<JoinHandle<()>>,
    /// The thread of the machine that routes, which ends last.
    driver: Option<JoinHandle<()>>,
}

/// An arrival for this machine itself.
#[derive(Debug)]
pub enum RelayArrival<'a> {
    /// A frame. It may be opened where it stands.
    Frame(&'a mut [u8]),
    /// A neighbour asks for the own announcement.
    Asked,
    /// No more has come at once: what was kept to go together goes now.
    Pause,
}

/// Takes what comes for this machine, on the thread of the link, or says why not.
pub type TakeArrival = Box<dyn Fn(RelayArrival<'_>) -> Result<(), DropReason> + Send + Sync>;

/// A member beside the relay.
pub struct RelayEnd {
    /// Its address.
    pub tag: PeerTag,
    /// The function that takes its frames, and those to everybody.
    pub take: TakeArrival,
}

/// The parts that run beside the relay on its machine.
#[derive(Debug, Default)]
pub struct RelayBeside {
    /// A member that takes frames.
    pub end: Option<RelayEnd>,
    /// The machine that finds neighbours and routes: needed where the configuration has
    /// `[routing]`.
    pub machine: Option<RoutingSecrets>,
}

/// The state that the threads of a relay share.
#[derive(Debug)]
pub(crate) struct RelayShared {
    /// The member, if this is its machine.
    pub(crate) end: Option<RelayEnd>,
    /// The machine that finds neighbours and routes.
    pub(crate) routing: Option<Arc<RoutingShared>>,
    /// The sources of the table.
    plan: Mutex<TablePlan>,
    table: Mutex<Arc<RelayTable>>,
    /// Counts the tables, so that a thread sees without a lock that it has the newest.
    version: AtomicU64,
    floods: Mutex<RelayFloods>,
    pub(crate) counters: RelayCounters,
    pub(crate) tap: Arc<CaptureTap>,
    pub(crate) partial: PartialRoom,
    links: Vec<LinkConfig>,
    reloads: Mutex<ReloadTally>,
    started: Instant,
    ends: AtomicBool,
}

/// The sources of a table.
#[derive(Debug)]
struct TablePlan {
    config: Config,
    cards: Vec<RelayCard>,
    found: RoutingFound,
}

impl TablePlan {
    fn new(config: &Config, cards: &[RelayCard]) -> TablePlan {
        let (config, cards) = (config.clone(), cards.to_vec());
        TablePlan { config, cards, found: RoutingFound::default() }
    }
}

impl LinkRelay {
    /// Opens the links and begins to relay.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`], [`LinkError::UnknownMember`], [`LinkError::Open`].
    pub fn start(config: &Config, cards: &[RelayCard]) -> Result<LinkRelay, LinkError> {
        Self::open(config, cards, RelayBeside::default())
    }

    /// The same for a member's machine: `take` gets the frames that are for the address `own`.
    ///
    /// # Errors
    ///
    /// As [`LinkRelay::start`].
    pub fn join(
        config: &Config,
        cards: &[RelayCard],
        own: PeerTag,
        take: TakeArrival,
    ) -> Result<LinkRelay, LinkError> {
        let end = Some(RelayEnd { tag: own, take });
        Self::open(config, cards, RelayBeside { end, machine: None })
    }

    /// The same with all that may run beside a relay.
    ///
    /// # Errors
    ///
    /// As [`LinkRelay::start`].
    pub fn open(
        config: &Config,
        cards: &[RelayCard],
        beside: RelayBeside,
    ) -> Result<LinkRelay, LinkError> {
        let RelayBeside { end, machine } = beside;
        let end_tag = end.as_ref().map(|end| end.tag);
        // All that can be refused is made before a link is opened: a wrong file opens nothing.
        let (mesh, routing) = machine_of(config, cards, end_tag, machine)?.unzip();
        let own = own_of(end_tag, routing.as_deref());
        // The table is made before the links open, so that a false configuration leaves no socket
        // behind.
        let table = RelayTable::new(config, cards, own, &RoutingFound::default())?;
        let (links, plan) = (open_links(config)?, TablePlan::new(config, cards));
        let shared = Arc::new(RelayShared::new(table, end, routing.clone(), plan));
        // From here on `Drop` ends the threads that have started, if a later one does not.
        let mut relay = LinkRelay { shared, opened: links, threads: vec![], driver: None };
        for index in 0..config.links.len() {
            relay.spawn(config, index)?;
        }
        // The driver starts last. Units of the first moments wait in its bounded queues.
        if let Some((mesh, routing)) = mesh.zip(routing) {
            let (shared, links) = (&relay.shared, &relay.opened);
            let driver = RoutingDriver::new(mesh, shared, &routing, links, &config.links);
            relay.driver = Some(spawn("routing", || driver.run())?);
        }
        debug!(tag = %relay.tag(), links = config.links.len(), "links are open");
        Ok(relay)
    }

    /// Starts the threads of a link. They end with this.
    fn spawn(&mut self, config: &Config, index: usize) -> Result<(), LinkError> {
        let Some(link) = config.links.get(index) else { return Ok(()) };
        let (shared, links) = (Arc::clone(&self.shared), Arc::clone(&self.opened));
        let worker = RelayWorker::new(Arc::clone(&shared), Arc::clone(&links), index);
        self.threads.push(spawn(&link.name, || worker.run())?);
        let everybody = MulticastReceiver::new(shared, links, index);
        if let Some(everybody) = everybody {
            self.threads.push(spawn(&link.name, || everybody.run())?);
        }
        Ok(())
    }

    /// A hold on the machine that routes, if there is one.
    pub fn router(&self) -> Option<RoutingHandle> {
        self.shared.routing.clone().map(RoutingHandle::new)
    }

    /// Goes on with other neighbours, routes and cards. What arrives meanwhile is decided by the
    /// one table or the other, never by a mixture.
    ///
    /// # Errors
    ///
    /// As [`LinkRelay::start`], and [`LinkError::LinksChanged`]; it goes on as it was then.
    pub fn reload(&self, config: &Config, cards: &[RelayCard]) -> Result<ConfigChange, LinkError> {
        let change = self.shared.follow(config, cards)?;
        debug!(?change, "another table is in use");
        self.shared.reloads.lock().take(Ok(change));
        Ok(change)
    }

    /// Says in its status that a configuration was refused: by [`LinkRelay::reload`], or because
    /// its file cannot be read.
    pub fn refuse_reload(&self, why: String) {
        self.shared.reloads.lock().take(Err(why.into()));
    }

    /// Writes all that links carry from now on to a file, as pcap. It never waits for the file.
    ///
    /// # Errors
    ///
    /// The system's error, and [`io::ErrorKind::AlreadyExists`] if there is a capture.
    pub fn capture(&self, file: impl Write + Send + 'static) -> io::Result<()> {
        let addresses = self.opened.iter().map(RelayLink::address).collect();
        self.shared.tap.open(Box::new(file), addresses)
    }

    /// A reader of its status.
    pub fn watch(&self) -> RelayWatch {
        RelayWatch::new(Arc::clone(&self.shared))
    }

    /// Where frames of this machine leave.
    pub fn port(&self) -> RelayPort {
        let tap = Arc::clone(&self.shared.tap);
        let outlet = LinkOutlet::new(Arc::clone(&self.opened), tap, OWN_FRAGMENTS);
        RelayPort::new(Arc::clone(&self.shared), outlet)
    }

    /// Its own address.
    pub fn tag(&self) -> PeerTag {
        self.shared.table().own()
    }

    /// The counts of carried and dropped frames so far.
    pub fn tally(&self) -> FrameTally {
        self.shared.counters.tally()
    }

    /// Takes what has come, sends it on, and ends. Gives what was carried and dropped in all.
    pub fn stop(mut self) -> FrameTally {
        self.end();
        self.shared.tap.finish();
        debug!("links are closed");
        self.shared.counters.tally()
    }

    fn end(&mut self) {
        // The links stop first, then the driver, so that the driver gets all that the links took.
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A thread that has panicked has said so on standard error.
            let _ = thread.join();
        }
        // The tasks that links have brought it last are done first.
        self.shared.routing.iter().for_each(|routing| routing.intake.end());
        let _ = self.driver.take().map(JoinHandle::join);
    }
}

impl Drop for LinkRelay {
    /// A relay that did not start whole leaves nothing running.
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LinkError> {
    let thread = std::thread::Builder::new().name(format!("link-{name}"));
    thread.spawn(work).map_err(|cause| LinkError::Open { link: name.to_owned(), cause })
}

/// The machine of a configuration that finds neighbours, and what others share with it.
fn machine_of(
    config: &Config,
    cards: &[RelayCard],
    end: Option<PeerTag>,
    machine: Option<RoutingSecrets>,
) -> Result<Option<(Mesh, Arc<RoutingShared>)>, LinkError> {
    let value = |what: &str| Err(LinkError::ConfigValue(what.to_owned()));
    let Some(routing) = &config.routing else { return Ok(None) };
    let Some(machine) = machine else {
        return value("routing: the keys of the mesh's group are missing");
    };
    let group = machine.keys.tag;
    // A machine holds the mesh's keys. On a card of the same group it would be a relay that can
    // read what it carries.
    if cards.iter().any(|card| card.group() == group) {
        // With such a card the machine would hold keys of a group that it carries (`spec/link.md`,
        // *Found neighbours*).
        return value("routing.group: a mesh is a group of its own, and a card is of this one");
    }
    let mesh = RoutingDriver::machine(config, machine, end)?;
    let first = RoutingStatus::new(group, &mesh, routing.role());
    let routing = RoutingShared::new(group, mesh.tag(), &config.links, first);
    Ok(Some((mesh, Arc::new(routing))))
}

fn open_links(config: &Config) -> Result<Arc<[RelayLink]>, LinkError> {
    let opened = config.links.iter().map(|link| RelayLink::open(link, config.memory.as_ref()));
    Ok(opened.collect::<Result<Vec<_>, _>>()?.into())
}

/// The addresses of a machine: in hops it has the one of the mesh's group, if it is of one.
fn own_of(end: Option<PeerTag>, routing: Option<&RoutingShared>) -> OwnAddresses {
    OwnAddresses { hop: routing.map(|routing| routing.tag).or(end), end }
}

#[cfg(test)]
impl LinkRelay {
    /// The worker of the first link, which runs as it is told.
    pub(crate) fn by_hand(config: &Config, cards: &[RelayCard]) -> Result<RelayWorker, LinkError> {
        let table =
            RelayTable::new(config, cards, OwnAddresses::default(), &RoutingFound::default())?;
        let (links, plan) = (open_links(config)?, TablePlan::new(config, cards));
        Ok(RelayWorker::new(Arc::new(RelayShared::new(table, None, None, plan)), links, 0))
    }
}

impl std::fmt::Debug for RelayEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// Where the ids of a port's fragments begin: between those of the threads.
const OWN_FRAGMENTS: u16 = 0x0800;

impl RelayShared {
    fn new(
        table: RelayTable,
        end: Option<RelayEnd>,
        routing: Option<Arc<RoutingShared>>,
        plan: TablePlan,
    ) -> Self {
        let links = plan.config.links.clone();
        Self {
            end,
            routing,
            plan: Mutex::new(plan),
            table: Mutex::new(Arc::new(table)),
            version: AtomicU64::new(0),
            floods: Mutex::new(RelayFloods::new()),
            counters: RelayCounters::default(),
            tap: Arc::default(),
            partial: PartialRoom::new(links.len()),
            links,
            reloads: Mutex::default(),
            started: Instant::now(),
            ends: AtomicBool::new(false),
        }
    }

    /// Goes on with another configuration, and what was found until now.
    fn follow(&self, config: &Config, cards: &[RelayCard]) -> Result<ConfigChange, LinkError> {
        let mut plan = self.plan.lock();
        // Threads hold the links that are open. Everything else is in the table, which is swapped.
        if config.links != self.links || config.routing != plan.config.routing {
            return Err(LinkError::LinksChanged);
        }
        // The plan stays locked until the swap, so that a route found meanwhile is not lost to an
        // older table.
        let table = RelayTable::new(config, cards, self.own(), &plan.found)?;
        let change = self.swap(table);
        (plan.config, plan.cards) = (config.clone(), cards.to_vec());
        Ok(change)
    }

    /// Goes on with what the machine that routes has found.
    pub(crate) fn publish(&self, found: RoutingFound) {
        let mut plan = self.plan.lock();
        // The configuration was taken before: only what was found is another.
        if let Ok(table) = RelayTable::new(&plan.config, &plan.cards, self.own(), &found) {
            self.swap(table);
        }
        // The routes are kept even if no table could be made. The next reload may be able to use
        // them.
        plan.found = found;
    }

    fn own(&self) -> OwnAddresses {
        own_of(self.end.as_ref().map(|end| end.tag), self.routing.as_deref())
    }

    /// The way of a link's thread to the machine that routes.
    pub(crate) fn gate(&self, link: usize) -> Option<RoutingGate> {
        let routing = Arc::clone(self.routing.as_ref()?);
        let config = self.links.get(link).filter(|link| link.discovery.is_some())?;
        Some(RoutingGate::new(routing, link, config))
    }

    /// Whether some frames leave by radios.
    pub(crate) fn has_radio(&self) -> bool {
        self.routing.as_ref().is_some_and(|routing| routing.has_radio)
    }

    /// Whether the machine that routes is told what has come to this one.
    pub(crate) fn counts_arrivals(&self) -> bool {
        self.routing.as_ref().is_some_and(|routing| routing.is_gateway)
    }

    /// Hands a frame to the machine that routes, which sends it by a radio.
    pub(crate) fn to_radio(&self, frame: &[u8]) -> Result<(), DropReason> {
        let routing = self.routing.as_ref().ok_or(DropReason::NoRoute)?;
        let input = MeshInput::Data { frame: frame.to_vec().into() };
        routing.intake.put(IntakeLane::Data, RoutingTask::Mesh(input))
    }

    fn swap(&self, mut table: RelayTable) -> ConfigChange {
        let before = self.table();
        let change = ConfigChange::between(&before, &table);
        // The counts move over before the swap. A reader of the status never sees a neighbour begin
        // at zero again.
        table.go_on_counting(&before);
        // Announcements that a neighbour brought leave with it. Nobody vouches for them any more.
        let is_neighbour = |tag| table.neighbours().iter().any(|one| one.tag == tag);
        self.with_floods(|floods| floods.keep_of(is_neighbour));
        *self.table.lock() = Arc::new(table);
        // The number changes behind the table. A thread that sees the number finds the new table;
        // one that does not goes on with a whole old one.
        self.version.fetch_add(1, Ordering::Release);
        change
    }

    /// The results of later configurations.
    pub(crate) fn reloads(&self) -> ReloadTally {
        self.reloads.lock().clone()
    }

    /// The name of a link.
    pub(crate) fn link_name(&self, link: usize) -> String {
        self.links.get(link).map(|link| link.name.clone()).unwrap_or_default()
    }

    /// The newest table.
    pub(crate) fn table(&self) -> Arc<RelayTable> {
        Arc::clone(&self.table.lock())
    }

    /// Which table is the newest.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn with_floods<T>(&self, with: impl FnOnce(&mut RelayFloods) -> T) -> T {
        with(&mut self.floods.lock())
    }

    /// Microseconds since it started.
    pub(crate) fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn stop(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}
