//! A set of slots, which takes no memory but its own.

use sealane_seal::Slot;
use sealane_seal::limits::MAX_SLOT;

const WORDS: usize = (MAX_SLOT as usize + 1).div_ceil(64);

/// One bit for each slot that a group can have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slots([u64; WORDS]);

impl Slots {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_slots_gives_each_once_and_in_order() {
        let slot = |number| Slot::new(number).unwrap();
        let mut slots = Slots::default();
        assert!(slots.is_empty());
        for number in [1023, 64, 0, 63, 64, 700] {
            slots.insert(slot(number));
        }
        let numbers = |slots: &Slots| slots.iter().map(Slot::number).collect::<Vec<_>>();
        assert_eq!(numbers(&slots), [0, 63, 64, 700, 1023]);
        assert!(slots.remove(slot(64)) && !slots.remove(slot(64)) && !slots.contains(slot(64)));
        assert!(slots.contains(slot(1023)) && !slots.is_empty());
        assert_eq!(numbers(&slots), [0, 63, 700, 1023]);
    }
}
