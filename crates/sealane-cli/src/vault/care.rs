//! `sealane vault verify`, `drill`, `prune` and `recover`.

use std::path::{Path, PathBuf};

use sealane::Value;
use sealane_vault::{DrillOptions, DrillReport, GetOptions, Keep, PruneOptions, PruneReport};

use super::{Location, path_bytes, size, skipped};
use crate::args::vault::{VaultDrill, VaultPrune};
use crate::{Failure, Terminal};

pub(super) fn verify(
    read_data: bool,
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let report = location.open()?.verify(read_data)?;
    if terminal.json() {
        terminal.record(vec![
            ("snapshots", Value::from(report.snapshots)),
            ("packs", Value::from(report.packs)),
            ("chunks", Value::from(report.chunks)),
            ("read_bytes", Value::from(report.read_bytes)),
            ("problems", Value::from(report.problems.len() as u64)),
        ])?;
    } else {
        terminal.line(format_args!(
            "{} snapshots are whole, {} packs, {} chunks needed; {} of data read; {} problems",
            report.snapshots,
            report.packs,
            report.chunks,
            size(report.read_bytes),
            report.problems.len()
        ))?;
    }
    skipped(&report.problems, terminal)
}

pub(super) fn drill(
    args: &VaultDrill,
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let vault = location.open()?;
    let sample = (!args.all).then_some(args.sample);
    let options = DrillOptions { snapshot: args.snapshot, sample };
    let report = match &args.scratch {
        Some(scratch) => vault.drill(scratch, &options)?,
        None => {
            let scratch = tempfile::tempdir().map_err(|cause| Failure::File {
                file: std::env::temp_dir(),
                cause: cause.to_string(),
            })?;
            vault.drill(scratch.path(), &options)?
        }
    };
    if terminal.json() {
        terminal.record(drill_record(&report))?;
    } else {
        let proven = if report.failed.is_empty() { "proven" } else { "NOT proven" };
        let what = if report.all { "all" } else { "a sample" };
        terminal.line(format_args!(
            "restore {proven}: {what} of snapshot {}, {} files, {}, in {} ms",
            report.snapshot,
            report.files,
            size(report.bytes),
            report.took_ms
        ))?;
    }
    skipped(&report.failed, terminal)
}

pub(super) fn drill_record(report: &DrillReport) -> Vec<(&'static str, Value)> {
    vec![
        ("time_ns", Value::from(report.time_ns)),
        ("snapshot", Value::from(report.snapshot)),
        ("head", Value::from(report.head.as_str())),
        ("all", Value::from(report.all)),
        ("files", Value::from(report.files)),
        ("bytes", Value::from(report.bytes)),
        ("took_ms", Value::from(report.took_ms)),
        ("proven", Value::from(report.failed.is_empty())),
        ("failed", Value::from(report.failed.len() as u64)),
    ]
}

pub(super) fn prune(
    args: &VaultPrune,
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let keep = Keep {
        last: args.keep_last,
        daily: args.keep_daily,
        weekly: args.keep_weekly,
        monthly: args.keep_monthly,
    };
    if keep == Keep::default() {
        return Err(Failure::Usage("say which snapshots to keep, for example --keep-last 10"));
    }
    let options = PruneOptions { keep, now: args.now, dry_run: args.dry_run };
    let report = location.open()?.prune(&options)?;
    show_prune(&report, args.dry_run, terminal)
}

fn show_prune(report: &PruneReport, dry: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.record(vec![
            ("kept", Value::from(report.kept)),
            ("removed", Value::from(report.removed)),
            ("condemned", Value::from(report.condemned)),
            ("repacked", Value::from(report.repacked)),
            ("removed_packs", Value::from(report.removed_packs)),
            ("removed_bytes", Value::from(report.removed_bytes)),
            ("dry_run", Value::from(dry)),
        ]);
    }
    let would = if dry { "would keep" } else { "kept" };
    terminal.line(format_args!(
        "{would} {} snapshots, removed {}; packs: {} rewritten, {} condemned, {} removed ({})",
        report.kept,
        report.removed,
        report.repacked,
        report.condemned,
        report.removed_packs,
        size(report.removed_bytes)
    ))
}

pub(super) fn recover(
    to: &Path,
    snapshot: Option<u64>,
    paths: &[PathBuf],
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let vault = location.open_objects()?;
    let paths = paths.iter().map(|path| path_bytes(path)).collect();
    let options = GetOptions { paths, ..GetOptions::default() };
    let recovered = vault.recover_to(snapshot, to, &options)?;
    if recovered.snapshot.is_none() && !terminal.json() {
        terminal.line("no snapshot is readable: restored every file that the packs name")?;
    }
    super::get::show(&recovered.report, recovered.snapshot.unwrap_or(0), terminal)?;
    skipped(&recovered.report.failed, terminal)
}
