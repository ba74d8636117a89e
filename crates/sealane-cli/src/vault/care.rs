//! `sealane vault verify`, `drill` and `recover`.

use std::path::Path;

use sealane::Value;
use sealane_vault::{DrillOptions, DrillReport, GetOptions};

use super::{Location, ms, size, skipped};
use crate::args::vault::VaultDrill;
use crate::terminal::one_line;
use crate::times::count;
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
    skipped(&report.problems, terminal)
}

pub(super) fn drill(
    args: &VaultDrill,
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let vault = location.open()?;
    let sample = (!args.all).then_some(args.sample);
    let allow_older = args.allow_older;
    let options = DrillOptions { snapshot: args.snapshot, sample, allow_older };
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
    location: &Location,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
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
    super::get::show(&recovered.report, recovered.snapshot.unwrap_or(0), terminal)?;
    skipped(&recovered.report.failed, terminal)
}
