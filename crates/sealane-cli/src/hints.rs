//! Characters in a topic or pattern that are wildcards or separators elsewhere, and parts of a name
//! here.

use crate::args::CliVerb;
use crate::args::stream::{StreamArgs, StreamVerb};
use crate::args::token::{TokenArgs, TokenVerb};
use crate::colour::warn;

/// Says on standard error what the command's topics and patterns probably do not mean.
pub(crate) fn say(command: &CliVerb) {
    for text in named(command) {
        for warning in warnings(text) {
            warn(warning);
        }
    }
}

/// The topics and patterns that a command names.
fn named(command: &CliVerb) -> Vec<&str> {
    match command {
        CliVerb::Pub(args) => vec![&args.topic],
        CliVerb::Sub(args) => vec![&args.pattern],
        CliVerb::Request(args) => vec![&args.topic],
        CliVerb::Reply(args) => vec![&args.pattern],
        CliVerb::Stream(StreamArgs { verb, .. }) => match verb {
            StreamVerb::Ls { pattern } => pattern.iter().map(String::as_str).collect(),
            StreamVerb::New(new) => vec![&new.set.topic],
            StreamVerb::Set(set) => vec![&set.topic],
            // Of a stream that is not there the hub says so.
            StreamVerb::Info { .. } | StreamVerb::Rm { .. } => vec![],
            StreamVerb::Rules | StreamVerb::Unset { .. } => vec![],
            StreamVerb::Leaks { .. } | StreamVerb::Purge(_) => vec![],
        },
        CliVerb::Token(TokenArgs { verb: TokenVerb::New(new), .. }) => {
            let rights = [&new.read, &new.publish, &new.manage, &new.orders];
            rights.into_iter().flatten().map(|pattern| pattern.as_str()).collect()
        }
        _ => vec![],
    }
}

fn warnings(text: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if !text.contains('/') && is_dotted(text) {
        let meant: Vec<&str> = text.split('.').map(translated).collect();
        let meant = meant.join("/");
        warnings.push(format!("`{text}` is one name: `/` parts names, as in `{meant}`"));
        return warnings;
    }
    for segment in text.split('/') {
        let meant = translated(segment);
        if meant != segment {
            let stands_for = if meant == "*" { "one name" } else { "all that follows" };
            warnings.push(format!("`{segment}` is a name here: `{meant}` stands for {stands_for}"));
        }
    }
    warnings
}

/// Whether dots part names, as they do in subjects of NATS and routing keys of AMQP.
fn is_dotted(text: &str) -> bool {
    text.contains('.') && text.split('.').all(|part| !part.is_empty())
}

/// A wildcard of NATS or MQTT as it is written here.
fn translated(segment: &str) -> &str {
    match segment {
        ">" | "#" => "**",
        "+" => "*",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_is_translated() {
        for (text, expected) in [
            ("fleet.7.location", "`fleet/7/location`"),
            ("fleet.>", "`fleet/**`"),
            ("fleet.*.location", "`fleet/*/location`"),
            ("fleet/+/location", "`*` stands for one name"),
            ("fleet/#", "`**` stands for all that follows"),
            ("fleet/>", "`**` stands for all that follows"),
            (">", "`**` stands for all that follows"),
        ] {
            let said = warnings(text);
            assert!(said.len() == 1 && said[0].contains(expected), "{text}: {said:?}");
        }
    }

    #[test]
    fn what_is_meant_is_not_warned_of() {
        for text in ["fleet/7", "**", "*", "fleet/**", "files/a.txt", "...", ".hidden", "a+b", "c#"]
        {
            assert_eq!(warnings(text), Vec::<String>::new(), "{text}");
        }
    }
}
