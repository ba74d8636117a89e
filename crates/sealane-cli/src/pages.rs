//! Texts made from the definitions of `args`: help, man pages and `docs/reference/CLI.md`.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::args::{self, ManArgs};
use crate::{CliFailure, Terminal, VERSION};

/// `sealane man`: the page of `sealane` itself, or a file for each verb.
///
/// # Errors
/// [`CliFailure::Output`], [`CliFailure::File`].
pub fn man(args: &ManArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if args.markdown {
        return terminal.write(markdown().as_bytes());
    }
    if let Some(folder) = &args.to {
        let file = |error: std::io::Error| CliFailure::File {
            file: folder.clone(),
            cause: error.to_string(),
        };
        std::fs::create_dir_all(folder).map_err(file)?;
        return clap_mangen::generate_to(args::command(), folder).map_err(file);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command()).render(&mut page).map_err(CliFailure::Output)?;
    terminal.write(&page)
}

/// `sealane help`, where no verb was named.
///
/// # Errors
/// [`CliFailure::Output`].
pub fn help(terminal: &mut Terminal) -> Result<(), CliFailure> {
    terminal.line(args::command().render_long_help())
}

/// `sealane version`.
///
/// # Errors
/// [`CliFailure::Output`].
pub fn version(terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("commit", env!("SEALANE_COMMIT").into()),
            ("build", VERSION.into()),
        ]);
    }
    terminal.line(format_args!("sealane {VERSION}"))
}

/// `docs/reference/CLI.md`.
pub fn markdown() -> String {
    let mut command = args::command().disable_help_flag(true).disable_version_flag(true);
    command.build();
    let mut page = String::from(
        "# The command line\n\nMade by `sealane man --markdown` from the definitions in \
         `crates/sealane-cli/src/args.rs`;\na test fails when it is stale.\n\n",
    );
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    let _ = write!(page, "`sealane`: {about}.\n\nFor every verb:\n");
    options(&mut page, command.get_arguments());
    for verb in visible(&command) {
        section(&mut page, verb, "sealane", 2);
    }
    let after = command.get_after_long_help().map(StyledStr::to_string).unwrap_or_default();
    let _ = write!(page, "\n## Exit codes, settings, examples\n\n```text\n{after}\n```\n");
    page
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn section(page: &mut String, command: &Command, parent: &str, depth: usize) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    let marks = "#".repeat(depth);
    // Writing to a string does not fail.
    let _ = write!(page, "\n{marks} `{name}`\n\n{about}.\n");
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map(StyledStr::to_string).filter(|text| !text.is_empty());
    let mut usage = name.clone();
    for arg in command.get_positionals() {
        let value = value_name(arg);
        let _ = if arg.is_required_set() {
            write!(usage, " {value}")
        } else {
            write!(usage, " [{value}]")
        };
    }
    if visible(command).next().is_some() {
        usage.push_str(" VERB");
    }
    let _ = write!(page, "\n```text\n{usage}\n```\n");
    let of_every_verb = |arg: &&Arg| ["json", "config", "context"].contains(&arg.get_id().as_str());
    options(page, command.get_arguments().filter(|arg| !of_every_verb(arg)));
    if let Some(after) = after {
        let _ = write!(page, "\n```text\n{after}\n```\n");
    }
    for verb in visible(command) {
        section(page, verb, &name, depth + 1);
    }
}

fn options<'a>(page: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let generated =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let rows: Vec<String> = args.filter(generated).map(row).collect();
    if !rows.is_empty() {
        let _ = write!(page, "\n| argument | meaning |\n|---|---|\n{}", rows.concat());
    }
}

fn row(arg: &Arg) -> String {
    let mut name = String::new();
    if let Some(long) = arg.get_long() {
        let _ = write!(name, "`--{long}");
        if arg.get_action().takes_values() {
            let _ = write!(name, " {}", value_name(arg));
        }
        name.push('`');
        if let Some(short) = arg.get_short() {
            let _ = write!(name, ", `-{short}`");
        }
    } else {
        let _ = write!(name, "`{}`", value_name(arg));
    }
    let mut help = arg.get_help().map(StyledStr::to_string).unwrap_or_default();
    let defaults = if arg.get_action().takes_values() { arg.get_default_values() } else { &[] };
    for value in defaults {
        let _ = write!(help, " [default: {}]", value.to_string_lossy());
    }
    format!("| {name} | {} |\n", help.replace('|', "\\|").replace('\n', " "))
}

fn value_name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or_else(|| arg.get_id().to_string().to_uppercase(), ToString::to_string)
}
