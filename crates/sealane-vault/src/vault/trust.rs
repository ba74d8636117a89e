//! The right to sign: the owner's list of slots, and slots that are not in it.

use std::collections::HashMap;
use std::fs;
use std::sync::PoisonError;

use super::{Vault, pin};
use crate::Error;
use crate::format::header::VaultId;
use crate::format::roster::{
    NO_END, ROSTER_PREFIX, VaultRoster, VaultRosterSlot, roster_key, roster_number,
};
use crate::format::snapshot::SignerId;
use crate::keys::{KeySlot, SLOT_PREFIX, SlotKind, slot_key};
use crate::limits::{MAX_ROSTER_BYTES, MAX_SLOT_BYTES, MAX_VAULT_SLOTS};
use crate::put::SkippedItem;
use crate::store::{CreateOutcome, VaultStore};
use crate::wire::hex;

/// A signer as links name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignerKey {
    pub(crate) verifying: [u8; 32],
    /// The number of the last link that is believed of it.
    pub(crate) until: u64,
}

/// The slots of a store, and what lies among them that is none.
#[derive(Debug, Default)]
pub(crate) struct StoredKeySlots {
    pub(crate) slots: Vec<KeySlot>,
    pub(crate) foreign: Vec<SkippedItem>,
}

/// All slots of the vault, those first that the owner's list names; the rest is skipped and named.
pub(crate) fn slots(
    store: &VaultStore,
    vault: &VaultId,
    roster: &VaultRoster,
) -> Result<StoredKeySlots, Error> {
    let mut found = StoredKeySlots::default();
    let mut keys: Vec<String> = roster.slots.iter().map(|slot| slot_key(&slot.id)).collect();
    let listed = keys.len();
    let mut there = store.list(SLOT_PREFIX)?;
    let objects = there.iter().map(|object| object.key.clone());
    let unlisted = objects.filter(|key| !keys.contains(key)).collect::<Vec<_>>();
    keys.extend(unlisted);
    let tried = keys.get(..listed + MAX_VAULT_SLOTS).unwrap_or(&keys);
    there.retain(|object| tried.contains(&object.key));
    let mut read = HashMap::new();
    store.get_each(&there, MAX_SLOT_BYTES, &mut |object, bytes| {
        read.insert(object.key.clone(), bytes);
        Ok(())
    })?;
    for (number, key) in keys.into_iter().enumerate() {
        if number >= listed + MAX_VAULT_SLOTS {
            skip(&mut found.foreign, &key, "there are more slots than a vault has");
            break;
        }
        // One that the list of slots names may be there although the store does not show it.
        let unseen = || store.get(&key, MAX_SLOT_BYTES);
        let bytes = match read.remove(&key).unwrap_or_else(unseen) {
            Ok(bytes) => bytes,
            Err(error) if error.is_damage() => {
                skip(&mut found.foreign, &key, error.named());
                continue;
            }
            Err(error) => return Err(error),
        };
        let read = KeySlot::read(&key, bytes, vault);
        match read {
            Ok(slot) => {
                match roster.listed(&slot.id) {
                    Some(listed) if listed.hash != slot.hash() => {
                        store.doubt(&key);
                        skip(&mut found.foreign, &key, "it is not what the owner signed");
                    }
                    None if roster.number > 0 => {
                        skip(&mut found.foreign, &key, "the owner's list of slots lacks it");
                    }
                    _ => {}
                }
                found.slots.push(slot);
            }
            Err(error) => {
                store.doubt(&key);
                skip(&mut found.foreign, &key, error.named());
            }
        }
    }
    Ok(found)
}

fn skip(foreign: &mut Vec<SkippedItem>, key: &str, reason: impl Into<String>) {
    foreign.push(SkippedItem { path: key.to_owned(), reason: reason.into() });
}

/// The newest list, and what lies beside it.
#[derive(Default)]
pub(super) struct NewestRoster {
    pub(super) roster: VaultRoster,
    pub(super) foreign: Vec<SkippedItem>,
}

