//! `sealane up`.

use std::io;
use std::path::PathBuf;

use sealane::Level;
use sealane_node::{Config, Node};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Up;
use crate::config::{File, Key};
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
    let config = Config { listen, data: data.clone(), level, origins, ..Config::default() };
    let node = Node::start(config).await?;
    started(&node, &data, level, terminal)?;
    let name = loop {
        match asked.next().await {
            "SIGHUP" => match node.reload() {
                Ok(()) => eprintln!("sealane: SIGHUP: tokens were read again"),
                Err(error) => eprintln!("sealane: SIGHUP: {error}; tokens are as they were"),
            },
            name => break name,
        }
    };
    eprintln!("sealane: {name}: stopping; once more ends at once");
    tokio::select! {
        stopped = node.stop() => Ok(stopped?),
        _ = asked.next() => Err(Failure::Runtime(io::Error::other("ended before it was stopped"))),
    }
}

fn started(
    node: &Node,
    data: &std::path::Path,
    level: Level,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let (version, address) = (env!("CARGO_PKG_VERSION"), node.address());
    if terminal.json() {
        terminal.record(vec![
            ("version", version.into()),
            ("address", address.to_string().into()),
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
            "sealane {version}  http://{address}  data {}  level {level} ({promise})",
            data.display()
        ))?;
    }
    terminal.flush()
}

/// The ways to ask a process to stop.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let (interrupt, hang_up) = (SignalKind::interrupt(), SignalKind::hangup());
        Ok(Self { terminate, interrupt: signal(interrupt)?, hang_up: signal(hang_up)? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }
}
