//! The keys of the machine that finds neighbours and routes, and what people are told of it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sealane_frame::PeerTag;
use sealane_group::{Change, EpochSource, KeyFolder, Member, Notice};
use sealane_link::{Config, LocalInput, Machine, Relay, Router, RoutingConfig};
use sealane_mesh::{Event, Output};
use sealane_seal::{Epoch, Slot};

use crate::Failure;
use crate::args::key::KeysArgs;
use crate::key::{open, root};

/// The mesh's group, while its machine runs.
pub(crate) struct Routing {
    member: Member,
    router: Option<Router>,
    /// What the machine knows of the group.
    known: Known,
    /// Notices that came over the mesh, and were not obeyed yet.
    heard: Arc<Mutex<Vec<Arc<[u8]>>>>,
    /// Where this machine's folder is the authority's: how many of its orders the mesh was given.
    fed: Option<u64>,
    /// What was said of the group last.
    said: Option<String>,
}

/// As much of a group as tells whether it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    orders: u64,
    epoch: Epoch,
    members: Vec<Slot>,
}

impl Routing {
    /// Opens the keys that a configuration names, if it has a machine that routes; `keys` are those
    /// of the command line.
    ///
    /// # Errors
    /// What the key folder refuses.
    pub(crate) fn read(
        file: &Path,
        config: &Config,
        keys: &KeysArgs,
    ) -> Result<Option<(Routing, Machine)>, Failure> {
        let Some(routing) = &config.routing else { return Ok(None) };
        let member = Routing::member(file, routing, keys)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| Failure::Runtime(std::io::Error::other(e)))?;
        let machine = Machine { keys: member.mesh_keys()?, seed };
        let known = Known::of(&member);
        let (heard, fed) = (Arc::default(), None);
        Ok(Some((Routing { member, router: None, known, heard, fed, said: None }, machine)))
    }

    /// The mesh's group in the key folder that a configuration names.
    ///
    /// # Errors
    /// What the key folder refuses.
    pub(crate) fn member(
        file: &Path,
        routing: &RoutingConfig,
        keys: &KeysArgs,
    ) -> Result<Member, Failure> {
        Ok(open(&keys_of(file, routing, keys))?.group(&routing.group)?)
    }

    /// The same if the folder is there and needs no passphrase.
    pub(crate) fn open_member(
        file: &Path,
        routing: &RoutingConfig,
        keys: &KeysArgs,
    ) -> Option<Member> {
        let folder = root(&keys_of(file, routing, keys));
        let is_open = !KeyFolder::is_protected(&folder).ok()?;
        is_open.then(|| Routing::member(file, routing, keys).ok()).flatten()
    }

    /// The slot of this machine in the mesh's group.
    pub(crate) fn slot(&self) -> Slot {
        self.member.slot()
    }

    /// The machine's own address in the mesh.
    ///
    /// # Errors
    /// What the group refuses.
    pub(crate) fn tag(&self) -> Result<PeerTag, Failure> {
        Ok(self.member.source()?)
    }

    /// Goes on beside a relay that runs.
    pub(crate) fn follow_with(&mut self, relay: &Relay) {
        self.router = relay.router();
        if let Some(router) = &self.router {
            let (heard, own) = (Arc::clone(&self.heard), self.member.tag());
            router.listen(Box::new(move |output| {
                tell(output);
                note(&heard, own, output);
            }));
        }
    }

    /// Reads what the group has become, and has the machine follow. To be called once a second.
    pub(crate) fn follow(&mut self) {
        let outcome = self.try_follow().map_err(|error| error.to_string());
        if let Err(error) = &outcome
            && self.said.as_ref() != Some(error)
        {
            eprintln!("sealane: the mesh's group: {error}; routing goes on as it was");
        }
        self.said = outcome.err();
    }

    fn try_follow(&mut self) -> Result<(), sealane_group::Error> {
        self.obey();
        self.member.reload()?;
        self.feed()?;
        let now = Known::of(&self.member);
        if now == self.known {
            return Ok(());
        }
        let rekeyed = self.member.mesh_rekeyed()?;
        let router = self.router.as_ref();
        // If the machine has too much to do, it follows a second later.
        if router.is_some_and(|router| router.rekey(rekeyed).is_ok()) {
            eprintln!("sealane: the mesh's group has changed: its members and keys are known");
            self.known = now;
        }
        Ok(())
    }
}

