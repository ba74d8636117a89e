//! `sealane group`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sealane_group::{Fingerprint, Past};
use sealane_seal::{History, Suite};

use super::key::KeysArgs;

/// `sealane group`.
#[derive(Debug, Args)]
pub struct Group {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: KeysArgs,
    /// Publish what is ordered through this hub at once
    #[arg(long, short, global = true, value_name = "ADDRESS")]
    pub server: Option<String>,
    /// What to do with groups
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
        /// What becomes of keys whose messages are read
        #[arg(long, value_name = "HISTORY", default_value = "kept")]
        history: Keep,
        /// A group of two, for messages of class P
        #[arg(long)]
        pair: bool,
        /// Its cipher, for good
        #[arg(long, value_name = "SUITE", default_value = "aes-256-gcm")]
        suite: Cipher,
        /// How old the authority's newest heartbeat may be before members say so [default: any age]
        #[arg(long, value_name = "TIME", value_parser = crate::times::duration)]
        heartbeat_age: Option<std::time::Duration>,
        /// Without a heartbeat of that age members seal nothing but what is urgent
        #[arg(long, requires = "heartbeat_age")]
        strict: bool,
    },
    /// Write an invitation for the holder of a card; text on terminals, else bytes
    Invite {
        /// The group
        group: String,
        /// The card; `-` is standard input
        card: PathBuf,
        /// Which earlier epochs the new member can read
        #[arg(long, value_name = "EPOCHS", default_value = "all")]
        history: Handed,
        /// Write text that can be pasted, into files too
        #[arg(long)]
        text: bool,
        /// Write what the other members must be told into this file
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
        /// What the group is called here [default: as its authority calls it]
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
        /// Write what the members must be told into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Give all members a fresh secret under their keys; copies of their folders follow, see heal
    Rotate {
        /// The group
        group: String,
        /// Take the next secret from the present one: one short order, for any number of members
        #[arg(long)]
        advance: bool,
        /// Write what the members must be told into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Give members who made fresh cards a secret that no earlier copy of their folders follows to
    Heal {
        /// The group
        group: String,
        /// The fresh cards
        #[arg(required = true)]
        cards: Vec<PathBuf>,
        /// Remove members without a fresh card
        #[arg(long)]
        drop_silent: bool,
        /// Write what the members must be told into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Name a machine whose heartbeats count, and write what it has to know into a file
    Beater {
        /// The group
        group: String,
        /// Its card
        #[arg(required_unless_present = "none")]
        card: Option<PathBuf>,
        /// No heartbeats but this authority's count any more
        #[arg(long, conflicts_with = "card")]
        none: bool,
        /// Write what the members must be told into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Publish heartbeats: members know then that no order was held back
    Beat {
        /// The group that this is the authority of
        #[arg(required_unless_present = "beater")]
        group: Option<String>,
        /// Beat for the group of this file, as its beater
        #[arg(long, value_name = "FILE", conflicts_with = "group")]
        beater: Option<PathBuf>,
        /// Go on, once in this time [default: once]
        #[arg(long, value_name = "TIME", value_parser = crate::times::duration)]
        every: Option<std::time::Duration>,
    },
    /// Begin anew, after the authority's key folder was copied or restored
    Renew {
        /// The group
        group: String,
        /// Jump beyond this epoch, which the members have come to
        #[arg(long, value_name = "EPOCH")]
        beyond: Option<u64>,
        /// Write what the members must be told into this file
        #[arg(long, value_name = "FILE")]
        orders: Option<PathBuf>,
    },
    /// Write orders that were given, for members who missed some: sealane group orders GROUP > FILE
    Orders {
        /// The group
        group: String,
        /// Begin with the order of this number
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
    },
    /// Publish the orders that the hub does not have, where members read them: groups/TAG
    Publish {
        /// The group
        group: String,
    },
    /// Publish orders again that the hub may have lost, whether it has them or not
    Resend {
        /// The group
        group: String,
        /// Begin with the order of this number
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
    },
    /// Erase the keys of the epochs before one: their messages cannot be read here any more
    Forget {
        /// The group
        group: String,
        /// The first epoch whose keys stay
        #[arg(long, value_name = "EPOCH")]
        before: u64,
    },
    /// Write all that a relay may know of the group, its tags: sealane group relay-card GROUP >
    /// FILE
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

/// What becomes of keys whose messages are read.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Keep {
    /// They are kept: history can be read
    Kept,
    /// They are erased: a thief of the device reads no earlier epoch
    ForwardSecret,
}

impl From<Keep> for History {
    fn from(keep: Keep) -> History {
        match keep {
            Keep::Kept => History::Kept,
            Keep::ForwardSecret => History::ForwardSecret,
        }
    }
}

/// A group's cipher.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Cipher {
    /// AES-256-GCM, fast where the processor has AES
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    /// ChaCha20-Poly1305, fast everywhere
    #[value(name = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

impl From<Cipher> for Suite {
    fn from(cipher: Cipher) -> Suite {
        match cipher {
            Cipher::Aes256Gcm => Suite::Aes256Gcm,
            Cipher::ChaCha20Poly1305 => Suite::ChaCha20Poly1305,
        }
    }
}

/// Which epochs a new member is handed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Handed {
    /// All that the authority holds
    All,
    /// A new one, which is begun for the newcomer
    None,
}

impl From<Handed> for Past {
    fn from(handed: Handed) -> Past {
        match handed {
            Handed::All => Past::All,
            Handed::None => Past::None,
        }
    }
}
