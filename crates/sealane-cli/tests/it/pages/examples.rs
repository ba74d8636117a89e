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
fn a_sealed_fleet_of_three() {
    stage::enter("pages::examples::a_fleet");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn a_fleet() {
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
fn a_backup_of_a_node() {
    stage::enter("pages::examples::a_backup");
}

#[test]
#[ignore = "a process of the test above, on a network of its own"]
fn a_backup() {
    let mut stage = Stage::new();
    let node = stage.up("reader", "sealane up");
    stage.run("reader", "sealane pub a/b '{\"n\": 1}'");
    // Without a vault there is no backup, and none is made.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let nightly = format!("{}/backup_node.sh", folder.display());
    let refused = format!("! {nightly} && ! test -e \"$SEALANE_VAULT/config\"");
    stage.run("reader", &refused);
    stage.run("reader", "sealane vault init > kit");
    // Other backups of the same host lie in the same vault.
    stage.run("reader", "mkdir docs && echo kept > docs/letter && sealane vault put docs");
    stage.run("reader", "mkdir photos && echo sea > photos/a && sealane vault put photos");
    for _ in 0..2 {
        let said = script(&stage, "backup_node.sh");
        assert!(!said.contains("code") && !said.contains("made vault"), "{said}");
    }
    let listed = stage.run("reader", "sealane vault ls --json");
    let of = |what: &str| listed.lines().filter(|line| line.contains(what)).count();
    let found = [of("/docs\""), of("/photos\""), of("/node\"")];
    assert_eq!(found, [1, 1, 1], "a day keeps one of each: {listed}");
    // The disk is not mounted: that is said, and nothing is put beside it.
    stage.run("reader", "mv \"$SEALANE_VAULT\" held && mkdir \"$SEALANE_VAULT\"");
    stage.run("reader", &format!("! {nightly} 2> said && grep -q SL-VAULT-55 said"));
    stage.run("reader", "rmdir \"$SEALANE_VAULT\" && mv held \"$SEALANE_VAULT\"");
    stage.interrupt(node);
    stage.run(
        "reader",
        "sealane vault get latest node --to back && sealane restore back/node --data again",
    );
    let text = fs::read_dir(stage.work().join("again")).unwrap().count();
    assert!(text > 0);
    stage.up("reader", "sealane up --data again");
    assert!(stage.run("reader", "sealane sub a/b --from first --until-end").contains("\"n\""));
}
