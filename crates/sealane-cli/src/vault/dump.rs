//! `sealane vault dump`.

use std::io::IsTerminal;

use sealane_vault::{SnapshotEntryKind, SnapshotSelector};

use super::get::written;
use super::{VaultAccess, path_bytes, snapshot, whose};
use crate::args::vault::VaultDump;
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
    let is_file = !path.is_empty()
        && vault
            .file(&snapshot, &path)
            .is_ok_and(|file| matches!(file.entry().node, SnapshotEntryKind::File { .. }));
    if !is_file && std::io::stdout().is_terminal() {
        return Err(CliFailure::Usage("a folder is written as a tar archive: send it to a file"));
    }
    written(terminal, |out| vault.dump(&snapshot, &path, out).map(|_| ()))
}
