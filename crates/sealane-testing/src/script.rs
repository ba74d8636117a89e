//! Scripts of `tests/js`, which Node.js runs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file or folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A file or folder of an npm package that `cargo xtask needs` installs.
pub fn npm_package(path: &str) -> PathBuf {
    let path = repository("tests/js/node_modules").join(path);
    assert!(path.exists(), "{} is missing; run: cargo xtask needs", path.display());
    path
}

/// Runs a script of `tests/js` that needs a package, and gives what it says.
pub fn run_script(script: &str, package: &str, arguments: &[&str]) -> String {
    npm_package(package);
    let mut node = Command::new("node");
    let output = node.arg(repository("tests/js").join(script)).args(arguments).output();
    let output = output.expect("Node.js 20 or later must be installed as `node`");
    let said = String::from_utf8(output.stdout).expect("its output is text");
    print!("{said}");
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} {arguments:?}: {wrong}");
    assert!(!said.is_empty(), "{script} ended early");
    said
}
