//! `cargo xtask grow`: what it takes to add a codec, an error, a field of the hub and a limit.
//!
//! Each is a patch in `tests/grow`. It is applied to a copy of the tree, where pages are made from
//! it, `tidy` looks at it, and all programs and tests have to compile. `tidy` compares the files of
//! each patch with the list in `docs/ARCHITECTURE.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, XtaskResult};
use crate::worktree::{CommitWorktree, git};

const PATCHES: &str = "tests/grow";

/// `cargo xtask grow [NAME ...]`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    let patches = patches()?;
    let is_named = |patch: &&PathBuf| arguments.is_empty() || arguments.contains(&name(patch));
    let chosen: Vec<_> = patches.iter().filter(is_named).collect();
    if chosen.is_empty() || chosen.len() < arguments.len() {
        let names: Vec<_> = patches.iter().map(|patch| name(patch)).collect();
        return Err(format!("there are {}", names.join(", ")));
    }
    let grow = process::target().join("grow");
    // A change that is not committed counts too. `git stash create` changes nothing.
    let changed = git(&["stash", "create"])?;
    let commit = if changed.trim().is_empty() { "HEAD" } else { changed.trim() };
    let tree = CommitWorktree::of(commit, &grow.join("tree"))?;
    let grown = GrownTree { tree: &tree.folder, target: grow.join("build") };
    let mut failures = vec![];
    for patch in chosen {
        let name = name(patch);
        println!(
            "{name}: {}",
            match grown.take(patch) {
                Ok(files) => format!("{files} files, and it compiles"),
                Err(failure) => {
                    failures.push(name.clone());
                    failure
                }
            }
        );
        grown.reset()?;
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join(", "))) }
}

/// The patches, in the order of their names.
fn patches() -> XtaskResult<Vec<PathBuf>> {
    let folder = process::root().join(PATCHES);
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{PATCHES}: {error}"))?;
    let mut patches: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    patches.retain(|path| path.extension().is_some_and(|end| end == "patch"));
    patches.sort();
    Ok(patches)
}

fn name(patch: &Path) -> String {
    patch.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A copy of the tree, and where it is built: a folder of its own, as cargo tells apart what it
/// builds by paths below the tree.
struct GrownTree<'a> {
    tree: &'a Path,
    target: PathBuf,
}

impl GrownTree<'_> {
    /// Applies a patch and checks what comes of it; how many files it touches.
    fn take(&self, patch: &Path) -> XtaskResult<usize> {
        process::run(self.program("git").args(["apply", "--index"]).arg(patch))?;
        let files = process::output(self.program("git").args(["diff", "--cached", "--name-only"]))?;
        self.xtask("docs")?;
        self.xtask("tidy")?;
        let mut cargo = process::cargo();
        cargo.current_dir(self.tree).env("CARGO_TARGET_DIR", &self.target);
        process::run(cargo.args(["check", "--workspace", "--all-targets"]))?;
        Ok(files.lines().count())
    }

    /// Runs this program on the copy.
    fn xtask(&self, command: &str) -> XtaskResult {
        let own = std::env::current_exe().map_err(|error| format!("xtask: {error}"))?;
        process::run(
            self.program(own).arg(command).env("CARGO_MANIFEST_DIR", self.tree.join("xtask")),
        )
    }

    fn reset(&self) -> XtaskResult {
        process::run(self.program("git").args(["reset", "--quiet", "--hard"]))
    }

    fn program(&self, name: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.tree);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_applies() {
        let names: Vec<_> = patches().unwrap().iter().map(|patch| name(patch)).collect();
        assert_eq!(names, ["codec", "error", "hub-field", "limit"]);
        for patch in patches().unwrap() {
            process::output(process::program("git").args(["apply", "--check"]).arg(&patch))
                .unwrap();
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_list() {
        let refusal = run(&["crate".to_owned()]).unwrap_err();
        assert_eq!(refusal, "there are codec, error, hub-field, limit");
    }
}
