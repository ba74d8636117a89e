//! `sealane bench race`, as far as it goes without the peers.

use sealane::Value;

use crate::{NodeProcess, sealane};

#[test]
fn the_clients_of_a_fan_out_count_every_delivery_once() {
    let node = NodeProcess::start();
    let mut before = 0;
    for batch in ["1", "64"] {
        let words = ["bench", "race-client", &node.address, batch, "7", "100", "300"];
        let output = node.run(&words);
        let (ready, figures) = output.split_once('\n').unwrap();
        assert_eq!(ready, "ready");
        let (count, seconds) = figures.trim().split_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        assert!(seconds.parse::<f64>().unwrap() > 0.0, "{seconds}");
        let state = crate::json(&node.run(&["--json", "stream", "info", "race/run"]));
        let published = state.field("count").and_then(Value::as_u64).unwrap();
        // The first burst, of 20 messages, comes before the 7 readers.
        assert!(count > 0);
        assert_eq!((published - before - 20) * 7, count);
        before = published;
    }
}

#[test]
fn a_race_without_peers_says_how_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["bench", "race", "--peers", "nowhere"];
    let output = sealane(folder.path()).args(words).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("nats-server is not there: `cargo xtask prove race`"), "{said}");
}
