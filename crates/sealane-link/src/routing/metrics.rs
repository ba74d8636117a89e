//! The counts of the machine that routes, as Prometheus reads them: `docs/METRICS.md`, section *The
//! mesh*.

use sealane_mesh::{MeshCounters, MeshSpan, SendUrgency};

use super::RoutingStatus;
use crate::metrics::MetricsText;

impl RoutingStatus {
    /// Labels name links, parts of the air time and slots: the numbers of their series are bounded
    /// by the limits of a machine.
    pub(crate) fn metrics(&self, page: &mut MetricsText) {
        page.gauge("sealane_mesh_neighbours", "Neighbours that were found.")
            .is(self.neighbours.len() as u64);
        page.gauge("sealane_mesh_destinations", "Machines that are reached.")
            .is(self.routes.len() as u64);
        page.gauge("sealane_mesh_epoch", "The epoch of the mesh's group.").is(self.epoch.0);
        self.by_neighbour(page);
        self.air_time(page);
        self.counted(page);
    }

    fn by_neighbour(&self, page: &mut MetricsText) {
        let one = |of: &super::RoutingNeighbour| (of.slot.number().to_string(), of.link.clone());
        let mut heard =
            page.gauge("sealane_mesh_neighbour_heard", "Hellos of a neighbour that come, of 15.");
        for of in &self.neighbours {
            let (slot, link) = one(of);
            heard.of_all(&[("slot", &slot), ("link", &link)], &of.heard.to_string());
        }
        let name = "sealane_mesh_neighbour_round_trip_seconds";
        let mut trips = page.gauge(name, "How long to a neighbour and back takes.");
        for of in &self.neighbours {
            let (slot, link) = one(of);
            if let Some(trip) = of.round_trip {
                trips.of_all(&[("slot", &slot), ("link", &link)], &seconds(trip));
            }
        }
    }

    fn air_time(&self, page: &mut MetricsText) {
        let name = "sealane_mesh_air_seconds_total";
        let mut air = page.total(name, "Air time spent on a link, by part.");
        for link in &self.spent {
            for (part, spent) in SendUrgency::ALL.into_iter().zip(link.parts) {
                let labels = [("link", link.link.as_str()), ("part", part_name(part))];
                air.of_all(&labels, &seconds(spent));
            }
        }
    }

    fn counted(&self, page: &mut MetricsText) {
        let counters = &self.counters;
        page.total("sealane_mesh_control_bytes_total", "Bytes of the mesh's own messages sent.")
            .is(counters.control_bytes);
        page.total("sealane_mesh_carried_total", "Frames that left by radios, to one neighbour.")
            .is(counters.carried);
        page.total("sealane_mesh_flooded_total", "Frames to everybody that left by radios.")
            .is(counters.flooded);
        page.total("sealane_mesh_suppressed_total", "Frames that others had sent on already.")
            .is(counters.suppressed);
        page.total("sealane_mesh_flaps_total", "Times a machine was reached another way.")
            .is(counters.flaps);
        page.total("sealane_mesh_own_slot_total", "Times another machine had the own keys.")
            .is(self.own_slot_heard);
        let name = "sealane_mesh_dropped_total";
        let mut dropped = page.total(name, "What the machine has dropped, by reason.");
        for (reason, count) in drops(counters) {
            dropped.of("reason", reason, count);
        }
    }
}

/// The name of a part of the air time.
pub fn part_name(part: SendUrgency) -> &'static str {
    match part {
        SendUrgency::Control => "control",
        SendUrgency::Urgent => "urgent",
        SendUrgency::Normal => "normal",
        SendUrgency::Low => "announcements",
    }
}

/// The drops of a machine, by reason.
pub fn drops(counters: &MeshCounters) -> [(&'static str, u64); 14] {
    [
        ("malformed", counters.malformed),
        ("stranger", counters.stranger),
        ("unopened", counters.unopened),
        ("unknown_source", counters.unknown_source),
        ("repeat", counters.repeats),
        ("reflected", counters.reflected),
        ("false_hop", counters.false_hop),
        ("no_route", counters.no_route),
        ("backwards", counters.backwards),
        ("hop_limit", counters.hop_limit),
        ("fragment", counters.fragments),
        ("no_air_time", counters.no_air_time),
        ("no_room", counters.no_room),
        ("bad_echo", counters.bad_echoes),
    ]
}

fn seconds(span: MeshSpan) -> String {
    format!("{}.{:06}", span.0 / 1_000_000, span.0 % 1_000_000)
}
