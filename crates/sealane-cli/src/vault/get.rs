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
    let options = GetOptions {
        paths,
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        no_owner: args.trust.no_owner,
        trust_modes: args.trust.trust_modes,
        progress: Some(Arc::clone(&progress)),
    };
    let target = args.to.as_deref().unwrap_or(Path::new("."));
    let total = snapshot.counts.bytes;
    let report = watched(
        ProgressForm::of(terminal),
        &progress,
        || Some(total),
        || vault.get_to(&snapshot, target, &options),
    )?;
    show(&report, snapshot.number, terminal)?;
    skipped(&report.failed, terminal)?;
    complete(&report)
}

/// Fails for what was restored, and not as it was.
pub(super) fn complete(report: &GetReport) -> Result<(), CliFailure> {
    match report.lacking.len() {
        0 => Ok(()),
        lacking => Err(CliFailure::Skipped(lacking)),
    }
}

pub(super) fn show(
    report: &GetReport,
    snapshot: u64,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if report.withheld > 0 && !terminal.json() {
        let paths = count(report.withheld, "paths");
        eprintln!(
            "sealane: {paths} did not get the owner, the setuid bits or the rights that a writer \
             names: --trust-modes takes them"
        );
    }
    if !terminal.json() {
        alike(&report.lacking).iter().for_each(|line| eprintln!("sealane: {}", one_line(line)));
    }
    if terminal.json() {
        return terminal.record(vec![
            ("snapshot", Value::from(snapshot)),
            ("files", Value::from(report.files)),
            ("folders", Value::from(report.folders)),
            ("links", Value::from(report.links)),
            ("bytes", Value::from(report.bytes)),
            ("unchanged", Value::from(report.unchanged)),
            ("withheld", Value::from(report.withheld)),
            ("lacking", Value::from(report.lacking.len() as u64)),
            ("failed", Value::from(report.failed.len() as u64)),
        ]);
    }
    terminal.outcome(format_args!(
        "restored {}, {}, all verified; there already: {}",
        count(report.files, "files"),
        size(report.bytes),
        report.unchanged
    ))
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
