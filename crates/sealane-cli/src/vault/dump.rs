//! `sealane vault dump`.

use std::io::IsTerminal;

use sealane_vault::{DumpReport, Error, SnapshotSelector};

use super::get::{not_made, written};
use super::{VaultAccess, path_bytes, snapshot, whose};
use crate::args::vault::VaultDump;
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &VaultDump,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let path = path_bytes(&args.path);
    let whose = SnapshotSelector { allow_older: args.allow_older, ..whose(&args.whose) };
    let paths = if path.is_empty() { Vec::new() } else { vec![path.clone()] };
    let snapshot = snapshot(&vault, &args.snapshot, &whose, &paths, terminal)?;
    let path = vault.locate(&snapshot, &paths)?.pop().unwrap_or(path);
    let is_folder = path.is_empty()
        || match vault.file(&snapshot, &path) {
            Ok(_) => false,
            Err(Error::NoEntry(_)) => true,
            Err(error) => return Err(error.into()),
        };
    if is_folder && std::io::stdout().is_terminal() {
        return Err(CliFailure::Usage("a folder is written as a tar archive: send it to a file"));
    }
    let mut report = DumpReport::default();
    written(terminal, |out| {
        report = vault.dump(&snapshot, &path, out)?;
        Ok(())
    })?;
    if report.withheld > 0 {
        let paths = count(report.withheld, "paths");
        eprintln!(
            "sealane: {paths} did not get the owner, the setuid bits or the rights that a writer \
             names: `sealane vault get --trust-modes` takes them"
        );
    }
    if report.refused > 0 {
        let devices = not_made(report.refused);
        eprintln!("sealane: {devices}: `sealane vault get --trust-modes` makes them");
    }
    Ok(())
}
