//! What `docs/expectations.txt` says is there is typed, from top to bottom, at one hub.

use std::fs;

use super::stage::{self, Stage};

const DATA: &str = include_str!("../../../../../docs/expectations.txt");

/// The rows that name this test.
const TEST: &str = "  test cargo test -p sealane-cli --test it pages::expectations";

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn what_is_said_to_be_there_is_there() {
    stage::enter("pages::expectations::as_process_typed_from_top_to_bottom");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_typed_from_top_to_bottom() {
    let mut stage = Stage::new();
    let work = stage.work();
    fs::create_dir(work.join("docs")).unwrap();
    for (name, text) in
        [("docs/letter.txt", "dear reader"), ("list", "*.tmp\n"), ("new", "another passphrase\n")]
    {
        fs::write(work.join(name), text).unwrap();
    }
    stage.up("reader", "sealane up");
    stage.run("reader", "sealane pub orders/new '{\"n\": 0}'");
    let rows = DATA.split("\n\n").filter(|row| row.lines().any(|line| line == TEST));
    let mut count = 0;
    for row in rows {
        let typed = row.lines().find_map(|line| line.strip_prefix("  typed "));
        stage.run("reader", typed.unwrap_or_else(|| panic!("`{row}` has nothing to be typed")));
        count += 1;
    }
    assert!(count >= 25, "{count} rows");
}
