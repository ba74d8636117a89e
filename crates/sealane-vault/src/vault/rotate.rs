//! Changing the main key.

use std::collections::BTreeSet;

use sealane_group::PublicKey;

use super::unread::UnreadLink;
use super::{OpenOptions, Vault};
use crate::Error;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::index::{index_key, write_indexes};
use crate::format::pack::PackRecord;
use crate::format::roster::{NO_END, VaultRosterSlot};
use crate::format::rotation::{RotationSigners, SealedRotation, VaultRotation, rotation_key};
use crate::format::snapshot::{self, HANDOVER, SnapshotBody, SnapshotLink, snapshot_key};
use crate::keys::{
    Argon2Cost, KeySlot, NewSecret, RecoveryCode, SlotKind, SlotSecret, VaultSealingKeys,
    VaultSecretKey, VaultSigner, derive, owner_identity, random, slot_key,
};
use crate::limits::{MAX_ROTATION_BYTES, MAX_ROTATION_RACES, MAX_ROTATIONS, MAX_VAULT_SLOTS};
use crate::put::SkippedItem;
use crate::store::CreateOutcome;
use crate::wire::hex;

/// The secrets that open the vault after a change of the main key. The secret that it was opened
/// with stays, too.
#[derive(Debug, Clone, Default)]
pub struct RotateOptions {
    /// Makes a new recovery code.
    pub recovery: bool,
    /// Identities.
    pub identities: Vec<PublicKey>,
}

/// The outcome of a change of the main key.
#[derive(Debug)]
#[non_exhaustive]
pub struct RotatedVault {
    /// The vault under its new main key.
    pub vault: Vault,
    /// The new recovery code, if one was asked for.
    pub recovery: Option<RecoveryCode>,
    /// Slots that open it no more, by id.
    pub dropped: Vec<String>,
}

/// The main key that comes, and what is derived from it.
struct NextMainKey {
    main: VaultSecretKey,
    generation: u8,
    sealing: VaultSealingKeys,
    signer: VaultSigner,
}

impl Vault {
    /// Changes the main key, and gives the vault as `secret` opens it then.
    ///
    /// The kept data stays where it is: an unchanged tree is not stored again. A prune writes anew
    /// the data that the old key sealed. `secret` must be the secret that the vault was opened
    /// with. It opens the vault afterwards, and so do the secrets that `options` names. All other
    /// slots go, but for writers', which the new owner signs. If a change was interrupted, it is
    /// done again or completed.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::WrongKey`], [`Error::Rotated`] when another machine was
    /// faster, and errors of the store.
    pub fn rotate(
        self,
        secret: &SlotSecret<'_>,
        open: &OpenOptions,
        options: &RotateOptions,
    ) -> Result<RotatedVault, Error> {
        self.owner("change the main key")?;
        self.store.stop_looking();
        self.check_writable()?;
        self.store.check_condition()?;
        self.ledger(&BTreeSet::new())?;
        self.sync()?;
        self.opens(secret)?;
        let next = NextMainKey::draw(&self)?;
        let before = self.roster();
        let NewSlots { listed, objects, recovery } = self.make_slots(&next, secret, options)?;
        self.vouch_for_packs(&next)?;
        // From here on whoever completes the change before this one leaves slots alone that it does
        // not know.
        let rotation = self.propose(&next, listed)?;
        self.write_slots(&objects)?;
        self.hand_over(&next, &rotation)?;
        let kept =
            |slot: &VaultRosterSlot| rotation.rotation.slots.iter().any(|new| new.id == slot.id);
        let gone = before.slots.iter().filter(|slot| !kept(slot));
        let dropped = gone.map(|slot| hex(&slot.id)).collect();
        let Vault { store, .. } = self;
        let vault = Vault::open(store, secret, open)?;
        Ok(RotatedVault { vault, recovery, dropped })
    }

    /// Refuses a secret that does not open this vault: the new key would be locked away with it.
    fn opens(&self, secret: &SlotSecret<'_>) -> Result<(), Error> {
        let main = self.owner("change the main key")?;
        let mut same = |found: &VaultSecretKey| Ok(found == main);
        super::unlock(&self.store, &self.config.vault, secret, &self.roster(), &mut same)?;
        Ok(())
    }

