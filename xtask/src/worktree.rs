//! The files of a commit in a folder of their own.

use std::path::{Path, PathBuf};

use crate::process::{self, XtaskResult};

/// Runs git in the root of the repository.
pub(crate) fn git(arguments: &[&str]) -> XtaskResult<String> {
    process::output(process::program("git").args(arguments))
}

/// The files of a commit, in a folder that goes with this.
pub(crate) struct CommitWorktree {
    pub(crate) folder: PathBuf,
}

impl CommitWorktree {
    /// Writes the files of `commit` into `folder`, which is made anew.
    pub(crate) fn of(commit: &str, folder: &Path) -> XtaskResult<Self> {
        let tree = Self { folder: folder.to_owned() };
        tree.remove();
        let folder = tree.folder.to_string_lossy();
        git(&["worktree", "add", "--force", "--detach", &folder, commit])?;
        Ok(tree)
    }

    /// Removes it, where it is there.
    fn remove(&self) {
        let folder = self.folder.to_string_lossy();
        if self.folder.exists()
            && let Err(failure) = git(&["worktree", "remove", "--force", &folder])
        {
            eprintln!("{failure}");
        }
    }
}

impl Drop for CommitWorktree {
    fn drop(&mut self) {
        self.remove();
    }
}
