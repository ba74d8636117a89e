use std::time::{SystemTime, UNIX_EPOCH};

use sealane::Value;

use crate::cli::{NodeProcess, feed, json, on_terminal, text};

#[test]
fn every_codec_carries_every_other() {
    let node = NodeProcess::start();
    let body = r#"{"id":"m","big":18446744073709551615,"half":0.5,"list":[null,true,"ü"]}"#;
    for codec in ["json", "msgpack", "cbor"] {
        let line = node.run(&["--json", "pub", "a/b", body, "--codec", codec]);
        assert_eq!(text(&json(&line), "level"), "disk");
    }
    for codec in ["json", "msgpack", "cbor"] {
        let out = node.run(&["sub", "a/b", "--from", "first", "--count", "3", "--codec", codec]);
        let lines: Vec<Value> = out.lines().map(json).collect();
        assert_eq!(lines, vec![json(body); 3], "{codec}");
    }
}

#[test]
fn json_lines_name_their_place() {
    let node = NodeProcess::start();
    let line = json(&node.run(&["pub", "a", "hello", "--json", "--idempotency-key", "k"]));
    assert_eq!(line.field("v"), Some(&1_u64.into()));
    assert_eq!(line.field("offset"), Some(&0_u64.into()));
    assert_eq!(line.field("replayed"), Some(&Value::Bool(false)));
    let again = json(&node.run(&["pub", "a", "hello", "--json", "--key", "k"]));
    assert_eq!(again.field("replayed"), Some(&Value::Bool(true)));
    let line = json(&node.run(&["sub", "a", "--json", "--from", "0", "-n", "1"]));
    let Value::Map(fields) = &line else { panic!("{line:?}") };
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["v", "stream", "offset", "generation", "attempt", "storedMs", "envelope"]);
    let stored_ms = line.field("storedMs").and_then(Value::as_u64).unwrap();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    assert!((now_ms - 60_000..=now_ms).contains(&stored_ms), "{stored_ms} is not near {now_ms}");
    let envelope = line.field("envelope").unwrap();
    assert_eq!(envelope.field("data"), Some(&"hello".into()));
    assert_eq!(line.field("generation"), again.field("generation"));
}

