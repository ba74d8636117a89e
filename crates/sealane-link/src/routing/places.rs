//! Where neighbours are. The machine knows each by a name, and the links by an address.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use sealane_mesh::MeshAddress;

use crate::address::LinkAddress;

/// An address on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LinkPlace {
    pub(super) link: usize,
    pub(super) address: LinkAddress,
}

/// The addresses of neighbours, and of the sender whose unit is taken at present.
#[derive(Debug, Default)]
pub(super) struct NeighbourPlaces {
    /// A keyed hash names addresses. A stranger cannot choose an address that collides with a
    /// neighbour's.
    names: RandomState,
    known: BTreeMap<u64, LinkPlace>,
    current: Option<(u64, LinkPlace)>,
}

impl NeighbourPlaces {
    /// A unit came from there. Gives the name of its sender.
    pub(super) fn hear(&mut self, at: LinkPlace) -> MeshAddress {
        // The hash is keyed, so that a stranger cannot choose an address that collides with a
        // neighbour's.
        let name = self.names.hash_one(at);
        self.current = Some((name, at));
        MeshAddress(name)
    }

    /// The place of a sender or neighbour.
    pub(super) fn of(&self, MeshAddress(name): MeshAddress) -> Option<LinkPlace> {
        // The machine may answer a sender that is no neighbour yet. Its place is known only during
        // this turn.
        let current = self.current.filter(|(current, _)| *current == name).map(|(_, at)| at);
        current.or_else(|| self.known.get(&name).copied())
    }

    /// The turn ends: the place of its sender stays, if that is a neighbour now.
    pub(super) fn end_turn(&mut self, is_neighbour: impl FnOnce(MeshAddress) -> bool) {
        let Some((name, at)) = self.current.take() else { return };
        // A place is kept only after the mesh accepted its sender. Strangers, who can be endless,
        // leave nothing behind.
        if !self.known.contains_key(&name) && is_neighbour(MeshAddress(name)) {
            self.known.insert(name, at);
        }
    }

    /// Forgets all but those of neighbours, whose number is bounded.
    pub(super) fn keep(&mut self, is_neighbour: impl Fn(MeshAddress) -> bool) {
        self.known.retain(|name, _| is_neighbour(MeshAddress(*name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_answered_and_leave_nothing() {
        let mut places = NeighbourPlaces::default();
        let at = |number| LinkPlace { link: 1, address: LinkAddress::Memory(number) };
        let stranger = places.hear(at(1));
        assert_eq!(places.of(stranger), Some(at(1)), "it is answered in its turn");
        places.end_turn(|_| false);
        assert_eq!(places.of(stranger), None);
        let neighbour = places.hear(at(2));
        places.end_turn(|name| name == neighbour);
        assert_eq!(places.of(neighbour), Some(at(2)));
        places.keep(|_| false);
        assert_eq!(places.of(neighbour), None);
    }
}
