//! `sealane group`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane::{GroupBeater, Value};
use sealane_group::{
    Beater, Card, Change, Document, Entry, EpochSource, Fingerprint, KeyFolder, Member, NewGroup,
    Notice, read_orders, write_orders,
};
use sealane_seal::{Epoch, History, Slot};

use crate::args::group::{Group, GroupVerb};
use crate::config::File;
use crate::key::{hand_on, open, read_document, redirected, say};
use crate::terminal::table;
use crate::{Failure, Terminal};

/// Makes, joins, changes and shows groups.
///
/// # Errors
/// What the key folder or the group refuses.
pub fn run(args: &Group, terminal: &mut Terminal) -> Result<(), Failure> {
    let folder = open(&args.keys)?;
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
            let invitation = read_document(Document::Invitation, file)?;
            join(&folder, &invitation, *authority, name.as_deref(), terminal)
        }
        GroupVerb::Beater { group, card, orders, .. } => {
            beater(folder.group(group)?, card.as_deref(), orders.as_deref(), terminal)
        }
        GroupVerb::Heal { group, cards, drop_silent, orders } => {
            heal(folder.group(group)?, cards, *drop_silent, orders.as_deref(), terminal)
        }
        GroupVerb::Revoke { group, members, orders } => {
            let mut member = folder.group(group)?;
            let slots = slots(&member, members)?;
            let notices = member.revoke(&slots)?;
            told(&member, &notices, orders.as_deref(), terminal)
        }
        GroupVerb::Rotate { group, advance, orders } => {
            let mut member = folder.group(group)?;
            let notices = if *advance { member.advance()? } else { member.rotate()? };
            told(&member, &notices, orders.as_deref(), terminal)
        }
        GroupVerb::Renew { group, beyond, orders } => {
            let mut member = folder.group(group)?;
            let notices = member.renew(beyond.map(Epoch))?;
            told(&member, &notices, orders.as_deref(), terminal)
        }
        GroupVerb::Orders { group, from } => {
            redirected("redirect the orders into a file: sealane group orders GROUP > FILE")?;
            terminal.write(&write_orders(&folder.group(group)?.notices(*from)?))
        }
        GroupVerb::Publish { .. } | GroupVerb::Resend { .. } | GroupVerb::Beat { .. } => Ok(()),
        GroupVerb::Forget { group, before } => {
            let mut member = folder.group(group)?;
            member.forget(Epoch(*before))?;
            show(&member, terminal)
        }
        GroupVerb::Apply { group, file } => {
            apply(folder.group(group)?, &read_document(Document::Order, file)?, terminal)
        }
        GroupVerb::Ls => list(&folder, terminal),
        GroupVerb::Show { group } => show(&folder.group(group)?, terminal),
        GroupVerb::Leave { group, yes } => leave(&folder, group, *yes, terminal),
    }
}

/// Publishes what was ordered, if that was asked for. The orders are in the key folder by then, so
/// that nothing is lost where it fails.
///
/// # Errors
/// What the key folder or the hub refuses.
pub async fn publish(args: &Group, file: &File, terminal: &mut Terminal) -> Result<(), Failure> {
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
            GroupVerb::Beat { every, .. } => beat(*every, async || group.beat().await).await?,
            _ => group.publish_orders().await?,
        };
        Ok((count, group.control_topic()))
    };
    let (count, topic) = published.await.inspect_err(|_: &sealane::Error| {
        let again = format!("sealane group publish {name}");
        say(terminal, &format!("The orders are given and not published. Do it later: {again}"));
    })?;
    let is_beat = matches!(args.verb, GroupVerb::Beat { .. });
    let what = if is_beat { "heartbeats" } else { "orders" };
    let message = format!("{count} {what} published to {topic}");
    let is_own_verb =
        is_beat || matches!(args.verb, GroupVerb::Publish { .. } | GroupVerb::Resend { .. });
    if !is_own_verb {
        say(terminal, &message);
        return Ok(());
    }
    if terminal.json() {
        return terminal.record(vec![
            ("group", name.as_str().into()),
            ("stream", topic.as_str().into()),
            ("published", (count as u64).into()),
        ]);
    }
    terminal.line(message)
}

