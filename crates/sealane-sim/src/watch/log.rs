//! The log: a line of JSON for all that happens, in the order in which it does.

use std::fmt::Write as _;
use std::io::Write;

use super::{FinishedTransmission, LossReason, SimMachineEvent};
use crate::node::{SimMeshFinding, SimOffer};
use crate::place::SimPlace;
use crate::scenario::Scenario;
use crate::{SimError, SimSpan, SimSummary, SimTime};

/// The version of the lines.
pub(crate) const VERSION: u64 = 1;

/// Writes lines. Names have no letter that JSON escapes, which reading a scenario makes sure of.
pub(super) struct RunLog<'w> {
    out: &'w mut dyn Write,
    line: String,
}

impl<'w> RunLog<'w> {
    pub(super) fn new(out: &'w mut dyn Write) -> Self {
        Self { out, line: String::new() }
    }

    pub(super) fn begin(&mut self, scenario: &Scenario, seed: u64) -> Result<(), SimError> {
        let (name, lasts) = (&scenario.name, scenario.duration.0);
        let media: Vec<_> = scenario.media.iter().map(|medium| medium.name.as_str()).collect();
        let nodes: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
        let _ = write!(
            self.line,
            "{{\"v\":{VERSION},\"at\":0,\"kind\":\"run\",\"scenario\":\"{name}\",\"seed\":{seed},\
             \"lasts\":{lasts},\"media\":{},\"nodes\":{}",
            list(&media),
            list(&nodes)
        );
        self.end()
    }

    pub(super) fn finish(mut self, summary: &SimSummary) -> Result<(), SimError> {
        self.line += &summary.to_json();
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).map_err(SimError::Output)?;
        self.out.flush().map_err(SimError::Output)
    }

    pub(super) fn sends(
        &mut self,
        now: SimTime,
        sent: &FinishedTransmission,
        bytes: usize,
    ) -> Result<(), SimError> {
        self.start(now, "send", sent.from);
        let (medium, air) = (sent.medium, sent.air.0);
        let _ =
            write!(self.line, ",\"medium\":{medium},\"bytes\":{bytes},\"air\":{air},\"heard\":[");
        for (at, node) in sent.heard.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(self.line, "{comma}{node}");
        }
        self.line.push(']');
        for (at, (loss, count)) in sent.losses().enumerate() {
            let before = if at > 0 { "," } else { ",\"lost\":{" };
            let _ = write!(self.line, "{before}\"{}\":{count}", loss.name());
        }
        if sent.losses().next().is_some() {
            self.line.push('}');
        }
        self.end()
    }

    pub(super) fn loses(
        &mut self,
        now: SimTime,
        node: u32,
        loss: LossReason,
    ) -> Result<(), SimError> {
        self.start(now, "drop", node);
        let _ = write!(self.line, ",\"why\":\"{}\"", loss.name());
        self.end()
    }

    pub(super) fn offers(
        &mut self,
        now: SimTime,
        node: u32,
        offer: &SimOffer,
    ) -> Result<(), SimError> {
        self.start(now, "offer", node);
        let SimOffer { message, to, bytes, .. } = offer;
        let _ = write!(self.line, ",\"message\":{message},\"bytes\":{bytes}");
        if let Some(to) = to {
            let _ = write!(self.line, ",\"to\":{to}");
        }
        self.end()
    }

    pub(super) fn delivers(
        &mut self,
        now: SimTime,
        node: u32,
        message: u64,
        took: SimSpan,
    ) -> Result<(), SimError> {
        self.start(now, "deliver", node);
        let _ = write!(self.line, ",\"message\":{message},\"took\":{}", took.0);
        self.end()
    }

    pub(super) fn happens(
        &mut self,
        now: SimTime,
        what: SimMachineEvent,
        node: u32,
        place: SimPlace,
    ) -> Result<(), SimError> {
        self.start(now, what.name(), node);
        let SimPlace { x, y } = place;
        let _ = write!(self.line, ",\"x\":{x:.2},\"y\":{y:.2}");
        self.end()
    }

    pub(super) fn loops(
        &mut self,
        now: SimTime,
        node: u32,
        to: u32,
        length: usize,
    ) -> Result<(), SimError> {
        self.start(now, "loop", node);
        let _ = write!(self.line, ",\"to\":{to},\"length\":{length}");
        self.end()
    }

    pub(super) fn tells(
        &mut self,
        now: SimTime,
        node: u32,
        what: SimMeshFinding,
    ) -> Result<(), SimError> {
        self.start(now, "mesh", node);
        let SimMeshFinding { what, of, via } = what;
        let _ = write!(self.line, ",\"what\":\"{what}\"");
        for (key, node) in [("of", of), ("via", via)] {
            if let Some(node) = node {
                let _ = write!(self.line, ",\"{key}\":{node}");
            }
        }
        self.end()
    }

    pub(super) fn notes(&mut self, now: SimTime, what: &str) -> Result<(), SimError> {
        let at = now.0;
        let _ = write!(
            self.line,
            "{{\"v\":{VERSION},\"at\":{at},\"kind\":\"note\",\"what\":\"{what}\""
        );
        self.end()
    }

    fn start(&mut self, now: SimTime, kind: &str, node: u32) {
        let at = now.0;
        let _ =
            write!(self.line, "{{\"v\":{VERSION},\"at\":{at},\"kind\":\"{kind}\",\"node\":{node}");
    }

    fn end(&mut self) -> Result<(), SimError> {
        self.line.push_str("}\n");
        self.out.write_all(self.line.as_bytes()).map_err(SimError::Output)?;
        self.line.clear();
        Ok(())
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "[]".to_owned() } else { format!("[\"{}\"]", names.join("\",\"")) }
}
