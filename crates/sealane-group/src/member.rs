use std::collections::BTreeMap;
use std::sync::Arc;

use sealane_frame::{FrameRoster as LinkRoster, GroupTag, PeerTag};
use sealane_seal::{Binding, Epoch, Epochs, Group, GroupId, History, Slot, Suite, Term};

use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::removal::AnnouncedRemovals;
use crate::sender::SenderSource;
use crate::state::GroupState;
use crate::{
    AnnouncedRemoval, EpochSource, Error, Fingerprint, GroupChange, GroupNotice, GroupRoster,
    GroupSender, RemovalMark, RemovalNotice, now_ms,
};

mod apply;
mod authority;
mod beater;
mod control;
mod join;
mod machine;
#[cfg(test)]
mod tests;

pub use authority::{HealOutcome, IssuedInvitation};
pub use beater::BeaterView;
pub use control::ControlCursor;

/// The lasting properties of a new group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewGroup {
    /// Its cipher.
    pub suite: Suite,
    /// The treatment of epoch secrets once their messages are read.
    pub history: History,
    /// Whether it is a group of two, with class P.
    pub is_pair: bool,
    /// How old the authority's newest heartbeat may be before members say so, in seconds; 0: any
    /// age.
    pub heartbeat_age_s: u32,
    /// Whether members without a heartbeat of that age seal nothing but what is urgent.
    pub is_strict: bool,
}

impl Default for NewGroup {
    /// AES-256-GCM, kept history, more than two, no heartbeats asked for.
    fn default() -> NewGroup {
        NewGroup {
            suite: Suite::Aes256Gcm,
            history: History::Kept,
            is_pair: false,
            heartbeat_age_s: 0,
            is_strict: false,
        }
    }
}

/// A member of a group, as its key folder has it.
///
/// Every change is written to the folder before a call returns. Changes of other processes are seen
/// by [`GroupMember::reload`], and before every change.
pub struct GroupMember {
    pub(crate) keys: Arc<IdentityKeys>,
    name: String,
    state: GroupState,
    /// Orders that came before others that they follow, by their number.
    held: BTreeMap<u64, GroupNotice>,
    /// The members that are about to be removed.
    leavers: AnnouncedRemovals,
}

impl GroupMember {
    pub(crate) fn open(keys: &Arc<IdentityKeys>, name: &str) -> Result<GroupMember, Error> {
        let lock = keys.lock()?;
        let (state, leavers) = (keys.load(&lock, name)?, keys.leavers(&lock, name)?);
        let (keys, name, held) = (Arc::clone(keys), name.to_owned(), BTreeMap::new());
        Ok(GroupMember { keys, name, state, held, leavers })
    }

    /// The name of the group in this folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group's identity.
    pub fn id(&self) -> GroupId {
        self.state.id()
    }

    /// The group's address in frames; its control stream is named by it.
    pub fn tag(&self) -> GroupTag {
        self.state.tag()
    }

    /// The own address in frames.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`].
    pub fn source(&self) -> Result<PeerTag, Error> {
        self.state.peer_tag(self.state.slot).ok_or(Error::Removed)
    }

    /// The treatment of epochs that have been read.
    pub fn history(&self) -> History {
        self.state.charter.history
    }

    /// The members of the group, and the former members.
    pub fn roster(&self) -> &GroupRoster {
        &self.state.roster
    }

    /// The member, or former member, with that address.
    pub fn find(&self, tag: PeerTag) -> Option<&crate::RosterEntry> {
        let entries = self.state.roster.entries().iter();
        entries.rev().find(|entry| self.state.peer_tag(entry.slot()) == Some(tag))
    }

    /// The authority's fingerprint, to be compared over another way.
    pub fn authority(&self) -> Fingerprint {
        self.state.charter.fingerprint()
    }

    /// Whether this folder's identity is the authority.
    pub fn is_authority(&self) -> bool {
        self.state.charter.authority.curve == *self.keys.identity().public().verifying_key()
    }

    /// Whether the authority has removed this member.
    pub fn is_removed(&self) -> bool {
        self.state.is_removed
    }

    /// Whether the folder was copied or restored since the group was written there. Nothing is less
    /// safe then; but if both copies are used, people see two of one name.
    pub fn is_copied(&self) -> bool {
        self.state.is_copied
    }

    /// The name of the member that had that slot in that epoch.
    pub fn name_of(&self, slot: Slot, epoch: Epoch) -> Option<&str> {
        let entry = self.state.roster.entry(slot);
        entry.filter(|entry| entry.term().holds(epoch)).map(crate::RosterEntry::name)
    }

