//! `sealane vault diff`.

use sealane::Value;
use sealane_vault::{DifferenceKind, Error, SnapshotDifference};

use super::{VaultAccess, shown, size, snapshot, wanted, whose};
use crate::args::vault::VaultDiff;
use crate::terminal::one_line;
use crate::times::count;
use crate::{CliFailure, Terminal};

/// How many paths differ, and by how many bytes.
#[derive(Default)]
struct DiffCounts {
    added: u64,
    removed: u64,
    changed: u64,
    added_bytes: u64,
    removed_bytes: u64,
}

pub(super) fn run(
    args: &VaultDiff,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let whose = whose(&args.whose);
    let before = snapshot(&vault, &args.before, &whose, &[], terminal)?;
    let after = snapshot(&vault, &args.after, &whose, &[], terminal)?;
    let mut counts = DiffCounts::default();
    let mut outcome = Ok(());
    let compared = vault.diff(&before, &after, &wanted(&args.paths), &mut |difference| {
        counts.add(&difference);
        outcome = show(&difference, terminal);
        // A closed output stops the work.
        if outcome.is_ok() { Ok(()) } else { Err(Error::Stopped) }
    });
    outcome?;
    compared?;
    counts.show(terminal)
}

impl DiffCounts {
    fn add(&mut self, difference: &SnapshotDifference) {
        match difference.kind {
            DifferenceKind::Added => self.added += 1,
            DifferenceKind::Removed => self.removed += 1,
            _ => self.changed += 1,
        }
        match difference.kind {
            DifferenceKind::Removed => self.removed_bytes += difference.size_before,
            DifferenceKind::Metadata => {}
            _ => {
                self.added_bytes += difference.entry.size();
                self.removed_bytes += difference.size_before;
            }
        }
    }

    fn show(&self, terminal: &mut Terminal) -> Result<(), CliFailure> {
        if terminal.json() {
            return terminal.record(vec![
                ("added", Value::from(self.added)),
                ("removed", Value::from(self.removed)),
                ("changed", Value::from(self.changed)),
                ("addedBytes", Value::from(self.added_bytes)),
                ("removedBytes", Value::from(self.removed_bytes)),
            ]);
        }
        terminal.line(format_args!(
            "{} added ({}), {} removed ({}), {} changed",
            count(self.added, "paths"),
            size(self.added_bytes),
            self.removed,
            size(self.removed_bytes),
            self.changed
        ))
    }
}

fn show(difference: &SnapshotDifference, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let (word, letter) = match difference.kind {
        DifferenceKind::Added => ("added", '+'),
        DifferenceKind::Removed => ("removed", '-'),
        DifferenceKind::Content => ("content", 'M'),
        DifferenceKind::Kind => ("kind", 'T'),
        DifferenceKind::Metadata => ("metadata", 'U'),
    };
    let entry = &difference.entry;
    if terminal.json() {
        return terminal.record(vec![
            ("change", Value::from(word)),
            ("path", shown(&entry.path)),
            ("sizeBefore", Value::from(difference.size_before)),
            ("size", Value::from(entry.size())),
        ]);
    }
    terminal.line(format_args!("{letter} {}", one_line(&entry.shown())))
}
