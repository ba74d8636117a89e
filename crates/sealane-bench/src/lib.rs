//! The cost of a message: measurements with their baselines beside them, and the one binary
//! `sealane-bench`, which is an instrument and not shipped.
//!
//! Takes the product's own programs, and runs them as separate processes on this machine. Gives
//! tables in which every row names its durability, its connections and its codec.
#![forbid(unsafe_code)]

mod args;
mod baseline;
mod book;
mod cost;
mod failure;
mod field;
mod guard;
mod hop;
mod limits;
mod load;
pub mod measure;
mod members;
mod output;
mod page;
mod process;
pub mod programs;
mod publish;
pub mod race;
mod relay;
mod team;
mod text;
mod vault;
mod verb;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

pub use failure::ERRORS;
use failure::{BenchFailure, exit};

/// The number, commit and target of this build, as `--version` says them.
pub(crate) const VERSION: &str = env!("SEALANE_VERSION");

/// Runs the command line `args` to its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match args::BenchCli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads is no failure; whether it was help the code says.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE));
        }
    };
    match start(&cli) {
        Err(failure) if !failure.is_broken_pipe() => {
            failure.print(cli.json);
            ExitCode::from(failure.exit_code())
        }
        _ => ExitCode::SUCCESS,
    }
}

/// One thread: what measures is to take as little of the machine as it can.
fn start(cli: &args::BenchCli) -> Result<(), BenchFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(BenchFailure::of)?;
    let mut output = output::BenchOutput::new(cli.json);
    let outcome = runtime.block_on(verb::run(&cli.command, &mut output));
    let flushed = output.flush();
    // A thread may still wait for a line of standard input that never comes.
    runtime.shutdown_background();
    outcome.and(flushed)
}
