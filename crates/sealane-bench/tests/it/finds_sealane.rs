//! The `sealane` that is measured is the one beside the bench, of the same commit, and no other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::{PROGRAM, bench, json, text};

/// A folder with the bench in it, on the disk that it was built on.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::hard_link(PROGRAM, folder.path().join("sealane-bench")).unwrap();
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(folder.join("sealane-bench")).env_clear().args(args).output().unwrap()
}

#[test]
fn without_sealane_beside_it_the_command_that_builds_it_is_named() {
    let folder = folder();
    for verb in ["load", "vault", "race", "relay"] {
        let output = run(folder.path(), &[verb]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{verb}");
        assert!(said.contains("sealane: it is not there [SL-BENCH-05]"), "{said}");
        assert!(said.contains("`cargo build --release -p sealane-cli`"), "{said}");
    }
    let output = run(folder.path(), &["--json", "report", "blobs"]);
    let error = json(&String::from_utf8(output.stderr).unwrap());
    assert_eq!(text(error.field("error").unwrap(), "code"), "SL-BENCH-05");
}

#[test]
fn sealane_of_another_commit_is_not_measured() {
    let folder = folder();
    let other = folder.path().join("sealane");
    fs::write(&other, "#!/bin/sh\necho 'sealane 0.1.0 (0000000, other)'\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let output = run(folder.path(), &["load"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("it is `sealane 0.1.0 (0000000, other)`, and this is"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn figures_name_the_commit_that_the_program_is_of_wherever_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let version = bench(home.path()).arg("--version").output().unwrap();
    let version = crate::said(&version);
    let (_, commit) = version.split_once('(').unwrap();
    let (commit, _) = commit.split_once(',').unwrap();
    let mut command = bench(home.path());
    let output = command.args(["--json", "report", "--quick", "zero-copy"]).current_dir("/");
    let book = json(&crate::said(&output.output().unwrap()));
    let machine = book.field("machine").unwrap();
    assert_eq!(text(machine, "commit"), commit);
    assert_eq!(text(machine, "build") == "debug", cfg!(debug_assertions));
}
