//! What a heat comes to: a row for each contender, and what was demanded.

use std::fmt;

use super::heat::{Contender, Lap, Track};
use super::{Error, Side};

/// The median lap of one contender.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The question.
    pub heat: String,
    /// Who answered it.
    pub contender: String,
    /// What stands when a message is acknowledged: a level of ours, or a peer's setting.
    pub durability: String,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Connections.
    pub connections: usize,
    /// Messages or deliveries a second: the median.
    pub per_second: f64,
    /// The slowest and the fastest lap.
    pub range: (f64, f64),
    /// Seconds of CPU that the server spent on a million messages or deliveries.
    pub cpu_s_per_million: f64,
    /// Memory that the server held at the end, in bytes.
    pub resident_bytes: u64,
    /// Why there is no figure.
    pub failed: Option<String>,
}

impl Row {
    pub(super) fn of(
        heat: &str,
        contender: Contender,
        track: &Track<'_>,
        laps: Result<Vec<Lap>, Error>,
    ) -> Self {
        let row = Row {
            heat: heat.to_owned(),
            contender: contender.name(),
            durability: contender.durability().to_owned(),
            body_bytes: track.body,
            connections: contender.connections(track),
            ..Row::default()
        };
        let mut laps = match laps {
            Ok(laps) => laps,
            Err(error) => return Row { failed: Some(error.to_string()), ..row },
        };
        laps.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let (Some(first), Some(last)) = (laps.first(), laps.last()) else { return row };
        let Some(middle) = laps.get(laps.len() / 2) else { return row };
        Row {
            per_second: middle.rate(),
            range: (first.rate(), last.rate()),
            cpu_s_per_million: middle.cpu_s / middle.count.max(1) as f64 * 1e6,
            resident_bytes: middle.resident_bytes,
            ..row
        }
    }

    /// The heads of the columns of a row's text form.
    pub const HEAD: &str = "who                                  durable   conns         /s    \
        slowest    fastest  CPU s/million  RSS MiB";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { contender, durability, connections, .. } = self;
        write!(f, "{contender:<36} {durability:<9} {connections:>5}")?;
        if let Some(failed) = &self.failed {
            return write!(f, "  FAILED: {failed}");
        }
        let (slowest, fastest) = self.range;
        write!(f, " {:>10.0} {slowest:>10.0} {fastest:>10.0}", self.per_second)?;
        let mebibytes = self.resident_bytes >> 20;
        // A plain file has no server.
        if mebibytes == 0 {
            return Ok(());
        }
        write!(f, " {:>14.2} {mebibytes:>8}", self.cpu_s_per_million)
    }
}

/// What was demanded of two rows of a heat, and what came of it.
#[derive(Debug, Clone)]
pub struct Demand {
    /// Ours, and theirs.
    pub of: [String; 2],
    /// Ours divided by theirs.
    pub times: f64,
    /// The least that was demanded; nothing was where there is none.
    pub least: Option<f64>,
}

impl Demand {
    fn between(ours: &Row, theirs: &Row, least: Option<f64>) -> Self {
        let name = |row: &Row| format!("{} ({})", row.contender, row.durability);
        let times = ours.per_second / theirs.per_second;
        Demand { of: [name(ours), name(theirs)], times, least }
    }

    /// Whether it was met.
    pub fn is_met(&self) -> bool {
        self.least.is_none_or(|least| self.times >= least)
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ours, theirs] = &self.of;
        write!(f, "{ours} is {:.2} x {theirs}", self.times)?;
        match self.least {
            Some(least) if self.is_met() => write!(f, "; demanded {least} x: met"),
            Some(least) => write!(f, "; demanded {least} x: MISSED"),
            None => Ok(()),
        }
    }
}

/// Every one of ours is held against each of theirs.
pub(super) fn demands(rows: &[(Side, Row)]) -> Vec<Demand> {
    let mut demands = Vec::new();
    for (side, ours) in rows.iter().filter(|(_, row)| row.per_second > 0.0) {
        let against: &[(Side, Option<f64>)] = match side {
            Side::OursSynced => &[(Side::PeerUnsynced, Some(1.0)), (Side::PeerSynced, Some(10.0))],
            Side::OursAcked => &[(Side::PeerAcked, Some(3.0))],
            Side::Ours => &[(Side::Peer, None)],
            _ => &[],
        };
        for (theirs, least) in against {
            let theirs = rows.iter().filter(|(side, row)| side == theirs && row.per_second > 0.0);
            demands.extend(theirs.map(|(_, theirs)| Demand::between(ours, theirs, *least)));
        }
    }
    demands
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
            row(Side::OursSynced, "ours", 100.0),
            row(Side::PeerSynced, "slow", 5.0),
            row(Side::PeerSynced, "fast", 20.0),
            row(Side::PeerUnsynced, "lazy", 80.0),
            row(Side::PeerAcked, "another question", 80.0),
        ];
        let [lazy, slow, fast] = <[Demand; 3]>::try_from(demands(&rows)).unwrap();
        assert!(lazy.is_met() && lazy.to_string().contains("1.25 x lazy"), "{lazy}");
        assert!(slow.is_met() && slow.to_string().contains("20.00 x slow"), "{slow}");
        assert!(!fast.is_met() && fast.to_string().contains("5.00 x fast"), "{fast}");
        assert!(fast.to_string().ends_with("MISSED"), "{fast}");
    }

    #[test]
    fn nothing_is_said_of_a_contender_that_failed() {
        let rows = [row(Side::OursAcked, "ours", 100.0), row(Side::PeerAcked, "theirs", 0.0)];
        assert!(demands(&rows).is_empty());
    }
}
