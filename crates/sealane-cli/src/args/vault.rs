//! `sealane vault`.

mod put;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use sealane_message::InputError;
use sealane_vault::VerifyPart;

pub use put::{ChunkProfileArgs, CompressionArg, VaultPut};

use super::key::KeysArgs;
use crate::times;

const AFTER_HELP: &str = "\
The vault is a folder or s3://BUCKET/PREFIX, with credentials, region and
endpoint from the usual AWS_ variables. It opens with a passphrase (typed on
the terminal, from --passphrase-file or from SEALANE_PASSPHRASE), a recovery
code, an identity (`sealane key`), or the key of a writer, which adds and cannot
read. No secret is ever taken from the command line.

A writer's key does not stop a host from deleting what the store lets it delete:
use the object lock or append-only credentials of the store. `prune` needs a key
that reads.";

/// `sealane vault`.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct VaultArgs {
    /// The vault: a folder, or s3://BUCKET/PREFIX
    #[arg(long, global = true, value_name = "PLACE", env = "SEALANE_VAULT")]
    pub vault: Option<String>,
    /// The folder of manifests and of the heads that this machine has seen
    /// [default: sealane/vaults in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, global = true, value_name = "DIR", env = "SEALANE_VAULT_STATE")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: KeysArgs,
    /// Unlock with the identity of the key folder and its passphrase
    #[arg(long, global = true)]
    pub identity: bool,
    /// Unlock with the recovery code in the first line of a file; `-` is standard input
    #[arg(long, global = true, value_name = "FILE")]
    #[arg(conflicts_with_all = ["passphrase_file", "identity"])]
    pub recovery_file: Option<PathBuf>,
    /// Unlock with the writer's key in a file
    #[arg(long, global = true, value_name = "FILE")]
    #[arg(conflicts_with_all = ["passphrase_file", "recovery_file", "identity"])]
    pub key_file: Option<PathBuf>,
    /// The head that the store must have, as `status` prints it, for a machine that remembers none
    #[arg(long, global = true, value_name = "HEAD")]
    pub expect_head: Option<String>,
    /// The vault and owner that the place must hold, as `status` and the recovery kit print them
    #[arg(long, global = true, value_name = "VAULT:OWNER")]
    pub expect: Option<String>,
    /// Read a copy that lags, or a store that was rolled back, from this head on; with a verb that
    /// writes, give up what is missing there
    #[arg(long, global = true, value_name = "HEAD")]
    pub accept_rollback: Option<String>,
    /// Print no progress, and no line that only says what was done
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Send no more than so many bytes a second to a bucket: 500KiB, or 2MiB
    #[arg(long, global = true, value_name = "RATE", value_parser = times::bytes)]
    pub limit_upload: Option<u64>,
    /// How long to wait for a bucket that does not answer; 0s gives up with the first few tries
    #[arg(long, global = true, value_name = "TIME", value_parser = times::duration)]
    #[arg(default_value = "15m")]
    pub retry: Duration,
    /// The verb
    #[command(subcommand)]
    pub verb: VaultVerb,
}

