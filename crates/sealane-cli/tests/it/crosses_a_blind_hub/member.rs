//! A machine with a member on it, and the machine of the hub; each runs the real binary.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sealane::{Codec, Pattern, Value};
use sealane_node::access::{TokenFile, TokenRights};
use sealane_testing::{TestProcess, files_below, json_text};

use super::net::{Net, PORT, token};
use super::program;
use super::search::PIECE_BYTES;

/// A member: its side of the net, and a folder of its own that nobody else sees.
pub(crate) struct Member<'n> {
    net: &'n Net,
    side: usize,
    home: tempfile::TempDir,
    pub(crate) name: &'static str,
}

impl<'n> Member<'n> {
    pub(crate) fn new(net: &'n Net, side: usize, name: &'static str) -> Self {
        let member = Self { net, side, home: tempfile::tempdir().unwrap(), name };
        member.run(&["key", "new", name]);
        member
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.net.on_side(self.side, program());
        command.args(args).env("HOME", self.home.path()).env("SEALANE_KEYS", self.keys());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a verb that succeeds, and gives what it wrote.
    pub(crate) fn run(&self, args: &[&str]) -> Vec<u8> {
        let output = self.command(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {args:?}: {said}", self.name);
        output.stdout
    }

    /// Lets another in: a card, an invitation, each a file that is carried by hand.
    pub(crate) fn invite(&self, group: &str, other: &Member<'_>, history: &str) {
        let (card, invitation) = (other.file("card"), other.file("invitation"));
        std::fs::write(&card, other.run(&["key", "card"])).unwrap();
        let path = card.to_str().unwrap();
        let hub = Net::hub_address(self.side);
        let how = ["--history", history, "--server", &hub];
        let written = self.run(&[&["group", "invite", group, path], &how[..]].concat());
        std::fs::write(&invitation, written).unwrap();
        other.run(&["group", "join", invitation.to_str().unwrap()]);
    }

    /// Gives all members fresh keys.
    pub(crate) fn rotate(&self, group: &str) {
        self.run(&["group", "rotate", group, "--server", &Net::hub_address(self.side)]);
    }

    /// Seals and publishes each body.
    pub(crate) fn publish(&self, topic: &str, group: &str, bodies: &[String]) {
        for body in bodies {
            self.run(&["pub", topic, body, "--group", group]);
        }
    }

    /// Reads so many messages and gives their bodies.
    pub(crate) fn read(&self, topic: &str, group: &str, how: &[&str], count: usize) -> Vec<String> {
        let count = count.to_string();
        let args = [&["--json", "sub", topic, "--group", group, "-n", &count], how].concat();
        let out = String::from_utf8(self.run(&args)).unwrap();
        out.lines().map(body).collect()
    }

    /// Reads as a consumer until every body was there, and is killed once it has printed `each`.
    pub(crate) fn read_and_die(
        &self,
        topic: &str,
        group: &str,
        (wanted, each): (usize, usize),
    ) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        while seen.len() < wanted {
            let mut command = self.command(&["--json", "sub", topic, "--consumer", "patrol"]);
            command.args(["--group", group]).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let left = each.min(wanted - seen.len());
            let first: Vec<_> = lines.by_ref().take(left).map(Result::unwrap).collect();
            child.kill().unwrap();
            child.wait().unwrap();
            // The member may have acknowledged messages that it had printed; the last line may be
            // cut off.
            let rest = lines.map(Result::unwrap).filter(|line| line.ends_with('}'));
            seen.extend(first.into_iter().chain(rest).map(|line| body(&line)));
        }
        seen
    }

    /// A stream's state.
    pub(crate) fn state(&self, topic: &str) -> Value {
        let line = self.run(&["--json", "stream", "info", topic]);
        sealane_codec::decode(Codec::Json, line.trim_ascii()).unwrap()
    }

    /// Every file of the key folder that holds anything secret: orders are published, and counters
    /// and places in control streams are numbers and times that the hub has, too.
    pub(crate) fn key_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let relative = |path: PathBuf| path.strip_prefix(self.keys()).unwrap().to_owned();
        let files = files_below(&self.keys()).into_iter();
        let mut files: Vec<_> = files.map(|(path, content)| (relative(path), content)).collect();
        let is_open = |path: &Path| {
            path.iter().any(|part| part == "orders" || part == "counters" || part == "control")
        };
        files.retain(|(path, content)| content.len() >= PIECE_BYTES && !is_open(path));
        assert!(!files.is_empty());
        files
    }

    fn keys(&self) -> PathBuf {
        self.home.path().join("keys")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}

/// The hub, on a machine between the others.
pub(crate) struct Hub {
    process: TestProcess,
    data: tempfile::TempDir,
}

impl Hub {
    pub(crate) fn start(net: &Net) -> Hub {
        let data = tempfile::tempdir().unwrap();
        let all: Vec<Pattern> = ["**", "groups/*"].map(|text| text.parse().unwrap()).into();
        let (read, publish, manage, orders) = (all.clone(), all.clone(), all.clone(), all);
        let rights = TokenRights { read, publish, manage, orders, observe: false };
        TokenFile::add(data.path(), "members", &token(), rights, None).unwrap();
        Hub { process: spawn(net, data.path()), data }
    }

    /// SIGKILL, and the same again over the same data.
    pub(crate) fn kill_and_restart(&mut self, net: &Net) {
        self.process.kill();
        self.process = spawn(net, self.data.path());
    }

    /// All that it stores, as it lies on the disk.
    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        files_below(self.data.path()).into_values().collect()
    }
}

fn spawn(net: &Net, data: &Path) -> TestProcess {
    let mut command = net.on_hub(program());
    let listen = format!("0.0.0.0:{PORT}");
    let args = ["--json", "up", "--listen", &listen, "--data"];
    command.args(args).arg(data).env("HOME", data).stderr(Stdio::null());
    let (process, line) = TestProcess::started(&mut command);
    assert_eq!(json_text(&line, "level"), "disk");
    process
}

/// The published body, from a line that another member reads.
fn body(line: &str) -> String {
    let value = sealane_codec::decode(Codec::Json, line.trim().as_bytes()).unwrap();
    let data = value.field("envelope").and_then(|envelope| envelope.field("data"));
    data.and_then(Value::as_text).unwrap_or_else(|| panic!("{line}")).to_owned()
}