#[test]
fn lines_go_in_as_messages_and_come_out_in_order() {
    let node = NodeProcess::start();
    let input: String = (0..5000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let output = feed(&mut node.command(&["pub", "a", "-"]), &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "a: 5000 messages stored, next offset 5000\n");
    assert!(output.stderr.is_empty(), "no progress where nobody watches");
    let out = node.run(&["sub", "a", "--from", "first", "-n", "5000"]);
    let numbers = out.lines().map(|line| json(line).field("n").and_then(Value::as_u64).unwrap());
    assert!(numbers.eq(0..5000));
}

#[test]
fn new_is_what_comes_after_subscribing() {
    let node = NodeProcess::start();
    node.run(&["pub", "a", "old"]);
    let mut follow = node.follow(&["sub", "a"]);
    node.wait_for_reader("a");
    node.run(&["pub", "a", "new"]);
    assert_eq!(json(&follow.line()).field("data"), Some(&"new".into()));
}

#[test]
fn a_consumer_gets_again_what_was_not_acknowledged() {
    let node = NodeProcess::start();
    for n in ["1", "2", "3"] {
        node.run(&["pub", "a", n]);
    }
    let sub = ["sub", "a", "--json", "--consumer", "c", "-n", "2"];
    let attempts = |out: String| -> Vec<(u64, u64)> {
        let number = |line: &Value, name: &str| line.field(name).and_then(Value::as_u64).unwrap();
        let line = |line| (number(&line, "offset"), number(&line, "attempt"));
        out.lines().map(json).map(line).collect()
    };
    let no_ack: Vec<&str> = sub.iter().copied().chain(["--no-ack"]).collect();
    assert_eq!(attempts(node.run(&no_ack)), [(0, 1), (1, 1)]);
    assert_eq!(attempts(node.run(&sub)), [(0, 2), (1, 2)]);
    assert_eq!(attempts(node.run(&["sub", "a", "--json", "--consumer", "c", "-n", "1"])), [(2, 1)]);
    let state = json(&node.run(&["stream", "info", "a", "--json"]));
    let Some(Value::Array(consumers)) = state.field("consumers") else { panic!("{state:?}") };
    assert_eq!(consumers[0].field("redelivered"), Some(&2_u64.into()));
    assert_eq!(consumers[0].field("inFlight"), Some(&0_u64.into()));
    node.run(&["pub", "b", "1"]);
    assert!(node.run(&["sub", "b", "--inbox", "-n", "1"]).contains("\"data\":1"));
}

#[test]
fn streams_are_listed_changed_and_removed() {
    let node = NodeProcess::start();
    node.run(&["stream", "set", "a/1", "--level", "os", "--max-age", "7d", "--max-bytes", "1MiB"]);
    node.run(&["pub", "b", "x"]);
    let table = node.run(&["stream", "ls"]);
    assert!(table.starts_with("STREAM") && table.lines().count() == 3, "{table}");
    let one = json(&node.run(&["stream", "ls", "a/*", "--json"]));
    assert_eq!((text(&one, "stream").as_str(), text(&one, "level").as_str()), ("a/1", "os"));
    assert_eq!(one.field("maxBytes"), Some(&(1_u64 << 20).into()));
    assert!(node.run(&["stream", "info", "a/1"]).contains("max age       7 days\n"));
    assert_eq!(node.run(&["stream", "rm", "a/1"]), "a/1 removed\n");
    assert_eq!(node.run(&["stream", "ls", "--json"]).lines().count(), 1);
}

#[test]
fn a_delay_is_kept() {
    let node = NodeProcess::start();
    let due = json(&node.run(&["pub", "a", "later", "--delay", "200ms", "--json"]));
    assert!(due.field("dueMs").and_then(Value::as_u64).is_some());
    let out = node.run(&["sub", "a", "--from", "first", "-n", "1"]);
    assert_eq!(text(&json(&out), "id"), text(&due, "id"));
}

#[test]
fn an_interrupt_ends_reading_and_keeps_what_was_acknowledged() {
    let node = NodeProcess::start();
    node.run(&["pub", "a", "1"]);
    let mut follow = node.follow(&["sub", "a", "--consumer", "c"]);
    assert_eq!(json(&follow.line()).field("data"), Some(&1_u64.into()));
    follow.signal("INT");
    assert_eq!(follow.rest(), "");
    let state = json(&node.run(&["stream", "info", "a", "--json"]));
    let Some(Value::Array(consumers)) = state.field("consumers") else { panic!("{state:?}") };
    assert_eq!(consumers[0].field("next"), Some(&1_u64.into()));
    assert_eq!(consumers[0].field("inFlight"), Some(&0_u64.into()));
}

#[test]
fn a_line_is_one_message_however_it_was_written() {
    let node = NodeProcess::start();
    node.run(&["pub", "a", "{\n  \"id\": \"x\",\n  \"n\": 1\n}"]);
    let out = node.run(&["sub", "a", "--from", "first", "-n", "1"]);
    assert_eq!(out, "{\"id\":\"x\",\"n\":1}\n");
}

#[test]
fn a_request_is_answered_by_a_program_or_in_time_by_nobody() {
    let node = NodeProcess::start();
    node.run(&["stream", "new", "door"]);
    let mut replies = node.follow(&["reply", "lamps/*", "--command", "cat", "--consumer", "c"]);
    let fixed = node.follow(&["reply", "door", "shut", "-n", "1"]);
    node.wait_for_reader("door");
    let answer = json(&node.run(&["request", "lamps/3", r#"{"want":"on","id":"mine"}"#]));
    assert_eq!(answer.field("want"), Some(&"on".into()));
    assert!(answer.field("inReplyTo").and_then(Value::as_text).is_some_and(|id| id != "mine"));
    assert_eq!(replies.line(), "lamps/3 offset 0 answered\n");
    // Not a request: named, passed over, and the next one is answered.
    node.run(&["pub", "lamps/3", "hello"]);
    node.run(&["request", "lamps/3"]);
    assert_eq!(replies.line(), "lamps/3 offset 2 answered\n");
    let answer = json(&node.run(&["--json", "request", "door", "open?"]));
    assert_eq!(answer.field("envelope").unwrap().field("data"), Some(&"shut".into()));
    assert_eq!(fixed.rest(), "door offset 0 answered\n");
    // A request whose deadline is over runs no program.
    let output = node.command(&["request", "late", "--timeout", "200ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let ran = node.home().join("ran");
    let touch = format!("touch {}", ran.display());
    let late = node.run(&["reply", "late", "--consumer", "c", "-n", "1", "--command", &touch]);
    assert_eq!(late, "late offset 0 too late: its deadline is over\n");
    assert!(!ran.exists());
    let output = node.command(&["request", "door", "--timeout", "200ms"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.contains("SL-CLIENT-17"), "{error}");
    // Nothing is left of the streams of the answers.
    let names = node.run(&["stream", "ls", "reply/**", "--json"]);
    assert_eq!(names.lines().filter(|line| line.contains("reply/")).count(), 0, "{names}");
}

#[test]
#[ignore = "lab: needs script"]
fn a_message_tells_a_terminal_nothing_and_a_pipe_all() {
    let node = NodeProcess::start();
    let body = "{\"id\":\"m\u{9b}2J\",\"x\":\"\u{7f}\"}";
    node.run(&["pub", "a", body]);
    let sub = ["sub", "a", "--from", "first", "-n", "1"];
    assert_eq!(node.run(&sub), format!("{body}\n"));
    let mut script = on_terminal(&sub.join(" "));
    script.env("SEALANE_SERVER", &node.address).env("HOME", node.home());
    let output = script.stdin(std::process::Stdio::null()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains(r#"{"id":"m\u009b2J","x":"\u007f"}"#), "{shown}");
    assert!(!shown.contains(['\u{9b}', '\u{7f}']), "{shown:?}");
}

#[test]
fn a_message_that_two_bring_is_stored_once() {
    let node = NodeProcess::start();
    for replayed in [false, true] {
        let line = json(&node.run(&["--json", "pub", "a", r#"{"n":1}"#, "--once"]));
        assert_eq!(line.field("replayed"), Some(&replayed.into()));
        assert_eq!(line.field("offset").and_then(Value::as_u64), Some(0));
    }
    let again = node.run(&["pub", "a", r#"{"n":1}"#, "--once"]);
    assert!(again.ends_with(", stored before\n"), "{again}");
    let later = node.command(&["pub", "a", "{}", "--once", "--delay", "1s"]).output().unwrap();
    assert_eq!(later.status.code(), Some(2), "whoever is first says when for all");
}

#[test]
fn what_other_systems_write_is_warned_of_and_taken_as_it_is() {
    let node = NodeProcess::start();
    for (args, said) in [
        (&["pub", "fleet.7.place", "{}"][..], "in `fleet/7/place`"),
        (&["pub", "fleet/+/place", "{}"], "`*` stands for one name"),
        (&["stream", "ls", "fleet.>"], "in `fleet/**`"),
        (&["token", "new", "a", "--read", "fleet/#"], "`**` stands for all that follows"),
    ] {
        let mut command = node.command(args);
        if args[0] == "token" {
            // Only a folder that the flag names may be another than the hub's.
            command.arg("--data").arg(node.home());
        }
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {error}");
        assert!(error.starts_with("sealane: warning: `") && error.contains(said), "{error}");
    }
    // They are the names that they were given, and are listed without a word.
    let output = node.command(&["stream", "ls", "**"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("fleet.7.place") && listed.contains("fleet/+/place"), "{listed}");
}
