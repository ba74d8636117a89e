//! The real binary, in temporary folders and on free ports.

mod finds_sealane;
mod goes_on_over_kills;
mod measures_messages;
mod races_peers;
mod reads_nats_bench;
mod reproduces_reports;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use sealane_codec::Codec;
use sealane_message::Value;
use sealane_testing::{feed, repository, run_script};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sealane-bench");

/// The program with an empty environment of its own.
fn bench(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

/// The output of a command, which must have succeeded.
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(line: &str) -> Value {
    sealane_codec::decode(Codec::Json, line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"))
}

fn text(value: &Value, name: &str) -> String {
    value.field(name).and_then(Value::as_text).unwrap_or_else(|| panic!("{name}")).to_owned()
}

fn rows(report: &Value, name: &str) -> Vec<Value> {
    let Some(Value::Array(rows)) = report.field(name) else { panic!("{name}") };
    rows.clone()
}

fn number(row: &Value, name: &str) -> f64 {
    match row.field(name) {
        Some(Value::F64(n)) => *n,
        Some(Value::I64(n)) => *n as f64,
        other => panic!("{name}: {other:?}"),
    }
}

/// A browser shows so many charts, light and dark, and asks nobody for anything.
fn draws(page: &Path, charts: usize) {
    let arguments = [page.to_str().unwrap(), &charts.to_string()];
    assert!(run_script("page.mjs", "playwright-core", &arguments).contains("charts are drawn"));
}

/// The names in a report stand in the table of its schema.
fn every_field_is_documented(value: &Value) {
    let page = fs::read_to_string(repository("docs/BENCHMARKING.md")).unwrap();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Map(fields) => {
                for (name, value) in fields {
                    assert!(page.contains(&format!("`{name}`")), "`{name}` is not documented");
                    open.push(value);
                }
            }
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
}
