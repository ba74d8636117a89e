//! `sealane doc` and `sealane emergency`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `sealane doc`.
#[derive(Debug, Args)]
pub struct DocArgs {
    /// The verb
    #[command(subcommand)]
    pub verb: DocVerb,
}

/// The running `sealane mesh up`.
#[derive(Debug, Args)]
pub struct RunningMeshArgs {
    /// The configuration of the `sealane mesh up` that runs on this machine
    #[arg(value_name = "CONFIG")]
    pub file: PathBuf,
}

/// The verbs of `sealane doc`.
#[derive(Debug, Subcommand)]
pub enum DocVerb {
    /// List all documents
    Ls(RunningMeshArgs),
    /// Show the documents of one type
    Get {
        #[command(flatten)]
        #[expect(missing_docs, reason = "flattened")]
        held: RunningMeshArgs,
        /// Its name or number: location, vitals, heartbeat, counter, 64 to 79
        data_type: String,
        /// That of this member alone
        #[arg(long)]
        slot: Option<u16>,
    },
    /// Write the own document of a type
    Set {
        #[command(flatten)]
        #[expect(missing_docs, reason = "flattened")]
        held: RunningMeshArgs,
        /// Its name or number: location, vitals, heartbeat, counter, 64 to 79
        data_type: String,
        /// A JSON map as spec/document.md has it, or text for the types of applications
        value: String,
    },
    /// Add to the own total of a counter
    Add {
        #[command(flatten)]
        #[expect(missing_docs, reason = "flattened")]
        held: RunningMeshArgs,
        /// Which one: 0 to 255
        counter: u8,
        /// How much
        amount: u64,
    },
    /// Say a line of chat to the team
    Say {
        #[command(flatten)]
        #[expect(missing_docs, reason = "flattened")]
        held: RunningMeshArgs,
        /// The line
        text: String,
    },
    /// Show what is new, and commands to this machine, until Ctrl-C
    Watch(RunningMeshArgs),
}

/// `sealane emergency`.
#[derive(Debug, Args)]
pub struct EmergencyArgs {
    /// The verb
    #[command(subcommand)]
    pub verb: EmergencyVerb,
}

/// The verbs of `sealane emergency`.
#[derive(Debug, Subcommand)]
pub enum EmergencyVerb {
    /// Call for help
    Raise {
        #[command(flatten)]
        #[expect(missing_docs, reason = "flattened")]
        held: RunningMeshArgs,
        /// medical, fire, attack, lost or trapped
        #[arg(long)]
        kind: Option<String>,
        /// Text that helpers should read before they come
        #[arg(long)]
        text: Option<String>,
        /// Where: latitude and longitude in degrees
        #[arg(long, num_args = 2, value_names = ["LATITUDE", "LONGITUDE"],
              allow_negative_numbers = true)]
        position: Option<Vec<f64>>,
    },
    /// Say that this member has seen a call
    Ack(EmergencyCallArgs),
    /// Say that a call is over
    Clear(EmergencyCallArgs),
    /// List the calls that are known, and who has acknowledged them
    Ls(RunningMeshArgs),
}

/// A call for help.
#[derive(Debug, Args)]
pub struct EmergencyCallArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub held: RunningMeshArgs,
    /// The slot of the member that called
    pub slot: u16,
    /// The number of its call
    pub number: u32,
}
