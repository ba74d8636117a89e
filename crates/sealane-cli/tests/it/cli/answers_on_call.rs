//! The first questions of somebody on call: what stands, who did that, what is kept for how long.

use std::io::{Read, Write};
use std::time::Duration;

use sealane::Value;
use sealane_testing::{TestProcess, until, until_told};

use crate::cli::{NodeProcess, feed, json, sealane, text};

fn number(value: &Value, name: &str) -> u64 {
    value.field(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name}: {value:?}"))
}

#[test]
fn a_dead_worker_is_seen_in_every_view() {
    let node = NodeProcess::start();
    for n in 0..3 {
        node.run(&["pub", "jobs/mail", &n.to_string()]);
    }
    node.run(&["sub", "jobs/mail", "--consumer", "mailer", "--no-ack", "-n", "3"]);
    node.run(&["pub", "other", "x"]);
    node.run(&["sub", "other", "--consumer", "fine", "-n", "1"]);
    std::thread::sleep(Duration::from_millis(1200));
    let all = node.run(&["--json", "consumer", "ls"]);
    let all: Vec<Value> = all.lines().map(json).collect();
    assert_eq!(text(&all[0], "stream"), "jobs/mail", "the one that stands comes first");
    assert_eq!((number(&all[0], "lag"), number(&all[0], "unfinished")), (0, 3));
    assert!(number(&all[0], "oldestMs") >= 1000);
    assert_eq!((number(&all[1], "unfinished"), number(&all[1], "oldestMs")), (0, 0));
    let shown = node.run(&["consumer", "ls"]);
    let head = shown.lines().next().unwrap();
    assert!(head.contains("UNFINISHED") && head.starts_with("STREAM"), "{shown}");
    let shown = node.run(&["consumer", "ls", "jobs/mail"]);
    assert!(shown.starts_with("CONSUMER") && shown.contains("mailer"), "{shown}");
    let top = json(node.run(&["--json", "top", "jobs/mail", "-n", "2", "--every", "50ms"]).trim());
    assert!(number(&top, "unfinished") == 3 && number(&top, "oldestMs") >= 1000, "{top:?}");
    let doctor = node.command(&["--json", "doctor", "--remote"]).output().unwrap();
    let said = String::from_utf8(doctor.stdout).unwrap();
    let left = said.lines().map(json).find(|found| text(found, "check") == "consumers").unwrap();
    assert_eq!(text(&left, "verdict"), "warning");
    assert!(text(&left, "said").starts_with("jobs/mail mailer: 3 messages unfinished"), "{said}");
}

#[test]
fn a_rule_bounds_streams_that_are_there_and_those_that_come() {
    let node = NodeProcess::start();
    node.run(&["pub", "fleet/7/location", "x"]);
    node.run(&["stream", "set", "fleet/8/location", "--max-age", "1h"]);
    let said = node.run(&["stream", "set", "fleet/**", "--max-age", "7d"]);
    assert!(said.starts_with("fleet/**: max age 7 days; it holds for 2 of 2 streams"), "{said}");
    node.run(&["pub", "fleet/9/location", "x"]);
    let of = |topic: &str| {
        let state = json(&node.run(&["--json", "stream", "info", topic]));
        (
            number(&state, "maxAgeMs"),
            state.field("rule").and_then(Value::as_text).map(str::to_owned),
        )
    };
    let (week, hour) = (7 * 86_400_000, 3_600_000);
    let by_rule = Some("fleet/**".to_owned());
    assert_eq!(of("fleet/7/location"), (week, by_rule.clone()));
    assert_eq!(of("fleet/9/location"), (week, by_rule.clone()));
    // Its own age stays; of count and bytes the rule has no bound.
    assert_eq!(of("fleet/8/location"), (hour, by_rule.clone()));
    let shown = node.run(&["stream", "info", "fleet/7/location"]);
    assert!(shown.contains("the rule fleet/**") && shown.contains("7 days"), "{shown}");
    // A tie is refused, and so is a rule that says nothing.
    let tie = node.command(&["stream", "set", "*/7/**", "--max-age", "1d"]).output().unwrap();
    let said = String::from_utf8_lossy(&tie.stderr).into_owned();
    assert!(
        tie.status.code() == Some(4) && said.contains("RuleTie") || said.contains("SL-HUB-38"),
        "{said}"
    );
    assert_eq!(node.command(&["stream", "set", "a/**"]).output().unwrap().status.code(), Some(2));
    // A bound that is not named stays.
    let said = node.run(&["stream", "set", "fleet/**", "--max-count", "9"]);
    assert!(said.starts_with("fleet/**: max age 7 days, max count 9; "), "{said}");
    let listed = node.run(&["stream", "rules"]);
    assert!(listed.contains("fleet/**") && listed.contains("(default)"), "{listed}");
    // A stream forgets its own bounds, and the rule holds again.
    let said = node.run(&["stream", "unset", "fleet/8/location"]);
    let expected = "fleet/8/location: max age 7 days, max count 9, by the rule fleet/**\n";
    assert_eq!((said.as_str(), of("fleet/8/location")), (expected, (week, by_rule)));
    let none = node.command(&["stream", "unset", "fleet/none"]).output().unwrap();
    assert_eq!((none.status.code(), node.run(&["ls", "fleet/none"]).lines().count()), (Some(4), 1));
    node.run(&["stream", "unset", "fleet/**"]);
    assert_eq!(of("fleet/7/location"), (0, None));
    let said = node.run(&["stream", "unset", "fleet/7/location"]);
    assert_eq!(said, "fleet/7/location: no bound; no rule matches it\n");
    let again = node.command(&["stream", "unset", "fleet/**"]).output().unwrap();
    assert_eq!(again.status.code(), Some(4));
}

