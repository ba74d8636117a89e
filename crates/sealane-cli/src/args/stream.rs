//! `sealane stream` and `sealane ls`.

use std::time::Duration;

use clap::{Args, Subcommand};
use sealane::{Level, StartPosition};

use super::{HubArgs, key};
use crate::times;

/// `sealane ls`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those whose topic matches
    pub pattern: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane stream`.
#[derive(Debug, Args)]
pub struct StreamArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
    /// The verb for streams
    #[command(subcommand)]
    pub verb: StreamVerb,
}

/// The verbs of `sealane stream`.
#[derive(Debug, Subcommand)]
pub enum StreamVerb {
    /// List streams
    Ls {
        /// Only those whose topic matches
        pattern: Option<String>,
    },
    /// Show one stream
    Info {
        /// Its topic
        topic: String,
    },
    /// Remove a stream and all its messages, or all streams that match
    Rm {
        /// Its topic, or a pattern
        topic: String,
        /// Do not ask on a terminal
        #[arg(long, short)]
        yes: bool,
    },
    /// Remove the oldest messages of a stream, or all of them; the stream and its offsets stay
    Purge(StreamPurge),
    /// Make a stream, open or sealed, which it then stays
    New(StreamNew),
    /// Make a stream, or change its durability and bounds; bound all streams of a pattern
    Set(StreamSet),
    /// List the rules that `set` made for patterns, the most exact one first
    Rules,
    /// Remove the rule of a pattern, or a stream's own bounds, so that its rule holds again
    Unset {
        /// The pattern, or the stream's topic
        pattern: String,
        /// Remove a rule also where it names a single topic, as only programs make it
        #[arg(long)]
        rule: bool,
    },
    /// Show all that the hub can see of a stream
    Leaks {
        /// Its topic
        topic: String,
        /// Look at this many of the last messages
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10_000)]
        count: u64,
    },
}

/// `sealane stream purge`.
#[derive(Debug, Args)]
pub struct StreamPurge {
    /// Its topic
    pub topic: String,
    /// Remove the messages before this place: new, an offset, a time (RFC 3339, @MILLISECONDS) or
    /// an age (-7d) [default: new, which removes all]
    #[arg(long, alias = "seq", value_name = "PLACE", value_parser = times::start)]
    #[arg(allow_hyphen_values = true)]
    pub before: Option<StartPosition>,
    /// Keep this many of the last messages
    #[arg(long, value_name = "N", conflicts_with = "before")]
    pub keep: Option<u64>,
    /// Do not ask on a terminal
    #[arg(long, short)]
    pub yes: bool,
}

/// `sealane stream new`.
#[derive(Debug, Args)]
pub struct StreamNew {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub set: StreamSet,
    /// Seal the stream for this group: its tag of 8 hexadecimal digits, or its name in the key
    /// folder. The hub takes frames of that group only, and cannot read them
    #[arg(long, value_name = "GROUP")]
    pub sealed: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: key::KeysArgs,
}

/// `sealane stream set`.
#[derive(Debug, Args)]
pub struct StreamSet {
    /// Its topic, or for a rule a pattern. Of several rules the one with the longest run of names
    /// holds, then `*` before `**`
    pub topic: String,
    /// When a message counts as stored: memory, os or disk
    #[arg(long)]
    pub level: Option<Level>,
    /// Remove messages older than this, for example 7d; 0s removes none
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub max_age: Option<Duration>,
    /// Keep at most this many messages; 0 is no limit
    #[arg(long, value_name = "N")]
    pub max_count: Option<u64>,
    /// Keep at most this many bytes, for example 64MiB; 0 is no limit
    #[arg(long, value_name = "BYTES", value_parser = times::bytes)]
    pub max_bytes: Option<u64>,
}
