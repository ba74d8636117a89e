//! A forward-secret group through the program: what was read is gone, and a thief finds nothing.

use sealane::Value;

use super::fleet::{copy, file, fleet_with, output, run, said};
use crate::cli::{NodeProcess, json};

const SECRET: [&str; 2] = ["--history", "forward-secret"];

/// The epochs whose secrets somebody's folder holds.
fn held(node: &NodeProcess, who: &str) -> Vec<u64> {
    let shown = json(&said(node, who, &["group", "show", "fleet", "--json"]));
    let Some(Value::Array(epochs)) = shown.field("epochs") else { panic!("{shown:?}") };
    epochs.iter().filter_map(Value::as_u64).collect()
}

fn publish(node: &NodeProcess, body: &str) {
    run(node, "base", &["pub", "s", body, "--group", "fleet"]);
}

fn rotate(node: &NodeProcess) {
    run(node, "base", &["group", "rotate", "fleet", "--server", &node.address]);
}

/// The messages that somebody is shown, from the first on.
fn shown(node: &NodeProcess, who: &str) -> Vec<String> {
    let read = ["sub", "s", "--group", "fleet", "--from", "first", "--until-end"];
    let output = output(node, who, &read);
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_thief_opens_no_epoch_that_a_consumer_has_read() {
    let node = fleet_with(&SECRET, &["car", "bus"]);
    let consume = |count: &str| {
        let read = ["sub", "s", "--group", "fleet", "--consumer", "c", "-n", count];
        said(&node, "car", &read).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    publish(&node, "0");
    assert_eq!(consume("1"), ["{\"data\":0}"]);
    for body in ["1", "2", "3", "4", "5"] {
        rotate(&node);
        publish(&node, body);
    }
    // The folder holds what the consumer has not read yet, and nothing is lost.
    let read = consume("5");
    assert_eq!(read, ["1", "2", "3", "4", "5"].map(|body| format!("{{\"data\":{body}}}")));
    assert_eq!(held(&node, "car"), [5]);
    copy(&node, "car", "thief");
    assert_eq!(shown(&node, "thief"), ["{\"data\":5}"], "0 of the 5 earlier ones");

    // Without a consumer the present epoch and the one before are held, by an authority too.
    assert_eq!(shown(&node, "bus").len(), 2);
    assert_eq!([held(&node, "bus"), held(&node, "base")], [[4, 5], [4, 5]]);
    // A newcomer gets the present one.
    run(&node, "new", &["key", "new", "new"]);
    let card = file(&node, "new", "card", &["key", "card"]);
    let invite = ["group", "invite", "fleet", &card, "--server", &node.address];
    let invitation = file(&node, "base", "invitation", &invite);
    run(&node, "new", &["group", "join", &invitation]);
    assert_eq!(held(&node, "new"), [5]);
}

#[test]
fn a_consumer_that_stands_still_holds_secrets_for_no_longer_than_allowed() {
    let node = fleet_with(&[&SECRET[..], &["--forget-after", "1ms"]].concat(), &["car"]);
    publish(&node, "0");
    run(&node, "base", &["sub", "s", "--group", "fleet", "--consumer", "c", "-n", "1", "--no-ack"]);
    rotate(&node);
    run(&node, "base", &["group", "show", "fleet"]);
    assert_eq!(held(&node, "base"), [1]);
    let kept = output(&node, "base", &["group", "new", "other", "--forget-after", "1h"]);
    assert_eq!(kept.status.code(), Some(2));
}
