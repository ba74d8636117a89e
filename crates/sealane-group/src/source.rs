use sealane_seal::{Epoch, Epochs, Group, Opener, Slot, Term};

use crate::{AnnouncedRemoval, Error, GroupNotice};

/// Where a group's epoch secrets come from: an authority's orders ([`crate::GroupMember`]), or
/// members that agree on them among themselves.
///
/// It is all that sealing and opening ask of a group, so that neither knows how keys are agreed.
pub trait EpochSource {
    /// The group and its cipher.
    fn group(&self) -> Group;

    /// The slot that this member seals in.
    fn slot(&self) -> Slot;

    /// The secrets that are held; the newest epoch is the one to seal in.
    fn epochs(&self) -> &Epochs;

    /// The present and former members by slot, with the epochs of each.
    fn terms(&self) -> Vec<Term>;

    /// The epoch before which nothing is taken live any more, since a member was removed then.
    fn live_from(&self) -> Epoch;

    /// The members that are about to be removed. A live reader takes nothing new of them. Each kind
    /// of group says it itself: a default would let them through where a kind forgets it.
    fn leaving(&self) -> &[AnnouncedRemoval];

    /// Takes a message of the group's control stream, and those that were held until it came.
    /// Taking it again does no harm. Gives the changes.
    ///
    /// # Errors
    ///
    /// The fault of the notice. Nothing has changed then, but that the member may know now that it
    /// is behind.
    fn apply(&mut self, notice: &GroupNotice) -> Result<Vec<GroupChange>, Error>;

    /// The reader's cursor stands in `epoch`: a forward-secret group erases the secrets before it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if that could not be made durable.
    fn passed(&mut self, epoch: Epoch) -> Result<(), Error>;

    /// A reader of the group.
    ///
    /// # Errors
    ///
    /// Those of [`Opener::new`] and [`Opener::set_terms`].
    fn opener(&self) -> Result<Opener, Error> {
        let mut opener = Opener::new(self.group(), Some(self.slot()), self.epochs().clone())?;
        self.refresh(&mut opener)?;
        Ok(opener)
    }

    /// Tells a reader what has changed: newer epochs, members, and the secrets that are gone.
    ///
    /// # Errors
    ///
    /// Those of [`Opener::insert`] and [`Opener::set_terms`].
    fn refresh(&self, opener: &mut Opener) -> Result<(), Error> {
        for (epoch, secret) in self.epochs().held() {
            if opener.epochs().secret(epoch).is_none() {
                opener.insert(epoch, secret.clone())?;
            }
        }
        if let Some((oldest, _)) = self.epochs().held().next() {
            opener.forget(oldest);
        }
        opener.set_terms(self.terms())?;
        opener.set_live_floor(self.live_from());
        Ok(())
    }
}

/// A change by a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupChange {
    /// An order has come before others that it follows. It is held until they come, and nothing
    /// is sealed meanwhile.
    Held {
        /// The first order that is missing.
        missing: u64,
    },
    /// A certificate is kept; the admission that names it comes next.
    Certified(Slot),
    /// There is a new member; the same identity's earlier slot is retired.
    Admitted {
        /// The new slot.
        slot: Slot,
        /// The slot that it takes the place of.
        replaces: Option<Slot>,
    },
    /// The group is in a later epoch, whose secret follows from the one before.
    Advanced(Epoch),
    /// The group is in a later epoch with a fresh secret.
    Rekeyed {
        /// The epoch.
        epoch: Epoch,
        /// The members that are removed.
        removed: Vec<Slot>,
    },
    /// It is known in how many streams where the last removal begins to hold.
    Marked(usize),
    /// Somebody else's heartbeats count, or nobody's any more.
    Beater(Option<[u8; 32]>),
    /// The authority is alive, and so many orders were given.
    Heartbeat(crate::notice::GroupHeartbeat),
    /// A member is about to be removed, and nothing of it is taken from now on but what was sent
    /// before.
    Leaving(crate::RemovalNotice),
    /// The removal of a member was announced for an order that has not removed it: what it sends is
    /// taken again.
    Stays {
        /// The slot of the member.
        slot: Slot,
        /// The order that was named.
        order: u64,
    },
    /// This member was removed: it reads what it could read, and nothing that follows.
    Removed,
}
