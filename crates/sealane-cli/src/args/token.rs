//! `sealane token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sealane_message::Pattern;

use crate::times;

/// `sealane token`.
#[derive(Debug, Args)]
pub struct Token {
    /// The node's data folder [default: as for `up`] [env: SEALANE_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<String>,
    /// What to do with tokens
    #[command(subcommand)]
    pub verb: TokenVerb,
}

/// The verbs of `sealane token`.
#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    /// Make a token and print it, once; from the first one on, everybody needs one
    New(TokenNew),
    /// List the tokens and what they grant, never the tokens themselves
    Ls,
    /// Take a token back: its open connections end within a second
    Revoke {
        /// Its name
        name: String,
    },
}

/// `sealane token new`.
#[derive(Debug, Args)]
pub struct TokenNew {
    /// What to call it, for lists and for `revoke`
    pub name: String,
    /// Let it read and subscribe to what matches, for example 'fleet/**'; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub read: Vec<Pattern>,
    /// Let it publish to what matches; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub publish: Vec<Pattern>,
    /// Let it make, change, purge and remove streams that match, and steer their consumers; may be
    /// repeated
    #[arg(long, value_name = "PATTERN")]
    pub manage: Vec<Pattern>,
    /// Let it publish to, make, change and remove the control streams of groups that match, for
    /// example 'groups/*', which --publish and --manage do not; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub orders: Vec<Pattern>,
    /// Let it see the node's own figures
    #[arg(long)]
    pub observe: bool,
    /// Let it end after so long, for example 90d
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub expires: Option<Duration>,
    /// Write the token into this file, which only you can read, and not to standard output
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}
