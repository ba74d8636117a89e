//! The tests that pages name as proofs.

use super::TidyFindings;
use crate::threats;
use crate::tree::SourceTree;

/// Pages whose claims name the test that tries to break them.
const PAGES: &[&str] = &["PROMISES.md", threats::SECURITY, threats::THREATS, UPGRADING];
/// The page of which every row says what happens to a format, and names the test of it.
const UPGRADING: &str = "docs/UPGRADING.md";
/// How the rows of its table of formats end.
const TESTED: &str = "| test |";

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    untested(tree, findings);
    for page in PAGES {
        for (index, line) in tree.get(page).unwrap_or_default().lines().enumerate() {
            let commands = line.split('`').skip(1).step_by(2);
            for command in commands.filter(|command| command.starts_with("cargo test -p ")) {
                if let Some(what) = missing(tree, command) {
                    let remedy = "write the test, or name the one there is";
                    findings.add(page, index + 1, what, remedy);
                }
            }
        }
    }
}

/// Rows about formats that name no test.
fn untested(tree: &SourceTree, findings: &mut TidyFindings) {
    let lines = tree.get(UPGRADING).unwrap_or_default().lines().enumerate();
    let table = lines.skip_while(|(_, line)| !line.ends_with(TESTED));
    let rows = table.take_while(|(_, line)| line.starts_with('|')).skip(2);
    let test = |line: &str| line.rsplit('|').nth(1).is_some_and(|cell| cell.contains("`cargo "));
    for (index, _) in rows.filter(|(_, line)| !test(line)) {
        let remedy = "name the command that runs its test";
        findings.add(UPGRADING, index + 1, "a format without a test", remedy);
    }
}

/// The part of `cargo test -p CRATE [--test TARGET | --lib] [NAME]` that is not there.
fn missing(tree: &SourceTree, command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().skip(3).collect();
    let (package, mut rest) = words.split_first()?;
    let mut folder = format!("crates/{package}/");
    if let ["--test", target, name @ ..] = rest {
        folder += &format!("tests/{target}");
        rest = name;
    } else if let ["--lib", name @ ..] = rest {
        folder += "src";
        rest = name;
    }
    let of_target = |path: &str| {
        let inside = path.strip_prefix(&folder);
        inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(['/', '.']))
    };
    let in_package = |path: &str| folder.ends_with('/') && path.starts_with(&folder);
    let mut files = tree.rust().filter(|(path, _)| of_target(path) || in_package(path)).peekable();
    if files.peek().is_none() {
        return Some(format!("`{command}`: there is no such target"));
    }
    let name = rest.first()?;
    let is_there = files.any(|(path, rust)| {
        let module = module(path);
        module.contains(name)
            || crate::rust::words(&rust.code, "fn").any(|at| {
                let function = rust.code[at + 2..].trim_start().split(['(', '<']).next();
                format!("{module}::{}", function.unwrap_or("")).contains(name)
            })
    });
    (!is_there).then(|| format!("`{command}`: nothing there is named so"))
}

/// The module path before the names of a file's tests, as far as the file's path says.
fn module(path: &str) -> String {
    path.trim_end_matches(".rs").replace('/', "::")
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn proofs_that_are_not_there_are_found() {
        let page = "| a | `cargo test -p a --test one first` |\n\
                    | b | `cargo test -p a --test one second` |\n\
                    | c | `cargo test -p a --test two` |\n\
                    | d | `cargo test -p a` and `cargo xtask check` |\n\
                    | e | `cargo test -p a --lib inner` |\n\
                    | f | `cargo test -p b` |\n\
                    | g | `cargo test -p a --test one more::the_first` |\n\
                    | h | `cargo test -p a --test one more::second` |\n";
        let findings = said(
            check,
            &SourceTree::sample(&[
                ("SECURITY.md", page),
                ("crates/a/src/inner/tests.rs", "fn x() {}\n"),
                ("crates/a/tests/one/main.rs", "mod more;\n"),
                ("crates/a/tests/one/more.rs", "#[test]\nfn the_first_of_all() {}\n"),
                ("crates/a/tests/one_more.rs", "#[test]\nfn second() {}\n"),
            ]),
        );
        let lines: Vec<_> = findings.iter().map(|finding| finding.split(':').nth(1)).collect();
        assert_eq!(lines, [Some("2"), Some("3"), Some("6"), Some("8")], "{findings:?}");
    }

    #[test]
    fn a_format_without_a_test_is_found() {
        let page = "| a | b |\n|---|---|\n| none | `x` |\n\n\
                    | format | now | test |\n|---|---|---|\n\
                    | store | 1 | `cargo xtask prove upgrade` |\n\
                    | frame | 2 | no |\n\
                    | vault `cargo test -p a` | 2 |  |\n\n\
                    | c | d |\n";
        let findings = said(check, &SourceTree::sample(&[(UPGRADING, page)]));
        let found = |line: &str| findings.iter().filter(|one| one.contains(line)).count();
        assert_eq!((found(".md:8: a format"), found(".md:9: a format")), (1, 1), "{findings:?}");
        let untested = findings.iter().filter(|one| one.contains("without a test"));
        assert_eq!(untested.count(), 2, "{findings:?}");
    }
}
