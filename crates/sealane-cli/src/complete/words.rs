//! A command line that is not finished: which verb it is of, and what its last word stands for.

use std::collections::BTreeMap;

use clap::{Arg, Command};

use super::CompletionOffer;

/// A kind of names that exist now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompletionSource {
    Topics,
    Consumers,
    Groups,
    Tokens,
    Contexts,
    Snapshots,
}

/// The words that the last word may be.
#[derive(Debug)]
pub(super) enum CompletionTarget<'a> {
    Verbs(&'a Command),
    Flags(&'a Command),
    Values(Vec<CompletionOffer>),
    Live(CompletionSource),
    /// A file, which shells know, or what nobody can know.
    Nothing,
}

/// The words so far.
#[derive(Debug)]
pub(super) struct TypedWords<'a> {
    /// The names of the verbs: `stream`, `set`.
    path: Vec<&'a str>,
    command: &'a Command,
    /// Words that are no flags, behind the verb.
    pub(super) positionals: Vec<String>,
    /// Flags with values, by their ids.
    pub(super) values: BTreeMap<String, String>,
    /// The flag whose value the last word is.
    flag: Option<&'a Arg>,
    /// The beginning of the last word that stays as it is: `--level=`.
    pub(super) before: String,
    /// The rest of the last word.
    pub(super) last: String,
}

impl<'a> TypedWords<'a> {
    /// Reads the words behind the program's name; the last one is not finished, and may be empty.
    pub(super) fn read(program: &'a Command, words: &[String]) -> Self {
        let (last, whole) = words
            .split_last()
            .map_or((String::new(), &[][..]), |(last, whole)| (last.clone(), whole));
        let mut typed = Self {
            path: vec![],
            command: program,
            positionals: vec![],
            values: BTreeMap::new(),
            flag: None,
            before: String::new(),
            last,
        };
        whole.iter().for_each(|word| typed.take(word));
        if let Some((flag, value)) = typed.last.split_once('=')
            && flag.starts_with("--")
            && let Some(arg) = typed.flag_of(flag)
        {
            (typed.before, typed.flag) = (format!("{flag}="), Some(arg));
            typed.last = value.to_owned();
        }
        typed
    }

    fn take(&mut self, word: &str) {
        if let Some(arg) = self.flag.take() {
            self.values.insert(arg.get_id().to_string(), word.to_owned());
            return;
        }
        if word.len() > 1 && word.starts_with('-') {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word, None),
            };
            let Some(arg) = self.flag_of(flag) else { return };
            match value {
                Some(value) => drop(self.values.insert(arg.get_id().to_string(), value.to_owned())),
                None => self.flag = Some(arg),
            }
            return;
        }
        // `help stream set` goes down the same way as `stream set`.
        if self.path.is_empty() && word == "help" {
            return;
        }
        match self.command.find_subcommand(word) {
            Some(verb) if self.positionals.is_empty() => {
                self.path.push(verb.get_name());
                self.command = verb;
            }
            _ => self.positionals.push(word.to_owned()),
        }
    }

    /// The flag of this name, if it takes a value.
    fn flag_of(&self, name: &str) -> Option<&'a Arg> {
        let is_named = |arg: &&Arg| match name.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short() == name.strip_prefix('-').and_then(|name| name.chars().next()),
        };
        let arg = self.command.get_arguments().find(is_named)?;
        arg.get_action().takes_values().then_some(arg)
    }

    /// The words that the last word may be.
    pub(super) fn wanted(&self) -> CompletionTarget<'a> {
        if let Some(arg) = self.flag {
            return self.value_of(arg);
        }
        if self.last.starts_with('-') {
            return CompletionTarget::Flags(self.command);
        }
        if self.command.has_subcommands() && self.positionals.is_empty() {
            return CompletionTarget::Verbs(self.command);
        }
        let places: Vec<&Arg> = self.command.get_positionals().collect();
        let is_many = |arg: &&&Arg| arg.get_num_args().is_some_and(|many| many.max_values() > 1);
        let arg = places.get(self.positionals.len()).or(places.last().filter(is_many));
        arg.map_or(CompletionTarget::Nothing, |arg| self.value_of(arg))
    }

    fn value_of(&self, arg: &Arg) -> CompletionTarget<'a> {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            let offer = |value: &clap::builder::PossibleValue| {
                CompletionOffer::new(value.get_name(), super::about(value.get_help()))
            };
            return CompletionTarget::Values(
                possible.iter().filter(|v| !v.is_hide_set()).map(offer).collect(),
            );
        }
        let all = |words: &[&str]| {
            CompletionTarget::Values(words.iter().map(|w| CompletionOffer::new(*w, "")).collect())
        };
        match (self.path.as_slice(), arg.get_id().as_str()) {
            (_, "codec") => all(&["json", "msgpack", "cbor"]),
            (["up"] | ["stream", ..], "level") => all(&["memory", "os", "disk"]),
            (["sub"], "from") | (["consumer", "reset"], "to") => all(&["first", "new"]),
            (["consumer", ..], "name") | (["sub" | "reply"], "consumer") => {
                CompletionTarget::Live(CompletionSource::Consumers)
            }
            (_, "topic" | "pattern") => CompletionTarget::Live(CompletionSource::Topics),
            (["token", "new"], "read" | "publish" | "manage") => {
                CompletionTarget::Live(CompletionSource::Topics)
            }
            (_, "group" | "sealed") => CompletionTarget::Live(CompletionSource::Groups),
            (["token", "revoke"], "name") => CompletionTarget::Live(CompletionSource::Tokens),
            (_, "context") | (["context", "use" | "rm"], "name") => {
                CompletionTarget::Live(CompletionSource::Contexts)
            }
            (["vault", ..], "snapshot") => CompletionTarget::Live(CompletionSource::Snapshots),
            _ => CompletionTarget::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> String {
        let mut command = crate::args::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match TypedWords::read(&command, &words).wanted() {
            CompletionTarget::Verbs(of) => format!("verbs of {}", of.get_name()),
            CompletionTarget::Flags(of) => format!("flags of {}", of.get_name()),
            CompletionTarget::Values(of) => {
                of.into_iter().map(|o| o.word).collect::<Vec<_>>().join(" ")
            }
            CompletionTarget::Live(kind) => format!("{kind:?}"),
            CompletionTarget::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn a_word_stands_for_what_its_place_says() {
        for (line, expected) in [
            ("", "verbs of sealane"),
            ("st", "verbs of sealane"),
            ("stream ", "verbs of stream"),
            ("--json streams ", "verbs of stream"),
            ("stream list ", "Topics"),
            ("pub -", "flags of pub"),
            ("pub ", "Topics"),
            ("pub a ", "nothing"),
            ("sub --server h:1 ", "Topics"),
            ("sub -s h:1 ", "Topics"),
            ("sub --server ", "nothing"),
            ("sub a --consumer ", "Consumers"),
            ("consumer info a ", "Consumers"),
            ("pub a b --group ", "Groups"),
            ("group show ", "Groups"),
            ("token revoke ", "Tokens"),
            ("--context ", "Contexts"),
            ("context use ", "Contexts"),
            ("vault get ", "Snapshots"),
            ("vault get --vault=v 1 ", "nothing"),
            ("sub a --codec=", "json msgpack cbor"),
            ("sub a --codec=c", "json msgpack cbor"),
            ("vault init --metadata ", "sealed plain"),
            ("nonsense ", "nothing"),
            ("help stream ", "verbs of stream"),
        ] {
            assert_eq!(wanted(line), expected, "`{line}`");
        }
    }
}
