//! `sealane mesh`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::key::KeysArgs;
use crate::times;

/// `sealane mesh`.
#[derive(Debug, Args)]
pub struct MeshArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: KeysArgs,
    /// The verb
    #[command(subcommand)]
    pub verb: MeshVerb,
}

/// The verbs of `sealane mesh`.
#[derive(Debug, Subcommand)]
pub enum MeshVerb {
    /// Give this machine an interface: what is sent there is sealed to the members behind it
    Up(MeshUpArgs),
    /// Show what a relay or end on this machine does: neighbours, routes, drops
    Status(MeshStatusArgs),
    /// Show which way leads to another machine, and why: each machine on it with its other ways
    Trace(MeshTraceArgs),
}

/// `sealane mesh up`.
#[derive(Debug, Args)]
pub struct MeshUpArgs {
    /// The group whose members talk
    pub group: String,
    /// Its links, neighbours and routes, and the interface: TOML, as spec/link.md says. SIGHUP
    /// reads it again
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
    /// Write all that its links carry to FILE, as pcap: for tshark and `sealane inspect`
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Serve a page of the team to browsers on this machine: who is well, where, who has
    /// acknowledged
    #[arg(long, value_name = "ADDRESS")]
    pub view: Option<SocketAddr>,
}

/// `sealane mesh status`.
#[derive(Debug, Args)]
pub struct MeshStatusArgs {
    /// The configuration that the relay or end was started with: it names where the status is told
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
    /// Show it again and again, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// How often to look
    #[arg(long, value_name = "TIME", value_parser = times::duration, default_value = "1s")]
    pub every: Duration,
}

/// `sealane mesh trace`.
#[derive(Debug, Args)]
pub struct MeshTraceArgs {
    /// The configuration that the relay or end on this machine was started with
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
    /// The machine: its slot in the mesh's group, or its name there
    pub peer: String,
}
