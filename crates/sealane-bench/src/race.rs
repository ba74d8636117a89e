//! Sealane beside the servers that people use today: the same bodies, the same disk, in turns, each
//! peer by its authors' own tool where there is one, and every result printed.
//!
//! Each lap starts a server of its own on an empty folder. The first lap of a contender warms up
//! and says how much the others count.

mod demand;
mod fan_out;
mod heat;
mod nats;
mod ours;
mod row;
mod said;
mod sqlite;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::args;
use crate::failure::{BenchFailure, Result};
use crate::load::BenchHost;
use crate::programs::BenchPrograms;
use heat::{HEATS, LapEffort, LapSetup, RaceContender, RaceHeat, RaceLap};

pub(crate) use demand::RaceDemand;
pub(crate) use fan_out::work;
pub(crate) use row::RaceRow;
pub use said::{NatsBenchFigure, SaidError};
pub(crate) use sqlite::plain as plain_sqlite;

/// How long programs race, and which.
#[derive(Debug, clap::Args)]
pub(crate) struct RaceOptions {
    /// The folder of the peers' programs: nats-server, nats, centrifugo
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// How long a lap runs, about
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "3s")]
    each: Duration,
    /// Laps of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Bytes of a body, one race for each
    #[arg(long, value_name = "BYTES", default_values_t = [256, 100])]
    body: Vec<usize>,
    /// Connections that read in a fan-out
    #[arg(long, value_name = "N", default_value_t = 1000)]
    subscribers: usize,
    /// Only heats whose name contains this, for example publish or fan-out
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// The programs of the peers.
#[derive(Debug, Clone)]
pub(crate) struct RacePeers {
    nats_server: PathBuf,
    nats: PathBuf,
    centrifugo: Option<PathBuf>,
}

/// The result of a race.
#[derive(Debug)]
pub(crate) struct RaceReport {
    pub(crate) head: RaceHead,
    /// In the order in which they ran.
    pub(crate) rows: Vec<RaceRow>,
    pub(crate) demands: Vec<RaceDemand>,
}

/// The machine, and the versions and settings of all who ran.
#[derive(Debug, Serialize)]
pub(crate) struct RaceHead {
    #[serde(flatten)]
    machine: BenchHost,
    settings: Vec<String>,
}

/// Which part of a comparison a contender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RaceSide {
    File,
    Http,
    HttpBatches,
    Socket,
    OursAcked,
    Ours,
    PeerUnsynced,
    PeerUnsyncedBatches,
    PeerSynced,
    PeerAcked,
    Peer,
    Beside,
}

impl RacePeers {
    fn find(folder: &Path) -> Result<Self> {
        let folder =
            std::path::absolute(folder).map_err(BenchFailure::io("looking for the peers"))?;
        let find = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let missing = "is not there: `cargo xtask prove race` fetches the peers";
        let need = |name: &str| {
            find(name).ok_or_else(|| BenchFailure::of(format_args!("{name} {missing}")))
        };
        Ok(Self {
            nats_server: need("nats-server")?,
            nats: need("nats")?,
            centrifugo: find("centrifugo"),
        })
    }

    fn settings(&self) -> Vec<String> {
        let version = |program: &Path, word: &str| {
            let output = Command::new(program).arg(word).output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            let text = text.unwrap_or_default();
            text.lines().next().unwrap_or_default().trim().to_owned()
        };
        let centrifugo = match &self.centrifugo {
            Some(program) => format!(
                "{}: defaults (memory engine, no history, frames of what waits), \
                 publishing by /api/batch, without authentication",
                version(program, "version")
            ),
            None => "centrifugo is not there: no row of it".to_owned(),
        };
        vec![
            format!(
                "{}: defaults, file storage, one replica; JetStream rows `sync 2m` with the \
                 default sync_interval, `always` with `sync_interval: always`, `later` with \
                 --persistasync",
                version(&self.nats_server, "--version")
            ),
            format!(
                "nats {}: nats bench, its figures as printed",
                version(&self.nats, "--version")
            ),
            centrifugo,
            format!(
                "sealane {}, {} build: defaults, JSON; levels memory (queued), os (committed), \
                 disk (fsynced before the answer); readers grant 8192 to 16384 messages",
                env!("CARGO_PKG_VERSION"),
                env!("SEALANE_PROFILE")
            ),
            format!(
                "SQLite {}: journal_mode WAL, synchronous FULL, a row and a commit for each group, \
                 as a node stores them",
                rusqlite::version()
            ),
            "every server alone on an empty folder, clients in other processes on the same cores, \
             loopback, no TLS; CPU and memory are the server's process"
                .to_owned(),
        ]
    }
}

