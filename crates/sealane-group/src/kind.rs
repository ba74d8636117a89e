//! The kinds of group, behind one type that senders, readers and clients hold.

use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::{Binding, Epoch, Epochs, Group, History, Slot, Term};

#[cfg(feature = "test-kind")]
use crate::AgreedMember;
use crate::{
    AnnouncedRemoval, ControlCursor, EpochSource, Error, GroupChange, GroupMember, GroupNotice,
    GroupSender, RemovalMark,
};

/// This process in a group, whatever decides who is in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum GroupMembership {
    /// An authority decides, by orders.
    Provisioned(Box<GroupMember>),
    /// The members decide among themselves: for tests, in place of conversations. Slots are given
    /// again, and epochs come from outside.
    #[cfg(feature = "test-kind")]
    Agreed(Box<AgreedMember>),
}

impl From<GroupMember> for GroupMembership {
    fn from(member: GroupMember) -> GroupMembership {
        GroupMembership::Provisioned(Box::new(member))
    }
}

#[cfg(feature = "test-kind")]
impl From<AgreedMember> for GroupMembership {
    fn from(agreed: AgreedMember) -> GroupMembership {
        GroupMembership::Agreed(Box::new(agreed))
    }
}

/// The same method of whichever kind it is.
macro_rules! each {
    ($membership:expr, $kind:ident => $call:expr) => {
        match $membership {
            GroupMembership::Provisioned($kind) => $call,
            #[cfg(feature = "test-kind")]
            GroupMembership::Agreed($kind) => $call,
        }
    };
}

/// The part that only groups with an authority have. Other groups answer with the expression behind
/// the semicolon.
macro_rules! provisioned {
    ($membership:expr, $member:ident => $call:expr; $otherwise:expr) => {
        match $membership {
            GroupMembership::Provisioned($member) => $call,
            #[cfg(feature = "test-kind")]
            GroupMembership::Agreed(_) => $otherwise,
        }
    };
}

impl GroupMembership {
    /// The group's address in frames.
    pub fn tag(&self) -> GroupTag {
        each!(self, kind => kind.tag())
    }

    /// The own address in frames.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`].
    pub fn source(&self) -> Result<PeerTag, Error> {
        each!(self, kind => kind.source())
    }

    /// The treatment of epochs that have been read.
    pub fn history(&self) -> History {
        self.epochs().history()
    }

    /// The name of the member that had that slot in that epoch.
    pub fn name_of(&self, slot: Slot, epoch: Epoch) -> Option<&str> {
        each!(self, kind => kind.name_of(slot, epoch))
    }

    /// The present members, by slot, with the address of each.
    pub fn addresses(&self) -> Vec<(Slot, PeerTag)> {
        each!(self, kind => kind.addresses().collect())
    }

    /// How many orders, or changes that members agreed on, are obeyed.
    pub fn orders(&self) -> u64 {
        each!(self, kind => kind.orders())
    }

    /// Whether this member is none any more.
    pub fn is_removed(&self) -> bool {
        each!(self, kind => kind.is_removed())
    }

    /// A sender in the own slot.
    ///
    /// # Errors
    ///
    /// [`Error::Behind`], [`Error::Removed`], [`Error::Io`].
    pub fn sender(&self) -> Result<GroupSender, Error> {
        each!(self, kind => kind.sender())
    }

    /// Whether it may seal.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`], [`Error::Behind`].
    pub fn check_sealing(&self) -> Result<(), Error> {
        each!(self, kind => kind.check_sealing())
    }

    /// Reads again what is kept of the group.
    ///
    /// # Errors
    ///
    /// As [`GroupMember::reload`].
    pub fn reload(&mut self) -> Result<(), Error> {
        provisioned!(self, member => member.reload(); Ok(()))
    }

    /// The member of a group with an authority.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`] where nobody gives orders.
    pub fn provisioned(&mut self) -> Result<&mut GroupMember, Error> {
        provisioned!(self, member => Ok(member); Err(Error::NotAuthority))
    }

    /// The same for reading: what a mesh keeps and gives on is an authority's orders.
    ///
    /// # Errors
    ///
    /// [`Error::NotAuthority`] where nobody gives orders.
    pub fn as_provisioned(&self) -> Result<&GroupMember, Error> {
        provisioned!(self, member => Ok(member); Err(Error::NotAuthority))
    }

    /// See [`GroupMember::check_heartbeat`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn check_heartbeat(&self, now_ms: u64) -> Result<(), Error> {
        provisioned!(self, member => member.check_heartbeat(now_ms); Ok(()))
    }

    /// See [`GroupMember::is_strict`].
    pub fn is_strict(&self) -> bool {
        provisioned!(self, member => member.is_strict(); false)
    }

    /// See [`GroupMember::is_copied`].
    pub fn is_copied(&self) -> bool {
        provisioned!(self, member => member.is_copied(); false)
    }

    /// See [`GroupMember::first_epoch`].
    pub fn first_epoch(&self, stream: &Binding, generation: u64, offset: u64) -> Epoch {
        provisioned!(self, member => member.first_epoch(stream, generation, offset); Epoch(0))
    }

    /// See [`GroupMember::has_removed`].
    pub fn has_removed(&self) -> bool {
        provisioned!(self, member => member.has_removed(); false)
    }

    /// See [`GroupMember::is_marked`].
    pub fn is_marked(&self, stream: &Binding) -> bool {
        provisioned!(self, member => member.is_marked(stream); true)
    }

    /// See [`GroupMember::mark_here`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn mark_here(&mut self, marks: &[RemovalMark]) -> Result<(), Error> {
        provisioned!(self, member => member.mark_here(marks); Ok(()))
    }

    /// See [`GroupMember::shown_by`].
    pub fn shown_by(&self, notice: &GroupNotice) -> Option<u64> {
        provisioned!(self, member => member.shown_by(notice); None)
    }

    /// See [`GroupMember::control_cursor`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn control_cursor(&self, hub: &[u8; 16]) -> Result<Option<ControlCursor>, Error> {
        provisioned!(self, member => member.control_cursor(hub); Ok(None))
    }

    /// See [`GroupMember::save_control_cursor`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn save_control_cursor(&self, cursor: ControlCursor) -> Result<(), Error> {
        provisioned!(self, member => member.save_control_cursor(cursor); Ok(()))
    }
}

impl EpochSource for GroupMembership {
    fn group(&self) -> Group {
        each!(self, kind => kind.group())
    }

    fn slot(&self) -> Slot {
        each!(self, kind => kind.slot())
    }

    fn epochs(&self) -> &Epochs {
        each!(self, kind => kind.epochs())
    }

    fn terms(&self) -> Vec<Term> {
        each!(self, kind => kind.terms())
    }

    fn live_from(&self) -> Epoch {
        each!(self, kind => kind.live_from())
    }

    fn leaving(&self) -> &[AnnouncedRemoval] {
        each!(self, kind => EpochSource::leaving(&**kind))
    }

    fn apply(&mut self, notice: &GroupNotice) -> Result<Vec<GroupChange>, Error> {
        each!(self, kind => kind.apply(notice))
    }

    fn passed(&mut self, epoch: Epoch) -> Result<(), Error> {
        each!(self, kind => kind.passed(epoch))
    }
}
