//! Which vault, and what opens it.

use std::path::PathBuf;
use std::time::Duration;

use sealane_vault::limits::MAX_RETRY_MS;
use sealane_vault::{
    Error, OpenOptions, RecoveryCode, RotateOptions, RotatedVault, SlotSecret, StoreRetry, Vault,
    VaultStore, WriterKey,
};

use super::secret_line;
use crate::args::key::KeysArgs;
use crate::args::vault as args;
use crate::passphrase::Passphrase;
use crate::{CliFailure, key};

/// Where a vault is and what opens it.
pub(crate) struct VaultAccess {
    vault: String,
    keys: KeysArgs,
    identity: bool,
    recovery_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    limit_upload: Option<u64>,
    retry: Duration,
    pub(super) options: OpenOptions,
}

impl VaultAccess {
    pub(crate) fn new(args: &args::VaultArgs) -> Result<VaultAccess, CliFailure> {
        let missing = "name the vault with --vault or SEALANE_VAULT";
        if args.retry > Duration::from_millis(MAX_RETRY_MS) {
            let reason = "--retry waits 12h at most: a prune removes after a day what a put needs";
            return Err(CliFailure::Usage(reason));
        }
        Ok(VaultAccess {
            vault: args.vault.clone().ok_or(CliFailure::Usage(missing))?,
            keys: args.keys.clone(),
            identity: args.identity,
            recovery_file: args.recovery_file.clone(),
            key_file: args.key_file.clone(),
            limit_upload: args.limit_upload,
            retry: args.retry,
            options: OpenOptions {
                state: args.state.clone(),
                expect_head: args.expect_head.clone(),
                expect: args.expect.clone(),
                accept_rollback: args.accept_rollback.clone(),
                one_command: true,
                ..OpenOptions::default()
            },
        })
    }

    /// Whether standard input is read for what opens the vault.
    pub(super) fn reads_input(&self) -> bool {
        let files = [&self.keys.passphrase_file, &self.recovery_file, &self.key_file];
        let is_input =
            |file: &PathBuf| ["-", "/dev/stdin"].iter().any(|name| file.as_os_str() == *name);
        files.into_iter().flatten().any(is_input)
    }

    pub(super) fn store(&self) -> Result<VaultStore, CliFailure> {
        let retry = StoreRetry::within(self.retry);
        let retry = retry.telling(|text| eprintln!("sealane: {text}"));
        let store = VaultStore::open_with(&self.vault, retry)?;
        let unbound = "--limit-upload bounds what a bucket is sent: a folder is sent nothing";
        match self.limit_upload {
            Some(0) => Err(CliFailure::Usage("--limit-upload of 0 sends nothing at all")),
            Some(rate) if !store.limit_upload(rate) => Err(CliFailure::Usage(unbound)),
            _ => Ok(store),
        }
    }

    /// Opens the vault with what was given.
    pub(crate) fn open(&self) -> Result<Vault, CliFailure> {
        self.open_with(&self.options)
    }

    /// Opens it without anything that this machine remembers, and without its index.
    pub(super) fn open_objects(&self) -> Result<Vault, CliFailure> {
        self.open_with(&OpenOptions { objects_alone: true, ..self.options.clone() })
    }

    fn open_with(&self, options: &OpenOptions) -> Result<Vault, CliFailure> {
        let vault = self.unlock(options)?;
        if vault.is_first_use() {
            let (place, anchor) = (vault.store().location(), vault.anchor());
            eprintln!("sealane: first use of {place} here, which holds the vault {anchor}");
        }
        super::warn_anew(&vault, &[]);
        Ok(vault)
    }

    fn unlock(&self, options: &OpenOptions) -> Result<Vault, CliFailure> {
        let store = self.store()?;
        self.with_secret(|secret| Ok(Vault::open(store, secret, options)?))
    }

    /// Changes the main key; what was given opens the vault afterwards, too.
    pub(super) fn rotate(&self, rotate: &RotateOptions) -> Result<RotatedVault, CliFailure> {
        let store = self.store()?;
        self.with_secret(|secret| {
            let vault = Vault::open(store, secret, &self.options)?;
            super::warn_anew(&vault, &[]);
            Ok(vault.rotate(secret, &self.options, rotate)?)
        })
    }

    /// Gives what opens the vault to `act`.
    fn with_secret<T>(
        &self,
        act: impl FnOnce(&SlotSecret<'_>) -> Result<T, CliFailure>,
    ) -> Result<T, CliFailure> {
        if let Some(file) = &self.key_file {
            let key: WriterKey = secret_line(file)?.parse()?;
            return act(&SlotSecret::Writer(&key));
        }
        if let Some(file) = &self.recovery_file {
            let code: RecoveryCode = secret_line(file)?.parse()?;
            return act(&SlotSecret::Recovery(&code));
        }
        if self.identity {
            let folder = key::open(&self.keys)?;
            return act(&SlotSecret::Identity(folder.identity()));
        }
        let passphrase = Passphrase::ask(self.keys.passphrase_file.as_deref())?;
        let passphrase = passphrase.ok_or(Error::NoPassphrase)?;
        act(&SlotSecret::Passphrase(passphrase.bytes()))
    }

    /// A passphrase for a new vault or slot; on a terminal asked for twice.
    pub(super) fn new_passphrase(&self) -> Result<Passphrase, CliFailure> {
        Passphrase::choose(self.keys.passphrase_file.as_deref())
    }
}
