//! The demands on the rows of a heat, and their results.

use std::fmt;

use super::{Row, Side};

/// A demand on one side of a heat.
pub(super) struct Ask {
    of: Side,
    /// Whom it is held against; none: it stands alone.
    beside: Option<Side>,
    measure: Measure,
    /// The least or the most that is demanded; none: it is only shown.
    bound: Option<f64>,
}

impl Ask {
    /// So many times the rate of each of `theirs`.
    pub(super) const fn rate(of: Side, least: Option<f64>, theirs: Side) -> Self {
        Self { of, beside: Some(theirs), measure: Measure::Rate, bound: least }
    }

    /// The same for each second of the server's CPU.
    pub(super) const fn rate_per_core(of: Side, least: f64, theirs: Side) -> Self {
        Self { of, beside: Some(theirs), measure: Measure::RatePerCore, bound: Some(least) }
    }

    /// A median latency of at most so many microseconds above that of each of `theirs`.
    pub(super) const fn p50_above(of: Side, most_us: f64, theirs: Side) -> Self {
        Self { of, beside: Some(theirs), measure: Measure::P50AboveUs, bound: Some(most_us) }
    }

    /// At most so many microseconds of the server's CPU for each message.
    pub(super) const fn cpu(of: Side, most_us: f64) -> Self {
        Self { of, beside: None, measure: Measure::CpuUs, bound: Some(most_us) }
    }
}

/// The quantity that a demand is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Our rate divided by theirs.
    Rate,
    /// The same of what is done in a second of the server's CPU.
    RatePerCore,
    /// Our median latency less theirs, in microseconds.
    P50AboveUs,
    /// The server's CPU for each message, in microseconds.
    CpuUs,
}

impl Measure {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Rate => "rate",
            Measure::RatePerCore => "ratePerCore",
            Measure::P50AboveUs => "p50AboveUs",
            Measure::CpuUs => "cpuUs",
        }
    }
}

/// A demand on a row of a heat, and its result.
#[derive(Debug, Clone)]
pub struct Demand {
    /// Our row.
    pub ours: String,
    /// The row that it stands beside; none: it stands alone.
    pub theirs: Option<String>,
    /// The quantity that is compared.
    pub measure: Measure,
    /// The measured value.
    pub value: f64,
    /// The least or the most that was demanded; none: nothing was.
    pub bound: Option<f64>,
}

impl Demand {
    /// Whether it was met.
    pub fn is_met(&self) -> bool {
        self.bound.is_none_or(|bound| match self.measure {
            Measure::Rate | Measure::RatePerCore => self.value >= bound,
            Measure::P50AboveUs | Measure::CpuUs => self.value <= bound,
        })
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Demand { ours, value, .. } = self;
        let theirs = self.theirs.as_deref().unwrap_or_default();
        match self.measure {
            Measure::Rate => write!(f, "{ours} is {value:.2} x {theirs}")?,
            Measure::RatePerCore => write!(f, "{ours} per core is {value:.2} x {theirs}")?,
            Measure::P50AboveUs => write!(f, "{ours} has a p50 {value:.0} us above {theirs}")?,
            Measure::CpuUs => write!(f, "{ours} takes {value:.1} us of CPU a message")?,
        }
        let Some(bound) = self.bound else { return Ok(()) };
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        match self.measure {
            Measure::Rate | Measure::RatePerCore => write!(f, "; demanded {bound} x: {verdict}"),
            _ => write!(f, "; demanded at most {bound} us: {verdict}"),
        }
    }
}

/// Holds each row that something is asked of against each that it is to be compared with. A row
/// without a figure is compared with none.
pub(super) fn of(asked: &[Ask], rows: &[(Side, Row)]) -> Vec<Demand> {
    let on = |side: Side| {
        rows.iter().filter(move |(of, row)| *of == side && row.per_second > 0.0).map(|(_, row)| row)
    };
    let mut demands = Vec::new();
    for ask in asked {
        for ours in on(ask.of) {
            match ask.beside {
                Some(theirs) => demands
                    .extend(on(theirs).filter_map(|theirs| Demand::of(ask, ours, Some(theirs)))),
                None => demands.extend(Demand::of(ask, ours, None)),
            }
        }
    }
    demands
}

