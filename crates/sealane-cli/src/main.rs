//! The `sealane` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    sealane_cli::main(std::env::args_os())
}
