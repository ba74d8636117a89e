//! `sealane group`.

mod show;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane::{GroupBeater, Retry, Value};
use sealane_group::{
    BeaterView, EpochSource, Fingerprint, GroupChange, GroupDocument, GroupMember, GroupNotice,
    IdentityCard, KeyFolder, NewGroup, RosterEntry, read_orders, write_orders,
};
use sealane_link::RelayCard;
use sealane_seal::{Epoch, Slot};

use crate::args::group::{GroupArgs, GroupVerb};
use crate::config::SettingsFile;
use crate::key::{hand_on, open, read_document, redirected, say};
use crate::times::count;
use crate::{CliFailure, Terminal};
use show::{list, show};

/// Makes, joins, changes and shows groups.
///
/// # Errors
/// The refusal of the key folder or the group.
pub fn run(args: &GroupArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let folder = open(&args.keys)?;
    let way = |file| OrderDelivery { file, is_published: args.server.is_some() };
    match &args.verb {
        GroupVerb::New { name, history, pair, suite, heartbeat_age, strict } => {
            let age_s = heartbeat_age.map_or(0, |age| age.as_secs().max(1));
            let options = NewGroup {
                suite: (*suite).into(),
                history: (*history).into(),
                is_pair: *pair,
                heartbeat_age_s: u32::try_from(age_s).unwrap_or(u32::MAX),
                is_strict: *strict,
            };
            show(&folder.new_group(name, options)?, terminal)
        }
        GroupVerb::Invite { .. } => invite(&folder, &args.verb, terminal),
        GroupVerb::Join { file, authority, name } => {
            let invitation = read_document(GroupDocument::Invitation, file)?;
            join(&folder, &invitation, *authority, name.as_deref(), terminal)
        }
        GroupVerb::Beater { group, card, orders, .. } => {
            beater(folder.group(group)?, card.as_deref(), way(orders.as_deref()), terminal)
        }
        GroupVerb::Heal { group, cards, drop_silent, orders } => {
            heal(folder.group(group)?, cards, *drop_silent, way(orders.as_deref()), terminal)
        }
        GroupVerb::Revoke { group, members, orders } => {
            let mut member = folder.group(group)?;
            let slots = slots(&member, members)?;
            let notices = member.revoke(&slots)?;
            told(&member, &notices, way(orders.as_deref()), terminal)
        }
        GroupVerb::Rotate { group, advance, orders } => {
            let mut member = folder.group(group)?;
            let notices = if *advance { member.advance()? } else { member.rotate()? };
            told(&member, &notices, way(orders.as_deref()), terminal)
        }
        GroupVerb::Renew { group, beyond, orders } => {
            let mut member = folder.group(group)?;
            let notices = member.renew(beyond.map(Epoch))?;
            told(&member, &notices, way(orders.as_deref()), terminal)
        }
        GroupVerb::Orders { group, from } => {
            redirected("redirect the orders into a file: sealane group orders GROUP > FILE")?;
            terminal.write(&write_orders(&folder.group(group)?.notices(*from)?))
        }
        GroupVerb::RelayCard { group } => relay_card(&folder.group(group)?, terminal),
        GroupVerb::Publish { .. } | GroupVerb::Resend { .. } | GroupVerb::Beat { .. } => Ok(()),
        GroupVerb::Forget { group, before } => {
            let mut member = folder.group(group)?;
            member.forget(Epoch(*before))?;
            show(&member, terminal)
        }
        GroupVerb::Apply { group, file } => {
            apply(folder.group(group)?, &read_document(GroupDocument::Order, file)?, terminal)
        }
        GroupVerb::Ls => list(&folder, terminal),
        GroupVerb::Show { group } => show(&folder.group(group)?, terminal),
        GroupVerb::Leave { group, yes } => leave(&folder, group, *yes, terminal),
    }
}

/// How orders get to the members.
#[derive(Clone, Copy)]
struct OrderDelivery<'a> {
    /// The file that they are written into.
    file: Option<&'a Path>,
    /// Whether they are published at once.
    is_published: bool,
}