/// The verbs of `sealane vault`.
#[derive(Debug, Subcommand)]
pub enum VaultVerb {
    /// Make a vault, and print its recovery code
    Init(VaultInit),
    /// Back up files and folders as the next snapshot
    #[command(visible_alias = "backup")]
    Put(VaultPut),
    /// Restore a snapshot or a part of it, or write a range of a file to standard output
    #[command(visible_aliases = ["restore", "extract"])]
    Get(VaultGet),
    /// List snapshots, or what one of them keeps
    #[command(visible_alias = "snapshots")]
    Ls(VaultLs),
    /// Find paths in the snapshots of this host and the owner
    Find(VaultFind),
    /// Show what the vault holds, its head, and the last proven restore
    #[command(visible_aliases = ["stats", "info"])]
    Status,
    /// Check that the chain is whole and that all that its snapshots need is there
    #[command(visible_alias = "check")]
    Verify(VaultVerify),
    /// Repair what can be repaired, and name what cannot
    Repair {
        /// Sources to put again: what of them is damaged in the vault is kept anew
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Prove that the vault restores: restore files, compare them, and sign a report
    Drill(VaultDrill),
    /// Remove snapshots by rules, and what none of the others needs
    Prune(VaultPrune),
    /// Remove the snapshots of these numbers, and what none of the others needs
    #[command(visible_alias = "delete")]
    Forget(VaultForget),
    /// Show the paths in which two snapshots differ
    Diff(VaultDiff),
    /// Write a file of a snapshot to standard output, or a folder as a tar archive
    #[command(visible_alias = "export-tar")]
    Dump(VaultDump),
    /// Restore what is whole from a damaged vault, with nothing but its objects and a key
    Recover {
        /// Where to restore to; it need not exist
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// The snapshot's number [default: the newest that is readable, of this host and the owner
        /// if there is one]
        #[arg(long, value_name = "N")]
        snapshot: Option<u64>,
        /// Only these paths and what is in them
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        trust: RestoreTrust,
    },
    /// Explain one object of the store
    Inspect {
        /// Its key, for example snapshots/0000000001; none lists all objects
        key: Option<String>,
    },
    /// Keep the content of another program's store as the next snapshot
    Import(VaultImport),
    /// Manage what unlocks the vault
    Key(VaultKey),
    /// Show all that the storage provider can see
    Leaks,
}

/// `sealane vault drill`.
#[derive(Debug, Args)]
pub struct VaultDrill {
    /// The snapshot's number [default: the newest]
    #[arg(long, value_name = "N")]
    pub snapshot: Option<u64>,
    /// About how many files, others each time
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "all")]
    pub sample: u64,
    /// All files
    #[arg(long)]
    pub all: bool,
    /// An empty folder to restore into, which is left [default: a temporary one, which is removed]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Take an older snapshot if a newer one cannot be read
    #[arg(long, conflicts_with = "snapshot")]
    pub allow_older: bool,
}

/// The parts of a snapshot that root takes from its signer.
#[derive(Debug, Args, Clone, Copy)]
pub struct RestoreTrust {
    /// Leave everything to the user who restores
    #[arg(long)]
    pub no_owner: bool,
    /// Take owners, setuid bits, devices, ACLs and capabilities from the snapshot of a writer, too
    #[arg(long, conflicts_with = "no_owner")]
    pub trust_modes: bool,
}

/// The snapshots that are meant where no number says which.
#[derive(Debug, Args, Clone)]
pub struct SnapshotOwnerArgs {
    /// Of this host [default: this machine]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Of this writer, by its slot as `key ls` prints it [default: the owner]
    #[arg(long, value_name = "SLOT")]
    pub signer: Option<String>,
    /// Of all hosts and signers, or of those that are named
    #[arg(long)]
    pub anyone: bool,
}

/// `sealane vault ls`.
#[derive(Debug, Args)]
pub struct VaultLs {
    /// The snapshot's number, or `latest`: the newest of this host and the owner that has the path;
    /// none lists the snapshots
    pub snapshot: Option<String>,
    /// Only what is in this path
    pub path: Option<PathBuf>,
    /// For `latest`, take an older snapshot if a newer one cannot be read
    #[arg(long)]
    pub allow_older: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub whose: SnapshotOwnerArgs,
}

/// `sealane vault find`.
#[derive(Debug, Args)]
pub struct VaultFind {
    /// A pattern, as a line of a .gitignore: *.pdf, or accounts/2024/*
    pub pattern: String,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub whose: SnapshotOwnerArgs,
}

const PRUNE_HELP: &str = "\
Rules count within a group, so that no host, signer or folder uses up what is
kept of another. The newest snapshot of each group is always kept. Hours, days,
weeks, months and years are those of the calendar in UTC, by the time that a
snapshot names. Pruning needs a key that reads.";

