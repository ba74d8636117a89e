//! Every verb and flag, defined once.

mod arrange;
pub mod cert;
pub mod consumer;
pub mod context;
pub mod doc;
mod examples;
pub mod group;
pub mod key;
pub mod mesh;
pub mod operate;
pub mod policy;
pub mod stream;
pub mod token;
pub mod vault;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use sealane::{DataType, StartPosition};

use crate::inspect::{FORMATS, FrameForm, InspectInputKind};
use crate::times;

pub use arrange::{command, every_example};

const AFTER_HELP: &str = "\
Exit codes:
  0  done; also when the reader of a pipe has gone, or after Ctrl-C
  1  failed
  2  wrong usage or configuration
  3  no hub could be reached
  4  the hub refused
  5  the storage is full or failed

A setting comes from its flag, else from the environment, else from the context
in use, else from the configuration file, else it has a default. `sealane config
show --origin` tells where each one comes from. The variables are
SEALANE_SERVER, SEALANE_DATA, SEALANE_LISTEN, SEALANE_LEVEL, SEALANE_CODEC,
SEALANE_POLICY, SEALANE_TOKEN, SEALANE_CA, SEALANE_TLS_CERT and SEALANE_TLS_KEY;
SEALANE_CONTEXT names the context and SEALANE_CONFIG the configuration file.
Keys come from --keys or SEALANE_KEYS, passphrases from SEALANE_PASSPHRASE or
the terminal.

SEALANE_LOG sets what is logged: error, warn, info or debug.
SEALANE_LOG_FORMAT=json makes the log JSON. NO_COLOR turns colours off.";

const SIM: &str = "\
The simulator is a program of its own, `sealane-sim`, which is not shipped.
This verb runs the one of the same commit from the same folder.
docs/SIMULATOR.md has its verbs and flags. To build it:

  cargo build --release -p sealane-sim           beside target/release/sealane
  cargo install --path crates/sealane-sim        onto your path";

const BENCH: &str = "\
The benchmarks are a program of their own, `sealane-bench`, which is not
shipped. This verb runs the one of the same commit from the same folder.
docs/BENCHMARKING.md has its verbs and flags. To build it:

  cargo build --release -p sealane-bench               into target/release
  cargo install --locked --path crates/sealane-bench   onto your path";

/// Durable message streams, end-to-end encryption and sealed backups in one program.
#[derive(Debug, Parser)]
#[command(name = "sealane", version = crate::VERSION, after_long_help = AFTER_HELP)]
#[command(disable_help_subcommand = true, max_term_width = 80)]
pub struct CliArgs {
    /// Write data as JSON, one value per line, each with "v":1
    #[arg(long, global = true)]
    pub json: bool,

