//! Frames that wait for their moment, and those to everybody that were here.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealane_frame::Header;
use sealane_seal::Slot;

use crate::limits::{
    MAX_DOCUMENTS_WAITING, MAX_FLOODS_KNOWN, MAX_FLOODS_OF_ONE, MAX_FLOODS_WAITING,
};
use crate::neighbour::LinkId;
use crate::{InterfaceId, Time, To, Urgency};

/// Names a frame to everybody.
pub(crate) type FloodId = u64;

/// A frame that waits for its moment, or for air time.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) interface: InterfaceId,
    pub(crate) to: To,
    pub(crate) frame: Arc<[u8]>,
    pub(crate) urgency: Urgency,
    pub(crate) due: Time,
    /// It is dropped then.
    pub(crate) until: Time,
    /// Who brought it.
    pub(crate) from: Option<LinkId>,
    /// It is a message about documents, which is sealed when it goes.
    pub(crate) is_documents: bool,
    /// Of a frame to everybody.
    pub(crate) flood: Option<FloodId>,
    /// Who was heard sending it on this interface.
    pub(crate) heard_of: Vec<Slot>,
}

/// Frames that wait, and frames to everybody that are known.
#[derive(Debug)]
pub(crate) struct Floods {
    key: [u8; 32],
    newer: BTreeSet<FloodId>,
    older: BTreeSet<FloodId>,
    waiting: Vec<Waiting>,
}

impl Floods {
    /// The key keeps strangers from finding frames that look alike.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let key = blake3::derive_key("Sealane 1.0 mesh floods", seed);
        Self { key, newer: BTreeSet::new(), older: BTreeSet::new(), waiting: Vec::new() }
    }

    /// The name of a frame: its source, context and sequence, and the beginning of its tag, so
    /// that nobody keeps a frame out by sending another one of its number first.
    pub(crate) fn id(&self, header: &Header, frame: &[u8]) -> FloodId {
        let tag = frame.len().checked_sub(16).and_then(|at| frame.get(at..at + 8));
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&header.source().to_bytes()).update(&header.context().0);
        hasher.update(&header.sequence().to_le_bytes()).update(tag.unwrap_or_default());
        let hash = hasher.finalize();
        u64::from_le_bytes(hash.as_bytes().first_chunk().copied().unwrap_or_default())
    }

    /// Whether a frame is here for the first time, as far as is remembered.
    pub(crate) fn is_new(&mut self, id: FloodId) -> bool {
        if self.older.contains(&id) || !self.newer.insert(id) {
            return false;
        }
        if self.newer.len() >= MAX_FLOODS_KNOWN {
            self.older = std::mem::take(&mut self.newer);
        }
        true
    }

    /// Has a frame wait. Gives the one that there is no room for: this one, or a less urgent one
    /// that leaves for it. What others brought never takes the room of one neighbour, nor one
    /// neighbour's theirs, nor all of them that of what is made here.
    pub(crate) fn wait(&mut self, waiting: Waiting) -> Option<Waiting> {
        let is_brought = |one: &Waiting| one.from.is_some();
        let is_alike =
            |one: &Waiting| one.from == waiting.from && one.is_documents == waiting.is_documents;
        let of_one = self.waiting.iter().filter(|one| is_alike(one)).count();
        let most = if waiting.is_documents { MAX_DOCUMENTS_WAITING } else { MAX_FLOODS_OF_ONE };
        let leaves = if of_one >= most {
            self.less_urgent(&waiting, is_alike)
        } else if is_brought(&waiting) && self.brought() >= MAX_FLOODS_WAITING {
            self.less_urgent(&waiting, is_brought)
        } else {
            self.waiting.push(waiting);
            return None;
        };
        let Some(at) = leaves else { return Some(waiting) };
        let left = self.waiting.remove(at);
        self.waiting.push(waiting);
        Some(left)
    }

    /// Of some that wait, the last of those that are less urgent than another one.
    fn less_urgent(&self, than: &Waiting, of: impl Fn(&Waiting) -> bool) -> Option<usize> {
        let all = self.waiting.iter().enumerate();
        let less = all.filter(|(_, one)| of(one) && one.urgency > than.urgency);
        less.max_by_key(|(at, one)| (one.urgency, *at)).map(|(at, _)| at)
    }

    /// Notes that a neighbour has sent a frame that waits here, and drops it where `is_enough`
    /// says that no one else has to. Gives how many were dropped.
    pub(crate) fn heard(
        &mut self,
        id: FloodId,
        from: LinkId,
        is_enough: impl Fn(&[Slot]) -> bool,
    ) -> usize {
        let before = self.waiting.len();
        self.waiting.retain_mut(|one| {
            if one.flood != Some(id) || one.interface != from.interface || one.from.is_none() {
                return true;
            }
            one.heard_of.push(from.slot);
            one.heard_of.len() < 2 || !is_enough(&one.heard_of)
        });
        before - self.waiting.len()
    }

    /// Takes the frame that goes next, of those that are due.
    pub(crate) fn next(&mut self, now: Time) -> Option<Waiting> {
        let due = self.waiting.iter().enumerate().filter(|(_, one)| one.due <= now);
        let first = due.min_by_key(|(at, one)| (one.urgency, one.due, *at)).map(|(at, _)| at)?;
        Some(self.waiting.remove(first))
    }

    /// Puts one back that has no air time yet.
    pub(crate) fn put_back(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.waiting.iter().map(|one| one.due).min()
    }

    /// Forgets what waits for an interface.
    pub(crate) fn down(&mut self, interface: InterfaceId) {
        self.waiting.retain(|one| one.interface != interface);
    }

    /// How many messages about documents wait.
    pub(crate) fn documents(&self) -> usize {
        self.waiting.iter().filter(|one| one.is_documents).count()
    }

    /// How many frames wait that others brought.
    pub(crate) fn brought(&self) -> usize {
        self.waiting.iter().filter(|one| one.from.is_some()).count()
    }
}

#[cfg(test)]
mod tests;