/// Publishes the orders, if that was asked for. The orders are in the key folder by then, so that
/// nothing is lost where it fails.
///
/// # Errors
/// The refusal of the key folder or the hub.
pub async fn publish(
    args: &GroupArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if let GroupVerb::Beat { beater: Some(path), every, .. } = &args.verb {
        return beat_as_beater(args, path, *every, file, terminal).await;
    }
    let (name, is_asked) = match &args.verb {
        GroupVerb::Publish { group } => (group, true),
        GroupVerb::Invite { group, .. }
        | GroupVerb::Revoke { group, .. }
        | GroupVerb::Rotate { group, .. }
        | GroupVerb::Heal { group, .. }
        | GroupVerb::Beater { group, .. }
        | GroupVerb::Renew { group, .. } => (group, args.server.is_some()),
        GroupVerb::Resend { group, .. } | GroupVerb::Beat { group: Some(group), .. } => {
            (group, true)
        }
        _ => return Ok(()),
    };
    if !is_asked {
        return Ok(());
    }
    let client = file.client(args.server.as_ref(), None)?.patience(Duration::ZERO);
    let member = open(&args.keys)?.group(name)?;
    let published = async {
        let group = client.group(member).await?;
        let count = match &args.verb {
            GroupVerb::Resend { from, .. } => group.resend_orders(*from).await?,
            GroupVerb::Beat { every, .. } => {
                beat(*every, terminal, async || group.beat().await).await?
            }
            _ => group.publish_orders().await?,
        };
        Ok((count, group.control_topic()))
    };
    let is_beat = matches!(args.verb, GroupVerb::Beat { .. });
    let is_own_verb =
        is_beat || matches!(args.verb, GroupVerb::Publish { .. } | GroupVerb::Resend { .. });
    let (count, topic) = published.await.inspect_err(|_: &sealane::Error| {
        if !is_own_verb {
            let again = format!("sealane group publish {name}");
            say(terminal, &format!("The orders are given and not published. Do it later: {again}"));
        }
    })?;
    let what = match (is_beat, count) {
        (true, 1) => "heartbeat",
        (true, _) => "heartbeats",
        (false, 1) => "order",
        (false, _) => "orders",
    };
    if !is_own_verb {
        say(terminal, &format!("{count} {what} published to {topic}"));
        return Ok(());
    }
    published_line(name, topic.as_str(), count, what, terminal)
}

fn published_line(
    group: &str,
    topic: &str,
    count: usize,
    what: &str,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![
            ("group", group.into()),
            ("stream", topic.into()),
            ("published", (count as u64).into()),
        ]);
    }
    terminal.line(format_args!("{count} {what} published to {topic}"))
}

/// One heartbeat, or one in each interval until Ctrl-C. Gives how many. A hub that is away for a
/// while does not end it: members would say that no heartbeat comes, long after the hub is back.
async fn beat(
    every: Option<Duration>,
    terminal: &Terminal,
    mut once: impl AsyncFnMut() -> Result<(), sealane::Error>,
) -> Result<usize, sealane::Error> {
    let mut count = 0;
    // Listened to from the beginning, since Ctrl-C may come while a heartbeat is under way.
    let mut ended = tokio::spawn(tokio::signal::ctrl_c());
    loop {
        match once().await {
            Ok(()) => count += 1,
            Err(error) if every.is_none() || error.info().retry == Retry::Never => {
                return Err(error);
            }
            Err(error) => say(terminal, &format!("no heartbeat this time: {error}")),
        }
        let Some(every) = every else { return Ok(count) };
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = &mut ended => return Ok(count),
        }
    }
}

async fn beat_as_beater(
    args: &GroupArgs,
    path: &Path,
    every: Option<Duration>,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let beater = BeaterView::from_bytes(&read_document(GroupDocument::Beater, path)?)?;
    let (name, topic) = (beater.group_name().to_owned(), beater.control_topic());
    let client = file.client(args.server.as_ref(), None)?;
    let identity = open(&args.keys)?.into_identity();
    let mut beater = GroupBeater::new(&client, beater, identity);
    let count = beat(every, terminal, async || beater.beat().await.map(|_| ())).await?;
    published_line(&name, &topic, count, "heartbeats", terminal)
}

fn beater(
    mut member: GroupMember,
    card: Option<&Path>,
    way: OrderDelivery<'_>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let Some(card) = card else {
        let notices = member.set_beater(None)?;
        return told(&member, &notices, way, terminal);
    };
    let card = IdentityCard::from_bytes(&read_document(GroupDocument::Card, card)?)?;
    let notices = member.set_beater(Some(card.public().verifying_key()))?;
    write_file(way.file, &notices)?;
    hand_on(GroupDocument::Beater, &member.beater_file(), false, terminal)?;
    let (name, fingerprint) = (card.name(), card.public().fingerprint());
    say(terminal, &format!("Heartbeats of {name} ({fingerprint}) count, and open nothing."));
    Ok(())
}

