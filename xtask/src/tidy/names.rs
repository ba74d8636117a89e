//! Names of types that a reader can search for, and comments that name their subject.

use std::collections::{BTreeMap, BTreeSet};

use super::TidyFindings;
use crate::rust::{RustSource, type_names};
use crate::tree::SourceTree;

/// Names that may stand in several crates, because every reader of Rust knows what they are.
const SHARED: &[&str] = &["Builder", "Config", "Error", "Kind", "Reader", "Result"];

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
    for (name, places) in shared_names(tree) {
        let crates: Vec<_> = places.keys().copied().collect();
        let (_, (path, line)) = places.iter().next_back().expect("a name stands somewhere");
        let what = format!("the type `{name}` stands in {}", crates.join(", "));
        findings.add(path, *line, what, "give it a name that says its subject");
    }
    for (path, rust) in tree.rust() {
        for line in vague_lines(rust) {
            let what = "the comment begins with a word that names nobody";
            findings.add(path, line, what, "name the actor, or the thing");
        }
    }
}

/// The crates in which each type's name stands and its place there, for names that stand in more
/// than one crate. Tests are left out: they may call a thing as they like.
pub(crate) fn shared_names(tree: &SourceTree) -> BTreeMap<&str, BTreeMap<&str, (&str, usize)>> {
    let mut names: BTreeMap<&str, BTreeMap<&str, (&str, usize)>> = BTreeMap::new();
    let tests: BTreeSet<_> = tree.test_files();
    for (path, rust) in tree.library_sources().filter(|(path, _)| !tests.contains(path)) {
        let package = path.split('/').nth(1).unwrap_or_default();
        let code = rust.code_without_tests();
        for (at, name) in type_names(&code) {
            // The code without tests has the places of the source, so that its slice is there too.
            let name = &rust.code[at..at + name.len()];
            names.entry(name).or_default().entry(package).or_insert((path, rust.line(at)));
        }
    }
    names.retain(|name, places| places.len() > 1 && !SHARED.contains(name));
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
        ]);
        let expected = "crates/b/src/lib.rs:3: the type `Waiting` stands in a, b; \
                        give it a name that says its subject";
        assert_eq!(said(check, &tree), [expected]);
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
