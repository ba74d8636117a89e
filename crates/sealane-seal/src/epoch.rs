//! Epoch secrets: held, stepped, forgotten.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroize;

use crate::derive::{self, SECRET_BYTES};
use crate::limits::MAX_EPOCHS_HELD;
use crate::{Epoch, Error, GroupId};

/// The secret that all keys of one epoch derive from. Erased when dropped; its text form does not
/// show it.
#[derive(Clone)]
pub struct EpochSecret(
    // In a box of its own, so that a list that grows leaves no copies behind.
    Box<[u8; SECRET_BYTES]>,
);

impl EpochSecret {
    /// Takes a secret. The caller erases its own copy.
    pub fn new(mut secret: [u8; SECRET_BYTES]) -> EpochSecret {
        let kept = EpochSecret(Box::new(secret));
        secret.zeroize();
        kept
    }

    /// The bytes, to be wrapped for members or kept in their folders.
    pub fn expose(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// The secret of the epoch `next`, the one after this secret's, by the one-way step of
    /// `spec/seal.md`.
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] when the library refuses.
    pub fn next(&self, group: GroupId, next: Epoch) -> Result<EpochSecret, Error> {
        let mut secret = EpochSecret(Box::new([0; SECRET_BYTES]));
        derive::step(group, &self.0, next, &mut secret.0)?;
        Ok(secret)
    }
}

impl Drop for EpochSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for EpochSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EpochSecret(…)")
    }
}

/// The treatment of secrets whose epoch has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum History {
    /// Kept as long as the group's streams retain its messages.
    Kept,
    /// Erased once the reader's cursor has passed the epoch.
    ForwardSecret,
}

/// The epoch secrets that a member holds of one group. They come from outside, one by one: from an
/// authority's orders, or from members who agree on them.
#[derive(Debug, Clone)]
pub struct Epochs {
    group: GroupId,
    history: History,
    /// In order of epochs, never empty.
    held: Vec<(Epoch, EpochSecret)>,
    newest: Epoch,
}

impl Epochs {
    /// The epochs of a group, of which one is held.
    pub fn new(group: GroupId, history: History, epoch: Epoch, secret: EpochSecret) -> Epochs {
        Epochs { group, history, held: vec![(epoch, secret)], newest: epoch }
    }

    /// The newest epoch: the one to seal in.
    pub fn newest(&self) -> Epoch {
        self.newest
    }

    /// The group.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The group's treatment of epochs that have been read.
    pub fn history(&self) -> History {
        self.history
    }

    /// Every secret held, oldest first.
    pub fn held(&self) -> impl Iterator<Item = (Epoch, &EpochSecret)> {
        self.held.iter().map(|(epoch, secret)| (*epoch, secret))
    }

    /// The secret of an epoch, if held.
    pub fn secret(&self, epoch: Epoch) -> Option<&EpochSecret> {
        let found = self.held.binary_search_by_key(&epoch, |(held, _)| *held).ok()?;
        self.held.get(found).map(|(_, secret)| secret)
    }

    /// Takes the secret of an epoch, a newer or an older one. The newest epoch never goes back.
    ///
    /// There is always room for a newer epoch, since a removal must never depend on it: beyond
    /// [`MAX_EPOCHS_HELD`] the oldest secret leaves.
    ///
    /// # Errors
    ///
    /// [`Error::EpochStep`] if another secret is held for that epoch; [`Error::TooManyEpochs`] for
    /// an older one that there is no room for.
    pub fn insert(&mut self, epoch: Epoch, secret: EpochSecret) -> Result<(), Error> {
        match self.held.binary_search_by_key(&epoch, |(held, _)| *held) {
            Ok(_) => {
                let held = self.secret(epoch).ok_or(Error::EpochUnknown)?;
                let same = verify_slices_are_equal(&*held.0, &*secret.0);
                same.map_err(|_| Error::EpochStep)
            }
            Err(0) if self.held.len() >= MAX_EPOCHS_HELD => Err(Error::TooManyEpochs),
            Err(index) => {
                self.held.insert(index, (epoch, secret));
                self.newest = self.newest.max(epoch);
                if self.held.len() > MAX_EPOCHS_HELD {
                    self.held.remove(0);
                }
                Ok(())
            }
        }
    }

    /// The reader's cursor stands in `epoch`: a forward-secret group erases what lies before it.
    /// The newest secret always stays.
    pub fn passed(&mut self, epoch: Epoch) {
        if self.history == History::ForwardSecret {
            self.forget(epoch);
        }
    }

    /// Erases the secrets before `epoch`, since no stream retains their messages.
    pub fn forget(&mut self, before: Epoch) {
        let newest = self.newest;
        self.held.retain(|(epoch, _)| *epoch >= before || *epoch == newest);
    }
}