    /// The configuration file [default: sealane/config.toml in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The context to take the hub from, as `sealane context add` made it [env: SEALANE_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// The verb
    #[command(subcommand)]
    pub command: CliVerb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum CliVerb {
    /// Run a node: the hub, on one port, over one data folder
    Up(UpArgs),
    /// Publish messages
    Pub(PubArgs),
    /// Read messages as they come
    Sub(SubArgs),
    /// Publish a request, and print its answer
    Request(RequestArgs),
    /// Answer requests as they come
    Reply(ReplyArgs),
    /// List, show, change and remove streams
    Stream(stream::StreamArgs),
    /// List streams, as `stream ls` does
    Ls(stream::ListArgs),
    /// Ask a hub whether it is well, and what it is
    Status(operate::StatusArgs),
    /// Show and control consumers: pause, reset, skip, redeliver
    Consumer(consumer::ConsumerArgs),
    /// List and cancel delayed messages
    Delayed(consumer::DelayedArgs),
    /// Explain how messages are sealed, and check a policy file
    Policy(policy::PolicyArgs),
    /// Keep encrypted, deduplicated backups of files in a folder or bucket
    Vault(vault::VaultArgs),
    /// Manage the keys of this identity
    Key(key::KeyCommandArgs),
    /// Manage groups and their members
    Group(group::GroupArgs),
    /// Manage the access tokens of a node on this machine
    Token(token::TokenArgs),
    /// Watch the streams of a hub: rates, lag and readers
    Top(operate::TopArgs),
    /// Check a node and its machine for problems: disk, clocks, store, tokens, hub
    Doctor(operate::DoctorArgs),
    /// Show who changed something at a node, and who was refused
    Audit(operate::AuditArgs),
    /// Copy the streams and tokens of a node into a folder, while the node runs
    Backup(operate::BackupArgs),
    /// Make a data folder from a backup
    Restore(operate::RestoreArgs),
    /// Connect machines to one IP network that is encrypted between members
    Mesh(mesh::MeshArgs),
    /// Read and write the documents of a team in the field: who is where, and how
    Doc(doc::DocArgs),
    /// Call for help, acknowledge calls, and say that they are over
    Emergency(doc::EmergencyArgs),
    /// Forward sealed frames between networks, without any key
    Relay(operate::RelayArgs),
    /// Bring a mesh's sealed frames to a hub, and its commands back, without any key
    Gateway(operate::GatewayArgs),
    /// Manage contexts: the hubs that you use, by name
    Context(context::ContextArgs),
    /// Make a certificate for a node
    Cert(cert::CertArgs),
    /// Show the settings in effect
    Config(ConfigArgs),
    /// Explain an error code, or what a token may do
    Explain(ExplainArgs),
    /// Explain captured frames byte by byte, offline and without keys
    Inspect(InspectArgs),
    /// Measure what messages, hub and vault cost on this machine
    Bench(BenchVerbArgs),
    /// Run many machines in virtual time over modelled radio
    Sim(SimVerbArgs),
    /// Show the main job on the telemetry of this machine, with a crash in it
    Demo(DemoArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print or write man pages
    Man(ManArgs),
    /// Print what the last word may become, for the scripts of `completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Show the help of a verb
    Help(HelpArgs),
    /// Show the version, commit and target of this program
    Version,
}

/// The hub that a verb speaks to.
#[derive(Debug, Args, Clone, Default)]
pub struct HubArgs {
    /// The hub's address [default: 127.0.0.1:9087] [env: SEALANE_SERVER]
    #[arg(long, short, global = true, value_name = "ADDRESS")]
    pub server: Option<String>,
}

/// `sealane up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The data folder [default: sealane in $XDG_DATA_HOME or ~/.local/share] [env: SEALANE_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:9087] [env: SEALANE_LISTEN]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// When a message counts as stored: memory, os or disk [default: disk] [env: SEALANE_LEVEL]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Remove messages older than this from streams that neither a rule nor `stream set` bounds,
    /// for example 30d [default: never] [env: SEALANE_MAX_AGE]
    #[arg(long, value_name = "TIME")]
    pub max_age: Option<String>,
    /// Let the pages of another site use the hub, for example `https://fleet.example`; repeatable
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,
    /// Speak TLS with this certificate, PEM, read again when it changes [env: SEALANE_TLS_CERT]
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// The certificate's private key, PEM [env: SEALANE_TLS_KEY]
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// Connections that one address may have [default: 4096]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub connections_per_address: Option<u64>,
    /// Messages that one token may enqueue in a second [default: 100000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub enqueue_rate: Option<u64>,
    /// Remove streams below `reply/` that had no message for this time and that nobody reads
    /// [default: never]
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub reply_ttl: Option<Duration>,
    /// Send spans of requests with a `traceparent` to this collector: OTLP over HTTP, without TLS
    /// [default: none] [env: OTEL_EXPORTER_OTLP_ENDPOINT]
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
}

/// `sealane pub`.
#[derive(Debug, Args)]
pub struct PubArgs {
    /// The stream, for example fleet/7/location
    pub topic: String,
    /// A JSON map is the envelope; other JSON, or text, becomes {"data": …}; `-` reads lines
    #[arg(allow_negative_numbers = true)]
    pub body: Option<String>,
    /// Deliver the message after this time, for example 5s
    #[arg(long, value_name = "TIME", value_parser = times::duration, conflicts_with = "expect")]
    pub delay: Option<Duration>,
    /// Store the message only if it gets this offset
    #[arg(long, value_name = "OFFSET")]
    pub expect: Option<u64>,
    /// Store only one message with this key, however often it is sent
    #[arg(long, alias = "key", value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Retry for this time when the hub does not answer; nothing is stored twice [default: 0s;
    /// for lines of standard input: 10s]
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub retry: Option<Duration>,
    /// Store this message once in its stream, whoever publishes it
    #[arg(long, conflicts_with_all = ["idempotency_key", "delay"])]
    pub once: bool,
    /// The codec of the envelope: json, msgpack or cbor [default: json] [env: SEALANE_CODEC]
    #[arg(long)]
    pub codec: Option<String>,
    /// Seal the message with the keys of this group; a new stream is made sealed
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// The data type, for example location; the policy chooses the class by it [default: unknown]
    #[arg(long = "type", value_name = "TYPE", requires = "group")]
    pub data_type: Option<DataType>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: key::KeysArgs,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane sub`.
#[derive(Debug, Args)]
pub struct SubArgs {
    /// A topic, or a pattern: `*` is one segment, a last `**` the rest
    pub pattern: String,
    /// Begin at: first, new, an offset, a time (RFC 3339, @MILLISECONDS) or an age (-10m)
    /// [default: new; with --consumer, where a new one begins: first]
    #[arg(long, value_name = "PLACE", value_parser = times::start, allow_hyphen_values = true)]
    #[arg(conflicts_with = "inbox")]
    pub from: Option<StartPosition>,
    /// Share the messages with all readers that give this name
    #[arg(long, value_name = "NAME", conflicts_with = "inbox")]
    pub consumer: Option<String>,
    /// Use the shared inbox of the stream: acknowledged messages are not delivered again
    #[arg(long)]
    pub inbox: bool,
    /// Acknowledge printed messages; the default with --consumer and --inbox
    #[arg(long, overrides_with = "no_ack")]
    pub ack: bool,
    /// Acknowledge nothing: the messages are delivered again
    #[arg(long)]
    pub no_ack: bool,
    /// Begin with the last N messages of a topic
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "consumer", "inbox"])]
    pub last: Option<u64>,
    /// End after the messages that were stored when this began
    #[arg(long, conflicts_with_all = ["consumer", "inbox"])]
    pub until_end: bool,
    /// Print bodies only, on a terminal too
    #[arg(long)]
    pub raw: bool,
    /// End after this many messages
    #[arg(long, short = 'n', value_name = "N")]
    pub count: Option<u64>,
    /// The most messages in one frame
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub batch: usize,
    /// The codec on the wire: json, msgpack or cbor [default: json] [env: SEALANE_CODEC]
    #[arg(long)]
    pub codec: Option<String>,
    /// Open messages with the keys of this group; one that does not open is named, not shown
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// Fail at the end if messages were not shown
    #[arg(long, requires = "group")]
    pub strict: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub keys: key::KeysArgs,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane request`.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// The stream whose readers answer
    pub topic: String,
    /// A JSON map is the envelope; other JSON, or text, becomes {"data": …}
    #[arg(allow_negative_numbers = true)]
    pub body: Option<String>,
    /// Wait for an answer no longer than this
    #[arg(long, value_name = "TIME", value_parser = times::duration, default_value = "5s")]
    pub timeout: Duration,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane reply`.
#[derive(Debug, Args)]
pub struct ReplyArgs {
    /// The stream of the requests, or a pattern
    pub pattern: String,
    /// The answer to each: a JSON map; other JSON, or text, becomes {"data": …}
    #[arg(conflicts_with = "command", allow_negative_numbers = true)]
    pub body: Option<String>,
    /// Run this in a shell for each request. It reads the request as JSON and prints the answer; if
    /// it fails, the answer is {"error": …}
    #[arg(long, value_name = "PROGRAM")]
    pub command: Option<String>,
    /// Share the requests with all that give this name: each is answered once
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// End after this many requests
    #[arg(long, short = 'n', value_name = "N")]
    pub count: Option<u64>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "flattened, and its own documentation would replace the verb's"
    )]
    pub hub: HubArgs,
}

/// `sealane config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// The verb for settings
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// The verbs of `sealane config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Print each setting's effective value
    Show {
        /// Show where each value comes from: flag, environment, context, file or default
        #[arg(long)]
        origin: bool,
        /// The hub's address
        #[arg(long, short, value_name = "ADDRESS")]
        server: Option<String>,
    },
}

/// `sealane explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code or a name, for example SL-HUB-09 or OffsetMismatch; none lists all. Or `access`, a
    /// token or its name, and a topic: what that token may do there
    #[arg(value_name = "CODE | access TOKEN TOPIC", num_args = 0..=3)]
    pub asked: Vec<String>,
    /// For `access`: the node's data folder [default: as for `up`] [env: SEALANE_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
}

