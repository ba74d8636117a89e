//! Two people, one hub that sees nothing: everything by command.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use sealane_testing::{TestProcess, files_below, holds, until_told};

use super::fleet::{fails, first_line_of_errors, fleet, keys, lines, output, run, said};
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
fn a_process_with_keys_leaves_no_core_dump() {
    let node = fleet(&["car"]);
    let core = |args: &[&str]| {
        let mut sub = node.command(args);
        sub.env("SEALANE_KEYS", keys(&node, "car"));
        let running = TestProcess::start(&mut sub);
        let limit = || {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.child.id()));
            let limits = limits.unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
            line.split_whitespace().nth(5).unwrap().to_owned()
        };
        until_told(limit, |limit| limit.as_str() == "0")
    };
    assert_eq!(core(&["sub", "s", "--group", "fleet"]), "0");
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

/// A way to a hub that keeps all that clients send on it.
fn recorded(hub: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (hub, sent) = (hub.to_owned(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&sent);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut hub) = (client.unwrap(), TcpStream::connect(&hub).unwrap());
            let (mut back, mut answers) = (client.try_clone().unwrap(), hub.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                let mut some = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut some) {
                    kept.lock().unwrap().extend_from_slice(&some[..count]);
                    hub.write_all(&some[..count]).unwrap();
                }
                let _ = hub.shutdown(Shutdown::Write);
            });
        }
    });
    (address, sent)
}

#[test]
fn nothing_is_sent_in_clear_to_a_sealed_stream() {
    let node = fleet(&["car"]);
    run(&node, "car", &["pub", "s", "x", "--group", "fleet"]);
    let (address, sent) = recorded(&node.address);
    let at = ["--server", &address];
    for args in
        [&["pub", "s", "plain words"][..], &["pub", "s", "-"], &["request", "s", "plain words"]]
    {
        let mut command = node.command(&[args, &at].concat());
        let refused = feed(&mut command, "plain words\n");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(said.contains("SL-HUB-17"), "{said}");
    }
    let heard = || String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
    assert!(heard().contains("GET /v1/streams/s"), "{}", heard());
    assert!(!heard().contains("plain words"), "{}", heard());
    // The way shows what is sent in clear.
    node.run(&[&["pub", "open", "plain words"][..], &at].concat());
    assert!(heard().contains("plain words"));
}

#[test]
fn a_pattern_of_the_configuration_requires_its_group() {
    let node = fleet(&["car"]);
    let config = node.home().join("groups.toml").display().to_string();
    std::fs::write(&config, "[groups]\n\"ops/**\" = \"fleet\"\n").unwrap();
    let refused = |args: &[&str]| {
        let told = fails(&node, "car", &[args, &["--config", &config]].concat(), 2);
        assert!(told.contains("SL-CLI-02") && told.contains("--group fleet"), "{told}");
    };
    refused(&["pub", "ops/7", "x"]);
    refused(&["pub", "ops/7", "x", "--group", "other"]);
    refused(&["request", "ops/7", "x"]);
    refused(&["reply", "*/7", "x"]);
    run(&node, "car", &["pub", "ops/7", "x", "--group", "fleet", "--config", &config]);
    run(&node, "car", &["pub", "places/7", "x", "--config", &config]);
    let shown = said(&node, "car", &["config", "show", "--config", &config]);
    assert!(shown.ends_with("groups.\"ops/**\" = \"fleet\"\n"), "{shown}");

    let context = ["context", "add", "hub", "--server", &node.address, "--require", "a/*=fleet"];
    run(&node, "car", &context);
    let told = fails(&node, "car", &["pub", "a/7", "x", "--context", "hub"], 2);
    assert!(told.contains("(context hub)"), "{told}");
    run(&node, "car", &["pub", "a/7", "x", "--context", "hub", "--group", "fleet"]);
}

#[test]
fn a_request_and_its_answer_are_sealed() {
    let node = fleet(&["car"]);
    let sealed = ["--group", "fleet", "--type", "chat"];
    let reply = ["reply", "lamps/3", "{\"state\": \"dark secret\"}", "-n", "1", "--consumer", "l"];
    let mut replying = node.command(&[&reply[..], &sealed].concat());
    let mut replying = replying.env("SEALANE_KEYS", keys(&node, "car")).spawn().unwrap();
    let request = ["request", "lamps/3", "{\"ask\": \"dark secret\"}", "--timeout", "60s"];
    let answer = said(&node, "base", &[&request[..], &sealed].concat());
    assert!(answer.contains("\"state\":\"dark secret\""), "{answer}");
    assert!(replying.wait().unwrap().success());
    let lamps = lines(&node, "base", "lamps/3", "1");
    let seal = json(&lamps).field("seal").unwrap().clone();
    assert_eq!(text(&seal, "class"), "S");
    for bytes in files_below(&node.home().join("data")).values() {
        assert!(!holds(bytes, "dark secret"), "the hub has it in clear");
    }
}
