use std::process::{Command, Stdio};

use crate::cli::{NodeProcess, feed, json, sealane, text};

/// The exit code and what was said on standard error.
fn failure(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty(), "data although it failed");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn exit_codes_are_as_documented() {
    let node = NodeProcess::start();
    let run = |args: &[&str]| failure(&mut node.command(args));
    assert_eq!(run(&["stream", "info", "none"]).0, 4);
    assert_eq!(run(&["pub", "a", "x", "--expect", "7"]).0, 4);
    assert_eq!(run(&["sub", "a/*", "--inbox"]).0, 4);
    assert_eq!(run(&["nonsense"]).0, 2);
    assert_eq!(run(&["pub", "a//b", "x"]).0, 2);
    assert_eq!(run(&["pub", "a", "{x}"]).0, 2);
    assert_eq!(run(&["pub", "a", "x", "--codec", "xml"]).0, 2);
    assert_eq!(run(&["sub", "a", "--from", "yesterday"]).0, 2);
    assert_eq!(run(&["stream", "ls", "--server", "127.0.0.1:1"]).0, 3);
    let (_, said) = run(&["stream", "info", "none"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "sealane: error: there is no stream none [SL-HUB-08]");
    assert!(lines[1].starts_with("  hint: A stream is made by its first message"));
    assert_eq!(lines.len(), 2);
    let (_, said) = run(&["stream", "info", "none", "--json"]);
    let error = json(&said);
    assert_eq!(text(error.field("error").unwrap(), "code"), "SL-HUB-08");
}

#[test]
fn a_node_that_cannot_start_says_why() {
    let node = NodeProcess::start();
    let other = tempfile::tempdir().unwrap();
    let mut up = sealane(other.path());
    up.args(["up", "--listen", &node.address, "--data"]).arg(other.path().join("data"));
    let (code, said) = failure(&mut up);
    assert!(code == 1 && said.contains("[SL-CLI-12]"), "{code}: {said}");
    assert!(node.run(&["explain", "SL-CLI-12"]).contains("Listen"));
    let mut up = sealane(other.path());
    up.args(["up", "--listen", "127.0.0.1:0", "--data"]).arg(node.home().join("data"));
    let (code, said) = failure(&mut up);
    assert!(code == 2 && said.contains("another node uses this folder"), "{code}: {said}");
    let folder = node.home().join("data").display().to_string();
    assert_eq!(said.matches(&folder).count(), 1, "{said}");
}

#[test]
fn what_is_wrong_with_a_store_is_named() {
    let node = NodeProcess::start();
    node.run(&["pub", "a", "{}"]);
    let at = |name: &str| node.home().join(name).display().to_string();
    let (data, copy, new) = (at("data"), at("copy"), at("new"));
    let run = |args: &[&str]| failure(sealane(&node.home()).args(args));
    let named = |args: &[&str], code: i32, reference: &str| {
        let (exit, said) = run(args);
        assert!(exit == code && said.contains(reference), "{args:?}: {exit}: {said}");
    };
    named(&["backup", &copy, "--data", &new], 2, "[SL-HUB-25]");
    named(&["restore", &new, "--data", &copy], 2, "[SL-HUB-25]");
    let made = sealane(&node.home()).args(["backup", &copy, "--data", &data]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    named(&["backup", &copy, "--data", &data], 2, "[SL-HUB-24]");
    let store = std::path::Path::new(&copy).join("streams.db");
    std::fs::write(&store, "a letter, and no store of streams").unwrap();
    named(&["restore", &copy, "--data", &new], 5, "[SL-HUB-22]");
}

#[test]
fn a_wrong_line_is_told_after_the_right_ones_are_stored() {
    let node = NodeProcess::start();
    let output = feed(&mut node.command(&["pub", "a", "-"]), "1\n2\n{3\n4\n");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"a: 2 messages stored, next offset 2\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("[SL-CLI-05]"));
}

#[test]
fn a_reader_of_the_output_may_go() {
    let node = NodeProcess::start();
    let input = "x\n".repeat(20_000);
    assert!(feed(&mut node.command(&["pub", "a", "-"]), &input).status.success());
    let mut sub = node.command(&["sub", "a", "--from", "first"]);
    let mut child = sub.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut String::new()).unwrap();
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let mut explain = sealane(&node.home());
    let mut child = explain.arg("explain").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

/// A system that gives too little is not taken for a wrong passphrase. What the program takes
/// before it asks for more differs from machine to machine, and is looked for first.
#[test]
fn a_system_without_memory_or_threads_is_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("letter"), "hello").unwrap();
    let within = |mib: usize, words: &[&str]| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={}", mib << 20)).arg(super::PROGRAM).args(words);
        command.env_clear().env("HOME", home.path()).env("SEALANE_PASSPHRASE", "open sesame");
        command.env("SEALANE_VAULT", home.path().join("vault")).current_dir(home.path());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let made = within(64 << 10, &["vault", "init", "--no-recovery"]);
    assert!(made.status.success(), "{made:?}");
    let starts = |mib: &usize| within(*mib, &["vault", "ls", "--vault", "none"]).status.code();
    let least = (8..1 << 14).step_by(8).find(|mib| starts(mib) == Some(2)).unwrap();
    let mut all = String::new();
    for kib in ((least - 8) << 10..least << 10).step_by(256) {
        // It ends, and does not wait for threads that there are not.
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "30", "prlimit", &format!("--as={}", kib << 10)]);
        command.arg(super::PROGRAM).args(["vault", "ls", "--vault", "none"]);
        command.env_clear().env("HOME", home.path()).env("SEALANE_PASSPHRASE", "open sesame");
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_ne!(output.status.code(), Some(124), "it hangs with {kib} KiB");
        all.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    assert!(all.contains("the program could not start its threads: out of memory [SL-CLI-08]"));
    assert!(!all.contains("panicked"), "{all}");
    for (mut more, words) in [
        (
            (8..=160).step_by(16),
            "takes 65536 KiB of memory, and the system gives less [SL-VAULT-50]",
        ),
        ((160..=640).step_by(32), "a thread could not be started [SL-VAULT-31]"),
    ] {
        let mut all = String::new();
        let is_said = more.any(|more| {
            let output = within(least + more, &["vault", "put", "letter", "--threads", "256"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!said.contains("opens with that secret"), "{more} MiB more: {said}");
            all.push_str(&said);
            said.contains(words)
        });
        assert!(is_said, "`{words}` is never said: {all}");
    }
}
