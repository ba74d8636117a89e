//! The needs of tests and proofs beside Rust, which `tests/needs.sh` installs where it may.

use std::path::PathBuf;

use crate::process::{self, XtaskResult};

const SCRIPT: &str = "tests/needs.sh";

/// `cargo xtask needs`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    match arguments {
        [] => install(&["tests"]),
        [other, ..] => Err(format!("needs has no argument `{other}`")),
    }
}

/// Installs what the words name to the script. The error is what it says that it lacks.
pub(crate) fn install(words: &[&str]) -> XtaskResult {
    let mut said = vec![];
    let hear = |line: &str| {
        eprintln!("{line}");
        said.push(line.to_owned());
    };
    let installed =
        process::run_overheard(process::program(format!("./{SCRIPT}")).args(words), hear);
    installed.map_err(|failure| if said.is_empty() { failure } else { said.join("\n") })
}

/// Makes this machine a laboratory: it can run all tests, or the first lines say what it lacks.
pub(crate) fn laboratory() -> XtaskResult {
    // Half of the group mounts file systems or makes networks, so the downloads would be in vain.
    if process::output(process::program("id").arg("-u"))?.trim() != "0" {
        return Err("this user is not root, and may neither mount nor make networks".to_owned());
    }
    install(&["tests"])
}

/// Installs what a proof or a script of this name needs.
pub(crate) fn of_proof(name: &str) -> XtaskResult {
    match name {
        "race" => install(&["peers"]),
        "relay" => install(&["network"]),
        "babel" => install(&["babel"]),
        "sumo" => install(&["sumo"]),
        "metrics" => install(&["prometheus"]),
        "vault" => install(&["tests"]),
        "pictures" => install(&["node", "tests/js"]),
        _ => Ok(()),
    }
}

/// Whether a file of the repository exists.
pub(crate) fn exists(path: &str) -> bool {
    process::root().join(path).is_file()
}

/// The Python of the tests.
pub(crate) fn python() -> PathBuf {
    process::root().join("target/venv/bin/python")
}

/// The search path of the tests: the Python environment first, and where disk tools live.
pub(crate) fn search_path() -> std::ffi::OsString {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let ours =
        ["target/venv/bin", "target/prometheus/usr/bin"].map(|path| process::root().join(path));
    let of_disks = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let folders = ours.into_iter().chain(std::env::split_paths(&old)).chain(of_disks);
    std::env::join_paths(folders).unwrap_or(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_says_what_it_lacks() {
        assert!(install(&["nothing"]).unwrap_err().starts_with("there is nothing named `nothing`"));
    }
}
