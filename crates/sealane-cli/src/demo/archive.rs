//! The node's data, kept in a vault and proven to come back from it.

use std::path::Path;
use std::time::Instant;

use sealane_vault::{DrillOptions, OpenOptions, PutOptions, Vault, VaultMetadata, VaultStore};

use super::sealed::holding;
use crate::CliFailure;
use crate::times::show_bytes;

/// The result of the vault's part of the demo.
pub(super) struct DemoVaultReport {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) stored_bytes: u64,
    /// Files that came back as they were, from the objects alone.
    pub(super) proven: u64,
    pub(super) failed: u64,
    /// Objects that hold a word of the data.
    pub(super) found: u64,
    pub(super) seconds: f64,
}

impl DemoVaultReport {
    /// The result, in one line.
    pub(super) fn told(&self) -> String {
        format!(
            "{} files, {}, kept in {} of objects; restored from those and compared: {} of {} alike",
            self.files,
            show_bytes(self.bytes),
            show_bytes(self.stored_bytes),
            self.proven,
            self.files
        )
    }
}

/// Keeps `data` in a new vault under `folder`, restores it, and looks for `canary`.
pub(super) fn run(data: &Path, folder: &Path, canary: &str) -> Result<DemoVaultReport, CliFailure> {
    let objects = folder.join("objects");
    let options = OpenOptions { state: Some(folder.join("state")), ..OpenOptions::default() };
    let began = Instant::now();
    let store = VaultStore::open(&objects.display().to_string())?;
    let cost = sealane_vault::Argon2Cost::default();
    let vault = Vault::init(store, b"a passphrase", cost, VaultMetadata::Sealed, &options)?;
    let put = vault.put_paths(&[data.to_owned()], &PutOptions::default())?;
    let drill = vault.drill(&folder.join("scratch"), &DrillOptions::default())?;
    Ok(DemoVaultReport {
        files: put.counts.files,
        bytes: put.counts.bytes,
        stored_bytes: put.counts.stored_bytes,
        proven: drill.files,
        failed: drill.failed.len() as u64,
        found: holding(&objects, canary)?,
        seconds: began.elapsed().as_secs_f64(),
    })
}
