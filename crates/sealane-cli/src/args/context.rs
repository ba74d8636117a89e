//! `sealane context`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const CONTEXT_HELP: &str = "\
A context holds what a client needs to reach one hub. The contexts are in
sealane/contexts.toml below $XDG_CONFIG_HOME or ~/.config, which only you can
read. `--context NAME` takes one for a command and wins over the environment.
SEALANE_CONTEXT or `sealane context use` choose one for all commands; then flags
and the environment win over it. The token and the CA of a context go to its own
hub and no other.";

/// `sealane context`.
#[derive(Debug, Args)]
#[command(after_long_help = CONTEXT_HELP)]
pub struct ContextArgs {
    /// The verb for contexts
    #[command(subcommand)]
    pub verb: ContextVerb,
}

/// The verbs of `sealane context`.
#[derive(Debug, Subcommand)]
pub enum ContextVerb {
    /// Add a context, or replace the one of that name
    Add(ContextAdd),
    /// Use a context in all commands that do not name another one
    Use {
        /// The name of the context
        #[arg(required_unless_present = "none")]
        name: Option<String>,
        /// Use none
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
    /// List the contexts; `*` marks the one in use
    Ls,
    /// Remove a context
    Rm {
        /// The name of the context
        name: String,
    },
}

/// `sealane context add`.
#[derive(Debug, Args)]
pub struct ContextAdd {
    /// The name of the context: letters, digits, `-`, `_` and `.`
    pub name: String,
    /// The address of the hub, for example `https://hub.example:9087`
    #[arg(long, short, value_name = "ADDRESS")]
    pub server: String,
    /// The file with the token in its first line
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The file of certificates to trust, PEM [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The codec on the wire: json, msgpack or cbor [default: json]
    #[arg(long)]
    pub codec: Option<String>,
    /// Use it from now on
    #[arg(long = "use")]
    pub is_used: bool,
}
