//! `cargo xtask check`: all that can be said about the code without running it.

use crate::process::{self, XtaskResult};
use crate::steps::{StepResult, XtaskSteps};
use crate::tree::SourceTree;
use crate::{deny, tidy};

/// `cargo xtask check`.
pub(crate) fn run(_: &[String]) -> XtaskResult {
    let mut steps = XtaskSteps::default();
    add(&mut steps);
    steps.finish()
}

/// Adds the steps of the check to a longer run, the quick ones first.
pub(crate) fn add(steps: &mut XtaskSteps) {
    steps.step("tidy", || tidy::run(&[]));
    steps.step("deny", || deny::run(&[]));
    steps.optional("spelling", || installed("typos", || process::program("typos")));
    steps.optional("unused", || {
        installed("cargo-machete", || {
            let mut command = process::cargo();
            command.arg("machete");
            command
        })
    });
    steps.step("format", format);
    steps.step("clippy", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        process::run(process::cargo().args(arguments))
    });
    steps.step("documentation", || {
        // With examples, cargo chooses the features that clippy was run with, and checks nothing
        // of what all depends on a second time.
        let mut command = process::cargo();
        command.args(["doc", "--no-deps", "--workspace", "--lib", "--examples"]);
        command.args(["--bin", "sealane-bench", "--bin", "sealane-sim", "--bin", "xtask"]);
        process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.step("features", features);
}

/// Runs a tool that somebody has, and builds none for who does not.
fn installed(
    name: &str,
    command: impl FnOnce() -> std::process::Command,
) -> XtaskResult<StepResult> {
    if !process::has(name) {
        return Ok(StepResult::Skipped("the tool is not installed"));
    }
    process::run(&mut command())?;
    Ok(StepResult::Passed)
}

fn format() -> XtaskResult {
    process::run(process::cargo().args(["fmt", "--all", "--check"]))
}

/// Builds each crate that has features without any.
///
/// All of them are built by one run, so that cargo compiles what they depend on once. A run for a
/// single feature would show nothing more: features only add, and the lints of the workspace build
/// each of them, `group` as the default and `test-kind` for the tests.
fn features() -> XtaskResult {
    let tree = SourceTree::load()?;
    let mut command = process::cargo();
    command.args(["clippy", "--no-default-features"]);
    for package in tree.packages().iter().filter(|package| !package.table("features").is_empty()) {
        command.args(["--package", &package.name]);
    }
    process::run(command.args(["--", "-D", "warnings"]))
}
