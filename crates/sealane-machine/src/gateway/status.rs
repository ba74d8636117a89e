//! The status of a gateway that runs.

use std::fmt::Write;

use crate::gateway::down::DownStatus;
use crate::gateway::intake::HeardStatus;
use crate::gateway::orders::OrdersStatus;
use crate::gateway::queue::QueueStatus;
use crate::gateway::upload::{HeldStream, HubState, HubStatus};

/// A gateway at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStatus {
    /// The hub's address.
    pub address: String,
    /// How the way to the hub is.
    pub hub: HubStatus,
    /// The frames that wait for the hub.
    pub queue: QueueStatus,
    /// Why the queue's file cannot be read or written at present.
    pub queue_fault: Option<String>,
    /// The frames that were heard in the mesh.
    pub heard: HeardStatus,
    /// Documents that came when later ones of their origin had gone on.
    pub late: u64,
    /// Frames that this gateway has stored in the hub.
    pub stored: u64,
    /// Frames that the hub had already: another gateway was first, or an answer was lost.
    pub replayed: u64,
    /// Streams that the hub takes no frames for at present.
    pub held: Vec<HeldStream>,
    /// The messages that came from the hub.
    pub down: DownStatus,
    /// The messages that came of groups' orders.
    pub orders: OrdersStatus,
}

impl GatewayStatus {
    /// The counts of heard frames, each with its name in metrics and status.
    pub fn heard_by_name(&self) -> [(&'static str, u64); 6] {
        let HeardStatus { taken, passed, repeated, malformed, busy, unkept } = self.heard;
        [
            ("taken", taken),
            ("passed", passed),
            ("repeated", repeated),
            ("malformed", malformed),
            ("busy", busy),
            ("unkept", unkept),
        ]
    }

    /// The status as OpenMetrics text, without the mark of its end.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        family(&mut text, "sealane_gateway_heard_total", "Frames heard, by what became of them.");
        for (outcome, frames) in self.heard_by_name() {
            let _ = writeln!(text, "sealane_gateway_heard_total{{outcome=\"{outcome}\"}} {frames}");
        }
        let queue = &self.queue;
        for (name, help, value) in [
            ("sealane_gateway_queue_frames", "Frames that wait for the hub.", queue.frames),
            ("sealane_gateway_queue_bytes", "What they count.", queue.bytes),
            ("sealane_gateway_queue_bound_bytes", "What they may count.", queue.bound_bytes),
            (
                "sealane_gateway_queue_fault",
                "Whether the queue's file fails.",
                u64::from(self.queue_fault.is_some()),
            ),
            (
                "sealane_gateway_held_streams",
                "Streams that the hub takes no frames for.",
                self.held.len() as u64,
            ),
            (
                "sealane_gateway_followed_streams",
                "Streams of the hub that are read.",
                self.down.followed + self.orders.followed,
            ),
        ] {
            family(&mut text, name, help);
            let _ = writeln!(text, "{name} {value}");
        }
        family(&mut text, "sealane_gateway_lost_total", "Frames dropped since the queue was made.");
        for lost in &queue.lost {
            let (why, urgency, frames) = (lost.why.name(), lost.urgency.name(), lost.frames);
            let labels = format!("reason=\"{why}\",urgency=\"{urgency}\"");
            let _ = writeln!(text, "sealane_gateway_lost_total{{{labels}}} {frames}");
        }
        self.hub_metrics(&mut text);
        text
    }

    fn hub_metrics(&self, text: &mut String) {
        for (name, help, value) in [
            ("sealane_gateway_late_total", "Documents behind later ones of theirs.", self.late),
            ("sealane_gateway_stored_total", "Frames stored in the hub.", self.stored),
            ("sealane_gateway_replayed_total", "Frames that the hub had already.", self.replayed),
            ("sealane_gateway_down_total", "Frames of the hub put into the mesh.", self.down.put),
            ("sealane_gateway_down_known_total", "Those known here already.", self.down.known),
            (
                "sealane_gateway_down_refused_total",
                "Messages of the hub that are no frames of their stream.",
                self.down.refused,
            ),
            ("sealane_gateway_orders_total", "Orders put into the mesh.", self.orders.given),
            (
                "sealane_gateway_orders_unsigned_total",
                "Messages of control streams that their authority has not signed.",
                self.orders.unsigned,
            ),
        ] {
            family(text, name, help);
            let _ = writeln!(text, "{name} {value}");
        }
        family(text, "sealane_gateway_hub", "How the way to the hub is: 1 for the state it has.");
        for state in HubState::ALL {
            let is = u64::from(state == self.hub.state);
            let _ = writeln!(text, "sealane_gateway_hub{{state=\"{}\"}} {is}", state.name());
        }
    }
}

/// Describes one metric. A counter's description has its name without the ending of its values.
fn family(text: &mut String, name: &str, help: &str) {
    let (family, kind) = match name.strip_suffix("_total") {
        Some(family) => (family, "counter"),
        None => (name, "gauge"),
    };
    let _ = write!(text, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
}
