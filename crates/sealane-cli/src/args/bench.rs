//! `sealane bench` and its verbs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sealane_bench::book::Name;
use sealane_bench::cost::Holding;

use crate::times;

/// `sealane bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// What to measure
    #[command(subcommand)]
    pub command: BenchCommand,
}

/// The verbs of `sealane bench`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// What each step costs on your own messages, and the ways from end to end
    Cost(BenchCost),
    /// The five measured reports that Sealane grew from, their tables row by row on this machine
    Report(BenchReport),
    /// The hub under load: appends, deliveries, sealed streams, latency, replay, fan-out
    Load(BenchLoad),
    /// A vault beside the report's own pipeline, restic and borg: files, bytes, memory
    Vault(BenchVault),
    /// Counts that may not grow, a line each, for `cargo xtask bench-guard`
    #[command(hide = true)]
    Counts {
        /// A way to work through alone, and how often, for who counts instructions
        #[arg(num_args = 0..=2, value_names = ["WAY", "ROUNDS"])]
        alone: Vec<usize>,
    },
    /// The hub beside NATS, JetStream and Centrifugo: the same bodies, the same disk, in turns
    Race(BenchRace),
    /// The report's own pipeline over a folder, in a process of its own
    #[command(hide = true)]
    N2s {
        /// What is read
        source: PathBuf,
        /// Where blobs are written
        target: PathBuf,
    },
    /// The readers of a fan-out of `race`, in a process of their own
    #[command(hide = true)]
    RaceClient {
        /// The server's address and the work
        work: Vec<String>,
    },
    /// A client of `load`, in a process of its own
    #[command(hide = true)]
    Worker {
        /// The hub's address and the work
        #[arg(allow_hyphen_values = true)]
        work: Vec<String>,
    },
}

/// `sealane bench cost`.
#[derive(Debug, Args)]
pub struct BenchCost {
    /// Messages: JSON lines, sequences of MessagePack or CBOR, frames, a folder with one message in
    /// each file; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What the files hold: json, msgpack, cbor or frames [default: told by name and content]
    #[arg(long = "as", value_name = "KIND", value_parser = holding)]
    pub holding: Option<Holding>,
    /// Less of everything: an answer in less than 20 seconds
    #[arg(long)]
    pub quick: bool,
    /// Leave out the ways over a hub, which is started for them
    #[arg(long)]
    pub no_hub: bool,
    /// The folder on the disk that the hub keeps messages on [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Write a page with charts into this file too; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn holding(name: &str) -> Result<Holding, &'static str> {
    Holding::from_name(name).ok_or("it is json, msgpack, cbor or frames")
}

/// `sealane bench report`.
#[derive(Debug, Args)]
pub struct BenchReport {
    /// Which: triple-json, gateway-codec, mesh-encryption, zero-copy, blobs
    #[arg(value_name = "NAME", required_unless_present = "all", value_parser = report)]
    pub names: Vec<Name>,
    /// All five
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Less of everything: a look
    #[arg(long)]
    pub quick: bool,
    /// The folder on the disk that vaults are written to [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Write a page with charts into this file too; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn report(name: &str) -> Result<Name, String> {
    Name::from_name(name).ok_or_else(|| {
        let names = Name::ALL.map(Name::name);
        format!("it is one of {}", names.join(", "))
    })
}

/// `sealane bench load`.
#[derive(Debug, Args)]
pub struct BenchLoad {
    /// How long each row runs
    #[arg(long, value_name = "TIME", value_parser = times::duration, default_value = "5s")]
    pub each: Duration,
    /// Bytes of an envelope
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub size: usize,
    /// Connections that read
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub readers: usize,
    /// Connections that are opened to see what an idle one costs
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub idle: usize,
    /// Readers of one message, over three codecs
    #[arg(long, value_name = "N", default_value_t = 9999)]
    pub fan_out: usize,
    /// Only rows whose name contains this, for example append or latency
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `sealane bench vault`.
#[derive(Debug, Args)]
pub struct BenchVault {
    /// How often each row is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Only this group of rows: mixed, small or big
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Only tools whose name contains this, for example sealane or borg
    #[arg(long, value_name = "TEXT")]
    pub tool: Option<String>,
    /// Bytes of the big file
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000_000)]
    pub big: u64,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A further program, for example borg=/opt/borg/bin/borg
    #[arg(long, value_name = "NAME=PATH")]
    pub also: Vec<String>,
}

/// `sealane bench race`.
#[derive(Debug, Args)]
pub struct BenchRace {
    /// The folder of the peers' programs: nats-server, nats, centrifugo
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub peers: PathBuf,
    /// How long a lap runs, about
    #[arg(long, value_name = "TIME", value_parser = times::duration, default_value = "3s")]
    pub each: Duration,
    /// Laps of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
    /// Bytes of a body, one race for each
    #[arg(long, value_name = "BYTES", default_values_t = [256, 100])]
    pub body: Vec<usize>,
    /// Connections that read in a fan-out
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub subscribers: usize,
    /// Only heats whose name contains this, for example publish or fan-out
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}
