//! `sealane bench` runs the `sealane-bench` beside it, of the same commit, and no other; so does
//! `sealane sim` with `sealane-sim`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::cli::{PROGRAM, text};

/// A folder with the program in it, on the disk that it was built on.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::hard_link(PROGRAM, folder.path().join("sealane")).unwrap();
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(folder.join("sealane")).env_clear().args(args).output().unwrap()
}

/// Puts a bench there that says this version, and else what it is told.
fn put_bench(folder: &Path, version: &str) {
    put(folder, "sealane-bench", version);
}

fn put(folder: &Path, name: &str, version: &str) {
    let program = folder.join(name);
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$*\" = --version ]; then echo '{version}'; exit; fi\n\
         for word; do echo \"<$word>\"; done\nexit 7\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn version(folder: &Path) -> String {
    let said = run(folder, &["--version"]).stdout;
    String::from_utf8(said).unwrap().trim().to_owned()
}

#[test]
fn without_a_bench_beside_it_the_command_that_builds_it_is_named() {
    let folder = folder();
    let output = run(folder.path(), &["bench", "cost", "x.json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("sealane-bench: it is not there [SL-CLI-22]"), "{said}");
    assert!(said.contains("`cargo build --release -p sealane-bench`"), "{said}");
    let output = run(folder.path(), &["--json", "bench", "load"]);
    let error = crate::cli::json(&String::from_utf8(output.stderr).unwrap());
    assert_eq!(text(error.field("error").unwrap(), "code"), "SL-CLI-22");
}

#[test]
fn a_bench_of_another_commit_is_not_run() {
    let folder = folder();
    put_bench(folder.path(), "sealane-bench 0.1.0 (0000000, x86_64-unknown-linux-gnu)");
    let output = run(folder.path(), &["bench", "load"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("(0000000, ") && said.contains(&version(folder.path())), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_bench_of_the_same_commit_gets_every_word_and_gives_its_exit_code() {
    let folder = folder();
    let own = version(folder.path());
    put_bench(folder.path(), &own.replace("sealane ", "sealane-bench "));
    for (args, passed) in [
        (&["bench"][..], &[][..]),
        (&["bench", "--help"], &["--help"]),
        (&["bench", "--version"], &["--version"]),
        (&["--json", "bench", "load"], &["--json", "load"]),
        (&["bench", "--json", "load"], &["--json", "load"]),
        (&["bench", "load", "--json", "--only", "a b"], &["load", "--json", "--only", "a b"]),
        (&["bench", "cost", "-", "--", "-x"], &["cost", "-", "--", "-x"]),
    ] {
        let output = run(folder.path(), args);
        if passed == ["--version"] {
            assert!(String::from_utf8_lossy(&output.stdout).starts_with("sealane-bench "));
            continue;
        }
        let words: String = passed.iter().map(|word| format!("<{word}>\n")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stdout), words, "{args:?}");
        assert_eq!(output.status.code(), Some(7), "{args:?}");
    }
}

#[test]
fn the_version_names_number_commit_and_target() {
    let said = version(folder().path());
    let rest = said.strip_prefix(concat!("sealane ", env!("CARGO_PKG_VERSION"), " (")).unwrap();
    let (commit, target) = rest.strip_suffix(')').unwrap().split_once(", ").unwrap();
    assert!(commit.len() >= 7 && target.contains(std::env::consts::ARCH), "{said}");
}

#[test]
fn the_simulator_is_found_beside_it_in_the_same_way() {
    let folder = folder();
    let said = |args: &[&str]| {
        let output = run(folder.path(), args);
        (output.status.code(), String::from_utf8(output.stderr).unwrap(), output.stdout)
    };
    let (code, error, _) = said(&["sim", "run", "x.toml"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("sealane-sim: it is not there [SL-CLI-28]"), "{error}");
    let own = version(folder.path());
    put(folder.path(), "sealane-sim", &own.replace("sealane ", "sealane-sim "));
    let (code, _, out) = said(&["--json", "sim", "run", "x.toml", "--seed", "3", "--help"]);
    let words = "<--json>\n<run>\n<x.toml>\n<--seed>\n<3>\n<--help>\n";
    assert_eq!((code, String::from_utf8(out).unwrap().as_str()), (Some(7), words));
}
