use std::io::Read;
use std::process::{Command, Stdio};

use sealane::Value;
use sealane_testing::{TestProcess, until};

use crate::cli::{NodeProcess, json, sealane, text};

fn token(node: &NodeProcess, args: &[&str]) -> std::process::Output {
    let mut command = sealane(&node.home());
    command.arg("--json").arg("token").args(args);
    command.arg("--data").arg(node.home().join("data")).output().unwrap()
}

/// Makes a token and gives its text.
fn make(node: &NodeProcess, args: &[&str]) -> String {
    let output = token(node, &[&["new"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text(&json(&String::from_utf8(output.stdout).unwrap()), "token")
}

/// The node sees the file within a second: then nothing is done without a token.
fn wait_until_guarded(node: &NodeProcess) {
    let began = std::time::Instant::now();
    while node.command(&["stream", "ls"]).output().unwrap().status.code() != Some(4) {
        assert!(began.elapsed().as_secs() < 60, "without a token nothing is done");
    }
}

#[test]
fn a_token_opens_what_it_grants_until_it_is_taken_back() {
    let node = NodeProcess::start();
    node.run(&["pub", "fleet/1", "{}"]);
    let secret = make(&node, &["writer", "--publish", "fleet/**"]);
    let with = |token: &str, args: &[&str]| {
        let mut command = node.command(args);
        command.env("SEALANE_TOKEN", token).output().unwrap()
    };
    wait_until_guarded(&node);
    assert!(with(&secret, &["pub", "fleet/1", "{}"]).status.success());
    let refused = with(&secret, &["pub", "orders", "{}"]);
    assert_eq!(refused.status.code(), Some(4));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("publish on orders") && said.contains("SL-NODE-07"), "{said}");
    assert_eq!(with(&secret, &["stream", "info", "fleet/1"]).status.code(), Some(4));

    let listed = String::from_utf8(token(&node, &["ls"]).stdout).unwrap();
    assert!(listed.contains("writer") && !listed.contains(&secret), "{listed}");
    let mut explain = node.command(&["explain", "access", "writer", "fleet/9"]);
    let said = explain.env("SEALANE_DATA", node.home().join("data")).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("publish  yes, by fleet/**"), "{said}");

    assert!(token(&node, &["revoke", "writer"]).status.success());
    let began = std::time::Instant::now();
    while with(&secret, &["pub", "fleet/1", "{}"]).status.success() {
        assert!(began.elapsed().as_secs() < 60, "a token that was taken back opens nothing");
    }
}

#[test]
fn a_subscription_that_is_refused_says_the_hubs_name_for_it() {
    let node = NodeProcess::start();
    let secret = make(&node, &["reader", "--read", "fleet/**"]);
    wait_until_guarded(&node);
    let sub = ["sub", "orders", "--from", "first"];
    let refused = |command: &mut Command, code: &str| {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(4) && output.stdout.is_empty(), "{said}");
        assert!(said.contains(code) && said.contains("hint: "), "{said}");
        said
    };
    refused(&mut node.command(&sub), "SL-NODE-06");
    let said = refused(node.command(&sub).env("SEALANE_TOKEN", secret), "SL-NODE-07");
    assert!(said.contains("read on orders"), "{said}");
}

