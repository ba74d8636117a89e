//! `sealane up`.

use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit, setrlimit};
use sealane::Level;
use sealane_node::{Config, Limits, Node, TlsFiles};

use crate::args::Up;
use crate::config::{File, Key};
use crate::signals::Signals;
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
    started(&node, &data, level, secure, terminal)?;
    let name = loop {
        match asked.next().await {
            "SIGHUP" => match node.reload() {
                Ok(()) => eprintln!("sealane: SIGHUP: tokens and certificate were read again"),
                Err(error) => eprintln!("sealane: SIGHUP: {error}; it is as it was"),
            },
            name => break name,
        }
    };
    eprintln!("sealane: {name}: stopping; once more ends at once");
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
        eprintln!("sealane: warning: the limit of open files is as it was: {error}");
    }
}

fn started(
    node: &Node,
    data: &std::path::Path,
    level: Level,
    secure: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let scheme = if secure { "https" } else { "http" };
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let (version, address) = (env!("CARGO_PKG_VERSION"), node.address());
    if terminal.json() {
        terminal.record(vec![
            ("version", version.into()),
            ("address", address.to_string().into()),
            ("tls", secure.into()),
            ("data", data.display().to_string().into()),
            ("level", level.name().into()),
        ])?;
    } else {
        let promise = match level {
            Level::Memory => "answered before it is written: a crash loses messages",
            Level::Os => "answered when written: a power cut may lose messages",
            Level::Disk => "answered when on disk: a power cut loses nothing",
        };
        terminal.line(format_args!(
            "sealane {version}  {scheme}://{address}  data {}  level {level} ({promise})",
            data.display()
        ))?;
    }
    terminal.flush()
}
