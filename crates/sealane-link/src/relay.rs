//! A relay: its threads, and what they share.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use sealane_frame::PeerTag;

use crate::capture::Tap;
use crate::config::{Config, LinkConfig};
use crate::counters::{Counters, Reason, Tally};
use crate::floods::Floods;
use crate::link::Link;
use crate::outlet::Outlet;
use crate::partial::Partial;
use crate::port::Port;
use crate::reload::{Change, Reloads};
use crate::status::Watch;
use crate::table::Table;
use crate::worker::Worker;
use crate::{LinkError, RelayCard};

/// A relay that runs: one thread for each link. It holds no key and opens nothing.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    opened: Arc<[Link]>,
    threads: Vec<JoinHandle<()>>,
}

/// What comes for this machine itself.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A frame. It may be opened where it stands.
    Frame(&'a mut [u8]),
    /// A neighbour asks for the own announcement.
    Asked,
    /// No more has come at once: what was kept to go together goes now.
    Pause,
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
    pub(crate) tap: Arc<Tap>,
    pub(crate) partial: Partial,
    links: Vec<LinkConfig>,
    reloads: Mutex<Reloads>,
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
        let shared = Arc::new(Shared::new(table, end, &config.links));
        let threads = config.links.iter().enumerate().map(|(index, link)| {
            let worker = Worker::new(Arc::clone(&shared), Arc::clone(&links), index);
            let thread = std::thread::Builder::new().name(format!("link-{}", link.name));
            let spawned = thread.spawn(|| worker.run());
            spawned.map_err(|cause| LinkError::Open { link: link.name.clone(), cause })
        });
        let threads = threads.collect::<Result<Vec<_>, _>>().inspect_err(|_| shared.stop())?;
        Ok(Relay { shared, opened: links, threads })
    }

    /// Goes on with other neighbours, routes and cards. What arrives meanwhile is decided by the
    /// one table or the other, never by a mixture.
    ///
    /// # Errors
    ///
    /// As [`Relay::start`], and [`LinkError::LinksChanged`]; it goes on as it was then.
    pub fn reload(&self, config: &Config, cards: &[RelayCard]) -> Result<Change, LinkError> {
        let own = self.shared.end.as_ref().map(|end| end.tag);
        let table = match config.links == self.shared.links {
            true => Table::new(config, cards, own),
            false => Err(LinkError::LinksChanged),
        };
        let change = table.map(|table| self.shared.swap(table))?;
        self.shared.reloads.lock().take(Ok(change));
        Ok(change)
    }

    /// Says in its status that a configuration was refused: by [`Relay::reload`], or because its
    /// file cannot be read.
    pub fn refuse_reload(&self, why: String) {
        self.shared.reloads.lock().take(Err(why));
    }

    /// Writes all that links carry from now on to a file, as pcap. It never waits for the file.
    ///
    /// # Errors
    ///
    /// What the system says, and [`io::ErrorKind::AlreadyExists`] if there is a capture.
    pub fn capture(&self, file: impl Write + Send + 'static) -> io::Result<()> {
        let addresses = self.opened.iter().map(Link::address).collect();
        self.shared.tap.open(Box::new(file), addresses)
    }

    /// What reads its status.
    pub fn watch(&self) -> Watch {
        Watch::new(Arc::clone(&self.shared))
    }

    /// Where frames of this machine leave.
    pub fn port(&self) -> Port {
        let tap = Arc::clone(&self.shared.tap);
        let outlet = Outlet::new(Arc::clone(&self.opened), tap, OWN_FRAGMENTS);
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
        self.shared.tap.finish();
        self.shared.counters.tally()
    }
}

#[cfg(test)]
impl Relay {
    /// The worker of the first link, which runs as it is told.
    pub(crate) fn by_hand(config: &Config, cards: &[RelayCard]) -> Result<Worker, LinkError> {
        let table = Table::new(config, cards, None)?;
        let opened = config.links.iter().map(|link| Link::open(link, config.memory.as_ref()));
        let links: Arc<[Link]> = opened.collect::<Result<Vec<_>, _>>()?.into();
        Ok(Worker::new(Arc::new(Shared::new(table, None, &config.links)), links, 0))
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
    fn new(table: Table, end: Option<End>, links: &[LinkConfig]) -> Self {
        Self {
            end,
            table: Mutex::new(Arc::new(table)),
            version: AtomicU64::new(0),
            floods: Mutex::new(Floods::new()),
            counters: Counters::default(),
            tap: Arc::default(),
            partial: Partial::new(links.len()),
            links: links.to_vec(),
            reloads: Mutex::default(),
            started: Instant::now(),
            ends: AtomicBool::new(false),
        }
    }

    fn swap(&self, mut table: Table) -> Change {
        let before = self.table();
        let change = Change::between(&before, &table);
        table.go_on_counting(&before);
        let is_neighbour = |tag| table.neighbours().iter().any(|one| one.tag == tag);
        self.with_floods(|floods| floods.keep_of(is_neighbour));
        *self.table.lock() = Arc::new(table);
        self.version.fetch_add(1, Ordering::Release);
        change
    }

    /// What became of later configurations.
    pub(crate) fn reloads(&self) -> Reloads {
        self.reloads.lock().clone()
    }

    /// What a link is called.
    pub(crate) fn link_name(&self, link: usize) -> String {
        self.links.get(link).map(|link| link.name.clone()).unwrap_or_default()
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
