//! `sealane vault`.

mod care;
mod diff;
mod dump;
mod get;
mod key;
mod list;
mod progress;
mod prune;
mod put;
mod repair;
mod rotate;
mod show;
mod stream;
mod unlock;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane::Value;
use sealane_vault::{Error, GetOptions, SkippedItem, Snapshot, SnapshotSelector, Vault};

use crate::args::vault::{self as args, VaultVerb};
use crate::colour::warn;
use crate::limits::MAX_VAULT_ALIKE;
use crate::terminal::{map, one_line};
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(crate) use unlock::VaultAccess;

/// `sealane vault`.
///
/// # Errors
/// The failure of the verb.
pub fn run(args: &args::VaultArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let location = VaultAccess::new(args)?;
    if args.quiet {
        terminal.silence();
    }
    // A store over the network waits with a runtime of its own, which may not run within another.
    tokio::task::block_in_place(|| verb(args, &location, terminal))
}

fn verb(
    args: &args::VaultArgs,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    match &args.verb {
        VaultVerb::Init(init) => key::init(init, location, terminal),
        VaultVerb::Put(put) => put::run(put, location, terminal),
        VaultVerb::Get(get) => get::run(get, location, terminal),
        VaultVerb::Ls(ls) => list::run(ls, location, terminal),
        VaultVerb::Find(find) => list::find(find, location, terminal),
        VaultVerb::Status => show::status(location, terminal),
        VaultVerb::Verify(verify) => care::verify(verify, location, terminal),
        VaultVerb::Repair { paths } => repair::run(paths, location, terminal),
        VaultVerb::Drill(drill) => care::drill(drill, location, terminal),
        VaultVerb::Prune(prune) => prune::run(prune, location, terminal),
        VaultVerb::Forget(forget) => prune::forget(forget, location, terminal),
        VaultVerb::Diff(diff) => diff::run(diff, location, terminal),
        VaultVerb::Dump(dump) => dump::run(dump, location, terminal),
        VaultVerb::Recover { to, snapshot, paths, trust } => {
            let options = GetOptions {
                paths: wanted(paths),
                no_owner: trust.no_owner,
                trust_modes: trust.trust_modes,
                ..GetOptions::default()
            };
            care::recover(to, *snapshot, &options, location, terminal)
        }
        VaultVerb::Inspect { key } => show::inspect(key.as_deref(), location, terminal),
        VaultVerb::Import(import) => put::import(import, location, terminal),
        VaultVerb::Key(key) => key::run(key, location, terminal),
        VaultVerb::Leaks => show::leaks(location, terminal),
    }
}

/// The snapshot of a number. For `latest` it is the newest of these that has the paths, and it is
/// named.
fn snapshot(
    vault: &Vault,
    name: &str,
    whose: &SnapshotSelector,
    paths: &[Vec<u8>],
    terminal: &Terminal,
) -> Result<Snapshot, CliFailure> {
    if name != "latest" {
        let number = name.parse().map_err(|_| Error::NoSnapshot(name.to_owned()))?;
        let snapshot = vault.snapshot(Some(number))?;
        vault.check_paths(&snapshot, paths)?;
        return Ok(snapshot);
    }
    let known = vault.warnings();
    let snapshot = vault.newest(whose, paths);
    // A newer one that cannot be read was passed over.
    warn_anew(vault, &known);
    let snapshot = snapshot?;
    if !terminal.json() && !terminal.quiet() {
        let (number, host, time) = (snapshot.number, &snapshot.source, time(snapshot.time_ns));
        let line = format!("snapshot {number} of {host}, {time}: {}", places(&snapshot.paths));
        eprintln!("sealane: {}", one_line(line.trim_end_matches([':', ' '])));
    }
    Ok(snapshot)
}

/// Prints what was found since the warnings that are known.
fn warn_anew(vault: &Vault, known: &[SkippedItem]) {
    let mut warnings = vault.warnings();
    warnings.retain(|warning| !known.contains(warning));
    told(&warnings).iter().for_each(|line| warn(one_line(line)));
}

/// The first words of the keys of a store.
const OBJECTS: [&str; 9] = [
    "condemned",
    "index",
    "keys",
    "listings",
    "packs",
    "reports",
    "roster",
    "rotations",
    "snapshots",
];

/// A line for each object that was skipped. Of many that are alike one line names the first three.
/// A file of a user is named in any case: nobody would find out otherwise which ones are missing.
fn told(items: &[SkippedItem]) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<&SkippedItem>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in items {
        let folder = item.path.split('/').next().unwrap_or_default();
        let kind = match OBJECTS.contains(&folder) {
            true => format!("{folder}: {}", item.reason.replace(&item.path, "")),
            false => item.path.clone(),
        };
        let at = *places.entry(kind.clone()).or_insert(kinds.len());
        match kinds.get_mut(at) {
            Some((_, alike)) => alike.push(item),
            None => kinds.push((kind, vec![item])),
        }
    }
    let line = |item: &&SkippedItem| told_one(item);
    let lines = kinds.iter().flat_map(|(_, alike)| match alike.as_slice() {
        [first, second, third, ..] if alike.len() > MAX_VAULT_ALIKE => {
            let named = [second, third].map(|item| format!("`{}`", item.path)).join(", ");
            let count = count(alike.len() as u64, "objects");
            let SkippedItem { path, reason } = first;
            vec![format!("{count} alike, the first three: `{path}`, {named}: {reason}")]
        }
        few => few.iter().map(line).collect(),
    });
    lines.collect()
}

fn told_one(item: &SkippedItem) -> String {
    format!("`{}`: {}", item.path, item.reason)
}