fn invite(folder: &KeyFolder, verb: &GroupVerb, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let GroupVerb::Invite { group, card, history, text, orders } = verb else { return Ok(()) };
    let mut member = folder.group(group)?;
    let card = IdentityCard::from_bytes(&read_document(GroupDocument::Card, card)?)?;
    let invited = member.invite(&card, (*history).into())?;
    write_file(orders.as_deref(), &invited.notices)?;
    hand_on(GroupDocument::Invitation, &invited.invitation, *text, terminal)?;
    let (name, slot) = (card.name(), invited.slot.number());
    let mut message = format!("{name} has slot {slot}.");
    if let Some(old) = invited.replaces {
        message.push_str(&format!(" Slot {} is retired.", old.number()));
    }
    message.push_str(&format!(
        "\nTheir fingerprint, which they see with `sealane key show`: {}",
        card.public().fingerprint()
    ));
    message.push_str(&format!(
        "\nThe authority's fingerprint, for their --authority: {}",
        member.authority()
    ));
    say(terminal, &message);
    Ok(())
}

fn join(
    folder: &KeyFolder,
    invitation: &[u8],
    authority: Option<Fingerprint>,
    name: Option<&str>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let member = folder.join(invitation, authority, name)?;
    if authority.is_none() {
        say(terminal, "Compare the authority's fingerprint over another way before you trust it.");
    }
    show(&member, terminal)
}

fn heal(
    mut member: GroupMember,
    cards: &[PathBuf],
    drops_silent: bool,
    way: OrderDelivery<'_>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let read =
        |path: &PathBuf| Ok(IdentityCard::from_bytes(&read_document(GroupDocument::Card, path)?)?);
    let cards = cards.iter().map(read).collect::<Result<Vec<IdentityCard>, CliFailure>>()?;
    let healed = member.heal(&cards, drops_silent)?;
    let name = |slot: &Slot| member.roster().entry(*slot).map_or("?", RosterEntry::name).to_owned();
    let silent: Vec<String> = healed.silent.iter().map(name).collect();
    if terminal.json() {
        write_file(way.file, &healed.notices)?;
        let mut fields = told_fields(&member, &healed.notices);
        let silent = silent.iter().map(|name| name.as_str().into()).collect();
        fields.push(("silent", Value::Array(silent)));
        return terminal.record(fields);
    }
    if !silent.is_empty() {
        let names = silent.join(", ");
        let what = if drops_silent {
            format!("Removed, for want of a fresh card: {names}")
        } else {
            format!(
                "Without a fresh card: {names}\nThey get the fresh secret by their old keys, and a \
                 copy of their folders follows. Ask them for cards, or remove them: --drop-silent"
            )
        };
        say(terminal, &what);
    }
    told(&member, &healed.notices, way, terminal)
}

/// The card is text of its own, which relays read as it is.
fn relay_card(member: &GroupMember, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let epoch = member.epochs().newest();
    let card = RelayCard::new(member.tag(), epoch, member.addresses());
    let card = card.with_orders(member.kept_group());
    terminal.write(card.to_text().as_bytes())
}

fn slots(member: &GroupMember, members: &[String]) -> Result<Vec<Slot>, CliFailure> {
    let find = |text: &String| {
        let found = member.roster().find(text).map(RosterEntry::slot);
        found.ok_or_else(|| sealane_group::Error::UnknownMember(text.clone()).into())
    };
    members.iter().map(find).collect()
}

/// Writes orders where they were asked for, and says what there is to do with them.
fn told(
    member: &GroupMember,
    notices: &[GroupNotice],
    way: OrderDelivery<'_>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    write_file(way.file, notices)?;
    if terminal.json() {
        return terminal.record(told_fields(member, notices));
    }
    let (epoch, members) = (member.epochs().newest().0, member.roster().members().count());
    let (name, members) = (member.name(), count(members as u64, "members"));
    terminal.line(format_args!("{name}: epoch {epoch}, {members}"))?;
    if way.file.is_none() && !way.is_published {
        let next = "Members follow once they have the orders";
        say(terminal, &format!("{next}: sealane group publish {name}, or group orders > FILE."));
    }
    Ok(())
}

