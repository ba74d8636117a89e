//! The counts of a relay, as Prometheus reads them: `docs/METRICS.md`, section *Relays and ends*.

use std::fmt::Write;

use crate::counters::DropReason;
use crate::status::{RelayNeighbourStatus, RelayStatus};

/// OpenMetrics 1.0, which Prometheus reads as it reads its own format.
pub const METRICS_KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl RelayStatus {
    /// The status as OpenMetrics text. Labels name neighbours, groups and reasons: the numbers of
    /// their series are bounded by those of a configuration.
    pub fn metrics(&self) -> String {
        let mut page = MetricsText::default();
        self.carried(&mut page);
        self.relayed(&mut page);
        self.by_neighbour(&mut page);
        if let Some(routing) = &self.routing {
            routing.metrics(&mut page);
        }
        page.end()
    }

    fn carried(&self, page: &mut MetricsText) {
        let tally = &self.tally;
        page.total("sealane_carry_received_total", "Units that links have received.")
            .is(tally.received.units);
        page.total("sealane_carry_received_bytes_total", "Bytes of units received.")
            .is(tally.received.bytes);
        page.total("sealane_carry_sent_total", "Units that links have taken.").is(tally.sent.units);
        page.total("sealane_carry_sent_bytes_total", "Bytes of units sent.").is(tally.sent.bytes);
        page.gauge("sealane_carry_partial_bytes", "Bytes of frames that are incomplete.")
            .is(self.partial_bytes as u64);
        let Some(capture) = self.capture else { return };
        page.total("sealane_carry_captured_total", "Units captured.").is(capture.units);
        page.total("sealane_carry_capture_missed_total", "Units that the capture has missed.")
            .is(capture.missed);
    }

    fn relayed(&self, page: &mut MetricsText) {
        let tally = &self.tally;
        page.gauge("sealane_relay_up_seconds", "How long it has run.").is(self.up.as_secs());
        page.total("sealane_relay_forwarded_total", "Frames that went on.")
            .is(tally.forwarded.units);
        page.total("sealane_relay_forwarded_bytes_total", "Bytes of frames that went on.")
            .is(tally.forwarded.bytes);
        page.total("sealane_relay_delivered_total", "Frames taken by this machine's member.")
            .is(tally.delivered.units);
        page.total("sealane_relay_delivered_bytes_total", "Bytes of frames taken.")
            .is(tally.delivered.bytes);
        let mut dropped = page.total("sealane_relay_dropped_total", "Units dropped, by reason.");
        for why in DropReason::ALL {
            dropped.of("reason", why.name(), tally.dropped(why));
        }
        page.gauge("sealane_relay_announcements", "Announcements held for those who ask.")
            .is(self.announcements_held as u64);
        page.gauge("sealane_relay_routes", "Routes.").is(self.routes.len() as u64);
        page.total("sealane_relay_reloads_total", "Configurations that took over.")
            .is(self.reloads.taken);
        page.total("sealane_relay_reloads_refused_total", "Configurations that were refused.")
            .is(self.reloads.refused);
        let mut epoch = page.gauge("sealane_relay_epoch", "The epoch of a group's card.");
        for group in &self.groups {
            epoch.of("group", &group.tag.to_string(), group.epoch.0);
        }
        let mut members = page.gauge("sealane_relay_members", "Members on a group's card.");
        for group in &self.groups {
            members.of("group", &group.tag.to_string(), group.members as u64);
        }
    }

    fn by_neighbour(&self, page: &mut MetricsText) {
        type Number = fn(&RelayNeighbourStatus) -> u64;
        let totals: [(&str, &str, Number); 6] = [
            ("sealane_carry_neighbour_received_total", "Units of a neighbour.", |of| {
                of.tally.received.units
            }),
            ("sealane_carry_neighbour_received_bytes_total", "Bytes of them.", |of| {
                of.tally.received.bytes
            }),
            ("sealane_carry_neighbour_sent_total", "Units for a neighbour.", |of| {
                of.tally.sent.units
            }),
            ("sealane_carry_neighbour_sent_bytes_total", "Bytes of them.", |of| {
                of.tally.sent.bytes
            }),
            ("sealane_carry_neighbour_unsent_total", "Units that its link did not take.", |of| {
                of.tally.unsent
            }),
            ("sealane_relay_neighbour_dropped_total", "Units of it that were dropped.", |of| {
                of.tally.dropped
            }),
        ];
        for (name, help, number) in totals {
            let mut total = page.total(name, help);
            self.neighbours.iter().for_each(|of| total.of("neighbour", &of.name, number(of)));
        }
        let name = "sealane_carry_neighbour_silent_seconds";
        let mut silent = page.gauge(name, "How long ago a neighbour was heard.");
        for of in &self.neighbours {
            if let Some(heard) = of.heard {
                silent.of("neighbour", &of.name, heard.as_secs());
            }
        }
    }
}

/// The text as far as it is written.
#[derive(Debug, Default)]
pub(crate) struct MetricsText {
    text: String,
}

/// One metric, behind its description.
#[derive(Debug)]
pub(crate) struct MetricLines<'p> {
    text: &'p mut String,
    name: &'static str,
}

impl MetricsText {
    pub(crate) fn total(&mut self, name: &'static str, help: &str) -> MetricLines<'_> {
        // A counter's description has its name without the ending of its values.
        self.metric(name, name.strip_suffix("_total").unwrap_or(name), "counter", help)
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) -> MetricLines<'_> {
        self.metric(name, name, "gauge", help)
    }

    fn metric(
        &mut self,
        name: &'static str,
        family: &str,
        kind: &str,
        help: &str,
    ) -> MetricLines<'_> {
        let _ = write!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
        MetricLines { text: &mut self.text, name }
    }

    fn end(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

impl MetricLines<'_> {
    pub(crate) fn is(&mut self, value: u64) {
        let _ = writeln!(self.text, "{} {value}", self.name);
    }

    pub(crate) fn of(&mut self, label: &str, value: &str, number: u64) {
        self.of_all(&[(label, value)], &number.to_string());
    }

    /// A value with several labels.
    pub(crate) fn of_all(&mut self, labels: &[(&str, &str)], number: &str) {
        let label = |(label, value): &(&str, &str)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{label}=\"{value}\"")
        };
        let labels: Vec<String> = labels.iter().map(label).collect();
        let _ = writeln!(self.text, "{}{{{}}} {number}", self.name, labels.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_open_metrics() {
        let mut page = MetricsText::default();
        page.total("a_total", "Things.").is(3);
        page.gauge("b", "Others.").of("of", "x\"\\\n", 4);
        let expected = "# HELP a Things.\n# TYPE a counter\na_total 3\n\
             # HELP b Others.\n# TYPE b gauge\nb{of=\"x\\\"\\\\\\n\"} 4\n# EOF\n";
        assert_eq!(page.end(), expected);
    }
}
