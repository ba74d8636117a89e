//! Epoch secrets: held, ratcheted, forgotten.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroize;

use crate::derive::{self, SECRET_BYTES};
use crate::limits::{MAX_EPOCHS_AHEAD, MAX_EPOCHS_HELD};
use crate::{Epoch, Error, Form, GroupId};

/// The secret that all keys of one epoch derive from: SFrame's base key. Erased when dropped; its
/// text form does not show it.
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

    fn zero() -> EpochSecret {
        EpochSecret(Box::new([0; SECRET_BYTES]))
    }

    /// The bytes, to be wrapped for the members' key archive.
    pub fn expose(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    fn next(&self, group: GroupId, next: Epoch) -> Result<EpochSecret, Error> {
        let mut secret = EpochSecret::zero();
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

/// What becomes of secrets whose epoch has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum History {
    /// Kept as long as the group's streams retain its messages.
    Kept,
    /// Erased once the reader's cursor has passed the epoch.
    ForwardSecret,
}

/// The epoch secrets that a member holds of one group.
#[derive(Debug, Clone)]
pub struct Epochs {
    group: GroupId,
    history: History,
    ratchets: bool,
    /// In order of epochs, never empty.
    held: Vec<(Epoch, EpochSecret)>,
    newest: Epoch,
    /// The secrets that follow the newest one held, as far as a trial has gone. Kept between
    /// trials, so that forged epochs do not make every trial walk the whole way.
    ladder: Vec<EpochSecret>,
}

impl Epochs {
    /// The epochs of a provisioned group, from 0: each secret gives the next (`spec/seal.md`).
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] when the library refuses.
    pub fn provisioned(
        group: GroupId,
        history: History,
        secret: &EpochSecret,
    ) -> Result<Epochs, Error> {
        let mut first = EpochSecret::zero();
        derive::first(group, &secret.0, &mut first.0)?;
        Ok(Epochs::ratcheting(group, history, Epoch(0), first))
    }

    /// The epochs of a provisioned group from one whose secret is at hand, as an archive has it.
    pub fn ratcheting(
        group: GroupId,
        history: History,
        epoch: Epoch,
        secret: EpochSecret,
    ) -> Epochs {
        let held = vec![(epoch, secret)];
        Epochs { group, history, ratchets: true, held, newest: epoch, ladder: Vec::new() }
    }

    /// The epochs of a group whose secrets come from elsewhere, one by one. No trial goes ahead.
    pub fn agreed(group: GroupId, history: History, epoch: Epoch, secret: EpochSecret) -> Epochs {
        Epochs { ratchets: false, ..Epochs::ratcheting(group, history, epoch, secret) }
    }

    /// The newest epoch: the one to seal in.
    pub fn newest(&self) -> Epoch {
        self.newest
    }

    /// The group.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// What the group does with epochs that have been read.
    pub fn history(&self) -> History {
        self.history
    }

    /// Every secret held, oldest first, for the archive.
    pub fn held(&self) -> impl Iterator<Item = (Epoch, &EpochSecret)> {
        self.held.iter().map(|(epoch, secret)| (*epoch, secret))
    }

    /// The secret of an epoch, if held.
    pub fn secret(&self, epoch: Epoch) -> Option<&EpochSecret> {
        let found = self.held.binary_search_by_key(&epoch, |(held, _)| *held).ok()?;
        self.held.get(found).map(|(_, secret)| secret)
    }

    /// Ratchets to a later epoch, at most [`MAX_EPOCHS_AHEAD`] steps.
    ///
    /// # Errors
    ///
    /// [`Error::EpochStep`] for no step, a step back or too many, and for a group that does not
    /// ratchet; [`Error::TooManyEpochs`] beyond [`MAX_EPOCHS_HELD`].
    pub fn advance(&mut self, to: Epoch) -> Result<(), Error> {
        self.ahead(to)?;
        let steps = usize::try_from(to.0 - self.newest.0).map_err(|_| Error::EpochStep)?;
        if self.held.len() + steps > MAX_EPOCHS_HELD {
            return Err(Error::TooManyEpochs);
        }
        let passed = self.ladder.drain(..steps);
        self.held.extend((self.newest.0 + 1..).map(Epoch).zip(passed));
        self.newest = to;
        Ok(())
    }

    /// Takes the secret of an epoch: a newer one that was agreed on, or an older one from the
    /// archive. The newest epoch never goes back.
    ///
    /// # Errors
    ///
    /// [`Error::EpochStep`] if another secret is held for that epoch, or the group ratchets and the
    /// epoch is newer; [`Error::TooManyEpochs`] beyond [`MAX_EPOCHS_HELD`].
    pub fn insert(&mut self, epoch: Epoch, secret: EpochSecret) -> Result<(), Error> {
        if self.ratchets && epoch > self.newest {
            return Err(Error::EpochStep);
        }
        match self.held.binary_search_by_key(&epoch, |(held, _)| *held) {
            Ok(_) => {
                let held = self.secret(epoch).ok_or(Error::EpochUnknown)?;
                let same = verify_slices_are_equal(&*held.0, &*secret.0);
                same.map_err(|_| Error::EpochStep)
            }
            Err(_) if self.held.len() >= MAX_EPOCHS_HELD => Err(Error::TooManyEpochs),
            Err(index) => {
                self.held.insert(index, (epoch, secret));
                self.newest = self.newest.max(epoch);
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

    /// The secret of an epoch after the newest, without going there.
    pub(crate) fn ahead(&mut self, to: Epoch) -> Result<&EpochSecret, Error> {
        let steps = to.0.checked_sub(self.newest.0).filter(|steps| *steps > 0);
        let steps = steps.filter(|steps| self.ratchets && *steps <= MAX_EPOCHS_AHEAD);
        let steps = usize::try_from(steps.ok_or(Error::EpochStep)?).unwrap_or(usize::MAX);
        while self.ladder.len() < steps {
            let last = self.ladder.last().or_else(|| self.held.last().map(|(_, last)| last));
            let epoch = self.newest.0 + self.ladder.len() as u64 + 1;
            let next = last.ok_or(Error::EpochUnknown)?.next(self.group, Epoch(epoch))?;
            self.ladder.push(next);
        }
        self.ladder.get(steps - 1).ok_or(Error::EpochUnknown)
    }

    /// How many epochs, 256 apart from `likely` on, a header of that form may mean. The compact
    /// form names a near epoch only.
    pub(crate) fn trials(&self, likely: Epoch, form: Form) -> u64 {
        if form == Form::Compact || !self.ratchets {
            return 1;
        }
        let farthest = self.newest.0.saturating_add(MAX_EPOCHS_AHEAD);
        1 + (farthest.saturating_sub(likely.0) >> Form::Full.epoch_bits())
    }

    /// Whether [`Epochs::advance`] would find room.
    pub(crate) fn has_room(&self, to: Epoch) -> bool {
        let steps = usize::try_from(to.0.saturating_sub(self.newest.0)).unwrap_or(usize::MAX);
        self.held.len().saturating_add(steps) <= MAX_EPOCHS_HELD
    }
}

const ORDER_BYTES: usize = 10;
const ORDER_HEAD: [u8; 2] = [1, 1];

/// The control order to advance a group's epoch: the body of a class S message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance {
    /// The epoch to go to.
    pub to: Epoch,
}

impl Advance {
    /// The body: version 1, order 1, epoch as u64 big-endian.
    pub fn to_bytes(self) -> [u8; ORDER_BYTES] {
        let mut bytes = [0; ORDER_BYTES];
        let [version, order, epoch @ ..] = &mut bytes;
        [*version, *order] = ORDER_HEAD;
        *epoch = self.to.0.to_be_bytes();
        bytes
    }

    /// Reads the body of a control message.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Advance, Error> {
        let bytes: &[u8; ORDER_BYTES] = bytes.try_into().map_err(|_| Error::Malformed)?;
        let [version, order, epoch @ ..] = bytes;
        if [*version, *order] != ORDER_HEAD {
            return Err(Error::Malformed);
        }
        Ok(Advance { to: Epoch(u64::from_be_bytes(*epoch)) })
    }
}