impl Routing {
    /// Obeys what came over the mesh. What cannot be obeyed leaves the folder as it was.
    fn obey(&mut self) {
        let heard = std::mem::take(&mut *lock(&self.heard));
        for bytes in heard {
            let applied = Notice::from_bytes(&bytes).and_then(|notice| self.member.apply(&notice));
            match applied {
                Ok(changes) => changes.iter().for_each(say_change),
                Err(error) => eprintln!("sealane: an order of the mesh's group: {error}"),
            }
        }
    }

    /// Gives the mesh the orders of the authority whose folder this is: the last ones at the start,
    /// the newest first, for those who have missed them, and each later one behind its notices of
    /// removal.
    fn feed(&mut self) -> Result<(), sealane_group::Error> {
        let Some(router) = self.router.as_ref().filter(|_| self.member.is_authority()) else {
            return Ok(());
        };
        let (group, orders) = (self.member.tag(), self.member.orders());
        let notices = match self.fed {
            None => {
                let first = orders.saturating_sub(sealane_mesh::limits::MAX_KEPT_ORDERS as u64);
                let mut notices = self.member.notices(first)?;
                notices.reverse();
                notices
            }
            Some(fed) if fed < orders => {
                let mut notices = self.member.removals(fed)?;
                notices.extend(self.member.notices(fed)?);
                notices
            }
            Some(_) => return Ok(()),
        };
        for notice in notices {
            let notice = notice.as_bytes().to_vec();
            if router.push(LocalInput::Notice { group, notice }).is_err() {
                // It has too much to do: all of them again a second later.
                return Ok(());
            }
        }
        self.fed = Some(orders);
        Ok(())
    }
}

/// Notices that wait to be obeyed, at most. Others come again with the machine's next start.
const MAX_HEARD: usize = 256;

/// Keeps a notice of the mesh's own group until it is obeyed.
fn note(heard: &Mutex<Vec<Arc<[u8]>>>, own: sealane_frame::GroupTag, output: &Output) {
    let Output::Notice { group, notice } = output else { return };
    let mut heard = lock(heard);
    if *group == own && heard.len() < MAX_HEARD {
        heard.push(Arc::clone(notice));
    }
}

fn lock(heard: &Mutex<Vec<Arc<[u8]>>>) -> std::sync::MutexGuard<'_, Vec<Arc<[u8]>>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say_change(change: &Change) {
    match change {
        Change::Leaving(removal) => eprintln!(
            "sealane: mesh: slot {} is about to be removed by order {}, and is shut out",
            removal.slot.number(),
            removal.order
        ),
        Change::Stays { slot, order } => eprintln!(
            "sealane: mesh: slot {} stays: order {order} has not removed it",
            slot.number()
        ),
        Change::Removed => eprintln!("sealane: mesh: this machine was removed from the group"),
        _ => {}
    }
}

impl Known {
    fn of(member: &Member) -> Known {
        let members = member.addresses().map(|(slot, _)| slot).collect();
        Known { orders: member.orders(), epoch: member.epochs().newest(), members }
    }
}

/// The folder of the keys: the one that the configuration names, else that of the command line.
fn keys_of(file: &Path, routing: &RoutingConfig, keys: &KeysArgs) -> KeysArgs {
    let beside = file.parent().unwrap_or(Path::new(""));
    let named = routing.keys.as_ref().map(|keys| beside.join(keys));
    KeysArgs { keys: named.or_else(|| keys.keys.clone()), ..keys.clone() }
}

/// Says on standard error what people want to know at once.
fn tell(output: &Output) {
    let Output::Event(event) = output else { return };
    match event {
        Event::NeighbourFound { slot, .. } => {
            eprintln!("sealane: mesh: slot {} is a neighbour", slot.number());
        }
        Event::NeighbourLost { slot, .. } => {
            eprintln!("sealane: mesh: slot {} is no neighbour any more", slot.number());
        }
        Event::BlackHole { via, gateway } => eprintln!(
            "sealane: mesh: frames for the gateway in slot {} vanish behind slot {}, which is \
             avoided",
            gateway.number(),
            via.number()
        ),
        Event::Faulty { slot } => {
            eprintln!("sealane: mesh: slot {} sends what no machine sends", slot.number());
        }
        Event::OwnSlotHeard => eprintln!(
            "sealane: mesh: another machine sends with this machine's keys, or its own frames \
             come back: each machine needs a key folder of its own"
        ),
        _ => {}
    }
}
