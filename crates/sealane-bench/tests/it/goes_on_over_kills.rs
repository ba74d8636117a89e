//! Relays and ends that are killed go on, and nothing is sealed or taken twice: what the proof
//! shows at length, with a few kills.

use std::process::{Command, Stdio};

use crate::PROGRAM;
use sealane_testing::{repository, run, succeed, until};

/// Each machine of the row once, and the first one again.
const KILLS: &str = "5";

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn killed_relays_and_ends_go_on_and_take_nothing_twice() {
    let words = ["relay", "--only", "kills", "--kills", KILLS, "--without-iperf"];
    let shown = run(PROGRAM, &words);
    println!("{shown}");
    let line = |begin: &str| shown.lines().find(|line| line.starts_with(begin)).unwrap();
    for (end, contexts) in [("car", 3), ("server", 2)] {
        let line = line(&format!("the captures of {end}: "));
        let is_right = |what: &str| assert!(line.contains(what), "{line}");
        is_right(&format!("under {contexts} contexts, 0 of them twice"));
        is_right("datagrams taken, 0 of them twice");
        // The frames that were sent to it once more did arrive.
        assert!(!line.contains("frames came, 0 of them again"), "{line}");
    }
}

/// The script that judges the captures finds the faults that it is to find.
#[test]
#[ignore = "lab: needs Python 3"]
fn captures_that_repeat_themselves_are_told_from_those_that_do_not() {
    let mut python = Command::new("python3");
    python.env("PYTHONDONTWRITEBYTECODE", "1").arg(repository("tests/python/captures.py"));
    assert!(succeed(python.arg("self-test")).contains("captures are read"));
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_run_that_is_killed_leaves_no_namespace_behind() {
    let mut command = Command::new(PROGRAM);
    command.args(["relay", "--only", "kills", "--without-iperf"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let own = format!("sealane-{}-", run.id());
    let are_there = || namespaces().iter().any(|name| name.starts_with(&own));
    let last = format!("{own}server");
    until("they are made", || namespaces().contains(&last));
    run.kill().unwrap();
    run.wait().unwrap();
    until("they are gone", || !are_there());
}

fn namespaces() -> Vec<String> {
    let folder = std::fs::read_dir("/run/netns").into_iter().flatten();
    folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
