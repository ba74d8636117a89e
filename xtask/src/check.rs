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
    steps.optional("features", features);
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
    process::run(process::cargo().args(["fmt", "--all", "--check"]))?;
    if !process::root().join("fuzz/Cargo.toml").is_file() {
        return Ok(());
    }
    process::run(process::cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

/// Builds each crate that has features without any, and with each alone.
fn features() -> XtaskResult<StepResult> {
    let tree = SourceTree::load()?;
    let mut found = false;
    for package in tree.packages() {
        let features = package.table("features");
        let single = features.keys().filter(|feature| *feature != "default");
        let builds = if features.is_empty() { None } else { Some(None) };
        for feature in builds.into_iter().chain(single.map(Some)) {
            found = true;
            let mut command = process::cargo();
            command.args(["clippy", "--package", &package.name, "--no-default-features"]);
            if let Some(feature) = feature {
                command.args(["--features", feature]);
            }
            process::run(command.args(["--", "-D", "warnings"]))?;
        }
    }
    Ok(if found { StepResult::Passed } else { StepResult::Skipped("no crate has features") })
}
