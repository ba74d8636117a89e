//! `cargo xtask prove`: the tests' long runs, recorded with machine, commit and date.
//!
//! A proof is a test of the normal suite with larger numbers in its environment, so that nothing is
//! proved by code that the daily tests do not run.

mod list;
mod verdict;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::date;
use crate::process::{self, SHIP, XtaskResult};
use crate::test::LAB;
use list::PROOFS;
use verdict::ProofVerdict;

/// The proof that needs other people's servers.
const RACE: &str = "race";
/// The proof that needs programs which people run over networks.
const RELAY: &str = "relay";
/// The proof that runs tests which are to fail.
const MUTANTS: &str = "mutants";
/// The proof that compiles patches.
const GROW: &str = "grow";
/// The proof that runs `babeld` over the simulator's radio.
const BABEL: &str = "babel";
/// The proof whose vehicles SUMO drives.
const SUMO: &str = "sumo";
/// The proof that gives parsers random input.
const FUZZ: &str = "fuzz";
/// The proof that needs a Prometheus.
const METRICS: &str = "metrics";
/// The proof that needs other people's Python packages.
const VAULT: &str = "vault";

struct ProofSpec {
    name: &'static str,
    shows: &'static str,
    runs: ProofCommand,
    environment: &'static [(&'static str, &'static str)],
}

/// The tests, bench, command or script that a proof runs, as it is shipped unless the variant says
/// otherwise.
enum ProofCommand {
    /// Those of a package's promises, its tests in `tests/it`, whose name contains the word.
    Test { package: &'static str, named: &'static str },
    /// Those tests beside a package's code whose name contains the word.
    Unit { package: &'static str, named: &'static str },
    /// A bench of a package.
    Bench { package: &'static str, bench: &'static str },
    /// A command of `sealane-bench`, with `sealane` beside it.
    Instrument(&'static [&'static str]),
    /// A command of this one, with its arguments. It runs tests in their profile, or builds what it
    /// runs.
    Xtask(&'static [&'static str]),
    /// A script of the repository, which builds what it needs.
    Script(&'static str),
}

const NODE: &str = "sealane-node";
const CLI: &str = "sealane-cli";
const GROUP: &str = "sealane-group";
/// With it, latencies that a proof is of decide, which in the daily tests are only printed.
const DEMANDS: (&str, &str) = ("SEALANE_DEMANDS", "1");
/// The target of every package's promises.
const PROMISES: &str = "it";

impl ProofCommand {
    fn is_test(&self) -> bool {
        !matches!(
            self,
            Self::Bench { .. }
                | Self::Instrument(_)
                | Self::Xtask([MUTANTS | GROW | BABEL | SUMO | FUZZ, ..])
                | Self::Script(_)
        )
    }

    /// The profile that it is built in.
    fn profile(&self) -> &'static str {
        match self {
            Self::Xtask([FUZZ, ..]) => "release, with coverage and assertions",
            // It drives programs that it builds as they are shipped.
            Self::Xtask([BABEL, ..]) => SHIP,
            Self::Xtask(_) => "dev",
            _ => SHIP,
        }
    }

    /// The arguments of cargo's first run, which builds both programs, the one beside the other.
    fn preparation(&self) -> Option<[&'static str; 3]> {
        matches!(self, Self::Instrument(_)).then_some(["build", "--profile", SHIP])
    }

    /// The program to run: cargo, but for a script.
    fn program(&self) -> Command {
        match self {
            Self::Script(path) => process::program(format!("./{path}")),
            _ => process::cargo(),
        }
    }

    /// The arguments of cargo.
    fn arguments(&self) -> Vec<&'static str> {
        let test = |package, rest: &[&'static str]| {
            let begin = ["test", "--profile", SHIP, "--package", package];
            [&begin, rest, &["--"], &LAB, &[SHOWN]].concat()
        };
        match *self {
            Self::Test { package, named } => test(package, &["--test", PROMISES, named]),
            Self::Unit { package, named } => test(package, &["--lib", named]),
            Self::Bench { package, bench } => {
                vec!["bench", "--profile", SHIP, "--package", package, "--bench", bench]
            }
            Self::Script(_) => vec![],
            Self::Xtask(words) => [&["run", "--quiet", "--package", "xtask", "--"], words].concat(),
            // Of the same packages as were built, so that nothing is built twice.
            Self::Instrument(words) => {
                [&["run", "--profile", SHIP, "--bin", "sealane-bench", "--"], words].concat()
            }
        }
    }
}

