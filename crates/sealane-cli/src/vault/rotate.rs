//! `sealane vault key rotate`.

use sealane::Value;
use sealane_group::PublicKey;
use sealane_vault::{RotateOptions, Vault};

use super::VaultAccess;
use super::key::{kit, public};
use crate::args::vault::KeyRotate;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &KeyRotate,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let identities = args.also.iter().map(|word| public(word));
    let identities = identities.collect::<Result<Vec<PublicKey>, CliFailure>>()?;
    let options = RotateOptions { recovery: !args.no_recovery, identities };
    let rotated = location.rotate(&options)?;
    let vault = &rotated.vault;
    if terminal.json() {
        let dropped = rotated.dropped.iter().map(|id| Value::from(id.as_str())).collect();
        terminal.record(vec![
            ("vault", Value::from(vault.id())),
            ("anchor", Value::from(vault.anchor())),
            ("generation", Value::from(u64::from(vault.generation()))),
            ("dropped", Value::Array(dropped)),
        ])?;
    } else {
        tell(vault, &rotated.dropped, terminal)?;
    }
    match &rotated.recovery {
        Some(code) => kit(vault, code, terminal),
        None => Ok(()),
    }
}

fn tell(vault: &Vault, dropped: &[String], terminal: &mut Terminal) -> Result<(), CliFailure> {
    terminal.line(format_args!(
        "changed the main key of vault {}, change {}\nexpect  {}",
        vault.id(),
        vault.generation(),
        vault.anchor()
    ))?;
    for id in dropped {
        terminal.line(format_args!("slot {id} opens it no more"))?;
    }
    terminal.line(
        "Writers keep their keys. Whoever has the old main key still reads what was kept \
         before,\nuntil `sealane vault prune` has written it anew and, a day later, removed it.",
    )
}
