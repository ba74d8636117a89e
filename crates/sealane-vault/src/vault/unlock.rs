//! How a vault is opened, and the error if nothing opens it.

use super::OpenOptions;
use super::pin::VaultPin;
use super::succession::{VaultTrust, owner_of};
use super::trust::{StoredKeySlots, slots};
use crate::Error;
use crate::format::config::VaultConfig;
use crate::format::header::VaultId;
use crate::format::roster::VaultRoster;
use crate::keys::{SLOT_PREFIX, SlotKind, SlotSecret, VaultSecretKey, slot_key};
use crate::limits::MAX_UNLISTED_PASSPHRASES;
use crate::put::SkippedItem;
use crate::store::VaultStore;

/// The result of admitting a caller.
pub(super) struct VaultAdmission {
    pub(super) pin: VaultPin,
    /// None for a writer.
    pub(super) unlocked: Option<UnlockedMainKey>,
}

pub(super) fn admit(
    store: &VaultStore,
    config: &VaultConfig,
    secret: &SlotSecret<'_>,
    trusted: &VaultTrust,
    options: &OpenOptions,
) -> Result<VaultAdmission, Error> {
    let pin = VaultPin::check(store, &config.vault, &trusted.succession, options)?;
    if secret.adds() {
        return Ok(VaultAdmission { pin, unlocked: None });
    }
    let owner = trusted.succession.current();
    let mut accept = |main: &VaultSecretKey| Ok(owner_of(main, &config.vault)? == owner);
    let unlocked = unlock(store, &config.vault, secret, &trusted.roster, &mut accept)?;
    Ok(VaultAdmission { pin, unlocked: Some(unlocked) })
}

/// The main key, and what lay among the slots that is none.
pub(super) struct UnlockedMainKey {
    pub(super) main: VaultSecretKey,
    pub(super) foreign: Vec<SkippedItem>,
}

pub(super) fn unlock(
    store: &VaultStore,
    vault: &VaultId,
    secret: &SlotSecret<'_>,
    roster: &VaultRoster,
    accept: &mut dyn FnMut(&VaultSecretKey) -> Result<bool, Error>,
) -> Result<UnlockedMainKey, Error> {
    let found = slots(store, vault, roster)?;
    let mut unlisted = 0;
    for slot in &found.slots {
        if roster.number > 0 && roster.listed(&slot.id).is_none() {
            // A stranger could make everybody pay for passphrases that open nothing.
            unlisted += usize::from(slot.kind == SlotKind::Passphrase);
            if unlisted > MAX_UNLISTED_PASSPHRASES {
                continue;
            }
        }
        match slot.open(secret, vault) {
            Ok(Some(main)) => {
                // Anyone can make a slot for a public key, with a main key of their own in it.
                if accept(&main)? {
                    return Ok(UnlockedMainKey { main, foreign: found.foreign });
                }
            }
            Ok(None) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
    Err(none_opens(roster, &found, secret))
}

/// Why no slot opens: where slots of that kind are damaged or missing, nobody knows whether the
/// secret is wrong.
fn none_opens(roster: &VaultRoster, found: &StoredKeySlots, secret: &SlotSecret<'_>) -> Error {
    let listed = roster.slots.iter().filter(|slot| secret.opens(slot.kind));
    let listed: Vec<String> = listed.map(|slot| slot_key(&slot.id)).collect();
    let is_ours = |path: &String| roster.number == 0 || listed.contains(path);
    let damaged = found.foreign.iter().filter(|foreign| is_ours(&foreign.path));
    let damaged: Vec<String> =
        damaged.map(|slot| format!("`{}`: {}", slot.path, slot.reason)).collect();
    match damaged.is_empty() {
        true => Error::WrongKey,
        false => Error::SlotsDamaged(damaged.join(", ")),
    }
}

/// The error for a place without a config. If a vault was known there and nothing of it is left,
/// its medium is missing, not the vault.
pub(super) fn gone(store: &VaultStore, error: Error, options: &OpenOptions) -> Error {
    let is_empty = || {
        [SLOT_PREFIX, "snapshots/"].iter().all(|at| store.list(at).is_ok_and(|all| all.is_empty()))
    };
    match VaultPin::of_place(store, options) {
        Ok(Some(pinned)) if matches!(error, Error::NoVault(_)) && is_empty() => {
            Error::VaultGone { place: store.location(), pinned: pinned.to_string() }
        }
        _ => error,
    }
}
