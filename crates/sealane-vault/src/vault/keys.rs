use sealane_group::PublicKey;

use super::Vault;
use crate::Error;
use crate::format::chunk::ChunkCompression;
use crate::format::roster::NO_END;
use crate::format::snapshot::{SnapshotBody, SnapshotCounts};
use crate::keys::{
    Argon2Cost, KeySlot, NewSecret, RecoveryCode, SlotKind, VaultSecretKey, VaultSigner, WriterKey,
    owner_identity, random, slot_key,
};
use crate::limits::MAX_VAULT_SLOTS;
use crate::put::now_ns;
use crate::store::CreateOutcome;
use crate::wire::{from_hex, hex};

/// The visible properties of a key slot.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SlotInfo {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// The kind of the slot.
    pub kind: SlotKind,
    /// The cost of a passphrase's slot.
    pub cost: Option<Argon2Cost>,
    /// A writer's label.
    pub label: Option<String>,
    /// For a writer that was removed: the number of its last snapshot that is believed.
    pub until: Option<u64>,
    /// Whether the owner's signed list names it as it is.
    pub signed: bool,
}

impl Vault {
    /// All key slots.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Malformed`].
    pub fn slots(&self) -> Result<Vec<SlotInfo>, Error> {
        let slots = self.all_slots()?;
        let roster = self.roster();
        // The owner of that time has sealed a writer's label.
        let label = |slot: &KeySlot| {
            let mut sealings = self.sealings.iter().rev();
            sealings.find_map(|sealing| slot.writer_label(sealing))
        };
        let info = |slot: &KeySlot| {
            let listed = roster.listed(&slot.id);
            SlotInfo {
                id: hex(&slot.id),
                kind: slot.kind,
                cost: slot.cost,
                label: label(slot).filter(|_| slot.kind == SlotKind::Writer),
                until: listed.map(|listed| listed.until).filter(|until| *until != NO_END),
                signed: listed.is_some_and(|listed| listed.hash == slot.hash()),
            }
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
        cost: Argon2Cost,
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
        self.check_writable()?;
        if self.roster().slots.len() >= MAX_VAULT_SLOTS {
            return Err(Error::TooLarge { what: "keys/".to_owned() });
        }
        let key = slot_key(id);
        if self.store.put_and_read(&key, object)? == CreateOutcome::Existed {
            return Err(Error::Library("randomness"));
        }
        let slot = KeySlot::read(&key, object.to_vec(), &self.config.vault)?;
        let listed = self.listed(&slot);
        self.list_slots(&mut |slots| {
            slots.retain(|listed| listed.id != slot.id);
            slots.extend(listed.clone());
        })?;
        Ok(hex(id))
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
        let seed = VaultSecretKey::new(random()?);
        let verifying = VaultSigner::from_seed(&seed)?.verifying_key();
        let (slot, object) =
            KeySlot::write_writer(vault, &verifying, label, &self.sealing, &self.signer)?;
        self.add_slot(&slot, &object)?;
        Ok(WriterKey {
            vault: *vault,
            slot,
            seed,
            naming: self.naming.clone(),
            owner_verifying: self.succession.current(),
            owner: owner_identity(main, vault)?.public().clone(),
        })
    }

    /// Removes a slot. Whoever copied it and knows its secret still opens the vault.
    ///
    /// A writer's slot stays, so that its snapshots stay readable everywhere; the owner signs up
    /// to which of them the writer is believed, and a link of the chain names that list.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::LastSlot`], [`Error::Missing`].
    pub fn remove_slot(&self, id: &str) -> Result<(), Error> {
        self.owner("remove keys")?;
        self.store.stop_looking();
        let missing = || Error::NoSlot(id.to_owned());
        let id: [u8; 8] = from_hex(id).ok_or_else(missing)?;
        let slots = self.all_slots()?;
        let slot = slots.iter().find(|slot| slot.id == id).ok_or_else(missing)?;
        if slot.kind == SlotKind::Writer {
            return self.end_writer(slot);
        }
        let opening = slots.iter().filter(|slot| slot.kind != SlotKind::Writer).count();
        if opening <= 1 {
            return Err(Error::LastSlot);
        }
        self.list_slots(&mut |slots| slots.retain(|listed| listed.id != id))?;
        self.store.delete(&slot_key(&id))
    }

    fn end_writer(&self, slot: &KeySlot) -> Result<(), Error> {
        let until = self.head()?.map_or(0, |(number, _)| number);
        let listed = self.listed(slot);
        self.list_slots(&mut |slots| {
            if !slots.iter().any(|listed| listed.id == slot.id) {
                slots.extend(listed.clone());
            }
            let ended = slots.iter_mut().filter(|listed| listed.id == slot.id);
            ended.for_each(|listed| listed.until = listed.until.min(until));
        })?;
        // The chain names the list, so that a store that takes it back is found out.
        let removed = self.walk(None)?.removed;
        self.append(&self.remark(), removed).map(|_| ())
    }

    /// A link that keeps no files: the owner's remark on the chain.
    pub(crate) fn remark(&self) -> SnapshotBody {
        SnapshotBody {
            prune: true,
            time_ns: now_ns(),
            source: String::new(),
            note: String::new(),
            counts: SnapshotCounts::default(),
            compression: ChunkCompression::None,
            listing: None,
            pages: Vec::new(),
            paths: Vec::new(),
            tags: Vec::new(),
            roster: self.roster().number,
            rotations: Vec::new(),
        }
    }
}
