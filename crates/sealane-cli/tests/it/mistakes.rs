//! The mistakes of people, and the answers to them. An answer is one line that names the mistake,
//! one that says how to mend it, and an exit code. Every row is typed into a shell, in a folder
//! with a node.

#[path = "mistakes/rows.rs"]
mod rows;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::cli::{NodeProcess, PROGRAM, feed, json, text};
use crate::durable::disk::{self, Mounted};
use rows::{ROWS, Row};

/// Text that people never read: how a program holds a value, and the names of a library.
const NEVER: &[&str] = &[
    "os error", "Os {", "Error {", "Error(", "Some(", "None", "Ok(", "Err(", "kind:", "code:",
    "\\\"", "::", "UNIQUE", "panicked", "unwrap", "sqlite", "rustls", "serde", "toml::", "hyper",
];

/// A folder with a node, whose programs are `sealane` and those of the system.
struct Desk {
    node: NodeProcess,
}

impl Desk {
    fn new() -> Desk {
        let node = NodeProcess::start();
        let programs = node.home().join("programs");
        std::fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(PROGRAM, programs.join("sealane")).unwrap();
        let desk = Desk { node };
        let output = desk.shell(include_str!("mistakes/desk.sh")).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        desk
    }

    /// A shell without a terminal.
    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("setsid");
        shell.args(["--wait", "sh", "-c", script]).current_dir(self.node.home()).env_clear();
        let programs = self.node.home().join("programs");
        shell.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        shell.env("HOME", self.node.home()).env("SEALANE_SERVER", &self.node.address);
        shell.env("SEALANE_DATA", self.node.home().join("data"));
        shell.env("PORT", self.node.address.rsplit(':').next().unwrap());
        shell.stdin(Stdio::null());
        shell
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The faults of the error output.
fn faults(row: &Row, output: &Output, home: &Path) -> Vec<String> {
    let said = said(output);
    let mut faults = vec![];
    let code = output.status.code();
    if code != Some(row.exit) {
        faults.push(format!("exit code {code:?}, and not {}", row.exit));
    }
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("warning:")).collect();
    match lines.as_slice() {
        [error, hint] if error.starts_with("sealane: error: ") && hint.starts_with("  hint: ") => {
            if !error.ends_with(&format!(" [{}]", row.code)) {
                faults.push(format!("not the code {}", row.code));
            }
        }
        _ => faults.push("not an error and a hint".to_owned()),
    }
    let missing = row.says.iter().filter(|words| !said.contains(*words));
    faults.extend(missing.map(|words| format!("`{words}` is not said")));
    let never = NEVER.iter().filter(|words| said.contains(*words));
    faults.extend(never.map(|words| format!("`{words}` is said")));
    if said.matches(&home.display().to_string()).count() > 1 {
        faults.push("a path is said twice".to_owned());
    }
    faults
}

#[test]
fn every_mistake_is_told_as_a_reader_would_wish() {
    let desk = Desk::new();
    let mut all = String::new();
    for row in ROWS {
        let output = desk.shell(row.typed).output().unwrap();
        for fault in faults(row, &output, &desk.node.home()) {
            all.push_str(&format!("{}\n{}  {fault}\n\n", row.typed, said(&output)));
        }
    }
    assert!(all.is_empty(), "{all}");
    assert!(ROWS.len() >= 60, "{} rows", ROWS.len());
}

/// A reader goes on when its hub is killed and comes back; other commands say that it is gone.
#[test]
fn a_hub_that_is_killed_is_named() {
    let mut desk = Desk::new();
    let mut reading = desk.shell("exec sealane sub greetings --from first -n 2");
    let reading = reading.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    desk.node.wait_for_reader("greetings");
    desk.node.process.kill();
    let output = desk.shell("sealane pub greetings again").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(said(&output).contains("no hub answers at 127.0.0.1:"), "{}", said(&output));
    desk.node.restart();
    let output = desk.shell("sealane pub greetings again").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let output = reading.wait_with_output().unwrap();
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.starts_with("sealane: connection lost, connecting again: "), "{told}");
    assert!(told.ends_with("sealane: connected again\n"), "{told}");
}

