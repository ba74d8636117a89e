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

    /// Has a frame wait, if there is room. What others brought never takes the room of one
    /// neighbour, nor one neighbour's theirs.
    pub(crate) fn wait(&mut self, waiting: Waiting) -> bool {
        let is_alike =
            |one: &&Waiting| one.from == waiting.from && one.is_documents == waiting.is_documents;
        let of_one = self.waiting.iter().filter(is_alike).count();
        let most = if waiting.is_documents { MAX_DOCUMENTS_WAITING } else { MAX_FLOODS_OF_ONE };
        let has_room = self.waiting.len() < MAX_FLOODS_WAITING && of_one < most;
        if has_room {
            self.waiting.push(waiting);
        }
        has_room
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

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
