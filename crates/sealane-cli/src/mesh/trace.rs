//! `sealane mesh trace`.

use sealane::{Codec, Value};
use sealane_group::{EpochSource, GroupMembership};
use sealane_link::LinkError;
use sealane_machine::MachineConfig;
use sealane_mesh::margin;
use sealane_seal::Slot;

use super::status::{all, ask, number, said, span};
use crate::args::key::KeysArgs;
use crate::args::mesh::MeshTraceArgs as Args;
use crate::relay::{mesh_member, open_mesh_member};
use crate::terminal::table;
use crate::{CliFailure, Terminal};

/// Shows which way leads from this machine to another one of its mesh.
///
/// # Errors
/// [`CliFailure::Machine`] if its configuration names no place for its status, nobody answers
/// there, or no machine has answered; what the key folder refuses, if the machine is given by its
/// name.
pub(super) async fn run(
    keys: &KeysArgs,
    args: &Args,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let config = MachineConfig::read(&args.file)?;
    if config.links.routing.is_none() {
        let missing = "[routing] is missing: without it there are the routes of this file";
        return Err(config.refused(LinkError::ConfigValue(missing.to_owned())).into());
    }
    config.status_address()?;
    let (slot, member) = match args.peer.parse() {
        // The names of the others are shown where that takes no passphrase.
        Ok(slot) => (slot, open_mesh_member(&config, keys)),
        Err(_) => {
            let member = mesh_member(&config, keys)?;
            let slot = member.as_ref().map(|member| slot_of(member, &args.peer)).transpose()?;
            (slot.unwrap_or_default(), member)
        }
    };
    let told = ask(&config, &format!("/trace?to={slot}")).await?;
    let told = sealane_codec::decode(Codec::Json, &told).unwrap_or(Value::Null);
    let told = match &member {
        Some(member) => named(told, &|slot| name_of(member, slot)),
        None => told,
    };
    let told = explained(told);
    if terminal.json() {
        terminal.datum(&told)?
    } else {
        show(&told, terminal)?
    }
    match told.field("reached") {
        Some(Value::Bool(true)) => Ok(()),
        _ => Err(config.refused(LinkError::NoWay { slot }).into()),
    }
}

/// The slot of the member that is called so.
fn slot_of(member: &GroupMembership, name: &str) -> Result<u16, CliFailure> {
    let found = member.as_provisioned()?.roster().find(name).map(|entry| entry.slot().number());
    found.ok_or_else(|| sealane_group::Error::UnknownMember(name.to_owned()).into())
}

fn name_of(member: &GroupMembership, slot: u64) -> Option<String> {
    let slot = u16::try_from(slot).ok().and_then(Slot::new)?;
    member.name_of(slot, member.epochs().newest()).map(str::to_owned)
}

/// The same with the name of each machine behind its slot.
fn named(value: Value, name: &impl Fn(u64) -> Option<String>) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(|one| named(one, name)).collect()),
        Value::Map(fields) => {
            let mut out = Vec::with_capacity(fields.len() + 1);
            for (key, value) in fields {
                let slot = value.as_u64().filter(|_| SLOTS.contains(&key.as_str()));
                out.push((key, named(value, name)));
                out.extend(slot.and_then(name).map(|name| ("name".to_owned(), name.into())));
            }
            Value::Map(out)
        }
        other => other,
    }
}

/// The same with why each machine uses the way that it uses.
fn explained(told: Value) -> Value {
    let is_reached = told.field("reached") == Some(&Value::Bool(true));
    let Value::Map(mut fields) = told else { return told };
    for (_, hops) in fields.iter_mut().filter(|(name, _)| name == "hops") {
        let Value::Array(hops) = hops else { continue };
        let last = hops.len().saturating_sub(1);
        for (at, hop) in hops.iter_mut().enumerate() {
            let why = why(all(hop, "ways"), is_reached || at < last);
            let Value::Map(fields) = hop else { continue };
            fields.extend(why.map(|why| ("why".to_owned(), why.name().into())));
        }
    }
    Value::Map(fields)
}

/// Why a machine uses the first of its ways, as far as their metrics tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RouteReason {
    Only,
    Least,
    Kept,
    Passed,
    Unused,
}

impl RouteReason {
    const ALL: [RouteReason; 5] = [
        RouteReason::Only,
        RouteReason::Least,
        RouteReason::Kept,
        RouteReason::Passed,
        RouteReason::Unused,
    ];

    fn name(self) -> &'static str {
        match self {
            RouteReason::Only => "only",
            RouteReason::Least => "least",
            RouteReason::Kept => "kept",
            RouteReason::Passed => "passed",
            RouteReason::Unused => "unused",
        }
    }

    fn said(self) -> &'static str {
        match self {
            RouteReason::Only => "the only one",
            RouteReason::Least => "the least metric",
            RouteReason::Kept => "kept: none is better by three eighths",
            RouteReason::Passed => "a better one is too new, avoided, or may be a loop",
            RouteReason::Unused => "none is used: each may be a loop",
        }
    }
}

