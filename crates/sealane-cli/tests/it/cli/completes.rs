//! The completions of a shell when the tab key is pressed.

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

/// A shell whose `sealane` is the program, with the node's address and nothing else of ours.
fn shell(node: &NodeProcess, name: &str) -> Command {
    let programs = node.home().join("programs");
    if !programs.exists() {
        std::fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(PROGRAM, programs.join("sealane")).unwrap();
    }
    let is_there = Command::new(name).arg("--version").output();
    assert!(is_there.is_ok(), "`{name}` is missing; run: cargo xtask needs");
    let mut shell = Command::new(name);
    shell.env_clear().env("HOME", node.home()).env("SEALANE_SERVER", &node.address);
    shell.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    shell.env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    shell
}

#[test]
fn bash_offers_it() {
    let node = node();
    let press = |line: &str, word: &str| {
        let script = format!(
            "source <(sealane completions bash); COMP_LINE={line:?} COMP_POINT=${{#COMP_LINE}}; \
             COMP_WORDS=(x {word:?}) COMP_CWORD=1; _sealane; printf '%s ' \"${{COMPREPLY[@]}}\""
        );
        let output = shell(&node, "bash").args(["--norc", "-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(press("sealane stream info or", "or"), "orders ");
    assert_eq!(press("sealane sub fleet/7", "fleet/7"), "fleet/7/location ");
    assert_eq!(press("sealane up --level=d", "d"), "disk ");
    assert_eq!(press("sealane consumer info orders ", ""), "billing ");
    // A topic that a shell would part or obey is offered as it has to be typed, and read so.
    node.run(&["pub", "odd name & 'more'", "{}"]);
    let quoted = r"odd\ name\ \&\ \'more\' ";
    assert_eq!(press("sealane sub odd", "odd"), quoted);
    assert_eq!(press(r"sealane sub odd\ na", r"odd\ na"), quoted);
}

/// The words that are typed in an interactive zsh, and its line once the tab key was pressed behind
/// them.
const TYPED_AND_COMPLETED: &[(&str, &str)] = &[
    ("sealane strea", "sealane stream "),
    ("sealane stream info or", "sealane stream info orders "),
    // The common beginning of all offers.
    ("sealane sub fl", "sealane sub fleet/"),
    ("sealane sub fleet/8", "sealane sub fleet/8/location "),
    ("sealane consumer info orders ", "sealane consumer info orders billing "),
    ("sealane sub odd", "sealane sub odd:name "),
    ("sealane up --level d", "sealane up --level disk "),
    ("sealane pub --de", "sealane pub --delay "),
    // Where nothing is offered, files are.
    ("sealane inspect lett", "sealane inspect letter "),
];

#[test]
#[ignore = "lab: needs zsh"]
fn zsh_offers_it() {
    let node = node();
    node.run(&["pub", "odd:name", "{}"]);
    for (typed, completed) in TYPED_AND_COMPLETED {
        let mut zsh = shell(&node, "zsh");
        zsh.args(["-f", "-c", include_str!("completes/press.zsh"), "press", typed]);
        let output = zsh.current_dir(node.home()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = String::from_utf8(output.stdout).unwrap();
        assert_eq!(line, format!("{completed}\n"), "`{typed}`: {said}");
    }
}

#[test]
#[ignore = "lab: needs fish"]
fn fish_offers_it() {
    let node = node();
    node.run(&["pub", "odd:name", "{}"]);
    let press = |line: &str| {
        let script = format!("sealane completions fish | source; complete --do-complete {line:?}");
        let mut fish = shell(&node, "fish");
        let output = fish.args(["--no-config", "-c", &script]).current_dir(node.home()).output();
        let offered = String::from_utf8(output.unwrap().stdout).unwrap();
        let word = |offer: &str| offer.split('\t').next().unwrap().to_owned();
        offered.lines().map(word).collect::<Vec<_>>()
    };
    assert_eq!(press("sealane strea"), ["stream"]);
    assert_eq!(press("sealane stream info or"), ["orders"]);
    assert_eq!(press("sealane sub fl"), ["fleet/7/location", "fleet/8/location"]);
    assert_eq!(press("sealane consumer info orders "), ["billing"]);
    assert_eq!(press("sealane sub odd"), ["odd:name"]);
    assert_eq!(press("sealane up --level=d"), ["--level=disk"]);
    assert_eq!(press("sealane pub --de"), ["--delay"]);
    assert_eq!(press("sealane up --level d"), ["disk"]);
    assert_eq!(press("sealane inspect lett"), ["letter"]);
}
