//! Reports for programs: `docs/BENCHMARKING.md`, section *Reports as JSON*.

use sealane_message::Value;

use super::{BookReport, BookRow, BookTable, ReportBook, ReportCorrection};
use crate::cost::record::{machine, map};
use crate::measure::BenchFigure;

/// The book as one value, version 1.
pub fn record(book: &ReportBook) -> Value {
    let reports = book.reports.iter().map(report).collect();
    map(vec![
        ("v", Value::from(1_u64)),
        ("machine", machine(&book.machine)),
        ("reports", Value::Array(reports)),
    ])
}

fn report(report: &BookReport) -> Value {
    map(vec![
        ("name", report.name.name().into()),
        ("title", report.title.into()),
        ("tables", Value::Array(report.tables.iter().map(table).collect())),
        ("corrections", Value::Array(report.corrections.iter().map(correction).collect())),
    ])
}

fn table(table: &BookTable) -> Value {
    map(vec![
        ("title", table.title.as_str().into()),
        ("rows", Value::Array(table.rows.iter().map(row).collect())),
    ])
}

fn row(row: &BookRow) -> Value {
    let value = |figure: Option<BenchFigure>| figure.map_or(Value::Null, |it| Value::F64(it.value));
    let unit = row.sealane.or(row.baseline).or(row.published).map(|figure| figure.unit.name());
    map(vec![
        ("name", row.name.as_str().into()),
        ("unit", unit.map_or(Value::Null, Value::from)),
        ("published", value(row.published)),
        ("baseline", value(row.baseline)),
        ("sealane", value(row.sealane)),
        ("ratio", row.ratio().map_or(Value::Null, Value::F64)),
        ("note", row.note.as_str().into()),
    ])
}

fn correction(correction: &ReportCorrection) -> Value {
    map(vec![("said", correction.said.into()), ("right", correction.right.as_str().into())])
}
