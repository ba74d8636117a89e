//! The real binary as a process of its own, with tokens.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use sealane::{Client, Pattern};
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_testing::{TestProcess, json_text, process_memory_kib};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::shares;

/// The token of those who behave, and may do all.
pub(crate) fn good() -> TokenSecret {
    TokenSecret::new([1; 32])
}

/// A token that has come into wrong hands: it may use what is below `hostile`.
pub(crate) fn stolen() -> TokenSecret {
    TokenSecret::new([2; 32])
}

pub(crate) struct Node {
    process: TestProcess,
    pub(crate) address: SocketAddr,
    /// Where its data is, if it goes with the node.
    folder: Option<tempfile::TempDir>,
}

impl Node {
    pub(crate) fn start(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The test measures the node, not the disk.
        let mut node = Self::start_in(folder.path(), "os", args);
        node.folder = Some(folder);
        node
    }

    /// Starts a node with so many tokens more, each of which may do all below a topic of its own.
    pub(crate) fn start_among(tokens: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..tokens {
            let all: Vec<Pattern> = vec![format!("t{number}/**").parse().unwrap()];
            let (read, publish, manage) = (all.clone(), all.clone(), all);
            let rights =
                TokenRights { read, publish, manage, observe: true, ..TokenRights::default() };
            let (name, secret) = (format!("t{number}"), shares::secret(number));
            TokenFile::add(folder.path(), &name, &secret, rights, None).unwrap();
        }
        let mut node = Self::start_in(folder.path(), "os", &[]);
        node.folder = Some(folder);
        node
    }

    /// Starts a node on a folder that stays, with a level for streams that have none.
    pub(crate) fn start_in(folder: &Path, level: &str, args: &[&str]) -> Self {
        for (name, secret, pattern) in [("good", good(), "**"), ("stolen", stolen(), "hostile/**")]
        {
            let all: Vec<Pattern> = vec![pattern.parse().unwrap()];
            let observe = name == "good";
            let (read, publish, manage) = (all.clone(), all.clone(), all);
            let rights = TokenRights { read, publish, manage, observe, ..TokenRights::default() };
            TokenFile::add(folder, name, &secret, rights, None).unwrap();
        }
        let fixed = ["--json", "up", "--listen", "127.0.0.1:0", "--level", level, "--data"];
        let mut up = Command::new(env!("CARGO_BIN_EXE_sealane"));
        up.env_clear().env("SEALANE_LOG", "error").args(fixed).arg(folder).args(args);
        let (process, line) = TestProcess::started(&mut up);
        Self { process, address: json_text(&line, "address").parse().unwrap(), folder: None }
    }

    /// A field of the process's state, in KiB.
    pub(crate) fn memory_kib(&self, field: &str) -> u64 {
        process_memory_kib(self.process.id(), field)
    }

    /// All metrics that are whole numbers, by name and labels.
    pub(crate) async fn metrics(&self) -> BTreeMap<String, u64> {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             connection: close\r\n\r\n",
            self.address,
            good().reveal()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let read = |line: &str| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            Some((name.to_owned(), value.parse().ok()?))
        };
        lines.filter_map(read).collect()
    }

    pub(crate) fn client(&self) -> Client {
        let client = Client::connect(&self.address.to_string()).unwrap();
        client.with_token(good().reveal()).unwrap()
    }

    /// The process is still there, and answers.
    pub(crate) async fn is_well(&mut self) {
        assert!(self.process.child.try_wait().unwrap().is_none(), "the node has ended");
        self.client().health().await.unwrap();
    }
}
