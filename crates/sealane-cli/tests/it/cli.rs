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
mod gives_memory_back;
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
mod keeps_servers;
mod keeps_vaults;
mod keeps_vaults_each_day;
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

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sealane::{Codec, Value};
use sealane_testing::{TestProcess, feed, succeed, until_says, until_told};

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
    process: TestProcess,
    address: String,
}

impl NodeProcess {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (process, address) = Self::spawn(folder.path(), "127.0.0.1:0");
        Self { folder, process, address }
    }

    fn spawn(folder: &Path, listen: &str) -> (TestProcess, String) {
        Self::spawn_on(folder, folder.join("data"), listen)
    }

    fn spawn_on(home: &Path, data: impl AsRef<Path>, listen: &str) -> (TestProcess, String) {
        let mut up = sealane(home);
        up.args(["up", "--json", "--listen", listen, "--data"]).arg(data.as_ref());
        let (process, line) = TestProcess::started(&mut up);
        let started = json(&line);
        assert_eq!(started.field("v"), Some(&1_u64.into()));
        assert_eq!(text(&started, "level"), "disk");
        assert_eq!(text(&started, "version"), env!("CARGO_PKG_VERSION"));
        assert!(Path::new(&text(&started, "data")).is_absolute());
        (process, text(&started, "address"))
    }

    /// Starts it again on the same data, at the same address.
    fn restart(&mut self) {
        let (process, address) = Self::spawn(self.folder.path(), &self.address);
        assert_eq!(address, self.address);
        self.process = process;
    }

    /// SIGKILL, and the same again on the same data.
    fn kill_and_restart(&mut self) {
        self.process.kill();
        self.restart();
    }

    fn terminate(&mut self) -> Output {
        Output { status: self.process.stop(), stdout: Vec::new(), stderr: Vec::new() }
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
        succeed(&mut self.command(args))
    }

    /// A client verb that goes on, and what it writes.
    fn follow(&self, args: &[&str]) -> TestProcess {
        TestProcess::start(self.command(args).stderr(Stdio::null()))
    }

    /// Waits until somebody reads this stream.
    fn wait_for_reader(&self, topic: &str) {
        let state = || json(&self.run(&["--json", "stream", "info", topic]));
        until_told(state, |state| state.field("readers").and_then(Value::as_u64) > Some(0));
    }
}

/// A relay, a gateway or a member of a mesh as a process of its own.
struct Machine {
    process: TestProcess,
    /// Its output when it had started.
    started: Value,
}

impl Machine {
    fn start(mut command: Command) -> Machine {
        let (process, line) = TestProcess::started(&mut command);
        Machine { process, started: json(&line) }
    }

    /// Ends it well, and gives its final output.
    fn stop(self) -> Value {
        json(&self.process.stopped())
    }
}

/// The status that a command of `mesh status --json` tells, as soon as the condition holds.
#[track_caller]
fn until_status(command: &mut Command, is_so: impl Fn(&Value) -> bool) -> Value {
    json(&until_says(command, |said| is_so(&json(said))))
}

fn json(line: &str) -> Value {
    sealane_codec::decode(Codec::Json, line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"))
}

fn text(value: &Value, name: &str) -> String {
    value.field(name).and_then(Value::as_text).unwrap_or_else(|| panic!("{name}")).to_owned()
}