    /// How many orders this member has obeyed.
    pub fn orders(&self) -> u64 {
        self.state.orders
    }

    /// The members that are about to be removed, and since when that is known. The order may never
    /// come. Then they stand here until a later order does.
    pub fn leaving(&self) -> &[AnnouncedRemoval] {
        &self.leavers.0
    }

    /// Whether a message of a member that was kept, or came by others, is to be taken: it is not
    /// where the member's removal was announced and the message was not sent before.
    pub fn takes(&self, slot: Slot, epoch: Epoch, counter: u64) -> bool {
        self.leavers.0.iter().all(|one| one.removal.allows(slot, epoch, counter))
    }

    /// Keeps whom the authority is about to remove.
    fn leave(&mut self, removal: RemovalNotice) -> Result<Vec<GroupChange>, Error> {
        let lock = self.keys.lock()?;
        let mut leavers = self.keys.leavers(&lock, &self.name)?;
        let is_new = leavers.add(AnnouncedRemoval { removal, came_ms: now_ms() });
        if is_new {
            self.keys.save_leavers(&lock, &self.name, &leavers)?;
        }
        self.leavers = leavers;
        Ok(if is_new { vec![GroupChange::Leaving(removal)] } else { Vec::new() })
    }

    /// Forgets removals whose order was obeyed, and tells of those that it did not make true.
    fn end_leaving(&mut self, lock: &KeyFolderLock) -> Result<Vec<GroupChange>, Error> {
        let mut leavers = self.keys.leavers(lock, &self.name)?;
        let ordered = leavers.take_ordered(self.state.orders);
        if !ordered.is_empty() {
            self.keys.save_leavers(lock, &self.name, &leavers)?;
        }
        self.leavers = leavers;
        let stays = |removal: &RemovalNotice| {
            let entry = self.state.roster.entry(removal.slot);
            entry.is_some_and(|entry| entry.removed.is_none())
        };
        let removals = ordered.into_iter().map(|one| one.removal).filter(stays);
        Ok(removals.map(|one| GroupChange::Stays { slot: one.slot, order: one.order }).collect())
    }

    /// Whether it may seal.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`]; [`Error::Behind`] if orders are known that were not obeyed.
    pub fn check_sealing(&self) -> Result<(), Error> {
        self.state.check_sealing()
    }

    /// Whether the newest heartbeat is as young as the charter asks.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`].
    pub fn check_heartbeat(&self, now_ms: u64) -> Result<(), Error> {
        let allowed_s = u64::from(self.state.charter.heartbeat_age_s);
        let age_s = self.state.beat.age_ms(now_ms) / 1000;
        if allowed_s == 0 || age_s <= allowed_s || self.is_authority() {
            return Ok(());
        }
        Err(Error::Stale { age_s, allowed_s })
    }

    /// How old the authority's newest heartbeat may be, in seconds; 0: any age.
    pub fn heartbeat_age_s(&self) -> u32 {
        self.state.charter.heartbeat_age_s
    }

    /// Whether members without a heartbeat seal nothing but what is urgent.
    pub fn is_strict(&self) -> bool {
        self.state.charter.is_strict
    }

    /// The first epoch that may be read at a place of a stream: what is of an earlier one was
    /// written behind a removal.
    pub fn first_epoch(&self, stream: &Binding, generation: u64, offset: u64) -> Epoch {
        self.state.marks.first_epoch(stream, generation, offset)
    }

    /// Whether anybody was ever removed.
    pub fn has_removed(&self) -> bool {
        self.state.live_from > Epoch(0)
    }

    /// Whether the last removal has left its mark in a stream.
    pub fn is_marked(&self, stream: &Binding) -> bool {
        self.state.marks.has(stream, self.state.live_from)
    }

