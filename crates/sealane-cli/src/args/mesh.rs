//! `sealane mesh`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::key::KeysArgs;

/// `sealane mesh`.
#[derive(Debug, Args)]
pub struct Mesh {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: KeysArgs,
    /// What to do
    #[command(subcommand)]
    pub verb: MeshVerb,
}

/// The verbs of `sealane mesh`.
#[derive(Debug, Subcommand)]
pub enum MeshVerb {
    /// Give this machine an interface: what is sent there is sealed to the members behind it
    Up(Up),
}

/// `sealane mesh up`.
#[derive(Debug, Args)]
pub struct Up {
    /// The group whose members talk
    pub group: String,
    /// Its links, neighbours and routes, and the interface: TOML, as spec/link.md says. SIGHUP
    /// reads it again
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
}
