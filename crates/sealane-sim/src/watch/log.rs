//! The log: a line of JSON for all that happens, in the order in which it does.

use std::fmt::Write as _;
use std::io::Write;

use super::{FinishedTransmission, RunEvent};
use crate::node::{SimMeshFinding, SimOffer};
use crate::place::SimPlace;
use crate::scenario::Scenario;
use crate::{SimError, SimSummary, SimTime};

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

    pub(super) fn tells(
        &mut self,
        now: SimTime,
        node: u32,
        event: RunEvent<'_>,
    ) -> Result<(), SimError> {
        let kind = match event {
            RunEvent::Drop(_) => "drop",
            RunEvent::Offer(_) => "offer",
            RunEvent::Deliver { .. } => "deliver",
            RunEvent::Machine(what, _) => what.name(),
            RunEvent::Loop { .. } => "loop",
            RunEvent::Mesh(_) => "mesh",
        };
        self.start(now, kind, node);
        let line = &mut self.line;
        // Writing to a string does not fail.
        let _ = match event {
            RunEvent::Drop(loss) => write!(line, ",\"why\":\"{}\"", loss.name()),
            RunEvent::Offer(SimOffer { message, bytes, .. }) => {
                write!(line, ",\"message\":{message},\"bytes\":{bytes}")
            }
            RunEvent::Deliver { message, took } => {
                write!(line, ",\"message\":{message},\"took\":{}", took.0)
            }
            RunEvent::Machine(_, SimPlace { x, y }) => write!(line, ",\"x\":{x:.2},\"y\":{y:.2}"),
            RunEvent::Loop { to, length } => write!(line, ",\"to\":{to},\"length\":{length}"),
            RunEvent::Mesh(SimMeshFinding { what, .. }) => write!(line, ",\"what\":\"{what}\""),
        };
        let others = match event {
            RunEvent::Offer(offer) => [("to", offer.to), ("", None)],
            RunEvent::Mesh(SimMeshFinding { of, via, .. }) => [("of", of), ("via", via)],
            _ => [("", None); 2],
        };
        for (key, node) in others {
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
