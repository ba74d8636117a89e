//! Names of types that a reader can search for, and comments that name their subject.

use std::collections::{BTreeMap, BTreeSet};

use super::TidyFindings;
use crate::rust::{RustSource, type_names};
use crate::tree::SourceTree;

/// Names that may stand more than once, and why.
const SHARED: &[(&str, &str)] = &[
    ("Config", "each daemon and machine takes one, and its module says of what"),
    ("Error", "a library's users expect `crate::Error`"),
    ("Result", "it goes with the `Error` beside it"),
];

/// Words that leave open which machine, client or relay a sentence is about.
const VAGUE: &[&str] = &[
    "Who",
    "What",
    "Whoever",
    "Whose",
    "By what",
    "For whom",
    "Of what",
    "To whom",
    "With what",
    "In what",
];

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    for (name, places) in repeated_names(tree) {
        let Some(((path, line), others)) = places.split_last() else { continue };
        let others: Vec<_> = others.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let what = format!("the type `{name}` stands in {} too", others.join(", "));
        findings.add(path, *line, what, "give it a name that says its subject");
    }
    for (path, rust) in tree.rust() {
        for line in vague_lines(rust) {
            let what = "the comment begins with a word that names nobody";
            findings.add(path, line, what, "name the actor, or the thing");
        }
    }
}

/// The places of each type's name that stands more than once in the workspace, in one crate or in
/// several. Tests are left out: they may call a thing as they like.
pub(crate) fn repeated_names(tree: &SourceTree) -> BTreeMap<&str, Vec<(&str, usize)>> {
    let mut names: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let tests: BTreeSet<_> = tree.test_files();
    let tools = tree.rust_in("xtask/src").chain(tree.rust_in("fuzz/src"));
    for (path, rust) in tree.library_sources().chain(tools) {
        if tests.contains(path) {
            continue;
        }
        let code = rust.code_without_tests();
        for (at, name) in type_names(&code) {
            // The code without tests has the places of the source, so that its slice is there too.
            let name = &rust.code[at..at + name.len()];
            names.entry(name).or_default().push((path, rust.line(at)));
        }
    }
    let is_shared = |name: &str| SHARED.iter().any(|(shared, _)| *shared == name);
    names.retain(|name, places| places.len() > 1 && !is_shared(name));
    names
}

/// The lines of comments that begin with a vague word.
pub(crate) fn vague_lines(rust: &RustSource) -> Vec<usize> {
    let mut lines = vec![];
    for comment in &rust.comments {
        let first = rust.line(comment.at);
        for (index, line) in comment.text.lines().enumerate() {
            let text = line.trim_start().trim_start_matches(['/', '!', '*']).trim_start();
            let is_vague = VAGUE.iter().any(|word| {
                text.strip_prefix(word)
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
            });
            if is_vague {
                lines.push(first + index);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn one_name_is_one_thing() {
        let tree = SourceTree::sample(&[
            ("crates/a/src/lib.rs", "pub struct Waiting;\npub enum Error {}\n"),
            ("crates/b/src/lib.rs", "struct Error;\n\nstruct Waiting;\nstruct RouteTable;\n"),
            ("crates/b/src/c.rs", "struct RouteTable;\n#[cfg(test)]\nmod t { struct Queue; }\n"),
            ("crates/c/src/lib.rs", "struct Queue;\n#[cfg(test)]\nmod model;\n"),
            ("crates/c/src/model.rs", "struct RouteTable;\n"),
            ("crates/c/tests/it.rs", "struct Waiting;\n"),
            ("xtask/src/lib.rs", "struct StepRow;\n"),
            ("fuzz/src/lib.rs", "struct StepRow;\n"),
        ]);
        let stands = |place: &str, name: &str, other: &str| {
            format!(
                "{place}: the type `{name}` stands in {other} too; \
                 give it a name that says its subject"
            )
        };
        let expected = [
            stands("crates/b/src/lib.rs:3", "Waiting", "crates/a/src/lib.rs:1"),
            stands("crates/b/src/lib.rs:4", "RouteTable", "crates/b/src/c.rs:1"),
            stands("fuzz/src/lib.rs:1", "StepRow", "xtask/src/lib.rs:1"),
        ];
        let mut found = said(check, &tree);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_comment_names_its_subject() {
        let tree = SourceTree::sample(&[(
            "crates/a/src/lib.rs",
            "/// Who waits.\n/// Whom it asks, and\n//! What for.\n// In what order.\n\
             // The order in what follows.\n/* Whose\n * What */\nlet a = \"// What\";\n",
        )]);
        let found = said(check, &tree);
        let lines: Vec<_> = found.iter().filter_map(|found| found.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "3", "4", "6", "7"]);
    }
}
