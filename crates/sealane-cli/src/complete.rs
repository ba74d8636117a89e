//! The completions that a shell offers for the word at the cursor. They are verbs and flags, and
//! the present topics, consumers, groups, tokens, contexts and snapshots.
//!
//! The scripts of `sealane completions` ask the hidden verb `complete` with each press of the tab
//! key. The verb never asks for a passphrase, and says nothing where something fails.

mod live;
mod words;

use std::time::Duration;

use clap::Command;

use crate::args::{self, CompleteArgs, CompletionsArgs};
use crate::limits::{MAX_COMPLETION_OFFERS, MAX_COMPLETION_WAIT_MS};
use crate::terminal::one_line;
use crate::{CliFailure, Terminal};
use words::{CompletionTarget, TypedWords};

const BASH: &str = include_str!("complete/sealane.bash");
const ZSH: &str = include_str!("complete/sealane.zsh");
const FISH: &str = include_str!("complete/sealane.fish");

/// One word that may be meant, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CompletionOffer {
    word: String,
    about: String,
}

impl CompletionOffer {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}

/// `sealane completions`.
///
/// # Errors
/// [`CliFailure::Output`].
pub fn script(args: &CompletionsArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    use clap_complete::Shell;
    match args.shell {
        Shell::Bash => terminal.write(BASH.as_bytes()),
        Shell::Zsh => terminal.write(ZSH.as_bytes()),
        Shell::Fish => terminal.write(FISH.as_bytes()),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut args::command(), "sealane", &mut script);
            terminal.write(&script)
        }
    }
}

/// Prints what the last of these words may become, a line each: the word, a tab, what it is.
///
/// # Errors
/// [`CliFailure::Output`].
pub async fn run(args: &CompleteArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let mut command = args::command();
    command.build();
    let typed = TypedWords::read(&command, &args.words);
    let wanted = typed.wanted();
    let mut offers = match wanted {
        CompletionTarget::Verbs(command) => verbs(command),
        CompletionTarget::Flags(command) => flags(command),
        CompletionTarget::Values(ref values) => values.clone(),
        CompletionTarget::Live(kind) => {
            let asked = live::offers(kind, &typed);
            let patience = Duration::from_millis(MAX_COMPLETION_WAIT_MS);
            tokio::time::timeout(patience, asked).await.ok().flatten().unwrap_or_default()
        }
        CompletionTarget::Nothing => vec![],
    };
    offers.retain(|offer| offer.word.starts_with(&typed.last));
    offers.sort();
    for CompletionOffer { word, about } in offers.into_iter().take(MAX_COMPLETION_OFFERS) {
        // A name of a stream may hold whatever a terminal would obey.
        terminal.line(format_args!("{}{}\t{}", typed.before, one_line(&word), one_line(&about)))?;
    }
    Ok(())
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// The verbs, and the words of other programs for them that the help shows.
fn verbs(command: &Command) -> Vec<CompletionOffer> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let offer = |verb: &Command| -> Vec<CompletionOffer> {
        let words = std::iter::once(verb.get_name()).chain(verb.get_visible_aliases());
        words.map(|word| CompletionOffer::new(word, about(verb.get_about()))).collect()
    };
    shown.flat_map(offer).collect()
}

fn flags(command: &Command) -> Vec<CompletionOffer> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let flag = |arg: &clap::Arg| {
        let long = arg.get_long()?;
        Some(CompletionOffer::new(format!("--{long}"), about(arg.get_help())))
    };
    shown.filter_map(flag).collect()
}