/// `sealane inspect`.
#[derive(Debug, Args)]
#[command(after_long_help = FORMATS)]
pub struct InspectArgs {
    /// The bytes of a frame, fragment or batch, hexadecimal text with one of them per line and
    /// # comments, or packets as pcap or pcapng; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The content of the file: full, unit, hex or pcap [default: told by its first bytes]
    #[arg(long = "as", value_name = "KIND", hide_possible_values = true)]
    pub holding: Option<InspectInputKind>,
    /// The form of its frames: full or compact [default: told by each]
    #[arg(long, value_name = "FORM", hide_possible_values = true)]
    pub form: Option<FrameForm>,
    /// The link's knowledge, to explain compact frames: lines of hexadecimal `BYTE ENTRY` (14
    /// bytes, as in spec/frame.md), `slot N GROUP TAG`, `context N GROUP CONTEXT ORDERS` and `epoch
    /// GROUP N`
    #[arg(long, value_name = "FILE")]
    pub dictionary: Option<PathBuf>,
    /// Open the frames too: TOML, each `[[group]]` with `tag`, `id`, `suite`, `pair`, `secret`,
    /// `epoch`, and `signers` by slot; bytes are hexadecimal text
    #[arg(long, alias = "keys", value_name = "FILE")]
    pub group_keys: Option<PathBuf>,
    /// The stream that the frames were kept in, which they are bound to [default: a link]
    #[arg(long, value_name = "TOPIC")]
    pub topic: Option<String>,
}

/// `sealane bench`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_long_help = BENCH)]
pub struct BenchVerbArgs {
    /// The arguments for `sealane-bench`, untouched; `--help` lists them
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// `sealane sim`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, after_long_help = SIM)]
pub struct SimVerbArgs {
    /// The arguments for `sealane-sim`, untouched; `--help` lists them
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// `sealane demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// How long to publish
    #[arg(long = "for", value_name = "TIME", default_value = "15s")]
    #[arg(value_parser = times::duration)]
    pub length: Duration,
    /// How often to sample
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = times::duration)]
    pub every: Duration,
}

/// `sealane completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell
    pub shell: Shell,
}

/// `sealane complete`.
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// The words behind `sealane`; the last one is not finished, and may be empty
    #[arg(value_name = "WORD", last = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// `sealane man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each verb into this folder
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Print all verbs as one Markdown page: docs/reference/CLI.md
    #[arg(long, hide = true)]
    pub markdown: bool,
}

/// `sealane help`.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// The verb, for example `stream set`; without one, all are listed
    #[arg(value_name = "VERB")]
    pub verb: Vec<String>,
}
