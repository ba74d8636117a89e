//! The collections by slot: a set, and things of slots that lie side by side.

use sealane_seal::Slot;
use sealane_seal::limits::MAX_SLOT;

const WORDS: usize = (MAX_SLOT as usize + 1).div_ceil(64);

/// One bit for each slot that a group can have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; WORDS]);

impl SlotSet {
    pub(crate) fn insert(&mut self, slot: Slot) {
        let (word, bit) = place(slot);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    /// Takes a slot out. Whether it was there.
    pub(crate) fn remove(&mut self, slot: Slot) -> bool {
        let was_there = self.contains(slot);
        let (word, bit) = place(slot);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
        was_there
    }

    pub(crate) fn contains(&self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The slots in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        let words = (0_u16..).step_by(64).zip(self.0);
        words.flat_map(|(first, word)| bits(word).filter_map(move |bit| Slot::new(first + bit)))
    }
}

/// The word and the bit in it of a slot.
fn place(slot: Slot) -> (usize, u64) {
    let number = usize::from(slot.number());
    (number / 64, 1 << (number % 64))
}

/// The numbers of the bits of a word that are set.
fn bits(mut word: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        // Takes the lowest bit away.
        word &= word.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit as u16)
    })
}

/// Things of slots. They lie side by side, so that to look through many is to read memory in order;
/// a map of 1,024 slots takes two bytes more for each slot up to the highest.
#[derive(Debug, Clone)]
pub(crate) struct BySlot<T> {
    /// Where the thing of a slot lies, and [`NOWHERE`] for a slot without one.
    places: Vec<u16>,
    things: Vec<T>,
}

const NOWHERE: u16 = u16::MAX;

impl<T> Default for BySlot<T> {
    fn default() -> Self {
        Self { places: vec![], things: vec![] }
    }
}

impl<T> BySlot<T> {
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.things.get(self.place(slot)?)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let place = self.place(slot)?;
        self.things.get_mut(place)
    }

    /// Takes the thing of a slot, and gives the one before.
    pub(crate) fn insert(&mut self, slot: Slot, thing: T) -> Option<T> {
        if let Some(known) = self.get_mut(slot) {
            return Some(std::mem::replace(known, thing));
        }
        let number = usize::from(slot.number());
        if self.places.len() <= number {
            self.places.resize(number + 1, NOWHERE);
        }
        if let Some(place) = self.places.get_mut(number) {
            *place = self.things.len() as u16;
            self.things.push(thing);
        }
        None
    }

    /// All, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let places = (0..).zip(&self.places);
        places.filter_map(|(number, place)| {
            Some((Slot::new(number)?, self.things.get(usize::from(*place))?))
        })
    }

    /// All, in any order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut()
    }

    /// Takes out those that are not to be kept.
    pub(crate) fn retain(&mut self, keeps: impl Fn(Slot, &T) -> bool) {
        for number in 0..self.places.len() {
            let Some(slot) = Slot::new(number as u16) else { continue };
            if self.get(slot).is_some_and(|thing| !keeps(slot, thing)) {
                self.remove(slot);
            }
        }
    }

    /// Gives away the thing of a slot.
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let place = self.place(slot)?;
        let thing = self.things.swap_remove(place);
        // The last one lies in its place now.
        let last = self.things.len() as u16;
        for known in &mut self.places {
            if usize::from(*known) == place {
                *known = NOWHERE;
            } else if *known == last {
                *known = place as u16;
            }
        }
        Some(thing)
    }

    fn place(&self, slot: Slot) -> Option<usize> {
        let place = *self.places.get(usize::from(slot.number()))?;
        (place != NOWHERE).then_some(place.into())
    }
}

/// Two are the same if they have the same things, wherever these lie.
impl<T: PartialEq> PartialEq for BySlot<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for BySlot<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_slots_gives_each_once_and_in_order() {
        let slot = |number| Slot::new(number).unwrap();
        let mut slots = SlotSet::default();
        [1023, 64, 0, 63, 64, 700].into_iter().for_each(|number| slots.insert(slot(number)));
        let numbers = |slots: &SlotSet| slots.iter().map(Slot::number).collect::<Vec<_>>();
        assert_eq!(numbers(&slots), [0, 63, 64, 700, 1023]);
        assert!(slots.remove(slot(64)) && !slots.remove(slot(64)) && !slots.contains(slot(64)));
        assert!(slots.contains(slot(1023)) && !slots.contains(slot(1)));
        assert_eq!(numbers(&slots), [0, 63, 700, 1023]);
    }

    #[test]
    fn things_of_slots_are_found_in_order_whichever_were_taken_out() {
        let slot = |number| Slot::new(number).unwrap();
        let mut things = BySlot::default();
        for number in [1023, 4, 700, 5, 0] {
            assert_eq!(things.insert(slot(number), u32::from(number)), None);
        }
        assert_eq!(things.insert(slot(4), 1004), Some(4));
        let all = |things: &BySlot<u32>| {
            things.iter().map(|(slot, thing)| (slot.number(), *thing)).collect::<Vec<_>>()
        };
        assert_eq!(all(&things), [(0, 0), (4, 1004), (5, 5), (700, 700), (1023, 1023)]);
        things.retain(|slot, thing| slot.number() != 1023 && *thing != 5);
        assert_eq!(all(&things), [(0, 0), (4, 1004), (700, 700)]);
        assert_eq!((things.len(), things.get(slot(5)), things.get(slot(1))), (3, None, None));
        assert_eq!((things.remove(slot(5)), things.insert(slot(5), 6)), (None, None));
        things.values_mut().for_each(|thing| *thing += 1);
        assert_eq!(all(&things), [(0, 1), (4, 1005), (5, 7), (700, 701)]);
        let mut others = BySlot::default();
        for (number, thing) in [(5, 7), (700, 701), (0, 1), (4, 1005)] {
            others.insert(slot(number), thing);
        }
        assert!(things == others && others.remove(slot(0)) == Some(1) && things != others);
        things.retain(|_, _| false);
        assert_eq!((all(&things), things.len()), (vec![], 0));
    }
}
