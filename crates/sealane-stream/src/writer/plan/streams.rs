//! Streams that come, change and go by a commit.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use sealane_frame::GroupTag;
use sealane_message::{System, Topic};

use super::made::StreamMade;
use super::{CommitPlanner, StreamTarget};
use crate::StreamChange;
use crate::commit::{NewStream, StoreChange, StoreCommit, StoreCounter};
use crate::limits::MAX_GENERATION;
use crate::registry::StreamRegistry;
use crate::rooms::{StreamRoom, StreamRooms};
use crate::shares::{ShareChanges, ShareKind};
use crate::store::{StoreNext, StreamRow, StreamSettings};
use crate::stream::StreamEntry;
use crate::writer::command::CommandRefusal;

/// Whether a stream is the hub's own, which writes without a group's keys.
fn is_open(topic: &Topic) -> bool {
    matches!(topic.system(), Some(System::Dead | System::Audit))
}

/// Streams that come, change and go by a commit.
#[derive(Default)]
pub(in crate::writer) struct StreamPlan {
    /// Streams that are made.
    made: BTreeMap<Topic, Arc<StreamEntry>>,
    /// How many they are.
    rooms_made: StreamRooms,
    /// The same by owner, less those that go.
    shares: ShareChanges,
    /// Settings that change, by the stream's number.
    settings: BTreeMap<u32, (Arc<StreamEntry>, StreamSettings)>,
    /// Streams that go. A command for their topics comes after that, in the next commit.
    removing: BTreeMap<Topic, Arc<StreamEntry>>,
    /// How many they are.
    rooms_left: StreamRooms,
}

impl StreamPlan {
    /// Streams that are made.
    pub(in crate::writer) fn made(&self) -> impl Iterator<Item = &Arc<StreamEntry>> {
        self.made.values()
    }

    pub(in crate::writer) fn makes(&self, topic: &Topic) -> bool {
        self.made.contains_key(topic)
    }

    /// Streams that go.
    pub(in crate::writer) fn removing(&self) -> impl Iterator<Item = &Arc<StreamEntry>> {
        self.removing.values()
    }

    pub(in crate::writer) fn removes(&self, topic: &Topic) -> bool {
        self.removing.contains_key(topic)
    }

    pub(in crate::writer) fn removes_some(&self) -> bool {
        !self.removing.is_empty()
    }

    /// Settings that hold once the commit stands.
    pub(in crate::writer) fn settings(
        &self,
    ) -> impl Iterator<Item = &(Arc<StreamEntry>, StreamSettings)> {
        self.settings.values()
    }

    /// Whether a stream goes or gets settings. Neither may be undone by a power failure once its
    /// owner was told.
    pub(super) fn is_synced(&self) -> bool {
        self.removes_some() || !self.settings.is_empty()
    }

    pub(super) fn target(&self, registry: &StreamRegistry, topic: &Topic) -> StreamTarget {
        if self.removes(topic) {
            return StreamTarget::Leaving;
        }
        let known = self.made.get(topic).cloned().or_else(|| registry.find(topic));
        known.map_or(StreamTarget::New, StreamTarget::Known)
    }

    /// Makes a stream, which is there for others once the commit stands.
    pub(super) fn make(
        &mut self,
        planner: &mut CommitPlanner,
        topic: &Topic,
        sealed: Option<GroupTag>,
        now_ms: u64,
        owner: Arc<str>,
    ) -> Result<Arc<StreamEntry>, CommandRefusal> {
        if let Some(asked) = sealed.filter(|_| is_open(topic)) {
            return Err(CommandRefusal::SealMismatch { stream: None, asked });
        }
        if planner.next.generation > MAX_GENERATION {
            let (what, limit) = ("generations", MAX_GENERATION);
            return Err(CommandRefusal::TooMany { what, limit });
        }
        match ShareKind::of_stream(topic) {
            Some(kind) => {
                // Streams of this same commit count: a burst of first messages would pass the
                // limits otherwise.
                let (more, all) = (self.shares.of(&owner, kind) + 1, self.shares.of_all(kind) + 1);
                let checked = planner.registry.shares.of(&owner).check(kind, more, all);
                checked.map_err(|error| CommandRefusal::Share(Box::new(error)))?;
                self.shares.add(&owner, kind, 1);
            }
            None => self.check_room(planner, topic)?,
        }
        // The number stays taken if the commit fails: there are many, and one that is given back
        // would have to be in no other part of this plan.
        let number = planner.number(&self.made);
        let made = StreamMade { topic, owner: &owner, sealed, now_ms };
        let row = StreamRow::new(number, planner.next.generation, planner.defaults, made);
        let stream = Arc::new(StreamEntry::new(row));
        self.made.insert(topic.clone(), stream.clone());
        self.rooms_made.add(topic);
        Ok(stream)
    }

