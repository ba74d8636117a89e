//! `sealane vault put`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sealane::Value;
use sealane_vault::{ChunkCompression, PutOptions, PutProgress, PutReport, Vault, measure};

use super::progress::{ProgressForm, watched};
use super::{VaultAccess, alike, passed, secret_line, size, skipped, stream};
use crate::args::vault::{
    ChunkProfileArgs, CompressionArg as Method, ImportFrom, VaultImport, VaultPut,
};
use crate::terminal::one_line;
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &VaultPut,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if args.stdin && location.reads_input() {
        return Err(CliFailure::Usage("standard input cannot be the file and the secret at once"));
    }
    let vault = location.open()?;
    let begun = Instant::now();
    let progress = Arc::new(PutProgress::default());
    let options = PutOptions {
        compression: compression(args.profile),
        threads: args.profile.threads,
        exclude: args.exclude.clone(),
        exclude_from: args.exclude_from.clone(),
        note: args.note.clone(),
        tags: args.tag.clone(),
        host: args.host.clone(),
        time_ns: None,
        dry_run: args.dry_run,
        progress: Some(Arc::clone(&progress)),
    };
    let form = ProgressForm::of(terminal);
    // A program is not kept waiting for lines until all files are counted.
    let is_measured = form == ProgressForm::Bar && !args.stdin && !args.stdin_command;
    let total = || is_measured.then(|| measure(&args.paths, &options).ok()).flatten();
    let work = || keep(args, &vault, &options);
    let report = watched(form, &progress, || total().map(|(_, bytes)| bytes), work)?;
    show(&report, begun.elapsed(), args.dry_run, terminal)?;
    skipped(&report.skipped, terminal)
}

fn keep(args: &VaultPut, vault: &Vault, options: &PutOptions) -> Result<PutReport, CliFailure> {
    match () {
        () if args.stdin => stream::put_input(vault, &args.name, options),
        () if args.stdin_command => stream::put_output(vault, &args.paths, &args.name, options),
        () => Ok(vault.put_paths(&args.paths, options)?),
    }
}

pub(super) fn import(
    args: &VaultImport,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let ImportFrom::N2s { store, blob_passphrase_file, note, profile } = &args.from;
    let passphrase = blob_passphrase_file.as_deref().map(secret_line).transpose()?;
    let vault = location.open()?;
    let begun = Instant::now();
    let progress = Arc::new(PutProgress::default());
    let options = PutOptions {
        compression: compression(*profile),
        threads: profile.threads,
        note: note.clone(),
        progress: Some(Arc::clone(&progress)),
        ..PutOptions::default()
    };
    let passphrase = passphrase.as_ref().map(|text| text.as_bytes());
    let work = || vault.import_n2s(store, passphrase, &options);
    let report = watched(ProgressForm::of(terminal), &progress, || None, work)?;
    show(&report, begun.elapsed(), false, terminal)?;
    skipped(&report.skipped, terminal)
}

pub(super) fn compression(profile: ChunkProfileArgs) -> ChunkCompression {
    match profile.compression {
        Method::Zstd => ChunkCompression::Zstd(profile.compression_level),
        Method::Lz4 => ChunkCompression::Lz4,
        Method::None => ChunkCompression::None,
    }
}

fn show(
    report: &PutReport,
    took: Duration,
    dry: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let counts = &report.counts;
    if !terminal.json() {
        if !terminal.quiet() {
            alike(&report.passed).iter().for_each(|line| eprintln!("sealane: {}", one_line(line)));
        }
        for file in &report.changed {
            let line = format!("`{file}` changed while it was read");
            eprintln!("sealane: {}", one_line(&line));
        }
        for pattern in &report.unmatched {
            let line =
                format!("the pattern `{pattern}` matched nothing: nothing is left out by it");
            eprintln!("sealane: {}", one_line(&line));
        }
    }
    let texts = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
    if terminal.json() {
        return terminal.record(vec![
            ("snapshot", Value::from(report.snapshot)),
            ("head", Value::from(report.head.as_str())),
            ("files", Value::from(counts.files)),
            ("folders", Value::from(counts.folders)),
            ("links", Value::from(counts.links)),
            ("bytes", Value::from(counts.bytes)),
            ("newChunks", Value::from(counts.new_chunks)),
            ("newBytes", Value::from(counts.new_bytes)),
            ("storedBytes", Value::from(counts.stored_bytes)),
            ("packs", Value::from(report.packs)),
            ("skipped", Value::from(report.skipped.len() as u64)),
            ("passed", Value::Array(report.passed.iter().map(passed).collect())),
            ("changed", Value::Array(texts(&report.changed))),
            ("unmatched", Value::Array(texts(&report.unmatched))),
            ("tookMs", Value::from(took.as_millis() as u64)),
            ("dryRun", Value::from(dry)),
        ]);
    }
    let would = if dry { "would keep" } else { "kept" };
    terminal.outcome(format_args!(
        "{would} {}, {}; new: {} in {}, {} stored",
        count(counts.files, "files"),
        size(counts.bytes),
        size(counts.new_bytes),
        count(counts.new_chunks, "chunks"),
        size(counts.stored_bytes),
    ))?;
    if !dry {
        terminal.outcome(format_args!("snapshot {}  head {}", report.snapshot, report.head))?;
    }
    Ok(())
}
