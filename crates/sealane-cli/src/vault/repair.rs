//! `sealane vault repair`.

use std::path::PathBuf;

use sealane::Value;
use sealane_vault::{Error, PutOptions, RepairReport, Vault};

use super::{VaultAccess, skipped, skipped_objects, warn_anew};
use crate::{CliFailure, Terminal};

pub(super) fn run(
    paths: &[PathBuf],
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = opened(location)?;
    let options = PutOptions { note: "repair".to_owned(), ..PutOptions::default() };
    let known = vault.warnings();
    let report = vault.repair(paths, &options)?;
    warn_anew(&vault, &known);
    show(&report, terminal)?;
    if let Some(put) = &report.put {
        skipped(&put.skipped, terminal)?;
    }
    skipped_objects(&report.lost, terminal)
}

/// Opens the vault; where its config is lost, that is written again first.
fn opened(location: &VaultAccess) -> Result<Vault, CliFailure> {
    match location.open() {
        Err(CliFailure::Vault(error)) if may_lack_config(&error) => {
            location.open_objects()?.mend_config()?;
            location.open()
        }
        other => other,
    }
}

fn may_lack_config(error: &Error) -> bool {
    use Error::{Malformed, NoVault, Signature, TooLarge, Truncated, Version};
    matches!(
        error,
        NoVault(_) | Malformed { .. } | Truncated(_) | TooLarge { .. } | Version(_) | Signature(_)
    )
}

fn show(report: &RepairReport, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let new = report.put.as_ref().map_or(0, |put| put.counts.new_chunks);
    if terminal.json() {
        return terminal.record(vec![
            ("found", Value::from(report.found)),
            ("mended", Value::from(report.mended.len() as u64)),
            ("rescued", Value::from(report.rescued)),
            ("keptAnew", Value::from(new)),
            ("lost", Value::from(report.lost.len() as u64)),
        ]);
    }
    terminal.line(format_args!(
        "{} problems: {} objects mended, {} chunks brought back, {new} kept anew; {} stay",
        report.found,
        report.mended.len(),
        report.rescued,
        report.lost.len()
    ))?;
    if report.lost.is_empty() {
        return Ok(());
    }
    terminal.line(
        "What stays comes back from a copy of the objects that are named, or from the files \
         themselves: sealane vault repair PATH...",
    )
}
