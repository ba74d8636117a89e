//! Every verb and flag, defined once.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use sealane_link::{IpPrefix, LinkAddress};

use crate::book::ReportName;
use crate::cost::{CostFileFormat, RadioLink};

const AFTER_HELP: &str = "\
Nodes that it measures are the `sealane` beside it, of the same commit.

Exit codes:
  0  done; also when the reader of a pipe has gone
  1  failed; a slow result is no failure
  2  wrong usage, or a file that cannot be read or written

Examples:
  sealane-bench cost messages.jsonl --quick
  journalctl -o json | sealane-bench cost - --no-hub
  sealane-bench cost messages.jsonl --quick --no-hub --link lora-sf7
  sealane-bench report --all --html book.html
  sealane-bench load --only append";

/// Measure what messages, hub and vault cost on this machine.
#[derive(Debug, Parser)]
#[command(name = "sealane-bench", version = crate::VERSION, after_long_help = AFTER_HELP)]
#[command(disable_help_subcommand = true, max_term_width = 80)]
pub(crate) struct BenchCli {
    /// Write data as JSON, one value per line, each with "v":1
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The measurement
    #[command(subcommand)]
    pub(crate) command: BenchVerb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// The cost of each step on your own messages, and the ways from end to end
    Cost(BenchCostArgs),
    /// The five measured reports that Sealane grew from, their tables row by row on this machine
    Report(BenchReportArgs),
    /// The hub under load: appends, deliveries, sealed streams, latency, replay, fan-out
    Load(BenchLoadArgs),
    /// A vault beside the report's own pipeline, restic and borg: files, bytes, memory
    Vault(BenchVaultArgs),
    /// Counts that may not grow, a line each, for `cargo xtask bench-guard`
    #[command(hide = true)]
    Counts {
        /// A way to work through alone, and how often, for who counts instructions
        #[arg(num_args = 0..=2, value_names = ["WAY", "ROUNDS"])]
        alone: Vec<usize>,
    },
    /// A machine of a bare chain, which checks and seals nothing: what relays are measured beside
    #[command(hide = true, subcommand)]
    Hop(BenchHopVerb),
    /// The hub beside NATS, JetStream and Centrifugo: the same bodies, the same disk, in turns
    Race(BenchRaceArgs),
    /// Four machines in a row, in network namespaces: what runs over them, how fast, kills (root)
    Relay(BenchRelayArgs),
    /// The report's own pipeline over a folder, in a process of its own
    #[command(hide = true)]
    N2s {
        /// The folder that is read
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

/// `sealane-bench cost`.
#[derive(Debug, Args)]
pub(crate) struct BenchCostArgs {
    /// Messages: JSON lines, sequences of MessagePack or CBOR, frames, a folder with one message in
    /// each file; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The kind of the files: json, msgpack, cbor or frames [default: told by name and content]
    #[arg(long = "as", value_name = "KIND", value_parser = holding)]
    pub(crate) holding: Option<CostFileFormat>,
    /// Less of everything: an answer in less than 20 seconds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leave out the ways over a hub, which is started for them
    #[arg(long)]
    pub(crate) no_hub: bool,
    /// Reckon units, air time and share of the duty cycle on a radio: ble-1m, lora-sf7 or 11p
    #[arg(long = "link", value_name = "RADIO", value_parser = radio)]
    pub(crate) links: Vec<RadioLink>,
    /// The folder on the disk that the hub keeps messages on [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Write a page with charts into this file too; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text).map_err(|_| "a time is like 5s, 250ms or 1h30m")
}

fn holding(name: &str) -> Result<CostFileFormat, &'static str> {
    CostFileFormat::from_name(name).ok_or("it is json, msgpack, cbor or frames")
}

fn radio(name: &str) -> Result<RadioLink, String> {
    RadioLink::from_name(name).ok_or_else(|| {
        let names = RadioLink::ALL.map(RadioLink::name);
        format!("it is one of {}", names.join(", "))
    })
}

/// `sealane-bench report`.
#[derive(Debug, Args)]
pub(crate) struct BenchReportArgs {
    /// Which: triple-json, gateway-codec, mesh-encryption, zero-copy, blobs
    #[arg(value_name = "NAME", required_unless_present = "all", value_parser = report)]
    pub(crate) names: Vec<ReportName>,
    /// All five
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Less of everything: a look
    #[arg(long)]
    pub(crate) quick: bool,
    /// The folder on the disk that vaults are written to [default: the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Write a page with charts into this file too; it needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

fn report(name: &str) -> Result<ReportName, String> {
    ReportName::from_name(name).ok_or_else(|| {
        let names = ReportName::ALL.map(ReportName::name);
        format!("it is one of {}", names.join(", "))
    })
}

/// `sealane-bench load`.
#[derive(Debug, Args)]
pub(crate) struct BenchLoadArgs {
    /// How long each row runs
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s")]
    pub(crate) each: Duration,
    /// Bytes of an envelope
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(crate) size: usize,
    /// Connections that read
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) readers: usize,
    /// Connections that are opened to see what an idle one costs
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) idle: usize,
    /// Readers of one message, over three codecs
    #[arg(long, value_name = "N", default_value_t = 9999)]
    pub(crate) fan_out: usize,
    /// Only rows whose name contains this, for example append or latency
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `sealane-bench vault`.
#[derive(Debug, Args)]
pub(crate) struct BenchVaultArgs {
    /// How often each row is measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Only this group of rows: mixed, small or big
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Only tools whose name contains this, for example sealane or borg
    #[arg(long, value_name = "TEXT")]
    pub(crate) tool: Option<String>,
    /// Bytes of the big file
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000_000)]
    pub(crate) big: u64,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A further program, for example borg=/opt/borg/bin/borg
    #[arg(long, value_name = "NAME=PATH")]
    pub(crate) also: Vec<String>,
    /// An earlier `sealane`, which is measured in turns with this one and compared
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) before: Option<PathBuf>,
}

