//! Rooms of the tree: daemons belong into libraries, HTTP into its libraries, errors and limits
//! into tables.

use super::TidyFindings;
use crate::rust::{RustSource, is_word, words};
use crate::tree::SourceTree;

/// The instruments, which nobody is shipped: their errors are read by us alone.
const INSTRUMENTS: &[&str] = &["sealane-bench", "sealane-sim", "sealane-testing"];

/// The verbs of the daemons in the command line, and how many lines of code they may have in all.
const DAEMON_VERBS: &[&str] = &["documents", "gateway", "mesh", "relay"];
const DAEMON_LINES_MAX: usize = 1200;

/// The one place that writes HTTP itself: an answer to a client that gets no connection, before any
/// library has read a byte.
const PLAIN_ANSWER: &str = "crates/sealane-node/src/server.rs";

/// Constants that are named like limits and are facts of a format or of numbers. Nobody can choose
/// another value, so that a page of limits would only list arithmetic.
const FACTS: &[&str] = &[
    // A percentage ends at a hundred.
    "BATTERY_MAX_PERCENT",
    // The bytes of the longest compact headers (`spec/frame.md`).
    "COMPACT_HEADER_BYTES_MAX",
    // The largest integer below which a double has all others: 2^53.
    "EXACT_MAX",
    // The highest byte of flags without reserved bits (`spec/frame.md`).
    "FLAGS_MAX",
    // The headers that a capture puts before a unit (pcapng, Ethernet, IPv6, UDP).
    "HEADERS_BYTES_MAX",
    // The longest interval that the two bytes of a hello can say (`spec/mesh.md`).
    "INTERVAL_MAX",
    // A quarter and a half of a circle.
    "LATITUDE_MAX_E7",
    "LONGITUDE_MAX_E7",
    // The highest value of a type, as in `u32::MAX`.
    "MAX",
    // The sum of the fields in front of a compact header (`spec/frame.md`).
    "PREFIX_BYTES_MAX",
    // The highest time that six bytes can say (`spec/document.md`).
    "TIME_MAX_MS",
    // The bytes of the highest count, with seven bits a byte.
    "TOTAL_BYTES_MAX",
];

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    let tests = tree.test_files();
    for (path, rust) in shipped(tree) {
        let code = rust.code_without_tests();
        for at in string_errors(&code) {
            let what = "an error is a `String`";
            let remedy = "give it a row in the crate's `errors!` table";
            findings.add(path, rust.line(at), what, remedy);
        }
        let may_limit = path.ends_with("/src/limits.rs") || tests.contains(path);
        for (at, name) in limits_elsewhere(&code).into_iter().filter(|_| !may_limit) {
            let what = format!("the limit `{name}` stands outside the crate's table");
            let remedy = "move it into the crate's `limits!` table, times in milliseconds";
            findings.add(path, rust.line(at), what, remedy);
        }
        for literal in rust.literals_without_tests() {
            let is_http = literal.text.contains("HTTP/1.") && literal.text.contains("\r\n");
            if is_http && path != PLAIN_ANSWER {
                let what = "HTTP by hand";
                findings.add(path, rust.line(literal.at), what, "use axum or hyper");
            }
        }
    }
    let lines = daemon_lines(tree);
    if lines > DAEMON_LINES_MAX {
        let what = format!("the daemons' verbs have {lines} lines, {DAEMON_LINES_MAX} are allowed");
        let remedy = "move logic into sealane-machine";
        findings.add("crates/sealane-cli/src", 1, what, remedy);
    }
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

/// The constants that are named like limits, or are a `Duration`, and where they stand.
fn limits_elsewhere(code: &str) -> Vec<(usize, &str)> {
    let declared = words(code, "const").filter_map(|at| {
        let (name, rest) = code[at + "const".len()..].trim_start().split_once(':')?;
        // `const fn`, `*const T` and blocks have something else than a name before the colon.
        if name.is_empty() || !name.bytes().all(is_word) || rest.starts_with(':') {
            return None;
        }
        let kind = rest.split(['=', ';']).next().unwrap_or_default().trim();
        let is_time = kind.rsplit("::").next() == Some("Duration");
        let is_bound = name.split('_').any(|part| matches!(part, "MAX" | "LIMIT"));
        (is_time || is_bound && !FACTS.contains(&name)).then_some((at, name))
    });
    declared.collect()
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
        let table = "an error is a `String`; give it a row in the crate's `errors!` table";
        let http = "HTTP by hand; use axum or hyper";
        let expected = [(1, table), (3, http), (5, table)];
        let expected = expected.map(|(line, said)| format!("crates/a/src/lib.rs:{line}: {said}"));
        assert_eq!(said(check, &tree), expected);
    }

    #[test]
    fn limits_stand_in_tables() {
        let code = "const QUEUE_MAX: usize = 8;\npub(crate) const A_LIMIT_B: u8 = 1;\n\
                    const WAIT: std::time::Duration = Duration::ZERO;\nconst CLIMAX: u8 = 1;\n\
                    const EXACT_MAX: f64 = 1.0;\nconst fn max(MAX_C: u8) -> u8 { MAX_C }\n\
                    fn d(e: *const u8) {\n    const MAX_F: u8 = 1;\n}\n\
                    #[cfg(test)]\nmod tests {\n    const MAX_G: u8 = 1;\n}\n\
                    #[cfg(test)]\nmod model;\n";
        let tree = SourceTree::sample(&[
            ("crates/a/src/lib.rs", code),
            ("crates/a/src/limits.rs", "pub const MAX_H: u8 = 1;\n"),
            ("crates/a/src/model/b.rs", "const MAX_I: u8 = 1;\n"),
            ("crates/sealane-sim/src/lib.rs", "const MAX_J: u8 = 1;\n"),
        ]);
        let found = |line: u8, name: &str| {
            format!(
                "crates/a/src/lib.rs:{line}: the limit `{name}` stands outside the crate's table; \
                 move it into the crate's `limits!` table, times in milliseconds"
            )
        };
        let expected = [(1, "QUEUE_MAX"), (2, "A_LIMIT_B"), (3, "WAIT"), (8, "MAX_F")];
        assert_eq!(said(check, &tree), expected.map(|(line, name)| found(line, name)));
        assert!(FACTS.len() <= 12 && FACTS.is_sorted());
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
        assert!(said(check, &files("")).is_empty());
        assert_eq!(said(check, &files("fn b() {}\n")).len(), 1);
    }
}
