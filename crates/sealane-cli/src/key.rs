//! `sealane key`, and how every verb opens the key folder.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use sealane_group::limits::MAX_GROUP_FILE_BYTES;
use sealane_group::{GroupDocument, KeyFolder, to_text};

use crate::args::key::{KeyCommandArgs, KeyVerb, KeysArgs};
use crate::config::{self, environment};
use crate::passphrase::Passphrase;
use crate::{CliFailure, Terminal};

const LOST: &str = "\
If you lose these keys, nobody can bring them back. You lose access to your groups and to
their messages, and nobody can invite or remove members of the groups that you made.
Keep a backup elsewhere: sealane key backup > FILE";

/// Makes, shows, backs up or restores an identity.
///
/// # Errors
/// The refusal of the key folder.
pub fn run(args: &KeyCommandArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    match &args.verb {
        KeyVerb::New { name, passphrase } => {
            let name = name.clone().unwrap_or_else(machine_name);
            let is_wanted = *passphrase || args.keys.passphrase_file.is_some();
            let passphrase = if is_wanted {
                Some(Passphrase::choose(args.keys.passphrase_file.as_deref())?)
            } else {
                None
            };
            let passphrase = passphrase.as_ref().map(Passphrase::bytes);
            let folder = KeyFolder::create(&root(&args.keys), &name, passphrase)?;
            show(&folder, false, terminal)?;
            say(terminal, LOST);
            Ok(())
        }
        KeyVerb::Show { public } => show(&open(&args.keys)?, *public, terminal),
        KeyVerb::Card { name, text } => {
            let card = open(&args.keys)?.card_as(name.as_deref())?;
            hand_on(GroupDocument::Card, &card, *text, terminal)
        }
        KeyVerb::Passphrase { new } => {
            let folder = open(&args.keys)?;
            // The environment and --passphrase-file hold the old one.
            let chosen = Passphrase::choose_other(new.as_deref());
            let passphrase = chosen.map_err(|failure| match failure {
                CliFailure::Group(sealane_group::Error::PassphraseMissing) => CliFailure::Usage(
                    "a new passphrase is typed on a terminal, or read from a file: --new FILE",
                ),
                other => other,
            })?;
            folder.change_passphrase(passphrase.bytes())?;
            if terminal.json() {
                let path = folder.path().display().to_string();
                return terminal.record(vec![("folder", path.into()), ("changed", true.into())]);
            }
            terminal.line("The passphrase is changed.")?;
            say(terminal, "Backups open with the one that they were made with.");
            Ok(())
        }
        KeyVerb::Backup => {
            redirected("redirect the backup into a file: sealane key backup > FILE")?;
            backup(&args.keys, terminal)
        }
        KeyVerb::Restore { file } => restore(&args.keys, file, terminal),
    }
}

/// Opens the key folder, with its passphrase if it has one.
///
/// # Errors
/// The refusal of the key folder.
pub fn open(keys: &KeysArgs) -> Result<KeyFolder, CliFailure> {
    let root = root(keys);
    let passphrase = if KeyFolder::is_protected(&root)? {
        Passphrase::ask(keys.passphrase_file.as_deref())?
    } else {
        None
    };
    Ok(KeyFolder::open(&root, passphrase.as_ref().map(Passphrase::bytes))?)
}

/// The key folder that flags, environment and defaults name.
pub(crate) fn root(keys: &KeysArgs) -> PathBuf {
    let named = keys.keys.clone().or_else(|| environment("SEALANE_KEYS").map(PathBuf::from));
    named.unwrap_or_else(|| config::folder(&environment, "XDG_CONFIG_HOME", ".config").join("keys"))
}

/// The public key has 1,700 characters: people compare the fingerprint, and ask for the key.
fn show(folder: &KeyFolder, is_whole: bool, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let identity = folder.identity();
    let (fingerprint, public) = (identity.public().fingerprint(), identity.public());
    if terminal.json() {
        return terminal.record(vec![
            ("name", identity.name().into()),
            ("fingerprint", fingerprint.to_string().into()),
            ("publicKey", public.to_string().into()),
            ("folder", folder.path().display().to_string().into()),
        ]);
    }
    terminal.line(format_args!("name        {}", identity.name()))?;
    terminal.line(format_args!("fingerprint {fingerprint}"))?;
    terminal.line(format_args!("folder      {}", folder.path().display()))?;
    if is_whole {
        terminal.line(format_args!("public key  {public}"))?;
    }
    Ok(())
}

