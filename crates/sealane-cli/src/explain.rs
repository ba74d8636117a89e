//! `sealane explain`.

use sealane_message::{ErrorInfo, Retry};

use crate::args::ExplainArgs;
use crate::config::SettingsFile;
use crate::{CliFailure, Terminal};

/// Every row of every error table, in the order of a message's way.
pub fn table() -> impl Iterator<Item = &'static ErrorInfo> {
    let tables = [
        sealane_message::ERRORS,
        sealane_codec::ERRORS,
        sealane_codec::document::ERRORS,
        sealane_codec::event::ERRORS,
        sealane_seal::ERRORS,
        sealane_seal::policy::ERRORS,
        sealane_frame::ERRORS,
        sealane_mesh::ERRORS,
        sealane_link::ERRORS,
        sealane_group::ERRORS,
        sealane_document::ERRORS,
        sealane_protocol::ERRORS,
        sealane_vault::ERRORS,
        sealane_vault::n2s::ERRORS,
        sealane::ERRORS,
        sealane::documents::ERRORS,
        sealane_machine::GATEWAY_ERRORS,
        sealane_machine::ERRORS,
        sealane_node::ERRORS,
        sealane_node::START_ERRORS,
        crate::ERRORS,
    ];
    tables.into_iter().flatten()
}

/// Says what a code or name means, or what a token may do; without a word, lists all codes.
///
/// # Errors
/// [`CliFailure::UnknownCode`], [`CliFailure::Usage`], and what `token::explain` fails for.
pub async fn run(
    args: &ExplainArgs,
    file: Result<SettingsFile, CliFailure>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    match args.asked.as_slice() {
        [] => code(None, terminal),
        [word] if word != "access" => code(Some(word), terminal),
        [word, token, topic] if word == "access" => {
            crate::token::explain(token, topic, args.data.as_ref(), &file?, terminal).await
        }
        _ => Err(CliFailure::Usage("say one code, or `access`, a token and a topic")),
    }
}

fn code(asked: Option<&str>, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let Some(asked) = asked else {
        for info in table() {
            if terminal.json() {
                show(info, terminal)?;
            } else {
                terminal.line(format_args!("{:<14}{:<20}{}", info.code, info.name, info.cause))?;
            }
        }
        return Ok(());
    };
    let is_asked = |info: &&ErrorInfo| {
        info.code.eq_ignore_ascii_case(asked) || info.name.eq_ignore_ascii_case(asked)
    };
    let mut found = table().filter(is_asked).peekable();
    if found.peek().is_none() {
        return Err(CliFailure::UnknownCode(asked.to_owned()));
    }
    found.try_for_each(|info| show(info, terminal))
}

fn show(info: &ErrorInfo, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![
            ("code", info.code.into()),
            ("name", info.name.into()),
            ("cause", info.cause.into()),
            ("hint", info.hint.into()),
            ("retry", info.retry.as_str().into()),
        ]);
    }
    let ErrorInfo { code, name, cause, hint, retry, .. } = info;
    let again = match retry {
        Retry::Never => "",
        Retry::Later => "\n  it may succeed later",
        Retry::Reconnect => "\n  it may succeed on a new connection",
    };
    terminal.line(format_args!("{code} {name}\n  {cause}\n  hint: {hint}{again}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_stands_for_one_code() {
        let mut seen = BTreeSet::new();
        for info in table() {
            assert!(seen.insert(info.code), "{} has two rows", info.code);
            assert!(seen.insert(info.name), "{} is the name of {} too", info.name, info.code);
        }
    }
}