/// The newest list that one of `owners` signed, the last of them first: from the store or as this
/// machine remembers it.
pub(super) fn newest(
    store: &VaultStore,
    vault: &VaultId,
    owners: &[[u8; 32]],
    remembered: Option<&[u8]>,
) -> Result<NewestRoster, Error> {
    let mut foreign = Vec::new();
    let mut newest = VaultRoster::default();
    let mut before = Vec::new();
    for object in store.list(ROSTER_PREFIX)?.iter().rev() {
        let bytes = match store.get_listed(object, MAX_ROSTER_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_damage() => {
                skip(&mut foreign, &object.key, error.named());
                continue;
            }
            Err(error) => return Err(error),
        };
        match VaultRoster::read(&object.key, &bytes, vault, owners) {
            Ok(roster) if roster.is_newer(&newest) => {
                let last = usize::from(roster.generation) + 1 == owners.len();
                if newest.number > 0 {
                    before.push(roster_key(newest.number));
                }
                newest = roster;
                if last {
                    break;
                }
            }
            Ok(_) => {}
            Err(error) => {
                store.doubt(&object.key);
                skip(&mut foreign, &object.key, error.named());
            }
        }
    }
    // An owner before has signed it behind the list of the one that holds now.
    for key in before {
        skip(&mut foreign, &key, "its owner has handed over: it does not hold any more");
    }
    let kept = remembered.and_then(|bytes| {
        let number = bytes.get(24..32)?.try_into().map(u64::from_le_bytes).ok()?;
        VaultRoster::read(&roster_key(number), bytes, vault, owners).ok()
    });
    if let Some(kept) = kept.filter(|kept| kept.is_newer(&newest)) {
        skip(
            &mut foreign,
            &roster_key(kept.number),
            "the newest list of slots is missing; what is remembered here holds",
        );
        newest = kept;
    }
    Ok(NewestRoster { roster: newest, foreign })
}