fn backup(keys: &KeysArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let root = root(keys);
    let passphrase = if KeyFolder::is_protected(&root)? {
        Passphrase::ask(keys.passphrase_file.as_deref())?
    } else {
        None
    };
    let passphrase = passphrase.as_ref().map(Passphrase::bytes);
    let folder = KeyFolder::open(&root, passphrase)?;
    terminal.write(&folder.backup(passphrase)?)?;
    let about = match passphrase {
        Some(_) => "The backup opens with the passphrase of the key folder.",
        None => "The backup is not protected: whoever has it, is you. Keep it under lock.",
    };
    say(terminal, about);
    say(terminal, "Groups that are forward-secret are not in it: invitations bring them back.");
    Ok(())
}

fn restore(keys: &KeysArgs, file: &Path, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let bytes = read(file)?;
    let is_protected = KeyFolder::is_protected_backup(&bytes)?;
    let passphrase =
        if is_protected { Passphrase::ask(keys.passphrase_file.as_deref())? } else { None };
    let passphrase = passphrase.as_ref().map(Passphrase::bytes);
    let folder = KeyFolder::restore(&root(keys), &bytes, passphrase)?;
    show(&folder, false, terminal)?;
    say(
        terminal,
        "Groups can be read and sent to. If the old folder is still in use, take a new identity\n\
         for one of the two. In groups that you are the authority of: sealane group renew.",
    );
    Ok(())
}

/// A message to people, beside the data.
pub(crate) fn say(terminal: &Terminal, message: &str) {
    if !terminal.json() {
        eprintln!("{message}");
    }
}

/// Bytes are not for the eyes.
pub(crate) fn redirected(otherwise: &'static str) -> Result<(), CliFailure> {
    if std::io::stdout().is_terminal() { Err(CliFailure::Usage(otherwise)) } else { Ok(()) }
}

/// Writes a document for somebody else: as text where people look at it or ask for it, as bytes
/// into files.
pub(crate) fn hand_on(
    document: GroupDocument,
    bytes: &[u8],
    as_text: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if as_text || std::io::stdout().is_terminal() {
        return terminal.write(to_text(document, bytes).as_bytes());
    }
    terminal.write(bytes)
}

/// Reads a document that somebody handed on, as bytes or as text.
pub(crate) fn read_document(document: GroupDocument, path: &Path) -> Result<Vec<u8>, CliFailure> {
    if path == Path::new("-") && std::io::stdin().is_terminal() {
        eprintln!("Paste the {document}, then press Ctrl-D in an empty line.");
    }
    let bytes = read(path)?;
    // People paste what stands around it too. Documents of bytes begin with their letters.
    let is_text = |text: &str| text.lines().any(|line| sealane_group::is_text(line.as_bytes()));
    if std::str::from_utf8(&bytes).is_ok_and(is_text) {
        return Ok(sealane_group::from_text(document, &bytes)?);
    }
    Ok(bytes)
}

/// Reads a file that somebody handed on; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CliFailure> {
    let named = |cause: std::io::Error| CliFailure::file(path, cause);
    let mut bytes = Vec::new();
    let bound = MAX_GROUP_FILE_BYTES as u64 + 1;
    let outcome = if path == Path::new("-") {
        std::io::stdin().lock().take(bound).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(bound).read_to_end(&mut bytes))
    };
    if outcome.map_err(named)? > MAX_GROUP_FILE_BYTES {
        let cause = format!("is longer than {MAX_GROUP_FILE_BYTES} bytes");
        return Err(CliFailure::File { file: path.to_owned(), cause });
    }
    Ok(bytes)
}

/// The system's name of this machine.
pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("member").to_owned()
}
