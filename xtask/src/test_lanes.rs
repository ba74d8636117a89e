//! The programs of all tests, several at a time.
//!
//! `cargo test` runs one program after another, and each ends with its longest test alone: that
//! left half of the machine idle. Here the next program begins beside it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::process::{self, XtaskResult};

/// A test program, or cargo with the examples of the documentation.
struct LaneProgram {
    command: Command,
    name: String,
}

/// A word of a lane while its program runs.
enum LaneWord {
    Line(String),
    End,
}

/// A program that runs, and its lines so far. The words of two programs would mean nothing mixed.
struct RunningLane {
    name: String,
    child: Child,
    lines: Vec<String>,
}

/// Builds all tests, and runs them with `arguments`. Hands on the lines of each program together,
/// and fails if a program did, or if they all have not ended within `limit`.
pub(crate) fn run(
    arguments: &[&str],
    limit: Duration,
    adjust: impl Fn(&mut Command),
    hear: impl FnMut(&str),
) -> XtaskResult {
    let start = Instant::now();
    let mut programs = programs(arguments)?;
    programs.iter_mut().for_each(|program| adjust(&mut program.command));
    run_all(programs, limit.saturating_sub(start.elapsed()), hear)
}

fn run_all(
    mut waiting: VecDeque<LaneProgram>,
    limit: Duration,
    mut hear: impl FnMut(&str),
) -> XtaskResult {
    let start = Instant::now();
    let lanes = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (tell, told) = channel();
    let (mut running, mut failed) = (vec![], vec![]);
    loop {
        while running.iter().flatten().count() < lanes {
            let Some(program) = waiting.pop_front() else { break };
            println!("== {}", program.name);
            running.push(Some(begun(program, running.len(), &tell)?));
        }
        if running.iter().all(Option::is_none) {
            break;
        }
        let left = limit.saturating_sub(start.elapsed());
        let Ok((lane, word)) = told.recv_timeout(left) else {
            let names = end_all(&mut running, &mut hear);
            return Err(format!("{names}: ended after {} s, not done", limit.as_secs()));
        };
        let Some(place) = running.get_mut(lane) else { continue };
        match (word, place.as_mut()) {
            (LaneWord::Line(line), Some(program)) => program.lines.push(line),
            (LaneWord::End, Some(_)) => {
                failed.extend(place.take().and_then(|lane| lane.end(&mut hear)))
            }
            (_, None) => {}
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// The largest programs first: they take longest, and what is short fills the end.
fn programs(arguments: &[&str]) -> XtaskResult<VecDeque<LaneProgram>> {
    let mut build = process::cargo();
    build.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let said = process::output(build.stderr(Stdio::inherit()))?;
    let mut found: Vec<_> = said.lines().filter_map(built).collect();
    let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |program| program.len());
    found.sort_by_key(|(program, _)| std::cmp::Reverse(bytes(program)));
    let mut programs: VecDeque<_> = found
        .into_iter()
        .map(|(program, folder)| {
            let mut command = Command::new(&program);
            command.args(arguments).current_dir(&folder).env("CARGO_MANIFEST_DIR", &folder);
            LaneProgram { command, name: named(&program, &folder) }
        })
        .collect();
    let mut examples = process::cargo();
    examples.args(["test", "--workspace", "--no-fail-fast", "--doc"]);
    // Behind the longest, so that what it compiles is done in between.
    programs.insert(1.min(programs.len()), LaneProgram { command: examples, name: "doc".into() });
    Ok(programs)
}

/// The test program that cargo has built, by a line of its messages, and the folder of its crate.
fn built(line: &str) -> Option<(PathBuf, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    message.pointer("/profile/test")?.as_bool().filter(|is_test| *is_test)?;
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    Some((message.get("executable")?.as_str()?.into(), manifest.parent()?.to_owned()))
}

/// `sealane-stream it`.
fn named(program: &Path, folder: &Path) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let program = name(program);
    let program = program.rsplit_once('-').map_or(&*program, |(program, _)| program);
    format!("{} {program}", name(folder))
}

fn begun(
    mut program: LaneProgram,
    lane: usize,
    tell: &Sender<(usize, LaneWord)>,
) -> XtaskResult<RunningLane> {
    let name = program.name;
    let child = program.command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{name} does not start: {error}"))?;
    let (output, tell) = (child.stdout.take(), tell.clone());
    std::thread::spawn(move || {
        for line in output.into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
            let Ok(line) = line else { break };
            drop(tell.send((lane, LaneWord::Line(String::from_utf8_lossy(&line).into_owned()))));
        }
        drop(tell.send((lane, LaneWord::End)));
    });
    Ok(RunningLane { name, child, lines: vec![] })
}

/// Ends the programs that still run with all that they have started, and names them.
fn end_all(running: &mut [Option<RunningLane>], hear: &mut impl FnMut(&str)) -> String {
    let mut names = vec![];
    for mut lane in running.iter_mut().filter_map(Option::take) {
        process::end_tree(&mut lane.child);
        lane.lines.iter().for_each(|line| hear(line));
        names.push(lane.name);
    }
    names.join(", ")
}

impl RunningLane {
    /// Hands on the lines, and gives the name if the program failed.
    fn end(mut self, hear: &mut impl FnMut(&str)) -> Option<String> {
        self.lines.iter().for_each(|line| hear(line));
        let succeeded = self.child.wait().is_ok_and(|status| status.success());
        (!succeeded).then_some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_the_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/t/crates/a/Cargo.toml",
            "profile":{"test":true},"executable":"/t/debug/deps/it-12ab"}"#;
        let (program, folder) = built(line).unwrap();
        assert_eq!(named(&program, &folder), "a it");
        for (from, to) in [("true", "false"), (r#""/t/debug/deps/it-12ab""#, "null")] {
            assert_eq!(built(&line.replace(from, to)), None);
        }
        assert_eq!(built("   Compiling a"), None);
    }

    fn programs_of(scripts: &[(&str, &str)]) -> VecDeque<LaneProgram> {
        let program = |(name, script): &(&str, &str)| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            LaneProgram { command, name: (*name).to_owned() }
        };
        scripts.iter().map(program).collect()
    }

    #[test]
    fn lines_of_a_program_stay_together_and_its_failure_is_named() {
        let script = "for n in $(seq 500); do echo $0 $n; done";
        let failing = format!("{script}; exit 3");
        let programs = [("a", script), ("b", &failing), ("c", script), ("d", "exit 0")];
        let mut heard = vec![];
        let outcome = run_all(programs_of(&programs), Duration::from_secs(60), |line| {
            heard.push(line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap());
        });
        assert_eq!(outcome.unwrap_err(), "failed: b");
        assert_eq!(heard.len(), 1500);
        assert!(heard.iter().enumerate().all(|(at, number)| at % 500 + 1 == *number));
    }

    #[test]
    fn programs_that_do_not_end_are_ended_with_their_children_and_named() {
        let scripts = [("a", "echo $$; sleep 600 & echo $!; wait"), ("b", "true"), ("c", "true")];
        let mut heard = vec![];
        let outcome = run_all(programs_of(&scripts), Duration::from_secs(2), |line| {
            heard.push(line.to_owned());
        });
        assert_eq!(outcome.unwrap_err(), "a: ended after 2 s, not done");
        assert_eq!(heard.len(), 2);
        let is_there = |id: &String| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z")
        };
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !heard.iter().any(is_there)
        });
        assert!(gone, "{heard:?}");
    }
}
