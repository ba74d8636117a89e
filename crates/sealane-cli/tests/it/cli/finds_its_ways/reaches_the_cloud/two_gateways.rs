//! Two gateways of one mesh, each with a way of its own to the hub, hear the same frames.

use std::collections::BTreeSet;

use sealane_testing::until;

use super::scene::{CLOUD, GATEWAY, RELAY, Scene, link};
use crate::cli::home::number;
use crate::cli::json;

const OTHER: usize = 4;

/// The frames that a gateway has stored, and the frames that the hub had already.
fn brought(scene: &Scene, machine: usize) -> (u64, u64) {
    let told = scene.field.told(machine, |told| told.field("gateway").is_some());
    let gateway = told.field("gateway").unwrap();
    (number(gateway, "stored"), number(gateway, "replayed"))
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn two_gateways_of_one_mesh_store_each_frame_once() {
    let _turn = crate::TURN.beside();
    let mut scene = Scene::prepare(&["other"], &[(CLOUD, OTHER), (RELAY, OTHER)]);
    scene.write_gateway("other", &link(5, 2), "10.77.4.1:9087");
    for machine in [scene.car, RELAY, GATEWAY, OTHER] {
        scene.start_machine(machine);
    }
    scene.measure(20);
    until("all is stored", || scene.stored() == scene.sent);
    let is_brought = |machine| {
        let (stored, replayed) = brought(&scene, machine);
        stored + replayed >= scene.sent
    };
    until("both have brought all", || is_brought(GATEWAY) && is_brought(OTHER));
    let [one, other] = [GATEWAY, OTHER].map(|machine| brought(&scene, machine));
    println!("{} frames: (stored, known already) {one:?} and {other:?}", scene.sent);
    // A gateway that waits in vain for an answer brings a frame again, and finds it known.
    assert!(one.0 + other.0 <= scene.sent, "none was stored by both of them");
    assert!(one.1 + other.1 >= scene.sent, "and was known when the other brought it");
    assert!(one.1 + other.1 <= 2 * scene.sent, "none brings everything again and again");
    assert_eq!(scene.stored(), scene.sent, "nothing twice");

    // One of them is killed, and brings again what it had not heard to be stored.
    scene.kill(GATEWAY);
    scene.measure(20);
    until("all is stored", || scene.stored() == scene.sent);
    let count = scene.sent.to_string();
    let topic = scene.topic();
    let read = ["sub", &topic, "--group", "fleet", "--from", "first", "--json", "-n", &count];
    let read = scene.at_base(&read);
    let numbers = read.lines().map(|line| number(json(line).field("envelope").unwrap(), "n"));
    let numbers: BTreeSet<u64> = numbers.collect();
    assert_eq!(numbers, (0..scene.sent).collect(), "each once");
    assert_eq!(scene.stored(), scene.sent, "nothing twice");
}
