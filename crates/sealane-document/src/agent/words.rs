//! The overviews and inventories of the frames that are held, written when their turn has come.

use sealane_frame::GroupTag;
use sealane_seal::Slot;

use super::outbox::{ForwardReason, OutboxMessage, OutboxStep};
use super::{
    DocumentAgent, DocumentAudience, DocumentNeighbour, ExchangeMessage, NO_GROUP, OutboxScope,
};
use crate::entry::{FrameDigest, RegisterEntry};
use crate::exchange::{self, OverviewDiff};
use crate::registers::RegisterSet;
use crate::shelf::ShelfKeeper;

impl DocumentAgent {
    /// The next message for neighbours; to be called while the link has room for that lot. What is
    /// not urgent is gathered for as long as [`DocumentAgent::set_sending`] says.
    pub fn next_telling(&mut self, now_ms: u64, lot: OutboxScope) -> Option<ExchangeMessage> {
        let lot = if self.gathers(now_ms) { OutboxScope::Urgent } else { lot };
        loop {
            match self.outbox.next(&self.store, lot) {
                Some(OutboxStep::Write(words)) => self.write_words(words),
                Some(OutboxStep::Tell(telling, given)) => {
                    self.counters.messages += 1;
                    self.counters.given += given as u64;
                    return Some(telling);
                }
                None => {
                    if lot == OutboxScope::All {
                        self.gathered_ms = None;
                    }
                    return None;
                }
            }
        }
    }

    /// When what is gathered is to leave: [`DocumentAgent::next_telling`] is to be called then.
    pub fn gathered_ms(&self) -> Option<u64> {
        self.gathered_ms
    }

    /// Whether what waits is gathered still.
    fn gathers(&mut self, now_ms: u64) -> bool {
        if self.batch_ms == 0 || self.outbox.is_empty() {
            self.gathered_ms = None;
            return false;
        }
        let until = *self.gathered_ms.get_or_insert(now_ms + self.batch_ms);
        now_ms < until
    }

    /// The groups of which there is something to say.
    pub(super) fn told_groups(&self) -> Vec<GroupTag> {
        let groups: Vec<GroupTag> = self.store.groups().collect();
        if groups.is_empty() { vec![NO_GROUP] } else { groups }
    }

    fn write_words(&mut self, words: OutboxMessage) {
        let none = RegisterSet::new();
        let most = self.outbox.message_bytes();
        match words {
            OutboxMessage::Overview { to, group } => {
                let is_for_all = matches!(to, DocumentAudience::All { .. });
                if is_for_all && !self.has_others() {
                    return;
                }
                // Where two overviews are said, they have other salts.
                self.salt = self.salt.wrapping_add(1);
                let registers = self.store.registers(group).unwrap_or(&none);
                let parts = exchange::overview(registers, self.salt, most);
                self.outbox.put_said(to, group, parts);
                if is_for_all {
                    self.overview_said();
                }
            }
            OutboxMessage::Inventory { to, group, origins } => {
                let registers = self.store.registers(group).unwrap_or(&none);
                let is_member = self.store.keeper() == ShelfKeeper::Member;
                let is_opened = is_member && self.readers.contains_key(&group);
                let parts = exchange::inventory(registers, &origins, most).into_iter();
                let parts = parts.map(|part| exchange::as_seen(part, is_opened)).collect();
                self.outbox.put_said(DocumentAudience::One(to), group, parts);
            }
        }
    }

    /// Gives what a neighbour shows that it lacks, and asks for the rest.
    pub(super) fn hear_overview(
        &mut self,
        by: DocumentNeighbour,
        group: GroupTag,
        overview: &[u8],
    ) {
        let groups: Vec<GroupTag> = match group {
            NO_GROUP => self.store.groups().collect(),
            group => vec![group],
        };
        self.hear_others_overview(by.slot);
        for group in groups {
            let none = RegisterSet::new();
            let registers = self.store.registers(group).unwrap_or(&none);
            let Ok(OverviewDiff { lacked, mut others }) = exchange::compare(registers, overview)
            else {
                self.counters.malformed += 1;
                return;
            };
            // Where several frames may be the true one, the neighbour says first whether it can
            // tell.
            let (doubtful, lacked): (Vec<Slot>, Vec<Slot>) =
                lacked.into_iter().partition(|one| self.store.beside(group, *one).next().is_some());
            let mut lacking: Vec<&RegisterEntry> =
                lacked.iter().flat_map(|origin| registers.all_of(*origin)).collect();
            exchange::sort_to_give(&mut lacking);
            let lacking = lacking.into_iter().map(RegisterEntry::mark).collect();
            self.give(by.slot, group, lacking);
            others.extend(doubtful);
            others.sort_unstable();
            self.ask(by.slot, group, others);
        }
    }

    /// Says what is held of these origins.
    pub(super) fn ask(&mut self, to: Slot, group: GroupTag, origins: Vec<Slot>) {
        if !origins.is_empty() {
            self.outbox.say(OutboxMessage::Inventory { to, group, origins });
        }
    }

    /// Gives frames that a neighbour lacks, as often as they may be given.
    pub(super) fn give(&mut self, to: Slot, group: GroupTag, mut marks: Vec<FrameDigest>) {
        let peer = self.peers.entry(to).or_default();
        marks.retain(|mark| peer.may_give(*mark));
        let to = match self.outbox.is_scarce {
            // Others may lack the same.
            true => DocumentAudience::All { but: None },
            false => DocumentAudience::One(to),
        };
        for at in marks.into_iter().filter_map(|mark| self.store.place(group, mark)) {
            self.outbox.give(at, to, self.store.is_urgent(at), ForwardReason::Lacking);
        }
    }
}
