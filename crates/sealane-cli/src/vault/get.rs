//! `sealane vault get`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use sealane::Value;
use sealane_vault::{Error, GetOptions, GetReport, PutProgress, Snapshot, SnapshotSelector, Vault};

use super::progress::{ProgressForm, watched};
use super::{VaultAccess, alike, path_bytes, size, skipped, snapshot, wanted, whose};
use crate::args::vault::{ByteRange, VaultGet};
use crate::terminal::one_line;
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &VaultGet,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let paths = wanted(&args.paths);
    let whose = SnapshotSelector { allow_older: args.allow_older, ..whose(&args.whose) };
    let snapshot = snapshot(&vault, &args.snapshot, &whose, &paths, terminal)?;
    if let Some(range) = args.range {
        let [path] = args.paths.as_slice() else {
            return Err(CliFailure::Usage("--range needs a snapshot and the path of one file"));
        };
        return part(&vault, &snapshot, path, range, terminal);
    }
    let progress = Arc::new(PutProgress::default());
    let total = total(&paths, snapshot.counts.bytes);
    let options = GetOptions {
        paths,
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        no_owner: args.trust.no_owner,
        trust_modes: args.trust.trust_modes,
        progress: Some(Arc::clone(&progress)),
    };
    let target = args.to.as_deref().unwrap_or(Path::new("."));
    let report = watched(
        ProgressForm::of(terminal),
        &progress,
        || total,
        || vault.get_to(&snapshot, target, &options),
    )?;
    show(&report, snapshot.number, terminal)?;
    skipped(&report.failed, terminal)?;
    complete(&report)
}

/// The bytes that a restore is to verify. How many are in some paths of a snapshot, only a walk
/// through all of its pages would tell.
fn total(paths: &[Vec<u8>], snapshot: u64) -> Option<u64> {
    paths.is_empty().then_some(snapshot)
}

/// Fails for what was restored, and not as it was; and if there were only devices to restore, none
/// of which was made.
pub(super) fn complete(report: &GetReport) -> Result<(), CliFailure> {
    let refused = if report.refused_all() { report.refused } else { 0 };
    match report.lacking.len() + usize::try_from(refused).unwrap_or(usize::MAX) {
        0 => Ok(()),
        left_out => Err(CliFailure::Skipped(left_out)),
    }
}

/// The devices of a writer's snapshot that are lacking.
pub(super) fn not_made(refused: u64) -> String {
    match refused {
        1 => "1 device was not made".to_owned(),
        _ => format!("{} were not made", count(refused, "devices")),
    }
}

pub(super) fn show(
    report: &GetReport,
    snapshot: u64,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if terminal.json() {
        return record(report, snapshot, terminal);
    }
    if report.withheld > 0 {
        let paths = count(report.withheld, "paths");
        eprintln!(
            "sealane: {paths} did not get the owner, the setuid bits or the rights that a writer \
             names: --trust-modes takes them"
        );
    }
    if report.refused > 0 {
        eprintln!("sealane: {}: --trust-modes makes them", not_made(report.refused));
    }
    alike(&report.lacking).iter().for_each(|line| eprintln!("sealane: {}", one_line(line)));
    if !report.lacking.is_empty() {
        // A file of the right size and time is taken for one that is restored already.
        eprintln!(
            "sealane: another run does not set these attributes on files that are there: remove \
             the files first"
        );
    }
    terminal.outcome(format_args!(
        "restored {}, {}, all verified; there already: {}",
        count(report.files, "files"),
        size(report.bytes),
        report.unchanged
    ))
}

/// Writes the counts, and names all that lacks an attribute.
fn record(report: &GetReport, snapshot: u64, terminal: &mut Terminal) -> Result<(), CliFailure> {
    terminal.record(vec![
        ("snapshot", Value::from(snapshot)),
        ("files", Value::from(report.files)),
        ("folders", Value::from(report.folders)),
        ("links", Value::from(report.links)),
        ("others", Value::from(report.others)),
        ("bytes", Value::from(report.bytes)),
        ("unchanged", Value::from(report.unchanged)),
        ("withheld", Value::from(report.withheld)),
        ("refused", Value::from(report.refused)),
        ("lacking", Value::from(report.lacking.len() as u64)),
        ("failed", Value::from(report.failed.len() as u64)),
    ])?;
    for item in &report.lacking {
        terminal.record(vec![
            ("lacking", Value::from(item.path.as_str())),
            ("reason", Value::from(item.reason.as_str())),
        ])?;
    }
    Ok(())
}

/// Writes a range of one file, verified, to standard output.
fn part(
    vault: &Vault,
    snapshot: &Snapshot,
    path: &Path,
    range: ByteRange,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let located = vault.locate(snapshot, &[path_bytes(path)])?;
    let mut file = vault.file(snapshot, located.first().map_or(&[][..], Vec::as_slice))?;
    file.check_offset(range.offset)?;
    written(terminal, |out| file.read_range(range.offset, range.length, out).map(|_| ()))
}

/// Does `work` with standard output as its writer.
pub(super) fn written(
    terminal: &mut Terminal,
    work: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
) -> Result<(), CliFailure> {
    let mut out = TerminalWriter(terminal, None);
    let done = work(&mut out);
    match out.1 {
        Some(failure) => Err(failure),
        None => Ok(done?),
    }
}

/// A terminal as a writer. What it fails for is kept, since a gone reader is no failure.
struct TerminalWriter<'a>(&'a mut Terminal, Option<CliFailure>);

impl Write for TerminalWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map(|()| bytes.len()).map_err(|failure| {
            self.1 = Some(failure);
            io::Error::other("standard output")
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealane_vault::SkippedItem;

    #[test]
    fn all_that_lacks_an_attribute_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut terminal = Terminal::to(file.reopen().unwrap(), true);
        let mut report = GetReport::default();
        let item = |path: &str| SkippedItem { path: path.to_owned(), reason: "why".to_owned() };
        report.lacking = Vec::from(["a", "b", "c", "d", "e"].map(item));
        show(&report, 1, &mut terminal).unwrap();
        terminal.flush().unwrap();
        let written = std::fs::read_to_string(file.path()).unwrap();
        let named = written.matches("\"reason\":\"why\"").count();
        assert_eq!((named, written.lines().count()), (5, 6), "{written}");
        assert!(matches!(complete(&report), Err(CliFailure::Skipped(5))));
    }

    #[test]
    fn a_restore_of_refused_devices_alone_fails() {
        let mut report = GetReport::default();
        (report.refused, report.folders) = (2, 1);
        assert!(matches!(complete(&report), Err(CliFailure::Skipped(2))));
        assert_eq!(not_made(2), "2 devices were not made");
        report.files = 1;
        assert!(complete(&report).is_ok());
    }

    #[test]
    fn how_much_some_paths_have_is_not_told() {
        assert_eq!(total(&[], 7), Some(7));
        assert_eq!(total(&[b"one/file".to_vec()], 7), None);
    }
}