/// One heartbeat, or one in each interval until Ctrl-C. Gives how many.
async fn beat(
    every: Option<Duration>,
    mut once: impl AsyncFnMut() -> Result<(), sealane::Error>,
) -> Result<usize, sealane::Error> {
    let mut count = 0;
    loop {
        once().await?;
        count += 1;
        let Some(every) = every else { return Ok(count) };
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = tokio::signal::ctrl_c() => return Ok(count),
        }
    }
}

async fn beat_as_beater(
    args: &Group,
    path: &Path,
    every: Option<Duration>,
    file: &File,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let beater = Beater::from_bytes(&read_document(Document::Beater, path)?)?;
    let (name, topic) = (beater.group_name().to_owned(), beater.control_topic());
    let client = file.client(args.server.as_ref(), None)?;
    let identity = open(&args.keys)?.into_identity();
    let mut beater = GroupBeater::new(&client, beater, identity);
    let count = beat(every, async || beater.beat().await.map(|_| ())).await?;
    if terminal.json() {
        return terminal.record(vec![
            ("group", name.as_str().into()),
            ("stream", topic.as_str().into()),
            ("published", (count as u64).into()),
        ]);
    }
    terminal.line(format_args!("{count} heartbeats published to {topic}"))
}

fn beater(
    mut member: Member,
    card: Option<&Path>,
    orders: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let Some(card) = card else {
        let notices = member.set_beater(None)?;
        return told(&member, &notices, orders, terminal);
    };
    let card = Card::from_bytes(&read_document(Document::Card, card)?)?;
    let notices = member.set_beater(Some(card.public().verifying_key()))?;
    write_file(orders, &notices)?;
    hand_on(Document::Beater, &member.beater_file(), false, terminal)?;
    let (name, fingerprint) = (card.name(), card.public().fingerprint());
    say(terminal, &format!("Heartbeats of {name} ({fingerprint}) count, and open nothing."));
    Ok(())
}

fn invite(folder: &KeyFolder, verb: &GroupVerb, terminal: &mut Terminal) -> Result<(), Failure> {
    let GroupVerb::Invite { group, card, history, text, orders } = verb else { return Ok(()) };
    let mut member = folder.group(group)?;
    let card = Card::from_bytes(&read_document(Document::Card, card)?)?;
    let invited = member.invite(&card, (*history).into())?;
    write_file(orders.as_deref(), &invited.notices)?;
    hand_on(Document::Invitation, &invited.invitation, *text, terminal)?;
    let (name, slot) = (card.name(), invited.slot.number());
    let mut message = format!(
        "{name} ({}) has slot {slot}. They see this fingerprint with: sealane key show",
        card.public().fingerprint()
    );
    if let Some(old) = invited.replaces {
        message.push_str(&format!(" Slot {} is retired.", old.number()));
    }
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
) -> Result<(), Failure> {
    let member = folder.join(invitation, authority, name)?;
    if authority.is_none() {
        say(terminal, "Compare the authority's fingerprint over another way before you trust it.");
    }
    show(&member, terminal)
}

fn heal(
    mut member: Member,
    cards: &[PathBuf],
    drops_silent: bool,
    orders: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let read = |path: &PathBuf| Ok(Card::from_bytes(&read_document(Document::Card, path)?)?);
    let cards = cards.iter().map(read).collect::<Result<Vec<Card>, Failure>>()?;
    let healed = member.heal(&cards, drops_silent)?;
    let name = |slot: &Slot| member.roster().entry(*slot).map_or("?", Entry::name).to_owned();
    let silent: Vec<String> = healed.silent.iter().map(name).collect();
    if !silent.is_empty() {
        let what = if drops_silent { "removed" } else { "on their old keys" };
        say(terminal, &format!("Without a fresh card, {what}: {}", silent.join(", ")));
    }
    told(&member, &healed.notices, orders, terminal)
}

fn slots(member: &Member, members: &[String]) -> Result<Vec<Slot>, Failure> {
    let find = |text: &String| {
        let found = member.roster().find(text).map(Entry::slot);
        found.ok_or_else(|| sealane_group::Error::UnknownMember(text.clone()).into())
    };
    members.iter().map(find).collect()
}

