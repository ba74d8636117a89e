use std::collections::HashMap;
use std::sync::Arc;

use sealane_message::Topic;

use super::lane::SubscriptionLane;
use crate::stream::StreamEntry;

/// The streams of a subscription, each at an index that stays its own; found by topic without a
/// search, since a pattern may match all streams there are.
#[derive(Default)]
pub(super) struct SubscriptionLanes {
    all: Vec<Option<SubscriptionLane>>,
    free: Vec<usize>,
    of_topic: HashMap<Topic, usize>,
}

impl SubscriptionLanes {
    /// Streams that are followed.
    pub(super) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&SubscriptionLane> {
        self.all.get(index)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut SubscriptionLane> {
        self.all.get_mut(index)?.as_mut()
    }

    pub(super) fn find(&self, topic: &Topic) -> Option<usize> {
        self.of_topic.get(topic).copied()
    }

    pub(super) fn has(&self, stream: &Arc<StreamEntry>) -> bool {
        let lane = self.find(&stream.topic).and_then(|index| self.get(index));
        lane.is_some_and(|lane| Arc::ptr_eq(&lane.stream, stream))
    }

    /// The index that the next lane gets.
    pub(super) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.all.len())
    }

    pub(super) fn insert(&mut self, lane: SubscriptionLane) {
        let index = self.next();
        self.of_topic.insert(lane.stream.topic.clone(), index);
        // Indexes are given again, so that a pattern over short-lived streams does not grow the
        // list for ever.
        match self.free.pop().and_then(|index| self.all.get_mut(index)) {
            Some(target) => *target = Some(lane),
            None => self.all.push(Some(lane)),
        }
    }

    pub(super) fn take(&mut self, index: usize) -> Option<SubscriptionLane> {
        let lane = self.all.get_mut(index)?.take()?;
        self.free.push(index);
        // A stream that was made again under the same topic has the entry by now.
        if self.find(&lane.stream.topic) == Some(index) {
            self.of_topic.remove(&lane.stream.topic);
        }
        Some(lane)
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = SubscriptionLane> {
        self.of_topic.clear();
        self.free.clear();
        self.all.drain(..).flatten()
    }
}
