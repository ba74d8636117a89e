//! The operator of a hub sees and steers consumers, cancels delayed messages, and purges streams.
//! The operator also reads the present messages without waiting for more.

use std::process::Stdio;

use sealane::Value;

use crate::cli::{NodeProcess, json, on_terminal, text};

fn number(value: &Value, name: &str) -> u64 {
    value.field(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name} of {value:?}"))
}

/// A node with six messages, and a consumer that was given three and has done one of them.
fn node() -> NodeProcess {
    let node = NodeProcess::start();
    for n in 0..6 {
        node.run(&["pub", "work", &format!(r#"{{"n":{n}}}"#)]);
    }
    node.run(&["sub", "work", "--consumer", "c", "-n", "1"]);
    node.run(&["sub", "work", "--consumer", "c", "-n", "2", "--no-ack"]);
    node
}

fn info(node: &NodeProcess) -> Value {
    json(&node.run(&["--json", "consumer", "info", "work", "c"]))
}

/// The numbers of the messages that are printed.
fn read(node: &NodeProcess, args: &[&str]) -> Vec<u64> {
    let all = [&["sub", "work"], args].concat();
    node.run(&all).lines().map(|line| number(&json(line), "n")).collect()
}

#[test]
fn consumers_are_seen_and_steered() {
    let node = node();
    let table = node.run(&["consumer", "ls", "work"]);
    assert!(table.starts_with("CONSUMER") && table.lines().count() == 2, "{table}");
    let shown = info(&node);
    let counts = ["next", "lag", "inFlight", "held", "pausedMs"].map(|name| number(&shown, name));
    assert_eq!(counts, [3, 3, 2, 0, 0]);
    assert!(node.run(&["consumer", "info", "work", "c"]).contains("lag           3 messages, "));

    assert!(node.run(&["consumer", "pause", "work", "c"]).starts_with("work c paused: next 3"));
    assert!(number(&info(&node), "pausedMs") > 0);
    node.run(&["consumer", "resume", "work", "c"]);
    node.run(&["consumer", "skip", "work", "c", "--offset", "1-3"]);
    assert_eq!((number(&info(&node), "next"), number(&info(&node), "inFlight")), (4, 0));
    assert_eq!(read(&node, &["--consumer", "c", "-n", "2", "--no-ack"]), [4, 5]);
    node.run(&["consumer", "redeliver", "work", "c"]);
    assert_eq!(read(&node, &["--consumer", "c", "-n", "2"]), [4, 5]);
    node.run(&["consumer", "reset", "work", "c", "--to", "first"]);
    assert_eq!(number(&info(&node), "lag"), 6);
    node.run(&["consumer", "reset", "work", "c", "--to", "-1h"]);
    assert_eq!(read(&node, &["--consumer", "c", "-n", "1"]), [0]);

    assert_eq!(node.run(&["consumer", "rm", "work", "c"]), "work c removed\n");
    let refused = node.command(&["consumer", "info", "work", "c"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("SL-HUB-35") && said.contains("\n  hint: "), "{said}");
    node.run(&["sub", "work", "--inbox", "-n", "1"]);
    node.run(&["consumer", "pause", "work", "--inbox"]);
    let unnamed = node.command(&["consumer", "pause", "work"]).output().unwrap();
    assert_eq!(unnamed.status.code(), Some(2));
}

#[test]
fn what_is_held_back_is_listed_and_cancelled() {
    let node = NodeProcess::start();
    let due = json(&node.run(&["--json", "pub", "work", "later", "--delay", "1h"]));
    let listed = json(&node.run(&["--json", "delayed", "ls", "work"]));
    assert_eq!(text(&listed, "id"), text(&due, "id"));
    assert_eq!(number(&listed, "dueMs"), number(&due, "dueMs"));
    let id = text(&due, "id");
    let said = node.run(&["delayed", "cancel", "work", &id]);
    assert_eq!(said, format!("work {id}: 1 cancelled\n"));
    assert_eq!(node.run(&["delayed", "ls", "work"]).lines().count(), 1);
    let again = node.command(&["delayed", "cancel", "work", &id]).output().unwrap();
    assert_eq!(again.status.code(), Some(4));
}

#[test]
fn streams_are_purged_to_a_place_or_to_a_count() {
    let node = node();
    let purged = json(&node.run(&["--json", "stream", "purge", "work", "--before", "2"]));
    let counts = ["purged", "first", "next"].map(|name| number(&purged, name));
    assert_eq!(counts, [2, 2, 6]);
    assert_eq!(read(&node, &["--until-end"]), [2, 3, 4, 5]);
    let said = node.run(&["stream", "purge", "work", "--keep", "1"]);
    assert_eq!(said, "work: 3 messages purged, first 5, next 6\n");
    assert_eq!(node.run(&["stream", "purge", "work"]).lines().count(), 1);
    assert_eq!(number(&json(&node.run(&["--json", "stream", "info", "work"])), "count"), 0);
    let beyond = node.command(&["stream", "purge", "work", "--before", "9"]).output().unwrap();
    assert_eq!(beyond.status.code(), Some(4));
}

#[test]
fn what_is_there_is_read_without_waiting_for_more() {
    let node = node();
    node.run(&["pub", "other", r#"{"n":9}"#]);
    assert_eq!(read(&node, &["--until-end"]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(read(&node, &["--last", "2", "--until-end"]), [4, 5]);
    assert_eq!(read(&node, &["--last", "2", "-n", "1"]), [4]);
    assert_eq!(read(&node, &["--last", "100", "-n", "6"]).len(), 6);
    assert_eq!(read(&node, &["--from", "3", "--until-end", "-n", "2"]), [3, 4]);
    assert_eq!(node.run(&["sub", "**", "--until-end"]).lines().count(), 7);
    assert_eq!(node.run(&["sub", "nowhere", "--until-end"]), "");
    let pattern = node.command(&["sub", "**", "--last", "2"]).output().unwrap();
    assert_eq!(pattern.status.code(), Some(2));
}

#[test]
#[ignore = "lab: needs script"]
fn a_terminal_shows_when_and_where_and_a_pipe_the_body() {
    let node = node();
    let on = |words: &str| {
        let mut script = on_terminal(words);
        script.env("SEALANE_SERVER", &node.address).env("HOME", node.home());
        let output = script.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = on("sub work --from 5 -n 1");
    let (time, rest) = shown.trim_end().split_once("  ").unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{shown}");
    assert!(rest.starts_with("work  5  {"), "{shown}");
    let raw = on("sub work --from 5 -n 1 --raw");
    assert!(raw.starts_with('{'), "{raw}");
    assert!(node.run(&["sub", "work", "--from", "5", "-n", "1"]).starts_with('{'));
}
