//! What is kept per sender, by slot.

use crate::aead::Key;
use crate::header::KeyId;
use crate::{Class, Epoch, Slot};

/// One thing per slot, as far as the highest slot that has one.
pub(super) struct Slots<T>(Vec<Option<Box<T>>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots(Vec::new())
    }
}

impl<T> Slots<T> {
    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        self.0.get(usize::from(slot.number()))?.as_deref()
    }

    pub(super) fn set(&mut self, slot: Slot, new: T) {
        put(&mut self.0, usize::from(slot.number()), new);
    }

    pub(super) fn get_or_insert_with(&mut self, slot: Slot, new: impl FnOnce() -> T) -> &mut T {
        let index = usize::from(slot.number());
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        #[expect(clippy::indexing_slicing, reason = "it has just been made that long")]
        self.0[index].get_or_insert_with(|| Box::new(new()))
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(entry) = self.0.get_mut(usize::from(slot.number())) {
            *entry = None;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let slots = (0..).map_while(Slot::new);
        slots.zip(&self.0).filter_map(|(slot, kept)| Some((slot, kept.as_deref()?)))
    }
}

/// The key that opened the newest message of each sender and class: at most one for each of the
/// 4,096 pairs, and only of authentic messages.
#[derive(Default)]
pub(super) struct SlotKeys(Vec<Option<Box<(Epoch, Key)>>>);

impl SlotKeys {
    pub(super) fn get(&self, id: KeyId, epoch: Epoch) -> Option<&Key> {
        let (of, key) = self.0.get(index(id))?.as_deref()?;
        (*of == epoch).then_some(key)
    }

    pub(super) fn set(&mut self, id: KeyId, epoch: Epoch, key: Key) {
        put(&mut self.0, index(id), (epoch, key));
    }

    pub(super) fn retain(&mut self, keep: impl Fn(Epoch) -> bool) {
        for entry in &mut self.0 {
            if entry.as_ref().is_some_and(|kept| !keep(kept.0)) {
                *entry = None;
            }
        }
    }
}

fn index(id: KeyId) -> usize {
    usize::from(id.slot.number()) * Class::ALL.len() + usize::from(id.class.number())
}

fn put<T>(entries: &mut Vec<Option<Box<T>>>, index: usize, new: T) {
    if entries.len() <= index {
        entries.resize_with(index + 1, || None);
    }
    match entries.get_mut(index) {
        Some(Some(entry)) => **entry = new,
        Some(entry) => *entry = Some(Box::new(new)),
        None => {}
    }
}
