//! The owner's vault: all that changes it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::pin::VaultPin;
use super::succession::{OwnerSuccession, VaultTrust, first_owner, mend_rotations, owner_of};
use super::unlock::{VaultAdmission, admit, gone, unlock};
use super::{OpenOptions, VaultPlace, VaultReader, VaultWriteKeys, read_config, remembered};
use crate::Error;
use crate::format::config::{CONFIG_KEY, VaultConfig, VaultMetadata};
use crate::format::header::VaultId;
use crate::format::roster::VaultRoster;
use crate::format::snapshot::SignerId;
use crate::keys::{
    Argon2Cost, KeySlot, NewSecret, SLOT_PREFIX, SlotSecret, VaultNamingKeys, VaultSealingKeys,
    VaultSecretKey, VaultSigner, derive, random, slot_key,
};
use crate::limits::MAX_SLOT_BYTES;
use crate::put::{PutAccess, SkippedItem, now_ns};
use crate::store::{CreateOutcome, VaultStore};

/// A vault that its owner has opened: it reads, puts and removes, and says who else may put.
pub struct VaultOwner {
    pub(super) reader: VaultReader,
}

impl VaultOwner {
    /// Makes a vault in `store`, with a first slot for `passphrase`.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::VaultGone`] in a place where another vault was,
    /// [`Error::Overwrites`], and what the store fails for.
    pub fn init(
        store: VaultStore,
        passphrase: &[u8],
        cost: Argon2Cost,
        metadata: VaultMetadata,
        options: &OpenOptions,
    ) -> Result<VaultOwner, Error> {
        if store.size(CONFIG_KEY)?.is_some() {
            return Err(Error::Exists);
        }
        if let Some(pinned) = VaultPin::of_place(&store, options)?.filter(|_| !options.replace) {
            return Err(Error::VaultGone { place: store.location(), pinned: pinned.to_string() });
        }
        store.check_condition()?;
        let id: VaultId = random()?;
        let main = VaultSecretKey::new(random()?);
        let signer = VaultSigner::from_seed(&derive("signing", &main, &id))?;
        let owner = signer.verifying_key();
        let config = VaultConfig { vault: id, metadata, created_ns: now_ns(), owner };
        let secret = NewSecret::Passphrase(passphrase, cost);
        let (slot, object) = KeySlot::write(&id, &main, "first", &secret)?;
        store.put_and_read(&slot_key(&slot), &object)?;
        match store.put_and_read(CONFIG_KEY, &config.write(&signer)?) {
            Ok(CreateOutcome::Created) => {}
            // Without its config the slot opens nothing, and would be a stranger's to the next.
            Ok(CreateOutcome::Existed) => {
                store.delete(&slot_key(&slot))?;
                return Err(Error::Exists);
            }
            Err(error @ (Error::Forgot(_) | Error::Overwrites(_))) => {
                store.delete(&slot_key(&slot))?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        let succession = OwnerSuccession::of_one(owner);
        let trusted =
            VaultTrust { succession, roster: VaultRoster::default(), foreign: Vec::new() };
        let vault = VaultOwner::unlocked(store, config, &main, options, trusted)?;
        VaultPin::made(&vault.store, vault.anchor_of(), options)?;
        vault.sign_slots_once()?;
        Ok(vault)
    }

    /// Opens the vault in `store`, brings the manifest up to date, and checks that the store has
    /// not gone back behind what was seen here.
    ///
    /// # Errors
    /// [`Error::NoVault`], [`Error::WrongKey`], [`Error::RolledBack`], [`Error::Forked`],
    /// [`Error::Chain`], and what the store fails for.
    pub fn open(
        store: VaultStore,
        secret: &SlotSecret<'_>,
        options: &OpenOptions,
    ) -> Result<VaultOwner, Error> {
        store.begin_look();
        let config = match read_config(&store) {
            Ok(config) => config,
            Err(error) if options.objects_alone => {
                return VaultOwner::open_without_config(store, secret, options, error);
            }
            Err(error) => return Err(gone(&store, error, options)),
        };
        let remembered = remembered(&store, &config, options)?;
        let read = || OwnerSuccession::read(&store, &config, remembered.as_deref());
        let mut trusted = read()?;
        let mut admitted = admit(&store, &config, secret, &trusted, options);
        if let Err(Error::WrongKey | Error::SlotsDamaged(_) | Error::Exchanged { .. }) = &admitted
            && mend_rotations(&store, &config, secret, &trusted.roster).unwrap_or(false)
        {
            trusted = read()?;
            admitted = admit(&store, &config, secret, &trusted, options);
        }
        let VaultAdmission { pin, unlocked } = admitted?;
        let mut vault = VaultOwner::unlocked(store, config, &unlocked.main, options, trusted)?;
        vault.warn(unlocked.foreign);
        if !options.objects_alone {
            vault.reader.place.first_use = pin.keep()?;
            vault.sync()?;
            vault.remember_roster()?;
        }
        vault.check_head(options)?;
        if !options.objects_alone {
            vault.sign_slots_once()?;
        }
        if !options.one_command {
            vault.store.end_look();
        }
        Ok(vault)
    }

    /// Opens a vault that has lost its config: the slots name the vault, and the main key its
    /// owner.
    fn open_without_config(
        store: VaultStore,
        secret: &SlotSecret<'_>,
        options: &OpenOptions,
        error: Error,
    ) -> Result<VaultOwner, Error> {
        let mut vaults: Vec<VaultId> = Vec::new();
        for object in store.list(SLOT_PREFIX)? {
            let head = store.get(&object.key, MAX_SLOT_BYTES);
            let id = head.ok().and_then(|head| head.get(8..24)?.try_into().ok());
            vaults.extend(id.filter(|id| !vaults.contains(id)));
        }
        for id in vaults {
            let mut found = None;
            // A main key that was given up may open a slot, too: its owner is not the last.
            let mut is_last = |main: &VaultSecretKey| {
                let owner = first_owner(&store, &id, main)?;
                let config = VaultConfig {
                    vault: id,
                    metadata: VaultMetadata::Sealed,
                    created_ns: now_ns(),
                    owner,
                };
                let trusted = OwnerSuccession::read(&store, &config, None)?;
                let last = trusted.succession.current() == owner_of(main, &id)?;
                found = last.then_some((config, trusted));
                Ok(last)
            };
            let unlocked = unlock(&store, &id, secret, &VaultRoster::default(), &mut is_last);
            let (Ok(unlocked), Some((config, trusted))) = (unlocked, found) else { continue };
            VaultPin::check(&store, &config.vault, &trusted.succession, options)?;
            let vault = VaultOwner::unlocked(store, config, &unlocked.main, options, trusted)?;
            vault.warn([SkippedItem { path: CONFIG_KEY.to_owned(), reason: error.named() }]);
            return Ok(vault);
        }
        Err(gone(&store, error, options))
    }

    fn unlocked(
        store: VaultStore,
        config: VaultConfig,
        main: &VaultSecretKey,
        options: &OpenOptions,
        trusted: VaultTrust,
    ) -> Result<VaultOwner, Error> {
        let (id, succession) = (config.vault, &trusted.succession);
        let signer = VaultSigner::from_seed(&derive("signing", main, &id))?;
        if signer.verifying_key() != succession.current() {
            return Err(Error::Signature(CONFIG_KEY.to_owned()));
        }
        let mains = succession.mains(main, &id)?;
        let sealings = mains.iter().map(|main| VaultSealingKeys::derive(main, &id).map(Arc::new));
        let sealings = sealings.collect::<Result<Vec<_>, _>>()?;
        let keys = VaultWriteKeys {
            // Ids stay: writers know their keys anyway, and snapshots name by them what they keep.
            naming: VaultNamingKeys::derive(mains.first().unwrap_or(main), &id),
            sealing: sealings.last().cloned().ok_or(Error::WrongKey)?,
            wrapped: None,
            signer,
            signer_id: SignerId::default(),
        };
        let place = VaultPlace::new(store, config, keys, trusted, options)?;
        place.manifest.begin(place.generation())?;
        Ok(VaultOwner { reader: VaultReader::new(place, main.clone(), mains, sealings) })
    }

    /// Puts rely on what they have seen for so long.
    pub(crate) fn rely_for(&mut self, time: Duration) {
        self.reader.place.reliance = time;
    }

    /// The signature of the first main key, which is the config's.
    pub(crate) fn first_signer(&self) -> Result<VaultSigner, Error> {
        let first = self.mains.first().unwrap_or(&self.main);
        VaultSigner::from_seed(&derive("signing", first, &self.config.vault))
    }
}

impl Deref for VaultOwner {
    type Target = VaultReader;

    fn deref(&self) -> &VaultReader {
        &self.reader
    }
}

impl PutAccess for VaultOwner {
    fn place(&self) -> &VaultPlace {
        self
    }

    fn catch_up(&self) -> Result<(), Error> {
        self.sync().map(drop)
    }
}

impl std::fmt::Debug for VaultOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultOwner").field("id", &self.id()).finish_non_exhaustive()
    }
}