    /// Makes the slots of the new main key, and lists them with the writers.
    fn make_slots(
        &self,
        next: &NextMainKey,
        secret: &SlotSecret<'_>,
        options: &RotateOptions,
    ) -> Result<NewSlots, Error> {
        let code = options.recovery.then(RecoveryCode::generate).transpose()?;
        let mut secrets = vec![self.again(secret)?];
        secrets.extend(code.as_ref().map(NewSecret::Recovery));
        secrets.extend(options.identities.iter().map(NewSecret::Identity));
        let vault = &self.config.vault;
        let writers = self.roster().slots.into_iter().filter(|slot| slot.kind == SlotKind::Writer);
        let (mut listed, mut objects) = (writers.collect::<Vec<VaultRosterSlot>>(), vec![]);
        if listed.len() + secrets.len() > MAX_VAULT_SLOTS {
            return Err(Error::TooLarge { what: "keys/".to_owned() });
        }
        for secret in &secrets {
            let (id, object) = KeySlot::write(vault, &next.main, "", secret)?;
            let slot = KeySlot::read(&slot_key(&id), object.clone(), vault)?;
            let (hash, writer) = (slot.hash(), [0; 32]);
            listed.push(VaultRosterSlot { id, kind: slot.kind, hash, writer, until: NO_END });
            objects.push((slot_key(&id), object));
        }
        Ok(NewSlots { listed, objects, recovery: code })
    }

    fn write_slots(&self, objects: &[(String, Vec<u8>)]) -> Result<(), Error> {
        for (key, object) in objects {
            if self.store.put_and_read(key, object)? == CreateOutcome::Existed {
                return Err(Error::Library("randomness"));
            }
        }
        Ok(())
    }

    /// The same secret for a new slot; a passphrase costs as much as it does in the dearest slot.
    fn again<'a>(&self, secret: &'a SlotSecret<'_>) -> Result<NewSecret<'a>, Error> {
        Ok(match secret {
            SlotSecret::Passphrase(passphrase) => {
                let slots = self.all_slots()?.into_iter().filter_map(|slot| slot.cost);
                let dearest = slots.max_by_key(|cost| {
                    (u64::from(cost.memory_kib) * u64::from(cost.passes), cost.lanes)
                });
                NewSecret::Passphrase(passphrase, dearest.unwrap_or(Argon2Cost::default()))
            }
            SlotSecret::Recovery(code) => NewSecret::Recovery(code),
            SlotSecret::Identity(identity) => NewSecret::Identity(identity.public()),
            SlotSecret::Writer(_) => return Err(Error::NotOwner("change the main key")),
        })
    }

