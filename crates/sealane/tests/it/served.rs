//! The node that the tests talk to.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use sealane_node::{Config, HubNode};
use sealane_testing::{TestProcess, json_text};

/// Names a program of another version, of which each test starts a process instead of the node of
/// this one: `cargo xtask upgrade`.
const BINARY: &str = "SEALANE_NODE_BINARY";

/// A running node; dropping it ends it.
pub(crate) enum Served {
    Here(HubNode),
    Apart(SocketAddr, #[expect(dead_code, reason = "it ends with this")] TestProcess),
}

impl Served {
    /// A node over this folder.
    pub(crate) async fn over(folder: &Path) -> Self {
        if let Some(program) = std::env::var_os(BINARY) {
            return Self::start(Path::new(&program), folder);
        }
        let (listen, data) = ("127.0.0.1:0".parse().unwrap(), folder.to_owned());
        Self::Here(HubNode::start(Config { listen, data, ..Config::default() }).await.unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Here(node) => node.address(),
            Self::Apart(address, _) => *address,
        }
    }

    fn start(program: &Path, folder: &Path) -> Self {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", folder).stderr(Stdio::null());
        command.args(["up", "--json", "--listen", "127.0.0.1:0", "--data"]);
        let (process, line) = TestProcess::started(command.arg(folder.join("data")));
        Self::Apart(json_text(&line, "address").parse().unwrap(), process)
    }
}
