//! `sealane vault put`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sealane::Value;
use sealane_vault::{ChunkCompression, PutOptions, PutProgress, PutReport, measure};

use super::{VaultAccess, alike, passed, secret_line, size, skipped};
use crate::args::vault::{
    ChunkProfileArgs, CompressionArg as Method, ImportFrom, VaultImport, VaultPut,
};
use crate::limits::{VAULT_BAR_DELAY_MS, VAULT_BAR_INTERVAL_MS, VAULT_BAR_STEP_MS};
use crate::terminal::one_line;
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &VaultPut,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
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
    let report = watched(
        terminal.interactive(),
        &progress,
        || measure(&args.paths, &options).ok().map(|(_, bytes)| bytes),
        || vault.put_paths(&args.paths, &options),
    )?;
    show(&report, begun.elapsed(), args.dry_run, terminal)?;
    skipped(&report.skipped, terminal)
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
    let report = watched(terminal.interactive(), &progress, || None, work)?;
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
        alike(&report.passed).iter().for_each(|line| eprintln!("sealane: {}", one_line(line)));
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
    terminal.line(format_args!(
        "{would} {}, {}; new: {} in {}, {} stored",
        count(counts.files, "files"),
        size(counts.bytes),
        size(counts.new_bytes),
        count(counts.new_chunks, "chunks"),
        size(counts.stored_bytes),
    ))?;
    if !dry {
        terminal.line(format_args!("snapshot {}  head {}", report.snapshot, report.head))?;
    }
    Ok(())
}

/// Does `work` while a terminal shows how far it is, how fast, and how long it will take.
pub(super) fn watched<T>(
    interactive: bool,
    progress: &PutProgress,
    total: impl FnOnce() -> Option<u64> + Send,
    work: impl FnOnce() -> T,
) -> T {
    if !interactive {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Work that ends before a person could read the bar shows no bar.
            if wait_for(&done, Duration::from_millis(VAULT_BAR_DELAY_MS)) {
                return;
            }
            let bar = bar();
            bar.set_length(total().unwrap_or(0));
            while !wait_for(&done, Duration::from_millis(VAULT_BAR_INTERVAL_MS)) {
                let bytes = progress.bytes.load(Ordering::Relaxed);
                // Files may have grown since they were measured.
                bar.set_length(bar.length().unwrap_or(0).max(bytes));
                bar.set_position(bytes);
                bar.set_message(count(progress.files.load(Ordering::Relaxed), "files"));
            }
            bar.finish_and_clear();
        });
        let outcome = work();
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Waits until the work is done or the time is over, and says whether it is done.
fn wait_for(done: &AtomicBool, time: Duration) -> bool {
    let begun = Instant::now();
    while !done.load(Ordering::Relaxed) && begun.elapsed() < time {
        std::thread::sleep(Duration::from_millis(VAULT_BAR_STEP_MS));
    }
    done.load(Ordering::Relaxed)
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    let shape = "{bytes} of {total_bytes}  {bytes_per_sec}  {wide_bar}  {msg}  {eta} left";
    bar.set_style(ProgressStyle::with_template(shape).unwrap_or(ProgressStyle::default_bar()));
    bar
}
