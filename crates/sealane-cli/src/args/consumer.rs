//! `sealane consumer` and `sealane delayed`.

use std::ops::RangeInclusive;

use clap::{Args, Subcommand};
use sealane::StartPosition;

use super::HubArgs;
use crate::times;

const CONSUMER_HELP: &str = "\
The first `sealane sub TOPIC --consumer NAME` makes a consumer; it stays when
its members go. Each command here is stored before it is answered. A token
needs `read` to look, and `manage` for the rest.";

/// `sealane consumer`.
#[derive(Debug, Args)]
#[command(after_long_help = CONSUMER_HELP)]
pub struct ConsumerArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
    /// The verb for consumers
    #[command(subcommand)]
    pub verb: CliConsumerVerb,
}

/// Which consumer.
#[derive(Debug, Args)]
pub struct ConsumerNameArgs {
    /// The stream's topic
    pub topic: String,
    /// The consumer's name
    #[arg(required_unless_present = "inbox", conflicts_with = "inbox")]
    pub name: Option<String>,
    /// The stream's inbox, which has no name
    #[arg(long)]
    pub inbox: bool,
}

impl ConsumerNameArgs {
    /// As the hub knows it: the inbox has the empty name.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// The verbs of `sealane consumer`.
#[derive(Debug, Subcommand)]
pub enum CliConsumerVerb {
    /// List consumers with their place, their lag, and how old the oldest unfinished message is
    #[command(alias = "list")]
    Ls {
        /// The stream's topic, or a pattern of several [default: all streams]
        topic: Option<String>,
    },
    /// Show one consumer, and which member has which message since when
    Info {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
    },
    /// Deliver nothing more until `resume`; messages under way may be finished
    Pause {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
    },
    /// Deliver messages again after `pause`
    Resume {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
    },
    /// Move a consumer to another place in the stream
    Reset {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
        /// first, new, an offset, a time (RFC 3339, @MILLISECONDS) or an age (-10m)
        #[arg(long, value_name = "PLACE", value_parser = times::start)]
        #[arg(allow_hyphen_values = true)]
        to: StartPosition,
    },
    /// Count messages as done that the consumer cannot process
    Skip {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
        /// An offset, or the first and the last one: 12, or 12-15
        #[arg(long = "offset", value_name = "OFFSET", value_parser = times::offsets)]
        offsets: RangeInclusive<u64>,
    },
    /// Deliver unfinished messages again at once, whichever member has them
    Redeliver {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
    },
    /// Remove a consumer and its place in the stream; its members are told
    #[command(alias = "del")]
    Rm {
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        which: ConsumerNameArgs,
        /// Do not ask on a terminal
        #[arg(long, short)]
        yes: bool,
    },
}

/// `sealane delayed`.
#[derive(Debug, Args)]
pub struct DelayedArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
    /// The verb for delayed messages
    #[command(subcommand)]
    pub verb: DelayedVerb,
}

/// The verbs of `sealane delayed`.
#[derive(Debug, Subcommand)]
pub enum DelayedVerb {
    /// List the delayed messages of a stream, the next one first
    #[command(alias = "list")]
    Ls {
        /// The stream's topic
        topic: String,
    },
    /// Cancel a delayed message
    #[command(alias = "rm")]
    Cancel {
        /// The stream's topic
        topic: String,
        /// The id, as `pub --delay` and `delayed ls` print it
        id: String,
    },
}