/// Writes orders where they were asked for, and says what there is to do with them.
fn told(
    member: &Member,
    notices: &[Notice],
    orders: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    write_file(orders, notices)?;
    let bytes: usize = notices.iter().map(|notice| notice.as_bytes().len()).sum();
    let (epoch, members) = (member.epochs().newest().0, member.roster().members().count());
    if terminal.json() {
        return terminal.record(vec![
            ("group", member.name().into()),
            ("epoch", epoch.into()),
            ("members", (members as u64).into()),
            ("orders", (notices.len() as u64).into()),
            ("orderBytes", (bytes as u64).into()),
        ]);
    }
    let name = member.name();
    terminal.line(format_args!("{name}: epoch {epoch}, {members} members"))?;
    if orders.is_none() {
        let next = "Members follow once they have the orders";
        say(terminal, &format!("{next}: sealane group publish {name}, or group orders > FILE."));
    }
    Ok(())
}

fn write_file(path: Option<&Path>, notices: &[Notice]) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, write_orders(notices))
        .map_err(|cause| Failure::File { file: path.to_owned(), cause: cause.to_string() })
}

fn apply(mut member: Member, bytes: &[u8], terminal: &mut Terminal) -> Result<(), Failure> {
    for notice in read_orders(bytes)? {
        for change in member.apply(&notice)? {
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
    }
    Ok(member.check_sealing()?)
}

fn change_name(change: &Change) -> &'static str {
    match change {
        Change::Certified(_) => "certified",
        Change::Admitted { .. } => "admitted",
        Change::Advanced(_) => "advanced",
        Change::Rekeyed { .. } => "rekeyed",
        Change::Removed => "removed",
        Change::Held { .. } => "held",
        Change::Marked(_) => "marked",
        Change::Beater(_) => "beater",
        Change::Heartbeat(_) => "heartbeat",
        _ => "other",
    }
}

fn in_words(change: &Change) -> String {
    match change {
        Change::Certified(slot) => format!("certificate of slot {}", slot.number()),
        Change::Admitted { slot, .. } => format!("new member in slot {}", slot.number()),
        Change::Advanced(epoch) => format!("epoch {}", epoch.0),
        Change::Rekeyed { epoch, removed } if removed.is_empty() => {
            format!("epoch {}, with a fresh secret", epoch.0)
        }
        Change::Rekeyed { epoch, removed } => {
            let removed: Vec<_> = removed.iter().map(|slot| slot.number().to_string()).collect();
            format!("epoch {}, without slot {}", epoch.0, removed.join(", "))
        }
        Change::Removed => "this member was removed from the group".to_owned(),
        Change::Held { missing } => format!("held until order {missing} comes"),
        Change::Marked(streams) => format!("the removal is marked in {streams} streams"),
        Change::Beater(Some(_)) => "another key's heartbeats count".to_owned(),
        Change::Beater(None) => "only the authority's heartbeats count".to_owned(),
        Change::Heartbeat(beat) => format!("{} orders were given", beat.orders),
        _ => "something that this program does not know".to_owned(),
    }
}

fn history(member: &Member) -> &'static str {
    match member.history() {
        History::Kept => "kept",
        History::ForwardSecret => "forward-secret",
    }
}

fn role(member: &Member) -> &'static str {
    match (member.is_removed(), member.is_authority()) {
        (true, _) => "removed",
        (_, true) => "authority",
        _ => "member",
    }
}

fn list(folder: &KeyFolder, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for name in folder.groups()? {
        let member = folder.group(&name)?;
        if terminal.json() {
            terminal.record(fields(&member))?;
            continue;
        }
        rows.push(vec![
            name,
            member.slot().number().to_string(),
            role(&member).to_owned(),
            member.roster().members().count().to_string(),
            member.epochs().newest().0.to_string(),
            history(&member).to_owned(),
        ]);
    }
    if terminal.json() {
        return Ok(());
    }
    let head = ["GROUP", "SLOT", "ROLE", "MEMBERS", "EPOCH", "HISTORY"];
    terminal.write(table(&head, &rows).as_bytes())
}

