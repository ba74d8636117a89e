//! What a shell offers when the tab key is pressed.

use std::process::Command;

use crate::cli::{NodeProcess, PROGRAM};

fn offers(node: &NodeProcess, words: &[&str]) -> Vec<String> {
    let mut command = node.command(&[&["complete", "--"], words].concat());
    command.env("SEALANE_DATA", node.home().join("data")).env("SEALANE_PASSPHRASE", "open sesame");
    command.env("SEALANE_VAULT", node.home().join("vault"));
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// A node with all that can be offered.
fn node() -> NodeProcess {
    let node = NodeProcess::start();
    for topic in ["fleet/7/location", "fleet/8/location", "orders"] {
        node.run(&["pub", topic, "{}"]);
    }
    node.run(&["sub", "orders", "--consumer", "billing", "-n", "1"]);
    node.run(&["key", "new", "alice"]);
    node.run(&["group", "new", "crew"]);
    node.run(&["context", "add", "ship", "--server", "127.0.0.1:1"]);
    let file = node.home().join("letter");
    std::fs::write(&file, "hello").unwrap();
    for args in [&["init"][..], &["put", file.to_str().unwrap()]] {
        let mut vault = node.command(&[&["vault"], args].concat());
        vault.env("SEALANE_VAULT", node.home().join("vault"));
        assert!(vault.env("SEALANE_PASSPHRASE", "open sesame").output().unwrap().status.success());
    }
    node
}

#[test]
fn what_there_is_now_is_offered() {
    let node = node();
    for (words, expected) in [
        (&["stream", "ls", "fl"][..], &["fleet/7/location", "fleet/8/location"][..]),
        (&["stream", "ls", "fleet/8/"], &["fleet/8/location"]),
        (&["sub", ""], &["fleet/7/location", "fleet/8/location", "orders"]),
        (&["consumer", "info", "orders", ""], &["billing"]),
        (&["sub", "orders", "--consumer="], &["--consumer=billing"]),
        (&["group", "show", ""], &["crew"]),
        (&["pub", "orders", "{}", "--group", "c"], &["crew"]),
        (&["context", "use", ""], &["ship"]),
        (&["vault", "ls", ""], &["1", "latest"]),
        (&["up", "--level", "d"], &["disk"]),
        (&["strea"], &["stream"]),
        (&["pub", "--de"], &["--delay"]),
        (&["help", "consumer", "pa"], &["pause"]),
    ] {
        assert_eq!(offers(&node, words), expected, "{words:?}");
    }
    let token = ["token", "new", "phone", "--read", "a", "--data"];
    assert!(node.command(&token).arg(node.home().join("data")).output().unwrap().status.success());
    assert_eq!(offers(&node, &["token", "revoke", ""]), ["phone"]);
}

/// A hub that is gone, a key folder that is locked or broken: nothing is offered, nothing is said
/// and nothing is asked.
#[test]
fn what_cannot_be_looked_at_is_passed_over() {
    let node = node();
    let none: [String; 0] = [];
    assert_eq!(offers(&node, &["sub", "--server", "127.0.0.1:1", ""]), none);
    assert_eq!(offers(&node, &["sub", "--server", "\u{1b}[2J", ""]), none);
    assert_eq!(offers(&node, &["group", "show", "--keys", "/nonexistent", ""]), none);
    assert_eq!(offers(&node, &["--context", "none", "sub", ""]), none);
    assert_eq!(offers(&node, &["vault", "ls", "--vault", "/nonexistent", ""]), none);
    assert_eq!(offers(&node, &["nonsense", "more", ""]), none);
    assert_eq!(offers(&node, &[]).len(), offers(&node, &[""]).len());
}

#[test]
fn bash_offers_it() {
    let node = node();
    let programs = node.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(PROGRAM, programs.join("sealane")).unwrap();
    let press = |line: &str, word: &str| {
        let script = format!(
            "source <(sealane completions bash); COMP_LINE={line:?} COMP_POINT=${{#COMP_LINE}}; \
             COMP_WORDS=(x {word:?}) COMP_CWORD=1; _sealane; printf '%s ' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &script]).env_clear().env("HOME", node.home());
        bash.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        let output = bash.env("SEALANE_SERVER", &node.address).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(press("sealane stream info or", "or"), "orders ");
    assert_eq!(press("sealane sub fleet/7", "fleet/7"), "fleet/7/location ");
    assert_eq!(press("sealane up --level=d", "d"), "disk ");
    assert_eq!(press("sealane consumer info orders ", ""), "billing ");
}
