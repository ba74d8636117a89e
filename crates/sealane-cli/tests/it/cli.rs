//! The real binary, in temporary folders and on free ports.

mod acts_where_the_user_is;
mod answers_on_call;
mod brings_the_field_to_the_hub;
mod completes;
mod decides_classes;
mod explains_frames;
mod explains_itself;
mod fails_by_name;
mod finds_its_ways;
mod fleet;
mod follows_hints;
mod goes_on_after_kill;
mod greets;
mod guards_nodes;
mod hands_cards_on;
mod hands_over;
mod heals_groups;
mod helps;
mod home;
mod joins_machines;
mod keeps_a_day;
mod keeps_contexts;
mod keeps_each_host;
mod keeps_vaults;
mod keeps_vaults_in_trouble;
mod manages_consumers;
mod moves_messages;
mod operates_nodes;
mod passes_over_strangers;
mod publishes_over_kills;
mod relays_under_flood;
mod relays_without_keys;
mod seals_messages;
mod shares_a_mesh_with_the_simulator;
mod shares_keys;
mod shows_what_leaks;
mod tells_how_it_is;
mod warns_of_orders;
mod writes_json;

#[path = "mistakes.rs"]
mod mistakes;

#[path = "../../../sealane/tests/it/scripted.rs"]
mod scripted;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use sealane::{Codec, Value};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sealane");

/// The program with these words on a terminal, which `script` makes.
fn on_terminal(words: &str) -> Command {
    let is_there = Command::new("script").arg("--version").output();
    assert!(is_there.is_ok(), "`script` is missing; run: cargo xtask needs");
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{PROGRAM} {words}"), "/dev/null"]).env("NO_COLOR", "1");
    script
}

/// The program with an empty environment of its own.
fn sealane(home: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

/// A node as a process of its own.
struct NodeProcess {
    folder: tempfile::TempDir,
    child: Child,
    address: String,
}

impl NodeProcess {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (child, address) = Self::spawn(folder.path(), "127.0.0.1:0");
        Self { folder, child, address }
    }

    fn spawn(folder: &Path, listen: &str) -> (Child, String) {
        Self::spawn_on(folder, folder.join("data"), listen)
    }

    fn spawn_on(home: &Path, data: impl AsRef<Path>, listen: &str) -> (Child, String) {
        let mut child = sealane(home)
            .args(["up", "--json", "--listen", listen, "--data"])
            .arg(data.as_ref())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = read_line(&mut BufReader::new(child.stdout.as_mut().unwrap()));
        let started = json(&line);
        assert_eq!(started.field("v"), Some(&1_u64.into()));
        assert_eq!(text(&started, "level"), "disk");
        assert_eq!(text(&started, "version"), env!("CARGO_PKG_VERSION"));
        assert!(Path::new(&text(&started, "data")).is_absolute());
        (child, text(&started, "address"))
    }

    /// SIGKILL, and the same again on the same data.
    fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(self.folder.path(), &self.address).0;
    }

    fn terminate(&mut self) -> Output {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let status = self.child.wait().unwrap();
        Output { status, stdout: Vec::new(), stderr: Vec::new() }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// A client verb.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = sealane(&self.home());
        command.args(args).env("SEALANE_SERVER", &self.address);
        command
    }

    /// Runs a client verb that succeeds, and gives what it wrote.
    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A client verb that goes on, and what it writes.
    fn follow(&self, args: &[&str]) -> Follow {
        let mut child =
            self.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Follow { child, lines }
    }

    /// Waits until somebody reads this stream.
    fn wait_for_reader(&self, topic: &str) {
        for _ in 0..500 {
            let state = json(&self.run(&["--json", "stream", "info", topic]));
            if state.field("readers").and_then(Value::as_u64) > Some(0) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("nobody reads {topic}");
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A verb that is running.
struct Follow {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follow {
    fn line(&mut self) -> String {
        read_line(&mut self.lines)
    }

    /// The rest of its output, after its own end.
    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

/// Runs a command over this input.
fn feed(command: &mut Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn json(line: &str) -> Value {
    sealane_codec::decode(Codec::Json, line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"))
}

fn text(value: &Value, name: &str) -> String {
    value.field(name).and_then(Value::as_text).unwrap_or_else(|| panic!("{name}")).to_owned()
}
