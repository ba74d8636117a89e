//! `blobs`: encrypted blobs of files, beside a vault.

use std::path::PathBuf;

use super::{BookOptions, BookReport, BookRow, BookTable, ReportCorrection, ReportName};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, FigureUnit};
use crate::programs::BenchPrograms;
use crate::vault::{self, VaultBenchRow};

/// Bytes of the big file: enough to see rates and memory.
const BIG_BYTES: u64 = 200_000_000;
/// The row of the vault's bench that both have.
const PUT: &str = "263 files, put";
const RESTORE: &str = "263 files, restore";
/// A file system in memory, where Linux has one.
const MEMORY: &str = "/dev/shm";
const OURS: &str = "sealane zstd-3";
const THEIRS: &str = "the report's, Rust";

pub(super) fn report(
    options: &BookOptions,
    programs: &BenchPrograms,
    progress: &mut dyn FnMut(f64),
) -> Result<BookReport> {
    let measure_in = |data: Option<PathBuf>, only: &str, tool: &str| {
        let options = vault::VaultBenchOptions {
            rounds: if options.quick { 1 } else { 3 },
            only: Some(only.to_owned()),
            tool: Some(tool.to_owned()),
            big: if options.quick { BIG_BYTES / 4 } else { BIG_BYTES },
            data,
            ..vault::VaultBenchOptions::default()
        };
        vault::run(programs, &options, &mut |_| ())
    };
    let measure = |only: &str, tool: &str| measure_in(options.data.clone(), only, tool);
    let theirs = measure("mixed", THEIRS)?;
    progress(0.3);
    let ours = measure("mixed", OURS)?;
    progress(0.5);
    let (their_big, our_big) = (measure("big", THEIRS)?, measure("big", OURS)?);
    progress(0.8);
    let mut storage = vec![("the disk", theirs.clone(), ours.clone())];
    let memory_folder = PathBuf::from(MEMORY);
    if memory_folder.is_dir() {
        let there = |tool| measure_in(Some(memory_folder.clone()), "mixed", tool);
        storage.push(("memory (tmpfs)", there(THEIRS)?, there(OURS)?));
    }
    progress(1.0);
    let put = |rows: &[VaultBenchRow]| rows.iter().find(|row| row.what == PUT).cloned();
    let (Some(base), Some(kept)) = (put(&theirs), put(&ours)) else {
        return Err(BenchFailure::broken("the vault's bench"));
    };
    let mut rows = puts(&base, &kept);
    rows.extend(ours.iter().filter(|row| row.what != PUT).map(seconds));
    let note = "Both as processes, unlock included; data of the report's sizes, half text.";
    let mixed = BookTable::new("263 files of 25.1 MB, one core", note, rows);
    let note = "The report left it open. Its way holds the whole file in memory.";
    let mut large = BookTable::new("One large file: rate, memory, two cores", note, vec![]);
    for row in &our_big {
        let base = their_big.iter().find(|base| base.what == row.what);
        large.rows.extend(both(base, row));
    }
    Ok(BookReport {
        name: ReportName::Blobs,
        title: "encrypted blobs with readable recovery",
        about: "Baseline: the report's pipeline in Rust, PBKDF2 with 100,000 rounds for each file. \
                Sealane: a vault, Argon2id once, chunks in packs, fsynced.",
        tables: vec![mixed, large, storage_table(&storage)],
        corrections: corrections(),
    })
}