fn told_fields(member: &GroupMember, notices: &[GroupNotice]) -> Vec<(&'static str, Value)> {
    let bytes: usize = notices.iter().map(|notice| notice.as_bytes().len()).sum();
    vec![
        ("group", member.name().into()),
        ("epoch", member.epochs().newest().0.into()),
        ("members", (member.roster().members().count() as u64).into()),
        ("orders", (notices.len() as u64).into()),
        ("orderBytes", (bytes as u64).into()),
    ]
}

fn write_file(path: Option<&Path>, notices: &[GroupNotice]) -> Result<(), CliFailure> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, write_orders(notices)).map_err(|cause| CliFailure::file(path, cause))
}

/// Obeys orders, also that which removes this member. What is missing between them is the error at
/// the end.
fn apply(mut member: GroupMember, bytes: &[u8], terminal: &mut Terminal) -> Result<(), CliFailure> {
    for notice in read_orders(bytes)? {
        let mut changes = member.apply(&notice)?;
        changes.retain(|change| !matches!(change, GroupChange::Held { .. }));
        let is_removed = changes.contains(&GroupChange::Removed);
        for change in changes {
            if terminal.json() {
                terminal.record(vec![
                    ("group", member.name().into()),
                    ("change", change_name(&change).into()),
                    ("epoch", member.epochs().newest().0.into()),
                ])?;
            } else {
                terminal.line(in_words(&change))?;
            }
        }
        if is_removed {
            // Nothing that follows is for this member.
            return Ok(());
        }
    }
    Ok(member.check_sealing()?)
}

fn change_name(change: &GroupChange) -> &'static str {
    match change {
        GroupChange::Certified(_) => "certified",
        GroupChange::Admitted { .. } => "admitted",
        GroupChange::Advanced(_) => "advanced",
        GroupChange::Rekeyed { .. } => "rekeyed",
        GroupChange::Removed => "removed",
        GroupChange::Leaving(_) => "leaving",
        GroupChange::Stays { .. } => "stays",
        GroupChange::Marked(_) => "marked",
        GroupChange::Beater(_) => "beater",
        GroupChange::Heartbeat(_) => "heartbeat",
        _ => "other",
    }
}

fn in_words(change: &GroupChange) -> String {
    match change {
        GroupChange::Certified(slot) => format!("certificate of slot {}", slot.number()),
        GroupChange::Admitted { slot, .. } => format!("new member in slot {}", slot.number()),
        GroupChange::Advanced(epoch) => format!("epoch {}", epoch.0),
        GroupChange::Rekeyed { epoch, removed } if removed.is_empty() => {
            format!("epoch {}, with a fresh secret", epoch.0)
        }
        GroupChange::Rekeyed { epoch, removed } => {
            let removed: Vec<_> = removed.iter().map(|slot| slot.number().to_string()).collect();
            format!("epoch {}, without slot {}", epoch.0, removed.join(", "))
        }
        GroupChange::Removed => "this member was removed from the group".to_owned(),
        GroupChange::Leaving(removal) => {
            let (slot, order) = (removal.slot.number(), removal.order);
            format!("slot {slot} is about to be removed by order {order}")
        }
        GroupChange::Stays { slot, order } => {
            format!("slot {} stays: order {order} has not removed it", slot.number())
        }
        GroupChange::Marked(1) => "the removal is marked in 1 stream".to_owned(),
        GroupChange::Marked(streams) => format!("the removal is marked in {streams} streams"),
        GroupChange::Beater(Some(_)) => "another key's heartbeats count".to_owned(),
        GroupChange::Beater(None) => "only the authority's heartbeats count".to_owned(),
        GroupChange::Heartbeat(beat) => format!("{} orders were given", beat.orders),
        _ => "something that this program does not know".to_owned(),
    }
}

fn leave(
    folder: &KeyFolder,
    group: &str,
    yes: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if !folder.groups()?.iter().any(|name| name == group) {
        return Err(sealane_group::Error::UnknownGroup(group.to_owned()).into());
    }
    if !yes && std::io::stdin().is_terminal() && terminal.interactive() {
        eprint!("forget {group} and all its keys in this folder? [y/N] ");
        std::io::stderr().flush().map_err(CliFailure::Output)?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(CliFailure::Input)?;
        if !answer.trim().eq_ignore_ascii_case("y") {
            return Err(CliFailure::Declined("nothing was forgotten"));
        }
    }
    folder.leave(group)?;
    if terminal.json() {
        return terminal.record(vec![("group", group.into()), ("left", true.into())]);
    }
    terminal.line(format_args!("{group} forgotten"))
}