/// Nothing of a machine without ways, as the target is.
fn why(ways: &[Value], is_used: bool) -> Option<RouteReason> {
    let metrics: Vec<Option<u16>> = ways
        .iter()
        .map(|way| way.field("metric").and_then(Value::as_u64)?.try_into().ok())
        .collect();
    let (used, others) = metrics.split_first()?;
    let Some(used) = used.filter(|_| is_used) else { return Some(RouteReason::Unused) };
    let Some(best) = others.iter().flatten().min() else { return Some(RouteReason::Only) };
    Some(match best {
        best if *best >= used => RouteReason::Least,
        best if best.saturating_add(margin(used)) >= used => RouteReason::Kept,
        _ => RouteReason::Passed,
    })
}

/// The fields of a trace that hold the slot of a machine.
const SLOTS: [&str; 3] = ["to", "slot", "via"];

fn show(told: &Value, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let hops = all(told, "hops");
    if told.field("roundTripUs").is_some() {
        let (count, trip) = (hops.len().saturating_sub(1), number(told, &["roundTripUs"]));
        let to = machine(told, "to");
        terminal.text(&format!("slot {to}: {count} hops, there and back in {}\n\n", span(trip)))?;
    }
    let rows: Vec<_> = hops.iter().map(hop).collect();
    match rows.is_empty() {
        true => Ok(()),
        false => terminal.text(&table(&["SLOT", "ROUND TRIP", "NEXT", "WHY", "ELSE"], &rows)),
    }
}

/// A machine by its slot, and by its name if that is known.
fn machine(of: &Value, slot: &str) -> String {
    match of.field("name").and_then(Value::as_text) {
        Some(name) => format!("{} {name}", said(of, &[slot])),
        None => said(of, &[slot]),
    }
}

/// A machine, the round trip to the next one, and the ways that it had to choose from.
fn hop(hop: &Value) -> Vec<String> {
    let trip = hop.field("roundTripUs").map(|_| span(number(hop, &["roundTripUs"])));
    let way = |way: &Value| match way.field("metric") {
        Some(_) => format!("slot {}, metric {}", machine(way, "via"), said(way, &["metric"])),
        None => format!("slot {}, no way now", machine(way, "via")),
    };
    let mut ways = all(hop, "ways").iter().map(way);
    let next = ways.next().unwrap_or_default();
    let others: Vec<_> = ways.collect();
    let why = hop.field("why").and_then(Value::as_text);
    let why = RouteReason::ALL
        .into_iter()
        .find(|one| why == Some(one.name()))
        .map_or("", RouteReason::said);
    let trip = trip.unwrap_or_default();
    vec![machine(hop, "slot"), trip, next, why.to_owned(), others.join("; ")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(metrics: &[Option<u64>]) -> Vec<Value> {
        let way = |metric: &Option<u64>| {
            let metric = metric.map(|metric| ("metric".to_owned(), metric.into()));
            Value::Map([("via".to_owned(), 1_u64.into())].into_iter().chain(metric).collect())
        };
        metrics.iter().map(way).collect()
    }

    #[test]
    fn the_metrics_of_its_ways_tell_why_a_machine_uses_one() {
        let of = |metrics: &[Option<u64>]| why(&told(metrics), true);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Some(512)]), Some(RouteReason::Only));
        assert_eq!(of(&[Some(512), None]), Some(RouteReason::Only), "the other one is none now");
        assert_eq!(of(&[Some(512), Some(512), Some(900)]), Some(RouteReason::Least));
        assert_eq!(of(&[Some(800), Some(501)]), Some(RouteReason::Kept));
        assert_eq!(of(&[Some(800), Some(900), Some(499)]), Some(RouteReason::Passed));
        assert_eq!(of(&[None, Some(499)]), Some(RouteReason::Unused));
        assert_eq!(why(&told(&[Some(512)]), false), Some(RouteReason::Unused));
    }

    #[test]
    fn each_machine_of_a_trace_says_why() {
        let hop = |metrics| Value::Map(vec![("ways".to_owned(), Value::Array(told(metrics)))]);
        let hops = Value::Array(vec![hop(&[Some(512)]), hop(&[Some(256)])]);
        let told = |reached| {
            let reached = ("reached".to_owned(), Value::Bool(reached));
            explained(Value::Map(vec![reached, ("hops".to_owned(), hops.clone())]))
        };
        let whys = |told: Value| -> Vec<String> {
            all(&told, "hops").iter().map(|hop| said(hop, &["why"])).collect()
        };
        assert_eq!(whys(told(true)), ["only", "only"]);
        assert_eq!(whys(told(false)), ["only", "unused"], "the last one has turned it back");
    }
}