/// `sealane vault prune`.
#[derive(Debug, Args)]
#[command(after_help = PRUNE_HELP)]
pub struct VaultPrune {
    /// Keep so many of the newest snapshots of each group
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub keep_last: usize,
    /// Keep the newest of each of so many hours
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub keep_hourly: usize,
    /// Keep the newest of each of so many days
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub keep_daily: usize,
    /// Keep the newest of each of so many weeks, which begin on Monday
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub keep_weekly: usize,
    /// Keep the newest of each of so many months of the calendar
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub keep_monthly: usize,
    /// Keep the newest of each of so many years
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub keep_yearly: usize,
    /// Keep all that are no older than this before the newest of their group: 30d, or 1year 6months
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub keep_within: Option<Duration>,
    /// Keep all with this tag; may be given several times
    #[arg(long, value_name = "TAG")]
    pub keep_tag: Vec<String>,
    /// The attributes that make a group: signer, host, paths and tags, with commas between them, or
    /// none. Without signer, a writer's snapshots count as those of the host that they name
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "signer,host,paths")]
    #[arg(hide_possible_values = true)]
    pub group_by: Vec<GroupByArg>,
    /// Give up a snapshot that is missing or cannot be read, and what only it needs; without this
    /// nothing is removed while there is one. May be given several times
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub give_up: Vec<u64>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub act: PruneActArgs,
}

/// How snapshots are removed.
#[derive(Debug, Args, Clone, Copy)]
pub struct PruneActArgs {
    /// Remove data at once instead of a day later; only where nobody puts at the same time
    #[arg(long)]
    pub now: bool,
    /// Say what would be removed and why, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask on a terminal
    #[arg(long, short)]
    pub yes: bool,
}

/// `sealane vault forget`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without a number it takes the rules of `prune`, and does the same.")]
pub struct VaultForget {
    /// The snapshots' numbers, as `ls` prints them
    #[arg(value_name = "SNAPSHOT")]
    pub snapshots: Vec<u64>,
    /// As restic has it: data that nothing needs is removed anyway
    #[arg(long = "prune")]
    pub with_data: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub prune: VaultPrune,
}

/// `sealane vault verify`.
#[derive(Debug, Args)]
pub struct VaultVerify {
    /// Read every byte of every pack, too
    #[arg(long, conflicts_with = "subset")]
    pub read_data: bool,
    /// Read every byte of a part of the packs: 1/7 on one day, 2/7 on the next
    #[arg(long, alias = "read-data-subset", value_name = "PART")]
    pub subset: Option<VerifyPart>,
}

/// `sealane vault diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
+ added, - removed, M other content, T another kind of file, U another mode,
owner or time. Nothing of the files is read.")]
pub struct VaultDiff {
    /// The one snapshot's number
    #[arg(value_name = "SNAPSHOT")]
    pub before: String,
    /// The other's, or `latest`: the newest of this host and the owner
    #[arg(value_name = "OTHER", default_value = "latest")]
    pub after: String,
    /// Only these paths and what is in them
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub whose: SnapshotOwnerArgs,
}

/// `sealane vault dump`.
#[derive(Debug, Args)]
pub struct VaultDump {
    /// The snapshot's number, or `latest`: the newest of this host and the owner that has the path
    pub snapshot: String,
    /// A file, which is written as it is, or a folder, which becomes an archive; / is all of it
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// For `latest`, take an older snapshot if a newer one cannot be read
    #[arg(long)]
    pub allow_older: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub whose: SnapshotOwnerArgs,
}

/// An attribute that the snapshots of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupByArg {
    /// The member that signed them.
    Signer,
    /// The host that they name.
    Host,
    /// Where the files were.
    Paths,
    /// Their tags.
    Tags,
    /// Nothing: all snapshots are one group.
    None,
}

/// `sealane vault init`.
#[derive(Debug, Args)]
pub struct VaultInit {
    /// Whether names can be read in the store without a key: sealed or plain
    #[arg(long, value_name = "KIND", default_value = "sealed", hide_possible_values = true)]
    pub metadata: MetadataArg,
    /// Print no recovery code: without the passphrase everything is lost
    #[arg(long)]
    pub no_recovery: bool,
    /// Make it although this machine remembers another vault in that place
    #[arg(long)]
    pub replace: bool,
}

/// Whether names can be read.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum MetadataArg {
    /// Only with a key.
    Sealed,
    /// By anyone who reads the store.
    Plain,
}

