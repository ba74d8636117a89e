//! The status of a machine that carries frames, for programs.

pub(crate) mod mesh;

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use sealane::Value;
use sealane_document::DocumentsStatus;
use sealane_group::control_topic;
use sealane_link::{
    ChangeCount, ConfigReload, LinkRelay, RelayNeighbourStatus, RelayStatus, RelayWatch,
    RoutingHandle, UnitVolume,
};
use sealane_message::time::whole_ms;

use crate::documents::{SharedDocumentsStatus, told as documents};
use crate::json::{map, record};
use crate::member::EndWatch;
use crate::{Gateway, GatewayStatus, MeshStream};

/// A relay, and what is beside it: the member of an end, or the way of a gateway to its hub, and
/// documents.
#[derive(Debug, Clone)]
pub struct MachineStatus {
    /// The frames that its links carry and drop, and its routes.
    pub status: RelayStatus,
    /// The member, where it has an interface.
    pub end: Option<EndStatus>,
    /// The way to its hub.
    pub gateway: Option<GatewayStatus>,
    /// Its counts of documents.
    pub documents: Option<DocumentsStatus>,
}

/// The status of an end beyond that of a relay.
#[derive(Debug, Clone, Default)]
pub struct EndStatus {
    /// The group, as the key folder calls it.
    pub group: String,
    /// The member's slot there.
    pub slot: u16,
    /// The newest epoch that it knows.
    pub epoch: u64,
    /// Its interface.
    pub interface: String,
    /// The largest packet there, in bytes.
    pub mtu: u16,
    /// Why nothing is sealed at present.
    pub unsealed: Option<String>,
    /// Slots of the configuration that are no members now.
    pub awaited: Vec<u16>,
}

/// Gives the status of a machine whenever it is asked for.
#[derive(Clone)]
pub(crate) struct MachineWatch {
    watch: RelayWatch,
    router: Option<RoutingHandle>,
    pub(crate) end: Option<Arc<EndWatch>>,
    pub(crate) gateway: Option<Arc<Gateway>>,
    pub(crate) documents: Option<SharedDocumentsStatus>,
}

impl MachineWatch {
    /// Of a relay, beside which nothing runs yet.
    pub(crate) fn of(relay: &LinkRelay) -> MachineWatch {
        let (watch, router) = (relay.watch(), relay.router());
        MachineWatch { watch, router, end: None, gateway: None, documents: None }
    }

    /// The machine that routes, which traces ways.
    pub(crate) fn router(&self) -> Option<RoutingHandle> {
        self.router.clone()
    }

    pub(crate) fn status(&self) -> MachineStatus {
        MachineStatus {
            status: self.watch.status(),
            end: self.end.as_ref().map(|end| end.status()),
            gateway: self.gateway.as_ref().map(|gateway| gateway.status()),
            documents: self.documents.as_ref().map(|counts| counts.lock().clone()),
        }
    }
}

impl MachineStatus {
    /// One line of JSON: docs/reference/JSON.md, `mesh status`.
    pub fn json(&self) -> String {
        let status = &self.status;
        let groups = status.groups.iter().map(|group| {
            map(vec![
                ("tag", group.tag.to_string().into()),
                ("epoch", group.epoch.0.into()),
                ("members", count(group.members)),
            ])
        });
        let routes = status.routes.iter().map(|route| {
            map(vec![("to", route.to.as_str().into()), ("via", route.via.as_str().into())])
        });
        let mut fields = vec![
            ("tag", status.tag.to_string().into()),
            ("upMs", ms(status.up)),
            ("received", volume(status.tally.received)),
            ("forwarded", volume(status.tally.forwarded)),
            ("delivered", volume(status.tally.delivered)),
            ("sent", volume(status.tally.sent)),
            ("dropped", dropped(status)),
            ("groups", Value::Array(groups.collect())),
            ("neighbours", Value::Array(status.neighbours.iter().map(neighbour).collect())),
            ("routes", Value::Array(routes.collect())),
            ("announcementsHeld", count(status.announcements_held)),
            ("partialBytes", count(status.partial_bytes)),
            ("reloads", reloads(status)),
        ];
        if let Some(capture) = status.capture {
            let told = vec![("units", capture.units.into()), ("missed", capture.missed.into())];
            fields.push(("capture", map(told)));
        }
        let routing = status.routing.as_deref().map(mesh::told);
        fields.extend(routing.map(|routing| ("routing", routing)));
        fields.extend(self.end.as_ref().map(|end| ("end", end.value())));
        fields.extend(self.documents.as_ref().map(|of| ("documents", documents(of))));
        fields.extend(self.gateway.as_ref().map(|of| ("gateway", gateway(of))));
        record(fields)
    }

    /// All of it as OpenMetrics.
    pub fn metrics(&self) -> String {
        let relay = self.status.metrics();
        let documents = self.documents.as_ref().map(DocumentsStatus::metrics);
        let gateway = self.gateway.as_ref().map(GatewayStatus::metrics);
        let (metrics, end) = relay.split_at(relay.rfind("# EOF").unwrap_or(relay.len()));
        [metrics, &documents.unwrap_or_default(), &gateway.unwrap_or_default(), end].concat()
    }
}

