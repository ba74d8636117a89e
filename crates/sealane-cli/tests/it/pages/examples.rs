//! The shell scripts of `examples/` run as they stand; those in Rust run in the tests of `sealane`.

use std::fs;
use std::path::Path;

use super::stage::{self, Stage};

/// Runs a script of the folder, and gives what it wrote.
fn script(stage: &Stage, line: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    stage.run("reader", &format!("{}/{line}", folder.display()))
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn a_sealed_fleet_of_three() {
    stage::enter("pages::examples::as_process_a_fleet");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_a_fleet() {
    let mut stage = Stage::new();
    stage.up("reader", "sealane up");
    let said = script(&stage, "sealed_fleet.sh fleet");
    for part in ["at the bridge", "wait there", "the car is sold", "sequence"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let car = "sealane sub ops/positions --group ops --from first --until-end --keys fleet/car";
    let car = stage.ends("reader", car).output;
    assert!(!car.contains("sold"), "who was removed reads: {car}");
    let hub = stage.run("reader", "cat ~/.local/share/sealane/streams.db*");
    assert!(!hub.contains("bridge"), "the hub can read it");
}

#[test]
#[ignore = "lab: needs unshare (a network of its own)"]
fn a_backup_of_a_node() {
    stage::enter("pages::examples::as_process_a_backup");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn as_process_a_backup() {
    let mut stage = Stage::new();
    let node = stage.up("reader", "sealane up");
    stage.run("reader", "sealane pub a/b '{\"n\": 1}'");
    for _ in 0..2 {
        script(&stage, "backup_node.sh");
    }
    stage.interrupt(node);
    assert_eq!(
        stage.run("reader", "sealane vault ls --json").lines().count(),
        1,
        "a day keeps one"
    );
    stage.run("reader", "sealane vault get --to back && sealane restore back/node --data again");
    let text = fs::read_dir(stage.work().join("again")).unwrap().count();
    assert!(text > 0);
    stage.up("reader", "sealane up --data again");
    assert!(stage.run("reader", "sealane sub a/b --from first --until-end").contains("\"n\""));
}
