//! A next hop that is silent, or swallows frames, is left.

use sealane_mesh::{MachineRole, MeshEvent, MeshMedium, MeshSpan, MeshTime};

use crate::net::{Link, Net};

/// One hello and five gaps between probes.
const WITH_OTHERS: MeshSpan = MeshSpan::millis(1000 + 250);

/// How long it takes until a machine that has lost its next hop has another one.
fn outage(net: &mut Net, at: usize, to: usize) -> MeshSpan {
    let lost = net.via(at, to).expect("there was a way");
    net.stop(lost);
    let begun = net.now;
    while net.via(at, to).is_none_or(|via| via == lost) {
        let end = net.now + MeshSpan::seconds(1);
        assert!(net.step(end) || net.now < end, "nothing happens any more");
        assert!(net.now.since(begun) < MeshSpan::seconds(20), "no other way is found");
    }
    net.now.since(begun)
}

#[test]
fn with_others_traffic_goes_on_after_one_hello_and_five_probes() {
    for seed in 0..20 {
        let mut net = Net::new(seed, 4, MeshMedium::dot11p());
        net.chain(&[0, 1, 3], Link::default());
        net.chain(&[0, 2, 3], Link::default());
        (0..4).for_each(|slot| net.start(slot, MachineRole::Member));
        net.run(MeshSpan::seconds(15) + MeshSpan::millis(137 * seed));
        let outage = outage(&mut net, 0, 3);
        assert!(outage <= WITH_OTHERS, "{seed}: {outage:?}");
        assert_eq!(net.loops, 0);
    }
}

#[test]
fn without_others_a_longer_way_is_found_within_three_hellos() {
    for seed in 0..20 {
        let mut net = Net::new(seed, 6, MeshMedium::dot11p());
        net.chain(&[0, 1, 3], Link::default());
        net.chain(&[0, 2, 4, 5, 3], Link::default());
        (0..6).for_each(|slot| net.start(slot, MachineRole::Member));
        net.run(MeshSpan::seconds(20) + MeshSpan::millis(137 * seed));
        assert_eq!(net.via(0, 3), Some(1));
        let outage = outage(&mut net, 0, 3);
        assert!(outage <= MeshSpan::seconds(3), "{seed}: {outage:?}");
        net.run(MeshSpan::seconds(2));
        assert!(net.reaches(0, 3));
        assert_eq!(net.loops, 0);
    }
}

#[test]
fn a_neighbour_that_answers_probes_stays() {
    let mut net = Net::new(4, 2, MeshMedium::dot11p());
    net.join(0, 1, Link { loss_percent: 20, ..Link::default() });
    (0..2).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(120));
    let counters = net.node(0).mesh.counters();
    assert!(counters.probes > 10, "{counters:?}");
    let is_silent =
        |event: &&(MeshTime, MeshEvent)| matches!(event.1, MeshEvent::NextHopSilent { .. });
    let silent = net.node(0).events.iter().filter(is_silent).count();
    assert!(silent <= 2, "{silent} false alarms in two minutes");
}

#[test]
fn a_black_hole_is_left_within_ten_seconds_however_well_it_answers() {
    for seed in 0..5 {
        let mut net = Net::new(seed, 4, MeshMedium::dot11p());
        net.chain(&[0, 1, 3], Link::default());
        net.chain(&[0, 2, 3], Link::default());
        for slot in 0..4 {
            net.start(slot, if slot == 3 { MachineRole::Gateway } else { MachineRole::Member });
        }
        let send = |net: &mut Net, seconds: u64| {
            for _ in 0..seconds * 20 {
                net.data(0, Some(3), 1, b"telemetry");
                net.run(MeshSpan::millis(50));
            }
        };
        net.run(MeshSpan::seconds(10));
        send(&mut net, 10);
        let before = net.node(3).delivered.len();
        assert!(before >= 190, "{before}");
        let hole = net.via(0, 3).unwrap();
        net.nodes.get_mut(&hole).unwrap().swallows = true;
        let begun = net.now;
        send(&mut net, 10);
        assert_ne!(net.via(0, 3), Some(hole), "{seed}");
        let found = net.node(0).events.iter().rev().find_map(|(at, event)| match event {
            MeshEvent::BlackHole { via, gateway } if gateway.number() == 3 => Some((*at, *via)),
            _ => None,
        });
        let (at, via) = found.expect("it is told");
        assert_eq!(usize::from(via.number()), hole);
        assert!(at.since(begun) < MeshSpan::seconds(10), "{seed}");
        let before = net.node(3).delivered.len();
        send(&mut net, 5);
        assert!(net.node(3).delivered.len() - before >= 95, "{seed}: frames arrive again");
    }
}
