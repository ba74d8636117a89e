//! `cargo xtask prove`: the tests' long runs, recorded with machine, commit and date.
//!
//! A proof is a test of the normal suite with larger numbers in its environment, so that nothing is
//! proved by code that the daily tests do not run.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::needs;
use crate::process::{self, SHIP, XtaskResult, git, today};
use crate::test::LAB;
use crate::verdict::TestCounts;

/// All proofs.
const PROOFS: &str = include_str!("../proofs.toml");

/// A row of `xtask/proofs.toml`, as its head says.
struct ProofSpec {
    name: String,
    shows: String,
    kind: ProofKind,
    /// The words behind the kind.
    words: Vec<String>,
    /// The profile of what runs.
    profile: String,
    environment: Vec<(String, String)>,
}

/// The code that a proof runs, as it is shipped unless it names another profile.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ProofKind {
    Test,
    Unit,
    Bench,
    Instrument,
    Xtask,
    Script,
}

impl ProofKind {
    const ALL: [(&str, Self); 6] = [
        ("test", Self::Test),
        ("unit", Self::Unit),
        ("bench", Self::Bench),
        ("instrument", Self::Instrument),
        ("xtask", Self::Xtask),
        ("script", Self::Script),
    ];
}

/// Reads the rows of the list.
fn proofs() -> XtaskResult<Vec<ProofSpec>> {
    let list: toml::Table =
        PROOFS.parse().map_err(|error| format!("xtask/proofs.toml: {error}"))?;
    let rows = list.get("proof").and_then(toml::Value::as_array).into_iter().flatten();
    rows.map(|row| proof(row).ok_or_else(|| format!("xtask/proofs.toml: no proof is\n{row}")))
        .collect()
}

fn proof(row: &toml::Value) -> Option<ProofSpec> {
    let text = |value: &toml::Value| value.as_str().map(str::to_owned);
    let (words, kind) =
        ProofKind::ALL.iter().find_map(|(key, kind)| Some((row.get(key)?.as_array()?, *kind)))?;
    let set = row.get("set").and_then(toml::Value::as_table).into_iter().flatten();
    Some(ProofSpec {
        name: text(row.get("name")?)?,
        shows: text(row.get("shows")?)?,
        kind,
        profile: row.get("profile").map_or(Some(SHIP.to_owned()), text)?,
        words: words.iter().map(text).collect::<Option<_>>()?,
        environment: set
            .map(|(key, value)| Some((key.clone(), text(value)?)))
            .collect::<Option<_>>()?,
    })
}

impl ProofSpec {
    fn first_word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Whether it runs tests, of which at least one has to pass.
    fn is_test(&self) -> bool {
        matches!(self.kind, ProofKind::Test | ProofKind::Unit)
    }

    /// Cargo's first run, which builds both programs, the one beside the other.
    fn preparation(&self) -> Option<Command> {
        if self.kind != ProofKind::Instrument {
            return None;
        }
        let mut command = process::cargo();
        command.args(["build", "--profile", SHIP]).env("CARGO_TERM_COLOR", "never");
        Some(command)
    }

    /// Words like `KEY=VALUE` replace the proof's environment, the rest goes to the test program.
    fn command(&self, rest: &[&String]) -> Command {
        let words = || self.words.iter().map(String::as_str);
        let mut command = process::cargo();
        match self.kind {
            ProofKind::Test | ProofKind::Unit => {
                let target: &[&str] =
                    if self.kind == ProofKind::Test { &["--test", "it"] } else { &["--lib"] };
                command.args(["test", "--profile", SHIP, "--package", self.first_word()]);
                command.args(target).args(words().skip(1)).arg("--").args(LAB).arg(SHOWN);
            }
            ProofKind::Bench => {
                command.args(["bench", "--profile", SHIP, "--package", self.first_word()]);
                command.arg("--bench").args(words().skip(1));
            }
            // Of the same packages as were built, so that nothing is built twice.
            ProofKind::Instrument => {
                command.args(["run", "--profile", SHIP, "--bin", "sealane-bench", "--"]);
                command.args(words());
            }
            ProofKind::Xtask => {
                command.args(["run", "--quiet", "--package", "xtask", "--"]).args(words());
            }
            ProofKind::Script if self.first_word().ends_with(".py") => {
                command = process::program("python3");
                command.arg(self.first_word());
            }
            ProofKind::Script => command = process::program(format!("./{}", self.first_word())),
        }
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        for word in rest {
            match word.split_once('=').filter(|(key, _)| is_variable(key)) {
                Some((key, value)) => command.env(key, value),
                None => command.arg(word),
            };
        }
        command.env("PATH", needs::search_path()).env("CARGO_TERM_COLOR", "never");
        command
    }
}