    /// Refuses a further stream of a system in which no client has a share.
    fn check_room(&self, planner: &CommitPlanner, topic: &Topic) -> Result<(), CommandRefusal> {
        let count = planner.registry.rooms().taken(topic) + self.rooms_made.taken(topic);
        let StreamRoom { what, limit } = StreamRoom::of(topic);
        if count.saturating_sub(self.rooms_left.taken(topic)) >= limit {
            return Err(CommandRefusal::TooMany { what, limit: limit as u64 });
        }
        Ok(())
    }

    pub(super) fn configure(&mut self, stream: &Arc<StreamEntry>, change: StreamChange) {
        let before = self.settings.get(&stream.number).map(|(_, settings)| *settings);
        let mut settings = before.unwrap_or_else(|| stream.settings());
        settings.change(change);
        self.settings.insert(stream.number, (stream.clone(), settings));
    }

    pub(super) fn remove(&mut self, topic: Topic, stream: Arc<StreamEntry>) {
        debug_assert!(!self.makes(&topic), "a stream that this commit makes is removed by a later");
        self.settings.remove(&stream.number);
        self.rooms_left.add(&topic);
        if let Some(kind) = ShareKind::of_stream(&topic) {
            self.shares.remove(&stream.owner, kind, 1);
        }
        self.removing.insert(topic, stream);
    }

    /// No new stream has a generation below: a removed one of its topic may have had it.
    pub(in crate::writer) fn generation_floor(&self) -> u64 {
        let generations = self.removing().map(|s| s.state.lock().generation() + 1);
        generations.max().unwrap_or_default()
    }

    /// Only these streams are not made, or keep their settings.
    pub(super) fn strip(&mut self, given_up: &HashSet<u32>) {
        self.settings.retain(|number, _| !given_up.contains(number));
        self.made.clear();
    }

    pub(in crate::writer) fn add_to(&self, commit: &mut StoreCommit, next: &StoreNext) {
        if !self.made.is_empty() {
            let (counter, value) = (StoreCounter::Stream, u64::from(next.stream));
            commit.push(StoreChange::Raise { counter, value });
        }
        for stream in self.made() {
            commit.push(StoreChange::MakeStream(Box::new(NewStream {
                number: stream.number,
                topic: stream.topic.clone(),
                owner: stream.owner.clone(),
                settings: stream.settings(),
                created_ms: stream.created_ms,
                sealed: stream.sealed,
                generation: stream.state.lock().generation(),
            })));
        }
        for (stream, settings) in self.settings() {
            let StreamSettings { level, retention, own_bounds } = *settings;
            // A level that stays is left out, so that a full disk does not refuse other settings.
            let level = Some(level).filter(|level| *level != stream.settings().level);
            let stream = stream.number;
            commit.push(StoreChange::SetStream { stream, level, retention, own_bounds });
        }
        for stream in self.removing() {
            commit.push(StoreChange::RemoveStream { stream: stream.number });
        }
        if self.removes_some() {
            // A topic that is used again must have another generation, or a reader that comes back
            // would take new messages for those that it has seen.
            let value = self.generation_floor().max(next.generation);
            commit.push(StoreChange::Raise { counter: StoreCounter::Generation, value });
        }
    }
}
