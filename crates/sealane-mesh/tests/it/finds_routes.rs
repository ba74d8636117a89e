//! Routes are found, have no loops, and stay where they are.

use sealane_frame::FrameKind;
use sealane_mesh::{
    MachineRole, MeshAddress, MeshEvent, MeshInput, MeshMedium, MeshSpan, MeshTime,
};
use sealane_testing::SeededRandom;

use crate::net::{Link, Net, RADIO};

#[test]
fn a_chain_finds_its_routes_in_one_hello_and_a_fifth_for_each_hop() {
    for seed in 0..5 {
        let mut net = Net::new(seed, 6, MeshMedium::dot11p());
        net.chain(&[0, 1, 2, 3, 4, 5], Link::default());
        for slot in 0..6 {
            net.start(slot, if slot == 0 { MachineRole::Gateway } else { MachineRole::Member });
        }
        let mut at = [None; 6];
        while net.now < MeshTime(0) + MeshSpan::seconds(12) && at[1..].contains(&None) {
            net.run(MeshSpan::millis(50));
            for (slot, at) in at.iter_mut().enumerate().skip(1) {
                if at.is_none() && net.reaches(slot, 0) && net.reaches(0, slot) {
                    *at = Some(net.now);
                }
            }
        }
        for (hops, at) in at.iter().enumerate().skip(1) {
            let at = at.expect("it is found");
            assert!(
                at <= MeshTime(0) + MeshSpan::millis(1200 * hops as u64),
                "{seed} {hops}: {at:?}"
            );
        }
        assert_eq!(net.loops, 0);
    }
}

/// Machines on a plane of 1000 by 1000, who hear each other up to 300.
fn scatter(net: &mut Net, count: usize, loss_percent: u64) -> Vec<(i64, i64)> {
    let mut chance = SeededRandom::new(net.chance.next());
    let at: Vec<_> =
        (0..count).map(|_| (chance.below(1000) as i64, chance.below(1000) as i64)).collect();
    for one in 0..count {
        place(net, &at, one, loss_percent);
    }
    at
}

fn place(net: &mut Net, at: &[(i64, i64)], one: usize, loss_percent: u64) {
    for other in (0..at.len()).filter(|other| *other != one) {
        let (x, y) = (at[one].0 - at[other].0, at[one].1 - at[other].1);
        if x * x + y * y <= 300 * 300 {
            net.join(one, other, Link { loss_percent, ..Link::default() });
        } else {
            net.cut(one, other);
        }
    }
}

#[test]
fn no_loop_in_a_hundred_thousand_events_of_machines_that_come_go_and_move() {
    let count = 16;
    let mut net = Net::new(7, count as u16, MeshMedium::dot11p());
    let mut at = scatter(&mut net, count, 20);
    (0..count).for_each(|slot| net.start(slot, MachineRole::Member));
    while net.steps < 100_000 {
        net.run(MeshSpan::seconds(1));
        let one = net.chance.below(count as u64) as usize;
        match net.chance.below(3) {
            0 if net.nodes.contains_key(&one) => net.stop(one),
            0 => net.start(one, MachineRole::Member),
            1 => {
                at[one] = (net.chance.below(1000) as i64, net.chance.below(1000) as i64);
                place(&mut net, &at, one, 20);
            }
            _ => {
                let cut = net.links.keys().nth(one).copied();
                cut.into_iter().for_each(|(one, other)| net.cut(one, other));
            }
        }
        assert_eq!(net.loops, 0, "at {:?}", net.now);
    }
    // Then all is quiet, and whoever is connected is reached.
    for one in 0..count {
        if !net.nodes.contains_key(&one) {
            net.start(one, MachineRole::Member);
        }
        place(&mut net, &at, one, 0);
    }
    net.run(MeshSpan::seconds(30));
    let mut pairs = 0;
    for one in 0..count {
        for other in net.connected(one).into_iter().filter(|other| *other != one) {
            assert!(net.reaches(one, other), "{one} to {other}");
            pairs += 1;
        }
    }
    assert!(pairs > count, "{pairs} pairs: the test is of something");
    assert_eq!(net.loops, 0);
}

/// A fifth of all is lost each way, and nothing repeats it: four probes in a row fail so often that
/// a machine takes its neighbour for silent every few minutes, and then all that it reached by it
/// goes another way. `cargo xtask prove mesh` counts them in large.
#[test]
fn routes_stay_where_they_are_under_loss() {
    let (seeds, count, minutes) = (1..=4, 9, 3);
    let flaps: u64 = seeds.clone().map(|seed| flaps_in_a_grid(seed, minutes)).sum();
    let most = seeds.count() as u64 * count * minutes;
    assert!(flaps <= most, "{flaps} changes, {most} are allowed");
}