#[test]
fn whoever_may_publish_everything_gives_no_orders_to_a_group() {
    let node = NodeProcess::start();
    node.run(&["key", "new", "base"]);
    node.run(&["group", "new", "fleet"]);
    node.run(&["group", "rotate", "fleet"]);
    let tag = text(&json(&node.run(&["--json", "group", "show", "fleet"])), "tag");
    let control = format!("groups/{tag}");
    let rights = ["--read", "**", "--read", "groups/*", "--publish", "**", "--manage", "**"];
    let member = make(&node, &[&["member"][..], &rights].concat());
    make(&node, &["guest", "--read", "**"]);
    let authority = make(&node, &["base", "--read", "groups/*", "--orders", "groups/*"]);
    wait_until_guarded(&node);
    let with = |token: &str, args: &[&str]| {
        let mut command = node.command(args);
        let output = command.env("SEALANE_TOKEN", token).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), said)
    };
    // The node may have read the file when it had the first token alone.
    until("the token is known", || with(&authority, &["stream", "ls"]).0 == Some(0));
    for args in [
        &["group", "publish", "fleet"][..],
        &["pub", &control, "junk"],
        &["stream", "new", &control],
        &["stream", "rm", &control, "--yes"],
    ] {
        let (code, said) = with(&member, args);
        assert_eq!(code, Some(4), "{args:?}: {said}");
        let missing = format!("does not grant orders on {control}");
        assert!(said.contains(&missing) && said.contains("SL-NODE-07"), "{args:?}: {said}");
    }
    let (code, said) = with(&authority, &["group", "publish", "fleet"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("1 order published to {control}")), "{said}");
    assert_eq!(with(&authority, &["pub", "fleet/1", "{}"]).0, Some(4));

    let data = node.home().join("data");
    let ask = |args: &[&str]| {
        let mut command = node.command(args);
        String::from_utf8(command.env("SEALANE_DATA", &data).output().unwrap().stdout).unwrap()
    };
    assert!(ask(&["token", "ls"]).contains("base\n  read     groups/*\n  orders   groups/*\n"));
    let explained = ask(&["explain", "access", "base", &control]);
    assert!(explained.contains("orders   yes, by groups/*"), "{explained}");
    let explained = ask(&["explain", "access", "member", &control]);
    assert!(explained.contains("publish  no: this topic asks for orders"), "{explained}");
    assert!(explained.contains("orders   no\n"), "{explained}");
    let explained = ask(&["explain", "access", "guest", &control]);
    assert!(explained.contains("read     no: `**` does not stand for it"), "{explained}");
    assert!(explained.contains("groups/**"), "{explained}");
    // If a token grants no orders, the command that makes it warns, and the doctor warns
    // afterwards.
    let made = node.command(&["token", "new", "vain", "--orders", "**", "--data"]);
    let made = { made }.arg(&data).output().unwrap();
    let said = String::from_utf8(made.stderr).unwrap();
    assert!(said.contains("sealane: warning: `*` and `**` at the beginning"), "{said}");
    let found = ask(&["doctor"]);
    let words: Vec<&str> = found.split_whitespace().collect();
    assert!(words.join(" ").contains("warning orders vain: "), "{found}");
    assert!(found.contains("member: `**` of read, publish, manage leaves out dead/"), "{found}");
}

#[test]
fn logs_are_json_and_hold_no_body_and_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = sealane(folder.path());
    up.env("SEALANE_LOG", "debug").env("SEALANE_LOG_FORMAT", "json").stderr(Stdio::piped());
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join("data"));
    let (process, line) = TestProcess::started(&mut up);
    let node = NodeProcess { folder, process, address: text(&json(&line), "address") };
    let secret = make(&node, &["all", "--publish", "**", "--read", "**"]);
    wait_until_guarded(&node);
    let run = |args: &[&str]| {
        let mut command = node.command(args);
        command.env("SEALANE_TOKEN", &secret).output().unwrap()
    };
    assert!(run(&["pub", "a", "{\"text\":\"zwetschgenknoedel\"}"]).status.success());
    assert!(run(&["sub", "a", "--from", "first", "--count", "1"]).status.success());
    // Refusals are logged or not, but never with what was shown.
    node.command(&["pub", "a", "{\"text\":\"zwetschgenknoedel\"}"]).output().unwrap();
    let mut node = node;
    let mut err = node.process.child.stderr.take().unwrap();
    node.process.signal("TERM");
    let mut logged = String::new();
    err.read_to_string(&mut logged).unwrap();
    assert!(logged.lines().filter(|line| line.starts_with('{')).count() > 0, "{logged}");
    for line in logged.lines().filter(|line| !line.starts_with("sealane: ")) {
        let entry = json(line);
        assert!(entry.field("level").and_then(Value::as_text).is_some(), "{line}");
    }
    let shown = secret.strip_prefix("sealane_").unwrap();
    assert!(!logged.contains("zwetschgenknoedel"), "{logged}");
    assert!(!logged.contains(shown), "{logged}");
}