#[test]
fn a_pattern_is_removed_by_yes_alone() {
    let node = NodeProcess::start();
    for topic in ["fleet/old/1", "fleet/old/2", "fleet/new"] {
        node.run(&["pub", topic, "x"]);
    }
    let asked = node.command(&["stream", "rm", "fleet/old/**"]).output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(2), "{said}");
    assert!(said.contains("fleet/old/1") && said.contains("fleet/old/2"), "{said}");
    let removed = node.run(&["stream", "rm", "fleet/old/**", "--yes"]);
    assert_eq!(removed, "fleet/old/1 removed\nfleet/old/2 removed\n");
    assert_eq!(node.run(&["ls"]).lines().count(), 2, "the head and fleet/new");
    let none = node.command(&["stream", "rm", "fleet/old/**", "--yes"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("[SL-CLI-33]"));
}

#[test]
fn the_audit_names_who_did_it() {
    let node = NodeProcess::start();
    node.run(&["pub", "a", "x"]);
    let data = node.home().join("data").display().to_string();
    let token = |name: &str, rights: &[&str]| {
        let args = [&["token", "--data", &data, "new", name], rights].concat();
        let made = sealane(&node.home()).args(args).output().unwrap();
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let ops = token("ops", &["--read", "**", "--manage", "**"]);
    let watch = token("watch", &["--observe"]);
    let run = |secret: &str, args: &[&str]| {
        node.command(args).env("SEALANE_TOKEN", secret).output().unwrap()
    };
    // The node reads its tokens within a second, and until then anybody may do all.
    until("tokens are asked for", || !run("", &["stream", "ls"]).status.success());
    assert!(run(&ops, &["stream", "rm", "a", "--yes"]).status.success());
    let audit = |word: &str| {
        let ask = || String::from_utf8(run(&watch, &["audit"]).stdout).unwrap();
        until_told(ask, |told| told.contains(word))
    };
    let told = audit("removed a stream a");
    assert!(told.contains("ops at 127.0.0.1 removed a stream a"), "{told}");
    // Refusals stand in another stream, and are shown among the rest.
    assert!(!run(&watch, &["stream", "rm", "b", "--yes"]).status.success());
    let refused = audit("was refused");
    assert!(refused.contains("watch at 127.0.0.1 was refused b (Forbidden"), "{refused}");
    // A follower gets the past, and then each record once, as it comes, of both streams.
    let mut follow = node.command(&["--json", "audit", "-f"]);
    let mut followed = TestProcess::start(follow.env("SEALANE_TOKEN", &watch));
    let mut said = std::iter::from_fn(|| Some(followed.line()).filter(|line| !line.is_empty()));
    let mut next = |wanted: &str| said.find(|line| text(&json(line), "on") == wanted).unwrap();
    assert_eq!(text(&json(&next("b")), "deed"), "was refused");
    for (args, secret, on) in [
        (["stream", "new", "c"].as_slice(), &ops, "c"),
        (&["stream", "rm", "d", "--yes"], &watch, "d"),
        (&["stream", "rm", "c", "--yes"], &ops, "c"),
    ] {
        run(secret, args);
        let record = json(&next(on));
        assert_eq!(text(&record, "token"), if on == "d" { "watch" } else { "ops" }, "{args:?}");
    }
    followed.signal("INT");
    assert!(followed.ended().success(), "Ctrl-C ends it well");
    assert_eq!(run(&ops, &["audit"]).status.code(), Some(4), "it may not observe");
}

#[test]
fn a_hub_says_how_it_is() {
    let mut node = NodeProcess::start();
    for verb in ["status", "ping"] {
        assert!(node.run(&[verb]).contains("healthy"));
    }
    for verb in ["ls", "list"] {
        assert!(node.run(&[verb]).starts_with("STREAM"));
    }
    node.terminate();
    assert_eq!(node.command(&["status"]).output().unwrap().status.code(), Some(3));
}

/// A hub that stores nothing answers, and the verb fails with its cause.
#[test]
fn a_hub_that_takes_no_messages_is_not_well() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = client.read(&mut head).unwrap();
        let body = r#"{"ok":false,"version":"0.1.0","status":"storage","cause":"no room",
            "level":"os","streams":1}"#;
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        write!(client, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    });
    let home = tempfile::tempdir().unwrap();
    let output = sealane(home.path()).args(["status", "--server", &address]).output().unwrap();
    served.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no room") && said.contains("[SL-CLI-31]"), "{said}");
    assert_eq!(output.status.code(), Some(5), "{said}");
}

