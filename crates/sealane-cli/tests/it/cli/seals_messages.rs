//! Two people, one hub that sees nothing: everything by command.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::cli::{NodeProcess, feed, json, text};

/// The key folder of somebody, beside the node's data.
fn keys(node: &NodeProcess, who: &str) -> PathBuf {
    node.home().join(who)
}

fn output(node: &NodeProcess, who: &str, args: &[&str]) -> Output {
    node.command(args).env("SEALANE_KEYS", keys(node, who)).output().unwrap()
}

fn run(node: &NodeProcess, who: &str, args: &[&str]) -> Vec<u8> {
    let output = output(node, who, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn said(node: &NodeProcess, who: &str, args: &[&str]) -> String {
    String::from_utf8(run(node, who, args)).unwrap()
}

/// Runs a verb that writes bytes, into a file.
fn file(node: &NodeProcess, who: &str, name: &str, args: &[&str]) -> String {
    let path = node.home().join(name);
    std::fs::write(&path, run(node, who, args)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A base that is the authority of `fleet`, and members who have joined.
fn fleet(members: &[&str]) -> NodeProcess {
    let node = NodeProcess::start();
    run(&node, "base", &["key", "new", "base"]);
    run(&node, "base", &["group", "new", "fleet"]);
    for who in members {
        run(&node, who, &["key", "new", who]);
        let card = file(&node, who, "card", &["key", "card"]);
        let invite = ["group", "invite", "fleet", &card, "--server", &node.address];
        let invitation = file(&node, "base", "invitation", &invite);
        run(&node, who, &["group", "join", &invitation]);
    }
    node
}

fn lines(node: &NodeProcess, who: &str, topic: &str, count: &str) -> String {
    let args = ["sub", topic, "--group", "fleet", "--from", "first", "--json", "-n", count];
    said(node, who, &args)
}

#[test]
fn what_one_publishes_another_reads_with_its_sender_and_class() {
    let node = fleet(&["car"]);
    let publish = ["pub", "places/7", "{\"lat\": 48.2}", "--group", "fleet"];
    run(&node, "car", &[&publish[..], &["--type", "location"]].concat());
    run(&node, "car", &[&publish[..], &["--type", "emergency", "--codec", "cbor"]].concat());
    let mut sub = node.command(&["pub", "places/7", "-", "--group", "fleet"]);
    let fed = feed(sub.env("SEALANE_KEYS", keys(&node, "base")), "one\ntwo\n");
    assert!(fed.status.success(), "{}", String::from_utf8_lossy(&fed.stderr));
    let all = lines(&node, "base", "places/*", "4");
    let seals: Vec<_> = all
        .lines()
        .map(|line| {
            let seal = json(line).field("seal").unwrap().clone();
            (text(&seal, "sender"), text(&seal, "class"), text(&seal, "type"))
        })
        .collect();
    let seal = |sender: &str, class: &str, name: &str| (sender.into(), class.into(), name.into());
    assert_eq!(seals[0], seal("car", "C", "location"));
    assert_eq!(seals[1], seal("car", "S", "emergency"));
    assert_eq!(seals[2], seal("base", "C", "unknown"));
    let plain = said(&node, "car", &["sub", "places/7", "--group", "fleet", "--from", "3", "-n1"]);
    assert_eq!(plain, "{\"data\":\"two\"}\n");
    // Without keys it is seen that it is sealed, and no more.
    let blind = node.run(&["sub", "places/7", "--from", "first", "-n", "1"]);
    assert!(!blind.contains("48.2") && blind.contains("\"class\":\"C\""), "{blind}");
}

#[test]
fn what_cannot_be_sealed_so_is_refused_by_name_and_hint() {
    let node = fleet(&["car"]);
    run(&node, "car", &["pub", "s", "x", "--group", "fleet"]);
    let fails = |who: &str, args: &[&str], code: i32, name: &str| {
        let output = output(&node, who, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(name) && said.contains("\n  hint: "), "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    };
    fails("car", &["pub", "s", "x"], 4, "is sealed");
    fails("car", &["pub", "s", "x", "--group", "fleet", "--type", "command"], 1, "SL-POLICY-09");
    fails("car", &["pub", "s", "x", "--group", "other"], 2, "SL-GROUP-15");
    fails("nobody", &["pub", "s", "x", "--group", "fleet"], 2, "SL-GROUP-01");
    node.run(&["pub", "open", "x"]);
    fails("car", &["pub", "open", "x", "--group", "fleet"], 4, "SL-HUB-");
    let policy = node.home().join("policy.toml");
    std::fs::write(&policy, "version = 1\ntype.control.floor = 'A'\n").unwrap();
    let mut command = node.command(&["pub", "s", "x", "--group", "fleet"]);
    command.env("SEALANE_KEYS", keys(&node, "car")).env("SEALANE_POLICY", &policy);
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("SL-POLICY-05"));
}

#[test]
fn a_removed_member_reads_nothing_that_follows() {
    let node = fleet(&["car", "thief"]);
    run(&node, "car", &["pub", "s", "one", "--group", "fleet"]);
    assert_eq!(lines(&node, "thief", "s", "1").lines().count(), 1);
    run(&node, "base", &["group", "revoke", "fleet", "thief", "--server", &node.address]);
    let again = said(&node, "base", &["group", "publish", "fleet", "--json"]);
    assert_eq!(json(&again).field("published"), Some(&0_u64.into()));
    run(&node, "car", &["pub", "s", "two", "--group", "fleet"]);
    assert_eq!(lines(&node, "base", "s", "2").lines().count(), 2);
    let mut stolen = node.command(&["sub", "s", "--group", "fleet", "--from", "first"]);
    stolen.env("SEALANE_KEYS", keys(&node, "thief"));
    let told = first_line_of_errors(&mut stolen, "offset 1 is not shown");
    assert!(told.contains("[SL-SEAL-08]"), "{told}");
    let refused = output(&node, "thief", &["pub", "s", "x", "--group", "fleet"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("SL-GROUP-24"));
    assert!(Path::new(&keys(&node, "thief")).exists());
}

/// Runs a verb until it says this on standard error.
fn first_line_of_errors(command: &mut std::process::Command, part: &str) -> String {
    use std::io::BufRead;
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find(|line| line.contains(part));
    child.kill().unwrap();
    child.wait().unwrap();
    found.unwrap_or_else(|| panic!("nothing said: {part}"))
}
