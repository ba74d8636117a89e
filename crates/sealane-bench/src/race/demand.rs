//! The demands on the rows of a heat, and their results.

use std::fmt;

use serde::Serialize;
use serde_json::json;

use super::{RaceRow, RaceSide};

/// A demand on one side of a heat.
pub(super) struct DemandRule {
    of: RaceSide,
    /// Whom it is held against; none: it stands alone.
    beside: Option<RaceSide>,
    measure: DemandMeasure,
    /// The least or the most that is demanded; none: it is only shown.
    bound: Option<f64>,
}

impl DemandRule {
    /// So many times the rate of each of `theirs`.
    pub(super) const fn rate(of: RaceSide, least: Option<f64>, theirs: RaceSide) -> Self {
        Self { of, beside: Some(theirs), measure: DemandMeasure::Rate, bound: least }
    }

    /// The same for each second of the server's CPU.
    pub(super) const fn rate_per_core(of: RaceSide, least: f64, theirs: RaceSide) -> Self {
        Self { of, beside: Some(theirs), measure: DemandMeasure::RatePerCore, bound: Some(least) }
    }

    /// A median latency of at most so many microseconds above that of each of `theirs`.
    pub(super) const fn p50_above(of: RaceSide, most_us: f64, theirs: RaceSide) -> Self {
        Self { of, beside: Some(theirs), measure: DemandMeasure::P50AboveUs, bound: Some(most_us) }
    }

    /// At most so many microseconds of the server's CPU for each message.
    pub(super) const fn cpu(of: RaceSide, most_us: f64) -> Self {
        Self { of, beside: None, measure: DemandMeasure::CpuUs, bound: Some(most_us) }
    }
}

/// The quantity that a demand is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum DemandMeasure {
    /// Our rate divided by theirs.
    Rate,
    /// The same of what is done in a second of the server's CPU.
    RatePerCore,
    /// Our median latency less theirs, in microseconds.
    P50AboveUs,
    /// The server's CPU for each message, in microseconds.
    CpuUs,
}

/// A demand on a row of a heat, and its result.
#[derive(Debug, Clone)]
pub(crate) struct RaceDemand {
    ours: String,
    /// The row that it stands beside; none: it stands alone.
    theirs: Option<String>,
    measure: DemandMeasure,
    value: f64,
    /// The least or the most that was demanded; none: nothing was.
    bound: Option<f64>,
}

impl RaceDemand {
    fn is_met(&self) -> bool {
        self.bound.is_none_or(|bound| match self.measure {
            DemandMeasure::Rate | DemandMeasure::RatePerCore => self.value >= bound,
            DemandMeasure::P50AboveUs | DemandMeasure::CpuUs => self.value <= bound,
        })
    }

    /// The demand for programs.
    pub(crate) fn record(&self) -> impl Serialize {
        json!({
            "ours": self.ours, "theirs": self.theirs, "measure": self.measure,
            "value": self.value, "demanded": self.bound,
            "met": self.bound.map(|_| self.is_met()),
        })
    }
}

impl fmt::Display for RaceDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RaceDemand { ours, value, .. } = self;
        let theirs = self.theirs.as_deref().unwrap_or_default();
        match self.measure {
            DemandMeasure::Rate => write!(f, "{ours} is {value:.2} x {theirs}")?,
            DemandMeasure::RatePerCore => write!(f, "{ours} per core is {value:.2} x {theirs}")?,
            DemandMeasure::P50AboveUs => {
                write!(f, "{ours} has a p50 {value:.0} us above {theirs}")?
            }
            DemandMeasure::CpuUs => write!(f, "{ours} takes {value:.1} us of CPU a message")?,
        }
        let Some(bound) = self.bound else { return Ok(()) };
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        match self.measure {
            DemandMeasure::Rate | DemandMeasure::RatePerCore => {
                write!(f, "; demanded {bound} x: {verdict}")
            }
            _ => write!(f, "; demanded at most {bound} us: {verdict}"),
        }
    }
}

/// Holds each row that something is asked of against each that it is to be compared with. A row
/// without a figure is compared with none.
pub(super) fn of(asked: &[DemandRule], rows: &[(RaceSide, RaceRow)]) -> Vec<RaceDemand> {
    let on = |side: RaceSide| {
        rows.iter().filter(move |(of, row)| *of == side && row.per_second > 0.0).map(|(_, row)| row)
    };
    let mut demands = Vec::new();
    for ask in asked {
        for ours in on(ask.of) {
            match ask.beside {
                Some(theirs) => demands.extend(
                    on(theirs).filter_map(|theirs| RaceDemand::of(ask, ours, Some(theirs))),
                ),
                None => demands.extend(RaceDemand::of(ask, ours, None)),
            }
        }
    }
    demands
}