#[test]
fn lines_of_windows_are_messages_and_the_line_that_is_refused_is_named() {
    let node = NodeProcess::start();
    let pub_lines = |input: &str| feed(&mut node.command(&["--json", "pub", "orders", "-"]), input);
    assert!(pub_lines("\u{feff}{\"i\":0}\r\n{\"i\":1}\r\n").status.success());
    let bodies = |topic: &str, name: &str| -> Vec<Option<Value>> {
        let read = node.run(&["sub", topic, "--from", "first", "--until-end", "--raw"]);
        read.lines().map(|line| json(line).field(name).cloned()).collect()
    };
    assert_eq!(bodies("orders", "i"), [Some(Value::I64(0)), Some(Value::I64(1))]);
    // The hub refuses what is too deep, and stores what stands before it.
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(29), "]".repeat(29));
    let input = format!("{}{deep}\n{}", "{\"i\":2}\n".repeat(1000), "{\"i\":3}\n".repeat(9));
    let output = pub_lines(&input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("line 1001: "), "{said}");
    let stored = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((number(&stored, "count"), number(&stored, "next")), (1000, 1002));
    // A number below zero is a body, and a flag that does not exist is none.
    node.run(&["pub", "winter", "-3.5"]);
    assert_eq!(bodies("winter", "data"), [Some(Value::F64(-3.5))]);
    assert_eq!(node.command(&["pub", "winter", "-x"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_node_has_a_default_for_streams_without_bounds() {
    let home = tempfile::tempdir().unwrap();
    let mut up = sealane(home.path());
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--max-age", "30d"]);
    let (mut child, line) = sealane_testing::TestProcess::started(&mut up);
    let address = text(&json(&line), "address");
    let run = |args: &[&str]| {
        let output = sealane(home.path()).env("SEALANE_SERVER", &address).args(args).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    run(&["pub", "a", "x"]);
    let state = json(&run(&["--json", "stream", "info", "a"]));
    let shown = run(&["stream", "info", "a"]);
    child.kill();
    assert_eq!(number(&state, "maxAgeMs"), 30 * 86_400_000);
    assert!(shown.contains("the node's default"), "{shown}");
    let wrong = sealane(home.path()).args(["up", "--max-age", "soon"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
