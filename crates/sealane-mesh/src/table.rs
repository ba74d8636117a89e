//! What a machine reaches, as its data path reads it: made whole, then only read.

use std::collections::BTreeMap;

use sealane_frame::PeerTag;
use sealane_seal::Slot;

use crate::{Address, InterfaceId};

/// Who takes frames for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    routes: BTreeMap<Slot, Route>,
    addresses: BTreeMap<PeerTag, Slot>,
}

/// A neighbour that takes frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The neighbour.
    pub slot: Slot,
    /// Its address in the mesh.
    pub tag: PeerTag,
    /// The interface that it is on.
    pub interface: InterfaceId,
    /// Its address there.
    pub address: Address,
}

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The machine.
    pub to: Slot,
    /// Whether it is a gateway.
    pub is_gateway: bool,
    /// How far it is.
    pub metric: u16,
    /// Who takes frames for it.
    pub hop: Hop,
    /// The ways that are known, this one too.
    pub candidates: u8,
}

impl Table {
    pub(crate) fn insert(&mut self, route: Route, addresses: impl Iterator<Item = PeerTag>) {
        self.routes.insert(route.to, route);
        for address in addresses {
            // An address that two machines claim stays with the one of the lesser slot.
            self.addresses.entry(address).or_insert(route.to);
        }
    }

    /// Who takes frames for an address.
    pub fn next(&self, destination: PeerTag) -> Option<&Hop> {
        self.hop(self.machine(destination)?)
    }

    /// The machine that an address lives on.
    pub fn machine(&self, address: PeerTag) -> Option<Slot> {
        self.addresses.get(&address).copied()
    }

    /// Who takes frames for a machine.
    pub fn hop(&self, slot: Slot) -> Option<&Hop> {
        self.route(slot).map(|route| &route.hop)
    }

    /// How a machine is reached.
    pub fn route(&self, slot: Slot) -> Option<&Route> {
        self.routes.get(&slot)
    }

    /// All routes, by slot.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.values()
    }

    /// All addresses that are reached.
    pub fn addresses(&self) -> impl Iterator<Item = (PeerTag, &Route)> {
        let routes = self.addresses.iter();
        routes.filter_map(|(tag, slot)| Some((*tag, self.routes.get(slot)?)))
    }

    /// The nearest gateway.
    pub fn gateway(&self) -> Option<&Route> {
        let gateways = self.routes.values().filter(|route| route.is_gateway);
        gateways.min_by_key(|route| (route.metric, route.to))
    }
}
