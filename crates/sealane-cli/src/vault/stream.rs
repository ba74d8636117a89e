//! Streams that `sealane vault put` keeps: standard input, or the output of a program.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use sealane_vault::{PutOptions, PutReport, Vault};

use crate::CliFailure;

/// Keeps standard input to its end as one file.
pub(super) fn put_input(
    vault: &Vault,
    name: &str,
    options: &PutOptions,
) -> Result<PutReport, CliFailure> {
    Ok(vault.put_reader(name, &mut io::stdin().lock(), options)?)
}

/// Keeps what a program writes as one file. If the program fails, there is no snapshot: half a
/// dump of a database is none.
pub(super) fn put_output(
    vault: &Vault,
    command: &[PathBuf],
    name: &str,
    options: &PutOptions,
) -> Result<PutReport, CliFailure> {
    let mut output = ProgramOutput::start(command)?;
    let kept = vault.put_reader(name, &mut output, options);
    match output.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(kept?),
    }
}

/// The output of a program, which ends well only if the program does.
struct ProgramOutput {
    program: String,
    process: Child,
    output: Option<ChildStdout>,
    failure: Option<CliFailure>,
}

impl ProgramOutput {
    fn start(command: &[PathBuf]) -> Result<ProgramOutput, CliFailure> {
        let [program, arguments @ ..] = command else {
            return Err(CliFailure::Usage("--stdin-command needs a program: -- pg_dump NAME"));
        };
        let name = program.display().to_string();
        let mut process = Command::new(program);
        process.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = process.spawn().map_err(|cause| CliFailure::Program {
            program: name.clone(),
            said: cause.to_string(),
        })?;
        let output = process.stdout.take();
        Ok(ProgramOutput { program: name, process, output, failure: None })
    }

    /// Waits for the end of the program, whose output has ended.
    fn end(&mut self) -> io::Result<()> {
        let status = self.process.wait()?;
        if status.success() {
            return Ok(());
        }
        let (program, said) = (self.program.clone(), status.to_string());
        self.failure = Some(CliFailure::Program { program, said });
        Err(io::Error::other(status.to_string()))
    }
}

impl Read for ProgramOutput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.output.as_mut().map_or(Ok(0), |output| output.read(out))?;
        if read == 0 && !out.is_empty() {
            self.end()?;
        }
        Ok(read)
    }
}

impl Drop for ProgramOutput {
    /// Nobody reads what a program writes whose put has failed.
    fn drop(&mut self) {
        self.output = None;
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
