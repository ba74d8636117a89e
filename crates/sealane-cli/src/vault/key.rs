//! `sealane vault init` and `sealane vault key`.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sealane::Value;
use sealane_group::PublicKey;
use sealane_vault::{Argon2Cost, OpenOptions, RecoveryCode, SlotKind, Vault, VaultMetadata};

use super::VaultAccess;
use crate::args::vault::{self as args, VaultInit, VaultKey, VaultKeyVerb};
use crate::passphrase::Passphrase;
use crate::terminal::table;
use crate::{CliFailure, Terminal};

pub(super) fn init(
    args: &VaultInit,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let passphrase = location.new_passphrase()?;
    let metadata = match args.metadata {
        args::MetadataArg::Sealed => VaultMetadata::Sealed,
        args::MetadataArg::Plain => VaultMetadata::Plain,
    };
    let (store, cost) = (location.store()?, Argon2Cost::default());
    let options = OpenOptions { replace: args.replace, ..location.options.clone() };
    let vault = Vault::init(store, passphrase.bytes(), cost, metadata, &options)?;
    if terminal.json() {
        terminal.record(vec![
            ("vault", Value::from(vault.id())),
            ("anchor", Value::from(vault.anchor())),
        ])?;
    } else {
        terminal.line(format_args!("made vault {} in {}", vault.id(), vault.store().location()))?;
    }
    if args.no_recovery { Ok(()) } else { recovery(&vault, terminal) }
}

pub(super) fn run(
    args: &VaultKey,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if let VaultKeyVerb::Rotate(rotate) = &args.verb {
        return super::rotate::run(rotate, location, terminal);
    }
    let vault = location.open()?;
    match &args.verb {
        VaultKeyVerb::Rotate(_) => Ok(()),
        VaultKeyVerb::Ls => list(&vault, terminal),
        VaultKeyVerb::Passphrase { new_passphrase_file, label } => {
            let new = Passphrase::choose_other(new_passphrase_file.as_deref())?;
            let id = vault.add_passphrase(new.bytes(), Argon2Cost::default(), label)?;
            added(&id, terminal)
        }
        VaultKeyVerb::Recovery => recovery(&vault, terminal),
        VaultKeyVerb::Identity { public: word } => {
            let id = vault.add_identity(&public(word)?, "")?;
            added(&id, terminal)
        }
        VaultKeyVerb::Writer { out, label } => {
            let key = vault.add_writer(label)?;
            secret_file(out, key.expose().as_bytes())?;
            terminal.line(format_args!(
                "wrote {}: it adds to the vault and cannot read it.\n\
                 What the store lets that host delete, it can delete: use object lock or \
                 append-only credentials.",
                out.display()
            ))
        }
        VaultKeyVerb::Rm { id } => Ok(vault.remove_slot(id)?),
    }
}

fn added(id: &str, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![("slot", Value::from(id))]);
    }
    terminal.line(format_args!("added slot {id}"))
}

/// An identity's public key, as a word.
pub(super) fn public(word: &str) -> Result<PublicKey, CliFailure> {
    word.parse().map_err(|_| CliFailure::Usage("that is no public key in text"))
}

/// Adds a recovery code and prints what is to be kept on paper.
fn recovery(vault: &Vault, terminal: &mut Terminal) -> Result<(), CliFailure> {
    kit(vault, &vault.add_recovery("recovery code")?, terminal)
}

/// Prints what is to be kept on paper.
pub(super) fn kit(
    vault: &Vault,
    code: &RecoveryCode,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let text = code.expose();
    let head = vault.head_text()?;
    if terminal.json() {
        return terminal.record(vec![
            ("recoveryCode", Value::from(text.as_str())),
            ("head", Value::from(head)),
            ("anchor", Value::from(vault.anchor())),
        ]);
    }
    terminal.line(format_args!(
        "\nRecovery kit: print this and keep it apart from the machine.\n\
         \x20 place   {}\n\x20 expect  {}\n\x20 head    {head}\n\x20 code    {}\n\n\
         Anyone with this code and the objects reads everything. To restore with nothing else:\n\
         \x20 sealane vault recover --vault PLACE --recovery-file - --expect VAULT:OWNER \
         --to FOLDER",
        vault.store().location(),
        vault.anchor(),
        text.as_str()
    ))
}

fn list(vault: &Vault, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let slots = vault.slots()?;
    let kind = |kind: SlotKind| match kind {
        SlotKind::Passphrase => "passphrase",
        SlotKind::Recovery => "recovery code",
        SlotKind::Identity => "identity",
        SlotKind::Writer => "writer",
    };
    if terminal.json() {
        return slots.iter().try_for_each(|slot| {
            let label = slot.label.as_deref();
            terminal.record(vec![
                ("slot", Value::from(slot.id.as_str())),
                ("kind", Value::from(kind(slot.kind))),
                ("label", label.map_or(Value::Null, Value::from)),
                ("until", slot.until.map_or(Value::Null, Value::from)),
                ("signed", Value::from(slot.signed)),
            ])
        });
    }
    let rows: Vec<Vec<String>> = slots
        .iter()
        .map(|slot| {
            let cost = slot.cost.map(|cost| {
                format!("{} KiB, {} passes, {} lanes", cost.memory_kib, cost.passes, cost.lanes)
            });
            let mut label = slot.label.clone().unwrap_or_default();
            if let Some(until) = slot.until {
                label = format!("{label} (removed; believed up to snapshot {until})");
            }
            vec![slot.id.clone(), kind(slot.kind).to_owned(), cost.unwrap_or(label)]
        })
        .collect();
    terminal.write(table(&["slot", "kind", "about"], &rows).as_bytes())
}

/// Writes a secret to a new file that only its owner reads.
fn secret_file(path: &Path, secret: &[u8]) -> Result<(), CliFailure> {
    let mut options = File::options();
    let written =
        options.write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
            file.write_all(secret)?;
            file.write_all(b"\n")?;
            file.sync_all()
        });
    written.map_err(|cause| CliFailure::File { file: path.to_owned(), cause: cause.to_string() })
}
