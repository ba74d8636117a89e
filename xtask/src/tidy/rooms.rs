//! Code that belongs into one room and no other: daemons into libraries, HTTP into its libraries,
//! errors into tables.

use super::TidyFinding;
use crate::rust::{RustSource, words};
use crate::tree::SourceTree;

/// The instruments, which nobody is shipped: their errors are read by us alone.
const INSTRUMENTS: &[&str] = &["sealane-bench", "sealane-sim"];

/// The verbs of the daemons in the command line, and how many lines of code they may have in all.
const DAEMON_VERBS: &[&str] = &["documents", "gateway", "mesh", "relay"];
const DAEMON_LINES_MAX: usize = 1200;

/// The one place that writes HTTP itself: an answer to a client that gets no connection, before any
/// library has read a byte.
const PLAIN_ANSWER: &str = "crates/sealane-node/src/server.rs";

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = vec![];
    for (path, rust) in shipped(tree) {
        let code = rust.code_without_tests();
        for at in string_errors(&code) {
            let what = "an error is a `String`";
            let remedy = "give it a row in the crate's `errors!` table";
            findings.push(TidyFinding::new(path, rust.line(at), what, remedy));
        }
        for literal in rust.literals_without_tests() {
            let is_http = literal.text.contains("HTTP/1.") && literal.text.contains("\r\n");
            if is_http && path != PLAIN_ANSWER {
                let what = "HTTP by hand";
                findings.push(TidyFinding::new(
                    path,
                    rust.line(literal.at),
                    what,
                    "use axum or hyper",
                ));
            }
        }
    }
    let lines = daemon_lines(tree);
    if lines > DAEMON_LINES_MAX {
        let what = format!("the daemons' verbs have {lines} lines, {DAEMON_LINES_MAX} are allowed");
        let remedy = "move logic into sealane-machine";
        findings.push(TidyFinding::new("crates/sealane-cli/src", 1, what, remedy));
    }
    findings
}

/// The sources of the crates that users get.
fn shipped(tree: &SourceTree) -> impl Iterator<Item = (&str, &RustSource)> {
    tree.library_sources()
        .filter(|(path, _)| !INSTRUMENTS.contains(&path.split('/').nth(1).unwrap_or_default()))
}

/// How many errors of shipped crates are a `String`.
pub(crate) fn errors_as_strings(tree: &SourceTree) -> usize {
    shipped(tree).map(|(_, rust)| string_errors(&rust.code_without_tests()).len()).sum()
}

/// The places of `Result<_, String>`.
fn string_errors(code: &str) -> Vec<usize> {
    words(code, "Result")
        .filter(|at| {
            let Some(inner) = code[at + "Result".len()..].strip_prefix('<') else { return false };
            let mut depth = 0_i32;
            for (index, byte) in inner.bytes().enumerate() {
                match byte {
                    b'<' | b'(' | b'[' => depth += 1,
                    b'>' | b')' | b']' if depth > 0 => depth -= 1,
                    b',' if depth == 0 => return inner[index + 1..].trim().starts_with("String>"),
                    b'>' | b';' => return false,
                    _ => {}
                }
            }
            false
        })
        .collect()
}

/// Lines of code of the daemons in the command line, without tests, comments and blank lines.
pub(crate) fn daemon_lines(tree: &SourceTree) -> usize {
    let is_daemon = |path: &str| {
        let inner = path.strip_prefix("crates/sealane-cli/src/").unwrap_or_default();
        let room = inner.split(['/', '.']).next().unwrap_or_default();
        DAEMON_VERBS.contains(&room)
    };
    let code = tree.library_sources().filter(|(path, _)| is_daemon(path));
    code.map(|(_, rust)| {
        rust.code_without_tests().lines().filter(|line| !line.trim().is_empty()).count()
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn errors_have_tables_and_http_has_libraries() {
        let tree = SourceTree::sample(&[
            (
                "crates/a/src/lib.rs",
                "fn b() -> Result<(u8, Vec<u8>), String> {}\nfn c() -> Result<String, E> {}\n\
                 const D: &str = \"HTTP/1.1 200 OK\\r\\n\";\n// \"HTTP/1.1\"\n\
                 fn e() -> Result<\n    u8,\n    String> {}\nconst F: &str = \"HTTP/1.1\";\n",
            ),
            ("crates/sealane-sim/src/lib.rs", "fn b() -> Result<u8, String> {}\n"),
        ]);
        let expected = [
            "crates/a/src/lib.rs:1: an error is a `String`; give it a row in the crate's \
             `errors!` table",
            "crates/a/src/lib.rs:5: an error is a `String`; give it a row in the crate's \
             `errors!` table",
            "crates/a/src/lib.rs:3: HTTP by hand; use axum or hyper",
        ];
        assert_eq!(said(&check(&tree)), expected);
    }

    #[test]
    fn a_daemon_is_a_library() {
        let verb = "fn a() {\n}\n\n// no code\n".repeat(DAEMON_LINES_MAX / 2);
        let files = |more: &str| {
            let relay = format!("{verb}{more}");
            SourceTree::sample(&[
                ("crates/sealane-cli/src/relay/told.rs", &relay),
                ("crates/sealane-cli/src/relays.rs", "fn b() {}\n"),
            ])
        };
        assert!(check(&files("")).is_empty());
        assert_eq!(check(&files("fn b() {}\n")).len(), 1);
    }
}
