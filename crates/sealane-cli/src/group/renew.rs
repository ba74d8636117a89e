//! `sealane group renew`: what is read before an authority begins anew.

use std::path::Path;
use std::time::Duration;

use sealane_group::{ControlCursor, EpochSource, GroupDocument, GroupMember, read_orders};

use crate::args::group::GroupArgs;
use crate::config::SettingsFile;
use crate::key::{open, read_document, say};
use crate::{CliFailure, Terminal};

/// From where an authority learns what it has forgotten.
pub(super) struct RenewalSources<'a> {
    /// The hubs to read.
    pub(super) servers: Vec<&'a String>,
    /// Whether the authority begins anew whatever they say: a member has handed it the removals, or
    /// the user says so.
    pub(super) is_enough: bool,
}

/// Reads the orders of all those hubs. A folder that was copied or restored may have forgotten a
/// removal: a hub that shows it too few orders, or one that it knows and that was not named, stops
/// it here.
pub(super) async fn read_hubs(
    args: &GroupArgs,
    name: &str,
    sources: &RenewalSources<'_>,
    file: &SettingsFile,
    terminal: &Terminal,
) -> Result<(), CliFailure> {
    let folder = open(&args.keys)?;
    let is_strict = folder.group(name)?.is_copied() && !sources.is_enough;
    let mut read = Vec::new();
    for server in &sources.servers {
        let client = file.client(Some(server), None)?.patience(Duration::ZERO);
        let member = folder.group(name)?;
        let shown = async { client.group(member).await?.check_shown().await };
        match shown.await {
            Ok(()) => read.push(ControlCursor::new(&client.address()).hub),
            Err(error) if is_strict => {
                say(
                    terminal,
                    "This folder may have forgotten a removal. To begin anew in spite \
                     of that: --unread",
                );
                return Err(error.into());
            }
            Err(error) => {
                let goes_on = "and this folder's own orders count";
                say(terminal, &format!("{server} told nothing, {goes_on}: {error}"));
            }
        }
    }
    let member = folder.group(name)?;
    let unread = member.hubs_besides(&read)?;
    if unread == 0 {
        return Ok(());
    }
    say(
        terminal,
        &format!(
            "Hubs that this folder has read before and not now: {unread}. They may know of \
             removals. Name them with --also, or begin anew without them: --unread"
        ),
    );
    if is_strict { Ok(member.check_giving()?) } else { Ok(()) }
}

/// Takes over the removals that a member hands back, before a new beginning. If nothing was read, a
/// folder that was copied or restored is refused by name.
pub(super) fn take_over(
    member: &mut GroupMember,
    file: Option<&Path>,
    is_asked: bool,
    terminal: &Terminal,
) -> Result<(), CliFailure> {
    let Some(file) = file else {
        if !is_asked && member.is_authority() {
            member.check_giving()?;
            say(terminal, "No hub was read, and this folder's own orders count.");
        }
        return Ok(());
    };
    for notice in read_orders(&read_document(GroupDocument::Order, file)?)? {
        match member.apply(&notice) {
            // It is the authority's own order, of a time that this folder does not know.
            Ok(_) | Err(sealane_group::Error::Elsewhere(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
