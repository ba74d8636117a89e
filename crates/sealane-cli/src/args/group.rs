//! `sealane group`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sealane_group::{Fingerprint, PastSecrets};
use sealane_seal::{History, Suite};

use super::key::KeysArgs;

/// `sealane group`.
#[derive(Debug, Args)]
pub struct GroupArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: KeysArgs,
    /// Publish the orders of this command through this hub at once
    #[arg(long, short, global = true, value_name = "ADDRESS")]
    pub server: Option<String>,
    /// The verb for groups
    #[command(subcommand)]
    pub verb: GroupVerb,
}

/// The verbs of `sealane group`.
#[derive(Debug, Subcommand)]
pub enum GroupVerb {
    /// Make a group whose authority is this identity
    New {
        /// Its name: a-z, 0-9, `-`, `_` and `.`, first a letter
        name: String,
        /// The fate of a key whose messages were read
        #[arg(long, value_name = "HISTORY", default_value = "kept")]
        history: GroupHistoryArg,
        /// A group of two, for messages of class P
        #[arg(long)]
        pair: bool,
        /// The cipher, which stays
        #[arg(long, value_name = "SUITE", default_value = "aes-256-gcm")]
        suite: GroupCipherArg,
        /// The age of the newest heartbeat at which members warn [default: none]
        #[arg(long, value_name = "TIME", value_parser = crate::times::duration)]
        heartbeat_age: Option<std::time::Duration>,
        /// Let members seal only urgent messages when the newest heartbeat is older than that
        #[arg(long, requires = "heartbeat_age")]
        strict: bool,
    },
    /// Write an invitation for the holder of a card; text on a terminal, else bytes
    Invite {
        /// The group
        group: String,
        /// The card; `-` is standard input
        card: PathBuf,
        /// Which earlier epochs the new member can read
        #[arg(long, value_name = "EPOCHS", default_value = "all")]
        history: InvitedEpochsArg,
        /// Write text that can be pasted, also into a file
        #[arg(long)]
        text: bool,
        /// Write the order for the other members into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Join by an invitation
    Join {
        /// The invitation; `-` is standard input
        file: PathBuf,
        /// Refuse any other authority than the one with this fingerprint
        #[arg(long, value_name = "FINGERPRINT")]
        authority: Option<Fingerprint>,
        /// The name of the group in this folder [default: the name that its authority chose]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
    /// Remove members: the others get a fresh secret
    Revoke {
        /// The group
        group: String,
        /// Their names, slots, or the beginning of their keys
        #[arg(required = true)]
        members: Vec<String>,
        /// Write the orders for the members into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Give all members a new secret; a stolen copy of a member's folder can follow (see heal)
    Rotate {
        /// The group
        group: String,
        /// Derive the new secret from the present one: one short order for any number of members
        #[arg(long)]
        advance: bool,
        /// Write the orders for the members into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Give members with fresh cards a new secret that no earlier copy of their folders can follow
    Heal {
        /// The group
        group: String,
        /// The fresh cards
        #[arg(required = true)]
        cards: Vec<PathBuf>,
        /// Remove members without a fresh card
        #[arg(long)]
        drop_silent: bool,
        /// Write the orders for the members into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Let another machine send heartbeats, and write the file that it needs
    Beater {
        /// The group
        group: String,
        /// The card of that machine
        #[arg(required_unless_present = "none")]
        card: Option<PathBuf>,
        /// Accept heartbeats of this authority only
        #[arg(long, conflicts_with = "card")]
        none: bool,
        /// Write the orders for the members into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Publish heartbeats, by which members know that no order was held back
    Beat {
        /// The group that this is the authority of
        #[arg(required_unless_present = "beater")]
        group: Option<String>,
        /// Send heartbeats for the group of this file
        #[arg(long, value_name = "FILE", conflicts_with = "group")]
        beater: Option<PathBuf>,
        /// Repeat at this interval [default: once]
        #[arg(long, value_name = "TIME", value_parser = crate::times::duration)]
        every: Option<std::time::Duration>,
    },
    /// Make a new beginning after the key folder of the authority was copied or restored
    Renew {
        /// The group
        group: String,
        /// Go on after this epoch, which the members have reached
        #[arg(long, value_name = "EPOCH")]
        beyond: Option<u64>,
        /// Write the orders for the members into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Write earlier orders to standard output, for members who missed some
    Orders {
        /// The group
        group: String,
        /// Begin with the order of this number
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
    },
    /// Publish the orders that the hub does not have yet, to groups/TAG
    Publish {
        /// The group
        group: String,
    },
    /// Publish orders again, whether the hub has them or not
    Resend {
        /// The group
        group: String,
        /// Begin with the order of this number
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
    },
    /// Erase the keys of earlier epochs; their messages can no longer be read here
    Forget {
        /// The group
        group: String,
        /// The first epoch whose keys stay
        #[arg(long, value_name = "EPOCH")]
        before: u64,
    },
    /// Write what a relay needs of the group, its tags and who orders, to standard output
    RelayCard {
        /// The group
        group: String,
    },
    /// Obey the orders in a file
    Apply {
        /// The group
        group: String,
        /// The orders; `-` is standard input
        file: PathBuf,
    },
    /// List groups
    Ls,
    /// Show a group's members, epochs and authority
    Show {
        /// The group
        group: String,
    },
    /// Forget a group and its keys in this folder
    Leave {
        /// The group
        group: String,
        /// Do not ask on a terminal
        #[arg(long, short)]
        yes: bool,
    },
}

/// The fate of keys whose messages are read.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GroupHistoryArg {
    /// They are kept: history can be read
    Kept,
    /// They are erased: a thief of the device reads no earlier epoch
    ForwardSecret,
}

impl From<GroupHistoryArg> for History {
    fn from(keep: GroupHistoryArg) -> History {
        match keep {
            GroupHistoryArg::Kept => History::Kept,
            GroupHistoryArg::ForwardSecret => History::ForwardSecret,
        }
    }
}

/// A group's cipher.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GroupCipherArg {
    /// AES-256-GCM, fast where the processor has AES
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    /// ChaCha20-Poly1305, fast everywhere
    #[value(name = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

impl From<GroupCipherArg> for Suite {
    fn from(cipher: GroupCipherArg) -> Suite {
        match cipher {
            GroupCipherArg::Aes256Gcm => Suite::Aes256Gcm,
            GroupCipherArg::ChaCha20Poly1305 => Suite::ChaCha20Poly1305,
        }
    }
}

/// Which epochs a new member is handed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum InvitedEpochsArg {
    /// All that the authority holds
    All,
    /// A new one, which is begun for the newcomer
    None,
}

impl From<InvitedEpochsArg> for PastSecrets {
    fn from(handed: InvitedEpochsArg) -> PastSecrets {
        match handed {
            InvitedEpochsArg::All => PastSecrets::All,
            InvitedEpochsArg::None => PastSecrets::None,
        }
    }
}
