//! The neighbours of a machine: few, looked for many times with all that is heard.

use std::slice;

use crate::limits::MAX_MESH_NEIGHBOURS;
use crate::neighbour::LinkId;

/// Things of neighbours, in the order of these: [`MAX_MESH_NEIGHBOURS`] at most, so that a byte
/// says where one lies.
#[derive(Debug)]
pub(crate) struct NeighbourSlots<T> {
    ids: Vec<LinkId>,
    things: Vec<T>,
    /// By interface and slot, where the thing lies, and [`NOWHERE`] for who is no neighbour.
    places: Vec<Vec<u8>>,
}

const NOWHERE: u8 = u8::MAX;
const _: () = assert!(MAX_MESH_NEIGHBOURS < NOWHERE as usize);

impl<T> Default for NeighbourSlots<T> {
    fn default() -> Self {
        Self { ids: vec![], things: vec![], places: vec![] }
    }
}

impl<T> NeighbourSlots<T> {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn contains_key(&self, id: &LinkId) -> bool {
        self.place(id).is_some()
    }

    pub(crate) fn get(&self, id: &LinkId) -> Option<&T> {
        self.things.get(self.place(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: &LinkId) -> Option<&mut T> {
        let place = self.place(id)?;
        self.things.get_mut(place)
    }

    /// Takes the thing of a neighbour, and gives the one before.
    pub(crate) fn insert(&mut self, id: LinkId, thing: T) -> Option<T> {
        if let Some(known) = self.get_mut(&id) {
            return Some(std::mem::replace(known, thing));
        }
        debug_assert!(self.ids.len() < MAX_MESH_NEIGHBOURS, "there is room");
        let place = self.ids.partition_point(|known| *known < id);
        self.ids.insert(place, id);
        self.things.insert(place, thing);
        self.find_places();
        None
    }

    /// Gives away the thing of a neighbour.
    pub(crate) fn remove(&mut self, id: &LinkId) -> Option<T> {
        let place = self.place(id)?;
        self.ids.remove(place);
        let thing = self.things.remove(place);
        self.find_places();
        Some(thing)
    }

    pub(crate) fn keys(&self) -> slice::Iter<'_, LinkId> {
        self.ids.iter()
    }

    pub(crate) fn values(&self) -> slice::Iter<'_, T> {
        self.things.iter()
    }

    pub(crate) fn values_mut(&mut self) -> slice::IterMut<'_, T> {
        self.things.iter_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&LinkId, &T)> {
        self.ids.iter().zip(&self.things)
    }

    fn place(&self, id: &LinkId) -> Option<usize> {
        let of_interface = self.places.get(usize::from(id.interface.0))?;
        let place = *of_interface.get(usize::from(id.slot.number()))?;
        (place != NOWHERE).then_some(place.into())
    }

    /// Notes where each lies, now that one more or one fewer does.
    fn find_places(&mut self) {
        self.places.iter_mut().for_each(|places| places.fill(NOWHERE));
        for (place, id) in (0..).zip(&self.ids) {
            let (interface, slot) = (usize::from(id.interface.0), usize::from(id.slot.number()));
            if self.places.len() <= interface {
                self.places.resize_with(interface + 1, Vec::new);
            }
            let Some(places) = self.places.get_mut(interface) else { continue };
            if places.len() <= slot {
                places.resize(slot + 1, NOWHERE);
            }
            if let Some(known) = places.get_mut(slot) {
                *known = place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sealane_seal::Slot;

    use super::*;
    use crate::InterfaceId;

    #[test]
    fn neighbours_are_in_the_order_of_interfaces_and_slots() {
        let id = |interface, slot| LinkId {
            interface: InterfaceId(interface),
            slot: Slot::new(slot).unwrap(),
        };
        let mut links = NeighbourSlots::default();
        for (thing, (interface, slot)) in (0..).zip([(1, 5), (0, 9), (1, 2), (0, 300)]) {
            assert_eq!(links.insert(id(interface, slot), thing), None);
        }
        assert_eq!(links.insert(id(1, 2), 7), Some(2));
        let ids: Vec<_> = links.keys().copied().collect();
        assert_eq!(ids, [id(0, 9), id(0, 300), id(1, 2), id(1, 5)]);
        assert_eq!(links.values().copied().collect::<Vec<_>>(), [1, 3, 7, 0]);
        links.values_mut().for_each(|thing| *thing += 1);
        assert_eq!((links.get(&id(0, 9)), links.get(&id(2, 9))), (Some(&2), None));
        assert_eq!((links.remove(&id(0, 300)), links.remove(&id(0, 300))), (Some(4), None));
        if let Some(thing) = links.get_mut(&id(1, 5)) {
            *thing = 50;
        }
        let all: Vec<_> = links.iter().map(|(id, thing)| (id.slot.number(), *thing)).collect();
        assert_eq!(all, [(9, 2), (2, 8), (5, 50)]);
        assert!(links.contains_key(&id(1, 5)) && !links.is_empty() && links.len() == 3);
    }
}
