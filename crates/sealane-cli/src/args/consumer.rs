//! `sealane consumer` and `sealane delayed`.

use std::ops::RangeInclusive;

use clap::{Args, Subcommand};
use sealane::Start;

use super::Hub;
use crate::times;

const CONSUMER_HELP: &str = "\
A consumer is made by its first member, `sealane sub TOPIC --consumer NAME`, and outlives it. What
is done here is stored before it is answered. A token needs `read` to look, `manage` for the rest.

Examples:
  sealane consumer ls orders
  sealane consumer pause orders billing
  sealane consumer reset orders billing --to -1h
  sealane consumer skip orders billing --offset 17";

/// `sealane consumer`.
#[derive(Debug, Args)]
#[command(after_long_help = CONSUMER_HELP)]
pub struct Consumer {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: Hub,
    /// What to do with consumers
    #[command(subcommand)]
    pub verb: ConsumerVerb,
}

/// Which consumer.
#[derive(Debug, Args)]
pub struct Which {
    /// The stream's topic
    pub topic: String,
    /// The consumer's name
    #[arg(required_unless_present = "inbox", conflicts_with = "inbox")]
    pub name: Option<String>,
    /// The stream's inbox, which has no name
    #[arg(long)]
    pub inbox: bool,
}

impl Which {
    /// As the hub knows it: the inbox has the empty name.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// The verbs of `sealane consumer`.
#[derive(Debug, Subcommand)]
pub enum ConsumerVerb {
    /// List the consumers of a stream: how far they are, and how far behind
    #[command(alias = "list")]
    Ls {
        /// The stream's topic
        topic: String,
    },
    /// Show one consumer: who has what since when, and what is not done
    Info {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
    },
    /// Give its members nothing more until it is resumed; what they have they may finish
    Pause {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
    },
    /// Give its members messages again
    Resume {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
    },
    /// Let it go on elsewhere, as if it had just been made there
    Reset {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
        /// first, new, an offset, a time (RFC 3339, @MILLISECONDS) or so long ago (-10m)
        #[arg(long, value_name = "PLACE", value_parser = times::start)]
        #[arg(allow_hyphen_values = true)]
        to: Start,
    },
    /// Count messages as done that it cannot get done
    Skip {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
        /// An offset, or the first and the last one: 12, or 12-15
        #[arg(long = "offset", value_name = "OFFSET", value_parser = times::offsets)]
        offsets: RangeInclusive<u64>,
    },
    /// Deliver at once again what was delivered and is not done, whoever has it
    Redeliver {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
    },
    /// Remove a consumer with all that it has not finished; its members are told
    #[command(alias = "del")]
    Rm {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: Which,
        /// Do not ask on a terminal
        #[arg(long, short)]
        yes: bool,
    },
}

/// `sealane delayed`.
#[derive(Debug, Args)]
pub struct Delayed {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: Hub,
    /// What to do with messages that are held back
    #[command(subcommand)]
    pub verb: DelayedVerb,
}

/// The verbs of `sealane delayed`.
#[derive(Debug, Subcommand)]
pub enum DelayedVerb {
    /// List what is held back for a stream, in the order in which it comes
    #[command(alias = "list")]
    Ls {
        /// The stream's topic
        topic: String,
    },
    /// Cancel what is held back under an id: it never comes
    #[command(alias = "rm")]
    Cancel {
        /// The stream's topic
        topic: String,
        /// The id, as `pub --delay` and `delayed ls` print it
        id: String,
    },
}