/// `sealane-bench relay`.
#[derive(Debug, Args)]
pub(crate) struct BenchRelayArgs {
    /// Only parts whose name contains this: works, speed, frames or kills
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Seconds of each run of `iperf3`
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = seconds())]
    pub(crate) each: u64,
    /// Rounds of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Seconds of the steady stream of which nothing may be lost
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = seconds())]
    pub(crate) steady: u64,
    /// How often a machine is killed
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) kills: usize,
    /// Kill without the load of `iperf3`, which is not needed then
    #[arg(long)]
    pub(crate) without_iperf: bool,
}

fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=3600)
}

/// `sealane-bench race`.
#[derive(Debug, Args)]
pub(crate) struct BenchRaceArgs {
    /// The folder of the peers' programs: nats-server, nats, centrifugo
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    pub(crate) peers: PathBuf,
    /// How long a lap runs, about
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    pub(crate) each: Duration,
    /// Laps of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Bytes of a body, one race for each
    #[arg(long, value_name = "BYTES", default_values_t = [256, 100])]
    pub(crate) body: Vec<usize>,
    /// Connections that read in a fan-out
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) subscribers: usize,
    /// Only heats whose name contains this, for example publish or fan-out
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// The folder on the disk to measure [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `sealane-bench hop`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchHopVerb {
    /// Frames from one neighbour go to the other, with 17 bytes written anew
    Forward(HopForward),
    /// An interface whose packets go to one neighbour, and its packets to the interface
    End(HopEnd),
}

/// `sealane-bench hop forward`.
#[derive(Debug, Args)]
pub(crate) struct HopForward {
    /// Twice: its own address and port, or the interface of raw Ethernet
    #[arg(long = "link", value_name = "LINK", required = true, num_args = 1)]
    pub(crate) links: Vec<String>,
    /// Twice, in the same order: who is at the other end
    #[arg(long = "neighbour", value_name = "ADDRESS", required = true, num_args = 1)]
    pub(crate) neighbours: Vec<LinkAddress>,
    /// The bytes that the wires carry at once
    #[arg(long, default_value_t = 1500)]
    pub(crate) mtu: u16,
}

/// `sealane-bench hop end`.
#[derive(Debug, Args)]
pub(crate) struct HopEnd {
    /// The name of the interface
    #[arg(long, default_value = "bare0")]
    pub(crate) interface: String,
    /// An address of it with the bits of its network
    #[arg(long = "address", value_name = "PREFIX", required = true, num_args = 1)]
    pub(crate) addresses: Vec<IpPrefix>,
    /// Its own address and port, or the interface of raw Ethernet
    #[arg(long)]
    pub(crate) link: String,
    /// The address of the other end
    #[arg(long)]
    pub(crate) neighbour: LinkAddress,
    /// The bytes that the wire carries at once
    #[arg(long, default_value_t = 1500)]
    pub(crate) mtu: u16,
    /// Packet by packet, without the offloads of the interface
    #[arg(long)]
    pub(crate) no_offload: bool,
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;

    #[test]
    fn the_help_of_every_verb_fits_80_columns() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            let wide = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{}", command.get_name());
            command.get_subcommands_mut().for_each(check);
        }
        let mut command = BenchCli::command();
        command.build();
        check(&mut command);
    }
}
