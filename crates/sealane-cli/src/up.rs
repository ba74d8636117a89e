//! `sealane up`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use sealane::{Level, Retention};
use sealane_node::access::TokenFile;
use sealane_node::{ClientLimits, Config, HubNode, TlsFiles};

use crate::args::UpArgs;
use crate::colour::warn;
use crate::config::{SettingKey, SettingsFile};
use crate::signals::ProcessSignals;
use crate::times::{count, show_span};
use crate::{CliFailure, Terminal};

/// Has the allocator of this process give memory back, where the program knows how.
pub(crate) static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// Runs a node until Ctrl-C or SIGTERM, then lets it finish what it holds. A second signal ends
/// the process at once.
///
/// # Errors
/// [`CliFailure::Node`] where it cannot start.
pub async fn run(
    args: &UpArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let data = PathBuf::from(file.setting(SettingKey::Data, args.data.as_ref()).value);
    let listen = file.setting(SettingKey::Listen, args.listen.as_ref()).address()?;
    let level = file.setting(SettingKey::Level, args.level.as_ref()).level()?;
    let max_age = file.setting(SettingKey::MaxAge, args.max_age.as_ref()).duration()?;
    let max_age_ms = max_age.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let retention = Retention { max_age_ms, ..Retention::default() };
    let mut asked = ProcessSignals::new().map_err(CliFailure::Runtime)?;
    let origins = args.origin.clone();
    let (tls, limits) = (tls(args, file)?, limits(args));
    let secure = tls.is_some();
    let reply_ttl = args.reply_ttl;
    let otlp = args.otlp.clone().or_else(|| std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok());
    let data_folder = data.clone();
    let config = Config {
        listen,
        data: data_folder,
        level,
        retention,
        origins,
        tls,
        limits,
        reply_ttl,
        otlp,
        give_back: GIVE_BACK.get().copied(),
    };
    raise_open_files();
    let node = HubNode::start(config).await?;
    let data = std::path::absolute(&data).unwrap_or(data);
    EndStartReport { node: &node, data, level, max_age, is_secure: secure }.say(file, terminal)?;
    let name = loop {
        match asked.next().await {
            "SIGHUP" => match node.reload() {
                Ok(()) => eprintln!("sealane: SIGHUP: tokens and certificate were read again"),
                Err(error) => eprintln!("sealane: SIGHUP: {error}; it is as it was"),
            },
            name => break name,
        }
    };
    eprintln!("sealane: {name}: stopping gracefully; once more to stop at once");
    tokio::select! {
        stopped = node.stop() => Ok(stopped?),
        () = asked.end() => {
            Err(CliFailure::Runtime(io::Error::other("ended before it was stopped")))
        }
    }
}

/// The files of the certificate, which come together.
fn tls(args: &UpArgs, file: &SettingsFile) -> Result<Option<TlsFiles>, CliFailure> {
    let certificate = file.path_or(SettingKey::TlsCert, args.tls_cert.as_ref());
    let key = file.path_or(SettingKey::TlsKey, args.tls_key.as_ref());
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        _ => Err(CliFailure::Usage("--tls-cert and --tls-key come together")),
    }
}

fn limits(args: &UpArgs) -> ClientLimits {
    let default = ClientLimits::default();
    ClientLimits {
        connections_per_address: args
            .connections_per_address
            .map_or(default.connections_per_address, |count| count as usize),
        enqueue_rate: args.enqueue_rate.unwrap_or(default.enqueue_rate),
        ..default
    }
}

/// Lets the process have as many connections as the system lets it have at all: the usual limit
/// of 1024 open files is for programs that use `select`.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        warn(format_args!("the limit of open files is as it was: {error}"));
    }
}

/// The first message of a node that runs.
struct EndStartReport<'a> {
    node: &'a HubNode,
    data: PathBuf,
    level: Level,
    max_age: Option<Duration>,
    is_secure: bool,
}

impl EndStartReport<'_> {
    fn say(&self, file: &SettingsFile, terminal: &mut Terminal) -> Result<(), CliFailure> {
        let address = self.node.address();
        if terminal.json() {
            terminal.record(vec![
                ("version", env!("CARGO_PKG_VERSION").into()),
                ("address", address.to_string().into()),
                ("tls", self.is_secure.into()),
                ("data", self.data.display().to_string().into()),
                ("level", self.level.name().into()),
            ])?;
            return terminal.flush();
        }
        let scheme = if self.is_secure { "https" } else { "http" };
        let level = match self.level {
            Level::Memory => "memory: a crash loses messages that were acknowledged",
            Level::Os => "os: a power cut may lose messages that were acknowledged",
            Level::Disk => "disk: no power cut loses a message that was acknowledged",
        };
        terminal
            .line(format_args!("sealane {}  {scheme}://{address}", env!("CARGO_PKG_VERSION")))?;
        terminal.line(format_args!("  console  open {scheme}://{} in a browser", self.page()))?;
        terminal.line(format_args!("  data     {}", self.data.display()))?;
        terminal.line(format_args!("  level    {level}"))?;
        if let Some(age) = self.max_age {
            let age = show_span(age);
            terminal.line(format_args!("  max age  {age}, of streams without bounds"))?;
        }
        terminal.line(format_args!("  access   {}", self.access(file)))?;
        let server = self.server(file);
        terminal.line(format_args!("  try      sealane sub hello{server}"))?;
        terminal.line(format_args!("           sealane pub hello world{server}"))?;
        terminal.line("  stop     Ctrl-C")?;
        terminal.flush()
    }

    /// The address at which this machine reaches the node.
    fn page(&self) -> SocketAddr {
        let mut address = self.node.address();
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address
    }

    /// The flag that other commands need for this node, unless their settings name it.
    fn server(&self, file: &SettingsFile) -> String {
        let page = self.page().to_string();
        match self.is_secure {
            false if file.setting(SettingKey::Server, None).value == page => String::new(),
            false => format!(" --server {page}"),
            true => format!(" --server https://{page}"),
        }
    }

    fn access(&self, file: &SettingsFile) -> String {
        // Without the flag the verb would act on the folder of another node.
        let usual = file.setting(SettingKey::Data, None).value;
        let is_usual = *self.data.as_os_str() == *usual;
        let named = self.data.display().to_string();
        let quote = if named.contains(|c: char| !is_plain(c)) { "'" } else { "" };
        let data = if is_usual { String::new() } else { format!(" --data {quote}{named}{quote}") };
        match TokenFile::read(&TokenFile::path(&self.data)) {
            Ok(tokens) if !tokens.guards() => {
                format!("every program on this machine; `sealane token{data} new` makes tokens")
            }
            Ok(tokens) if tokens.is_empty() => {
                format!("nobody: no token is left; `sealane token{data} new` makes one")
            }
            Ok(tokens) => {
                let tokens = count(tokens.iter().count() as u64, "tokens");
                format!("whoever has one of {tokens}; `sealane token{data} ls` lists them")
            }
            Err(error) => error.to_string(),
        }
    }
}

/// Whether a shell takes a character as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-+@%".contains(c)
}
