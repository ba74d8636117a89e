//! `sealane vault ls`.

use sealane::Value;
use sealane_vault::{Entry, Node, Snapshot, Vault};

use super::{Location, shown, size, snapshot, time};
use crate::terminal::table;
use crate::{Failure, Terminal};

pub(super) fn run(
    name: Option<&str>,
    path: Option<&str>,
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let vault = location.open()?;
    match name {
        None => snapshots(&vault, terminal),
        Some(name) => {
            let snapshot = snapshot(&vault, name)?;
            let path = path.unwrap_or_default().trim_end_matches('/').as_bytes();
            entries(&vault, &snapshot, terminal, |entry| {
                let rest = entry.path.strip_prefix(path);
                path.is_empty() || rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
            })
        }
    }
}

fn snapshots(vault: &Vault, terminal: &mut Terminal) -> Result<(), Failure> {
    let snapshots = vault.snapshots()?;
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
                snapshot.note.clone(),
            ]
        })
        .collect();
    let head = ["snapshot", "time", "source", "files", "size", "new", "note"];
    terminal.write(table(&head, &rows).as_bytes())
}

fn record(snapshot: &Snapshot) -> Vec<(&'static str, Value)> {
    vec![
        ("snapshot", Value::from(snapshot.number)),
        ("time_ns", Value::from(snapshot.time_ns)),
        ("source", Value::from(snapshot.source.as_str())),
        ("note", Value::from(snapshot.note.as_str())),
        ("by_writer", Value::from(snapshot.by_writer)),
        ("files", Value::from(snapshot.counts.files)),
        ("bytes", Value::from(snapshot.counts.bytes)),
        ("new_bytes", Value::from(snapshot.counts.new_bytes)),
        ("stored_bytes", Value::from(snapshot.counts.stored_bytes)),
    ]
}

/// Prints those entries of a snapshot that `wanted` takes.
pub(super) fn entries(
    vault: &Vault,
    snapshot: &Snapshot,
    terminal: &mut Terminal,
    wanted: impl Fn(&Entry) -> bool,
) -> Result<(), Failure> {
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
    pattern: &str,
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let vault = location.open()?;
    let mut outcome = Ok(());
    vault.find(pattern, &mut |found| {
        if outcome.is_ok() {
            outcome = show(found.snapshot, &found.entry, true, terminal);
        }
        Ok(())
    })?;
    outcome
}

fn show(
    snapshot: u64,
    entry: &Entry,
    with_snapshot: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let (kind, letter) = match entry.node {
        Node::Folder => ("folder", 'd'),
        Node::File { .. } => ("file", '-'),
        Node::Link { .. } => ("link", 'l'),
    };
    if terminal.json() {
        return terminal.record(vec![
            ("snapshot", Value::from(snapshot)),
            ("path", shown(&entry.path)),
            ("kind", Value::from(kind)),
            ("size", Value::from(entry.size())),
            ("mode", Value::from(u64::from(entry.mode))),
            ("mtime_ns", Value::from(entry.mtime_ns)),
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
