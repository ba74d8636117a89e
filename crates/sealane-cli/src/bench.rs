//! `sealane bench`: hands over to `sealane-bench`, a program of its own.

use std::env::consts::EXE_SUFFIX;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Bench;
use crate::{Failure, VERSION};

/// Becomes the `sealane-bench` beside this program, with all that it was given.
///
/// # Errors
/// [`Failure::NoBench`] where it is not there, or is of another commit or target than this.
pub fn run(args: &Bench, json: bool) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(Failure::Runtime)?;
    let program = own.with_file_name(format!("sealane-bench{EXE_SUFFIX}"));
    check(&program)?;
    let mut command = Command::new(&program);
    command.args(json.then_some("--json")).args(&args.arguments);
    become_it(command).map_err(|cause| no_bench(&program, cause.to_string()))
}

/// What is measured with is to be of the same commit as what is measured.
fn check(program: &Path) -> Result<(), Failure> {
    let output = Command::new(program).arg("--version").output();
    let output = output.map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => no_bench(program, "it is not there".to_owned()),
        _ => no_bench(program, cause.to_string()),
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.trim() == format!("sealane-bench {VERSION}") {
        return Ok(());
    }
    Err(no_bench(program, format!("it is `{}`, and this is `sealane {VERSION}`", said.trim())))
}

fn no_bench(program: &Path, cause: String) -> Failure {
    Failure::NoBench { program: PathBuf::from(program), cause }
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