impl Vault {
    /// The owner's list of slots.
    pub(crate) fn roster(&self) -> VaultRoster {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The slots, with what is wrong among them named as a warning.
    pub(crate) fn all_slots(&self) -> Result<Vec<KeySlot>, Error> {
        let found = slots(&self.store, &self.config.vault, &self.roster())?;
        self.warn(found.foreign);
        Ok(found.slots)
    }

    /// The writers that may sign snapshots, and how far each is believed.
    pub(crate) fn signers(&self) -> Result<HashMap<SignerId, SignerKey>, Error> {
        let mut signers = HashMap::new();
        let roster = self.roster();
        for slot in self.all_slots()? {
            // The list is what the owner signs; an owner before may have signed the slot itself.
            if slot.kind == SlotKind::Writer && roster.listed(&slot.id).is_none() {
                match slot.writer(&self.succession.current()) {
                    Ok(verifying) => {
                        signers.insert(slot.id, SignerKey { verifying, until: NO_END });
                    }
                    Err(error) => {
                        self.warn([SkippedItem { path: slot_key(&slot.id), reason: error.named() }])
                    }
                }
            }
        }
        for listed in roster.slots.iter().filter(|listed| listed.kind == SlotKind::Writer) {
            let key = SignerKey { verifying: listed.writer, until: listed.until };
            signers.insert(listed.id, key);
        }
        Ok(signers)
    }

    /// Refuses a writer that the owner has removed: nobody would believe what it signs.
    pub(crate) fn check_writer(&self) -> Result<(), Error> {
        if !self.mains.is_empty() {
            return Ok(());
        }
        self.renew_roster()?;
        let until = self.signers()?.get(&self.signer_id).map_or(0, |signer| signer.until);
        match until == NO_END {
            true => Ok(()),
            false => Err(Error::WriterEnded { slot: hex(&self.signer_id), until }),
        }
    }

    /// Takes the newest list that the store has: another machine of the owner may have written it
    /// since this vault was opened.
    pub(crate) fn renew_roster(&self) -> Result<(), Error> {
        let there = self.newest_there()?.roster;
        if there.is_newer(&self.roster()) {
            *self.roster.lock().unwrap_or_else(PoisonError::into_inner) = there;
        }
        Ok(())
    }

    /// Refuses a writer that was ended before the link of this number.
    pub(crate) fn check_believed(&self, number: u64) -> Result<(), Error> {
        if !self.mains.is_empty() {
            return Ok(());
        }
        let there = self.newest_there()?.roster;
        match there.listed(&self.signer_id) {
            Some(listed) if listed.until < number => {
                Err(Error::WriterEnded { slot: hex(&self.signer_id), until: listed.until })
            }
            _ => Ok(()),
        }
    }

    fn newest_there(&self) -> Result<NewestRoster, Error> {
        newest(&self.store, &self.config.vault, self.succession.owners(), None)
    }

    /// The number of the newest list that the store has.
    pub(crate) fn newest_roster(&self) -> Result<u64, Error> {
        Ok(self.newest_there()?.roster.number)
    }

    /// The problems with the slots and the owner's list of them.
    pub(crate) fn check_roster(&self) -> Result<Vec<SkippedItem>, Error> {
        let roster = self.roster();
        let NewestRoster { roster: there, foreign: mut problems } = self.newest_there()?;
        problems.append(&mut slots(&self.store, &self.config.vault, &roster)?.foreign);
        if roster.is_newer(&there) {
            let reason = "the newest list of slots is missing";
            skip(&mut problems, &roster_key(roster.number), reason);
        }
        Ok(problems)
    }

    /// Signs what slots there are, in a vault that has no list yet. A store that cannot be written
    /// to leaves it unsigned, which is a warning.
    pub(super) fn sign_slots_once(&self) -> Result<(), Error> {
        // A copy that lags is read, and not written to.
        if self.lags() {
            return Ok(());
        }
        if self.roster().generation < self.generation() {
            return self.complete_rotation();
        }
        if self.roster().number > 0 {
            return Ok(());
        }
        let unsigned = |reason: &str| {
            self.warn([SkippedItem { path: ROSTER_PREFIX.to_owned(), reason: reason.to_owned() }]);
        };
        if self.mains.is_empty() || self.state.is_none() {
            unsigned("Unsigned: the owner has signed no list of slots yet");
            return Ok(());
        }
        let named = self.named_roster()?;
        if named > 0 {
            unsigned(
                "the owner's list of slots is missing: `sealane vault repair` signs a new one",
            );
            return Ok(());
        }
        match self.list_slots(&mut |_| {}) {
            // If a store does not keep written objects, a reader goes on; the first put stops.
            Err(
                Error::Store { .. }
                | Error::StoreFull { .. }
                | Error::Forgot(_)
                | Error::Overwrites(_),
            ) => {
                unsigned("Unsigned: the list of slots could not be written");
                Ok(())
            }
            other => other,
        }
    }

    /// Writes a new list: the slots that there are, changed by `change`.
    pub(crate) fn list_slots(
        &self,
        change: &mut dyn FnMut(&mut Vec<VaultRosterSlot>),
    ) -> Result<(), Error> {
        self.owner("sign slots")?;
        self.check_writable()?;
        self.store.look_anew();
        self.check_not_rotating()?;
        // Another machine of the owner may have written one since this vault was opened.
        let there = self.newest_there()?.roster;
        let mut roster = self.roster();
        if there.is_newer(&roster) {
            roster = there;
        }
        if roster.number == 0 {
            for slot in self.all_slots()? {
                roster.slots.extend(self.listed(&slot));
            }
        }
        change(&mut roster.slots);
        let there = self.store.list(ROSTER_PREFIX)?;
        let mut taken: Vec<u64> = there.iter().filter_map(|at| roster_number(&at.key)).collect();
        taken.sort_unstable();
        let named = self.named_roster()?;
        roster.number = roster.number.max(named) + 1;
        while taken.binary_search(&roster.number).is_ok() {
            roster.number += 1;
        }
        roster.generation = self.generation();
        roster.handovers = self.succession.handovers().to_vec();
        let object = roster.write(&self.config.vault, &self.signer)?;
        if self.store.put_and_read(&roster_key(roster.number), &object)? == CreateOutcome::Existed {
            // Another machine of the owner was faster; what it wrote is read by the next open.
            return Err(Error::Raced);
        }
        if let Some(state) = &self.state {
            pin::write(&state.join("roster"), &object)?;
        }
        *self.roster.lock().unwrap_or_else(PoisonError::into_inner) = roster;
        // A machine that changes the main key looks for a newer list after it has said so.
        self.check_not_rotating()
    }

    /// The list entry of a slot that is as it was made.
    pub(crate) fn listed(&self, slot: &KeySlot) -> Option<VaultRosterSlot> {
        let writer = match slot.kind {
            SlotKind::Writer => slot.writer(&self.succession.current()).ok()?,
            _ => [0; 32],
        };
        let (id, kind, hash) = (slot.id, slot.kind, slot.hash());
        Some(VaultRosterSlot { id, kind, hash, writer, until: NO_END })
    }

    /// The list that this machine remembers.
    pub(super) fn remembered_roster(state: Option<&std::path::Path>) -> Option<Vec<u8>> {
        fs::read(state?.join("roster")).ok()
    }

    /// Keeps the newest list where the next open looks for it.
    pub(super) fn remember_roster(&self) -> Result<(), Error> {
        let (Some(state), roster) = (&self.state, self.roster()) else { return Ok(()) };
        if roster.number == 0 {
            return Ok(());
        }
        let file = state.join("roster");
        let held = fs::read(&file).ok();
        match self.store.get_seen(&roster_key(roster.number), MAX_ROSTER_BYTES) {
            Ok(bytes) if held.as_ref() != Some(&bytes) => {
                let is_it = VaultRoster::read(
                    &roster_key(roster.number),
                    &bytes,
                    &self.config.vault,
                    self.succession.owners(),
                );
                if is_it.is_ok() { pin::write(&file, &bytes) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}
