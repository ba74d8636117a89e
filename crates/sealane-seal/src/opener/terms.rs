//! The members by slot, with the epochs of each.

use crate::sign::VerifyingKey;
use crate::{Epoch, Error, Slot};

/// A member's time in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The slot.
    pub slot: Slot,
    /// The first epoch that the member is part of.
    pub since: Epoch,
    /// The first epoch that it is no part of, if it has left.
    pub until: Option<Epoch>,
    /// The key that verifies its class S.
    pub verifying_key: [u8; 32],
}

impl Term {
    /// Whether the member is part of that epoch.
    pub fn holds(&self, epoch: Epoch) -> bool {
        self.since <= epoch && self.until.is_none_or(|until| epoch < until)
    }
}

/// All terms, by slot: those of one lie behind each other, since each message asks for them.
#[derive(Default)]
pub(super) struct Terms {
    slots: Vec<Vec<(Term, VerifyingKey)>>,
    is_known: bool,
}

impl Terms {
    /// Takes the terms in place of those that were known, or none of them. Keys that stay are not
    /// parsed again.
    pub(super) fn set(&mut self, terms: impl IntoIterator<Item = Term>) -> Result<(), Error> {
        let mut fresh = Vec::<Vec<_>>::new();
        for term in terms {
            let mut known = self.of(term.slot).iter();
            let key = match known.find(|(known, _)| known.verifying_key == term.verifying_key) {
                Some((_, key)) => key.clone(),
                None => VerifyingKey::new(&term.verifying_key)?,
            };
            let at = usize::from(term.slot.number());
            if fresh.len() <= at {
                fresh.resize_with(at + 1, Vec::new);
            }
            if let Some(own) = fresh.get_mut(at) {
                own.push((term, key));
            }
        }
        *self = Terms { slots: fresh, is_known: true };
        Ok(())
    }

    /// Whether a message of that slot and epoch may be anybody's: anything goes while nobody has
    /// told who the members are.
    pub(super) fn check(&self, slot: Slot, epoch: Epoch) -> Result<(), Error> {
        let is_member = !self.is_known || self.key(slot, epoch).is_some();
        if is_member { Ok(()) } else { Err(Error::NotMember) }
    }

    pub(super) fn key(&self, slot: Slot, epoch: Epoch) -> Option<&VerifyingKey> {
        self.of(slot).iter().find(|(term, _)| term.holds(epoch)).map(|(_, key)| key)
    }

    fn of(&self, slot: Slot) -> &[(Term, VerifyingKey)] {
        self.slots.get(usize::from(slot.number())).map(Vec::as_slice).unwrap_or_default()
    }
}
