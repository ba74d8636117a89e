//! `cargo xtask fuzz`: the decoders against random input, on stable Rust.
//!
//! libFuzzer comes as a crate; the compiler's own coverage pass is switched on by flags, so that
//! neither nightly nor cargo-fuzz is needed. What a run finds goes to `target/fuzz`; a finding that
//! teaches something is copied by hand into the committed `fuzz/corpus/TARGET`, which the normal
//! tests replay.

mod shares;

use std::path::PathBuf;

use crate::process::{self, XtaskResult};
use crate::steps::StepResult;
use crate::tree::SourceTree;

const MANIFEST: &str = "fuzz/Cargo.toml";
const SECONDS: u64 = 20;
/// All targets together within `cargo xtask test`.
const TOTAL_SECONDS: u64 = 240;
/// One input may take this long, and one target this much memory.
const MAX_INPUT_SECONDS: u64 = 10;
const MAX_MEMORY_MIB: u64 = 2048;

const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// How long a target is fuzzed.
#[derive(Debug, Clone, Copy)]
enum FuzzExtent {
    Seconds(u64),
    /// So many inputs, however long that takes.
    Inputs(u64),
}

impl FuzzExtent {
    /// As libFuzzer is told.
    fn flag(self) -> String {
        match self {
            FuzzExtent::Seconds(seconds) => format!("-max_total_time={seconds}"),
            FuzzExtent::Inputs(inputs) => format!("-runs={inputs}"),
        }
    }
}

/// `cargo xtask fuzz [TARGET ...] [--seconds N | --inputs N]`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let (mut chosen, mut extent) = (vec![], FuzzExtent::Seconds(SECONDS));
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => extent = FuzzExtent::Seconds(number("--seconds", arguments.next())?),
            "--inputs" => {
                let inputs = arguments.next().and_then(|text| text.parse().ok());
                extent = FuzzExtent::Inputs(inputs.ok_or("--inputs takes a number of inputs")?);
            }
            flag if flag.starts_with('-') => return Err(format!("fuzz has no flag `{flag}`")),
            target => chosen.push(target),
        }
    }
    let Some(targets) = targets()? else {
        return Err(format!("there is nothing to fuzz: {MANIFEST} is missing"));
    };
    let is_target = |name: &&&str| targets.iter().any(|target| target == **name);
    if let Some(other) = chosen.iter().find(|name| !is_target(name)) {
        return Err(format!("no target `{other}`; there are: {}", targets.join(", ")));
    }
    let is_chosen = |target: &String| chosen.is_empty() || chosen.contains(&target.as_str());
    let chosen = targets.into_iter().filter(is_chosen);
    all(&chosen.map(|target| (target, extent)).collect::<Vec<_>>())
}

/// Fuzzes every target for a short time: 240 seconds in all, or so many.
pub(crate) fn short(seconds: Option<u64>) -> XtaskResult<StepResult> {
    let Some(targets) = targets()? else {
        return Ok(StepResult::Skipped("there is no fuzz/Cargo.toml"));
    };
    let shares = shares::shares(&SourceTree::load()?, targets, seconds.unwrap_or(TOTAL_SECONDS));
    let shares = shares.into_iter().map(|(target, seconds)| (target, FuzzExtent::Seconds(seconds)));
    all(&shares.collect::<Vec<_>>())?;
    Ok(StepResult::Passed)
}

/// Reads the number that follows a flag.
pub(crate) fn number(flag: &str, text: Option<&String>) -> XtaskResult<u64> {
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{flag} takes a number of seconds"))
}

/// The names of the programs in `fuzz/Cargo.toml`; none when there is no such file.
fn targets() -> XtaskResult<Option<Vec<String>>> {
    let Ok(text) = std::fs::read_to_string(process::root().join(MANIFEST)) else {
        return Ok(None);
    };
    let manifest: toml::Table = text.parse().map_err(|error| format!("{MANIFEST}: {error}"))?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array);
    let names = programs.into_iter().flatten().filter_map(|program| program.get("name")?.as_str());
    Ok(Some(names.map(str::to_owned).collect()))
}

/// Builds once, then runs one target after the other; all run even when one has a finding.
fn all(targets: &[(String, FuzzExtent)]) -> XtaskResult {
    let host = host()?;
    let build = process::target().join("fuzz");
    let mut command = process::cargo();
    command.args(["build", "--release", "--manifest-path", MANIFEST, "--target", &host]);
    command.arg("--target-dir").arg(&build);
    for (target, _) in targets {
        command.args(["--bin", target]);
    }
    process::run(command.env("RUSTFLAGS", FLAGS.join(" ")))?;
    let mut failed = vec![];
    for (target, extent) in targets {
        let program = build.join(&host).join("release").join(target);
        if let Err(failure) = one(target, program, *extent) {
            eprintln!("{failure}");
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        println!("fuzz: {} targets, nothing found", targets.len());
        return Ok(());
    }
    Err(format!("fuzz: findings in {}; inputs in target/fuzz/artifacts", failed.join(", ")))
}

fn one(target: &str, program: PathBuf, extent: FuzzExtent) -> XtaskResult {
    let found = process::target().join("fuzz/corpus").join(target);
    let artifacts = process::target().join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut command = process::program(program);
    command.arg(&found);
    let committed = process::root().join("fuzz/corpus").join(target);
    if committed.is_dir() {
        command.arg(committed);
    }
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(extent.flag());
    command.arg(format!("-timeout={MAX_INPUT_SECONDS}"));
    command.arg(format!("-rss_limit_mb={MAX_MEMORY_MIB}"));
    command.args(["-print_final_stats=1", "-verbosity=0"]);
    // The words that libFuzzer recommends for a dictionary are hundreds of lines, and used by none.
    let mut dictionary = false;
    process::run_overheard(&mut command, |line| {
        dictionary |= line.starts_with("###### Recommended dictionary.");
        if !dictionary {
            eprintln!("{line}");
        }
        dictionary &= !line.starts_with("###### End of recommended dictionary.");
    })
}

/// The compiler's own target. Naming it keeps the coverage flags from build scripts.
fn host() -> XtaskResult<String> {
    let about = process::output(process::program("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say its host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_arguments_are_refused() {
        assert!(run(&["--fast".to_owned()]).unwrap_err().contains("`--fast`"));
        assert!(run(&["--seconds".to_owned()]).unwrap_err().contains("number of seconds"));
        let inputs = ["--inputs", "many"].map(str::to_owned);
        assert!(run(&inputs).unwrap_err().contains("number of inputs"));
        let targets = ["json", "jsno"].map(str::to_owned);
        assert!(run(&targets).unwrap_err().contains("no target `jsno`; there are: json, "));
    }
}
