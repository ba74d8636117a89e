//! `sealane policy`: one readable answer, and a bad file that fails.

use std::path::Path;
use std::process::Output;

use crate::cli::{json, sealane, text};

fn policy(home: &Path, args: &[&str]) -> Output {
    sealane(home).arg("policy").args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_deciding_rule_is_named() {
    let home = tempfile::tempdir().unwrap();
    let explain = |args: &[&str]| said(&policy(home.path(), &[&["explain"], args].concat()));
    let counter = explain(&["counter", "--link", "foreign", "--battery", "3", "--rate", "0.5"]);
    let lines: Vec<&str> = counter.lines().collect();
    assert_eq!(lines[0], "counter (type 1): class C, readable by the group only");
    assert_eq!(lines[1], "  decided by   the link `foreign`, which raises the floor A");
    assert!(lines[3].contains("saving: at most 1 per second"), "{counter}");
    let strange = explain(&["4711", "--json"]);
    assert_eq!(text(&json(&strange), "class"), "C");
    assert_eq!(text(&json(&strange), "rule"), "floor");
    let location = explain(&["location", "--trust", "unknown", "--json"]);
    assert_eq!(text(&json(&location), "rule"), "trust unknown");
    assert_eq!(text(&json(&location), "class"), "P");
}

#[test]
fn the_class_in_a_group_and_in_a_pair_is_said() {
    let home = tempfile::tempdir().unwrap();
    let explain = |args: &[&str]| said(&policy(home.path(), &[&["explain"], args].concat()));
    let chat = explain(&["chat"]);
    assert!(chat.contains("\n  in a group   class S, its floor there\n"), "{chat}");
    assert!(chat.contains("\n  in a pair    class P\n"), "{chat}");
    let command = explain(&["command"]);
    assert!(command.contains("\n  in a group   not sent: it needs class P\n"), "{command}");
    assert!(!explain(&["location"]).contains("in a group"));
    let file = home.path().join("policy.toml");
    std::fs::write(
        &file,
        "version = 1\n[type.chat]\ngroup_floor = 'C'\nbecause = 'a club of old friends'\n",
    )
    .unwrap();
    let classes = |args: &[&str]| {
        let explained = json(&explain(&[args, &["--json"]].concat()));
        ["floor", "groupFloor", "inGroup", "inPair"].map(|name| text(&explained, name))
    };
    assert_eq!(classes(&["chat"]), ["C", "S", "S", "P"]);
    assert_eq!(classes(&["chat", "--file", file.to_str().unwrap()]), ["C", "C", "C", "P"]);
    let command = json(&explain(&["command", "--json"]));
    assert_eq!(command.field("inGroup"), Some(&sealane::Value::Null));
}

#[test]
fn every_reachable_class_is_listed() {
    let home = tempfile::tempdir().unwrap();
    let table = said(&policy(home.path(), &["check"]));
    let cells = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(cells("counter"), "A A C A C");
    assert_eq!(cells("location"), "C C P C P");
    assert_eq!(cells("chat"), "C S P C P");
    assert_eq!(cells("emergency"), "S S S S");
    let records = said(&policy(home.path(), &["check", "--json"]));
    assert_eq!(records.lines().count(), 14);
}

#[test]
fn a_bad_file_fails_by_name_and_line_wherever_it_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("policy.toml");
    std::fs::write(&file, "version = 1\n\n[type.emergency]\nfloor = \"C\"\n").unwrap();
    let config = home.path().join("config.toml");
    // The name is meant from the folder of the file that says it.
    std::fs::write(&config, "policy = \"policy.toml\"\n").unwrap();
    let file = file.to_str().unwrap();
    for args in [
        vec!["check", file],
        vec!["explain", "chat", "--file", file],
        vec!["check", "--config", config.to_str().unwrap()],
    ] {
        let output = policy(home.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("line 4") && error.contains("`emergency`"), "{error}");
        assert!(error.contains("[SL-POLICY-05]\n  hint: Remove the floor"), "{error}");
        assert!(output.stdout.is_empty());
    }
    let missing = policy(home.path(), &["check", "none.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    let unknown = policy(home.path(), &["explain", "locaton"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_type_of_an_application_is_shown_with_the_floor_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("policy.toml");
    std::fs::write(&file, "version = 1\n[type.72]\nfloor = 'S'\n").unwrap();
    let file = file.to_str().unwrap();
    let explain = |number: &str| said(&policy(home.path(), &["explain", number, "--file", file]));
    let (own, other) = (explain("72"), explain("73"));
    assert!(own.starts_with("72 (of applications): class S"), "{own}");
    assert!(own.contains("the floor S (of the file)"), "{own}");
    assert!(
        other.starts_with("73 (a number without a name, judged as unknown): class C"),
        "{other}"
    );
    let checked = said(&policy(home.path(), &["check", file, "--json"]));
    let last = json(checked.lines().last().unwrap());
    assert_eq!([text(&last, "type"), text(&last, "floor")], ["72", "S"]);
    assert!(!said(&policy(home.path(), &["check"])).contains("72"));
}
