//! The `sealane-sim` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    sealane_sim::main(std::env::args_os())
}
