//! What `docs/FROM-NATS.md` says is typed here is typed, from top to bottom, at one hub.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::{NodeProcess, PROGRAM};

const PAGE: &str = include_str!("../../../../../docs/FROM-NATS.md");

/// What ends, ends within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// One row of a table.
struct Row {
    typed: &'static str,
    /// Whether it is ended by who typed it.
    goes_on: bool,
}

fn rows() -> Vec<Row> {
    let cells = |line: &'static str| -> Vec<&'static str> { line.split(" | ").collect() };
    let all = PAGE.lines().filter(|line| line.contains("| `sealane ")).map(cells);
    let row = |cells: Vec<&'static str>| {
        let [_, typed, note] = cells.as_slice() else { panic!("{cells:?} is no row of three") };
        let typed = typed.strip_prefix('`').and_then(|typed| typed.strip_suffix('`'));
        let typed = typed.unwrap_or_else(|| panic!("{cells:?} has nothing to be typed"));
        Row { typed, goes_on: note.starts_with("goes on") }
    };
    all.map(row).collect()
}

/// A shell that has `sealane` on its path.
fn shell(node: &NodeProcess, programs: &Path, typed: &str) -> Child {
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut shell = Command::new("sh");
    // The shell becomes the program, so that a signal meets it.
    shell.args(["-c", &format!("exec {typed}")]).current_dir(node.home()).env_clear();
    shell.env("PATH", path).env("HOME", node.home()).env("SEALANE_SERVER", &node.address);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    shell.spawn().unwrap()
}

fn ends_well(child: &mut Child, typed: &str) {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "`{typed}` ends with {status}");
            return;
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("`{typed}` does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_the_page_says_is_typed_does_it() {
    let node = NodeProcess::start();
    let programs = node.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(PROGRAM, programs.join("sealane")).unwrap();
    std::fs::write(node.home().join("lines"), "one\ntwo\nthree\n").unwrap();
    let rows = rows();
    assert!(rows.len() > 30, "{} rows", rows.len());
    let mut following = Vec::new();
    for Row { typed, goes_on } in rows {
        let mut child = shell(&node, &programs, typed);
        if goes_on {
            // Long enough to be refused, if it is.
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(child.try_wait().unwrap(), None, "`{typed}` does not go on");
            following.push((child, typed));
        } else {
            ends_well(&mut child, typed);
        }
    }
    for (mut child, typed) in following {
        // Some have ended with their stream, which the page removes.
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let _ = child.wait().unwrap_or_else(|error| panic!("`{typed}`: {error}"));
    }
}