fn puts(base: &VaultBenchRow, put: &VaultBenchRow) -> Vec<BookRow> {
    let files = |row: &VaultBenchRow| {
        BenchFigure::of(row.files as f64 / row.seconds, FigureUnit::PerSecond)
    };
    let rate = |row: &VaultBenchRow| {
        BenchFigure::of(row.bytes as f64 / row.seconds / 1e6, FigureUnit::MegabytesPerSecond)
    };
    let each = |row: &VaultBenchRow| BenchFigure::ns(row.seconds * 1e9 / row.files.max(1) as f64);
    let size =
        |row: &VaultBenchRow| BenchFigure::of(row.stored.unwrap_or(0) as f64, FigureUnit::Bytes);
    let row = |name: &str, of: &dyn Fn(&VaultBenchRow) -> BenchFigure| {
        BookRow::new(name).baseline(of(base)).sealane(of(put))
    };
    vec![
        row("time of a file", &each).published(BenchFigure::ns(17e6)),
        row("files", &files).published(BenchFigure::of(68.4, FigureUnit::PerSecond)),
        row("throughput", &rate).published(BenchFigure::of(6.5, FigureUnit::MegabytesPerSecond)),
        row("stored", &size).published(BenchFigure::of(27.9e6, FigureUnit::Bytes)),
        row("memory", &memory),
    ]
}

/// The effect of the storage below a vault, on put and on restore.
fn storage_table(storage: &[(&str, Vec<VaultBenchRow>, Vec<VaultBenchRow>)]) -> BookTable {
    let mut rows = vec![];
    for (name, theirs, ours) in storage {
        for what in [PUT, RESTORE] {
            let seconds = |rows: &[VaultBenchRow]| {
                let row = rows.iter().find(|row| row.what == what)?;
                Some(BenchFigure::ns(row.seconds * 1e9))
            };
            let mut row = BookRow::new(format!("{what}, {name}"));
            (row.baseline, row.sealane) = (seconds(theirs), seconds(ours));
            rows.push(row);
        }
    }
    BookTable::new(
        "Storage types",
        "The report left it open. The disk is where --data points, memory the bound of what \
               faster storage can bring; a store in a network adds its round trips for each pack.",
        rows,
    )
}

fn memory(row: &VaultBenchRow) -> BenchFigure {
    BenchFigure::of(row.memory_kib as f64 / 1024.0, FigureUnit::Mebibytes)
}

fn seconds(row: &VaultBenchRow) -> BookRow {
    BookRow::new(&row.what).sealane(BenchFigure::ns(row.seconds * 1e9)).note(&row.note)
}

fn both(base: Option<&VaultBenchRow>, row: &VaultBenchRow) -> Vec<BookRow> {
    let rate = |row: &VaultBenchRow| {
        BenchFigure::of(row.bytes as f64 / row.seconds / 1e6, FigureUnit::MegabytesPerSecond)
    };
    // The vault's bench names the size that it uses by default.
    let what = row.what.replacen("1 GB", &format!("{} MB", row.bytes / 1_000_000), 1);
    let mut speed = BookRow::new(&what).sealane(rate(row)).note(&row.note);
    let mut held = BookRow::new(format!("{what}, memory")).sealane(memory(row));
    if let Some(base) = base {
        (speed.baseline, held.baseline) = (Some(rate(base)), Some(memory(base)));
    }
    vec![speed, held]
}

fn corrections() -> Vec<ReportCorrection> {
    super::corrections([
        (
            "age takes 1,200 ms for each file and is unusable",
            "that is its passphrase mode, slow on purpose and once for each file; to a key it \
             takes 0.1 ms",
        ),
        (
            "PBKDF2 for each file provides sufficient cost",
            "an attacker pays one derivation for each guess, however many files there are: derive \
             once, slowly (Argon2id), and subkeys in microseconds",
        ),
        ("compression ratio 1.23", "the mean of ratios; 25.1 MB became 27.9 MB, 1.1 times as much"),
        (
            "nonces from the blob's id are safe",
            "the sealed bytes are the compressed ones: another LZ4 encoder makes others under the \
             same key and nonce, and the XOR of both texts is in the open. A vault seals with \
             AES-256-GCM-SIV",
        ),
        (
            "only metadata is plaintext",
            "path and content hash let anyone confirm a file without the passphrase",
        ),
    ])
}
