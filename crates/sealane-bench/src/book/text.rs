//! Reports for people at a terminal.

use std::fmt;

use super::{BookReport, BookRow, BookTable, ReportBook};
use crate::measure::{BenchFigure, FigureUnit};
use crate::text::table;

/// The heads of a table's columns.
pub(crate) const HEAD: [&str; 6] =
    ["", "published", "reproduced baseline", "Sealane", "ratio", "note"];

impl fmt::Display for ReportBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        self.reports.iter().try_for_each(|report| write!(f, "\n{report}"))
    }
}

impl fmt::Display for BookReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n{}", self.name.name(), self.title, self.about)?;
        self.tables.iter().try_for_each(|table| write!(f, "\n{table}"))?;
        writeln!(f, "\nwhat the report says, and what is right")?;
        self.corrections
            .iter()
            .try_for_each(|correction| writeln!(f, "- {}: {}", correction.said, correction.right))
    }
}

impl fmt::Display for BookTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        if !self.note.is_empty() {
            writeln!(f, "{}", self.note)?;
        }
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.cells()).collect();
        write!(f, "{}", table(&HEAD, &rows, &[0, 5]))
    }
}

impl BookRow {
    /// The cells of its columns.
    pub(crate) fn cells(&self) -> Vec<String> {
        let shown = |figure: Option<BenchFigure>| {
            figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string())
        };
        let times = |ratio| BenchFigure::of(ratio, FigureUnit::Times).to_string();
        vec![
            self.name.clone(),
            shown(self.published),
            shown(self.baseline),
            shown(self.sealane),
            self.ratio().map_or_else(|| "-".to_owned(), times),
            self.note.clone(),
        ]
    }
}
