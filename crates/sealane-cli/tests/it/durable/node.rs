//! The real binary as a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealane_testing::TestProcess;

use super::http::Http;
use super::json;

/// A running node. Dropping it is `kill -9`.
pub(crate) struct Node {
    pub(crate) process: TestProcess,
    pub(crate) address: String,
    log: PathBuf,
}

impl Node {
    /// Starts a node over `data`; what it says is added to `log`.
    pub(crate) fn start(data: &Path, level: &str, log: &Path) -> Self {
        let mut up = Command::new(env!("CARGO_BIN_EXE_sealane"));
        up.env_clear().stderr(File::options().create(true).append(true).open(log).unwrap());
        up.args(["up", "--json", "--listen", "127.0.0.1:0", "--level", level, "--data"]).arg(data);
        let process = TestProcess::start(&mut up);
        let mut node = Self { process, address: String::new(), log: log.to_owned() };
        let line = node.process.line();
        assert!(!line.is_empty(), "the node did not start");
        node.address = json::text(&line, "address").to_owned();
        node
    }

    pub(crate) fn http(&self) -> Http {
        Http::connect(&self.address).unwrap()
    }

    /// Makes a stream of a level.
    pub(crate) fn make(&self, topic: &str, level: &str) {
        let body = format!(r#"{{"level":"{level}"}}"#);
        let reply = self.http().call("PUT", &format!("/v1/streams/{topic}"), &body).unwrap();
        assert!(matches!(reply.status, 200 | 201), "{}: {}", reply.status, reply.body);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // SIGKILL, which the node cannot see coming.
        self.process.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let from = log.lines().count().saturating_sub(30);
            log.lines().skip(from).for_each(|line| eprintln!("node: {line}"));
        }
    }
}
