//! `sealane bench cost` on a user's own messages: figures, a page, and what was no message.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use sealane::Value;
use sealane_codec::{Codec, encode};

use crate::{feed, json, sealane, text};

fn lines() -> String {
    let line = |n| format!("{{\"id\":\"m-{n}\",\"lat\":48.25,\"ok\":true,\"n\":{n}}}\n");
    let mut text: String = (0..40).map(line).collect();
    text.push_str("{\"broken\":\n");
    text
}

fn bench(home: &Path, args: &[&str], input: &str) -> Value {
    let mut command = sealane(home);
    let output = feed(command.args(["--json", "bench", "cost", "--quick"]).args(args), input);
    json(&said(&output))
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
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

#[test]
fn the_report_has_every_way_and_its_page_draws_them() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("cost.html");
    let report = bench(home.path(), &["-", "--html", page.to_str().unwrap()], &lines());
    let input = report.field("input").unwrap();
    assert_eq!((number(input, "messages"), number(input, "broken")), (40.0, 1.0));
    let Some(Value::Array(refusals)) = input.field("refusals") else { panic!() };
    assert!(refusals[0].as_text().unwrap().starts_with("-:41: "), "{refusals:?}");
    let ways = rows(&report, "ways");
    assert_eq!(ways.len(), 24);
    let composed = ways.iter().filter(|way| way.field("composedWith") != Some(&Value::Null));
    assert_eq!(composed.count(), 3);
    for way in &ways {
        let name = text(way, "name");
        assert!(number(way, "cpuSPerMillion") > 0.0, "{name}");
        assert!(number(way, "bytesWire") > number(way, "bytesCompressed"), "{name}");
        assert!(number(way, "bytesRest") > 0.0, "{name}");
    }
    every_field_is_documented(&report);
    draws(&page, 4);
}

/// A browser shows so many charts, light and dark, and asks nobody for anything.
fn draws(page: &Path, charts: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/js");
    let peer = folder.join("node_modules/playwright-core");
    assert!(peer.exists(), "npm packages are missing; run: cargo xtask needs");
    let script = folder.join("page.mjs");
    let mut node = Command::new("node");
    let output = node.arg(script).arg(page).arg(charts.to_string()).output();
    let output = output.expect("Node.js 20 or later must be installed as `node`");
    assert!(said(&output).contains("charts are drawn"));
}

/// The names in the report stand in the table of its schema.
fn every_field_is_documented(value: &Value) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/BENCHMARKING.md");
    let page = fs::read_to_string(page).unwrap();
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

#[test]
fn the_same_messages_have_the_same_bytes_and_allocations() {
    let home = tempfile::tempdir().unwrap();
    let counts = || {
        let report = bench(home.path(), &["-", "--no-hub"], &lines());
        let names = ["bytesBody", "bytesWire", "bytesRest", "allocations"];
        let of = |row: &Value| names.map(|name| number(row, name));
        let steps = rows(&report, "steps");
        let steps = steps.iter().map(|row| number(row, "allocations")).collect::<Vec<_>>();
        (rows(&report, "ways").iter().map(of).collect::<Vec<_>>(), steps)
    };
    assert_eq!(counts(), counts());
}

#[test]
fn all_kinds_of_files_are_read() {
    let home = tempfile::tempdir().unwrap();
    let value = json(r#"{"a":[1,2.5,"three"]}"#);
    for (codec, name) in [(Codec::MsgPack, "in.msgpack"), (Codec::Cbor, "in.cbor")] {
        let mut bytes = vec![];
        (0..7).for_each(|_| encode(codec, &value, &mut bytes));
        fs::write(home.path().join(name), bytes).unwrap();
    }
    let folder = home.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("one.json"), r#"{"a":1}"#).unwrap();
    fs::write(folder.join("two.bin"), [7; 100]).unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let files = [path("in.msgpack"), path("in.cbor"), path("folder")];
    let files: Vec<&str> = files.iter().map(String::as_str).chain(["--no-hub"]).collect();
    let input = bench(home.path(), &files, "").field("input").unwrap().clone();
    assert_eq!((number(&input, "messages"), number(&input, "opaque")), (16.0, 1.0));
    assert_eq!(number(&input, "broken"), 0.0);
}

#[test]
fn an_input_without_messages_is_refused_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    let nothing = home.path().join("empty.json");
    fs::write(&nothing, "\n").unwrap();
    let mut command = sealane(home.path());
    let output = command.args(["bench", "cost", nothing.to_str().unwrap()]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("[SL-CLI-20]"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn reports_are_reproduced_row_by_row_with_a_page() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("book.html");
    let mut command = sealane(home.path());
    let names = ["triple-json", "gateway-codec", "mesh-encryption", "zero-copy"];
    command.args(["--json", "bench", "report", "--quick", "--html"]).arg(&page).args(names);
    let book = json(&said(&command.output().unwrap()));
    every_field_is_documented(&book);
    let reports = rows(&book, "reports");
    assert_eq!(reports.iter().map(|report| text(report, "name")).collect::<Vec<_>>(), names);
    let figure = |name: &str, column: &str| {
        let tables = reports.iter().flat_map(|report| rows(report, "tables"));
        let mut rows = tables.flat_map(|table| rows(&table, "rows"));
        number(&rows.find(|row| text(row, "name") == name).unwrap(), column)
    };
    assert_eq!(figure("8 KiB, layer 3", "baseline"), 104_394.0);
    assert_eq!(figure("64 KiB, layer 3", "baseline"), 792_503.0);
    assert_eq!(figure("256 KiB, layer 3", "baseline"), 3_151_811.0);
    assert_eq!(figure("medium, MessagePack", "baseline"), 226.0);
    assert_eq!(figure("medium, MessagePack", "sealane"), 216.0);
    assert_eq!(figure("heartbeat", "baseline"), 46.0);
    assert_eq!(figure("heartbeat reply", "baseline"), 52.0);
    assert_eq!(figure("up, 1500 B", "baseline"), 1522.0);
    assert_eq!(figure("down, 1500 B", "baseline"), 1528.0);
    let tables = reports.iter().map(|report| rows(report, "tables").len()).sum::<usize>();
    // One table has rows of two units, and no chart.
    draws(&page, tables - 1);
}

#[test]
fn an_unknown_report_is_refused_with_the_names() {
    let home = tempfile::tempdir().unwrap();
    let output = sealane(home.path()).args(["bench", "report", "nothing"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mesh-encryption"));
}
