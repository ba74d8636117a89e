//! The keys of the machine that finds neighbours and routes, and what people are told of it.

use std::path::Path;

use sealane_frame::PeerTag;
use sealane_group::{EpochSource, KeyFolder, Member};
use sealane_link::{Config, Machine, Relay, Router, RoutingConfig};
use sealane_mesh::{Event, Output};
use sealane_seal::{Epoch, Slot};

use super::orders::Obeying;
use crate::Failure;
use crate::args::key::KeysArgs;
use crate::key::{open, root};

/// The mesh's group, while its machine runs.
pub(crate) struct Routing {
    obeying: Obeying,
    router: Option<Router>,
    /// What the machine knows of the group.
    known: Known,
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
        let obeying = Obeying::new(member, "mesh");
        Ok(Some((Routing { obeying, router: None, known, said: None }, machine)))
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
        self.obeying.member.slot()
    }

    /// The machine's own address in the mesh.
    ///
    /// # Errors
    /// What the group refuses.
    pub(crate) fn tag(&self) -> Result<PeerTag, Failure> {
        Ok(self.obeying.member.source()?)
    }

    /// Goes on beside a relay that runs.
    pub(crate) fn follow_with(&mut self, relay: &Relay) {
        self.router = relay.router();
        if let Some(router) = &self.router {
            router.listen(Box::new(tell));
        }
        self.obeying.follow_with(relay);
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
        self.obeying.obey();
        self.obeying.member.reload()?;
        self.obeying.feed()?;
        let now = Known::of(&self.obeying.member);
        if now == self.known {
            return Ok(());
        }
        let rekeyed = self.obeying.member.mesh_rekeyed()?;
        let router = self.router.as_ref();
        // If the machine has too much to do, it follows a second later.
        if router.is_some_and(|router| router.rekey(rekeyed).is_ok()) {
            eprintln!("sealane: the mesh's group has changed: its members and keys are known");
            self.known = now;
        }
        Ok(())
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
