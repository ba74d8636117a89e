//! The `sealane` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    sealane_cli::give_back_by(give_back);
    sealane_cli::main(std::env::args_os())
}

/// Has glibc give back to the system what was freed. Measured after 2,000 connections came and
/// went: of 72 MiB resident 40 are left, where the node began with 36. mimalloc in its place keeps
/// 50, jemalloc 43.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "no safe crate has this function of glibc")]
fn give_back() {
    // SAFETY: it takes no pointer, locks each arena itself, and moves nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators give back what they choose.
#[cfg(not(target_env = "gnu"))]
fn give_back() {}
