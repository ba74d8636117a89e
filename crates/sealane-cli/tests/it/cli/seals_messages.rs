//! Two people, one hub that sees nothing: everything by command.

use std::path::Path;

use super::fleet::{first_line_of_errors, fleet, keys, lines, output, run, said};
use crate::cli::{feed, json, text};

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
