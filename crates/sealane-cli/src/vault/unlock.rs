//! Which vault, and what opens it.

use std::path::PathBuf;

use sealane_vault::{Error, OpenOptions, RecoveryCode, Secret, Store, Vault, WriterKey};
use zeroize::Zeroizing;

use super::first_line;
use crate::Failure;
use crate::args::vault as args;
use crate::config::environment;

/// Where a vault is and what opens it.
pub(crate) struct Place {
    location: String,
    passphrase_file: Option<PathBuf>,
    recovery_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    pub(super) options: OpenOptions,
}

impl Place {
    pub(super) fn new(args: &args::Vault) -> Result<Place, Failure> {
        let missing = "name the vault with --vault or SEALANE_VAULT";
        Ok(Place {
            location: args.vault.clone().ok_or(Failure::Usage(missing))?,
            passphrase_file: args.passphrase_file.clone(),
            recovery_file: args.recovery_file.clone(),
            key_file: args.key_file.clone(),
            options: OpenOptions {
                state: args.state.clone(),
                expect_head: args.expect_head.clone(),
                objects_alone: false,
            },
        })
    }

    pub(super) fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(&self.location)?)
    }

    /// Opens the vault with what was given.
    pub(super) fn open(&self) -> Result<Vault, Failure> {
        self.open_with(&self.options)
    }

    /// Opens it without anything that this machine remembers, and without its index.
    pub(super) fn open_objects(&self) -> Result<Vault, Failure> {
        self.open_with(&OpenOptions { objects_alone: true, ..self.options.clone() })
    }

    fn open_with(&self, options: &OpenOptions) -> Result<Vault, Failure> {
        let store = self.store()?;
        if let Some(file) = &self.key_file {
            let key: WriterKey = first_line(file)?.parse()?;
            return Ok(Vault::open(store, &Secret::Writer(&key), options)?);
        }
        if let Some(file) = &self.recovery_file {
            let code: RecoveryCode = first_line(file)?.parse()?;
            return Ok(Vault::open(store, &Secret::Recovery(&code), options)?);
        }
        let passphrase = self.passphrase()?;
        Ok(Vault::open(store, &Secret::Passphrase(passphrase.as_bytes()), options)?)
    }

    /// The passphrase: from a file, the environment or the terminal.
    fn passphrase(&self) -> Result<Zeroizing<String>, Failure> {
        if let Some(given) = self.given()? {
            return Ok(given);
        }
        Err(Failure::Vault(Box::new(Error::NoPassphrase)))
    }

    /// A passphrase for a new vault, asked for twice.
    pub(super) fn new_passphrase(&self) -> Result<Zeroizing<String>, Failure> {
        let chosen = self.passphrase()?;
        if chosen.is_empty() {
            return Err(Failure::Usage("a passphrase has at least one character"));
        }
        Ok(chosen)
    }

    fn given(&self) -> Result<Option<Zeroizing<String>>, Failure> {
        match &self.passphrase_file {
            Some(file) => first_line(file).map(Some),
            None => Ok(environment("SEALANE_PASSPHRASE").map(Zeroizing::new)),
        }
    }
}
