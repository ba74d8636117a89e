//! `sealane bench` and `sealane sim`: they hand over to programs of their own.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::{CliFailure, VERSION};

/// A program that is built beside this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiblingProgram {
    /// `sealane-bench`.
    Bench,
    /// `sealane-sim`.
    Sim,
}

impl SiblingProgram {
    fn name(self) -> &'static str {
        match self {
            SiblingProgram::Bench => "sealane-bench",
            SiblingProgram::Sim => "sealane-sim",
        }
    }

    fn missing(self, program: &Path, cause: String) -> CliFailure {
        let program = program.to_owned();
        match self {
            SiblingProgram::Bench => CliFailure::NoBench { program, cause },
            SiblingProgram::Sim => CliFailure::NoSim { program, cause },
        }
    }
}

/// Becomes the program beside this one, with all that it was given.
///
/// # Errors
/// [`CliFailure::NoBench`] or [`CliFailure::NoSim`] where it is not there, or is of another commit
/// or target than this.
pub fn run(beside: SiblingProgram, arguments: &[OsString], json: bool) -> Result<(), CliFailure> {
    let own = std::env::current_exe().map_err(CliFailure::Runtime)?;
    let program = own.with_file_name(format!("{}{EXE_SUFFIX}", beside.name()));
    check(beside, &program)?;
    let mut command = Command::new(&program);
    command.args(json.then_some("--json")).args(arguments);
    become_it(command).map_err(|cause| beside.missing(&program, cause.to_string()))
}

/// The bench and the simulator must be of the same commit as the product.
fn check(beside: SiblingProgram, program: &Path) -> Result<(), CliFailure> {
    let output = Command::new(program).arg("--version").output();
    let output = output.map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => beside.missing(program, "it is not there".to_owned()),
        _ => beside.missing(program, cause.to_string()),
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.trim() == format!("{} {VERSION}", beside.name()) {
        return Ok(());
    }
    let cause = format!("it is `{}`, and this is `sealane {VERSION}`", said.trim());
    Err(beside.missing(program, cause))
}

/// Does not come back but with an error.
#[cfg(unix)]
fn become_it(mut command: Command) -> io::Result<()> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

/// Ends with its exit code.
#[cfg(not(unix))]
fn become_it(mut command: Command) -> io::Result<()> {
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(i32::from(crate::exit::FAILURE)))
}