/// The lines in front of it are stored, and it is said which one was wrong.
#[test]
fn a_broken_line_is_named_by_its_number() {
    let desk = Desk::new();
    for (input, number, code) in
        [(&b"1\n2\n{3\n4\n"[..], 3, "SL-CLI-05"), (b"\xff\n", 1, "SL-CLI-06")]
    {
        let mut command = desk.shell("exec sealane pub lines - < input");
        std::fs::write(desk.node.home().join("input"), input).unwrap();
        let output = command.output().unwrap();
        let told = said(&output);
        assert!(told.starts_with(&format!("sealane: error: line {number}: ")), "{told}");
        assert!(told.contains(&format!("[{code}]")), "{told}");
    }
    let long = format!("1\n{{\"a\":\"{}\"}}\n", "x".repeat(2 << 20));
    let output = feed(&mut desk.node.command(&["pub", "lines", "-"]), &long);
    assert!(said(&output).starts_with("sealane: error: line 2: "), "{}", said(&output));
    assert_eq!(output.status.code(), Some(4));
}

/// A script sees by the exit code whether what it asked for was done.
#[test]
fn an_answer_that_says_that_it_failed_fails() {
    let desk = Desk::new();
    let script =
        "sealane stream new door; sealane reply door --command 'exit 3' --consumer c -n 1 &
        sealane request door open --timeout 60s; code=$?; wait; exit $code";
    let output = desk.shell(script).output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the answer says that the request failed: exit status: 3 [SL-CLI-24]"));
    assert!(told.contains("sealane: door offset 0 failed: exit status: 3"), "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"error\":\"exit status: 3\""));
}

/// A user that has no token, or a wrong one, is told so. A user that has a token is told the right
/// that it lacks.
#[test]
fn a_wrong_token_is_told_from_a_missing_right() {
    let desk = Desk::new();
    let phone = desk.shell("sealane token new phone --read greetings --json").output().unwrap();
    let phone = text(&json(&String::from_utf8(phone.stdout).unwrap()), "token");
    let wrong = format!("sealane_{}", "A".repeat(43));
    for (token, code, words) in [
        ("", "SL-NODE-06", "SEALANE_TOKEN"),
        (wrong.as_str(), "SL-NODE-06", "SEALANE_TOKEN"),
        (phone.as_str(), "SL-NODE-07", "does not grant publish"),
    ] {
        let typed = format!("SEALANE_TOKEN={token} sealane pub greetings hi");
        // The node sees the new token within a second.
        let output = std::iter::repeat_with(|| desk.shell(&typed).output().unwrap())
            .take(1000)
            .find(|output| !output.status.success());
        let output = output.unwrap_or_else(|| panic!("{typed} is not refused"));
        let told = said(&output);
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.contains(code) && told.contains(words), "{told}");
        assert!(!told.contains("AAAA") && !told.contains(&phone), "a token is shown: {told}");
    }
}

/// Messages that are stored before the disk is full stay, and the error says that there is no room.
#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn a_full_disk_is_named() {
    let _turn = crate::TURN.beside();
    disk::require();
    let outside = tempfile::tempdir().unwrap();
    let image = outside.path().join("image");
    disk::make(&image, 32 << 20);
    let mounted = Mounted::new(&image, outside.path().join("mounted"));
    let folder = tempfile::tempdir().unwrap();
    let data = mounted.folder.join("data");
    let (process, address) = NodeProcess::spawn_on(folder.path(), data, "127.0.0.1:0");
    let node = NodeProcess { folder, process, address };
    let lines = outside.path().join("lines");
    let line = format!("{{\"a\":\"{}\"}}\n", "x".repeat(500_000));
    std::fs::write(&lines, line.repeat(100)).unwrap();
    let mut publish = node.command(&["pub", "big", "-", "--retry", "0s"]);
    let output = publish.stdin(std::fs::File::open(&lines).unwrap()).output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("the disk is full") && told.contains("[SL-HUB-13]"), "{told}");
}

/// With `--json`, programs get the same as one line.
#[test]
fn a_mistake_is_one_line_for_programs() {
    let desk = Desk::new();
    for row in ROWS.iter().filter(|row| !row.typed.contains('|')) {
        let typed = row.typed.replace("sealane ", "sealane --json ");
        let output = desk.shell(&typed).output().unwrap();
        let told = said(&output);
        let line = told.lines().last().unwrap_or_else(|| panic!("{typed}: nothing is said"));
        let error = json(line);
        let error = error.field("error").unwrap_or_else(|| panic!("{typed}: {line}"));
        assert_eq!(text(error, "code"), row.code, "{typed}");
        assert!(!text(error, "hint").is_empty(), "{typed}");
        assert_eq!(output.status.code(), Some(row.exit), "{typed}");
    }
}
