//! Every verb and flag, defined once.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const AFTER_HELP: &str = "\
Exit codes:
  0  done; also when the reader of a pipe has gone
  1  failed
  2  wrong usage, or a scenario, trace or log that is none

Examples:
  sealane-sim check scenarios/city.toml
  sealane-sim run scenarios/city.toml --seed 7 --html city.html
  sealane-sim run scenarios/chain.toml --json --pcap chain.pcap > chain.jsonl
  sealane-sim replay chain.jsonl
  sealane-sim live scenarios/row.toml
  sealane-sim ctl scenarios/row.toml cut car-1 car-2";

/// Run many machines in virtual time over modelled radio.
#[derive(Debug, Parser)]
#[command(name = "sealane-sim", version = env!("SEALANE_VERSION"), after_long_help = AFTER_HELP)]
#[command(disable_help_subcommand = true, max_term_width = 80)]
pub(crate) struct SimCli {
    /// Write data as JSON, one value per line, each with "v":1
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The verb
    #[command(subcommand)]
    pub(crate) command: SimVerb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum SimVerb {
    /// Run a scenario to its end; the same scenario and seed give the same log, byte for byte
    Run(SimRunArgs),
    /// Run a scenario in real time, with processes in network namespaces among its machines
    Live(SimLiveArgs),
    /// Give an order to a live run, or ask how it stands
    Ctl(SimCtlArgs),
    /// Read a scenario and its traces, and say what is wrong with them
    Check {
        /// The scenario, as spec/scenario.md has it
        scenario: PathBuf,
    },
    /// Read the log of a run, and show its figures and its map again
    Replay(SimReplayArgs),
}

/// `run`, and what `live` has beside its own.
#[derive(Debug, Args)]
pub(crate) struct SimRunArgs {
    /// The scenario, as spec/scenario.md has it
    pub(crate) scenario: PathBuf,
    /// Where chance comes from [default: what the scenario says, or 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Write every unit to a file that `sealane inspect` and Wireshark read
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write a page with a map on which the machines move; it fetches nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// End after so many virtual seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<u32>,
}

/// `live`.
#[derive(Debug, Args)]
pub(crate) struct SimLiveArgs {
    #[command(flatten)]
    pub(crate) run: SimRunArgs,
    /// The prefix of the names of the network namespaces
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub(crate) prefix: String,
    /// Serve a page with the map and the orders here, on loopback; 127.0.0.1:0 finds a free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) page: Option<SocketAddr>,
    /// Write what each process says to NAME.log in this folder, and not to standard error
    #[arg(long, value_name = "FOLDER")]
    pub(crate) logs: Option<PathBuf>,
}

/// `ctl`.
#[derive(Debug, Args)]
pub(crate) struct SimCtlArgs {
    /// The scenario that runs
    pub(crate) scenario: PathBuf,
    /// The order
    #[command(subcommand)]
    pub(crate) order: SimOrderVerb,
}

/// Orders to a live run. A machine is named alone or by its group, and `*` is all of them.
#[derive(Debug, Subcommand)]
pub(crate) enum SimOrderVerb {
    /// Say how late the run is, and where its machines are
    Status,
    /// Put machines at a place
    #[command(allow_negative_numbers = true)]
    Move {
        /// The machine or group
        who: String,
        /// Metres to the east
        x: f64,
        /// Metres to the north
        y: f64,
    },
    /// Let two machines or groups not hear each other
    Cut(SimPairArgs),
    /// Let them hear each other again
    Mend(SimPairArgs),
    /// Start machines that are not there
    Join(SimWhoArgs),
    /// End machines; a process is killed
    Kill(SimWhoArgs),
    /// Let machines hear and say nothing
    Sleep(SimWhoArgs),
    /// Wake machines
    Wake(SimWhoArgs),
    /// Let a medium lose a part of all units, from 0 to 1
    Loss {
        /// The medium
        medium: String,
        /// The part
        part: f64,
    },
    /// End the run
    Stop,
}

/// The two sides of an order.
#[derive(Debug, Args)]
pub(crate) struct SimPairArgs {
    /// The one
    pub(crate) one: String,
    /// The other
    pub(crate) other: String,
}

/// The machines of an order.
#[derive(Debug, Args)]
pub(crate) struct SimWhoArgs {
    /// The machines or groups
    #[arg(required = true)]
    pub(crate) who: Vec<String>,
}

/// `replay`.
#[derive(Debug, Args)]
pub(crate) struct SimReplayArgs {
    /// The log that `run --json` has written; `-` for standard input
    pub(crate) log: PathBuf,
    /// Write the page with the map
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
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
        let mut command = SimCli::command();
        command.build();
        check(&mut command);
    }
}
