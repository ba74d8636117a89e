//! `sealane-bench race`, as far as it goes without the peers.

use std::path::Path;
use std::process::{Command, Stdio};

use sealane_bench::programs::BenchPrograms;
use sealane_message::Value;
use sealane_testing::{TestProcess, succeed};

use crate::{PROGRAM, bench, json, text};

/// The `sealane` beside the bench. `cargo test --workspace` builds it; a test of this package alone
/// takes what is there.
fn sealane() -> Command {
    let bench = Path::new(PROGRAM).to_owned();
    let programs = BenchPrograms { sealane: bench.with_file_name("sealane"), bench };
    programs.check().expect("build it: cargo build -p sealane-cli");
    Command::new(programs.sealane)
}

struct Node {
    _process: TestProcess,
    address: String,
    _folder: tempfile::TempDir,
}

impl Node {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = sealane();
        command.args(["--json", "up", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
        let (process, line) = TestProcess::started(command.stderr(Stdio::null()));
        Self { _process: process, address: text(&json(&line), "address"), _folder: folder }
    }

    /// How many messages a stream has.
    fn count(&self, topic: &str) -> u64 {
        let mut command = sealane();
        command.args(["--json", "stream", "info", topic, "--server", &self.address]);
        let state = json(&succeed(&mut command));
        state.field("count").and_then(Value::as_u64).unwrap()
    }
}

#[test]
fn the_clients_of_a_fan_out_count_every_delivery_once() {
    let node = Node::start();
    let mut before = 0;
    for batch in ["1", "64"] {
        let mut command = Command::new(PROGRAM);
        command.args(["race-client", &node.address, batch, "7", "100", "300"]);
        let output = succeed(&mut command);
        let (ready, figures) = output.split_once('\n').unwrap();
        assert_eq!(ready, "ready");
        let (count, seconds) = figures.trim().split_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        assert!(seconds.parse::<f64>().unwrap() > 0.0, "{seconds}");
        let published = node.count("race/run");
        // The first burst, of 20 messages, comes before the 7 readers.
        assert!(count > 0);
        assert_eq!((published - before - 20) * 7, count);
        before = published;
    }
}

#[test]
fn a_race_without_peers_says_how_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bench(folder.path());
    let output = command.args(["race", "--peers", "nowhere"]).current_dir(folder.path()).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("nats-server is not there: `cargo xtask prove race`"), "{said}");
}
