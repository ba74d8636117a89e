//! Frames that wait for their moment, and those to everybody that were here.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealane_frame::Header;
use sealane_seal::Slot;

use crate::limits::{
    MAX_DOCUMENTS_WAITING, MAX_FLOODS_KNOWN, MAX_FLOODS_OF_ONE, MAX_FLOODS_WAITING,
};
use crate::neighbour::LinkId;
use crate::{InterfaceId, MeshTime, SendUrgency, UnitReceiver};

/// Names a frame to everybody.
pub(crate) type FloodId = u64;

/// A frame that waits for its moment, or for air time.
#[derive(Debug, Clone)]
pub(crate) struct WaitingFrame {
    pub(crate) interface: InterfaceId,
    pub(crate) to: UnitReceiver,
    pub(crate) frame: Arc<[u8]>,
    pub(crate) urgency: SendUrgency,
    pub(crate) due: MeshTime,
    /// It is dropped then.
    pub(crate) until: MeshTime,
    /// The neighbour that brought it.
    pub(crate) from: Option<LinkId>,
    /// It is a message about documents, which is sealed when it goes.
    pub(crate) is_documents: bool,
    /// Of a frame to everybody.
    pub(crate) flood: Option<FloodId>,
    /// The neighbours that were heard sending it on this interface.
    pub(crate) heard_of: Vec<Slot>,
}

/// A frame with its place among those that wait.
#[derive(Debug)]
pub(crate) struct QueuedFrame {
    /// The place in the order of arrival: an earlier frame has a lower one.
    pub(crate) order: u64,
    /// How often it was told already: it is an urgent frame to everybody, and is told again unless
    /// neighbours are heard that have it.
    pub(crate) told: u8,
    pub(crate) one: WaitingFrame,
}

/// Frames that wait, and frames to everybody that are known.
#[derive(Debug)]
pub(crate) struct MeshFloods {
    key: [u8; 32],
    newer: BTreeSet<FloodId>,
    older: BTreeSet<FloodId>,
    waiting: Vec<QueuedFrame>,
    /// How many waited so far.
    orders: u64,
    /// How many frames of others go before the next own one.
    others_first: u8,
}

/// So many frames of others go before each own one: they have cost air time already.
const OTHERS_FIRST: u8 = 2;
/// A frame that so many neighbours were heard sending is not told again.
pub(crate) const TOLD_ENOUGH: usize = 2;

impl WaitingFrame {
    /// Whether it was made on this machine.
    pub(crate) fn is_own(&self) -> bool {
        self.from.is_none()
    }
}

impl MeshFloods {
    /// The key keeps strangers from finding frames that look alike.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let key = blake3::derive_key("Sealane 1.0 mesh floods", seed);
        Self {
            key,
            newer: BTreeSet::new(),
            older: BTreeSet::new(),
            waiting: Vec::new(),
            orders: 0,
            others_first: OTHERS_FIRST,
        }
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
    pub(crate) fn wait(&mut self, waiting: WaitingFrame) -> Option<WaitingFrame> {
        let is_brought = |one: &WaitingFrame| one.from.is_some();
        let is_alike = |one: &WaitingFrame| {
            one.from == waiting.from && one.is_documents == waiting.is_documents
        };
        let of_one = self.waiting.iter().filter(|queued| is_alike(&queued.one)).count();
        let most = if waiting.is_documents { MAX_DOCUMENTS_WAITING } else { MAX_FLOODS_OF_ONE };
        let leaves = if of_one >= most {
            self.less_urgent(&waiting, is_alike)
        } else if is_brought(&waiting) && self.brought() >= MAX_FLOODS_WAITING {
            self.less_urgent(&waiting, is_brought)
        } else {
            self.push(waiting);
            return None;
        };
        let Some(at) = leaves else { return Some(waiting) };
        let left = self.waiting.remove(at);
        self.push(waiting);
        (left.told == 0).then_some(left.one)
    }

