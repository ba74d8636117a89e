//! The completions that a shell offers for the word at the cursor. They are verbs and flags, and
//! the present topics, consumers, groups, tokens, contexts and snapshots.
//!
//! The scripts of `sealane completions` ask the hidden verb `complete` with each press of the tab
//! key. The verb never asks for a passphrase, and says nothing where something fails.

mod live;
mod words;

use std::time::Duration;

use clap::Command;

use crate::args::{self, Complete, Completions};
use crate::terminal::one_line;
use crate::{Failure, Terminal};
use words::{Typed, Wanted};

/// How long somebody waits who has pressed the tab key.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much is offered at once.
const MAX_OFFERS: usize = 200;

const BASH: &str = include_str!("complete/sealane.bash");
const ZSH: &str = include_str!("complete/sealane.zsh");
const FISH: &str = include_str!("complete/sealane.fish");

/// One word that may be meant, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    word: String,
    about: String,
}

impl Offer {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}

/// `sealane completions`.
///
/// # Errors
/// [`Failure::Output`].
pub fn script(args: &Completions, terminal: &mut Terminal) -> Result<(), Failure> {
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
/// [`Failure::Output`].
pub async fn run(args: &Complete, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut command = args::command();
    command.build();
    let typed = Typed::read(&command, &args.words);
    let wanted = typed.wanted();
    let mut offers = match wanted {
        Wanted::Verbs(command) => verbs(command),
        Wanted::Flags(command) => flags(command),
        Wanted::Values(ref values) => values.clone(),
        Wanted::Live(kind) => {
            let asked = live::offers(kind, &typed);
            tokio::time::timeout(PATIENCE, asked).await.ok().flatten().unwrap_or_default()
        }
        Wanted::Nothing => vec![],
    };
    offers.retain(|offer| offer.word.starts_with(&typed.last));
    offers.sort();
    for Offer { word, about } in offers.into_iter().take(MAX_OFFERS) {
        // A name of a stream may hold whatever a terminal would obey.
        terminal.line(format_args!("{}{}\t{}", typed.before, one_line(&word), one_line(&about)))?;
    }
    Ok(())
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

fn verbs(command: &Command) -> Vec<Offer> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.map(|verb| Offer::new(verb.get_name(), about(verb.get_about()))).collect()
}

fn flags(command: &Command) -> Vec<Offer> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let flag = |arg: &clap::Arg| {
        let long = arg.get_long()?;
        Some(Offer::new(format!("--{long}"), about(arg.get_help())))
    };
    shown.filter_map(flag).collect()
}