/// Tests print what they measured.
const SHOWN: &str = "--nocapture";

/// Lets a record be made from changes that are not committed.
const DIRTY: &str = "--dirty";

/// `cargo xtask prove [NAME [--dirty] [KEY=VALUE ...] [ARGUMENT ...]]`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", list());
        return Ok(());
    };
    let proof = PROOFS.iter().find(|proof| proof.name == name);
    let proof = proof.ok_or_else(|| format!("there is no proof `{name}`\n\n{}", list()))?;
    match proof.name {
        RACE => crate::needs::peers()?,
        RELAY => crate::needs::network()?,
        VAULT => crate::needs::install()?,
        METRICS => crate::needs::prometheus()?,
        _ => {}
    }
    let (words, rest): (Vec<_>, Vec<_>) = rest.iter().partition(|word| *word == DIRTY);
    let state = WorktreeState::now()?;
    let head = head(proof, &state)?;
    let path = format!("results/prove-{name}-{}.txt", date::today());
    let file = process::root().join(&path);
    std::fs::create_dir_all(process::root().join("results"))
        .and_then(|()| File::create(&file))
        .map_err(|error| format!("{path}: {error}"))
        .and_then(|file| {
            let run = RecordedRun {
                preparation: preparation(proof),
                command: command(proof, &rest),
                tests: proof.runs.is_test(),
            };
            let state = words.is_empty().then_some(&state);
            record(run, &head, file, state)
        })
        .map_err(|failure| format!("{failure}; see {path}"))?;
    println!("recorded in {path}");
    Ok(())
}

fn list() -> String {
    let mut text = String::from("cargo xtask prove NAME, where NAME is one of:\n");
    for ProofSpec { name, shows, environment, .. } in PROOFS {
        text += &format!("\n  {name}\n      {shows}\n");
        for (key, value) in *environment {
            text += &format!("      {key}={value}\n");
        }
    }
    text
}

fn preparation(proof: &ProofSpec) -> Option<Command> {
    let mut command = process::cargo();
    command.args(proof.runs.preparation()?).env("CARGO_TERM_COLOR", "never");
    Some(command)
}

/// Words like `KEY=VALUE` replace the proof's environment, the rest goes to the test program.
fn command(proof: &ProofSpec, rest: &[&String]) -> Command {
    let mut command = proof.runs.program();
    command.args(proof.runs.arguments());
    command.envs(proof.environment.iter().copied());
    for word in rest {
        match word.split_once('=').filter(|(key, _)| is_variable(key)) {
            Some((key, value)) => command.env(key, value),
            None => command.arg(word),
        };
    }
    command.env("PATH", crate::needs::search_path()).env("CARGO_TERM_COLOR", "never");
    command
}

fn is_variable(key: &str) -> bool {
    !key.is_empty()
        && key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// The state of the working tree.
#[derive(Debug, PartialEq)]
struct WorktreeState {
    commit: String,
    /// Files that differ from the commit, but for records.
    changed: String,
}

impl WorktreeState {
    fn now() -> XtaskResult<Self> {
        let git = |arguments: &[&str]| process::output(process::program("git").args(arguments));
        let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
        let files = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":!results"];
        Ok(Self { commit, changed: git(&files)? })
    }

    /// Why a record of this state names a commit of which it is not.
    fn fault(&self) -> Option<String> {
        let hint = format!("commit them, or give {DIRTY}");
        (!self.changed.is_empty()).then(|| format!("there are uncommitted changes: {hint}"))
    }
}

fn head(proof: &ProofSpec, state: &WorktreeState) -> XtaskResult<String> {
    let more = if state.changed.is_empty() { "" } else { " and uncommitted changes" };
    let kernel = process::output(process::program("uname").args(["-srm"]))?;
    let rust = process::output(process::program("rustc").arg("--version"))?;
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Ok(format!(
        "{}: {}\ndate: {}\ncommit: {}{more}\nprofile: {}\nprocessor: {}, {cores} cores\n\
         kernel: {}\nrust: {}\n",
        proof.name,
        proof.shows,
        date::today(),
        state.commit,
        proof.runs.profile(),
        processor(),
        kernel.trim(),
        rust.trim(),
    ))
}

