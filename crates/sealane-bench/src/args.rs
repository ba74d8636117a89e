//! Every verb; the flags of each stand beside its work.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::book::BookOptions;
use crate::cost::CostOptions;
use crate::hop::{HopEnd, HopForward};
use crate::load::LoadOptions;
use crate::publish::PublishCostOptions;
use crate::race::RaceOptions;
use crate::relay::RelayBenchOptions;
use crate::vault::VaultBenchOptions;

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
    Cost(CostOptions),
    /// The five measured reports that Sealane grew from, their tables row by row on this machine
    Report(BookOptions),
    /// The hub under load: appends, deliveries, sealed streams, latency, replay, fan-out
    Load(LoadOptions),
    /// Where a published message's time goes: CPU of each part, bytes written, plain SQLite
    Publish(PublishCostOptions),
    /// A vault beside the report's own pipeline, restic and borg: files, bytes, memory
    Vault(VaultBenchOptions),
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
    Race(RaceOptions),
    /// Four machines in a row, in network namespaces: what runs over them, how fast, kills (root)
    Relay(RelayBenchOptions),
    /// The report's own pipeline over a folder, in a process of its own
    #[command(hide = true)]
    N2s {
        /// The folder that is read
        source: PathBuf,
        /// Where blobs are written
        target: PathBuf,
    },
    /// The readers of a fan-out of `race`, in a process of their own
    #[command(hide = true, override_usage = "sealane-bench race-client ADDRESS PEER ...")]
    RaceClient {
        /// The server's address
        address: String,
        /// The frames to a delivery frame of a node, or `centrifugo`
        peer: String,
        /// Connections that read
        subscribers: u64,
        /// Bytes of a body
        body: usize,
        /// How long it goes on, in milliseconds
        each_ms: u64,
    },
    /// A client of `load`, in a process of its own
    #[command(hide = true)]
    Worker {
        /// The hub's address
        address: String,
        /// The work, as JSON
        work: String,
    },
}

/// `sealane-bench hop`.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchHopVerb {
    /// Frames from one neighbour go to the other, with 17 bytes written anew
    Forward(HopForward),
    /// An interface whose packets go to one neighbour, and its packets to the interface
    #[command(
        override_usage = "sealane-bench hop end [OPTIONS] --address ... --link ... --neighbour ..."
    )]
    End(HopEnd),
}

/// A time as people write it.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text).map_err(|_| "a time is like 5s, 250ms or 1h30m")
}

/// One of several, by its name.
pub(crate) fn named<T: Copy>(
    all: &[T],
    name: fn(T) -> &'static str,
    text: &str,
) -> Result<T, String> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        format!("it is one of {}", names.join(", "))
    })
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