impl Demand {
    /// None where a row lacks what is compared.
    fn of(ask: &Ask, ours: &Row, theirs: Option<&Row>) -> Option<Self> {
        let beside = theirs.unwrap_or(ours);
        let value = match ask.measure {
            Measure::Rate => ours.per_second / beside.per_second,
            Measure::RatePerCore => beside.cpu_s_per_million / ours.cpu_s_per_million,
            Measure::P50AboveUs => ours.p50_us? - beside.p50_us?,
            Measure::CpuUs => ours.cpu_s_per_million,
        };
        let name = |row: &Row| format!("{} ({})", row.contender, row.durability);
        let (ours, theirs) = (name(ours), theirs.map(name));
        Some(Demand { ours, theirs, measure: ask.measure, value, bound: ask.bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(side: Side, contender: &str, per_second: f64) -> (Side, Row) {
        (side, Row { contender: contender.into(), per_second, ..Row::default() })
    }

    #[test]
    fn a_demand_is_held_against_each_of_the_peers() {
        let rows = [
            row(Side::Http, "ours", 100.0),
            row(Side::PeerSynced, "slow", 5.0),
            row(Side::PeerSynced, "fast", 20.0),
            row(Side::PeerUnsynced, "lazy", 80.0),
            row(Side::PeerAcked, "another question", 80.0),
        ];
        let asked = [
            Ask::rate(Side::Http, Some(1.0), Side::PeerUnsynced),
            Ask::rate(Side::Http, Some(10.0), Side::PeerSynced),
        ];
        let [lazy, slow, fast] = <[Demand; 3]>::try_from(of(&asked, &rows)).unwrap();
        assert!(lazy.is_met() && lazy.to_string().contains("1.25 x lazy"), "{lazy}");
        assert!(slow.is_met() && slow.to_string().contains("20.00 x slow"), "{slow}");
        assert!(!fast.is_met() && fast.to_string().contains("5.00 x fast"), "{fast}");
        assert!(fast.to_string().ends_with("MISSED"), "{fast}");
    }

    #[test]
    fn latency_and_cpu_are_held_against_what_they_may_be_at_most() {
        let with = |side, p50_us, cpu_s_per_million| {
            let (side, row) = row(side, "row", 1.0);
            (side, Row { p50_us, cpu_s_per_million, ..row })
        };
        let rows = [
            with(Side::Http, Some(300.0), 50.0),
            with(Side::HttpBatches, None, 10.0),
            with(Side::File, Some(200.0), 0.0),
        ];
        let asked = [
            Ask::p50_above(Side::Http, 120.0, Side::File),
            Ask::p50_above(Side::Http, 99.0, Side::File),
            Ask::p50_above(Side::HttpBatches, 120.0, Side::File),
            Ask::cpu(Side::Http, 40.0),
            Ask::rate_per_core(Side::Http, 0.8, Side::HttpBatches),
        ];
        let verdicts: Vec<(Measure, f64, bool)> =
            of(&asked, &rows).iter().map(|d| (d.measure, d.value, d.is_met())).collect();
        let expected = [
            (Measure::P50AboveUs, 100.0, true),
            (Measure::P50AboveUs, 100.0, false),
            (Measure::CpuUs, 50.0, false),
            (Measure::RatePerCore, 0.2, false),
        ];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn nothing_is_said_of_a_contender_that_failed() {
        let rows = [row(Side::OursAcked, "ours", 100.0), row(Side::PeerAcked, "theirs", 0.0)];
        assert!(of(&[Ask::rate(Side::OursAcked, Some(3.0), Side::PeerAcked)], &rows).is_empty());
    }
}
