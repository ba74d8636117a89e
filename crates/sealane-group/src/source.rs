use sealane_seal::{Epoch, Epochs, Group, Opener, Slot};

use crate::{Error, Notice};

/// Where a group's epoch secrets come from: an authority's orders ([`crate::Member`]), or members
/// that agree on them among themselves.
///
/// It is all that sealing and opening ask of a group, so that neither knows how keys are agreed.
pub trait EpochSource {
    /// The group and its cipher.
    fn group(&self) -> Group;

    /// The slot that this member seals in.
    fn slot(&self) -> Slot;

    /// The secrets that are held; the newest epoch is the one to seal in.
    fn epochs(&self) -> &Epochs;

    /// The keys that verify class S, by slot: of members and, for what they signed once, of those
    /// who were removed.
    fn signers(&self) -> impl Iterator<Item = (Slot, &[u8; 32])>;

    /// The epoch before which nothing is taken live any more, since a member was removed then.
    fn live_from(&self) -> Epoch;

    /// Takes a message of the group's control stream; again does no harm.
    ///
    /// # Errors
    ///
    /// What is wrong with it. Nothing has changed then.
    fn apply(&mut self, notice: &Notice) -> Result<Change, Error>;

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
    /// Those of [`Opener::new`] and [`Opener::set_signer`].
    fn opener(&self) -> Result<Opener, Error> {
        let mut opener = Opener::new(self.group(), Some(self.slot()), self.epochs().clone())?;
        self.refresh(&mut opener)?;
        Ok(opener)
    }

    /// Tells a reader what has changed: newer epochs, members, and the secrets that are gone.
    ///
    /// # Errors
    ///
    /// Those of [`Opener::insert`] and [`Opener::set_signer`].
    fn refresh(&self, opener: &mut Opener) -> Result<(), Error> {
        for (epoch, secret) in self.epochs().held() {
            if opener.epochs().secret(epoch).is_none() {
                opener.insert(epoch, secret.clone())?;
            }
        }
        if let Some((oldest, _)) = self.epochs().held().next() {
            opener.forget(oldest);
        }
        for (slot, key) in self.signers() {
            opener.set_signer(slot, key)?;
        }
        opener.set_live_floor(self.live_from());
        Ok(())
    }
}

/// What a notice has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: it was known, or is meant for others.
    Nothing,
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
        /// Who is no member any more.
        removed: Vec<Slot>,
    },
    /// This member was removed: it reads what it could read, and nothing that follows.
    Removed,
}
