//! Every error code has a test that meets it, and every command that a hint names is one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use sealane_cli::{args, explain};
use sealane_message::ErrorInfo;

use super::helps::words;

/// Codes that nothing which a test can do leads to, and what they stand for. They are explained in
/// `docs/TESTING.md` as well.
const OF_DEFECTS: &[(&str, &str)] = &[
    ("SL-VAULT-11", "a library that refuses what it must take, or a thread that has panicked"),
    ("SL-GATEWAY-06", "a system that starts no thread"),
    ("SL-MACHINE-02", "a system that gives no thread or no random bytes"),
];

/// The sources of all crates.
#[derive(Default)]
struct Sources {
    /// Those of the tests, and the tests within the others. This file names codes that no test
    /// meets, and is left out.
    tests: String,
    others: String,
}

fn sources() -> Sources {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Sources::default();
    let mut folders = vec![crates.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && !path.ends_with("follows_hints.rs")
            {
                let text = fs::read_to_string(&path).unwrap();
                let is_test = path.components().any(|part| part.as_os_str() == "tests")
                    || path.file_name().is_some_and(|name| name == "tests.rs");
                let end = if is_test { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
                all.others.push_str(&text[..end]);
                all.tests.push_str(&text[end..]);
            }
        }
    }
    all
}

fn words_of(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(|c| !is_part(c)).collect()
}

/// The variant of the row with this code: the first name behind its attributes and comments.
fn variant_of<'a>(sources: &'a str, code: &str) -> Option<&'a str> {
    let (_, behind) = sources.split_once(&format!("#[code(\"{code}\""))?;
    let is_name = |line: &&str| line.starts_with(|c: char| c.is_ascii_uppercase());
    let line = behind.lines().skip(1).map(str::trim).find(is_name)?;
    line.split(|c: char| !c.is_ascii_alphanumeric()).next()
}

/// A test meets a code that names it, its name on the wire, or its variant.
#[test]
fn every_code_is_met_by_a_test() {
    let Sources { tests, others } = sources();
    let words = words_of(&tests);
    let is_met = |info: &&ErrorInfo| {
        let is_matched =
            |variant: &str| words.contains(variant) && tests.contains(&format!("::{variant}"));
        let variant = variant_of(&others, info.code);
        words.contains(info.code) || words.contains(info.name) || variant.is_some_and(is_matched)
    };
    let missing = explain::table().filter(|info| !is_met(info)).map(|info| info.code);
    let missing: Vec<&str> = missing.collect();
    let of_defects: Vec<&str> = OF_DEFECTS.iter().map(|(code, _)| *code).collect();
    assert_eq!(missing, of_defects, "codes without a test, and those that can have none");
    let page = include_str!("../../../../../docs/TESTING.md");
    for (code, why) in OF_DEFECTS {
        assert!(page.contains(&format!("`{code}`: {why}")), "TESTING.md does not explain {code}");
    }
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_command_of_a_hint_parses() {
    let mut count = 0;
    for info in explain::table() {
        for command in quoted(info.hint).filter(|text| text.starts_with("sealane ")) {
            // Any verb stands for `VERB`.
            let command = command.replace("VERB", "pub");
            let parsed = sealane_cli::parse(words(&command).into_iter().map(Into::into));
            // A hint may leave out what only its reader knows.
            let left_out = [
                ErrorKind::MissingRequiredArgument,
                ErrorKind::MissingSubcommand,
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                ErrorKind::DisplayHelp,
            ];
            if let Err(error) = parsed {
                assert!(left_out.contains(&error.kind()), "{}: `{command}`: {error}", info.code);
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} commands");
}

#[test]
fn every_flag_of_a_hint_is_one() {
    let mut program = args::command();
    program.build();
    let mut flags = BTreeSet::new();
    let mut commands = vec![&program];
    while let Some(command) = commands.pop() {
        flags.extend(command.get_arguments().filter_map(|arg| arg.get_long()));
        commands.extend(command.get_subcommands());
    }
    for info in explain::table() {
        // A command of another program in a hint has flags of its own.
        let own = info.hint.split('`').enumerate().filter(|(at, text)| {
            at % 2 == 0 || text.starts_with("sealane ") || text.starts_with("--")
        });
        for word in own.flat_map(|(_, text)| text.split([' ', ',', '.', ';', ':', '(', ')', '='])) {
            if let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) {
                assert!(flags.contains(flag), "{}: --{flag} of {:?}", info.code, info.hint);
            }
        }
    }
}
