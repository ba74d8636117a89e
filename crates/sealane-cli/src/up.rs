//! `sealane up`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit, setrlimit};
use sealane::Level;
use sealane_node::access::Tokens;
use sealane_node::{Config, Limits, Node, TlsFiles};

use crate::args::Up;
use crate::colour::warn;
use crate::config::{File, Key};
use crate::signals::Signals;
use crate::times::count;
use crate::{Failure, Terminal};

/// Runs a node until Ctrl-C or SIGTERM, then lets it finish what it holds. A second signal ends
/// the process at once.
///
/// # Errors
/// [`Failure::Node`] where it cannot start.
pub async fn run(args: &Up, file: &File, terminal: &mut Terminal) -> Result<(), Failure> {
    let data = PathBuf::from(file.setting(Key::Data, args.data.as_ref()).value);
    let listen = file.setting(Key::Listen, args.listen.as_ref()).address()?;
    let level = file.setting(Key::Level, args.level.as_ref()).level()?;
    let mut asked = Signals::new().map_err(Failure::Runtime)?;
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
        origins,
        tls,
        limits,
        reply_ttl,
        otlp,
        ..Config::default()
    };
    raise_open_files();
    let node = Node::start(config).await?;
    let data = std::path::absolute(&data).unwrap_or(data);
    Started { node: &node, data, level, is_secure: secure }.say(file, terminal)?;
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
            Err(Failure::Runtime(io::Error::other("ended before it was stopped")))
        }
    }
}

/// The files of the certificate, which come together.
fn tls(args: &Up, file: &File) -> Result<Option<TlsFiles>, Failure> {
    let certificate = file.path_or(Key::TlsCert, args.tls_cert.as_ref());
    let key = file.path_or(Key::TlsKey, args.tls_key.as_ref());
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        _ => Err(Failure::Usage("--tls-cert and --tls-key come together")),
    }
}

fn limits(args: &Up) -> Limits {
    let default = Limits::default();
    Limits {
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
struct Started<'a> {
    node: &'a Node,
    data: PathBuf,
    level: Level,
    is_secure: bool,
}

impl Started<'_> {
    fn say(&self, file: &File, terminal: &mut Terminal) -> Result<(), Failure> {
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
        terminal.line(format_args!("  access   {}", self.access()))?;
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
    fn server(&self, file: &File) -> String {
        let page = self.page().to_string();
        match self.is_secure {
            false if file.setting(Key::Server, None).value == page => String::new(),
            false => format!(" --server {page}"),
            true => format!(" --server https://{page}"),
        }
    }

    fn access(&self) -> String {
        match Tokens::read(&Tokens::path(&self.data)) {
            Ok(tokens) if !tokens.guards() => {
                "every program on this machine; `sealane token new` makes tokens".to_owned()
            }
            Ok(tokens) if tokens.is_empty() => {
                "nobody: no token is left; `sealane token new` makes one".to_owned()
            }
            Ok(tokens) => {
                let tokens = count(tokens.iter().count() as u64, "tokens");
                format!("whoever has one of {tokens}; `sealane token ls` lists them")
            }
            Err(error) => error.to_string(),
        }
    }
}
