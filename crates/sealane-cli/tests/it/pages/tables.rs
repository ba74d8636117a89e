//! The commands that pages for users of other programs show are typed, from top to bottom.

use std::fs;

use super::stage::{self, Stage};

/// One row of a table.
struct Row {
    typed: &'static str,
    /// Whether it is ended by who typed it.
    goes_on: bool,
}

/// The rows whose second cell is typed. A pipe within a cell stands behind a backslash.
fn rows(page: &'static str) -> Vec<Row> {
    let cells = |line: &'static str| -> Vec<&'static str> { line.split(" | ").collect() };
    let all = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let row = |cells: Vec<&'static str>| match cells.as_slice() {
        [_, "here", _] => None,
        [_, typed, note] => {
            let typed = typed.strip_prefix('`').and_then(|typed| typed.strip_suffix('`'));
            let typed = typed.unwrap_or_else(|| panic!("{cells:?} has nothing to be typed"));
            Some(Row { typed, goes_on: note.starts_with("goes on") && !typed.contains(" -n ") })
        }
        _ => panic!("{cells:?} is no row of three"),
    };
    all.map(cells).filter_map(row).collect()
}

/// Types all of a page. A page that needs a node begins with it.
fn type_all(page: &'static str, at_least: usize) {
    let mut stage = Stage::new();
    let work = stage.work();
    fs::create_dir(work.join("docs")).unwrap();
    for (name, text) in [
        ("docs/letter.txt", "dear reader"),
        ("docs/draft.tmp", "not this"),
        ("lines", "one\ntwo\nthree\n"),
        ("file", "21.8"),
        ("list", "*.tmp\n"),
        ("new", "another passphrase\n"),
    ] {
        fs::write(work.join(name), text).unwrap();
    }
    let rows = rows(page);
    assert!(rows.len() >= at_least, "{} rows", rows.len());
    let mut following = Vec::new();
    for Row { typed, goes_on } in rows {
        if typed.starts_with("sealane up") {
            stage.up("reader", typed);
        } else if goes_on {
            let running = stage.start("reader", typed);
            following.push(running);
            stage.wait_for_readers(running, following.len());
        } else {
            stage.run("reader", typed);
        }
    }
    for running in following {
        // Some have ended with their stream, which the page removes.
        stage.interrupt(running);
    }
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn from_nats() {
    stage::enter("pages::tables::as_process_from_nats");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_from_nats() {
    type_all(include_str!("../../../../../docs/FROM-NATS.md"), 38);
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn from_centrifugo() {
    stage::enter("pages::tables::as_process_from_centrifugo");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_from_centrifugo() {
    type_all(include_str!("../../../../../docs/FROM-CENTRIFUGO.md"), 22);
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn from_mqtt() {
    stage::enter("pages::tables::as_process_from_mqtt");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_from_mqtt() {
    type_all(include_str!("../../../../../docs/FROM-MQTT.md"), 25);
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn from_restic() {
    stage::enter("pages::tables::as_process_from_restic");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_from_restic() {
    type_all(include_str!("../../../../../docs/FROM-RESTIC.md"), 30);
}
