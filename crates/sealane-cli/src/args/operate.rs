//! The verbs for those who run a node.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sealane::StartPosition;

use super::HubArgs;
use crate::times;

const AUDIT_HELP: &str = "\
A node with tokens keeps a record of each removal, purge and change, and of each
refusal. The token needs `observe`.";

/// `sealane backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The folder to copy to, new or empty
    pub to: PathBuf,
    /// The node's data folder [default: as for `up`] [env: SEALANE_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane audit`.
#[derive(Debug, Args)]
#[command(after_long_help = AUDIT_HELP)]
pub struct AuditArgs {
    /// Begin at: first, an offset, a time (RFC 3339, @MILLISECONDS) or an age (-1d)
    /// [default: the last records]
    #[arg(long, value_name = "PLACE", value_parser = times::start, allow_hyphen_values = true)]
    pub from: Option<StartPosition>,
    /// How many of the last records
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, conflicts_with = "from")]
    pub count: u64,
    /// Go on with what comes, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The folder that `sealane backup` wrote
    pub from: PathBuf,
    /// The data folder to make, which must have no streams [default: as for `up`]
    /// [env: SEALANE_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane relay`.
#[derive(Debug, Args)]
pub struct RelayArgs {
    /// Its links, neighbours and routes, and the relay cards of its groups: TOML, as
    /// spec/link.md says. SIGHUP reads it again
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
    /// Write all that its links carry to FILE, as pcap: for tshark and `sealane inspect`
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
}

/// `sealane gateway`.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Its links, neighbours and relay cards as for `relay`, and a table `[gateway]`: TOML, as
    /// spec/gateway.md says. SIGHUP reads it again
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
    /// Write all that its links carry to FILE, as pcap: for tshark and `sealane inspect`
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
}

/// `sealane doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The node's data folder [default: as for `up`] [env: SEALANE_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Look for damage in every page and table of the store
    #[arg(long)]
    pub deep: bool,
    /// Look at the hub alone: its data folder is on another machine
    #[arg(long, conflicts_with_all = ["data", "deep"])]
    pub remote: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Only streams whose topic matches
    pub pattern: Option<String>,
    /// The time between two samples
    #[arg(long, value_name = "TIME", value_parser = times::duration, default_value = "1s")]
    pub every: Duration,
    /// End after this many samples; rates appear from the second one on
    #[arg(long, short = 'n', value_name = "N")]
    pub count: Option<u64>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}
