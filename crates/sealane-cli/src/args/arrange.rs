//! The common parts of all verbs' help: headings, the order of shared options, and examples. It
//! also has the words of other programs under which a verb is found.

use std::collections::BTreeSet;

use clap::{Arg, Command, CommandFactory};

use super::CliArgs;
use super::examples::{EXAMPLES, FIRST};
use crate::limits::MAX_GROUP_EXAMPLES;

/// Options that stand below a heading of their own, in this order. Only options of many verbs are
/// meant: another verb may have one of the same name for itself.
const SHARED: &[SharedOptions] = &[
    SharedOptions {
        heading: "Vault",
        ids: &["vault", "identity", "recovery_file", "key_file", "state", "expect_head", "expect"],
    },
    SharedOptions { heading: "Keys", ids: &["keys", "passphrase_file"] },
    SharedOptions { heading: "Connection", ids: &["server"] },
    SharedOptions { heading: "For every verb", ids: &["json", "config", "context"] },
];

struct SharedOptions {
    heading: &'static str,
    ids: &'static [&'static str],
}

/// The words of other programs for verbs of any depth. The help does not show them.
const ALSO: &[VerbAlias] = &[
    VerbAlias { verb: "up", words: &["server", "serve", "start"] },
    VerbAlias { verb: "pub", words: &["publish", "produce", "send"] },
    VerbAlias { verb: "sub", words: &["subscribe", "consume", "tail"] },
    VerbAlias { verb: "stream", words: &["streams", "topic", "topics"] },
    VerbAlias { verb: "status", words: &["ping", "health"] },
    VerbAlias { verb: "consumer", words: &["consumers"] },
    VerbAlias { verb: "key", words: &["keys"] },
    VerbAlias { verb: "group", words: &["groups"] },
    VerbAlias { verb: "token", words: &["tokens"] },
    VerbAlias { verb: "context", words: &["contexts", "ctx"] },
    VerbAlias { verb: "config", words: &["settings"] },
    VerbAlias { verb: "explain", words: &["error", "errors"] },
    VerbAlias { verb: "completions", words: &["completion"] },
    VerbAlias { verb: "man", words: &["manual"] },
    VerbAlias { verb: "ls", words: &["list"] },
    VerbAlias { verb: "rm", words: &["remove", "delete", "del"] },
    VerbAlias { verb: "new", words: &["add", "create", "make"] },
    VerbAlias { verb: "init", words: &["create", "new"] },
    VerbAlias { verb: "info", words: &["show"] },
    VerbAlias { verb: "show", words: &["info"] },
    VerbAlias { verb: "set", words: &["edit", "update"] },
    VerbAlias { verb: "use", words: &["select", "switch"] },
    VerbAlias { verb: "revoke", words: &["remove", "delete", "rm", "del"] },
    VerbAlias { verb: "passphrase", words: &["password"] },
];

struct VerbAlias {
    verb: &'static str,
    words: &'static [&'static str],
}

/// The parser of the whole command line, which the help, the man pages, the completions and
/// `docs/reference/CLI.md` are made from, too.
pub fn command() -> Command {
    arranged(CliArgs::command(), "sealane")
}

/// All examples, in an order in which they can be run.
pub fn every_example() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().copied()
}

/// The examples of a verb, by its whole name: `sealane stream set`.
fn examples(path: &str) -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().copied().filter(move |line| {
        let of_verb = line.find("sealane ").and_then(|at| line.get(at..)).unwrap_or_default();
        let rest = of_verb.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn arranged(command: Command, path: &str) -> Command {
    let mut shown = shown(&command, path).join("\n  ");
    if !shown.is_empty() {
        shown.insert_str(0, "Examples:\n  ");
    }
    let long = command.get_after_long_help().or(command.get_after_help());
    let long = long.map(|text| format!("{text}\n\n{shown}"));
    let mut taken = names(&command);
    let command = command.mut_args(below_its_heading).mut_subcommands(|verb| {
        let path = format!("{path} {}", verb.get_name());
        arranged(with_other_words(verb, &mut taken), &path)
    });
    match long {
        Some(long) => command.after_help(shown).after_long_help(long),
        None => command.after_help(shown),
    }
}

/// The examples in the help of a command. That of a group has one of each of its first verbs.
fn shown(command: &Command, path: &str) -> Vec<&'static str> {
    if path == "sealane" {
        return FIRST.to_vec();
    }
    if !command.has_subcommands() {
        return examples(path).collect();
    }
    let verbs = command.get_subcommands().map(|verb| format!("{path} {}", verb.get_name()));
    verbs.filter_map(|path| examples(&path).next()).take(MAX_GROUP_EXAMPLES).collect()
}

fn below_its_heading(arg: Arg) -> Arg {
    if !arg.is_global_set() {
        return arg;
    }
    let mut order = 1000;
    for shared in SHARED {
        for id in shared.ids {
            if arg.get_id().as_str() == *id {
                return arg.help_heading(shared.heading).display_order(order);
            }
            order += 1;
        }
    }
    arg
}

/// The names that the verbs of a command have already.
fn names(command: &Command) -> BTreeSet<String> {
    let all = |verb: &Command| -> Vec<String> {
        let own = [verb.get_name()].into_iter();
        own.chain(verb.get_all_aliases()).map(str::to_owned).collect()
    };
    command.get_subcommands().flat_map(all).collect()
}

/// A word that another verb beside it has stays with that verb.
fn with_other_words(verb: Command, taken: &mut BTreeSet<String>) -> Command {
    let also = ALSO.iter().find(|also| also.verb == verb.get_name());
    let words = also.map_or(&[][..], |also| also.words);
    words.iter().fold(verb, |verb, &word| match taken.insert(word.to_owned()) {
        true => verb.alias(word),
        false => verb,
    })
}
