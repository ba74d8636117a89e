//! Field to cloud, for real: a machine in the field, a relay without keys, a gateway and a hub,
//! each on a network of its own. What the field measures is read by a member in a fifth place,
//! whoever is killed on the way and while the hub is down: once each, in order, and nobody on the
//! way holds a body. A member that is revoked at the hub is shut out in the field, too.

mod commands;
mod revocation;
mod scene;
mod two_gateways;

use std::time::{Duration, Instant};

use sealane_testing::{PATIENCE, files_below, holds, process_memory};

use crate::cli::home::number;
use crate::cli::json;
use scene::{GATEWAY, MAX_UNDER_WAY, RELAY, Scene, WORD};

/// The measurements of the field in each round: fewer than its log keeps.
const EACH_ROUND: usize = 6;
/// How long it waits between two measurements while the hub is down for long.
const MEASURES_AFTER: Duration = Duration::from_secs(1);

/// A number of the environment, for long runs.
fn asked(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn what_the_field_measures_is_read_in_a_fifth_place_whoever_is_killed() {
    let _turn = crate::TURN.beside();
    let (kills, seconds) = (asked("SEALANE_KILLS", 10), asked("SEALANE_SECONDS", 3));
    let mut scene = Scene::start(&[], &[]);
    scene.measure(EACH_ROUND);
    scene.until_near(|| scene.stored());
    for kill in 0..kills {
        scene.measure(EACH_ROUND);
        scene.kill([GATEWAY, RELAY][kill % 2]);
        scene.measure(EACH_ROUND);
        scene.until_near(|| scene.stored());
    }
    take_the_hub_away(&mut scene, Duration::from_secs(seconds as u64));
    scene.start_hub();
    let took = until_stored(&scene);
    println!("{} frames, {kills} kills: all stored {took:?} after the hub", scene.sent);

    let numbers = numbers(&scene, scene.sent);
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len() as u64, scene.sent, "each once: {numbers:?}");
    assert_eq!(scene.stored(), scene.sent, "nothing twice");
    // How long a machine takes to find its neighbours again decides whether a gateway waits for it.
    let behind = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
    println!("frames that stand behind a later one: {behind}");
    if std::env::var_os("SEALANE_DEMANDS").is_some() {
        assert_eq!(behind, 0, "in order: {numbers:?}");
    }
    nobody_on_the_way_holds_a_body(&scene);
}

/// Waits until the hub has all that was measured, and gives how long that took.
fn until_stored(scene: &Scene) -> Duration {
    let began = Instant::now();
    while scene.stored() < scene.sent {
        assert!(began.elapsed() < PATIENCE, "not stored: {:?}", not_stored(scene));
        std::thread::sleep(Duration::from_millis(100));
    }
    began.elapsed()
}

/// The measurements that the hub does not have; tells what the machines on the way have counted.
fn not_stored(scene: &Scene) -> Vec<u64> {
    for machine in [scene.car, RELAY, GATEWAY] {
        println!("{:?}", scene.field.told(machine, |_| true));
    }
    let stored = numbers(scene, scene.stored());
    (0..scene.sent).filter(|number| !stored.contains(number)).collect()
}

/// The first measurements that the hub has, as a member reads them in the fifth place.
fn numbers(scene: &Scene, count: u64) -> Vec<u64> {
    let (topic, count) = (scene.topic(), count.to_string());
    let read = ["sub", &topic, "--group", "fleet", "--from", "first", "--json", "-n", &count];
    let read = scene.at_base(&read);
    assert!(holds(read.as_bytes(), WORD), "what is looked for can be found");
    read.lines().map(|line| number(json(line).field("envelope").unwrap(), "n")).collect()
}

/// The hub is down; the gateway keeps what comes, and is killed as well. The field goes on to
/// measure until the hub is back.
fn take_the_hub_away(scene: &mut Scene, most: Duration) {
    // The next measurements nearly fill the log of the field: nothing else may be under way.
    until_stored(scene);
    let (stored, sent) = (scene.stored(), scene.sent);
    scene.kill_hub();
    let down = Instant::now();
    scene.measure(MAX_UNDER_WAY as usize);
    scene.until_near(|| stored + scene.waiting());
    scene.kill(GATEWAY);
    scene.measure(EACH_ROUND);
    scene.until_near(|| stored + scene.waiting());
    while down.elapsed() < most {
        scene.measure(1);
        scene.until_near(|| stored + scene.waiting());
        std::thread::sleep(MEASURES_AFTER.min(most.saturating_sub(down.elapsed())));
    }
    let (frames, waiting) = (scene.sent - sent, scene.waiting());
    println!("{frames} frames in {:?} without a hub, {waiting} in the queue", down.elapsed());
}

fn nobody_on_the_way_holds_a_body(scene: &Scene) {
    let hub = scene.hub.as_ref().unwrap().id();
    let others = [GATEWAY, RELAY].map(|one| scene.machines[one].as_ref().unwrap().process.id());
    for process in [hub].into_iter().chain(others) {
        let memory = process_memory(process);
        assert!(!holds(&memory, WORD), "the memory of process {process} holds a body");
    }
    let found = files_below(scene.field.home.folder());
    assert!(found.len() > 10, "{} files", found.len());
    for (file, content) in found {
        assert!(!holds(&content, WORD), "{}", file.display());
    }
}
