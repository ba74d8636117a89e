//! The bytes of units under way: each unit lies in one place, however many receive it.

use std::sync::Arc;

/// Where a unit lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

/// Units under way, with how many hold each. A place that nobody holds is used again.
#[derive(Debug, Default)]
pub(crate) struct SimUnitPool {
    slots: Vec<SimUnitSlot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct SimUnitSlot {
    unit: Option<Arc<[u8]>>,
    holders: u32,
    cover: Option<SimEthernetHeader>,
}

/// The Ethernet header of a unit that came from outside of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimEthernetHeader {
    /// Addresses of target and source, and the type of what is inside.
    pub(crate) header: [u8; 14],
    /// Whether machines of the simulator understand it: others do not look at it.
    pub(crate) is_unit: bool,
}

impl SimUnitPool {
    /// Takes a unit, which one holds.
    pub(crate) fn put(&mut self, unit: Arc<[u8]>) -> SlotId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SimUnitSlot::default());
            (self.slots.len() - 1) as u32
        });
        let id = SlotId(index);
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.unit = Some(unit);
            slot.holders = 1;
            slot.cover = None;
        }
        id
    }

    /// Says what Ethernet says of it.
    pub(crate) fn set_cover(&mut self, id: SlotId, cover: SimEthernetHeader) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            slot.cover = Some(cover);
        }
    }

    /// The Ethernet header of the unit, if it came from outside.
    pub(crate) fn cover(&self, id: SlotId) -> Option<SimEthernetHeader> {
        self.slots.get(id.0 as usize)?.cover
    }

    /// One more holds it.
    pub(crate) fn hold(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            debug_assert!(slot.holders > 0, "a unit that nobody held");
            slot.holders += 1;
        }
    }

    /// One fewer holds it.
    pub(crate) fn release(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            debug_assert!(slot.holders > 0, "a unit that nobody held");
            slot.holders -= 1;
            if slot.holders == 0 {
                slot.unit = None;
                self.free.push(id.0);
            }
        }
    }

    /// The unit.
    pub(crate) fn unit(&self, id: SlotId) -> &[u8] {
        self.slots.get(id.0 as usize).and_then(|slot| slot.unit.as_deref()).unwrap_or_default()
    }

    /// How many units are under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(bytes: &[u8]) -> Arc<[u8]> {
        bytes.into()
    }

    #[test]
    fn a_place_is_used_again_when_the_last_has_let_go() {
        let mut slots = SimUnitPool::default();
        let first = slots.put(unit(b"one"));
        slots.hold(first);
        slots.release(first);
        let second = slots.put(unit(b"two"));
        assert_eq!((slots.unit(first), slots.unit(second)), (&b"one"[..], &b"two"[..]));
        slots.release(first);
        let third = slots.put(unit(b"three"));
        assert_eq!((third, slots.len()), (first, 2));
        assert_eq!(slots.unit(third), b"three");
    }
}
