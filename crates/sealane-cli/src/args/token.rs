//! `sealane token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sealane_message::{InputError, Pattern};
use sealane_stream::ShareKind;

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
    /// Choose a share of what the node has, for example streams=1000; may be repeated. The kinds
    /// are streams, group_streams, delayed, keys, message_keys, sessions, consumers and in_flight.
    /// Without it the token may hold a quarter of each, and an only token all
    #[arg(long, value_name = "KIND=N", value_parser = share)]
    pub share: Vec<(ShareKind, u64)>,
    /// Let the token expire after this time, for example 90d
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub expires: Option<Duration>,
    /// Write the token into this file, readable by you only, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// Reads a share: its kind, and how many the token may have.
fn share(text: &str) -> Result<(ShareKind, u64), InputError> {
    let (name, limit) = text.split_once('=').ok_or("is no KIND=N, for example streams=1000")?;
    let kind = ShareKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = ShareKind::ALL.into_iter().map(ShareKind::name).collect();
        format!("`{name}` is no share; there are {}", names.join(", "))
    })?;
    let most = kind.limit();
    let limit = limit.parse().ok().filter(|limit| *limit <= most);
    let limit = limit.ok_or_else(|| format!("N is an integer from 0 to {most}"))?;
    Ok((kind, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_kind_and_no_more_than_there_is() {
        assert!(matches!(share("streams=0"), Ok((ShareKind::Streams, 0))));
        assert!(matches!(share("in_flight=7"), Ok((ShareKind::InFlight, 7))));
        for (text, said) in [
            ("streams", "is no KIND=N"),
            ("stream=1", "`stream` is no share; there are streams, group_streams"),
            ("streams=", "integer from 0 to 100000"),
            ("streams=-1", "integer from 0 to 100000"),
            ("streams=100001", "integer from 0 to 100000"),
            ("keys=99999999999999999999", "integer from 0 to 1000000"),
        ] {
            let refused = share(text).unwrap_err().to_string();
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
