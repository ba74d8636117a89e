//! `sealane vault put`, and how chunks are made.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `sealane vault put`.
#[derive(Debug, Args)]
pub struct VaultPut {
    /// Files and folders, each kept under its last component; under their whole paths if two have
    /// the same one, or one is /. With --stdin-command a program and its arguments
    #[arg(required_unless_present = "stdin", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Keep what comes on standard input, as one file
    #[arg(long, conflicts_with_all = ["paths", "stdin_command", "exclude", "exclude_from"])]
    pub stdin: bool,
    /// Keep what a program writes, as one file; if the program fails, nothing is kept
    #[arg(long, alias = "stdin-from-command", conflicts_with_all = ["exclude", "exclude_from"])]
    pub stdin_command: bool,
    /// The name of that file
    #[arg(long, alias = "stdin-filename", value_name = "NAME", default_value = "stdin")]
    pub name: String,
    /// Leave out what matches, as a line of a .gitignore in each PATH does
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Leave out what the patterns of a file match, which begin at the folder of that file
    #[arg(long, alias = "exclude-file", value_name = "FILE")]
    pub exclude_from: Vec<PathBuf>,
    /// A note that the snapshot carries
    #[arg(long, alias = "comment", value_name = "TEXT", default_value = "")]
    pub note: String,
    /// A word by which `prune --keep-tag` knows it; may be given several times
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// The host that the snapshot names, for machines whose name changes [default: its name]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub profile: ChunkProfileArgs,
    /// Say what would be kept, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// How chunks are made.
#[derive(Debug, Args, Clone, Copy)]
pub struct ChunkProfileArgs {
    /// How contents are compressed: zstd, lz4 or none
    #[arg(long, alias = "codec", value_name = "METHOD", default_value = "zstd")]
    #[arg(hide_possible_values = true)]
    pub compression: CompressionArg,
    /// The level of zstd, 1 to 22
    #[arg(long, alias = "level", value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=22))]
    pub compression_level: u8,
    /// Threads that compress and seal [default: as many as cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,
}

/// How contents are compressed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum CompressionArg {
    /// Zstandard.
    Zstd,
    /// LZ4 blocks.
    Lz4,
    /// Not at all.
    None,
}
