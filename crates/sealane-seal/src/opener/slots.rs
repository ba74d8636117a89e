//! The state that is kept per sender, by slot.

use crate::aead::Key;
use crate::header::KeyId;
use crate::{Class, Epoch, SenderContext, Slot};

/// One thing per slot, as far as the highest slot that has one.
pub(super) struct SlotTable<T>(Vec<Option<Box<T>>>);

impl<T> Default for SlotTable<T> {
    fn default() -> Self {
        SlotTable(Vec::new())
    }
}

impl<T> SlotTable<T> {
    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        self.0.get(usize::from(slot.number()))?.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.0.get_mut(usize::from(slot.number()))?.as_deref_mut()
    }

    pub(super) fn set(&mut self, slot: Slot, new: T) {
        put(&mut self.0, usize::from(slot.number()), new);
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> &[Option<Box<T>>] {
        &self.0
    }
}

/// The owner of a key: one start of a sender, in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyOf {
    pub(super) epoch: Epoch,
    pub(super) context: SenderContext,
}

/// The key that opened the newest message of each sender and class: at most one for each of the
/// 4,096 pairs, and only of authentic messages.
#[derive(Default)]
pub(super) struct SlotKeys(Vec<Option<Box<(KeyOf, Key)>>>);

impl SlotKeys {
    pub(super) fn get(&self, id: KeyId, of: KeyOf) -> Option<&Key> {
        let (kept, key) = self.0.get(index(id))?.as_deref()?;
        (*kept == of).then_some(key)
    }

    pub(super) fn set(&mut self, id: KeyId, of: KeyOf, key: Key) {
        put(&mut self.0, index(id), (of, key));
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> &[Option<Box<(KeyOf, Key)>>] {
        &self.0
    }

    pub(super) fn retain(&mut self, keep: impl Fn(Epoch) -> bool) {
        for entry in &mut self.0 {
            if entry.as_ref().is_some_and(|kept| !keep(kept.0.epoch)) {
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
