//! Four machines in a row, in network namespaces of this machine: a car and a server that are
//! members of a group, and two relays between them that hold no key. What people run over a
//! network runs over them; how fast, beside the same row without seals and checks, and beside the
//! kernel's own forwarding; and what a kill costs.

mod bare;
mod frames;
mod kills;
mod net;
mod numbers;
mod programs;
mod recorder;
mod row;
mod show;
mod speed;
mod works;

use crate::failure::Result;
use crate::programs::BenchPrograms;

pub(crate) use show::{RelayFinding, RelayFindingSink};

/// The parts that are shown, and at what length.
#[derive(Debug, clap::Args)]
pub(crate) struct RelayBenchOptions {
    /// Only parts whose name contains this: works, speed, frames or kills
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seconds of each run of `iperf3`
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = seconds())]
    each: u64,
    /// Rounds of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Seconds of the steady stream of which nothing may be lost
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = seconds())]
    steady: u64,
    /// How often a machine is killed
    #[arg(long, value_name = "N", default_value_t = 100)]
    kills: usize,
    /// Kill without the load of `iperf3`, which is not needed then
    #[arg(long)]
    without_iperf: bool,
}

fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=3600)
}

/// The programs, and what to do with them.
#[derive(Debug, Clone, Copy)]
struct RelayBench<'a> {
    programs: &'a BenchPrograms,
    options: &'a RelayBenchOptions,
}

impl RelayBench<'_> {
    fn rounds(self) -> usize {
        self.options.rounds.max(1)
    }
}

type RelayBenchRun = fn(RelayBench<'_>, &mut RelayFindingSink<'_>) -> Result<()>;

/// The parts by their names.
const PARTS: [(&str, &str, RelayBenchRun); 4] = [
    ("works", "What people run over a network", works::run),
    ("speed", "How fast the row is", speed::run),
    ("frames", "What a relay takes for a frame", frames::run),
    ("kills", "Kills under load", kills::run),
];

/// Runs all parts that `options` asks for. `each` is given what comes of them as it comes. A figure
/// that misses what is demanded of it is shown as one; it is an error where something did not hold
/// that has to.
pub(crate) fn run(
    programs: &BenchPrograms,
    options: &RelayBenchOptions,
    each: &mut dyn FnMut(&RelayFinding),
) -> Result<()> {
    let mut show = RelayFindingSink::new(each);
    for (name, title, run) in PARTS {
        if options.only.as_ref().is_none_or(|only| name.contains(only)) {
            show.part(name, title);
            run(RelayBench { programs, options }, &mut show)?;
        }
    }
    show.finish()
}
