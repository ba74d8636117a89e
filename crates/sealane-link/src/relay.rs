//! A relay: its threads, and what they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use sealane_frame::PeerTag;

use crate::config::{Config, LinkConfig};
use crate::counters::{Counters, Reason, Tally};
use crate::floods::Floods;
use crate::link::Link;
use crate::outlet::Outlet;
use crate::port::Port;
use crate::table::Table;
use crate::worker::Worker;
use crate::{LinkError, RelayCard};

/// A relay that runs: one thread for each link. It holds no key and opens nothing.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    opened: Arc<[Link]>,
    links: Vec<LinkConfig>,
    threads: Vec<JoinHandle<()>>,
}

/// What comes for this machine itself.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A frame. It may be opened where it stands.
    Frame(&'a mut [u8]),
    /// A neighbour asks for the own announcement.
    Asked,
}

/// Takes what comes for this machine, on the thread of the link, or says why not.
pub type Take = Box<dyn Fn(Arrival<'_>) -> Result<(), Reason> + Send + Sync>;

/// A member beside the relay: its address, and what takes its frames.
pub(crate) struct End {
    tag: PeerTag,
    pub(crate) take: Take,
}

/// What the threads of a relay share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The member, if this is its machine.
    pub(crate) end: Option<End>,
    table: Mutex<Arc<Table>>,
    /// Counts the tables, so that a thread sees without a lock that it has the newest.
    version: AtomicU64,
    floods: Mutex<Floods>,
    pub(crate) counters: Counters,
    started: Instant,
    ends: AtomicBool,
}

impl Relay {
    /// Opens the links and begins to relay.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`], [`LinkError::UnknownMember`], [`LinkError::Open`].
    pub fn start(config: &Config, cards: &[RelayCard]) -> Result<Relay, LinkError> {
        Self::open(config, cards, None)
    }

    /// The same for a member's machine: `take` gets the frames that are for the address `own`.
    ///
    /// # Errors
    ///
    /// As [`Relay::start`].
    pub fn join(
        config: &Config,
        cards: &[RelayCard],
        own: PeerTag,
        take: Take,
    ) -> Result<Relay, LinkError> {
        Self::open(config, cards, Some(End { tag: own, take }))
    }

    fn open(config: &Config, cards: &[RelayCard], end: Option<End>) -> Result<Relay, LinkError> {
        let table = Table::new(config, cards, end.as_ref().map(|end| end.tag))?;
        let opened = config.links.iter().map(|link| Link::open(link, config.memory.as_ref()));
        let links: Arc<[Link]> = opened.collect::<Result<Vec<_>, _>>()?.into();
        let shared = Arc::new(Shared::new(table, end));
        let threads = config.links.iter().enumerate().map(|(index, link)| {
            let worker = Worker::new(Arc::clone(&shared), Arc::clone(&links), index);
            let thread = std::thread::Builder::new().name(format!("link-{}", link.name));
            let spawned = thread.spawn(|| worker.run());
            spawned.map_err(|cause| LinkError::Open { link: link.name.clone(), cause })
        });
        let threads = threads.collect::<Result<Vec<_>, _>>().inspect_err(|_| shared.stop())?;
        Ok(Relay { shared, opened: links, links: config.links.clone(), threads })
    }

    /// Goes on with other neighbours, routes and cards. What arrives meanwhile is decided by the
    /// one table or the other, never by a mixture.
    ///
    /// # Errors
    ///
    /// As [`Relay::start`], and [`LinkError::LinksChanged`]; it goes on as it was then.
    pub fn reload(&self, config: &Config, cards: &[RelayCard]) -> Result<(), LinkError> {
        if config.links != self.links {
            return Err(LinkError::LinksChanged);
        }
        let own = self.shared.end.as_ref().map(|end| end.tag);
        self.shared.swap(Table::new(config, cards, own)?);
        Ok(())
    }

    /// Where frames of this machine leave.
    pub fn port(&self) -> Port {
        let outlet = Outlet::new(Arc::clone(&self.opened), OWN_FRAGMENTS);
        Port::new(Arc::clone(&self.shared), outlet)
    }

    /// Its own address.
    pub fn tag(&self) -> PeerTag {
        self.shared.table().own()
    }

    /// What was carried and dropped so far.
    pub fn tally(&self) -> Tally {
        self.shared.counters.tally()
    }

    /// Takes what has come, sends it on, and ends. Gives what was carried and dropped in all.
    pub fn stop(self) -> Tally {
        self.shared.stop();
        for thread in self.threads {
            // A thread that has panicked has said so on standard error.
            let _ = thread.join();
        }
        self.shared.counters.tally()
    }
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// Where the ids of a port's fragments begin: between those of the threads.
const OWN_FRAGMENTS: u16 = 0x0800;

impl Shared {
    fn new(table: Table, end: Option<End>) -> Self {
        Self {
            end,
            table: Mutex::new(Arc::new(table)),
            version: AtomicU64::new(0),
            floods: Mutex::new(Floods::new()),
            counters: Counters::default(),
            started: Instant::now(),
            ends: AtomicBool::new(false),
        }
    }

    fn swap(&self, table: Table) {
        let is_neighbour = |tag| table.neighbours().iter().any(|one| one.tag == tag);
        self.with_floods(|floods| floods.keep_of(is_neighbour));
        *self.table.lock() = Arc::new(table);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The newest table.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.lock())
    }

    /// Which table is the newest.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn with_floods<T>(&self, with: impl FnOnce(&mut Floods) -> T) -> T {
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
