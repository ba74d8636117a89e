//! `sealane explain`.

use sealane_message::ErrorInfo;

use crate::args::Explain;
use crate::{Failure, Terminal};

/// Every row of every error table, in the order of a message's way.
pub fn table() -> impl Iterator<Item = &'static ErrorInfo> {
    let tables = [
        sealane_message::ERRORS,
        sealane_codec::ERRORS,
        sealane_codec::event::ERRORS,
        sealane_seal::ERRORS,
        sealane_seal::policy::ERRORS,
        sealane_frame::ERRORS,
        sealane_group::ERRORS,
        sealane_stream::ERRORS,
        sealane_vault::ERRORS,
        sealane::ERRORS,
        sealane_node::ERRORS,
        crate::ERRORS,
    ];
    tables.into_iter().flatten()
}

/// Says what a code or name means; without one, lists all.
///
/// # Errors
/// [`Failure::UnknownCode`].
pub fn run(args: &Explain, terminal: &mut Terminal) -> Result<(), Failure> {
    let Some(asked) = &args.code else {
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
        return Err(Failure::UnknownCode(asked.clone()));
    }
    found.try_for_each(|info| show(info, terminal))
}

fn show(info: &ErrorInfo, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.record(vec![
            ("code", info.code.into()),
            ("name", info.name.into()),
            ("cause", info.cause.into()),
            ("hint", info.hint.into()),
        ]);
    }
    let ErrorInfo { code, name, cause, hint, .. } = info;
    terminal.line(format_args!("{code} {name}\n  {cause}\n  hint: {hint}"))
}
