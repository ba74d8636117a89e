//! `sealane mesh trace`.

use sealane::{Codec, Value};
use sealane_link::LinkError;

use super::status::{all, ask, number, said, span};
use crate::args::mesh::Trace as Args;
use crate::relay::{config, refused};
use crate::terminal::table;
use crate::{Failure, Terminal};

/// Shows which way leads from this machine to another one of its mesh.
///
/// # Errors
/// [`Failure::Link`] if its configuration names no place for its status, nobody answers there, or
/// no machine has answered.
pub(super) async fn run(args: &Args, terminal: &mut Terminal) -> Result<(), Failure> {
    let wrong = |cause| refused(&args.file, cause);
    let missing = |what: &str| wrong(LinkError::ConfigValue(what.to_owned()));
    let config = config(&args.file)?;
    if config.routing.is_none() {
        return Err(missing("[routing] is missing: without it there are the routes of this file"));
    }
    let address = config.status;
    let address = address.ok_or_else(|| missing("status is missing: where it tells how it is"))?;
    let told = ask(&args.file, address, &format!("/trace?to={}", args.slot)).await?;
    if terminal.json() {
        terminal.write(&told)?;
    }
    let told = sealane_codec::decode(Codec::Json, &told).unwrap_or(Value::Null);
    if !terminal.json() {
        show(&told, terminal)?;
    }
    match told.field("reached") {
        Some(Value::Bool(true)) => Ok(()),
        _ => Err(wrong(LinkError::NoWay { slot: args.slot })),
    }
}

fn show(told: &Value, terminal: &mut Terminal) -> Result<(), Failure> {
    let hops = all(told, "hops");
    if told.field("roundTripUs").is_some() {
        let (count, trip) = (hops.len().saturating_sub(1), number(told, &["roundTripUs"]));
        let to = said(told, &["to"]);
        terminal.text(&format!("slot {to}: {count} hops, there and back in {}\n\n", span(trip)))?;
    }
    let rows: Vec<_> = hops.iter().map(hop).collect();
    match rows.is_empty() {
        true => Ok(()),
        false => terminal.text(&table(&["SLOT", "ROUND TRIP", "NEXT", "ELSE"], &rows)),
    }
}

/// A machine, the round trip to the next one, and the ways that it had to choose from.
fn hop(hop: &Value) -> Vec<String> {
    let trip = hop.field("roundTripUs").map(|_| span(number(hop, &["roundTripUs"])));
    let way = |way: &Value| match way.field("metric") {
        Some(_) => format!("slot {}, metric {}", said(way, &["via"]), said(way, &["metric"])),
        None => format!("slot {}, no way now", said(way, &["via"])),
    };
    let mut ways = all(hop, "ways").iter().map(way);
    let next = ways.next().unwrap_or_default();
    let others: Vec<_> = ways.collect();
    vec![said(hop, &["slot"]), trip.unwrap_or_default(), next, others.join("; ")]
}
