//! The first hour on a terminal: where to go from `up`, keys that fit, and colours.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::cli::{NodeProcess, json, on_terminal, sealane, text};

/// The lines of `up`, up to its last one.
fn greeting(home: &std::path::Path, environment: &[(&str, &str)]) -> Vec<String> {
    let mut up = sealane(home);
    up.args(["up", "--listen", "127.0.0.1:0", "--data", "data"]).current_dir(home);
    let mut child = up.envs(environment.iter().copied()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut said = vec![];
    while !said.last().is_some_and(|line: &String| line.contains("Ctrl-C")) {
        said.push(lines.next().unwrap_or_else(|| panic!("{said:?}")));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn a_node_says_what_to_open_and_what_to_type() {
    let home = tempfile::tempdir().unwrap();
    let said = greeting(home.path(), &[]);
    let address = said[0].split("  ").nth(1).unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{said:?}");
    let port = address.strip_prefix("http://").unwrap();
    let line = |start: &str| {
        let found = said.iter().find_map(|line| line.trim().strip_prefix(start));
        found.unwrap_or_else(|| panic!("no `{start}` in {said:?}")).trim().to_owned()
    };
    assert_eq!(line("console"), format!("open {address} in a browser"));
    assert!(line("access").starts_with("every program on this machine"));
    assert!(line("data").ends_with("/data"));
    assert_eq!(line("try"), format!("sealane sub hello --server {port}"));
    let token = ["token", "new", "phone", "--read", "**", "--data", "data"];
    let made = sealane(home.path()).args(token).current_dir(home.path()).output().unwrap();
    assert!(made.status.success());
    let said = greeting(home.path(), &[]);
    assert!(said.iter().any(|line| line.contains("whoever has one of 1 token;")), "{said:?}");
}

#[test]
fn a_key_fits_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let keys = ["--keys", "keys"];
    let run = |args: &[&str]| {
        let mut command = sealane(home.path());
        let output = command.args(args).args(keys).current_dir(home.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["key", "new", "alice"]);
    for shown in [run(&["key", "show"]), run(&["key", "card", "--text"])] {
        for line in shown.lines().filter(|line| !line.starts_with("folder")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    // A user that wants the whole key asks for it.
    assert!(run(&["key", "show", "--public"]).contains("sealane1"));
}

#[test]
fn one_is_not_many() {
    let node = NodeProcess::start();
    let said = node.run(&["pub", "a", "{}"]);
    assert!(said.starts_with("a offset 0 "), "{said}");
    assert!(node.run(&["stream", "info", "a"]).contains("kept          1 message, "));
    assert_eq!(node.run(&["stream", "purge", "a"]), "a: 1 message purged, first 1, next 1\n");
    node.run(&["key", "new", "alice"]);
    node.run(&["group", "new", "crew"]);
    assert_eq!(node.run(&["group", "rotate", "crew"]), "crew: epoch 1, 1 member\n");
}

/// Colours help a person to find something; a file and a pipe have none.
#[test]
#[ignore = "lab: needs script"]
fn colours_are_for_terminals_alone() {
    let node = NodeProcess::start();
    let shown = |no_colour: Option<&str>, words: &str| {
        let mut script = on_terminal(words);
        script.env("SEALANE_SERVER", &node.address).env("HOME", node.home()).env("TERM", "xterm");
        script.env_remove("NO_COLOR").envs(no_colour.map(|value| ("NO_COLOR", value)));
        let output = script.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    node.run(&["pub", "a", "{}"]);
    for words in ["stream info none", "sub a --from first -n 1", "doctor"] {
        assert!(shown(None, words).contains("\x1b["), "{words}");
        assert!(!shown(Some("1"), words).contains("\x1b["), "{words}");
        let words: Vec<&str> = words.split(' ').collect();
        let output = node.command(&words).env("TERM", "xterm").output().unwrap();
        let all = [output.stdout, output.stderr].concat();
        assert!(!all.contains(&0x1b), "{words:?}");
    }
    // For programs on a terminal, too, JSON is JSON.
    let line = shown(None, "--json stream info a");
    assert_eq!(text(&json(line.trim_end()), "stream"), "a");
}
