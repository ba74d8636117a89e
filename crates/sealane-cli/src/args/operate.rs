//! The verbs for those who run a node.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::HubArgs;
use crate::times;

/// `sealane backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The folder to copy to, new or empty
    pub to: PathBuf,
    /// The node's data folder [default: as for `up`] [env: SEALANE_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
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