/// How often nine machines in a square take other ways in so many minutes, behind the first.
fn flaps_in_a_grid(seed: u64, minutes: u64) -> u64 {
    let side = 3;
    let count = side * side;
    let mut net = Net::new(seed, count as u16, MeshMedium::dot11p());
    let link = Link { loss_percent: 20, ..Link::default() };
    for one in 0..count {
        if one % side + 1 < side {
            net.join(one, one + 1, link);
        }
        if one + side < count {
            net.join(one, one + side, link);
        }
        net.start(one, MachineRole::Member);
    }
    net.run(MeshSpan::seconds(60));
    let flaps = |net: &Net| net.nodes.values().map(|one| one.mesh.counters().flaps).sum::<u64>();
    let before = flaps(&net);
    net.run(MeshSpan::seconds(60 * minutes));
    assert_eq!(net.loops, 0);
    flaps(&net) - before
}

#[test]
fn of_two_gateways_at_equal_hops_the_nearer_in_time_is_taken() {
    let mut net = Net::new(1, 3, MeshMedium::dot11p());
    let delay = |ms| Link { delay: MeshSpan::millis(ms), ..Link::default() };
    net.join(0, 2, delay(50));
    net.start(0, MachineRole::Member);
    net.start(2, MachineRole::Gateway);
    net.run(MeshSpan::seconds(20));
    let gateway = |net: &Net| net.node(0).table.gateway().map(|route| route.to.number());
    assert_eq!(gateway(&net), Some(2));
    net.join(0, 1, delay(10));
    net.start(1, MachineRole::Gateway);
    net.run(MeshSpan::seconds(20));
    assert_eq!(gateway(&net), Some(1));
    let round_trip = |slot: u16| {
        let all = net.node(0).mesh.neighbours();
        let one = all.into_iter().find(|one| one.slot.number() == slot).unwrap();
        one.round_trip.unwrap().as_millis()
    };
    assert!((20..=25).contains(&round_trip(1)), "{}", round_trip(1));
    assert!((100..=125).contains(&round_trip(2)), "{}", round_trip(2));
}

#[test]
fn one_machine_is_reached_by_the_faster_of_two_ways() {
    let mut net = Net::new(2, 4, MeshMedium::dot11p());
    let delay = |ms| Link { delay: MeshSpan::millis(ms), ..Link::default() };
    net.chain(&[0, 2, 3], delay(50));
    (0..4).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(20));
    assert_eq!(net.via(0, 3), Some(2));
    net.chain(&[0, 1, 3], delay(10));
    net.run(MeshSpan::seconds(40));
    assert_eq!((net.via(0, 3), net.via(3, 0)), (Some(1), Some(1)));
    assert_eq!(net.loops, 0);
}

#[test]
fn interfaces_come_and_go() {
    let mut net = Net::new(5, 2, MeshMedium::dot11p());
    net.join(0, 1, Link::default());
    net.start(0, MachineRole::Member);
    net.start(1, MachineRole::Member);
    net.run(MeshSpan::seconds(5));
    assert!(net.reaches(0, 1));
    net.take(0, MeshInput::Down { interface: RADIO });
    assert!(!net.reaches(0, 1) && net.node(0).mesh.neighbours().is_empty());
    let is_lost = |event: &(MeshTime, MeshEvent)| matches!(event.1, MeshEvent::RouteLost { .. });
    assert!(net.node(0).events.iter().any(is_lost));
    let medium = net.medium;
    net.take(0, MeshInput::Up { interface: RADIO, medium });
    net.run(MeshSpan::seconds(5));
    assert!(net.reaches(0, 1) && net.reaches(1, 0));
}

#[test]
fn a_machine_that_starts_again_is_found_again_whatever_its_sequence() {
    let mut net = Net::new(6, 3, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    for _ in 0..8 {
        net.run(MeshSpan::seconds(8));
        assert!(net.reaches(2, 0) && net.reaches(0, 2));
        net.stop(0);
        net.run(MeshSpan::millis(300));
        net.start(0, MachineRole::Member);
    }
    assert_eq!(net.loops, 0);
}

#[test]
fn what_a_neighbour_told_before_it_started_anew_is_forgotten_whatever_is_heard_of_it_first() {
    let mut net = Net::new(31, 5, MeshMedium::wire(1500));
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(5));
    assert_eq!(net.via(0, 2), Some(1));
    // The machine in the middle starts anew and knows no way. Its hellos are lost at the first.
    net.cut(0, 1);
    let told = net.node(1).mesh.counters().route_messages;
    (1..3).for_each(|slot| net.stop(slot));
    net.run(MeshSpan::seconds(1));
    net.heard.clear();
    net.chain(&[1, 3, 4], Link::default());
    [1, 3, 4].into_iter().for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(9));
    assert_eq!(net.via(0, 2), None, "it is silent");
    assert!(net.node(1).mesh.counters().route_messages > told, "in numbers that seem to go on");
    let is_hello = |unit: &[u8]| unit[18] == FrameKind::Routing as u8 && unit[21..23] == [1, 0];
    for (by, unit) in std::mem::take(&mut net.heard) {
        if by == 1 && !is_hello(&unit) {
            net.take(
                0,
                MeshInput::Heard { interface: RADIO, from: MeshAddress(1), unit: (&*unit).into() },
            );
            assert_eq!(net.via(0, 2), None);
        }
    }
}

