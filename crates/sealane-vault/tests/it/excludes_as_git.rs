//! `--exclude` leaves out what git ignores by the same lines, and a pattern that matched nothing is
//! named.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::shared::Place;
use sealane_vault::{PutOptions, PutReport, Vault};

/// Files of a small project.
const FILES: &[&str] = &[
    "a.tmp",
    "keep.tmp",
    "README",
    "target/debug/out",
    "target/keep",
    "sub/target/out",
    "sub/a.tmp",
    "sub/skip/one",
    "sub/skip/two",
    "docs/a.html",
    "docs/api/b.html",
    "deep/x/y/z/file",
    "deep/x/file",
    "build",
    "sub/build/out",
    "node_modules/p/i.js",
    "foo.txt",
    "foo.bar",
    "#hash",
    "!bang",
    "with space",
    "a[b]",
    "star*",
    "log/2024/01.log",
    "log/01.log",
    "x/log/01.log",
    "é.txt",
    "cache/k",
    ".env",
    "sub/.env",
    "q1",
    "q22",
    "back\\slash",
];

/// The kinds of lines that people write.
const RULES: &[&str] = &[
    "*.tmp",
    "/target",
    "target",
    "target/",
    "/target/",
    "sub/skip",
    "/sub/skip",
    "sub/skip/",
    "skip",
    "*.tmp\n!keep.tmp",
    "docs/*.html",
    "docs/**/*.html",
    "**/target",
    "deep/**",
    "deep/**/file",
    "**/file",
    "/*.tmp",
    "build/",
    "build",
    "/build",
    "node_modules",
    "foo.*",
    "foo.*\n!foo.txt",
    "\\#hash",
    "# a remark",
    "\\!bang",
    "with space",
    "with\\ space",
    "a\\[b\\]",
    "a[b]",
    "[ab].tmp",
    "[!a].tmp",
    "star\\*",
    "log/*.log",
    "log/**/*.log",
    "log/",
    "*/log",
    "é*",
    "cache/*\n!cache/k",
    "cache/\n!cache/k",
    ".env",
    "/.env",
    "q?",
    "q??",
    "target/*\n!target/keep",
    "*\n!README",
    "sub/*/out",
    "a.tmp ",
    "back\\\\slash",
    "/sub/**",
    "[bad",
    "x/**/01.log",
];

fn project(folder: &Path) {
    for file in FILES {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
}

/// The files that git does not ignore by these lines.
fn by_git(folder: &Path) -> BTreeSet<Vec<u8>> {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(words).stdin(Stdio::null());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.output().unwrap().stdout
    };
    let listed = git(&["ls-files", "-z", "--others", "--exclude-per-directory=rules"]);
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter(|name| *name != b"rules").map(<[u8]>::to_vec).collect()
}

/// The files that a put keeps.
fn kept(vault: &Vault, folder: &Path, options: &PutOptions) -> (BTreeSet<Vec<u8>>, PutReport) {
    let put = vault.put_paths(&[folder.to_owned()], options).unwrap();
    let snapshot = vault.snapshot(Some(put.snapshot)).unwrap();
    let root = [folder.file_name().unwrap().as_bytes(), b"/"].concat();
    let files = vault.entries(&snapshot).unwrap().map(|entry| entry.unwrap());
    let files =
        files.filter(|entry| matches!(entry.node, sealane_vault::SnapshotEntryKind::File { .. }));
    let names = files.map(|entry| entry.path.strip_prefix(root.as_slice()).unwrap().to_vec());
    (names.filter(|name| *name != b"rules").collect(), put)
}

