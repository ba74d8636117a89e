//! The behaviour of members, and their warnings, when orders or heartbeats are held back. The tests
//! also cover the shown sender and time of a message.

use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealane::{DataType, Value};
use sealane_seal::Class;
use sealane_testing::{TestProcess, until};

use super::fleet::{
    copy, fails, first_line_of_errors, fleet, fleet_with, keys, output, run, said, seal_by_hand,
};
use crate::cli::{NodeProcess, json, on_terminal, text};

/// The control stream of the group.
fn control(node: &NodeProcess) -> String {
    let shown = said(node, "base", &["--json", "group", "show", "fleet"]);
    format!("groups/{}", text(&json(&shown), "tag"))
}

fn published(node: &NodeProcess, args: &[&str]) -> u64 {
    let written = json(&said(node, "base", &[args, &["--json"]].concat()));
    written.field("published").and_then(Value::as_u64).unwrap()
}

/// The errors of a reader that reads one message that it can open.
fn warned(node: &NodeProcess, who: &str) -> String {
    let args = ["sub", "s", "--group", "fleet", "--from", "first", "-n", "1"];
    let output = output(node, who, &args);
    assert!(output.status.success() && !output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

const PUB: [&str; 5] = ["pub", "s", "hello", "--group", "fleet"];

#[test]
fn who_is_behind_seals_nothing_and_readers_are_warned() {
    let node = fleet(&["car"]);
    run(&node, "car", &PUB);
    for _ in 0..2 {
        run(&node, "base", &["group", "rotate", "fleet"]);
    }
    let gap = node.home().join("gap").display().to_string();
    let orders = run(&node, "base", &["group", "orders", "fleet", "--from", "3"]);
    std::fs::write(&gap, orders).unwrap();
    let said = fails(&node, "car", &["group", "apply", "fleet", &gap], 1);
    assert!(said.contains("order 2 of the authority is missing; 4 were given [SL-GROUP-22]"));
    assert!(fails(&node, "car", &PUB, 1).contains("[SL-GROUP-22]"));
    assert!(warned(&node, "car").contains("is missing; 4 were given [SL-GROUP-22]"));
    assert_eq!(published(&node, &["group", "publish", "fleet"]), 2);
    run(&node, "car", &PUB);
    assert_eq!(warned(&node, "car"), "");
}

#[test]
fn a_control_stream_that_lost_orders_closes_senders_until_it_has_them_again() {
    let node = fleet(&["car"]);
    run(&node, "car", &PUB);
    let control = control(&node);
    for again in [&["group", "publish", "fleet"][..], &["group", "resend", "fleet"]] {
        node.run(&["stream", "rm", &control, "--yes"]);
        let said = fails(&node, "car", &PUB, 1);
        assert!(said.contains("ends at order 0, and has shown 2 before [SL-GROUP-31]"), "{said}");
        assert!(warned(&node, "car").contains("[SL-GROUP-31]"));
        assert_eq!(published(&node, again), 2, "{again:?}");
        run(&node, "car", &PUB);
    }
    assert_eq!(published(&node, &["group", "resend", "fleet", "--from", "1"]), 1);
    let said = said(&node, "base", &["group", "resend", "fleet", "--from", "9"]);
    assert_eq!(said, format!("0 orders published to {control}\n"));
    assert!(fails(&node, "car", &["group", "resend", "fleet"], 1).contains("[SL-GROUP-20]"));
}

#[test]
fn without_heartbeats_a_strict_group_seals_only_what_is_urgent() {
    let node = fleet_with(&["--heartbeat-age", "4s", "--strict"], &["car"]);
    run(&node, "base", &["group", "beat", "fleet"]);
    std::thread::sleep(Duration::from_millis(5_100));
    let refused = fails(&node, "car", &PUB, 1);
    assert!(refused.contains("the charter allows 4 s [SL-GROUP-32]"), "{refused}");
    let urgent = output(&node, "car", &[&PUB[..], &["--type", "emergency"]].concat());
    assert!(urgent.status.success());
    assert!(String::from_utf8_lossy(&urgent.stderr).contains("[SL-GROUP-32]"));
    assert!(warned(&node, "car").contains("[SL-GROUP-32]"));
    let shown = said(&node, "car", &["group", "show", "fleet"]);
    assert!(shown.contains("is sealed; the newest is older\n"), "{shown}");
    let beat = said(&node, "base", &["group", "beat", "fleet"]);
    assert_eq!(beat, format!("1 heartbeat published to {}\n", control(&node)));
    run(&node, "car", &PUB);
}

#[test]
fn without_heartbeats_another_group_goes_on_and_says_so() {
    let node = fleet_with(&["--heartbeat-age", "4s"], &["car"]);
    std::thread::sleep(Duration::from_millis(5_100));
    let output = output(&node, "car", &PUB);
    assert!(output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the charter allows 4 s [SL-GROUP-32]")
    );
}

#[test]
fn heartbeats_go_on_until_they_are_ended_and_only_the_authority_gives_them() {
    let mut node = fleet(&["car"]);
    let control = control(&node);
    let stands = |node: &NodeProcess| {
        let info = json(&node.run(&["--json", "stream", "info", &control]));
        info.field("count").and_then(Value::as_u64).unwrap()
    };
    let before = stands(&node);
    let refused = fails(&node, "car", &["group", "beat", "fleet"], 1);
    assert!(refused.starts_with("sealane: error: ") && refused.contains("[SL-GROUP-20]"));
    let mut beating = node.command(&["group", "beat", "fleet", "--every", "50ms", "--json"]);
    let mut beating = TestProcess::start(beating.env("SEALANE_KEYS", keys(&node, "base")));
    for _ in 0..2 {
        let wanted = stands(&node) + 3;
        until("three more came", || {
            assert!(beating.child.try_wait().unwrap().is_none(), "it ended by itself");
            stands(&node) >= wanted
        });
        // A hub that comes back is told again.
        node.kill_and_restart();
    }
    beating.signal("INT");
    let written = json(beating.rest().lines().next().unwrap());
    let count = written.field("published").and_then(Value::as_u64).unwrap();
    assert_eq!(text(&written, "stream"), control);
    // Heartbeats that the hub stored and could not acknowledge any more were not counted.
    assert!((6..=stands(&node) - before).contains(&count), "{count}");
}

#[test]
fn a_removal_is_published_with_its_marks_and_what_is_written_behind_them_is_not_shown() {
    let node = fleet(&["car", "thief"]);
    run(&node, "thief", &PUB);
    copy(&node, "thief", "ghost");
    let control = control(&node);
    let revoked = output(&node, "base", &["group", "revoke", "fleet", "thief"]);
    let told = String::from_utf8(revoked.stderr).unwrap();
    assert!(told.contains("sealane group publish fleet"), "{told}");
    let said_so = said(&node, "base", &["group", "publish", "fleet"]);
    assert_eq!(said_so, format!("2 orders published to {control}\n"), "the removal, and its marks");
    assert_eq!(published(&node, &["group", "publish", "fleet"]), 0);
    let late = (Class::Group, DataType::LOCATION);
    seal_by_hand(&node, "ghost", "s", late, b"{\"data\":\"late\"}");
    run(&node, "car", &PUB);
    for who in ["base", "car"] {
        let read = ["sub", "s", "--group", "fleet", "--from", "first", "-n", "2"];
        assert!(!said(&node, who, &read).contains("late"));
        let mut sub = node.command(&read);
        sub.env("SEALANE_KEYS", keys(&node, who));
        let told = first_line_of_errors(&mut sub, "s offset 1 is not shown");
        assert!(told.contains("[SL-CLIENT-13]"), "{told}");
    }
    let apply = node.home().join("all").display().to_string();
    std::fs::write(&apply, run(&node, "base", &["group", "orders", "fleet"])).unwrap();
    copy(&node, "ghost", "other");
    let told = said(&node, "other", &["group", "apply", "fleet", &apply]);
    assert!(told.ends_with("this member was removed from the group\n"), "{told}");
    let orders = ["group", "revoke", "fleet", "car", "--server", &node.address];
    let revoked = output(&node, "base", &orders);
    let told = String::from_utf8(revoked.stderr).unwrap();
    assert_eq!(told, format!("2 orders published to {control}\n"));
}

#[test]
#[ignore = "lab: needs script"]
fn each_message_says_who_sent_it_how_sure_that_is_and_how_old_an_urgent_one_is() {
    let node = fleet(&["car"]);
    run(&node, "car", &[&PUB[..], &["--type", "location"]].concat());
    run(&node, "car", &[&PUB[..], &["--type", "emergency"]].concat());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let made_ms = u64::try_from(now.as_millis()).unwrap() - 3_600_000;
    let body = [&made_ms.to_le_bytes()[..], b"{\"data\":\"help\"}"].concat();
    seal_by_hand(&node, "car", "s", (Class::Signed, DataType::EMERGENCY), &body);
    let read = ["sub", "s", "--group", "fleet", "--from", "first", "-n", "3"];
    assert_eq!(said(&node, "base", &read).lines().next(), Some(r#"{"data":"hello"}"#));
    let mut script = on_terminal(&read.join(" "));
    script.env("SEALANE_SERVER", &node.address).env("HOME", node.home());
    let output = script.env("SEALANE_KEYS", keys(&node, "base")).stdin(Stdio::null()).output();
    let shown = String::from_utf8(output.unwrap().stdout).unwrap();
    let is_message = |line: &&str| !line.starts_with("sealane:");
    let lines: Vec<_> = shown.lines().map(str::trim_end).filter(is_message).collect();
    assert!(lines[0].ends_with(r#"Z  s  0  car  C unsigned  {"data":"hello"}"#), "{shown}");
    assert!(lines[1].contains("Z  s  1  car  S signed, ") && lines[1].contains("s ago  {"));
    assert!(lines[2].contains("  s  2  car  S signed, OLD: 1h"), "{shown}");
    assert!(lines[2].ends_with(r#"  {"data":"help"}"#), "{shown}");
    let written = said(&node, "base", &[&read[..], &["--json"]].concat());
    let seals: Vec<Value> =
        written.lines().map(|line| json(line).field("seal").unwrap().clone()).collect();
    assert_eq!(seals[0].field("timeMs"), Some(&Value::Null));
    assert_eq!(seals[2].field("timeMs"), Some(&made_ms.into()));
    let old: Vec<_> = seals.iter().map(|seal| seal.field("old").unwrap().clone()).collect();
    assert_eq!(old, [false.into(), false.into(), true.into()]);
    assert_eq!(text(&seals[0], "context").len(), 16);
}

/// The holder of a copied key folder can do all that its owner can, and both are warned.
#[test]
fn who_uses_a_copied_folder_is_warned() {
    let node = fleet(&["car"]);
    run(&node, "car", &PUB);
    copy(&node, "car", "thief");
    let told = warned(&node, "thief");
    assert!(told.contains("the key folder was copied or restored"), "{told}");
    assert!(told.contains("[SL-CLIENT-19]"), "{told}");
    assert_eq!(warned(&node, "car"), "");
}