    fn push(&mut self, one: WaitingFrame) {
        self.orders += 1;
        self.waiting.push(QueuedFrame { order: self.orders, told: 0, one });
    }

    /// Of some that wait, the last of those that are less urgent than another one.
    fn less_urgent(
        &self,
        than: &WaitingFrame,
        of: impl Fn(&WaitingFrame) -> bool,
    ) -> Option<usize> {
        let all = self.waiting.iter().enumerate();
        let less = all.filter(|(_, QueuedFrame { one, .. })| of(one) && one.urgency > than.urgency);
        less.max_by_key(|(_, queued)| (queued.one.urgency, queued.order)).map(|(at, _)| at)
    }

    /// Notes that a neighbour has sent a frame that waits here. It is dropped where `is_enough`
    /// says that no one else has to send it, or where it was told before and `enough` have it.
    /// Gives how many were dropped that had not been sent yet.
    pub(crate) fn heard(
        &mut self,
        id: FloodId,
        from: LinkId,
        enough: usize,
        is_enough: impl Fn(&[Slot]) -> bool,
    ) -> usize {
        let mut dropped = 0;
        self.waiting.retain_mut(|QueuedFrame { told, one, .. }| {
            let is_unsent_own = one.is_own() && *told == 0;
            if one.flood != Some(id) || one.interface != from.interface || is_unsent_own {
                return true;
            }
            if !one.heard_of.contains(&from.slot) {
                one.heard_of.push(from.slot);
            }
            let stays = match told {
                0 => one.heard_of.len() < 2 || !is_enough(&one.heard_of),
                _ => one.heard_of.len() < enough,
            };
            dropped += usize::from(!stays && *told == 0);
            stays
        });
        dropped
    }

    /// Takes the frame that goes next, of those that are due: the urgent ones, then those whose
    /// turn it is, then what came first.
    pub(crate) fn next(&mut self, now: MeshTime) -> Option<QueuedFrame> {
        let is_own_turn = self.others_first == 0;
        let due = self.waiting.iter().enumerate().filter(|(_, queued)| queued.one.due <= now);
        let place = |queued: &QueuedFrame| {
            let is_out_of_turn = queued.one.is_own() != is_own_turn;
            (queued.one.urgency, is_out_of_turn, queued.order)
        };
        let first = due.min_by_key(|(_, queued)| place(queued)).map(|(at, _)| at)?;
        Some(self.waiting.remove(first))
    }

    /// Notes that a frame was sent out of an account that others wait for too.
    pub(crate) fn took_turn(&mut self, is_own: bool) {
        self.others_first = if is_own { OTHERS_FIRST } else { self.others_first.saturating_sub(1) };
    }

    /// Puts one back that has no air time yet, or is to be told again.
    pub(crate) fn put_back(&mut self, queued: QueuedFrame) {
        self.waiting.push(queued);
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<MeshTime> {
        self.waiting.iter().map(|queued| queued.one.due).min()
    }

    /// Forgets what waits for an interface.
    pub(crate) fn down(&mut self, interface: InterfaceId) {
        self.waiting.retain(|queued| queued.one.interface != interface);
    }

    /// How many messages about documents wait.
    pub(crate) fn documents(&self) -> usize {
        self.waiting.iter().filter(|queued| queued.one.is_documents).count()
    }

    /// How many frames wait that were not sent yet, of this machine or of others.
    pub(crate) fn unsent(&self, is_own: bool) -> usize {
        let is_it = |queued: &&QueuedFrame| queued.told == 0 && queued.one.is_own() == is_own;
        self.waiting.iter().filter(is_it).filter(|queued| !queued.one.is_documents).count()
    }

    /// How many frames wait that others brought.
    pub(crate) fn brought(&self) -> usize {
        self.waiting.iter().filter(|queued| !queued.one.is_own()).count()
    }
}

#[cfg(test)]
mod tests;