#[test]
fn as_git_leaves_out() {
    let place = Place::new();
    let source = place.source(project);
    let git = Command::new("git").args(["init", "-q"]).arg(&source).status();
    if !git.is_ok_and(|git| git.success()) {
        eprintln!("not run: git is not there");
        return;
    }
    let vault = place.init();
    let mut differ = Vec::new();
    for rules in RULES {
        fs::write(source.join("rules"), format!("{rules}\n")).unwrap();
        let mut expected = by_git(&source);
        expected.retain(|name| !name.starts_with(b".git/"));
        let no_git = || vec![".git".to_owned()];
        let from = vec![source.join("rules")];
        let by_file = PutOptions { exclude_from: from, exclude: no_git(), ..PutOptions::default() };
        let mut exclude = no_git();
        exclude.extend(rules.lines().filter(|line| *line != "[bad").map(str::to_owned));
        let by_lines = PutOptions { exclude, ..PutOptions::default() };
        for (how, options) in [("file", by_file), ("lines", by_lines)] {
            let (found, _) = kept(&vault, &source, &options);
            if found != expected {
                let names = |set: &BTreeSet<Vec<u8>>, other: &BTreeSet<Vec<u8>>| -> Vec<String> {
                    let only = set.difference(other);
                    only.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
                };
                let (more, less) = (names(&found, &expected), names(&expected, &found));
                differ.push(format!("{rules:?} by {how}: kept {more:?}, left out {less:?}"));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn patterns_begin_at_each_root_or_where_their_file_stands() {
    let place = Place::new();
    let source = place.source(project);
    let vault = place.init();
    let has = |options: PutOptions, name: &str| {
        let (kept, put) = kept(&vault, &source, &options);
        (kept.contains(name.as_bytes()), put.unmatched)
    };
    let lines = |lines: &[String]| PutOptions { exclude: lines.to_vec(), ..PutOptions::default() };
    // A whole path of this machine is one, as it was before patterns began at the roots.
    let whole = format!("{}/sub/skip", source.display());
    assert_eq!(has(lines(&[whole]), "sub/skip/one"), (false, vec![]));
    // A file in a folder of the root tells of that folder, one above it of what is below itself.
    let rows = [
        ("source/sub/rules", "/skip", "sub/skip/one", false),
        ("source/sub/rules", "/target", "target/keep", true),
        ("rules", "/source/target", "target/keep", false),
        ("rules", "/target", "target/keep", true),
        ("elsewhere/rules", "/target", "target/keep", false),
    ];
    for (file, rules, name, stays) in rows {
        let file = place.path(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("\u{feff}{rules}\r\n")).unwrap();
        let options = PutOptions { exclude_from: vec![file.clone()], ..PutOptions::default() };
        assert_eq!(has(options, name).0, stays, "{} {rules}", file.display());
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_pattern_that_matched_nothing_is_named() {
    let place = Place::new();
    let source = place.source(project);
    let vault = place.init();
    let file = place.path("rules");
    fs::write(&file, "*.tmp\n*.nothing\n# a remark\n\n[bad\n").unwrap();
    // A pattern that another one overrules has matched, too.
    let exclude = ["*.html", "/docs/a.html", "/tarjet", "source/target", "!*.none"];
    let exclude = exclude.map(str::to_owned).to_vec();
    let exclude_from = vec![file.clone()];
    let options = PutOptions { exclude, exclude_from, ..PutOptions::default() };
    let (_, put) = kept(&vault, &source, &options);
    let shown = |at: u32, line: &str| format!("{}:{at}: {line}", file.display());
    let named = |what: &str| put.unmatched.iter().any(|pattern| pattern.starts_with(what));
    assert!(put.unmatched.len() == 5, "{:?}", put.unmatched);
    let expected =
        [&shown(2, "*.nothing"), &shown(5, "[bad"), "/tarjet", "source/target", "!*.none"];
    for pattern in expected {
        assert!(named(pattern), "{pattern}: {:?}", put.unmatched);
    }
    let missing = PutOptions { exclude_from: vec![place.path("no")], ..PutOptions::default() };
    let failure = vault.put_paths(&[source], &missing).unwrap_err();
    assert_eq!(failure.info().name, "VaultFile");
}
