//! `sealane key`, and what every verb takes that opens keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Where keys are, and what opens them.
#[derive(Debug, Args, Clone, Default)]
pub struct KeysArgs {
    /// The key folder [default: sealane/keys in $XDG_CONFIG_HOME or ~/.config] [env: SEALANE_KEYS]
    #[arg(long, global = true, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Read the passphrase from the first line of this file [default: the variable
    /// SEALANE_PASSPHRASE, else the terminal]
    #[arg(long, global = true, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
}

/// `sealane key`.
#[derive(Debug, Args)]
pub struct KeyCommandArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: KeysArgs,
    /// The verb for keys
    #[command(subcommand)]
    pub verb: KeyVerb,
}

/// The verbs of `sealane key`.
#[derive(Debug, Subcommand)]
pub enum KeyVerb {
    /// Make an identity: a key pair to sign with, and one that others encrypt to
    New {
        /// The name on its cards [default: the name of this machine]
        name: Option<String>,
        /// Protect all keys with a passphrase
        #[arg(long)]
        passphrase: bool,
    },
    /// Show the identity's name and fingerprint, and nothing secret
    Show {
        /// The public key too: one line that others encrypt to
        #[arg(long)]
        public: bool,
    },
    /// Write a card for one invitation to a group: text on a terminal, bytes elsewhere
    Card {
        /// Another name on the card than the identity's
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Write text that can be pasted, also into a file
        #[arg(long)]
        text: bool,
    },
    /// Change the passphrase of the key folder
    Passphrase {
        /// Read the new passphrase from the first line of this file [default: it is typed]
        #[arg(long, value_name = "FILE")]
        new: Option<PathBuf>,
    },
    /// Write a backup to standard output, protected by the passphrase of the folder
    Backup,
    /// Make a key folder from a backup
    Restore {
        /// The backup; `-` is standard input
        file: PathBuf,
    },
}