impl EndStatus {
    fn value(&self) -> Value {
        let awaited = self.awaited.iter().map(|slot| u64::from(*slot).into()).collect();
        let mut fields = vec![
            ("group", self.group.as_str().into()),
            ("slot", u64::from(self.slot).into()),
            ("epoch", self.epoch.into()),
            ("interface", self.interface.as_str().into()),
            ("mtu", u64::from(self.mtu).into()),
            ("awaited", Value::Array(awaited)),
        ];
        fields.extend(self.unsealed.as_deref().map(|why| ("unsealed", why.into())));
        map(fields)
    }
}

fn count(number: usize) -> Value {
    (number as u64).into()
}

fn ms(time: std::time::Duration) -> Value {
    whole_ms(time).into()
}

fn volume(of: UnitVolume) -> Value {
    map(vec![("units", of.units.into()), ("bytes", of.bytes.into())])
}

/// The reasons that there were, each with its units.
fn dropped(status: &RelayStatus) -> Value {
    let all = sealane_link::DropReason::ALL.into_iter();
    let all =
        all.map(|why| (why.name(), status.tally.dropped(why))).filter(|(_, units)| *units > 0);
    let row =
        |(why, units): (&str, u64)| map(vec![("reason", why.into()), ("units", units.into())]);
    Value::Array(all.map(row).collect())
}

fn neighbour(one: &RelayNeighbourStatus) -> Value {
    let mut fields = vec![
        ("name", one.name.as_str().into()),
        ("tag", one.tag.to_string().into()),
        ("link", one.link.as_str().into()),
        ("address", one.address.to_string().into()),
        ("received", volume(one.tally.received)),
        ("dropped", one.tally.dropped.into()),
        ("sent", volume(one.tally.sent)),
        ("unsent", one.tally.unsent.into()),
    ];
    fields.extend(one.heard.map(|heard| ("silentMs", ms(heard))));
    map(fields)
}

fn reloads(status: &RelayStatus) -> Value {
    let reloads = &status.reloads;
    let mut fields = vec![("taken", reloads.taken.into()), ("refused", reloads.refused.into())];
    fields.extend(reloads.last.as_ref().map(|last| ("last", reload(last))));
    map(fields)
}

fn reload(last: &ConfigReload) -> Value {
    let at = last.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut fields = vec![("atMs", ms(at))];
    let difference =
        |of: ChangeCount| map(vec![("added", count(of.added)), ("removed", count(of.removed))]);
    match &last.outcome {
        Ok(change) => fields.extend([
            ("neighbours", difference(change.neighbours)),
            ("routes", difference(change.routes)),
            ("members", difference(change.members)),
        ]),
        Err(why) => fields.push(("refusal", why.to_string().into())),
    }
    map(fields)
}

fn gateway(of: &GatewayStatus) -> Value {
    let mut hub = vec![
        ("address", Value::from(of.address.as_str())),
        ("state", of.hub.state.name().into()),
        ("sinceMs", ms(of.hub.since.duration_since(UNIX_EPOCH).unwrap_or_default())),
    ];
    hub.extend(of.hub.cause.as_deref().map(|why| ("cause", why.into())));
    let lost = of.queue.lost.iter().filter(|lost| lost.frames > 0).map(|lost| {
        map(vec![
            ("reason", lost.why.name().into()),
            ("urgency", lost.urgency.name().into()),
            ("frames", lost.frames.into()),
        ])
    });
    let mut queue = vec![
        ("frames", of.queue.frames.into()),
        ("bytes", of.queue.bytes.into()),
        ("boundBytes", of.queue.bound_bytes.into()),
        ("lost", Value::Array(lost.collect())),
    ];
    queue.extend(of.queue_fault.as_deref().map(|why| ("fault", why.into())));
    let refused = |stream: &MeshStream, cause: &str| {
        map(vec![("stream", stream.to_string().into()), ("cause", cause.into())])
    };
    let held = of.held.iter().map(|held| refused(&held.stream, &held.cause));
    let causes = of.down.causes.iter().map(|(stream, cause)| refused(stream, cause));
    let of_orders = of.orders.causes.iter().map(|(group, cause)| {
        map(vec![("stream", control_topic(*group).into()), ("cause", cause.as_str().into())])
    });
    map(vec![
        ("hub", map(hub)),
        ("queue", map(queue)),
        ("heard", map(of.heard_by_name().map(|(name, frames)| (name, frames.into())).to_vec())),
        ("late", of.late.into()),
        ("stored", of.stored.into()),
        ("replayed", of.replayed.into()),
        ("held", Value::Array(held.collect())),
        (
            "down",
            map(vec![
                ("put", of.down.put.into()),
                ("known", of.down.known.into()),
                ("refused", of.down.refused.into()),
                ("followed", of.down.followed.into()),
                ("waiting", Value::Array(causes.chain(of_orders).collect())),
            ]),
        ),
        (
            "orders",
            map(vec![
                ("given", of.orders.given.into()),
                ("passed", of.orders.passed.into()),
                ("unsigned", of.orders.unsigned.into()),
                ("followed", of.orders.followed.into()),
            ]),
        ),
    ])
}
