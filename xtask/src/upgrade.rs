//! `cargo xtask upgrade`: the client library's tests of an earlier commit against this commit's
//! node, and this commit's against the earlier node.
//!
//! The suite starts the program that an environment variable names, so that both commits need to
//! know that variable and nothing else of each other.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{self, XtaskResult};
use crate::verdict::TestCounts;
use crate::worktree::{CommitWorktree, git};

/// Names the program to the suite.
const BINARY: &str = "SEALANE_NODE_BINARY";

/// Where the suite is, which knows the variable or does not, and what its target is called.
const SUITE: UpgradeSuite = UpgradeSuite { folder: "crates/sealane/tests/it", target: "it" };
/// The same, of commits before each crate had one test target.
const SUITE_BEFORE: UpgradeSuite =
    UpgradeSuite { folder: "crates/sealane/tests/client", target: "client" };

struct UpgradeSuite {
    folder: &'static str,
    target: &'static str,
}

/// Tests that reach into a node of their own process, by a part of their name.
const IN_PROCESS: &[&str] = &["speaks_tls::"];

/// `cargo xtask upgrade [COMMIT]`; without it, the commit before this one.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let named = match arguments {
        [] => "HEAD^",
        [commit] => commit,
        _ => return Err("one commit, please".to_owned()),
    };
    let earlier = resolve(named)?;
    check_support(&earlier)?;
    let tree = CommitWorktree::of(&earlier, &upgrade().join("tree"))?;
    let before = UpgradeSide { folder: tree.folder.clone(), target: upgrade().join("build") };
    let now = UpgradeSide { folder: process::root(), target: process::target() };
    let sides = [
        (format!("clients of {earlier:.12} at this node"), &before, now.build()?),
        (format!("clients of this commit at the node of {earlier:.12}"), &now, before.build()?),
    ];
    let mut lines = Vec::new();
    let mut failures = Vec::new();
    for (side, clients, node) in sides {
        let counts = clients.suite(&node)?;
        let TestCounts { passed, failed, filtered, .. } = counts;
        lines.push(format!(
            "{side}: {passed} passed, {failed} failed, {filtered} left out ({})",
            IN_PROCESS.join(", ")
        ));
        if failed > 0 || passed == 0 {
            failures.push(side);
        }
    }
    println!("\n{}", lines.join("\n"));
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join("; "))) }
}

/// The folder that this command makes.
fn upgrade() -> PathBuf {
    process::target().join("upgrade")
}

fn resolve(commit: &str) -> XtaskResult<String> {
    let commit = format!("{commit}^{{commit}}");
    git(&["rev-parse", "--verify", &commit]).map(|name| name.trim().to_owned())
}

/// A suite that does not know the variable would test its own node, and show nothing.
fn check_support(commit: &str) -> XtaskResult {
    let folders = [SUITE.folder, SUITE_BEFORE.folder];
    if git(&[&["grep", "--quiet", BINARY, commit, "--"], &folders[..]].concat()).is_ok() {
        return Ok(());
    }
    let format = [&["log", "--reverse", "--format=%h", "-S", BINARY, "--"], &folders[..]].concat();
    let all = git(&format)?;
    let first = all.lines().next().unwrap_or("none so far");
    Err(format!("the tests of {commit:.12} know no {BINARY}; the first commit that does: {first}"))
}

/// One of the two commits.
struct UpgradeSide {
    folder: PathBuf,
    /// Its own: cargo names what it builds by paths below the folder, so that in one target folder
    /// it takes what it built of the other commit for what it has to build of this one.
    target: PathBuf,
}

impl UpgradeSide {
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = process::cargo();
        cargo.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target).args(arguments);
        cargo
    }

    /// Builds its program.
    fn build(&self) -> XtaskResult<PathBuf> {
        process::run(&mut self.cargo(&["build", "--package", "sealane-cli"]))?;
        Ok(self.target.join("debug/sealane"))
    }

    /// Runs its suite against a program; shows what it says.
    fn suite(&self, node: &Path) -> XtaskResult<TestCounts> {
        let is_before = self.folder.join(SUITE_BEFORE.folder).is_dir();
        let target = if is_before { SUITE_BEFORE.target } else { SUITE.target };
        let mut cargo = self.cargo(&["test", "--package", "sealane", "--test", target, "--"]);
        cargo.args(IN_PROCESS.iter().flat_map(|name| ["--skip", *name]));
        let said = process::shown(&cargo);
        eprintln!("$ {BINARY}={} {said}", node.display());
        let child = cargo.env(BINARY, node).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("{said} does not start: {error}"))?;
        let mut counts = None;
        let output = child.stdout.take().into_iter();
        for line in output.flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
            println!("{line}");
            counts = TestCounts::read(&line).or(counts);
        }
        let status = child.wait().map_err(|error| format!("{said}: {error}"))?;
        counts.ok_or_else(|| format!("{said}: {status}, and no test ran"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_suite_takes_a_program() {
        let served = process::root().join(SUITE.folder).join("served.rs");
        assert!(std::fs::read_to_string(served).unwrap().contains(BINARY));
        let folder = process::root().join(SUITE.folder);
        for name in IN_PROCESS {
            let file = folder.join(format!("{}.rs", name.trim_end_matches("::")));
            assert!(file.is_file(), "{name}");
        }
    }
}
