use sealane_group::PublicKey;

use super::{Vault, slots};
use crate::Error;
use crate::keys::{
    Cost, Key, KeySlot, NewSecret, RecoveryCode, Signer, SlotKind, WriterKey, owner_identity,
    random, slot_key,
};
use crate::limits::MAX_VAULT_SLOTS;
use crate::store::Put;
use crate::wire::{from_hex, hex};

/// What can be told of a key slot.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SlotInfo {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// What it is.
    pub kind: SlotKind,
    /// What a passphrase's slot costs.
    pub cost: Option<Cost>,
    /// A writer's label.
    pub label: Option<String>,
}

impl Vault {
    /// All key slots.
    ///
    /// # Errors
    /// What the store fails for; [`Error::Malformed`].
    pub fn slots(&self) -> Result<Vec<SlotInfo>, Error> {
        let slots = slots(&self.store, &self.config.vault)?;
        let info = |slot: &KeySlot| SlotInfo {
            id: hex(&slot.id),
            kind: slot.kind,
            cost: slot.cost,
            label: slot.writer_label(&self.sealing).filter(|_| slot.kind == SlotKind::Writer),
        };
        Ok(slots.iter().map(info).collect())
    }

    /// Adds a slot for a passphrase; gives its id.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for.
    pub fn add_passphrase(
        &self,
        passphrase: &[u8],
        cost: Cost,
        label: &str,
    ) -> Result<String, Error> {
        self.add(label, &NewSecret::Passphrase(passphrase, cost))
    }

    /// Adds a slot for a new recovery code, to be printed.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for.
    pub fn add_recovery(&self, label: &str) -> Result<RecoveryCode, Error> {
        let code = RecoveryCode::generate()?;
        self.add(label, &NewSecret::Recovery(&code))?;
        Ok(code)
    }

    /// Adds a slot for somebody's identity; gives its id.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for.
    pub fn add_identity(&self, identity: &PublicKey, label: &str) -> Result<String, Error> {
        self.add(label, &NewSecret::Identity(identity))
    }

    fn add(&self, label: &str, secret: &NewSecret<'_>) -> Result<String, Error> {
        let main = self.owner("add keys")?;
        let (id, object) = KeySlot::write(&self.config.vault, main, label, secret)?;
        self.add_slot(&id, &object)
    }

    fn add_slot(&self, id: &[u8; 8], object: &[u8]) -> Result<String, Error> {
        if slots(&self.store, &self.config.vault)?.len() >= MAX_VAULT_SLOTS {
            return Err(Error::TooLarge { what: "keys/".to_owned() });
        }
        match self.store.put_and_read(&slot_key(id), object)? {
            Put::Created => Ok(hex(id)),
            Put::Existed => Err(Error::Library("randomness")),
        }
    }

    /// Adds a writer: the key of a host that adds and cannot read.
    ///
    /// That it cannot delete either, is up to the store's object lock or credentials.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for.
    pub fn add_writer(&self, label: &str) -> Result<WriterKey, Error> {
        let main = self.owner("add keys")?;
        let vault = &self.config.vault;
        let seed = Key::new(random()?);
        let verifying = Signer::from_seed(&seed)?.verifying_key();
        let (slot, object) =
            KeySlot::write_writer(vault, &verifying, label, &self.sealing, &self.signer)?;
        self.add_slot(&slot, &object)?;
        Ok(WriterKey {
            vault: *vault,
            slot,
            seed,
            naming: self.naming.clone(),
            owner_verifying: self.config.owner,
            owner: owner_identity(main, vault)?.public().clone(),
        })
    }

    /// Removes a slot. Whoever copied it and knows its secret still opens the vault; a writer's
    /// snapshots are no longer accepted.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::LastSlot`], [`Error::Missing`].
    pub fn remove_slot(&self, id: &str) -> Result<(), Error> {
        self.owner("remove keys")?;
        let missing = || Error::Missing(format!("keys/{id}"));
        let id: [u8; 8] = from_hex(id).ok_or_else(missing)?;
        let slots = slots(&self.store, &self.config.vault)?;
        let slot = slots.iter().find(|slot| slot.id == id).ok_or_else(missing)?;
        let opening = slots.iter().filter(|slot| slot.kind != SlotKind::Writer).count();
        if slot.kind != SlotKind::Writer && opening <= 1 {
            return Err(Error::LastSlot);
        }
        self.store.delete(&slot_key(&id))
    }
}
