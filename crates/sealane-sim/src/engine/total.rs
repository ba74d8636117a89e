//! The figures of a whole run.

use super::SimRun;
use super::ledger::SimLedger;
use crate::{SimFrameCounts, SimSpan, SimSummary};

impl SimRun<'_> {
    pub(super) fn summary(&self) -> SimSummary {
        let SimLedger { tally, latencies, .. } = &self.ledger;
        let ports = self.fleet.bodies.iter().flat_map(|body| &body.ports);
        let mut frames = SimFrameCounts::default();
        self.fleet.programs.iter().flatten().for_each(|program| frames += program.frames());
        let whole = self.scenario.duration.0.max(1);
        let ppm = |span: SimSpan| span.0.saturating_mul(1_000_000) / whole;
        SimSummary {
            seconds: self.scenario.duration.as_s(),
            machines: self.fleet.bodies.len() as u64,
            events: self.clock.done,
            messages: tally.messages,
            expected: tally.expected,
            delivered: tally.delivered,
            again: tally.again,
            astray: tally.astray,
            half_within: latencies.within(0.5),
            most_within: latencies.within(0.95),
            all_within: latencies.most(),
            sent_ppm_most: ports.clone().map(|port| ppm(port.sent)).max().unwrap_or(0),
            heard_ppm_most: ports.map(|port| ppm(port.heard)).max().unwrap_or(0),
            held: self.ether.slots.len() as u64,
            frames,
            counts: self.watch.counts(),
        }
    }
}
