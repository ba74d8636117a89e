//! Running other programs from the root of the repository.

mod tree;

pub(crate) use tree::end as end_tree;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command's end: nothing to say, or one sentence about what failed.
pub(crate) type XtaskResult<T = ()> = Result<T, String>;

/// The profile of what is shipped and measured, and the folder that it builds into.
pub(crate) const SHIP: &str = "ship";

/// So many lines of a failed command are said again.
const LAST_LINES: usize = 12;

/// The root of the repository. `cargo run` names it at run time, so that a binary built from
/// another copy of the tree still works on this one.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A program, to be run in the root of the repository.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs `command` with our own input and output.
///
/// Into a file, what it says of its errors is also kept: the last lines stand in the failure, so
/// that they are read at the end of a long log as well.
pub(crate) fn run(command: &mut Command) -> XtaskResult {
    if std::io::stderr().is_terminal() {
        eprintln!("$ {}", shown(command));
        let child = command.spawn().map_err(|error| not_started(command, &error))?;
        return ended(command, child);
    }
    let mut last = VecDeque::new();
    let outcome = run_overheard(command, |line| {
        eprintln!("{line}");
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    });
    outcome.map_err(|failure| last.iter().fold(failure, |all, line| all + "\n  " + line))
}

/// Runs `command`, and hands each line of its standard error to `hear`.
pub(crate) fn run_overheard(command: &mut Command, hear: impl FnMut(&str)) -> XtaskResult {
    eprintln!("$ {}", shown(command));
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| not_started(command, &error))?;
    each_line(child.stderr.take().expect("it is piped"), hear)?;
    ended(command, child)
}

/// A program's output need not be UTF-8: a test may print the bytes that it was attacked with.
fn each_line(said: impl std::io::Read, mut hear: impl FnMut(&str)) -> XtaskResult {
    for line in BufReader::new(said).split(b'\n') {
        hear(&String::from_utf8_lossy(&line.map_err(|error| error.to_string())?));
    }
    Ok(())
}

fn ended(command: &Command, mut child: std::process::Child) -> XtaskResult {
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// Runs `command` and gives what it printed.
pub(crate) fn output(command: &mut Command) -> XtaskResult<String> {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{}: {}\n{said}", shown(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{}: not UTF-8", shown(command)))
}

/// Runs git in the root of the repository.
pub(crate) fn git(arguments: &[&str]) -> XtaskResult<String> {
    output(program("git").args(arguments))
}

/// Today in UTC, as `2026-01-31`.
pub(crate) fn today() -> XtaskResult<String> {
    output(program("date").args(["-u", "+%F"])).map(|date| date.trim().to_owned())
}

/// Whether a program of this name can be started from the search path.
pub(crate) fn has(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    folders.iter().any(|folder| folder.join(name).is_file())
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("{} does not start: {error}", shown(command))
}
