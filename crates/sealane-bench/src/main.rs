//! The `sealane-bench` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    sealane_bench::main(std::env::args_os())
}
