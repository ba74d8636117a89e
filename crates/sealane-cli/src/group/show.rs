//! The printed form of groups.

use sealane::Value;
use sealane_group::{EpochSource, GroupMember, KeyFolder, RosterEntry};
use sealane_seal::{Epoch, History};

use crate::key::say;
use crate::terminal::table;
use crate::times::{now_ms, show_duration};
use crate::{CliFailure, Terminal};

fn history(member: &GroupMember) -> &'static str {
    match member.history() {
        History::Kept => "kept",
        History::ForwardSecret => "forward-secret",
    }
}

fn role(member: &GroupMember) -> &'static str {
    match (member.is_removed(), member.is_authority()) {
        (true, _) => "removed",
        (_, true) => "authority",
        _ => "member",
    }
}

pub(super) fn list(folder: &KeyFolder, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let (mut rows, mut unreadable) = (Vec::new(), None);
    for name in folder.groups()? {
        let member = match folder.group(&name) {
            Ok(member) => member,
            Err(error) => {
                // The others are shown all the same; it can be left with `sealane group leave`.
                say(terminal, &format!("{name} cannot be read: {error}"));
                unreadable = unreadable.or(Some(error));
                continue;
            }
        };
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
    if !terminal.json() {
        let head = ["GROUP", "SLOT", "ROLE", "MEMBERS", "EPOCH", "HISTORY"];
        terminal.write(table(&head, &rows).as_bytes())?;
    }
    unreadable.map_or(Ok(()), |error| Err(error.into()))
}

fn suite(member: &GroupMember) -> &'static str {
    match member.group().suite() {
        sealane_seal::Suite::Aes256Gcm => "aes-256-gcm",
        sealane_seal::Suite::ChaCha20Poly1305 => "chacha20-poly1305",
    }
}

pub(super) fn show(member: &GroupMember, terminal: &mut Terminal) -> Result<(), CliFailure> {
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
    let heartbeats = heartbeats(member).map(|said| ("heartbeats", said));
    let copied = "yes: it was copied or restored; two copies at work look like one member";
    let copied = member.is_copied().then(|| ("copied", copied.to_owned()));
    let leaving = leaving(member).map(|said| ("leaving", said));
    for (name, value) in lines.into_iter().chain(heartbeats).chain(copied).chain(leaving) {
        terminal.line(format_args!("{name:<12}{value}"))?;
    }
    let head = ["MEMBER", "SLOT", "SINCE", "REMOVED", "KEY"];
    let rows: Vec<_> = member.roster().entries().iter().map(row).collect();
    terminal.write(format!("\n{}", table(&head, &rows)).as_bytes())
}

fn row(entry: &RosterEntry) -> Vec<String> {
    vec![
        entry.name().to_owned(),
        entry.slot().number().to_string(),
        entry.since().0.to_string(),
        entry.removed().map_or("-".to_owned(), |epoch| epoch.0.to_string()),
        key(entry),
    ]
}

/// The members that are announced as removed by orders that have not come, and how long ago.
fn leaving(member: &GroupMember) -> Option<String> {
    let one = |one: &sealane_group::AnnouncedRemoval| {
        let (slot, order) = (one.removal.slot.number(), one.removal.order);
        let ago = show_duration(now_ms().saturating_sub(one.came_ms));
        format!("slot {slot}, by order {order}, told {ago} ago")
    };
    let all: Vec<_> = member.leaving().iter().map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The beginning of a member's key, by which it can be named.
fn key(entry: &RosterEntry) -> String {
    let [beginning, ..] = entry.verifying_key().as_chunks::<8>().0 else { return String::new() };
    sealane_message::hex::encode(beginning)
}

/// How old heartbeats may be, if the charter says so, and whether the newest is older.
fn heartbeats(member: &GroupMember) -> Option<String> {
    let allowed_s = u64::from(member.heartbeat_age_s());
    if allowed_s == 0 {
        return None;
    }
    let strict = if member.is_strict() { ", or only what is urgent is sealed" } else { "" };
    let stale = match member.check_heartbeat(now_ms()) {
        Err(_) => "; the newest is older",
        Ok(()) => "",
    };
    Some(format!("one in {} at least{strict}{stale}", show_duration(allowed_s * 1000)))
}

/// How many orders were obeyed, and why nothing is sealed if that is so.
fn orders(member: &GroupMember) -> String {
    match member.check_sealing() {
        Ok(()) => member.orders().to_string(),
        Err(error) => format!("{}: {error}", member.orders()),
    }
}

/// Ranges of the epochs whose secrets are held.
fn held(member: &GroupMember) -> String {
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

fn fields(member: &GroupMember) -> Vec<(&'static str, Value)> {
    let entry = |entry: &RosterEntry| {
        let fields = [
            ("name", entry.name().into()),
            ("slot", u64::from(entry.slot().number()).into()),
            ("since", entry.since().0.into()),
            ("removed", entry.removed().map_or(Value::Null, |epoch| epoch.0.into())),
            ("key", key(entry).into()),
        ];
        Value::Map(fields.map(|(name, value)| (name.to_owned(), value)).into())
    };
    let going = |one: &sealane_group::AnnouncedRemoval| {
        let removal = one.removal;
        let fields = [
            ("slot", u64::from(removal.slot.number()).into()),
            ("order", removal.order.into()),
            ("toldMs", one.came_ms.into()),
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
        ("heartbeatAgeMs", (u64::from(member.heartbeat_age_s()) * 1000).into()),
        ("strict", member.is_strict().into()),
        ("stale", member.check_heartbeat(now_ms()).is_err().into()),
        ("orders", member.orders().into()),
        ("behind", member.check_sealing().is_err().into()),
        ("copied", member.is_copied().into()),
        ("leaving", Value::Array(member.leaving().iter().map(going).collect())),
        ("members", Value::Array(member.roster().entries().iter().map(entry).collect())),
    ]
}