    /// Remembers how far streams had come when this member learned of the last removal, where the
    /// authority has not said so.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn mark_here(&mut self, marks: &[RemovalMark]) -> Result<(), Error> {
        let lock = self.keys.lock()?;
        let mut state = self.keys.load(&lock, &self.name)?;
        let epoch = state.live_from;
        let missing = |mark: &&RemovalMark| !state.marks.has(&mark.stream, epoch);
        let missing: Vec<RemovalMark> = marks.iter().filter(missing).copied().collect();
        state.marks.add(epoch, &missing);
        self.keys.save(&lock, &self.name, &state)?;
        self.state = state;
        Ok(())
    }

    /// The stream of the group's orders.
    pub fn control_topic(&self) -> String {
        control_topic(self.tag())
    }

    /// The addresses of all members, by slot. They tell nobody who the members are.
    pub fn addresses(&self) -> impl Iterator<Item = (Slot, PeerTag)> + '_ {
        let slots = self.state.roster.members().map(crate::RosterEntry::slot);
        slots.filter_map(|slot| Some((slot, self.state.peer_tag(slot)?)))
    }

    /// Tells a link the addresses of all members, for frames of the compact form.
    ///
    /// # Errors
    ///
    /// [`Error::Frame`] if the link knows too many already.
    pub fn introduce(&self, link: &mut LinkRoster) -> Result<(), Error> {
        for (slot, address) in self.addresses() {
            link.insert(self.tag(), slot, address)?;
        }
        link.set_epoch(self.tag(), self.state.epochs.newest());
        Ok(())
    }

    /// A sender in the own slot.
    ///
    /// # Errors
    ///
    /// [`Error::Behind`], [`Error::Removed`], [`Error::Io`].
    pub fn sender(&self) -> Result<GroupSender, Error> {
        let (keys, name) = (Arc::clone(&self.keys), self.name.clone());
        GroupSender::open(SenderSource::Folder { keys, name })
    }

    /// Reads again what the folder has.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`], [`Error::Damaged`].
    pub fn reload(&mut self) -> Result<(), Error> {
        let lock = self.keys.lock()?;
        self.state = self.keys.load(&lock, &self.name)?;
        self.leavers = self.keys.leavers(&lock, &self.name)?;
        Ok(())
    }

    /// Erases the secrets before `epoch`, whatever the group's history: no stream retains their
    /// messages any more.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn forget(&mut self, before: Epoch) -> Result<(), Error> {
        self.change_epochs(|epochs| epochs.forget(before))
    }

    fn change_epochs(&mut self, change: impl FnOnce(&mut Epochs)) -> Result<(), Error> {
        let lock = self.keys.lock()?;
        let mut state = self.keys.load(&lock, &self.name)?;
        let held = state.epochs.held().count();
        change(&mut state.epochs);
        if state.epochs.held().count() != held {
            self.keys.save(&lock, &self.name, &state)?;
        }
        self.state = state;
        Ok(())
    }
}

impl EpochSource for GroupMember {
    fn group(&self) -> Group {
        self.state.charter.group()
    }

    fn slot(&self) -> Slot {
        self.state.slot
    }

    fn epochs(&self) -> &Epochs {
        &self.state.epochs
    }

    fn terms(&self) -> Vec<Term> {
        self.state.roster.entries().iter().map(crate::RosterEntry::term).collect()
    }

    fn live_from(&self) -> Epoch {
        self.state.live_from
    }

    fn leaving(&self) -> &[AnnouncedRemoval] {
        &self.leavers.0
    }

    fn apply(&mut self, notice: &GroupNotice) -> Result<Vec<GroupChange>, Error> {
        // Junk is turned away by what is in memory: nobody can make it cost more.
        let Some(verified) = apply::verify(&self.state, self.is_authority(), notice)? else {
            return Ok(Vec::new());
        };
        if let apply::VerifiedNotice::Removal(removal) = verified {
            return self.leave(removal);
        }
        let lock = self.keys.lock()?;
        let mut state = self.keys.load(&lock, &self.name)?;
        let before = state.clone();
        let (keys, name, held) = (&self.keys, &self.name, &mut self.held);
        let mut folder =
            apply::MemberFolder { keys, name, lock: &lock, held, answered: Vec::new() };
        let outcome = apply::apply(&mut state, &mut folder, &verified);
        let answered = folder.answered;
        // If an order could not be obeyed, the changes that it has shown are kept as well.
        if !apply::is_same(&before, &state) {
            self.keys.save(&lock, &self.name, &state)?;
        }
        // The state holds what these cards were for.
        for nonce in &answered {
            self.keys.use_card(&lock, nonce)?;
        }
        self.state = state;
        let stays = self.end_leaving(&lock)?;
        outcome.map(|mut changes| {
            changes.splice(0..0, stays);
            changes
        })
    }

    fn passed(&mut self, epoch: Epoch) -> Result<(), Error> {
        self.change_epochs(|epochs| epochs.passed(epoch))
    }
}

/// The topic of a group's orders, which they are bound to however they come.
pub fn control_topic(tag: GroupTag) -> String {
    format!("groups/{tag}")
}

impl std::fmt::Debug for GroupMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Member");
        out.field("name", &self.name).field("slot", &self.state.slot);
        out.field("epochs", &self.state.epochs).finish_non_exhaustive()
    }
}