impl RaceDemand {
    /// None where a row lacks what is compared.
    fn of(ask: &DemandRule, ours: &RaceRow, theirs: Option<&RaceRow>) -> Option<Self> {
        let beside = theirs.unwrap_or(ours);
        let value = match ask.measure {
            DemandMeasure::Rate => ours.per_second / beside.per_second,
            DemandMeasure::RatePerCore => beside.cpu_s_per_million / ours.cpu_s_per_million,
            DemandMeasure::P50AboveUs => ours.p50_us? - beside.p50_us?,
            DemandMeasure::CpuUs => ours.cpu_s_per_million,
        };
        let name = |row: &RaceRow| format!("{} ({})", row.contender, row.durability);
        let (ours, theirs) = (name(ours), theirs.map(name));
        Some(RaceDemand { ours, theirs, measure: ask.measure, value, bound: ask.bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(side: RaceSide, contender: &str, per_second: f64) -> (RaceSide, RaceRow) {
        (side, RaceRow { contender: contender.into(), per_second, ..RaceRow::default() })
    }

    #[test]
    fn a_demand_is_held_against_each_of_the_peers() {
        let rows = [
            row(RaceSide::Http, "ours", 100.0),
            row(RaceSide::PeerSynced, "slow", 5.0),
            row(RaceSide::PeerSynced, "fast", 20.0),
            row(RaceSide::PeerUnsynced, "lazy", 80.0),
            row(RaceSide::PeerAcked, "another question", 80.0),
        ];
        let asked = [
            DemandRule::rate(RaceSide::Http, Some(1.0), RaceSide::PeerUnsynced),
            DemandRule::rate(RaceSide::Http, Some(10.0), RaceSide::PeerSynced),
        ];
        let [lazy, slow, fast] = <[RaceDemand; 3]>::try_from(of(&asked, &rows)).unwrap();
        assert!(lazy.is_met() && lazy.to_string().contains("1.25 x lazy"), "{lazy}");
        assert!(slow.is_met() && slow.to_string().contains("20.00 x slow"), "{slow}");
        assert!(!fast.is_met() && fast.to_string().contains("5.00 x fast"), "{fast}");
        assert!(fast.to_string().ends_with("MISSED"), "{fast}");
    }

    #[test]
    fn latency_and_cpu_are_held_against_what_they_may_be_at_most() {
        let with = |side, p50_us, cpu_s_per_million| {
            let (side, row) = row(side, "row", 1.0);
            (side, RaceRow { p50_us, cpu_s_per_million, ..row })
        };
        let rows = [
            with(RaceSide::Http, Some(300.0), 50.0),
            with(RaceSide::HttpBatches, None, 10.0),
            with(RaceSide::File, Some(200.0), 0.0),
        ];
        let asked = [
            DemandRule::p50_above(RaceSide::Http, 120.0, RaceSide::File),
            DemandRule::p50_above(RaceSide::Http, 99.0, RaceSide::File),
            DemandRule::p50_above(RaceSide::HttpBatches, 120.0, RaceSide::File),
            DemandRule::cpu(RaceSide::Http, 40.0),
            DemandRule::rate_per_core(RaceSide::Http, 0.8, RaceSide::HttpBatches),
        ];
        let verdicts: Vec<(DemandMeasure, f64, bool)> =
            of(&asked, &rows).iter().map(|d| (d.measure, d.value, d.is_met())).collect();
        let expected = [
            (DemandMeasure::P50AboveUs, 100.0, true),
            (DemandMeasure::P50AboveUs, 100.0, false),
            (DemandMeasure::CpuUs, 50.0, false),
            (DemandMeasure::RatePerCore, 0.2, false),
        ];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn nothing_is_said_of_a_contender_that_failed() {
        let rows =
            [row(RaceSide::OursAcked, "ours", 100.0), row(RaceSide::PeerAcked, "theirs", 0.0)];
        assert!(
            of(&[DemandRule::rate(RaceSide::OursAcked, Some(3.0), RaceSide::PeerAcked)], &rows)
                .is_empty()
        );
    }
}
