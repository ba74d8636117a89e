//! `cargo xtask test`: everything that a change has to pass, in the time that `.ci/budget` names.

use std::process::Command;

use crate::fuzz::{self, number};
use crate::process::{self, XtaskResult};
use crate::steps::{StepResult, XtaskSteps};
use crate::verdict::TestVerdict;
use crate::{bench_guard, check, needs, test_lanes};

/// Words for test programs that run the tests of the laboratory as well. They leave out the tests
/// that another test starts as a process: alone such a test waits for ever, or shows nothing.
pub(crate) const LAB: [&str; 3] = ["--include-ignored", "--skip", "as_process_"];

/// `cargo xtask test [--lab] [--no-fuzz] [--fuzz-seconds N]`; `FUZZ_SECONDS` stands for the latter.
///
/// Without a laboratory its tests are counted as not run. With `--lab` that is a failure.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let options = TestOptions::read(arguments, std::env::var("FUZZ_SECONDS").ok().as_ref())?;
    let mut steps = XtaskSteps::in_budget()?;
    let mut verdict = TestVerdict::default();
    steps.optional("install", || match needs::laboratory() {
        Err(lack) if !options.lab => {
            eprintln!("{lack}");
            verdict.lack = Some(lack);
            Ok(StepResult::Skipped("there is no laboratory: its tests are NOT RUN, see above"))
        }
        equipped => equipped.map(|()| StepResult::Passed),
    });
    check::add(&mut steps);
    let limit = steps.left();
    steps.step("tests", || {
        // A laboratory that lacks something has its tests fail: so the run shows what it lacks.
        let arguments = if verdict.lack.is_none() { &LAB[..] } else { &[] };
        let adjust = |command: &mut Command| {
            command.env("PATH", needs::search_path());
            // Many tests wait for processes and for time: two of each core keep it busy.
            if std::env::var_os("RUST_TEST_THREADS").is_none() {
                let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                command.env("RUST_TEST_THREADS", (2 * cores).to_string());
            }
        };
        test_lanes::run(arguments, limit, adjust, |line| {
            println!("{line}");
            verdict.hear(line);
        })
    });
    steps.step("bench-guard", bench_guard::of_built);
    steps.optional("typescript", || typescript(options.lab));
    steps.optional("python", || python(options.lab));
    steps.optional("fuzz", || match options.no_fuzz {
        true => Ok(StepResult::Skipped("switched off")),
        false => fuzz::short(options.fuzz_seconds).map(|()| StepResult::Passed),
    });
    println!("\n{verdict}");
    steps.finish()
}

/// `cargo xtask lab [ARGUMENT ...]`: `cargo test` with these arguments, and the laboratory's tests.
pub(crate) fn lab(arguments: &[String]) -> XtaskResult {
    let mut halves = arguments.splitn(2, |argument| argument == "--");
    let (of_cargo, of_tests) = (halves.next(), halves.next());
    let mut command = process::cargo();
    command.arg("test").args(of_cargo.unwrap_or_default());
    command.arg("--").args(LAB).args(of_tests.unwrap_or_default());
    process::run(command.env("PATH", needs::search_path()))
}

#[derive(Debug, Default, PartialEq)]
struct TestOptions {
    lab: bool,
    no_fuzz: bool,
    fuzz_seconds: Option<u64>,
}

impl TestOptions {
    /// The command line over the environment.
    fn read(arguments: &[String], environment: Option<&String>) -> XtaskResult<Self> {
        let mut options = Self::default();
        if environment.is_some() {
            options.fuzz_seconds = Some(number("FUZZ_SECONDS", environment)?);
        }
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--lab" => options.lab = true,
                "--no-fuzz" => options.no_fuzz = true,
                "--fuzz-seconds" => {
                    options.fuzz_seconds = Some(number("--fuzz-seconds", arguments.next())?);
                }
                other => return Err(format!("test has no argument `{other}`")),
            }
        }
        options.no_fuzz |= options.fuzz_seconds == Some(0);
        Ok(options)
    }
}

/// If something is missing, a laboratory fails. A contributor's machine goes on without it.
fn lacks(lack: String, lab: bool, told: &'static str) -> XtaskResult<StepResult> {
    eprintln!("{lack}");
    if lab { Err(lack) } else { Ok(StepResult::Skipped(told)) }
}

fn typescript(lab: bool) -> XtaskResult<StepResult> {
    const FOLDER: &str = "sdk/typescript";
    if !needs::exists("sdk/typescript/package.json") {
        return Ok(StepResult::Skipped("there is no sdk/typescript"));
    }
    if let Err(lack) = needs::install(&["node", FOLDER]) {
        return lacks(lack, lab, "NOT RUN: Node.js or its packages are missing");
    }
    process::run(process::program("npm").args(["test", "--prefix", FOLDER]))?;
    Ok(StepResult::Passed)
}

/// The readers that were written from the specification alone, and the judgements of our scripts.
fn python(lab: bool) -> XtaskResult<StepResult> {
    let mut install = process::program(needs::python());
    install.args(["-m", "pip", "install", "--quiet", "--editable", "sdk/python[vault]"]);
    if let Err(lack) = needs::install(&["python"]).and_then(|()| process::run(&mut install)) {
        return lacks(lack, lab, "NOT RUN: Python or its packages are missing");
    }
    for folder in ["sdk/python/tests", "tests/python"] {
        let arguments = ["-m", "unittest", "discover", "--start-directory", folder];
        process::run(process::program(needs::python()).args(arguments))?;
    }
    Ok(StepResult::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_rules_over_the_environment() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let seven = "7".to_owned();
        let read = |text, environment| TestOptions::read(&words(text), environment);
        assert_eq!(read("", None), Ok(TestOptions::default()));
        assert_eq!(read("", Some(&seven)).unwrap().fuzz_seconds, Some(7));
        assert_eq!(read("--fuzz-seconds 9", Some(&seven)).unwrap().fuzz_seconds, Some(9));
        assert!(read("--no-fuzz", None).unwrap().no_fuzz);
        assert!(read("--lab", None).unwrap().lab);
        assert!(read("--fuzz-seconds 0", None).unwrap().no_fuzz);
        assert!(read("--fuzz-seconds soon", None).is_err());
        assert!(read("--fast", None).is_err());
    }
}
