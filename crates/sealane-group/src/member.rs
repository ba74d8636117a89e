use std::sync::Arc;

use sealane_frame::{GroupTag, PeerTag, Roster as LinkRoster};
use sealane_seal::{Epoch, Epochs, Group, GroupId, History, Slot, Suite};

use crate::folder::IdentityKeys;
use crate::state::GroupState;
use crate::{Change, EpochSource, Error, Fingerprint, Notice, Roster, Sender};

mod apply;
mod authority;
mod join;
#[cfg(test)]
mod tests;

pub use authority::Invited;

/// What a group is to be, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewGroup {
    /// Its cipher.
    pub suite: Suite,
    /// What becomes of epoch secrets once their messages are read.
    pub history: History,
    /// Whether it is a group of two, with class P.
    pub is_pair: bool,
}

impl Default for NewGroup {
    /// AES-256-GCM, kept history, more than two.
    fn default() -> NewGroup {
        NewGroup { suite: Suite::Aes256Gcm, history: History::Kept, is_pair: false }
    }
}

/// A member of a group, as its key folder has it.
///
/// What changes is written to the folder before a call returns. What other processes have changed
/// is seen by [`Member::reload`], and before every change.
pub struct Member {
    keys: Arc<IdentityKeys>,
    name: String,
    state: GroupState,
}

impl Member {
    pub(crate) fn open(keys: &Arc<IdentityKeys>, name: &str) -> Result<Member, Error> {
        let state = keys.load(&keys.lock()?, name)?;
        Ok(Member { keys: Arc::clone(keys), name: name.to_owned(), state })
    }

    /// What the group is called in this folder.
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

    /// What becomes of epochs that have been read.
    pub fn history(&self) -> History {
        self.state.charter.history
    }

    /// Who is in the group, and who was.
    pub fn roster(&self) -> &Roster {
        &self.state.roster
    }

    /// The member, or former member, with that address.
    pub fn find(&self, tag: PeerTag) -> Option<&crate::Entry> {
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

    /// Tells a link the addresses of all members, for frames of the compact form.
    ///
    /// # Errors
    ///
    /// [`Error::Frame`] if the link knows too many already.
    pub fn introduce(&self, link: &mut LinkRoster) -> Result<(), Error> {
        for entry in self.state.roster.members() {
            if let Some(tag) = self.state.peer_tag(entry.slot()) {
                link.insert(self.tag(), entry.slot(), tag)?;
            }
        }
        link.set_epoch(self.tag(), self.state.epochs.newest());
        Ok(())
    }

    /// A sender in the own slot.
    ///
    /// # Errors
    ///
    /// [`Error::Elsewhere`] if the folder was copied or restored: it needs a new slot;
    /// [`Error::Removed`], [`Error::Io`].
    pub fn sender(&self) -> Result<Sender, Error> {
        Sender::open(&self.keys, &self.name)
    }

    /// Reads again what the folder has.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`], [`Error::Damaged`].
    pub fn reload(&mut self) -> Result<(), Error> {
        self.state = self.keys.load(&self.keys.lock()?, &self.name)?;
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

impl EpochSource for Member {
    fn group(&self) -> Group {
        self.state.charter.group()
    }

    fn slot(&self) -> Slot {
        self.state.slot
    }

    fn epochs(&self) -> &Epochs {
        &self.state.epochs
    }

    fn signers(&self) -> impl Iterator<Item = (Slot, &[u8; 32])> {
        self.state.roster.entries().iter().map(|entry| (entry.slot(), entry.verifying_key()))
    }

    fn live_from(&self) -> Epoch {
        self.state.live_from
    }

    fn apply(&mut self, notice: &Notice) -> Result<Change, Error> {
        let lock = self.keys.lock()?;
        let mut state = self.keys.load(&lock, &self.name)?;
        let change = apply::apply(&mut state, &self.keys, notice)?;
        if change != Change::Nothing {
            self.keys.save(&lock, &self.name, &state)?;
        }
        self.state = state;
        Ok(change)
    }

    fn passed(&mut self, epoch: Epoch) -> Result<(), Error> {
        self.change_epochs(|epochs| epochs.passed(epoch))
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Member");
        out.field("name", &self.name).field("slot", &self.state.slot);
        out.field("epochs", &self.state.epochs).finish_non_exhaustive()
    }
}
