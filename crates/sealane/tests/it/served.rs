//! The node that the tests talk to.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use sealane::{Codec, Value};
use sealane_node::{Config, HubNode};

/// Names a program of another version, of which each test starts a process instead of the node of
/// this one: `cargo xtask upgrade`.
const BINARY: &str = "SEALANE_NODE_BINARY";

/// A running node; dropping it ends it.
pub(crate) enum Served {
    Here(HubNode),
    Apart(Process),
}

pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
    /// Kept open, so that the process can go on writing.
    _output: ChildStdout,
}

impl Served {
    /// A node over this folder.
    pub(crate) async fn over(folder: &Path) -> Self {
        if let Some(program) = std::env::var_os(BINARY) {
            return Self::Apart(Process::start(Path::new(&program), folder));
        }
        let (listen, data) = ("127.0.0.1:0".parse().unwrap(), folder.to_owned());
        Self::Here(HubNode::start(Config { listen, data, ..Config::default() }).await.unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Here(node) => node.address(),
            Self::Apart(process) => process.address,
        }
    }
}

impl Process {
    fn start(program: &Path, folder: &Path) -> Self {
        let mut child = Command::new(program)
            .env_clear()
            .env("HOME", folder)
            .args(["up", "--json", "--listen", "127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut output = child.stdout.take().unwrap();
        let line = first_line(&mut output);
        let started = sealane_codec::decode(Codec::Json, line.as_bytes());
        let started = started.unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let address = started.field("address").and_then(Value::as_text).unwrap();
        Self { child, address: address.parse().unwrap(), _output: output }
    }
}

fn first_line(output: &mut ChildStdout) -> String {
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(output);
    std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    line
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
