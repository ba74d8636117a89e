//! The status of a machine that keeps documents, while it runs.

use std::fmt::Write;

use crate::agent::AgentCounters;
use crate::limits::MAX_CONFLICTING_TOLD;
use crate::{DocumentAgent, PacerCounters, RegisterName, StoreCounters};

/// The documents of a machine at one time. What is counted begins at nothing when it starts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentsStatus {
    /// Frames that are kept.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The counts of the exchange with neighbours.
    pub exchange: AgentCounters,
    /// The counts of the frames that the store took and let go.
    pub store: StoreCounters,
    /// The own documents. They pass no pacer on a machine without keys.
    pub own: PacerCounters,
    /// Registers with conflicts, at most [`MAX_CONFLICTING_TOLD`] of them.
    pub conflicting: Vec<RegisterConflict>,
}

/// A register in which different frames had one stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterConflict {
    /// Which one.
    pub register: RegisterName,
    /// How many frames had the stamp of another one.
    pub frames: u64,
}

impl DocumentsStatus {
    /// Takes over what an agent and the pacer of its own documents have counted until now.
    pub fn update(&mut self, agent: &DocumentAgent, own: PacerCounters) {
        let store = agent.store();
        let counters = store.counters();
        if counters.conflicts != self.store.conflicts || counters.beside != self.store.beside {
            self.conflicting = conflicting(agent).take(MAX_CONFLICTING_TOLD).collect();
        }
        (self.frames, self.bytes) = (store.len() as u64, store.total_bytes());
        (self.exchange, self.store, self.own) = (agent.counters(), counters, own);
    }

    /// Why frames and messages were not taken, each with its name in metrics and status.
    pub fn refused_by_name(&self) -> [(&'static str, u64); 16] {
        let DocumentsStatus { exchange, store, .. } = self;
        [
            ("malformed", exchange.malformed),
            ("unproven", exchange.unproven),
            ("strange_group", exchange.strange_group),
            ("unknown_epoch", exchange.unknown_epoch),
            ("no_member", exchange.no_member),
            ("stale_epoch", exchange.stale_epoch),
            ("leaving", exchange.leaving),
            ("below_floor", exchange.below_floor),
            ("forged", exchange.forged),
            ("no_document", exchange.no_document),
            ("malformed_body", exchange.malformed_body),
            ("too_far_ahead", exchange.too_far_ahead),
            ("no_room", exchange.no_room),
            ("older", store.older),
            ("unfit", store.refused),
            ("full", store.full),
        ]
    }

    /// The counts of frames, each with its name in the status.
    pub fn counts_by_name(&self) -> [(&'static str, u64); 9] {
        let DocumentsStatus { exchange, store, .. } = self;
        [
            ("taken", exchange.taken),
            ("repeats", exchange.repeats),
            ("opened", exchange.opened),
            ("given", exchange.given),
            ("messages", exchange.messages),
            ("ahead", exchange.ahead),
            ("beside", store.beside),
            ("conflicts", store.conflicts),
            ("evicted", store.evicted),
        ]
    }

    /// The counts of the own documents, each with its name in metrics and status.
    pub fn own_by_name(&self) -> [(&'static str, u64); 5] {
        let PacerCounters { written, left, overtaken, dropped, failed } = self.own;
        [
            ("written", written),
            ("left", left),
            ("overtaken", overtaken),
            ("dropped", dropped),
            ("failed", failed),
        ]
    }

    /// The status as OpenMetrics text, without the mark of its end.
    pub fn metrics(&self) -> String {
        let DocumentsStatus { exchange, store, .. } = self;
        let mut text = String::new();
        for (name, help, value) in [
            ("sealane_document_frames", "Frames that are kept.", self.frames),
            ("sealane_document_bytes", "Bytes of them.", self.bytes),
            ("sealane_document_taken_total", "Frames of neighbours taken.", exchange.taken),
            ("sealane_document_repeats_total", "Frames that came again.", exchange.repeats),
            ("sealane_document_opened_total", "Frames whose seal was tried.", exchange.opened),
            ("sealane_document_given_total", "Frames handed on.", exchange.given),
            ("sealane_document_messages_total", "Messages for neighbours.", exchange.messages),
            ("sealane_document_ahead_total", "Frames ahead in the own name.", exchange.ahead),
            ("sealane_document_beside_total", "Frames kept beside others.", store.beside),
            ("sealane_document_conflicts_total", "Frames with another's stamp.", store.conflicts),
            ("sealane_document_evicted_total", "Frames that left for room.", store.evicted),
        ] {
            family(&mut text, name, help);
            let _ = writeln!(text, "{name} {value}");
        }
        let name = "sealane_document_refused_total";
        family(&mut text, name, "What was not taken, by reason.");
        for (reason, count) in self.refused_by_name() {
            let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {count}");
        }
        let name = "sealane_document_own_total";
        family(&mut text, name, "Own documents, by what became of them.");
        for (outcome, count) in self.own_by_name() {
            let _ = writeln!(text, "{name}{{outcome=\"{outcome}\"}} {count}");
        }
        text
    }
}

fn conflicting(agent: &DocumentAgent) -> impl Iterator<Item = RegisterConflict> {
    let store = agent.store();
    store.groups().flat_map(move |group| {
        let registers = store.registers(group).into_iter();
        registers.flat_map(move |registers| {
            registers.conflicting().map(move |(origin, data_type, frames)| RegisterConflict {
                register: RegisterName { group, origin, data_type },
                frames,
            })
        })
    })
}

/// Describes one metric. A counter's description has its name without the ending of its values.
fn family(text: &mut String, name: &str, help: &str) {
    let (family, kind) = match name.strip_suffix("_total") {
        Some(family) => (family, "counter"),
        None => (name, "gauge"),
    };
    let _ = write!(text, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
}
