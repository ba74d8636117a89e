//! The five reports that Sealane grew from, reproduced row by row on the machine at hand.
//!
//! Each row has what the report *published*, what its own way of doing it takes here (the
//! *baseline*, written again from what it says), what *Sealane* takes, and the ratio of the last
//! two. A report's errors are named, with the right figure.

mod blobs;
mod gateway;
mod mesh;
mod record;
pub(crate) mod rich;
mod schema;
mod text;
mod triple;
mod zero_copy;

use std::path::PathBuf;

pub use record::record;
pub(crate) use text::HEAD;

use crate::measure::{BenchFigure, BenchHost, MeasurePlan};
use crate::programs::BenchPrograms;

/// A report, by the name of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportName {
    /// Rich messages in three layers of JSON.
    TripleJson,
    /// Five messages in JSON and MessagePack.
    GatewayCodec,
    /// Documents of a radio mesh, encrypted.
    MeshEncryption,
    /// Data messages forwarded by vehicles.
    ZeroCopy,
    /// Encrypted blobs of files.
    Blobs,
}

impl ReportName {
    /// All five, in the order of the way.
    pub const ALL: [ReportName; 5] = [
        ReportName::TripleJson,
        ReportName::GatewayCodec,
        ReportName::MeshEncryption,
        ReportName::ZeroCopy,
        ReportName::Blobs,
    ];

    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            ReportName::TripleJson => "triple-json",
            ReportName::GatewayCodec => "gateway-codec",
            ReportName::MeshEncryption => "mesh-encryption",
            ReportName::ZeroCopy => "zero-copy",
            ReportName::Blobs => "blobs",
        }
    }

    /// By that name.
    pub fn from_name(name: &str) -> Option<ReportName> {
        ReportName::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// The reports to measure, and how thoroughly.
#[derive(Debug, Clone)]
pub struct BookOptions {
    /// Which reports.
    pub names: Vec<ReportName>,
    /// Less of everything: a look.
    pub quick: bool,
    /// The vault that the blobs are compared with, and their own pipeline.
    pub programs: BenchPrograms,
    /// The folder on the disk that vaults are written to. A temporary folder by default.
    pub data: Option<PathBuf>,
}

impl BookOptions {
    fn plan(&self) -> MeasurePlan {
        if self.quick { MeasurePlan::quick() } else { MeasurePlan::full() }
    }
}

/// Reports, reproduced.
#[derive(Debug, Clone)]
pub struct ReportBook {
    /// Where they were measured.
    pub machine: BenchHost,
    /// One chapter for each.
    pub reports: Vec<BookReport>,
}

/// One report, reproduced.
#[derive(Debug, Clone)]
pub struct BookReport {
    /// Which.
    pub name: ReportName,
    /// Its subject.
    pub title: &'static str,
    /// How it and this differ in what they measured.
    pub about: &'static str,
    /// Its tables.
    pub tables: Vec<BookTable>,
    /// Its errors, and the corrections.
    pub corrections: Vec<ReportCorrection>,
}

/// One table.
#[derive(Debug, Clone, Default)]
pub struct BookTable {
    /// Its subject.
    pub title: String,
    /// A note on all rows.
    pub note: String,
    /// Its rows.
    pub rows: Vec<BookRow>,
}

/// One row.
#[derive(Debug, Clone, Default)]
pub struct BookRow {
    /// The quantity that is counted or timed.
    pub name: String,
    /// The report's figure.
    pub published: Option<BenchFigure>,
    /// The figure of the report's way here.
    pub baseline: Option<BenchFigure>,
    /// The figure of Sealane here.
    pub sealane: Option<BenchFigure>,
    /// A further note, or the demand.
    pub note: String,
}

/// An error of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportCorrection {
    /// The report's words.
    pub said: &'static str,
    /// The correction.
    pub right: String,
}

impl BookRow {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    fn published(mut self, figure: BenchFigure) -> Self {
        self.published = Some(figure);
        self
    }

    fn baseline(mut self, figure: BenchFigure) -> Self {
        self.baseline = Some(figure);
        self
    }

    fn sealane(mut self, figure: BenchFigure) -> Self {
        self.sealane = Some(figure);
        self
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// How many times better Sealane is than the baseline; below 1 it is worse.
    pub fn ratio(&self) -> Option<f64> {
        let (baseline, sealane) = (self.baseline?, self.sealane?);
        if baseline.unit != sealane.unit || baseline.value <= 0.0 || sealane.value <= 0.0 {
            return None;
        }
        Some(match baseline.unit.more_is_better() {
            true => sealane.value / baseline.value,
            false => baseline.value / sealane.value,
        })
    }
}

/// Why a report could not be reproduced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part of the product or of a baseline did not do its work.
    #[error("{0} did not work: nothing was measured")]
    Broken(&'static str),
    /// The tools of the vault's bench.
    #[error(transparent)]
    Vault(#[from] crate::vault::Error),
}

/// Reproduces reports; `progress` is told which, and the part of it that is done.
///
/// # Errors
/// [`Error`]; a slow result is none.
pub fn run(
    options: &BookOptions,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<ReportBook, Error> {
    let mut reports = vec![];
    for name in &options.names {
        let mut progress = |part| progress(name.name(), part);
        let plan = options.plan();
        reports.push(match name {
            ReportName::TripleJson => triple::report(&plan, &mut progress)?,
            ReportName::GatewayCodec => gateway::report(&plan, &mut progress)?,
            ReportName::MeshEncryption => mesh::report(&plan, &mut progress)?,
            ReportName::ZeroCopy => zero_copy::report(&plan, &mut progress)?,
            ReportName::Blobs => blobs::report(options, &mut progress)?,
        });
    }
    Ok(ReportBook { machine: BenchHost::here(), reports })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::FigureUnit;

    #[test]
    fn a_ratio_says_how_many_times_better() {
        let row = BookRow::new("").baseline(BenchFigure::ns(100.0)).sealane(BenchFigure::ns(20.0));
        assert_eq!(row.ratio(), Some(5.0));
        let rate = |value| BenchFigure::of(value, FigureUnit::PerSecond);
        assert_eq!(BookRow::new("").baseline(rate(100.0)).sealane(rate(50.0)).ratio(), Some(0.5));
        assert_eq!(
            BookRow::new("").baseline(rate(1.0)).sealane(BenchFigure::ns(1.0)).ratio(),
            None
        );
    }

    #[test]
    fn reports_in_memory_have_figures_in_every_row_that_claims_them() {
        let plan = MeasurePlan { warm_up: 0, rounds: 1, turn: std::time::Duration::ZERO };
        let mut silent = |_| ();
        for report in [
            triple::report(&plan, &mut silent).unwrap(),
            gateway::report(&plan, &mut silent).unwrap(),
            mesh::report(&plan, &mut silent).unwrap(),
            zero_copy::report(&plan, &mut silent).unwrap(),
        ] {
            assert!(!report.corrections.is_empty());
            for table in &report.tables {
                assert!(!table.rows.is_empty(), "{}", table.title);
                for row in &table.rows {
                    assert!(row.baseline.is_some() || row.sealane.is_some(), "{}", row.name);
                }
            }
        }
    }
}
