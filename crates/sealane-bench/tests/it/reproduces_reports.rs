//! `sealane-bench report`: the sizes that the reports had, and pages that draw them.

use crate::{bench, draws, every_field_is_documented, json, number, rows, said, text};

#[test]
#[ignore = "lab: needs Chromium and npm packages"]
fn reports_are_reproduced_row_by_row_with_a_page() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("book.html");
    let mut command = bench(home.path());
    let names = ["triple-json", "gateway-codec", "mesh-encryption", "zero-copy"];
    command.args(["--json", "report", "--quick", "--html"]).arg(&page).args(names);
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
    let output = bench(home.path()).args(["report", "nothing"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mesh-encryption"));
}