/// Races all heats that `options` asks for. `show` is given each line as it comes: the head, what
/// the peers' tools print, the rows and the demands. A contender that fails is shown as a row.
pub(crate) async fn run(
    programs: &BenchPrograms,
    options: &RaceOptions,
    show: &mut dyn FnMut(&str),
) -> Result<RaceReport> {
    let peers = RacePeers::find(&options.peers)?;
    let head = RaceHead { machine: BenchHost::here(), settings: peers.settings() };
    show(&head.machine.to_string());
    head.settings.iter().for_each(|line| show(line));
    let (mut rows, mut demands) = (Vec::new(), Vec::new());
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    for &body in &options.body {
        let (data, subscribers) = (options.data.as_deref(), options.subscribers);
        let track = LapSetup { programs, peers: &peers, data, body, subscribers };
        for heat in HEATS.iter().filter(|heat| wanted(heat.name)) {
            show(&format!("\n{}, bodies of {body} B", heat.name));
            let came = race(heat, &track, options, show).await;
            show(RaceRow::HEAD);
            came.iter().for_each(|(_, row)| show(&row.to_string()));
            let asked = demand::of(heat.asked, &came);
            asked.iter().for_each(|demand| show(&demand.to_string()));
            demands.extend(asked);
            rows.extend(came.into_iter().map(|(_, row)| row));
        }
    }
    Ok(RaceReport { head, rows, demands })
}

/// One heat: everybody in turn, round after round.
async fn race(
    heat: &RaceHeat,
    track: &LapSetup<'_>,
    options: &RaceOptions,
    show: &mut dyn FnMut(&str),
) -> Vec<(RaceSide, RaceRow)> {
    let entered = |contender: &&RaceContender| {
        !matches!(contender, RaceContender::Centrifugo) || track.peers.centrifugo.is_some()
    };
    let contenders: Vec<RaceContender> = heat.contenders.iter().filter(entered).copied().collect();
    let mut all: Vec<Result<Vec<RaceLap>>> = contenders.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..=options.rounds.max(1) {
        for (contender, came) in contenders.iter().zip(&mut all) {
            let Ok(laps) = came else { continue };
            if contender.not_measured().is_some() {
                continue;
            }
            match contender.lap(track, effort(*contender, laps, options)).await {
                Ok(lap) => {
                    tell(*contender, round, &lap, show);
                    laps.push(lap);
                }
                Err(error) => {
                    show(&format!("  {}: {error}", contender.name()));
                    *came = Err(error);
                }
            }
        }
    }
    let rows = contenders.into_iter().zip(all).map(|(contender, came)| {
        // The first lap was to warm up.
        let laps = came.map(|laps| laps.into_iter().skip(1).collect());
        (contender.side(), RaceRow::of(heat.name, contender, track, laps))
    });
    rows.collect()
}

/// The first lap is short; from its rate follows how much the others do.
fn effort(contender: RaceContender, laps: &[RaceLap], options: &RaceOptions) -> LapEffort {
    match laps.last() {
        None => LapEffort { count: contender.first_count(), each: options.each / 5 },
        Some(last) => {
            let count = (last.rate() * options.each.as_secs_f64()) as u64;
            LapEffort { count: count.clamp(500, 10_000_000), each: options.each }
        }
    }
}

/// A lap as it was: what the tool printed, or our own figures.
fn tell(contender: RaceContender, round: usize, lap: &RaceLap, show: &mut dyn FnMut(&str)) {
    let name = format!("  {} ({}), lap {round}", contender.name(), contender.durability());
    show(&format!("{name}: {} in {:.3} s, server {:.2} s", lap.count, lap.seconds, lap.cpu_s));
    // Of many clients, each has a line of its own; the aggregated ones are enough.
    let single = |line: &str| line.trim_start().starts_with('[') || line.get(8..10) == Some(" [");
    let is_short = lap.raw.lines().filter(|line| single(line)).count() <= 16;
    let wanted = |line: &&str| !line.trim().is_empty() && (is_short || !single(line));
    let printed = lap.raw.lines().filter(wanted);
    printed.for_each(|line| show(&format!("    | {line}")));
}
