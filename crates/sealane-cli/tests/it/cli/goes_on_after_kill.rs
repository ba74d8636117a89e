use std::io::{BufRead, BufReader};
use std::process::Stdio;

use sealane::{Client, Value};

use crate::cli::{NodeProcess, json, sealane};

#[test]
fn a_reader_goes_on_after_kill_and_restart() {
    let mut node = NodeProcess::start();
    let mut follow = node.follow(&["sub", "a/*", "--from", "first", "-n", "3"]);
    node.run(&["pub", "a/1", "1"]);
    assert_eq!(json(&follow.line()).field("data"), Some(&1_u64.into()));
    node.kill_and_restart();
    node.run(&["pub", "a/1", "2"]);
    node.run(&["pub", "a/2", "3"]);
    let rest = follow.rest();
    let mut rest: Vec<u64> = rest
        .lines()
        .map(|line| json(line).field("data").and_then(Value::as_u64).unwrap())
        .collect();
    rest.sort_unstable();
    assert_eq!(rest, [2, 3]);
}

#[test]
fn a_node_that_is_stopped_lets_its_readers_go_and_come_back() {
    let mut node = NodeProcess::start();
    let mut follow = node.follow(&["sub", "a", "--from", "first", "-n", "2"]);
    node.run(&["pub", "a", "1"]);
    follow.line();
    let mut stops = (0..5).map(|_| {
        let began = std::time::Instant::now();
        assert!(node.terminate().status.success());
        let took = began.elapsed();
        node.kill_and_restart();
        node.wait_for_reader("a");
        took
    });
    // A node that waits for readers in vain takes 5 s each time, and a busy machine not each time.
    assert!(stops.any(|took| took.as_secs() < 4), "it waits for a reader in vain");
    node.run(&["pub", "a", "2"]);
    assert_eq!(json(&follow.rest()).field("data"), Some(&2_u64.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_stores_all_once_though_the_node_is_killed() {
    let mut node = NodeProcess::start();
    let client = Client::connect(&node.address).unwrap();
    let mut member = client.subscribe("a").consumer("c").await.unwrap();
    let publisher = client.publisher("a").unwrap();
    let message = |n: u64| Value::Map(vec![("n".into(), n.into())]);
    for round in 0..5 {
        for n in 0..400 {
            publisher.send(&message(round * 400 + n)).await.unwrap();
        }
        tokio::task::block_in_place(|| node.kill_and_restart());
    }
    let stored = publisher.flush().await.unwrap();
    assert_eq!((stored.messages, stored.next), (2000, Some(2000)));
    let (mut seen, mut next) = (std::collections::BTreeSet::new(), 0);
    while seen.len() < 2000 {
        let message = member.next().await.unwrap().unwrap();
        message.ack();
        let n = message.value().unwrap().field("n").and_then(Value::as_u64).unwrap();
        assert_eq!(n, message.offset, "in order and once");
        if message.attempt == 1 {
            assert!(n >= next, "first deliveries keep their order");
            next = n + 1;
        }
        seen.insert(n);
    }
    assert!(seen.into_iter().eq(0..2000));
}

#[test]
fn sigterm_stops_cleanly() {
    let mut node = NodeProcess::start();
    node.run(&["pub", "a", "1"]);
    assert!(node.terminate().status.success());
}

#[test]
fn the_demo_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let output = sealane(home.path()).args(["demo", "--for", "2s", "--json"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout).lines().map(json).collect();
    assert_eq!(lines.len(), 4);
    let number = |line: &Value, name: &str| line.field(name).and_then(Value::as_u64).unwrap();
    let acknowledged = number(&lines[3], "acknowledged");
    assert!(acknowledged > 100, "{acknowledged}");
    assert_eq!((number(&lines[3], "relayed"), number(&lines[3], "relayedFound")), (1000, 0));
    let field = ["fieldToCloud", "fieldToCloudFound"].map(|name| number(&lines[3], name));
    assert_eq!(field, [60, 0]);
    for line in &lines[..3] {
        assert_eq!((number(line, "messages"), number(line, "lost")), (acknowledged, 0));
        assert!(number(line, "bytes") > 0);
    }
}

#[test]
fn the_demo_shows_what_happens_and_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut demo = sealane(home.path());
    let output = demo.args(["demo", "--for", "3s"]).env("TMPDIR", home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for said in [
        "json ",
        "msgpack ",
        "cbor ",
        "was killed",
        "the hub keeps",
        "a member reads",
        "relay",
        "Field to cloud",
    ] {
        assert!(text.contains(said), "{said} in {text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100 && !line.ends_with(' '), "{line}");
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_demo_that_is_told_to_stop_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut demo = sealane(home.path());
    demo.args(["demo", "--for", "60s"]).env("TMPDIR", home.path()).stdout(Stdio::piped());
    let mut demo = demo.stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(out.any(|line| line.unwrap().contains("cbor ")));
    let pid = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    out.for_each(drop);
    let output = demo.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("told to stop"), "{errors}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}