#[test]
fn a_loss_that_was_not_heard_is_heard_in_the_request_that_follows() {
    let mut net = Net::new(37, 4, MeshMedium::wire(1500));
    net.chain(&[0, 1, 2, 3], Link::default());
    (0..4).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(20));
    assert_eq!(net.via(0, 3), Some(1));
    // The end is gone. What the second machine tells of routes is lost on the way to the first one.
    net.cut(0, 1);
    net.stop(3);
    net.heard.clear();
    let tells_routes = |unit: &[u8]| unit[18] == FrameKind::Routing as u8 && unit[21..23] == [2, 0];
    let since = net.now;
    while net.via(1, 3).is_some() || net.via(0, 3).is_some() {
        assert!(net.now.since(since) < MeshSpan::seconds(4), "{:?}", net.via(1, 3));
        net.run(MeshSpan::millis(10));
        for (by, unit) in std::mem::take(&mut net.heard) {
            let is_lost = by > 1 || by == 1 && tells_routes(&unit);
            let input = MeshInput::Heard {
                interface: RADIO,
                from: MeshAddress(by as u64),
                unit: (&*unit).into(),
            };
            if !is_lost {
                net.take(1 - by, input);
            }
        }
    }
    let is_silent =
        |(_, event): &(MeshTime, MeshEvent)| matches!(event, MeshEvent::NextHopSilent { .. });
    assert!(!net.node(0).events.iter().any(is_silent));
}

/// Twenty machines in eight rows, each of which hears its own and the next ones, at 30 % loss; and
/// all pairs who hear each other.
fn eight_rows(medium: MeshMedium) -> (Net, Vec<(usize, usize)>) {
    let rows = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7_i32];
    let mut net = Net::new(5, rows.len() as u16, medium);
    let pairs = (0..rows.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    let near = |pair: &(usize, usize)| (rows[pair.0] - rows[pair.1]).abs() <= 1;
    let pairs: Vec<_> = pairs.filter(near).collect();
    let link = Link { loss_percent: 30, ..Link::default() };
    pairs.iter().for_each(|(one, other)| net.join(*one, *other, link));
    (0..rows.len()).for_each(|slot| net.start(slot, MachineRole::Member));
    (net, pairs)
}

/// A hello takes a quarter of the air time there, and goes in two parts. An announcement takes more
/// than any other message: it goes in four, of which each may be lost. Small messages were always
/// in front of it, and machines that heard each other stayed strangers for a day.
#[test]
fn nothing_starves_where_units_are_short_and_air_time_is_scarce() {
    let (mut net, pairs) = eight_rows(MeshMedium { mtu: 51, ..MeshMedium::lora_sf7() });
    net.run(MeshSpan::seconds(3600));
    let knows = |one: usize, other: usize| {
        let near = net.node(one).mesh.neighbours();
        near.iter().any(|it| usize::from(it.slot.number()) == other && it.told > 0)
    };
    let met = pairs.iter().filter(|(one, other)| knows(*one, *other) && knows(*other, *one));
    let met = met.count();
    assert!(met >= 40, "{met} of {} pairs have met", pairs.len());
    for (slot, node) in &net.nodes {
        let counters = node.mesh.counters();
        let told = [counters.announcements, counters.route_messages];
        assert!(told.iter().all(|told| *told >= 3), "{slot}: {told:?}");
    }
    assert!(net.steps < 100_000, "{}: nobody wakes where there is nothing to do", net.steps);
}

/// At LoRa's spreading factor 9 a hello goes at once, and nothing kept air time for it. Without it
/// neighbours asked whether the machine was still there, which took the air time of more hellos: of
/// ninety that were due in six hours five came.
#[test]
fn hellos_come_when_they_are_due_whatever_else_is_said() {
    let slow = MeshMedium {
        mtu: 115,
        fixed: MeshSpan(107_000),
        bytes_per_second: 205,
        ..MeshMedium::lora_sf7()
    };
    let (mut net, _) = eight_rows(slow);
    net.run(MeshSpan::seconds(6 * 3600));
    let hellos: Vec<_> = net.nodes.values().map(|node| node.mesh.counters().hellos).collect();
    assert!(hellos.iter().all(|hellos| *hellos >= 90), "{hellos:?}");
}
