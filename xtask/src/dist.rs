//! `cargo xtask dist`: a release as one folder and one archive, by `packaging/dist.sh`.

use crate::process::{self, XtaskResult};
use crate::threats;

/// `cargo xtask dist`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("dist takes no argument, not `{argument}`"));
    }
    // A release that nobody can report a weakness of is none: refused before anything is built.
    let security = std::fs::read_to_string(process::root().join(threats::SECURITY));
    threats::address(&security.map_err(|error| format!("{}: {error}", threats::SECURITY))?)?;
    process::run(&mut process::program("./packaging/dist.sh"))
}
