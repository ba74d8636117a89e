//! Where air time is scarce: what is said is for all in reach, and the less changes, the less is
//! said.

use sealane_seal::Slot;

use super::outbox::OutboxMessage;
use super::{DocumentAgent, DocumentAudience};
use crate::limits::MAX_OVERVIEW_DOUBLINGS;

/// When the next overview is due.
#[derive(Debug, Default)]
pub(super) struct OverviewTrickle {
    /// The digest of the frames held at the last overview.
    at: Option<[u8; 8]>,
    times: u32,
    /// How many hellos are to be heard before the next one.
    until: u64,
}

/// A neighbour that is not heard for so many hellos of each neighbour is out of reach.
const FORGET_HELLOS: u64 = 8;

impl OverviewTrickle {
    /// Something has changed: the next one comes within a hello of each neighbour.
    fn ease(&mut self, hellos: u64, near: u64) {
        self.times = 0;
        self.until = self.until.min(hellos + near);
    }

    /// One was said, here or by a neighbour that holds the same.
    fn said(&mut self, ours: [u8; 8], hellos: u64, near: u64) {
        self.times = if self.at == Some(ours) { self.times + 1 } else { 0 };
        self.at = Some(ours);
        self.until = hellos + (near << self.times.min(MAX_OVERVIEW_DOUBLINGS));
    }
}

impl DocumentAgent {
    /// Says that air time is scarce, or is not: what neighbours are told all hear then, and a frame
    /// is sent on only as long as somebody in reach may lack it.
    pub fn set_scarce(&mut self, is_scarce: bool) {
        self.outbox.is_scarce = is_scarce;
    }

    /// The digest for hellos. Where air time is scarce, there is none in two cases: frames wait
    /// that neighbours lack, or nothing is held.
    pub fn told_digest(&mut self) -> Option<[u8; 8]> {
        let is_silent = self.outbox.has_gifts() || self.store.is_empty();
        match self.outbox.is_scarce && is_silent {
            true => None,
            false => Some(self.digest()),
        }
    }

    /// A neighbour holds something else, where air time is scarce. Once that has lasted from one
    /// hello to the next, one of those who hold the same says what that is.
    pub(super) fn hear_other(&mut self, by: Slot, ours: [u8; 8], theirs: [u8; 8]) {
        let near = self.near_count();
        let Some(peer) = self.peers.get_mut(&by) else { return };
        let persists = peer.last_seen(ours, theirs);
        if ours == theirs {
            return;
        }
        if !persists {
            return self.trickle.ease(self.hellos, near);
        }
        if self.outbox.has_gifts() || self.outbox.has_overview() || self.hellos < self.trickle.until
        {
            return;
        }
        for group in self.told_groups() {
            self.outbox
                .say(OutboxMessage::Overview { to: DocumentAudience::All { but: None }, group });
        }
    }

    /// A neighbour has said an overview for all: one that holds the same need not.
    pub(super) fn hear_others_overview(&mut self, by: Slot) {
        let ours = self.digest();
        let is_same = self.peers.get(&by).is_some_and(|peer| peer.digest() == Some(ours));
        if self.outbox.is_scarce && is_same {
            self.outbox.drop_overviews();
            self.overview_said();
        }
    }

    /// An overview for all was said.
    pub(super) fn overview_said(&mut self) {
        let (ours, near) = (self.digest(), self.near_count());
        self.trickle.said(ours, self.hellos, near);
    }

    /// Whether somebody in reach holds something else, as far as is known.
    pub(super) fn has_others(&mut self) -> bool {
        let ours = self.digest();
        self.near().any(|(_, digest)| digest.is_some_and(|theirs| theirs != ours))
    }

    /// Whether these are all that are in reach.
    pub(super) fn are_all_near(&self) -> impl Fn(&[Slot]) -> bool + use<> {
        let near: Vec<Slot> = self.near().map(|(slot, _)| slot).collect();
        move |slots| near.iter().all(|slot| slots.contains(slot))
    }

    fn near_count(&self) -> u64 {
        self.near().count() as u64
    }

    /// Neighbours that were heard lately, and what they said last that they hold.
    fn near(&self) -> impl Iterator<Item = (Slot, Option<[u8; 8]>)> {
        let since = self.hellos.saturating_sub(FORGET_HELLOS * self.peers.len() as u64);
        let near = self.peers.iter().filter(move |(_, peer)| peer.heard_at >= since);
        near.map(|(slot, peer)| (*slot, peer.digest()))
    }
}
