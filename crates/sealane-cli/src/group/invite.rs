//! How people come into a group, and who has compared their fingerprints.

use std::path::Path;

use sealane_group::limits::{MAX_ROSTER_MEMBERS, WARN_SLOTS_GIVEN};
use sealane_group::{
    EpochSource, Fingerprint, GroupDocument, GroupMember, IdentityCard, KeyFolder, RosterEntry,
};

use super::write_file;
use crate::args::group::GroupVerb;
use crate::key::{hand_on, read_document, say};
use crate::terminal::confirm;
use crate::{CliFailure, Terminal};

pub(super) fn invite(
    folder: &KeyFolder,
    verb: &GroupVerb,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let GroupVerb::Invite { group, card: file, history, text, orders, fingerprint, yes } = verb
    else {
        return Ok(());
    };
    let mut member = folder.group(group)?;
    let card = IdentityCard::from_bytes(&read_document(GroupDocument::Card, file)?)?;
    let is_asked = terminal.asks() && !yes && file != Path::new("-");
    let is_compared = is_of(&card, *fingerprint, is_asked)?;
    let invited = member.invite(&card, (*history).into())?;
    if is_compared {
        member.set_compared(invited.slot)?;
    }
    write_file(orders.as_deref(), &invited.notices)?;
    hand_on(GroupDocument::Invitation, &invited.invitation, *text, terminal)?;
    let (name, slot) = (card.name(), invited.slot.number());
    let mut message = format!("{name} has slot {slot}.");
    if !member.group().is_pair() {
        message.push_str(&slots_left(invited.slots_left));
    }
    if let Some(old) = invited.replaces {
        message.push_str(&format!(" Slot {} is retired.", old.number()));
    }
    let theirs = card.public().fingerprint();
    let compared = if is_compared { "compared" } else { "not compared" };
    message.push_str(&format!(
        "\nTheir fingerprint, which they see with `sealane key show`, {compared}: {theirs}"
    ));
    if !is_compared {
        message.push_str(&format!(
            "\nCompare it over another way: sealane group compare {group} FINGERPRINT --card FILE"
        ));
    }
    message.push_str(&format!(
        "\nThe authority's fingerprint, for their --authority: {}",
        member.authority()
    ));
    say(terminal, &message);
    Ok(())
}

/// Whether a card's fingerprint was compared, before anything is given on the word of the card.
fn is_of(
    card: &IdentityCard,
    expected: Option<Fingerprint>,
    is_asked: bool,
) -> Result<bool, CliFailure> {
    let (name, found) = (card.name(), card.public().fingerprint());
    match expected {
        Some(expected) if expected != found => {
            Err(sealane_group::Error::OtherCard(found.to_string()).into())
        }
        Some(_) => Ok(true),
        None if is_asked => {
            let question = format!(
                "The fingerprint of {name} is {found}.\nAsk {name} over another way what \
                 `sealane key show` says there. Is it the same?"
            );
            confirm(&question, "nobody was invited; --yes invites without a comparison")?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Asks people for the authority's fingerprint before an invitation is taken.
pub(super) fn compare_inviter(
    folder: &KeyFolder,
    invitation: &[u8],
) -> Result<Fingerprint, CliFailure> {
    let found = folder.inviter(invitation)?;
    let question = format!(
        "The fingerprint of the authority is {found}.\nAsk the authority over another way what \
         `sealane group show` says there. Is it the same?"
    );
    confirm(&question, "no group was joined")?;
    Ok(found)
}

/// Keeps that a fingerprint was compared: the authority's, or that of the member with a card.
pub(super) fn compare(
    mut member: GroupMember,
    expected: Fingerprint,
    card: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let entry = match card {
        Some(card) => {
            let card = IdentityCard::from_bytes(&read_document(GroupDocument::Card, card)?)?;
            is_of(&card, Some(expected), false)?;
            let is_holder = |one: &&RosterEntry| {
                one.verifying_key() == card.public().verifying_key() && one.removed().is_none()
            };
            let holder = member.roster().entries().iter().find(is_holder);
            holder.ok_or_else(|| sealane_group::Error::UnknownMember(card.name().to_owned()))?
        }
        None if expected != member.authority() => {
            let found = member.authority().to_string();
            return Err(sealane_group::Error::OtherAuthority(found).into());
        }
        None => {
            let slot = member.authority_slot();
            let entry = slot.and_then(|slot| member.roster().entry(slot));
            entry.ok_or(sealane_group::Error::NotAuthority)?
        }
    };
    let (name, slot) = (entry.name().to_owned(), entry.slot());
    member.set_compared(slot)?;
    if terminal.json() {
        return terminal.record(vec![
            ("group", member.name().into()),
            ("name", name.into()),
            ("slot", u64::from(slot.number()).into()),
            ("compared", true.into()),
        ]);
    }
    terminal.line(format_args!("{name} (slot {}) is compared", slot.number()))
}

/// A warning once few slots are left; empty before that.
fn slots_left(left: usize) -> String {
    let is_near = left <= MAX_ROSTER_MEMBERS - WARN_SLOTS_GIVEN;
    if !is_near {
        return String::new();
    }
    format!(
        "\n{left} of {MAX_ROSTER_MEMBERS} slots are left, and none is given again: found a new \
         group before they are used up."
    )
}

pub(super) fn join(
    folder: &KeyFolder,
    invitation: &[u8],
    authority: Option<Fingerprint>,
    name: Option<&str>,
    terminal: &Terminal,
) -> Result<GroupMember, CliFailure> {
    let member = folder.join(invitation, authority, name)?;
    if authority.is_none() {
        let found = member.authority();
        say(
            terminal,
            &format!(
                "The authority is not compared: its fingerprint is {found}. Ask it over another \
                 way, then: sealane group compare {} FINGERPRINT",
                member.name()
            ),
        );
    }
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slots_are_a_warning() {
        assert_eq!(slots_left(MAX_ROSTER_MEMBERS - 899), "");
        assert!(slots_left(124).starts_with("\n124 of 1024 slots are left"));
        assert!(slots_left(0).starts_with("\n0 of"));
    }
}
