//! `cargo xtask fuzz`: the decoders against random input, on stable Rust.
//!
//! libFuzzer comes as a crate; the compiler's own coverage pass is switched on by flags, so that
//! neither nightly nor cargo-fuzz is needed. What a run finds goes to `target/fuzz`; a finding that
//! teaches something is copied by hand into the committed `fuzz/corpus/TARGET`, which the normal
//! tests replay.

mod shares;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;

use crate::process::{self, XtaskResult};
use crate::tree::SourceTree;

/// The programs, one for each target.
const PROGRAMS: &str = "fuzz/examples";
/// Says to this program that cargo runs it in the place of the compiler.
const COMPILES: &str = "SEALANE_FUZZ_COMPILES";
/// How long a target is fuzzed where the command line names no other number of seconds.
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
];

/// A target, and the module of `fuzz/src` that has its law.
struct FuzzTarget {
    name: String,
    module: String,
}

/// How long a target is fuzzed, as libFuzzer is told.
#[derive(Clone, Copy)]
enum FuzzExtent {
    Seconds(u64),
    /// So many inputs, however long that takes.
    Inputs(u64),
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
    let names: Vec<_> =
        targets(&SourceTree::load()?).into_iter().map(|target| target.name).collect();
    if let Some(other) = chosen.iter().find(|name| !names.iter().any(|one| one == **name)) {
        return Err(format!("no target `{other}`; there are: {}", names.join(", ")));
    }
    let is_chosen = |name: &String| chosen.is_empty() || chosen.contains(&name.as_str());
    let chosen = names.into_iter().filter(is_chosen).map(|name| (name, extent));
    let chosen: Vec<_> = chosen.collect();
    all(&built(&chosen)?, chosen)
}

/// Fuzzes every target for a short time: 240 seconds in all, or so many.
pub(crate) fn short(seconds: Option<u64>) -> XtaskResult {
    let tree = SourceTree::load()?;
    let shares = shares::shares(&tree, targets(&tree), seconds.unwrap_or(TOTAL_SECONDS));
    let share = |(target, seconds)| (target, FuzzExtent::Seconds(seconds));
    let shares: Vec<_> = shares.into_iter().map(share).collect();
    all(&built_beside_tests(&shares)?, shares)
}

/// Reads the number that follows a flag.
pub(crate) fn number(flag: &str, text: Option<&String>) -> XtaskResult<u64> {
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{flag} takes a number of seconds"))
}

/// The targets, by the names of their programs. Each program calls one law.
fn targets(tree: &SourceTree) -> Vec<FuzzTarget> {
    let target = |path: &str| {
        let name = path.strip_prefix(PROGRAMS)?.strip_prefix('/')?.strip_suffix(".rs")?;
        let (_, law) = tree.get(path)?.split_once("sealane_fuzz::")?;
        Some(FuzzTarget { name: name.to_owned(), module: law.split_once("::")?.0.to_owned() })
    };
    tree.rust_in(PROGRAMS).filter_map(|(path, _)| target(path)).collect()
}

/// The folder of the programs as they run for hours: optimized as a release, with coverage of all
/// that they are made of. No other build has these flags, so they have a folder of their own.
fn built(targets: &[(String, FuzzExtent)]) -> XtaskResult<PathBuf> {
    // Naming the target keeps the flags from build scripts, which do not link with them.
    let about = process::output(process::program("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say its host")?;
    let folder = process::target().join("fuzz");
    let mut build = process::cargo();
    build.args(["build", "--package", "sealane-fuzz", "--features", "libfuzzer"]);
    build.args(["--profile", "fuzz", "--target", host]);
    build.args(targets.iter().flat_map(|(target, _)| ["--example", target]));
    build.arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS.join(" "));
    process::run(&mut build)?;
    Ok(folder.join(host).join("fuzz/examples"))
}

/// The folder of the programs for the daily minutes. They are linked with the dependencies that the
/// tests have compiled: compiling them anew took longer than all targets ran. Our own crates are
/// optimized and have the coverage pass. Generic code of dependencies is compiled with them.
fn built_beside_tests(targets: &[(String, FuzzExtent)]) -> XtaskResult<PathBuf> {
    let own = std::env::current_exe().map_err(|error| format!("xtask: {error}"))?;
    let mut build = process::cargo();
    build.args(["build", "--workspace", "--features", "sealane-fuzz/libfuzzer"]);
    build.args(["--config", "profile.dev.opt-level=2"]);
    build.args(targets.iter().flat_map(|(target, _)| ["--example", target]));
    // Cargo keeps what such a wrapper compiles apart from what the compiler alone does.
    build.env("RUSTC_WORKSPACE_WRAPPER", own).env(COMPILES, "1").env("CARGO_INCREMENTAL", "0");
    process::run(&mut build)?;
    Ok(process::target().join("debug/examples"))
}

/// Whether cargo runs this program in the place of the compiler.
pub(crate) fn compiles() -> bool {
    std::env::var_os(COMPILES).is_some()
}

/// Runs the compiler that the first argument names, with the coverage pass for our own crates.
/// Build scripts do not link with it.
pub(crate) fn compile(arguments: &[String]) -> ExitCode {
    let Some((compiler, arguments)) = arguments.split_first() else { return ExitCode::FAILURE };
    // Cargo also asks the compiler about itself, without a source.
    let is_ours = arguments.iter().any(|argument| argument.ends_with(".rs"))
        && !arguments.iter().any(|argument| argument.starts_with("build_script_"));
    let mut command = Command::new(compiler);
    command.args(arguments).args(FLAGS.iter().filter(|_| is_ours));
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs a target on each core; all run even when one has a finding.
fn all(programs: &Path, targets: Vec<(String, FuzzExtent)>) -> XtaskResult {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (waiting, failed) = (Mutex::new(targets.iter()), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().ok().and_then(|mut waiting| waiting.next());
                    let Some((target, extent)) = next else { break };
                    if let Err(failure) = one(target, programs, *extent) {
                        eprintln!("{failure}");
                        failed.lock().into_iter().for_each(|mut all| all.push(target.as_str()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    if failed.is_empty() {
        println!("fuzz: {} targets, nothing found", targets.len());
        return Ok(());
    }
    Err(format!("fuzz: findings in {}; inputs in target/fuzz/artifacts", failed.join(", ")))
}

fn one(target: &str, programs: &Path, extent: FuzzExtent) -> XtaskResult {
    let found = process::target().join("fuzz/corpus").join(target);
    let artifacts = process::target().join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut command = process::program(programs.join(target));
    command.arg(&found);
    let committed = process::root().join("fuzz/corpus").join(target);
    if committed.is_dir() {
        command.arg(committed);
    }
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(match extent {
        FuzzExtent::Seconds(seconds) => format!("-max_total_time={seconds}"),
        FuzzExtent::Inputs(inputs) => format!("-runs={inputs}"),
    });
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
        assert!(run(&targets).unwrap_err().contains("no target `jsno`; there are: agent, "));
    }
}
