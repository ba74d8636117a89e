//! The rows of a heat: a row for each contender.

use std::fmt;

use serde::Serialize;

use super::heat::{LapSetup, RaceContender, RaceLap};
use crate::failure::Result;

/// The median lap of one contender.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RaceRow {
    pub(super) heat: String,
    pub(super) contender: String,
    /// The durability of a message that is acknowledged: a level of ours, or a peer's setting.
    pub(super) durability: String,
    pub(super) body_bytes: usize,
    pub(super) connections: usize,
    /// Messages or deliveries a second: the median.
    pub(super) per_second: f64,
    pub(super) slowest: f64,
    pub(super) fastest: f64,
    /// Seconds of CPU that the server spent on a million messages or deliveries.
    pub(super) cpu_s_per_million: f64,
    /// Memory that the server held at the end.
    pub(super) resident_bytes: u64,
    /// How long a publisher waited for one answer, in microseconds; none: its tool does not say it.
    pub(super) p50_us: Option<f64>,
    /// The longest that 99 of 100 answers took.
    pub(super) p99_us: Option<f64>,
    /// Messages of a commit, on average; none: the server does not say it.
    pub(super) group: Option<f64>,
    /// Why there is no figure: a lap failed.
    pub(super) failed: Option<String>,
    /// Why there is none: nobody tried.
    pub(super) not_measured: Option<&'static str>,
}

impl RaceRow {
    pub(super) fn of(
        heat: &str,
        contender: RaceContender,
        track: &LapSetup<'_>,
        laps: Result<Vec<RaceLap>>,
    ) -> Self {
        let row = RaceRow {
            heat: heat.to_owned(),
            contender: contender.name(),
            durability: contender.durability().to_owned(),
            body_bytes: track.body,
            connections: contender.connections(track),
            not_measured: contender.not_measured(),
            ..RaceRow::default()
        };
        let mut laps = match laps {
            Ok(laps) => laps,
            Err(error) => return RaceRow { failed: Some(error.to_string()), ..row },
        };
        laps.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let (Some(first), Some(last)) = (laps.first(), laps.last()) else { return row };
        let Some(middle) = laps.get(laps.len() / 2) else { return row };
        RaceRow {
            p50_us: median(laps.iter().filter_map(|lap| lap.p50_us)),
            p99_us: median(laps.iter().filter_map(|lap| lap.p99_us)),
            group: median(laps.iter().filter_map(|lap| lap.group)),
            per_second: middle.rate(),
            slowest: first.rate(),
            fastest: last.rate(),
            cpu_s_per_million: middle.cpu_s / middle.count.max(1) as f64 * 1e6,
            resident_bytes: middle.resident_bytes,
            ..row
        }
    }

    /// The heads of the columns of a row's text form.
    pub(super) const HEAD: &str = "who                                  durable   conns         \
        /s    slowest    fastest  CPU s/million  RSS MiB    p50 us    p99 us   group";
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl fmt::Display for RaceRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RaceRow { contender, durability, connections, .. } = self;
        write!(f, "{contender:<36} {durability:<9} {connections:>5}")?;
        if let Some(reason) = self.not_measured {
            return write!(f, "  not measured: {reason}");
        }
        if let Some(failed) = &self.failed {
            return write!(f, "  FAILED: {failed}");
        }
        let RaceRow { slowest, fastest, .. } = self;
        write!(f, " {:>10.0} {slowest:>10.0} {fastest:>10.0}", self.per_second)?;
        let mebibytes = self.resident_bytes >> 20;
        // A plain file has no server.
        match mebibytes {
            0 => write!(f, "{:24}", "")?,
            _ => write!(f, " {:>14.2} {mebibytes:>8}", self.cpu_s_per_million)?,
        }
        let shown = |figure: Option<f64>, digits: usize| {
            figure.map(|figure| format!("{figure:.digits$}")).unwrap_or_default()
        };
        let (p50, p99) = (shown(self.p50_us, 0), shown(self.p99_us, 0));
        let figures = format!(" {p50:>9} {p99:>9} {:>7}", shown(self.group, 1));
        f.write_str(figures.trim_end())
    }
}
