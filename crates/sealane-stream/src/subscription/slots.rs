use std::collections::HashMap;
use std::sync::Arc;

use sealane_message::Topic;

use super::slot::Slot;
use crate::stream::Stream;

/// The streams of a subscription, each at an index that stays its own; found by topic without a
/// search, since a pattern may match all streams there are.
#[derive(Default)]
pub(super) struct Slots {
    all: Vec<Option<Slot>>,
    free: Vec<usize>,
    of_topic: HashMap<Topic, usize>,
}

impl Slots {
    /// Streams that are followed.
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Slot> {
        self.all.get(index)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        self.all.get_mut(index)?.as_mut()
    }

    pub(super) fn find(&self, topic: &Topic) -> Option<usize> {
        self.of_topic.get(topic).copied()
    }

    pub(super) fn has(&self, stream: &Arc<Stream>) -> bool {
        let slot = self.find(&stream.topic).and_then(|index| self.get(index));
        slot.is_some_and(|slot| Arc::ptr_eq(&slot.stream, stream))
    }

    /// The index that the next slot gets.
    pub(super) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.all.len())
    }

    pub(super) fn insert(&mut self, slot: Slot) {
        let index = self.next();
        self.of_topic.insert(slot.stream.topic.clone(), index);
        match self.free.pop().and_then(|index| self.all.get_mut(index)) {
            Some(place) => *place = Some(slot),
            None => self.all.push(Some(slot)),
        }
    }

    pub(super) fn take(&mut self, index: usize) -> Option<Slot> {
        let slot = self.all.get_mut(index)?.take()?;
        self.free.push(index);
        // A stream that was made again under the same topic has the entry by now.
        if self.find(&slot.stream.topic) == Some(index) {
            self.of_topic.remove(&slot.stream.topic);
        }
        Some(slot)
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Slot> {
        self.of_topic.clear();
        self.free.clear();
        self.all.drain(..).flatten()
    }
}
