//! The result of a run, in figures.

use std::fmt;

use crate::SimSpan;
use crate::watch::{LossReason, RunCounts};

/// The figures of a run. They depend on scenario and seed alone.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SimSummary {
    /// How long it was, in virtual seconds.
    pub seconds: f64,
    /// Machines of the scenario.
    pub machines: u64,
    /// Events that happened.
    pub events: u64,
    /// Messages that were sent.
    pub messages: u64,
    /// Deliveries that they asked for.
    pub expected: u64,
    /// Deliveries that came, each counted once.
    pub delivered: u64,
    /// Deliveries that came again, or to a machine that joined later.
    pub again: u64,
    /// Deliveries to machines for which they were not.
    pub astray: u64,
    /// Half of the deliveries came within this time.
    pub half_within: SimSpan,
    /// 95 of 100 came within this time.
    pub most_within: SimSpan,
    /// All came within this time.
    pub all_within: SimSpan,
    /// The air time of the machine that sent most, in parts of a million of the run.
    pub sent_ppm_most: u64,
    /// How long the machine that heard most heard others, in parts of a million.
    pub heard_ppm_most: u64,
    /// Units that were still under way at the end.
    pub held: u64,
    /// The counts of data frames that machines of the mesh report.
    pub frames: SimFrameCounts,
    pub(crate) counts: RunCounts,
}

/// The fates of data frames at the machines of the mesh that are up at the end. The reports of
/// gateways are among the frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimFrameCounts {
    /// Frames that were made.
    pub made: u64,
    /// Those that left the machine that made them.
    pub left: u64,
    /// Dropped there: there was no air time, or no room to wait for it.
    pub refused_at_source: u64,
    /// Dropped there: the machine knew no way.
    pub without_way: u64,
    /// Those that wait there for air time.
    pub waiting: u64,
    /// Dropped by a machine that was to send them on, without air time.
    pub refused_on_way: u64,
    /// The same, without a way.
    pub without_way_on_way: u64,
    /// Those that wait on their way: of a frame to everybody each counts.
    pub waiting_on_way: u64,
    /// How often urgent frames to everybody were told again.
    pub told_again: u64,
}

impl std::ops::AddAssign for SimFrameCounts {
    fn add_assign(&mut self, other: Self) {
        self.made += other.made;
        self.left += other.left;
        self.refused_at_source += other.refused_at_source;
        self.without_way += other.without_way;
        self.waiting += other.waiting;
        self.refused_on_way += other.refused_on_way;
        self.without_way_on_way += other.without_way_on_way;
        self.waiting_on_way += other.waiting_on_way;
        self.told_again += other.told_again;
    }
}

impl SimSummary {
    /// Transmissions.
    pub fn units(&self) -> u64 {
        self.counts.units
    }

    /// Units that were heard, each time by each machine.
    pub fn heard(&self) -> u64 {
        self.counts.heard
    }

    /// All air time together.
    pub fn air(&self) -> SimSpan {
        self.counts.air
    }

    /// Units that came to the program of a machine.
    pub fn arrived(&self) -> u64 {
        self.counts.arrived
    }

    /// Acknowledgements that radios have sent: of 802.11p, for units to one machine.
    pub fn acknowledged(&self) -> u64 {
        self.counts.acknowledged
    }

    /// Changes of the way to a machine of the mesh.
    pub fn routes(&self) -> u64 {
        self.counts.routes
    }

    /// Routes of the mesh that led back to where they began.
    pub fn loops(&self) -> u64 {
        self.counts.loops
    }

    /// Units that a capture had no room for.
    pub fn missed_by_capture(&self) -> u64 {
        self.counts.missed_by_capture
    }

    /// The reasons why units were lost, by the names that logs have for them, with their counts.
    pub fn losses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts;
        LossReason::ALL.into_iter().map(move |loss| (loss.name(), counts.lost(loss)))
    }

    /// How many of the expected deliveries came, from 0 to 1; 1 where none was expected.
    pub fn ratio(&self) -> f64 {
        if self.expected == 0 { 1.0 } else { self.delivered as f64 / self.expected as f64 }
    }

    /// The last line of a log. What a capture missed is no part of it, so that a log is the same
    /// with a capture and without.
    pub(crate) fn to_json(self) -> String {
        let end = (self.seconds * 1e6).round() as u64;
        let numbers = [
            ("machines", self.machines),
            ("events", self.events),
            ("units", self.counts.units),
            ("unit_bytes", self.counts.unit_bytes),
            ("air", self.counts.air.0),
            ("heard", self.counts.heard),
            ("arrived", self.counts.arrived),
            ("acknowledged", self.counts.acknowledged),
            ("messages", self.messages),
            ("expected", self.expected),
            ("delivered", self.delivered),
            ("again", self.again),
            ("astray", self.astray),
            ("half_within", self.half_within.0),
            ("most_within", self.most_within.0),
            ("all_within", self.all_within.0),
            ("sent_ppm_most", self.sent_ppm_most),
            ("heard_ppm_most", self.heard_ppm_most),
            ("held", self.held),
            ("routes", self.counts.routes),
            ("loops", self.counts.loops),
        ];
        let numbers: Vec<_> = numbers.map(|(name, value)| format!("\"{name}\":{value}")).into();
        let lost: Vec<_> =
            self.losses().map(|(name, count)| format!("\"{name}\":{count}")).collect();
        format!(
            "{{\"v\":1,\"at\":{end},\"kind\":\"summary\",{},\"lost\":{{{}}}}}",
            numbers.join(","),
            lost.join(",")
        )
    }
}

impl fmt::Display for SimSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunCounts { units, unit_bytes, air, heard, .. } = self.counts;
        let seconds = self.seconds;
        writeln!(f, "{} machines, {seconds} s, {} events", self.machines, self.events)?;
        writeln!(f, "  sent       {units} units, {unit_bytes} bytes, {:.3} s of air", air.as_s())?;
        writeln!(f, "  heard      {heard} times")?;
        let lost: Vec<_> = self.losses().filter(|(_, count)| *count > 0).collect();
        for (name, count) in lost {
            writeln!(f, "    {name:<10} {count} lost")?;
        }
        let percent = 100.0 * self.ratio();
        let (delivered, expected) = (self.delivered, self.expected);
        writeln!(
            f,
            "  messages   {}: {delivered} of {expected} deliveries, {percent:.2} %; {} again",
            self.messages, self.again
        )?;
        if self.routes() > 0 {
            writeln!(f, "  routes     {} changes, {} loops", self.routes(), self.loops())?;
        }
        let ms = |span: SimSpan| span.0 as f64 / 1e3;
        writeln!(
            f,
            "  latency    {:.1} ms half, {:.1} ms 95 %, {:.1} ms all",
            ms(self.half_within),
            ms(self.most_within),
            ms(self.all_within)
        )?;
        let percent = |ppm: u64| ppm as f64 / 1e4;
        write!(
            f,
            "  busiest    a machine sent {:.3} % of the time, one heard {:.3} %",
            percent(self.sent_ppm_most),
            percent(self.heard_ppm_most)
        )
    }
}
