//! The commands that build, check and prove Sealane: `cargo xtask help` lists them.
//!
//! Each command is a module with a `run` function. They need Rust's standard library and
//! readers of TOML and JSON, so that the first check of a fresh clone starts in seconds.
#![forbid(unsafe_code)]

mod bench_guard;
mod check;
mod deny;
mod dist;
mod docs;
mod figures;
mod fuzz;
mod limits;
mod metrics;
mod needs;
mod process;
mod prove;
mod rust;
mod steps;
mod test;
mod test_lanes;
mod threats;
mod tidy;
mod tree;
mod verdict;

use std::process::ExitCode;

use process::XtaskResult;

const HELP: &str = "\
Builds, checks and proves Sealane.

Usage: cargo xtask COMMAND

  check
      tidy, licences and bans, format, clippy, documentation, feature builds

  tidy
      only what the compiler does not see: sizes, layers, documented names

  deny
      only licences, bans and sources of dependencies, by deny.toml

  docs
      write the pages and lists of limits and errors from the code

  needs
      only install what the tests need: packages of npm and Python, as root of Debian

  test [--lab] [--no-fuzz] [--fuzz-seconds N]
      install what the tests need, check, run every test, fuzz for 4 minutes in all

  lab [ARGUMENT ...]
      cargo test with these arguments, and with tests that need root or a program

  fuzz [TARGET] [--seconds N | --inputs N]
      fuzz one target or all, N seconds (default: 20) or N inputs each

  bench-guard [--write] [--instructions]
      bytes and allocations of fixed messages, which may not grow

  prove [NAME [--dirty] [KEY=VALUE ...] [ARGUMENT ...]]
      run a long proof and record it in results/; without NAME, list them

  upgrade [COMMIT]
      client tests of an earlier commit at this node, and these at the earlier node

  mutants [seal | frame | group | hub]
      break the code in small ways and count what the crates' own tests notice

  grow [NAME ...]
      apply the patches that add something, and see that what comes of it compiles

  babel, sumo, pictures [FOLDER]
      the proofs beside babeld and SUMO, and pictures; FOLDER has the programs, built already

  metrics [NAME=FOLDER ...]
      sizes and habits of our code, beside that of other source folders

  dist
      build a release: a static binary with its pages, completions and service file

  help
      this text
";

/// The commands that drive other programs, each a script of `tests/python`.
const SCRIPTS: [&str; 6] = ["babel", "grow", "mutants", "pictures", "sumo", "upgrade"];

fn command(name: &str) -> Option<fn(&[String]) -> XtaskResult> {
    Some(match name {
        "check" => check::run,
        "tidy" => tidy::run,
        "deny" => deny::run,
        "docs" => docs::run,
        "needs" => needs::run,
        "test" => test::run,
        "lab" => test::lab,
        "fuzz" => fuzz::run,
        "bench-guard" => bench_guard::run,
        "prove" => prove::run,
        "metrics" => metrics::run,
        "dist" => dist::run,
        _ => return None,
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if fuzz::compiles() {
        return fuzz::compile(&arguments);
    }
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> XtaskResult {
    let (name, rest) =
        arguments.split_first().map_or(("help", &[][..]), |(name, rest)| (name, rest));
    if matches!(name, "help" | "--help" | "-h") || rest.iter().any(|word| word == "--help") {
        print!("{HELP}");
        return Ok(());
    }
    if SCRIPTS.contains(&name) {
        needs::of_proof(name)?;
        let script = format!("tests/python/{name}.py");
        return process::run(process::program("python3").arg(script).args(rest));
    }
    let run = command(name).ok_or_else(|| format!("there is no command `{name}`\n\n{HELP}"))?;
    run(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_the_commands_that_there_are() {
        let lines = HELP.lines().filter_map(|line| line.strip_prefix("  "));
        let lines: Vec<_> = lines.filter(|line| !line.starts_with(' ')).collect();
        let names: Vec<_> = lines.iter().flat_map(|line| line.split(", ")).collect();
        let names = names.iter().filter_map(|words| words.split(' ').next());
        let names: Vec<_> = names.filter(|name| *name != "help").collect();
        for name in SCRIPTS {
            assert!(needs::exists(&format!("tests/python/{name}.py")) && names.contains(&name));
        }
        for name in names {
            assert!(command(name).is_some() || SCRIPTS.contains(&name), "{name}");
        }
    }

    #[test]
    fn an_unknown_command_is_refused_with_the_list() {
        let refusal = dispatch(&["polish".to_owned()]).unwrap_err();
        assert!(
            refusal.contains("`polish`") && refusal.contains("cargo xtask COMMAND"),
            "{refusal}"
        );
    }
}