    /// Names the owner's packs in indexes of the new key. What the old key seals from here on may
    /// be a thief's, and counts as little as what a writer says.
    fn vouch_for_packs(&self, next: &NextMainKey) -> Result<(), Error> {
        let own = self.manifest.own_packs()?;
        let mut packs: Vec<PackRecord> = Vec::new();
        for (hash, size) in self.pack_objects()? {
            if !own.contains(&hash) {
                continue;
            }
            match self.read_pack(&hash, size) {
                Ok(pack) => packs.push(pack),
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        let header = ObjectHeader::owners(ObjectKind::Index, &self.config.vault, next.generation);
        for object in write_indexes(&next.sealing, &header, &packs)? {
            self.store.put(&index_key(blake3::hash(&object).as_bytes()), &object)?;
        }
        Ok(())
    }

    /// Writes the object in which both owners sign. It holds once a link of the chain names it.
    fn propose(
        &self,
        next: &NextMainKey,
        slots: Vec<VaultRosterSlot>,
    ) -> Result<SealedRotation, Error> {
        let vault = &self.config.vault;
        let key = rotation_key(next.generation);
        let rotation = VaultRotation {
            generation: next.generation,
            before: self.signer.verifying_key(),
            after: next.signer.verifying_key(),
            identity: owner_identity(&next.main, vault)?.public().clone(),
            metadata: self.config.metadata,
            list: self.roster().number,
            slots,
        };
        let signers = RotationSigners { before: &self.signer, after: &next.signer };
        let object = rotation.write(vault, &self.mains, &next.sealing, &signers)?;
        // One that is there belongs to a change that was given up before it held.
        self.store.delete(&key)?;
        if self.store.put_and_read(&key, &object)? == CreateOutcome::Existed {
            return Err(Error::Rotated);
        }
        SealedRotation::read(&key, object, vault)
    }

    /// Appends the link from which on the new owner's signature counts.
    fn hand_over(&self, next: &NextMainKey, rotation: &SealedRotation) -> Result<(), Error> {
        let vault = &self.config.vault;
        let header = ObjectHeader::owners(ObjectKind::Snapshot, vault, next.generation);
        let changes = self.succession.rotations().iter().chain([rotation]);
        let rotations: Vec<Vec<u8>> = changes.map(|change| change.bytes().to_vec()).collect();
        for _ in 0..MAX_ROTATION_RACES {
            let chain = self.walk(None)?;
            // A writer that was added or ended meanwhile stands in a newer list.
            if chain.rotated || self.newest_roster()? != rotation.rotation.list {
                return Err(Error::Rotated);
            }
            // A snapshot that this link does not name is none any more.
            let unread: Vec<String> = chain.unread.iter().map(UnreadLink::shown).collect();
            if !unread.is_empty() {
                return Err(Error::unread(&unread));
            }
            let mut links = vec![(0, rotation.hash)];
            links.extend(chain.vouched);
            let (number, previous) = (chain.next, chain.head.unwrap_or_default().1);
            let link = SnapshotLink { number, previous, signer: HANDOVER, removed: links };
            let body = SnapshotBody { rotations: rotations.clone(), ..self.remark() };
            let object = snapshot::write(&header, &link, &body, &next.sealing, &self.signer)?;
            if self.store.put_and_read(&snapshot_key(number), &object)? == CreateOutcome::Created {
                return self.remember_head((number, *blake3::hash(&object).as_bytes()));
            }
        }
        Err(Error::Raced)
    }

    /// Refuses while a change of the main key has begun that this handle does not know: what it
    /// would sign might not count.
    pub(super) fn check_not_rotating(&self) -> Result<(), Error> {
        if self.is_rotating()? { Err(Error::Rotated) } else { Ok(()) }
    }

    /// Whether this handle's owner has signed a change of the main key, in force or not.
    pub(super) fn is_rotating(&self) -> Result<bool, Error> {
        let key = rotation_key(self.generation().saturating_add(1));
        if self.store.is_listed(&key) == Some(false) {
            return Ok(false);
        }
        let read = self.store.get_seen(&key, MAX_ROTATION_BYTES);
        match read.and_then(|bytes| SealedRotation::read(&key, bytes, &self.config.vault)) {
            // A change that this owner did not sign stops nobody.
            Ok(next) => Ok(next.rotation.before == self.succession.current()),
            Err(error) if error.is_damage() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Signs the slots of the new main key, and removes those of the one before. A change that was
    /// interrupted behind its link is completed by whoever opens the vault next.
    pub(super) fn complete_rotation(&self) -> Result<(), Error> {
        let unfinished = |reason: &str| {
            let path = rotation_key(self.generation());
            self.warn([SkippedItem { path, reason: reason.to_owned() }]);
            Ok(())
        };
        let Some(rotation) = self.succession.rotation() else { return Ok(()) };
        if self.mains.is_empty() || self.state.is_none() {
            return unfinished("the owner has not completed a change of the main key yet");
        }
        if self.named_roster()? > self.roster().number {
            return unfinished(
                "the owner's list of slots is missing: `sealane vault repair` signs a new one",
            );
        }
        match self.sign_over(&rotation.rotation.slots) {
            // Another machine was faster.
            Err(Error::Raced) => Ok(()),
            Err(
                Error::Store { .. }
                | Error::StoreFull { .. }
                | Error::Forgot(_)
                | Error::Overwrites(_),
            ) => unfinished("a change of the main key could not be completed"),
            other => other,
        }
    }

    /// The list comes last, since it says that all is done. A slot that no list has was left by a
    /// change that was given up, or is one of the next change, which has begun elsewhere: without
    /// that one nobody would open the vault again. A change is proposed before its slots are
    /// written, so that a proposal is seen here if one of its slots is.
    fn sign_over(&self, slots: &[VaultRosterSlot]) -> Result<(), Error> {
        let before = self.roster();
        let there = super::slots(&self.store, &self.config.vault, &before)?.slots;
        // The proposals may have been listed before the slots were: one that came in between is
        // looked for now.
        self.store.look_anew_at(&["rotations/"]);
        let has_next = self.is_rotating()?;
        let is_known = |slot: &KeySlot| !has_next || before.listed(&slot.id).is_some();
        let owners = there.iter().filter(|slot| slot.kind != SlotKind::Writer);
        for slot in owners.filter(|slot| is_known(slot)) {
            if !slots.iter().any(|listed| listed.id == slot.id) {
                // Where credentials only add it stays, opens nothing, and is named by every open.
                let _ = self.store.delete(&slot_key(&slot.id));
            }
        }
        self.clear_indexes(&mut Vec::new())?;
        self.list_slots(&mut |list| *list = slots.to_vec())?;
        self.unwarn("keys/");
        Ok(())
    }
}

/// The slots of a new main key, as they are listed and as they will be stored.
struct NewSlots {
    listed: Vec<VaultRosterSlot>,
    objects: Vec<(String, Vec<u8>)>,
    recovery: Option<RecoveryCode>,
}

impl NextMainKey {
    fn draw(vault: &Vault) -> Result<NextMainKey, Error> {
        let id = &vault.config.vault;
        let generation = vault.generation() + 1;
        if generation > MAX_ROTATIONS {
            return Err(Error::TooLarge { what: rotation_key(generation) });
        }
        let main = VaultSecretKey::new(random()?);
        let sealing = VaultSealingKeys::derive(&main, id)?;
        let signer = VaultSigner::from_seed(&derive("signing", &main, id))?;
        Ok(NextMainKey { main, generation, sealing, signer })
    }
}
