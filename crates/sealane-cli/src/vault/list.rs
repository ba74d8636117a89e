//! `sealane vault ls`.

use sealane::Value;
use sealane_vault::{
    DeviceKind, GetOptions, Snapshot, SnapshotEntry, SnapshotEntryKind, SnapshotSelector, Vault,
};

use super::{VaultAccess, ms, places, shown, size, snapshot, time, wanted, warn_anew, whose};
use crate::args::vault::{VaultFind, VaultLs};
use crate::terminal::table;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &VaultLs,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let whose = whose(&args.whose);
    let Some(name) = &args.snapshot else {
        let known = vault.warnings();
        // A list leaves nobody out unless it is told to.
        let all = match whose == SnapshotSelector::default() {
            true => vault.snapshots(),
            false => {
                let named = whose.host.is_none() || whose.signer.is_none();
                vault.snapshots_of(&SnapshotSelector { anyone: named, ..whose })
            }
        };
        warn_anew(&vault, &known);
        return snapshots(&all?, terminal);
    };
    let paths = wanted(&args.path);
    let whose = SnapshotSelector { allow_older: args.allow_older, ..whose };
    let snapshot = snapshot(&vault, name, &whose, &paths, terminal)?;
    let paths = vault.locate(&snapshot, &paths)?;
    let options = GetOptions { paths, ..GetOptions::default() };
    entries(&vault, &snapshot, terminal, |entry| options.wants(&entry.path))
}

fn snapshots(snapshots: &[Snapshot], terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return snapshots.iter().try_for_each(|snapshot| terminal.record(record(snapshot)));
    }
    let rows: Vec<Vec<String>> = snapshots
        .iter()
        .map(|snapshot| {
            vec![
                snapshot.number.to_string(),
                time(snapshot.time_ns),
                snapshot.source.clone(),
                snapshot.counts.files.to_string(),
                size(snapshot.counts.bytes),
                size(snapshot.counts.stored_bytes),
                snapshot.signer.clone().unwrap_or_else(|| "owner".to_owned()),
                places(&snapshot.paths),
                snapshot.tags.join(", "),
                snapshot.note.clone(),
            ]
        })
        .collect();
    let head =
        ["snapshot", "time", "source", "files", "size", "new", "signer", "paths", "tags", "note"];
    terminal.write(table(&head, &rows).as_bytes())
}

fn record(snapshot: &Snapshot) -> Vec<(&'static str, Value)> {
    vec![
        ("snapshot", Value::from(snapshot.number)),
        ("timeMs", Value::from(ms(snapshot.time_ns))),
        ("source", Value::from(snapshot.source.as_str())),
        ("note", Value::from(snapshot.note.as_str())),
        ("byWriter", Value::from(snapshot.by_writer)),
        ("signer", snapshot.signer.as_deref().map_or(Value::Null, Value::from)),
        ("paths", Value::Array(snapshot.paths.iter().map(|path| shown(path)).collect())),
        ("tags", Value::Array(snapshot.tags.iter().map(|tag| tag.as_str().into()).collect())),
        ("files", Value::from(snapshot.counts.files)),
        ("bytes", Value::from(snapshot.counts.bytes)),
        ("newBytes", Value::from(snapshot.counts.new_bytes)),
        ("storedBytes", Value::from(snapshot.counts.stored_bytes)),
    ]
}

/// Prints those entries of a snapshot that `wanted` takes.
pub(super) fn entries(
    vault: &Vault,
    snapshot: &Snapshot,
    terminal: &mut Terminal,
    wanted: impl Fn(&SnapshotEntry) -> bool,
) -> Result<(), CliFailure> {
    for entry in vault.entries(snapshot)? {
        let entry = entry?;
        if wanted(&entry) {
            show(snapshot.number, &entry, false, terminal)?;
        }
    }
    Ok(())
}

/// `sealane vault find`.
pub(super) fn find(
    args: &VaultFind,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let known = vault.warnings();
    let mut outcome = Ok(());
    let looked = vault.find(&args.pattern, &whose(&args.whose), &mut |found| {
        if outcome.is_ok() {
            outcome = show(found.snapshot, &found.entry, true, terminal);
        }
        Ok(())
    });
    // The data that could not be searched may hold a match.
    warn_anew(&vault, &known);
    looked?;
    outcome
}

fn show(
    snapshot: u64,
    entry: &SnapshotEntry,
    with_snapshot: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let letter = match &entry.node {
        SnapshotEntryKind::Folder => 'd',
        SnapshotEntryKind::File { .. } => '-',
        SnapshotEntryKind::Link { .. } => 'l',
        SnapshotEntryKind::Fifo => 'p',
        SnapshotEntryKind::Device(device) => match device.kind {
            DeviceKind::Character => 'c',
            DeviceKind::Block => 'b',
        },
    };
    if terminal.json() {
        return terminal.record(vec![
            ("snapshot", Value::from(snapshot)),
            ("path", shown(&entry.path)),
            ("kind", Value::from(entry.node.name())),
            ("size", Value::from(entry.size())),
            ("mode", Value::from(u64::from(entry.mode))),
            ("mtimeNs", Value::from(entry.mtime_ns)),
        ]);
    }
    let number = if with_snapshot { format!("{snapshot:>6} ") } else { String::new() };
    terminal.line(format_args!(
        "{number}{letter}{:04o} {:>12} {} {}",
        entry.mode,
        entry.size(),
        time(entry.mtime_ns),
        entry.shown()
    ))
}
