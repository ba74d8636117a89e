//! One word per thing: second words for the things of the project, and words that say nothing.

use super::Finding;
use crate::rust::Rust;
use crate::tree::Tree;

/// Where a word is unwanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// In every text: identifiers, comments, strings and pages.
    Everywhere,
    /// In identifiers of Rust code.
    Names,
}

use Where::{Everywhere, Names};

struct Unwanted {
    /// The word in lower case; two words stand apart by one blank.
    word: &'static str,
    scope: Where,
    /// What to write instead.
    instead: &'static str,
    /// A line that contains one of these means something else by it.
    unless: &'static [&'static str],
}

const fn unwanted(
    word: &'static str,
    scope: Where,
    instead: &'static str,
    unless: &'static [&'static str],
) -> Unwanted {
    Unwanted { word, scope, instead, unless }
}

const CHANNELS: &[&str] = &[
    "mpsc",
    "oneshot",
    "broadcast",
    "watch::",
    "sync_channel",
    "side channel",
    "side-channel",
    "toolchain",
    "channel(",
    // A field on the wire of a report that the bench reproduces.
    "channel_id",
    "BroadcastChannel",
    "MessageChannel",
    // A key of Centrifugo's protocol.
    "\"channel\":",
];

const UNWANTED: &[Unwanted] = &[
    unwanted("channel", Everywhere, "say `topic` for the name and `stream` for the log", CHANNELS),
    unwanted("channels", Everywhere, "say `topics` or `streams`", CHANNELS),
    unwanted("subject", Everywhere, "say `topic`", &["NATS", "commit", "imperative", "subject to"]),
    unwanted("mailbox", Everywhere, "say `inbox`", &[]),
    unwanted("consumer group", Everywhere, "say `consumer`", &["Kafka", "Redis"]),
    unwanted("whitelist", Everywhere, "say `allow list`", &[]),
    unwanted("blacklist", Everywhere, "say `deny list`", &[]),
    unwanted("master", Everywhere, "say what it leads, or `main`", &["/master", "master secret"]),
    unwanted("slave", Everywhere, "say what it follows", &[]),
    unwanted("acknowledgment", Everywhere, "spell it `acknowledgement`", &[]),
    unwanted("manager", Names, "name it after the noun it is", &[]),
    unwanted("helper", Names, "name it after what it does", &[]),
    unwanted("helpers", Names, "name it after what it does", &[]),
    unwanted("util", Names, "name it after what it holds", LIBRARIES),
    unwanted("utils", Names, "name it after what it holds", &[]),
];

const LIBRARIES: &[&str] = &["futures_util", "hyper_util", "tokio_util", "http_body_util"];

/// Marks of unfinished work, written in capitals.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

/// The texts that are ours to word.
const TEXTS: &[&str] =
    &[".rs", ".md", ".toml", ".py", ".ts", ".js", ".mjs", ".html", ".css", ".yml", ".ci/run"];

/// This file names what it looks for.
const EXEMPT: &[&str] = &["xtask/src/tidy/words.rs"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = vec![];
    for (path, text) in tree.files() {
        if EXEMPT.contains(&path) || !TEXTS.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            everywhere(path, index + 1, line, &mut findings);
        }
    }
    for (path, rust) in tree.rust().filter(|(path, _)| !EXEMPT.contains(path)) {
        names(path, rust, &mut findings);
    }
    findings
}

fn everywhere(path: &str, number: usize, line: &str, findings: &mut Vec<Finding>) {
    let split = split_words(line);
    for unwanted in UNWANTED.iter().filter(|unwanted| unwanted.scope == Everywhere) {
        find(unwanted, path, number, line, &split, findings);
    }
    for mark in MARKS {
        if crate::rust::words(line, mark).next().is_some() {
            let remedy = "finish it, or write down the limit as a sentence";
            findings.push(Finding::new(path, number, format!("the mark `{mark}`"), remedy));
        }
    }
}

fn names(path: &str, rust: &Rust, findings: &mut Vec<Finding>) {
    for (index, line) in rust.code.lines().enumerate() {
        let split = split_words(line);
        for unwanted in UNWANTED.iter().filter(|unwanted| unwanted.scope == Names) {
            find(unwanted, path, index + 1, line, &split, findings);
        }
        if line.contains("dbg!") {
            findings.push(Finding::new(path, index + 1, "`dbg!`", "remove it"));
        }
        if crate::rust::words(line, "mod common").next().is_some() {
            let remedy = "name it after what it holds";
            findings.push(Finding::new(path, index + 1, "a module named `common`", remedy));
        }
    }
}

fn find(
    unwanted: &Unwanted,
    path: &str,
    number: usize,
    line: &str,
    split: &str,
    findings: &mut Vec<Finding>,
) {
    let means_it = !unwanted.unless.iter().any(|other| line.contains(other));
    if means_it && split.contains(&format!(" {} ", unwanted.word)) {
        let what = format!("the word `{}`", unwanted.word);
        findings.push(Finding::new(path, number, what, unwanted.instead));
    }
}

/// A line's words in lower case with one blank around each: `KeyManager` is two words.
fn split_words(line: &str) -> String {
    let mut split = String::from(" ");
    let mut previous = ' ';
    for character in line.chars() {
        let starts = character.is_uppercase() && previous.is_lowercase();
        if (starts || !character.is_alphanumeric()) && !split.ends_with(' ') {
            split.push(' ');
        }
        if character.is_alphanumeric() {
            split.extend(character.to_lowercase());
        }
        previous = character;
    }
    split + " "
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        said(&check(&Tree::sample(&[(path, text)])))
    }

    #[test]
    fn every_unwanted_word_is_found_in_code() {
        for unwanted in UNWANTED {
            let name = unwanted.word.replace(' ', "_");
            let findings = found("crates/a/src/lib.rs", &format!("fn the_{name}_of() {{}}\n"));
            assert_eq!(findings.len(), 1, "{name}: {findings:?}");
            assert!(findings[0].ends_with(unwanted.instead), "{findings:?}");
        }
    }

    #[test]
    fn camel_case_and_prose_are_read_too() {
        assert_eq!(found("crates/a/src/lib.rs", "struct KeyManager;\n").len(), 1);
        assert_eq!(found("docs/A.md", "Each channel is a log.\n").len(), 1);
        assert_eq!(found("docs/A.md", "A package manager.\n").len(), 0);
        assert_eq!(found("docs/A.md", "Mastering a subjective view.\n").len(), 0);
    }

    #[test]
    fn a_line_may_mean_something_else() {
        assert_eq!(found("crates/a/src/lib.rs", "use std::sync::mpsc::channel;\n").len(), 0);
        assert_eq!(found("crates/a/src/lib.rs", "use futures_util::SinkExt;\n").len(), 0);
        assert_eq!(found("docs/A.md", "NATS calls it a subject.\n").len(), 0);
    }

    #[test]
    fn unfinished_work_is_found() {
        for mark in MARKS {
            assert_eq!(found("crates/a/src/lib.rs", &format!("// {mark}: later\n")).len(), 1);
        }
        assert_eq!(found("crates/a/src/lib.rs", "fn f() { dbg!(1); }\n").len(), 1);
        assert_eq!(found("crates/a/src/lib.rs", "mod common;\n").len(), 1);
    }
}
