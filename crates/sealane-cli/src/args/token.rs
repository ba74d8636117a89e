//! `sealane token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sealane_message::Pattern;

use super::HubArgs;
use crate::times;

/// `sealane token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The node's data folder [default: as for `up`] [env: SEALANE_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
    /// The verb for tokens
    #[command(subcommand)]
    pub verb: TokenVerb,
}

/// The verbs of `sealane token`.
#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    /// Make a token and print it once; as soon as one exists, every client needs one
    New(TokenNew),
    /// List the names and rights of the tokens, never the tokens themselves
    Ls,
    /// Revoke a token; its open connections end within a second
    Revoke {
        /// Its name
        name: String,
    },
}

/// `sealane token new`.
#[derive(Debug, Args)]
pub struct TokenNew {
    /// The name of the token, for `ls` and `revoke`
    pub name: String,
    /// Allow reading topics that match, for example 'fleet/**'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub read: Vec<Pattern>,
    /// Allow publishing to topics that match; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub publish: Vec<Pattern>,
    /// Allow making, changing, purging and removing streams that match, and controlling their
    /// consumers; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub manage: Vec<Pattern>,
    /// Allow giving orders to groups: publishing to, making, changing and removing control streams
    /// that match, for example 'groups/*'. --publish and --manage do not allow it; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub orders: Vec<Pattern>,
    /// Allow seeing the metrics and the audit of the node
    #[arg(long)]
    pub observe: bool,
    /// Let the token expire after this time, for example 90d
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub expires: Option<Duration>,
    /// Write the token into this file, readable by you only, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}