/// A line for each reason, with the first paths of many.
fn alike(items: &[SkippedItem]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for item in items {
        match reasons.iter_mut().find(|(reason, _)| *reason == item.reason) {
            Some((_, paths)) => paths.push(&item.path),
            None => reasons.push((&item.reason, vec![&item.path])),
        }
    }
    let line = |(reason, paths): (&str, Vec<&str>)| match paths.as_slice() {
        [path] => format!("`{path}`: {reason}"),
        paths => {
            let first: Vec<_> = paths.iter().take(3).map(|path| format!("`{path}`")).collect();
            let count = count(paths.len() as u64, "paths");
            format!("{count}, the first {}: {reason}", first.join(", "))
        }
    };
    reasons.into_iter().map(line).collect()
}

/// An item that was passed over, for programs.
fn passed(item: &SkippedItem) -> Value {
    let text = |text: &str| Value::from(text);
    map(vec![("path", text(&item.path)), ("reason", text(&item.reason))])
}

fn whose(args: &args::SnapshotOwnerArgs) -> SnapshotSelector {
    SnapshotSelector {
        host: args.host.clone(),
        signer: args.signer.clone(),
        anyone: args.anyone,
        allow_older: false,
    }
}

/// Where files were, for people.
fn places(paths: &[Vec<u8>]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| String::from_utf8_lossy(path)).collect();
    shown.join(", ")
}

/// Paths of a snapshot as they were named. One that names its root is as good as none.
fn wanted<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<Vec<u8>> {
    let paths: Vec<Vec<u8>> = paths.into_iter().map(|path| path_bytes(path)).collect();
    if paths.iter().any(Vec::is_empty) { Vec::new() } else { paths }
}

/// Names each file that was left out; that is a failure in the end.
fn skipped(files: &[SkippedItem], terminal: &mut Terminal) -> Result<(), CliFailure> {
    skipped_as(files, files.iter().map(told_one).collect(), terminal)
}

/// The same of what may be objects of the store, of which many can be alike.
fn skipped_objects(objects: &[SkippedItem], terminal: &mut Terminal) -> Result<(), CliFailure> {
    skipped_as(objects, told(objects), terminal)
}

fn skipped_as(
    skipped: &[SkippedItem],
    lines: Vec<String>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if terminal.json() {
        for skipped in skipped {
            terminal.record(vec![
                ("skipped", Value::from(skipped.path.as_str())),
                ("reason", Value::from(skipped.reason.as_str())),
            ])?;
        }
    } else {
        lines.iter().for_each(|line| eprintln!("sealane: skipped {}", one_line(line)));
    }
    match skipped.len() {
        0 => Ok(()),
        count => Err(CliFailure::Skipped(count)),
    }
}

/// A path as the vault has it: raw bytes, without slashes around.
fn path_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = path.as_os_str().as_bytes();
    while let [rest @ .., b'/'] = bytes {
        bytes = rest;
    }
    while let [b'/', rest @ ..] | [b'.', b'/', rest @ ..] = bytes {
        bytes = rest;
    }
    if bytes == b"." { Vec::new() } else { bytes.to_vec() }
}

/// Text of a path; what is no UTF-8 is replaced.
fn shown(path: &[u8]) -> Value {
    Value::from(String::from_utf8_lossy(path).as_ref())
}

fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// The milliseconds of what a vault counts in nanoseconds.
fn ms(time_ns: i64) -> i64 {
    time_ns.div_euclid(1_000_000)
}

/// RFC 3339, to the second.
fn time(time_ns: i64) -> String {
    let time = std::time::UNIX_EPOCH + Duration::from_nanos(time_ns.max(0).unsigned_abs());
    humantime::format_rfc3339_seconds(time).to_string()
}

/// The first line of a file that holds a secret, or of standard input for `-`.
fn secret_line(path: &Path) -> Result<zeroize::Zeroizing<String>, CliFailure> {
    let standard_input = Path::new("/dev/stdin");
    crate::passphrase::first_line(if path.as_os_str() == "-" { standard_input } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_that_are_alike_are_one_line() {
        let item = |path: String| {
            let reason = format!("`{path}` is no link [SL-VAULT-06]");
            SkippedItem { path, reason }
        };
        let junk = |count: usize| (0..count).map(|at| item(format!("snapshots/junk{at}")));
        let mut items: Vec<SkippedItem> = junk(MAX_VAULT_ALIKE).collect();
        assert_eq!(told(&items).len(), MAX_VAULT_ALIKE);
        items = junk(5000).collect();
        items.insert(7, item("keys/readme".to_owned()));
        let told = told(&items);
        assert_eq!(told.len(), 2);
        assert_eq!(
            told[0],
            "5000 objects alike, the first three: `snapshots/junk0`, `snapshots/junk1`, \
             `snapshots/junk2`: `snapshots/junk0` is no link [SL-VAULT-06]"
        );
        assert_eq!(told[1], "`keys/readme`: `keys/readme` is no link [SL-VAULT-06]");
    }

    #[test]
    fn what_is_no_loss_is_one_line_for_each_reason() {
        let item = |path: &str, reason: &str| SkippedItem {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let items = [item("/a", "a socket"), item("/b", "a socket"), item("/c", "the vault")];
        assert_eq!(alike(&items), ["2 paths, the first `/a`, `/b`: a socket", "`/c`: the vault"]);
        assert_eq!(alike(&vec![item("/a", "a socket"); 1000]).len(), 1);
    }

    #[test]
    fn each_file_of_a_user_is_named() {
        let item = |at: usize| SkippedItem {
            path: format!("/srv/documents/file{at}"),
            reason: "Permission denied (os error 13)".to_owned(),
        };
        let items: Vec<SkippedItem> = (0..200).map(item).collect();
        let told = told(&items);
        assert_eq!(told.len(), 200);
        assert_eq!(told[199], "`/srv/documents/file199`: Permission denied (os error 13)");
    }
}
