//! `cargo xtask upgrade`: the client library's tests of an earlier commit against this commit's
//! node, and this commit's against the earlier node.
//!
//! The suite starts the program that an environment variable names, so that both commits need to
//! know that variable and nothing else of each other.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::counts::Counts;
use crate::process::{self, Outcome};

/// Names the program to the suite.
const BINARY: &str = "SEALANE_NODE_BINARY";

/// The suite, which knows the variable or does not.
const SUITE: &str = "crates/sealane/tests/client";

/// Tests that reach into a node of their own process, by a part of their name.
const IN_PROCESS: &[&str] = &["speaks_tls::"];

/// `cargo xtask upgrade [COMMIT]`; without it, the commit before this one.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let named = match arguments {
        [] => "HEAD^",
        [commit] => commit,
        _ => return Err("one commit, please".to_owned()),
    };
    let earlier = resolve(named)?;
    check_support(&earlier)?;
    let tree = Worktree::of(&earlier)?;
    // The earlier first: what cargo leaves in the target folder is of this commit.
    let before = build(&tree.folder, "earlier")?;
    let now = build(&process::root(), "this")?;
    let sides = [
        (format!("clients of {earlier:.12} at this node"), tree.folder.clone(), now),
        (format!("clients of this commit at the node of {earlier:.12}"), process::root(), before),
    ];
    let mut lines = Vec::new();
    let mut failures = Vec::new();
    for (side, folder, node) in sides {
        let counts = suite(&folder, &node)?;
        let Counts { passed, failed, filtered } = counts;
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

fn git(arguments: &[&str]) -> Outcome<String> {
    process::output(process::program("git").args(arguments))
}

fn resolve(commit: &str) -> Outcome<String> {
    let commit = format!("{commit}^{{commit}}");
    git(&["rev-parse", "--verify", &commit]).map(|name| name.trim().to_owned())
}

/// A suite that does not know the variable would test its own node, and show nothing.
fn check_support(commit: &str) -> Outcome {
    if git(&["grep", "--quiet", BINARY, commit, "--", SUITE]).is_ok() {
        return Ok(());
    }
    let format = ["log", "--reverse", "--format=%h", "-S", BINARY, "--", SUITE];
    let all = git(&format)?;
    let first = all.lines().next().unwrap_or("none so far");
    Err(format!("the tests of {commit:.12} know no {BINARY}; the first commit that does: {first}"))
}

/// The files of a commit, in a folder that goes with this.
struct Worktree {
    folder: PathBuf,
}

impl Worktree {
    fn of(commit: &str) -> Outcome<Self> {
        let tree = Self { folder: process::target().join("upgrade/tree") };
        tree.remove();
        let folder = tree.folder.to_string_lossy();
        git(&["worktree", "add", "--force", "--detach", &folder, commit])?;
        Ok(tree)
    }

    /// Removes it, where it is there.
    fn remove(&self) {
        let folder = self.folder.to_string_lossy();
        if self.folder.exists()
            && let Err(failure) = git(&["worktree", "remove", "--force", &folder])
        {
            eprintln!("{failure}");
        }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Builds the program of a folder, and keeps it under another name: both use one target folder, so
/// that what they depend on is built once.
fn build(folder: &Path, name: &str) -> Outcome<PathBuf> {
    let mut cargo = process::cargo();
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", process::target());
    process::run(cargo.args(["build", "--package", "sealane-cli"]))?;
    let kept = process::target().join("upgrade").join(format!("sealane-{name}"));
    let built = process::target().join("debug/sealane");
    std::fs::copy(&built, &kept)
        .map_err(|error| format!("{}: {error}", built.display()))
        .map(|_| kept)
}

/// Runs the suite of a folder against a program; shows what it says.
fn suite(folder: &Path, node: &Path) -> Outcome<Counts> {
    let mut cargo = process::cargo();
    cargo
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", process::target())
        .env(BINARY, node)
        .args(["test", "--package", "sealane", "--test", "client", "--"])
        .args(IN_PROCESS.iter().flat_map(|name| ["--skip", *name]))
        .stdout(Stdio::piped());
    let said = process::shown(&cargo);
    eprintln!("$ {BINARY}={} {said}", node.display());
    let mut child = cargo.spawn().map_err(|error| format!("{said} does not start: {error}"))?;
    let mut counts = None;
    let lines = child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines());
    for line in lines.map_while(Result::ok) {
        println!("{line}");
        counts = Counts::read(&line).or(counts);
    }
    let status = child.wait().map_err(|error| format!("{said}: {error}"))?;
    counts.ok_or_else(|| format!("{said}: {status}, and no test ran"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_suite_takes_a_program() {
        let served = process::root().join(SUITE).join("served.rs");
        assert!(std::fs::read_to_string(served).unwrap().contains(BINARY));
        let folder = process::root().join(SUITE);
        for name in IN_PROCESS {
            let file = folder.join(format!("{}.rs", name.trim_end_matches("::")));
            assert!(file.is_file(), "{name}");
        }
    }
}
