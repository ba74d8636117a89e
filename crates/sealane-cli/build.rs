//! The text of `--version` beside the number: the commit, and the target of the build.
//!
//! All programs run this script (`build` in their manifests), and nothing else does. So a new
//! commit builds three packages anew, not all. A build from an archive names the commit by the
//! variable `SEALANE_COMMIT`.

use std::path::{Path, PathBuf};
use std::process::Command;

const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo::rerun-if-env-changed=SEALANE_COMMIT");
    let named = variable("SEALANE_COMMIT").filter(|commit| !commit.is_empty());
    let commit = named.or_else(checked_out).unwrap_or_else(|| UNKNOWN.to_owned());
    let number = variable("CARGO_PKG_VERSION").unwrap_or_default();
    let target = variable("TARGET").unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo::rustc-env=SEALANE_COMMIT={commit}");
    println!("cargo::rustc-env=SEALANE_VERSION={number} ({commit}, {target})");
    println!("cargo::rustc-env=SEALANE_PROFILE={}", profile());
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The commit that is checked out, if these files are a repository's own and not a copy in another
/// one. Tells cargo which files say that it is another.
fn checked_out() -> Option<String> {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let root = here.parent()?.parent()?.canonicalize().ok()?;
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root {
        return None;
    }
    rerun_if_changed(&path_of("HEAD")?);
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        let branch = path_of(&branch)?;
        rerun_if_changed(&branch);
        if !branch.exists() {
            rerun_if_changed(&path_of("packed-refs")?);
        }
    }
    git(&["rev-parse", "--short=7", "HEAD"])
}

/// Cargo takes a file that is not there for one that changed, always: then it is the nearest folder
/// in which it would be made.
fn rerun_if_changed(path: &Path) {
    if let Some(there) = path.ancestors().find(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", there.display());
    }
}

/// Where git keeps this; a worktree has some of it in a folder of its own.
fn path_of(name: &str) -> Option<PathBuf> {
    git(&["rev-parse", "--path-format=absolute", "--git-path", name]).map(PathBuf::from)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}

/// The profile, by the folder that it builds into: PROFILE says `release` for all that inherit it.
fn profile() -> String {
    let out = PathBuf::from(variable("OUT_DIR").unwrap_or_default());
    let build = out.ancestors().find(|path| path.file_name().is_some_and(|name| name == "build"));
    let folder = build.and_then(|build| build.parent()?.file_name()?.to_str());
    folder.map_or_else(|| variable("PROFILE").unwrap_or_default(), str::to_owned)
}
