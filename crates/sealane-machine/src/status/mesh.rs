//! The status of the machine that routes, for programs: docs/reference/JSON.md, `mesh status`.

use sealane::Value;
use sealane_link::{
    AirTimeSpent, RouteStatus, RoutingNeighbour, RoutingStatus, RoutingWay, TracedRoute,
    mesh_drops, part_name,
};
use sealane_mesh::{INFINITE, MachineRole, MeshSpan, SendUrgency, TraceHop, TraceWay};
use sealane_seal::Slot;

use crate::json::{map, record};

/// All of it.
pub(crate) fn told(status: &RoutingStatus) -> Value {
    let list = |rows: Vec<Value>| Value::Array(rows);
    let counters = &status.counters;
    let dropped = mesh_drops(counters).into_iter().filter(|(_, units)| *units > 0);
    let dropped =
        dropped.map(|(why, units)| map(vec![("reason", why.into()), ("units", units.into())]));
    let mut fields = vec![
        ("group", status.group.to_string().into()),
        ("slot", u64::from(status.slot.number()).into()),
        ("epoch", status.epoch.0.into()),
        ("role", role(status.role).into()),
        ("neighbours", list(status.neighbours.iter().map(neighbour).collect())),
        ("routes", list(status.routes.iter().map(route).collect())),
        ("air", list(status.spent.iter().map(spent).collect())),
        ("controlBytes", counters.control_bytes.into()),
        ("carried", counters.carried.into()),
        ("flooded", counters.flooded.into()),
        ("suppressed", counters.suppressed.into()),
        ("flaps", counters.flaps.into()),
        ("ownSlotHeard", status.own_slot_heard.into()),
        ("dropped", list(dropped.collect())),
    ];
    fields.extend(status.fault.as_deref().map(|why| ("fault", why.into())));
    map(fields)
}

fn neighbour(one: &RoutingNeighbour) -> Value {
    let mut fields = vec![
        ("slot", u64::from(one.slot.number()).into()),
        ("tag", one.tag.to_string().into()),
        ("link", one.link.as_str().into()),
        ("heard", u64::from(one.heard).into()),
        ("told", u64::from(one.told).into()),
        ("avoided", one.is_avoided.into()),
    ];
    fields.extend(one.address.map(|address| ("address", address.to_string().into())));
    fields.extend(one.round_trip.map(|trip| ("roundTripUs", us(trip))));
    fields.extend(one.cost.map(|cost| ("cost", u64::from(cost).into())));
    map(fields)
}

fn route(one: &RouteStatus) -> Value {
    map(vec![
        ("to", u64::from(one.to.number()).into()),
        ("gateway", one.is_gateway.into()),
        ("metric", u64::from(one.metric).into()),
        ("ways", Value::Array(one.ways.iter().map(way).collect())),
    ])
}

fn way(one: &RoutingWay) -> Value {
    let mut fields = vec![
        ("via", u64::from(one.via.number()).into()),
        ("link", one.link.as_str().into()),
        ("used", one.is_used.into()),
        ("avoided", one.is_avoided.into()),
    ];
    fields.extend(one.metric.map(|metric| ("metric", u64::from(metric).into())));
    map(fields)
}

fn spent(link: &AirTimeSpent) -> Value {
    let parts = SendUrgency::ALL.into_iter().zip(link.parts);
    let parts = parts.map(|(part, spent)| (part_name(part).to_owned(), us(spent))).collect();
    map(vec![
        ("link", link.link.as_str().into()),
        ("medium", link.medium.into()),
        ("spentUs", Value::Map(parts)),
    ])
}

fn role(role: MachineRole) -> &'static str {
    match role {
        MachineRole::Gateway => "gateway",
        MachineRole::Member => "member",
        MachineRole::Quiet => "quiet",
    }
}

fn us(span: MeshSpan) -> Value {
    span.0.into()
}

/// The way to a machine as one line of JSON: docs/reference/JSON.md, `mesh trace`.
pub(crate) fn traced(to: Slot, traced: Option<&TracedRoute>) -> String {
    let slot = |slot: Slot| Value::from(u64::from(slot.number()));
    let way = |way: &TraceWay| {
        let mut fields = vec![("via", slot(way.via))];
        let metric = Some(way.metric).filter(|metric| *metric < INFINITE);
        fields.extend(metric.map(|metric| ("metric", u64::from(metric).into())));
        map(fields)
    };
    let hop = |hop: &TraceHop| {
        let mut fields = vec![("slot", slot(hop.slot))];
        let trip = hop.round_trip_us.filter(|_| !hop.ways.is_empty());
        fields.extend(trip.map(|us| ("roundTripUs", u64::from(us).into())));
        fields.push(("ways", Value::Array(hop.ways.iter().map(way).collect())));
        map(fields)
    };
    let hops = traced.map(|traced| traced.trace.hops.iter().map(hop).collect());
    let mut fields = vec![
        ("to", slot(to)),
        ("answered", traced.is_some().into()),
        ("reached", traced.is_some_and(|traced| !traced.trace.is_cut).into()),
        ("hops", Value::Array(hops.unwrap_or_default())),
    ];
    let trip = traced.and_then(|traced| u64::try_from(traced.round_trip.as_micros()).ok());
    fields.extend(trip.map(|us| ("roundTripUs", us.into())));
    record(fields)
}
