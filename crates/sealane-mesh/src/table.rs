//! The routes of a machine, as its data path reads them: made whole, then only read.

use std::sync::Arc;

use sealane_frame::PeerTag;
use sealane_seal::Slot;

use crate::slots::BySlot;
use crate::{InterfaceId, MeshAddress};

/// The next hops of all destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteTable {
    routes: BySlot<MeshRoute>,
    /// Which machines claim which addresses: by address, of one address by slot.
    claims: Arc<[AddressClaim]>,
}

/// An address that a machine says lives on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressClaim {
    pub(crate) address: PeerTag,
    pub(crate) by: Slot,
}

/// A neighbour that takes frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// The neighbour.
    pub slot: Slot,
    /// Its address in the mesh.
    pub tag: PeerTag,
    /// The interface that it is on.
    pub interface: InterfaceId,
    /// Its address there.
    pub address: MeshAddress,
}

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshRoute {
    /// The machine.
    pub to: Slot,
    /// Whether it is a gateway.
    pub is_gateway: bool,
    /// How far it is.
    pub metric: u16,
    /// The neighbour that takes frames for it.
    pub hop: NextHop,
    /// The ways that are known, this one too.
    pub candidates: u8,
}

impl RouteTable {
    /// Takes the way to a machine in place of the one before, or takes that away. Gives the one
    /// before.
    pub(crate) fn set(&mut self, to: Slot, route: Option<MeshRoute>) -> Option<MeshRoute> {
        match route {
            Some(route) => self.routes.insert(to, route),
            None => self.routes.remove(to),
        }
    }

    /// Takes other claims in place of those before. Machines that are not reached may claim too.
    pub(crate) fn set_claims(&mut self, mut claims: Vec<AddressClaim>) {
        claims.sort_unstable();
        self.claims = claims.into();
    }

    /// The next hop for an address.
    pub fn next(&self, destination: PeerTag) -> Option<&NextHop> {
        self.hop(self.machine(destination)?)
    }

    /// The machine that an address lives on, if it is reached. An address that two machines claim
    /// is that of the one with the lesser slot.
    pub fn machine(&self, address: PeerTag) -> Option<Slot> {
        let first = self.claims.partition_point(|claim| claim.address < address);
        let own = self.claims.get(first..).unwrap_or_default();
        let own = own.iter().take_while(|claim| claim.address == address);
        own.map(|claim| claim.by).find(|slot| self.route(*slot).is_some())
    }

    /// The next hop for a machine.
    pub fn hop(&self, slot: Slot) -> Option<&NextHop> {
        self.route(slot).map(|route| &route.hop)
    }

    /// How a machine is reached.
    pub fn route(&self, slot: Slot) -> Option<&MeshRoute> {
        self.routes.get(slot)
    }

    /// All routes, by slot.
    pub fn routes(&self) -> impl Iterator<Item = &MeshRoute> {
        self.routes.iter().map(|(_, route)| route)
    }

    /// How many machines are reached.
    pub(crate) fn reached(&self) -> usize {
        self.routes.len()
    }

    /// All addresses that are reached.
    pub fn addresses(&self) -> impl Iterator<Item = (PeerTag, &MeshRoute)> {
        let mut last = None;
        let reached =
            self.claims.iter().filter_map(|claim| Some((claim.address, self.route(claim.by)?)));
        reached.filter(move |(address, _)| last.replace(*address) != Some(*address))
    }

    /// The nearest gateway.
    pub fn gateway(&self) -> Option<&MeshRoute> {
        let gateways = self.routes().filter(|route| route.is_gateway);
        gateways.min_by_key(|route| (route.metric, route.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    fn tag(number: u8) -> PeerTag {
        PeerTag::from_hash([number; 8])
    }

    fn route(to: u16) -> MeshRoute {
        let hop = NextHop {
            slot: slot(to),
            tag: tag(1),
            interface: InterfaceId(0),
            address: MeshAddress(0),
        };
        MeshRoute { to: slot(to), is_gateway: false, metric: 64 * to, hop, candidates: 1 }
    }

    #[test]
    fn an_address_that_two_claim_is_of_the_lesser_slot_that_is_reached() {
        let mut table = RouteTable::default();
        let claim = |address, by| AddressClaim { address: tag(address), by: slot(by) };
        table.set_claims(vec![claim(9, 5), claim(3, 3), claim(9, 2), claim(5, 5)]);
        assert!([7, 5].iter().all(|to| table.set(slot(*to), Some(route(*to))).is_none()));
        assert_eq!((table.machine(tag(9)), table.machine(tag(3))), (Some(slot(5)), None));
        assert_eq!(table.set(slot(2), Some(route(2))), None);
        assert_eq!(table.machine(tag(9)), Some(slot(2)));
        assert_eq!(table.next(tag(9)).map(|hop| hop.slot), Some(slot(2)));
        let addresses: Vec<_> = table.addresses().map(|(tag, route)| (tag, route.to)).collect();
        assert_eq!(addresses.len(), 2, "each once");
        assert!(addresses.contains(&(tag(9), slot(2))));
        let slots =
            |table: &RouteTable| table.routes().map(|one| one.to.number()).collect::<Vec<_>>();
        assert_eq!(slots(&table), [2, 5, 7]);
        assert_eq!(table.set(slot(2), None), Some(route(2)));
        assert_eq!(table.set(slot(2), None), None);
        assert_eq!((slots(&table), table.machine(tag(9))), (vec![5, 7], Some(slot(5))));
    }
}
