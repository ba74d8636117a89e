//! A writer's vault: it adds, and reads and removes nothing.

use std::ops::Deref;
use std::sync::Arc;

use super::pin::VaultPin;
use super::succession::{OwnerSuccession, VaultTrust};
use super::unlock::gone;
use super::{OpenOptions, VaultPlace, VaultWriteKeys, read_config, remembered, session_info};
use crate::Error;
use crate::format::config::VaultConfig;
use crate::keys::{VaultSealingKeys, VaultSecretKey, VaultSigner, WriterKey, random};
use crate::put::PutAccess;
use crate::store::VaultStore;

/// A vault as a host has it that adds and cannot read.
///
/// A verb that its key cannot do does not compile. An owner prunes:
///
/// ```
/// # use sealane_vault::*;
/// fn prunes(vault: &VaultOwner) -> Result<PruneReport, Error> {
///     vault.prune(&PruneOptions::default())
/// }
/// ```
///
/// A writer does not:
///
/// ```compile_fail,E0599
/// # use sealane_vault::*;
/// fn prunes(vault: &VaultWriter) -> Result<PruneReport, Error> {
///     vault.prune(&PruneOptions::default())
/// }
/// ```
///
/// Nor does it read:
///
/// ```compile_fail,E0599
/// # use sealane_vault::*;
/// fn reads(vault: &VaultWriter) -> Result<Vec<Snapshot>, Error> {
///     vault.snapshots()
/// }
/// ```
pub struct VaultWriter {
    place: VaultPlace,
}

impl VaultWriter {
    /// Opens the vault in `store` with a writer's key, and checks that the store has not gone back
    /// behind what was seen here.
    ///
    /// # Errors
    /// [`Error::NoVault`], [`Error::WrongKey`] for a key of another vault, [`Error::RolledBack`],
    /// [`Error::Forked`], [`Error::Chain`], and what the store fails for.
    pub fn open(
        store: VaultStore,
        key: &WriterKey,
        options: &OpenOptions,
    ) -> Result<VaultWriter, Error> {
        store.begin_look();
        let config = read_config(&store).map_err(|error| gone(&store, error, options))?;
        let remembered = remembered(&store, &config, options)?;
        let trusted = OwnerSuccession::read(&store, &config, remembered.as_deref())?;
        let pin = VaultPin::check(&store, &config.vault, &trusted.succession, options)?;
        let mut place = place(store, config, key, options, trusted)?;
        if !options.objects_alone {
            place.first_use = pin.keep()?;
            place.sync_known()?;
            place.remember_roster()?;
        }
        place.check_head(options)?;
        if !options.objects_alone {
            place.warn_of_unsigned();
        }
        if !options.one_command {
            place.store.end_look();
        }
        Ok(VaultWriter { place })
    }
}

fn place(
    store: VaultStore,
    config: VaultConfig,
    key: &WriterKey,
    options: &OpenOptions,
    trusted: VaultTrust,
) -> Result<VaultPlace, Error> {
    let succession = &trusted.succession;
    if key.vault != config.vault || !succession.owners().contains(&key.owner_verifying) {
        return Err(Error::WrongKey);
    }
    let secret = VaultSecretKey::new(random()?);
    let info = session_info(&config.vault);
    let newest = succession.rotation().map(|newest| newest.rotation.identity.clone());
    let owner = newest.as_ref().unwrap_or(&key.owner);
    let wrapped = sealane_group::seal_to(owner, &info, secret.as_slice());
    let keys = VaultWriteKeys {
        naming: key.naming.clone(),
        sealing: Arc::new(VaultSealingKeys::derive(&secret, &config.vault)?),
        wrapped: Some(wrapped.map_err(|_| Error::Library("cipher"))?),
        signer: VaultSigner::from_seed(&key.seed)?,
        signer_id: key.slot,
    };
    VaultPlace::new(store, config, keys, trusted, options)
}

impl Deref for VaultWriter {
    type Target = VaultPlace;

    fn deref(&self) -> &VaultPlace {
        &self.place
    }
}

impl PutAccess for VaultWriter {
    fn place(&self) -> &VaultPlace {
        &self.place
    }

    fn catch_up(&self) -> Result<(), Error> {
        self.sync_known()
    }
}

impl std::fmt::Debug for VaultWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultWriter").field("id", &self.id()).finish_non_exhaustive()
    }
}
