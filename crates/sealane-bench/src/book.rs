//! The five reports that Sealane grew from, reproduced row by row on the machine at hand.
//!
//! Each row has what the report *published*, what its own way of doing it takes here (the
//! *baseline*, written again from what it says), what *Sealane* takes, and the ratio of the last
//! two. A report's errors are named, with the right figure.

mod blobs;
mod gateway;
mod mesh;
pub(crate) mod rich;
mod schema;
mod text;
mod triple;
mod zero_copy;

use std::path::PathBuf;

use serde::Serialize;

pub(crate) use text::HEAD;

use crate::args;
use crate::failure::Result;
use crate::measure::{BenchFigure, BenchHost, MeasurePlan};
use crate::programs::BenchPrograms;

/// A report, by the name of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReportName {
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
    pub(crate) const ALL: [ReportName; 5] = [
        ReportName::TripleJson,
        ReportName::GatewayCodec,
        ReportName::MeshEncryption,
        ReportName::ZeroCopy,
        ReportName::Blobs,
    ];

    /// As the command line names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReportName::TripleJson => "triple-json",
            ReportName::GatewayCodec => "gateway-codec",
            ReportName::MeshEncryption => "mesh-encryption",
            ReportName::ZeroCopy => "zero-copy",
            ReportName::Blobs => "blobs",
        }
    }
}

/// The reports to measure, and how thoroughly.
#[derive(Debug, clap::Args)]
pub(crate) struct BookOptions {
    /// Which: triple-json, gateway-codec, mesh-encryption, zero-copy, blobs
    #[arg(value_name = "NAME", required_unless_present = "all", value_parser = report_name)]
    names: Vec<ReportName>,
    /// All five
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Less of everything: a look
    #[arg(long)]
    quick: bool,
    /// The folder on the disk that vaults are written to [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write a page with charts into this file too; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn report_name(name: &str) -> Result<ReportName, String> {
    args::named(&ReportName::ALL, ReportName::name, name)
}

impl BookOptions {
    pub(crate) fn names(&self) -> &[ReportName] {
        if self.all { &ReportName::ALL } else { &self.names }
    }

    fn plan(&self) -> MeasurePlan {
        if self.quick { MeasurePlan::quick() } else { MeasurePlan::full() }
    }
}

/// Reports, reproduced.
#[derive(Debug, Serialize)]
pub(crate) struct ReportBook {
    pub(crate) machine: BenchHost,
    pub(crate) reports: Vec<BookReport>,
}

/// One report, reproduced.
#[derive(Debug, Serialize)]
pub(crate) struct BookReport {
    pub(crate) name: ReportName,
    pub(crate) title: &'static str,
    /// How it and this differ in what they measured.
    #[serde(skip)]
    pub(crate) about: &'static str,
    pub(crate) tables: Vec<BookTable>,
    pub(crate) corrections: Vec<ReportCorrection>,
}

/// One table; the note is on all rows.
#[derive(Debug, Default, Serialize)]
pub(crate) struct BookTable {
    pub(crate) title: String,
    #[serde(skip)]
    pub(crate) note: String,
    pub(crate) rows: Vec<BookRow>,
}

impl BookTable {
    fn new(title: impl Into<String>, note: impl Into<String>, rows: Vec<BookRow>) -> Self {
        Self { title: title.into(), note: note.into(), rows }
    }
}

/// One row: the report's figure, that of the report's way here, and that of Sealane here.
#[derive(Debug, Clone, Default)]
pub(crate) struct BookRow {
    pub(crate) name: String,
    pub(crate) published: Option<BenchFigure>,
    pub(crate) baseline: Option<BenchFigure>,
    pub(crate) sealane: Option<BenchFigure>,
    /// A further note, or the demand.
    pub(crate) note: String,
}

impl Serialize for BookRow {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        let value = |figure: Option<BenchFigure>| figure.map(|figure| figure.value);
        let unit = self.sealane.or(self.baseline).or(self.published);
        serde_json::json!({
            "name": self.name, "unit": unit.map(|figure| figure.unit.name()),
            "published": value(self.published), "baseline": value(self.baseline),
            "sealane": value(self.sealane), "ratio": self.ratio(), "note": self.note,
        })
        .serialize(serializer)
    }
}

/// An error of a report.
#[derive(Debug, Serialize)]
pub(crate) struct ReportCorrection {
    pub(crate) said: &'static str,
    pub(crate) right: String,
}

fn corrections<const N: usize>(all: [(&'static str, &str); N]) -> Vec<ReportCorrection> {
    all.map(|(said, right)| ReportCorrection { said, right: right.to_owned() }).into()
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
    pub(crate) fn ratio(&self) -> Option<f64> {
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

/// Reproduces reports; `progress` is told which, and the part of it that is done.
pub(crate) fn run(
    options: &BookOptions,
    programs: &BenchPrograms,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<ReportBook> {
    let mut reports = vec![];
    for name in options.names() {
        let mut progress = |part| progress(name.name(), part);
        let plan = options.plan();
        reports.push(match name {
            ReportName::TripleJson => triple::report(&plan, &mut progress)?,
            ReportName::GatewayCodec => gateway::report(&plan, &mut progress)?,
            ReportName::MeshEncryption => mesh::report(&plan, &mut progress)?,
            ReportName::ZeroCopy => zero_copy::report(&plan, &mut progress)?,
            ReportName::Blobs => blobs::report(options, programs, &mut progress)?,
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