/// Tests print what they measured.
const SHOWN: &str = "--nocapture";

/// Lets a record be made from changes that are not committed.
const DIRTY: &str = "--dirty";

/// `cargo xtask prove [NAME [--dirty] [KEY=VALUE ...] [ARGUMENT ...]]`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let proofs = proofs()?;
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", list(&proofs));
        return Ok(());
    };
    let proof = proofs.iter().find(|proof| proof.name == *name);
    let proof = proof.ok_or_else(|| format!("there is no proof `{name}`\n\n{}", list(&proofs)))?;
    needs::of_proof(&proof.name)?;
    let (dirty, rest): (Vec<_>, Vec<_>) = rest.iter().partition(|word| *word == DIRTY);
    let state = WorktreeState::now()?;
    let head = head(proof, &state)?;
    let path = format!("results/prove-{name}-{}.txt", today()?);
    let file = process::root().join(&path);
    std::fs::create_dir_all(process::root().join("results"))
        .and_then(|()| File::create(&file))
        .map_err(|error| format!("{path}: {error}"))
        .and_then(|file| {
            let run = RecordedRun {
                preparation: proof.preparation(),
                command: proof.command(&rest),
                tests: proof.is_test(),
            };
            record(run, &head, file, dirty.is_empty().then_some(&state))
        })
        .map_err(|failure| format!("{failure}; see {path}"))?;
    println!("recorded in {path}");
    Ok(())
}

fn list(proofs: &[ProofSpec]) -> String {
    let mut text = String::from("cargo xtask prove NAME, where NAME is one of:\n");
    for ProofSpec { name, shows, environment, .. } in proofs {
        text += &format!("\n  {name}\n      {shows}\n");
        for (key, value) in environment {
            text += &format!("      {key}={value}\n");
        }
    }
    text
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
        today()?,
        state.commit,
        proof.profile,
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

/// A file that takes what is printed, with the verdict on it. A test that skipped itself has
/// passed, and so has a program none of whose tests has the name that was asked for.
struct ProofRecord {
    file: File,
    passed: u64,
    skip: Option<String>,
}

impl ProofRecord {
    fn into(file: File) -> Self {
        Self { file, passed: 0, skip: None }
    }

    /// Takes in one line that a run printed.
    fn hear(&mut self, line: &str) {
        self.passed += TestCounts::read(line).map_or(0, |counts| counts.passed);
        let line = line.trim();
        let skips = line.contains("NOT SHOWN")
            || line.starts_with("not tested")
            || line.starts_with("skipped ");
        if skips && self.skip.is_none() {
            self.skip = Some(line.to_owned());
        }
    }

    /// Why a run that ended well proves nothing; `tests` says whether it was one of tests.
    fn fault(&self, tests: bool) -> Option<String> {
        match &self.skip {
            Some(line) => Some(format!("a test was skipped: {line}")),
            None => (tests && self.passed == 0).then(|| "no test ran".to_owned()),
        }
    }
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
    let record = Mutex::new(ProofRecord::into(file));
    write_line(&record, &format!("{head}command: {variables}{said}\n"));
    let start = Instant::now();
    let fault = match state.and_then(WorktreeState::fault) {
        Some(fault) => Some(fault),
        None => run_all(preparation.iter_mut().chain([&mut command]), &record)?
            .or_else(|| lock(&record).fault(tests))
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
        lock(record).hear(&line);
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