fn suite(member: &Member) -> &'static str {
    match member.group().suite() {
        sealane_seal::Suite::Aes256Gcm => "aes-256-gcm",
        sealane_seal::Suite::ChaCha20Poly1305 => "chacha20-poly1305",
    }
}

fn show(member: &Member, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.record(fields(member));
    }
    let pair = if member.group().is_pair() { ", a pair" } else { "" };
    let lines = [
        ("group", member.name().to_owned()),
        ("tag", member.tag().to_string()),
        ("authority", member.authority().to_string()),
        ("suite", format!("{}{pair}", suite(member))),
        ("history", history(member).to_owned()),
        ("slot", format!("{}, {}", member.slot().number(), role(member))),
        ("epoch", member.epochs().newest().0.to_string()),
        ("epochs held", held(member)),
        ("orders", orders(member)),
    ];
    for (name, value) in lines {
        terminal.line(format_args!("{name:<12}{value}"))?;
    }
    let head = ["MEMBER", "SLOT", "SINCE", "REMOVED", "KEY"];
    let rows: Vec<_> = member.roster().entries().iter().map(row).collect();
    terminal.write(format!("\n{}", table(&head, &rows)).as_bytes())
}

fn row(entry: &Entry) -> Vec<String> {
    vec![
        entry.name().to_owned(),
        entry.slot().number().to_string(),
        entry.since().0.to_string(),
        entry.removed().map_or("-".to_owned(), |epoch| epoch.0.to_string()),
        key(entry),
    ]
}

/// The beginning of a member's key, by which it can be named.
fn key(entry: &Entry) -> String {
    entry.verifying_key().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// How many orders were obeyed, and why nothing is sealed if that is so.
fn orders(member: &Member) -> String {
    match member.check_sealing() {
        Ok(()) => member.orders().to_string(),
        Err(error) => format!("{}: {error}", member.orders()),
    }
}

/// Ranges of the epochs whose secrets are held.
fn held(member: &Member) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (Epoch(epoch), _) in member.epochs().held() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == epoch => *last = epoch,
            _ => ranges.push((epoch, epoch)),
        }
    }
    let show = |(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn fields(member: &Member) -> Vec<(&'static str, Value)> {
    let entry = |entry: &Entry| {
        let fields = [
            ("name", entry.name().into()),
            ("slot", u64::from(entry.slot().number()).into()),
            ("since", entry.since().0.into()),
            ("removed", entry.removed().map_or(Value::Null, |epoch| epoch.0.into())),
            ("key", key(entry).into()),
        ];
        Value::Map(fields.map(|(name, value)| (name.to_owned(), value)).into())
    };
    let epochs = member.epochs().held().map(|(epoch, _)| epoch.0.into()).collect();
    vec![
        ("group", member.name().into()),
        ("tag", member.tag().to_string().into()),
        ("authority", member.authority().to_string().into()),
        ("suite", suite(member).into()),
        ("pair", member.group().is_pair().into()),
        ("history", history(member).into()),
        ("slot", u64::from(member.slot().number()).into()),
        ("role", role(member).into()),
        ("epoch", member.epochs().newest().0.into()),
        ("epochs", Value::Array(epochs)),
        ("orders", member.orders().into()),
        ("behind", member.check_sealing().is_err().into()),
        ("copied", member.is_copied().into()),
        ("members", Value::Array(member.roster().entries().iter().map(entry).collect())),
    ]
}

fn leave(
    folder: &KeyFolder,
    group: &str,
    yes: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    folder.group(group)?;
    if !yes && std::io::stdin().is_terminal() && terminal.interactive() {
        eprint!("forget {group} and all its keys in this folder? [y/N] ");
        std::io::stderr().flush().map_err(Failure::Output)?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(Failure::Input)?;
        if !answer.trim().eq_ignore_ascii_case("y") {
            return Err(Failure::Usage("nothing was forgotten"));
        }
    }
    folder.leave(group)?;
    if terminal.json() {
        return terminal.record(vec![("group", group.into()), ("left", true.into())]);
    }
    terminal.line(format_args!("{group} forgotten"))
}
