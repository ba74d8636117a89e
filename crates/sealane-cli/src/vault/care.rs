//! `sealane vault verify`, `drill` and `recover`.

use std::path::Path;

use sealane::Value;
use sealane_vault::{DrillOptions, DrillReport, GetOptions, VerifyData};

use super::{VaultAccess, ms, size, skipped, skipped_objects, told};
use crate::args::vault::{VaultDrill, VaultVerify};
use crate::colour::warn;
use crate::terminal::one_line;
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(super) fn verify(
    args: &VaultVerify,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let data = match (args.subset, args.read_data) {
        (Some(part), _) => VerifyData::Part(part),
        (None, true) => VerifyData::All,
        (None, false) => VerifyData::Lists,
    };
    let report = location.open()?.verify_data(data)?;
    if terminal.json() {
        terminal.record(vec![
            ("snapshots", Value::from(report.snapshots)),
            ("packs", Value::from(report.packs)),
            ("chunks", Value::from(report.chunks)),
            ("readBytes", Value::from(report.read_bytes)),
            ("problems", Value::from(report.problems.len() as u64)),
        ])?;
    } else {
        terminal.line(format_args!(
            "whole: {}, {}, {} needed; {} of data read; {}",
            count(report.snapshots, "snapshots"),
            count(report.packs, "packs"),
            count(report.chunks, "chunks"),
            size(report.read_bytes),
            count(report.problems.len() as u64, "problems")
        ))?;
    }
    skipped_objects(&report.problems, terminal)
}

pub(super) fn drill(
    args: &VaultDrill,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let sample = (!args.all).then_some(args.sample);
    let allow_older = args.allow_older;
    let options = DrillOptions { snapshot: args.snapshot, sample, allow_older };
    let report = match &args.scratch {
        Some(scratch) => vault.drill(scratch, &options)?,
        None => {
            let scratch = tempfile::tempdir().map_err(|cause| CliFailure::File {
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
        terminal.outcome(format_args!(
            "restore {proven}: {what} of snapshot {}, {}, {}, in {} ms",
            report.snapshot,
            count(report.files, "files"),
            size(report.bytes),
            report.took_ms
        ))?;
    }
    skipped(&report.failed, terminal)
}

pub(super) fn drill_record(report: &DrillReport) -> Vec<(&'static str, Value)> {
    vec![
        ("timeMs", Value::from(ms(report.time_ns))),
        ("snapshot", Value::from(report.snapshot)),
        ("head", Value::from(report.head.as_str())),
        ("all", Value::from(report.all)),
        ("files", Value::from(report.files)),
        ("bytes", Value::from(report.bytes)),
        ("tookMs", Value::from(report.took_ms)),
        ("proven", Value::from(report.failed.is_empty())),
        ("failed", Value::from(report.failed.len() as u64)),
    ]
}

pub(super) fn recover(
    to: &Path,
    snapshot: Option<u64>,
    options: &GetOptions,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open_objects()?;
    let recovered = vault.recover_to(snapshot, to, options)?;
    if !terminal.json() {
        match (recovered.snapshot, &recovered.host) {
            (Some(number), Some(host)) => {
                eprintln!("sealane: {}", one_line(&format!("snapshot {number} of {host}")));
            }
            _ => {
                terminal.line("no snapshot is readable: restored every file that the packs name")?
            }
        }
    }
    // They cost none of the files.
    told(&recovered.passed_over).iter().for_each(|line| warn(one_line(line)));
    super::get::show(&recovered.report, recovered.snapshot.unwrap_or(0), terminal)?;
    skipped_objects(&recovered.report.failed, terminal)?;
    super::get::complete(&recovered.report)
}