fn processor() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned())
}

/// The commands of a record.
struct RecordedRun {
    /// The command that has to succeed first.
    preparation: Option<Command>,
    command: Command,
    /// Whether it runs tests, of which at least one has to pass.
    tests: bool,
}

/// A file that takes what is printed, and what that says.
struct ProofRecord {
    file: File,
    verdict: ProofVerdict,
}

/// Runs a command, with what it prints shown and written below `head`. With a `state`, nothing but
/// its commit may be what runs, from the beginning to the end.
fn record(run: RecordedRun, head: &str, file: File, state: Option<&WorktreeState>) -> XtaskResult {
    let RecordedRun { mut preparation, mut command, tests } = run;
    let first = preparation.as_ref().map(|first| format!("{} && ", process::shown(first)));
    let said = format!("{}{}", first.unwrap_or_default(), process::shown(&command));
    let variables: String = command
        .get_envs()
        .filter(|(key, _)| key.to_string_lossy().starts_with("SEALANE_"))
        .filter_map(|(key, value)| Some(format!("{}={} ", key.display(), value?.display())))
        .collect();
    let record = Mutex::new(ProofRecord { file, verdict: ProofVerdict::default() });
    write_line(&record, &format!("{head}command: {variables}{said}\n"));
    let start = Instant::now();
    let fault = match state.and_then(WorktreeState::fault) {
        Some(fault) => Some(fault),
        None => run_all(preparation.iter_mut().chain([&mut command]), &record)?
            .or_else(|| lock(&record).verdict.fault(tests))
            .or_else(|| state.and_then(has_moved)),
    };
    let result = fault.as_ref().map_or("passed".to_owned(), |fault| format!("FAILED, {fault}"));
    let seconds = start.elapsed().as_secs_f64();
    write_line(&record, &format!("\nresult: {result}\nseconds: {seconds:.1}"));
    fault.map_or(Ok(()), |fault| Err(format!("{said}: {fault}")))
}

/// Runs commands as long as they succeed; how the last one failed, if it did.
fn run_all<'a>(
    commands: impl Iterator<Item = &'a mut Command>,
    record: &Mutex<ProofRecord>,
) -> XtaskResult<Option<String>> {
    for command in commands {
        let fault = run_to_end(command, record)?;
        if fault.is_some() {
            return Ok(fault);
        }
    }
    Ok(None)
}

/// How the command failed, if it did.
fn run_to_end(command: &mut Command, record: &Mutex<ProofRecord>) -> XtaskResult<Option<String>> {
    let said = process::shown(command);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{said} does not start: {error}"))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| copy(out, record));
        scope.spawn(|| copy(err, record));
    });
    let status = child.wait().map_err(|error| format!("{said}: {error}"))?;
    Ok((!status.success()).then(|| status.to_string()))
}

/// Cargo builds what is there when it comes to it, so that the record must not have begun with
/// another state.
fn has_moved(state: &WorktreeState) -> Option<String> {
    let moved = WorktreeState::now().map_or(true, |now| now != *state);
    moved.then(|| "the working tree was changed meanwhile".to_owned())
}

fn copy(from: Option<impl Read>, record: &Mutex<ProofRecord>) {
    let mut lines = from.into_iter().flat_map(|from| BufReader::new(from).split(b'\n'));
    while let Some(Ok(line)) = lines.next() {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        lock(record).verdict.hear(&line);
        write_line(record, &anonymous(&line));
    }
}

/// A record is committed, so it names no folder of the machine.
fn anonymous(line: &str) -> String {
    let (root, target) = (process::root(), process::target());
    let home = std::env::var("HOME").unwrap_or_default();
    let mut line =
        line.replace(&*target.to_string_lossy(), "target").replace(&*root.to_string_lossy(), ".");
    if home.len() > 1 {
        line = line.replace(&home, "~");
    }
    line
}

fn lock(record: &Mutex<ProofRecord>) -> MutexGuard<'_, ProofRecord> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_line(record: &Mutex<ProofRecord>, line: &str) {
    if let Err(error) = writeln!(lock(record).file, "{line}") {
        eprintln!("the record is incomplete: {error}");
    }
}

#[cfg(test)]
mod tests;