/// `sealane vault get`.
#[derive(Debug, Args)]
pub struct VaultGet {
    /// The snapshot's number, or `latest`: the newest of this host and the owner that has the paths
    #[arg(default_value = "latest")]
    pub snapshot: String,
    /// Only these paths and what is in them
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Where to restore to; it need not exist
    #[arg(long, alias = "target", value_name = "DIR")]
    #[arg(required_unless_present_any = ["range", "dry_run"])]
    pub to: Option<PathBuf>,
    /// Write bytes of the one file named to standard output: OFFSET+LENGTH, for example 10MiB+4KiB
    #[arg(long, value_name = "RANGE", value_parser = range, conflicts_with = "to")]
    pub range: Option<ByteRange>,
    /// Replace files that are there and differ
    #[arg(long)]
    pub overwrite: bool,
    /// For `latest`, take an older snapshot if a newer one cannot be read
    #[arg(long)]
    pub allow_older: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub trust: RestoreTrust,
    /// Say what would be restored, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub whose: SnapshotOwnerArgs,
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy)]
pub struct ByteRange {
    /// Where they begin.
    pub offset: u64,
    /// How many they are.
    pub length: u64,
}

fn range(text: &str) -> Result<ByteRange, InputError> {
    let (offset, length) = text.split_once('+').ok_or("write it as OFFSET+LENGTH")?;
    Ok(ByteRange { offset: times::bytes(offset)?, length: times::bytes(length)? })
}

/// `sealane vault import`.
#[derive(Debug, Args)]
pub struct VaultImport {
    /// The program whose store it is
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// The stores that can be imported.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// Blobs of n2s, of every form that is JSON; what fails is named, blob by blob
    N2s {
        /// The folder of the blobs
        store: PathBuf,
        /// Take the passphrase of the blobs from the first line of a file
        #[arg(long, value_name = "FILE")]
        blob_passphrase_file: Option<PathBuf>,
        /// A note that the snapshot carries
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        #[command(flatten)]
        #[expect(
            missing_docs,
            reason = "flattened, and its own documentation would replace the verb's"
        )]
        profile: ChunkProfileArgs,
    },
}

/// `sealane vault key`.
#[derive(Debug, Args)]
pub struct VaultKey {
    /// The verb for keys
    #[command(subcommand)]
    pub verb: VaultKeyVerb,
}

/// The verbs of `sealane vault key`.
#[derive(Debug, Subcommand)]
pub enum VaultKeyVerb {
    /// List what unlocks the vault
    Ls,
    /// Add a passphrase
    Passphrase {
        /// A file with the new passphrase in its first line [default: asked for]
        #[arg(long, value_name = "FILE")]
        new_passphrase_file: Option<PathBuf>,
        /// The slot's label, for the member that opens it
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
    },
    /// Add a recovery code, and print the recovery kit
    Recovery,
    /// Add an identity, by its public key in text (`sealane key show --public`)
    Identity {
        /// The public key: one word that begins with sealane1
        public: String,
    },
    /// Add a writer: a key that adds to the vault and cannot read it
    #[command(visible_alias = "write-only")]
    Writer {
        /// Where to write the key
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// The slot's label, for the owner
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
    },
    /// Change the main key: copies of earlier slots and keys do not open later snapshots
    Rotate(KeyRotate),
    /// Remove a slot, or end a writer; a copy of the slot still opens the vault (see `key rotate`)
    Rm {
        /// The slot's id, as `key ls` prints it
        id: String,
    },
}

/// `sealane vault key rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Afterwards three things open the vault: what opened it for this command, the new
recovery code, and the identities named with --also. All other passphrases,
codes and identities no longer open it; writers go on. Other machines follow by
themselves. Run the command again if it was interrupted.")]
pub struct KeyRotate {
    /// An identity that opens it afterwards, too, by its public key in text; may be repeated
    #[arg(long, value_name = "PUBLIC")]
    pub also: Vec<String>,
    /// Make no new recovery code
    #[arg(long)]
    pub no_recovery: bool,
}
