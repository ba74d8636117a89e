//! The members whose fingerprints people have compared in this folder, by slot: a slot is never
//! given to anybody else.

use sealane_seal::Slot;

use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::MAX_ROSTER_MEMBERS;
use crate::{Error, GroupDocument, GroupMember, RosterEntry};

impl GroupMember {
    /// Whether people have compared the fingerprint behind a slot: here, or here that of the
    /// authority, whose word every certificate is. An authority compares each member itself.
    pub fn is_compared(&self, slot: Slot) -> bool {
        let own = self.state().slot;
        let is_here = |slot: Slot| slot == own || self.compared().contains(&slot);
        is_here(slot) || self.authority_slot().is_some_and(|slot| slot != own && is_here(slot))
    }

    /// Keeps that people have compared the fingerprint behind a slot.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownMember`], [`Error::Io`].
    pub fn set_compared(&mut self, slot: Slot) -> Result<(), Error> {
        let entry = self.roster().entry(slot);
        entry.ok_or_else(|| Error::UnknownMember(format!("slot {}", slot.number())))?;
        let lock = self.keys.lock()?;
        let mut compared = self.keys.compared(&lock, self.name())?;
        if !compared.contains(&slot) {
            compared.push(slot);
            self.keys.save_compared(&lock, self.name(), &compared)?;
        }
        self.take_compared(compared);
        Ok(())
    }

    /// The slot of the authority.
    pub fn authority_slot(&self) -> Option<Slot> {
        let authority = &self.state().charter.authority.curve;
        let mut entries = self.roster().entries().iter();
        entries.find(|entry| entry.verifying == *authority).map(RosterEntry::slot)
    }
}

impl IdentityKeys {
    /// The slots that were compared. If the file is lost, people compare them again.
    pub(crate) fn compared(&self, _: &KeyFolderLock, name: &str) -> Result<Vec<Slot>, Error> {
        let payload = self.read_plain(name, "compared", GroupDocument::ComparedFile)?;
        let (slots, _) = payload.as_chunks::<2>();
        let slots = slots.iter().take(MAX_ROSTER_MEMBERS);
        Ok(slots.filter_map(|slot| Slot::new(u16::from_be_bytes(*slot))).collect())
    }

    fn save_compared(&self, _: &KeyFolderLock, name: &str, slots: &[Slot]) -> Result<(), Error> {
        let payload: Vec<u8> = slots.iter().flat_map(|slot| slot.number().to_be_bytes()).collect();
        self.write_plain(name, "compared", GroupDocument::ComparedFile, &payload)
    }
}
