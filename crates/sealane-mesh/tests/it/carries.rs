//! Data on its way: to one machine, to everybody, in parts.

use sealane_frame::limits::MAX_PARTIAL_PEERS;
use sealane_frame::{Fragment, HEADER_BYTES};
use sealane_mesh::limits::MAX_KEPT_FRAMES;
use sealane_mesh::{
    MachineRole, MeshAddress, MeshCounters, MeshEvent, MeshInput, MeshMedium, MeshSpan, MeshTime,
};

use crate::net::{Link, Net, RADIO};

const EMERGENCY: u16 = 7;
const COUNTER: u16 = 1;

fn chain(seed: u64, count: usize, medium: MeshMedium, link: Link) -> Net {
    let mut net = Net::new(seed, count as u16, medium);
    net.chain(&(0..count).collect::<Vec<_>>(), link);
    (0..count).for_each(|slot| net.start(slot, MachineRole::Member));
    net
}

#[test]
fn a_frame_goes_along_a_chain_and_is_the_same_behind_its_hops() {
    let mut net = chain(1, 5, MeshMedium::dot11p(), Link::default());
    net.run(MeshSpan::seconds(10));
    let frame = net.frame(0, Some(4), COUNTER, b"to the end");
    net.take(0, MeshInput::Data { frame: (&frame).into() });
    net.run(MeshSpan::seconds(1));
    let delivered = &net.node(4).delivered;
    assert_eq!(delivered.len(), 1);
    let came = &delivered[0].1;
    assert_eq!(came[17..], frame[17..]);
    assert_eq!(came[16], 15 - 4, "four hops");
    assert!(came.len() > HEADER_BYTES);
    for slot in 1..4 {
        assert_eq!(net.node(slot).mesh.counters().carried, 1);
        assert_eq!(net.node(slot).delivered, []);
    }
}

#[test]
fn what_is_for_everybody_comes_to_each_once_and_not_all_send_it_on() {
    let count = 20;
    let mut net = Net::new(2, count as u16, MeshMedium::dot11p());
    for one in 0..count {
        for other in one + 1..count {
            net.join(one, other, Link::default());
        }
        net.start(one, MachineRole::Member);
    }
    net.run(MeshSpan::seconds(30));
    for _ in 0..5 {
        net.data(0, None, EMERGENCY, b"help");
        net.run(MeshSpan::seconds(1));
    }
    for slot in 1..count {
        assert_eq!(net.node(slot).delivered.len(), 5, "{slot}");
    }
    let counters = |slot: usize| net.node(slot).mesh.counters();
    let flooded: u64 = (1..count).map(|slot| counters(slot).flooded).sum();
    let suppressed: u64 = (1..count).map(|slot| counters(slot).suppressed).sum();
    assert!(flooded <= 5 * 6, "{flooded} sent on");
    assert_eq!(flooded + suppressed, 5 * (count as u64 - 1));
}

#[test]
fn a_machine_whose_neighbour_has_not_heard_a_frame_sends_it_on_whatever_it_heard() {
    // 3 hears 0, 1 and 2; 4 hears 3 alone.
    for seed in 0..10 {
        let mut net = Net::new(seed, 5, MeshMedium::dot11p());
        for one in 0..4 {
            for other in one + 1..4 {
                net.join(one, other, Link::default());
            }
        }
        net.join(3, 4, Link::default());
        (0..5).for_each(|slot| net.start(slot, MachineRole::Member));
        net.run(MeshSpan::seconds(20));
        net.data(0, None, EMERGENCY, b"help");
        net.run(MeshSpan::seconds(1));
        assert_eq!(net.node(4).delivered.len(), 1, "{seed}");
    }
}

#[test]
fn who_floods_does_not_drown_an_emergency_and_nobody_exceeds_the_duty_cycle() {
    let mut net = chain(3, 4, MeshMedium::lora_sf7(), Link::default());
    net.run(MeshSpan::seconds(600));
    let spent = |net: &Net, slot: usize| -> u64 {
        net.node(slot).mesh.spent(RADIO).iter().map(|span| span.0).sum()
    };
    let before: Vec<_> = (0..4).map(|slot| spent(&net, slot)).collect();
    for second in 0..600 {
        net.data(0, None, COUNTER, &[7; 100]);
        if second == 300 {
            net.data(0, None, EMERGENCY, b"12345678help");
        }
        net.run(MeshSpan::seconds(1));
    }
    let help = |slot: usize| {
        net.node(slot).delivered.iter().find(|(_, frame)| frame[21] == EMERGENCY as u8)
    };
    let (at, _) = help(3).expect("it comes");
    assert!(*at < MeshTime(0) + MeshSpan::seconds(600 + 300 + 60), "{at:?}");
    for (slot, before) in before.into_iter().enumerate() {
        let spent = spent(&net, slot) - before;
        assert!(spent <= 36_000_000, "{slot}: {spent}");
        assert!(net.node(slot).mesh.counters().no_air_time > 0 || slot > 0);
    }
}

#[test]
fn an_urgent_frame_is_told_again_until_somebody_is_heard_who_has_it() {
    for loss_percent in [0, 100] {
        let mut net = chain(8, 3, MeshMedium::lora_sf7(), Link::default());
        net.run(MeshSpan::seconds(600));
        net.join(0, 1, Link { loss_percent, ..Link::default() });
        net.data(0, None, EMERGENCY, b"12345678help");
        net.run(MeshSpan::millis(100));
        net.join(0, 1, Link::default());
        net.run(MeshSpan::seconds(60));
        assert_eq!(net.node(2).delivered.len(), 1, "{loss_percent} %");
        let told_again = net.node(0).mesh.counters().told_again;
        assert_eq!(told_again, u64::from(loss_percent == 100), "{loss_percent} %");
        // The last one has nobody to tell, and is not heard.
        assert_eq!(net.node(1).mesh.counters().told_again, 2, "{loss_percent} %");
    }
}

#[test]
fn what_has_cost_air_time_is_not_dropped_for_what_is_made_on_the_way() {
    let mut net = chain(9, 3, MeshMedium::lora_sf7(), Link::default());
    net.run(MeshSpan::seconds(1200));
    let first = net.provision.tag(0).to_bytes();
    for _ in 0..600 {
        net.data(0, Some(2), COUNTER, &[1; 40]);
        net.data(1, Some(2), COUNTER, &[2; 40]);
        net.run(MeshSpan::seconds(1));
    }
    net.run(MeshSpan::seconds(300));
    let all = &net.node(2).delivered;
    let is_first = |frame: &[u8]| frame.windows(first.len()).any(|part| part == first);
    let of_first = all.iter().filter(|(_, frame)| is_first(frame)).count() as u64;
    let [sent, on_way] = [0, 1].map(|slot| net.node(slot).mesh.counters());
    println!("{of_first} of {} came, {} of the machine on the way", sent.own_sent, on_way.own_sent);
    assert!(sent.own_sent >= 8 && of_first * 3 >= sent.own_sent * 2, "{sent:?}");
    assert!(on_way.own_sent * 3 >= on_way.carried, "a third is its own: {on_way:?}");
    assert!(on_way.own_no_air_time > 500, "{on_way:?}");
}

#[test]
fn frames_in_parts_arrive_although_three_parts_of_ten_are_lost() {
    let link = Link { loss_percent: 30, ..Link::default() };
    let medium = MeshMedium { hello: MeshSpan::seconds(2), ..MeshMedium::ble(20) };
    let mut net = chain(4, 2, medium, link);
    net.run(MeshSpan::seconds(60));
    let before = net.node(1).delivered.len();
    let mut routed = 0;
    for number in 0..180_u8 {
        routed += u64::from(net.via(0, 1).is_some());
        net.data(0, Some(1), COUNTER, &[number; 40]);
        net.run(MeshSpan::seconds(1));
    }
    let came = (net.node(1).delivered.len() - before) as u64;
    assert!(routed >= 20, "{routed}");
    assert!(came * 100 >= routed * 80, "{came} of {routed} frames of 9 parts came");
    let counters = net.node(0).mesh.counters();
    assert!(counters.parts_again > 50, "{counters:?}");
}

#[test]
fn parts_of_made_up_senders_take_no_room_from_those_of_neighbours() {
    let mut net = chain(7, 2, MeshMedium::ble(247), Link::default());
    net.run(MeshSpan::seconds(20));
    for number in 0..10 * MAX_PARTIAL_PEERS as u64 {
        let parts = [7; 900];
        let mut unit = vec![];
        Fragment::split(&parts, 1, 247).unwrap().next().unwrap().write(&mut unit);
        let from = MeshAddress(1_000_000 + number);
        net.take(1, MeshInput::Heard { interface: RADIO, from, unit: (&unit).into() });
    }
    net.data(0, Some(1), COUNTER, &[1; 600]);
    net.run(MeshSpan::seconds(1));
    assert_eq!(net.node(1).delivered.len(), 1);
}

#[test]
fn a_neighbour_keeps_the_frames_of_one_that_sleeps() {
    let mut net = Net::new(5, 2, MeshMedium::dot11p());
    net.join(0, 1, Link::default());
    net.start(0, MachineRole::Member);
    net.start_sleeper(1);
    net.run(MeshSpan::seconds(10));
    let hellos = net.node(1).mesh.counters().hellos;
    let mut end = net.now;
    while net.node(1).mesh.counters().hellos == hellos {
        end = end + MeshSpan::millis(1);
        net.run(MeshSpan::millis(1));
    }
    net.run(MeshSpan::millis(100));
    net.data(0, Some(1), COUNTER, b"wake up");
    net.run(MeshSpan::millis(300));
    assert_eq!(net.node(1).delivered.len(), 0, "it sleeps");
    net.run(MeshSpan::seconds(1));
    assert_eq!(net.node(1).delivered.len(), 1);
}

/// A chain of three of which the last one sleeps, after frames of these types were sent to it while
/// it slept and have come; and the types of those that came.
fn given_to_a_sleeper(sent: &[u16]) -> (Net, Vec<u16>) {
    let mut net = Net::new(10, 3, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..2).for_each(|slot| net.start(slot, MachineRole::Member));
    net.start_sleeper(2);
    net.run(MeshSpan::seconds(20));
    let hellos = net.node(2).mesh.counters().hellos;
    while net.node(2).mesh.counters().hellos == hellos {
        net.run(MeshSpan::millis(1));
    }
    net.run(MeshSpan::millis(50));
    for what in sent {
        net.data(0, Some(2), *what, &[7; 12]);
        net.run(MeshSpan::millis(5));
    }
    assert_eq!(net.node(2).delivered, [], "it sleeps");
    net.run(MeshSpan::seconds(1));
    let types = net.node(2).delivered.iter().map(|(_, frame)| u16::from(frame[21])).collect();
    (net, types)
}

#[test]
fn a_frame_that_was_kept_for_a_sleeper_is_as_urgent_as_it_was_and_no_own_one() {
    let (net, types) = given_to_a_sleeper(&[COUNTER, EMERGENCY]);
    assert_eq!(types.len(), 2, "{types:?}");
    let keeper = &net.node(1).mesh;
    let [_, urgent, normal, _] = keeper.spent(RADIO);
    assert!(urgent.0 > 0 && urgent == normal, "two frames of one length: {urgent:?}, {normal:?}");
    let counters = keeper.counters();
    assert_eq!((counters.carried, counters.own_sent), (2, 0));
}

#[test]
fn an_urgent_frame_that_is_kept_for_a_sleeper_does_not_leave_for_others() {
    let (net, types) = given_to_a_sleeper(&[&[EMERGENCY][..], &[COUNTER; 12][..]].concat());
    assert_eq!(types.len(), MAX_KEPT_FRAMES, "{types:?}");
    assert_eq!(types.iter().filter(|what| **what == EMERGENCY).count(), 1, "{types:?}");
    let counters = net.node(1).mesh.counters();
    assert_eq!((counters.no_air_time, counters.own_no_air_time), (5, 0));
}

#[test]
fn a_hop_limit_ends_a_frame_and_a_false_hop_is_dropped() {
    let mut net = chain(6, 3, MeshMedium::dot11p(), Link::default());
    net.run(MeshSpan::seconds(10));
    let mut frame = net.frame(0, Some(2), COUNTER, b"short");
    frame[16] = 1;
    net.take(0, MeshInput::Data { frame: (&frame).into() });
    net.run(MeshSpan::seconds(1));
    assert_eq!(net.node(2).delivered, []);
    assert_eq!(net.node(1).mesh.counters().hop_limit, 1);
    net.take(0, MeshInput::Data { frame: b"no frame".into() });
    net.take(
        0,
        MeshInput::Heard { interface: RADIO, from: MeshAddress(9), unit: (&[2, 7, 7]).into() },
    );
    assert!(net.node(0).mesh.counters().malformed >= 2);
    let is_faulty = |(_, event): &(MeshTime, MeshEvent)| matches!(event, MeshEvent::Faulty { .. });
    assert!(!net.node(0).events.iter().any(is_faulty));
}

#[test]
fn a_report_is_taken_at_the_end_of_its_way_too() {
    for medium in [MeshMedium::dot11p(), MeshMedium::wire(1500)] {
        let count = 17;
        let mut net = Net::new(14, count as u16, medium);
        net.chain(&(0..count).collect::<Vec<_>>(), Link::default());
        net.start(0, MachineRole::Gateway);
        (1..count).for_each(|slot| net.start(slot, MachineRole::Member));
        net.run(MeshSpan::seconds(20));
        let before = net.node(15).mesh.counters();
        net.run(MeshSpan::seconds(30));
        assert!(net.node(14).mesh.counters().flooded > 0, "the last that sends reports on");
        let counters = net.node(15).mesh.counters();
        assert!(counters.hop_limit > before.hop_limit && counters.flooded == 0);
        let refused = |one: &MeshCounters| (one.malformed, one.unopened);
        assert_eq!(refused(&counters), refused(&before));
    }
}

#[test]
fn a_member_that_sets_hop_limits_anew_has_each_honest_machine_send_a_flood_once() {
    let count = 6;
    let mut net = Net::new(11, count as u16, MeshMedium::wire(1500));
    for slot in 0..count {
        net.join(slot, (slot + 1) % count, Link::default());
        net.start(slot, MachineRole::Member);
    }
    net.run(MeshSpan::seconds(20));
    net.nodes.get_mut(&3).unwrap().renews = true;
    let flooded = |net: &Net| -> Vec<u64> {
        (0..count).map(|slot| net.node(slot).mesh.counters().flooded).collect()
    };
    let before = flooded(&net);
    net.data(0, None, EMERGENCY, b"help");
    net.run(MeshSpan::seconds(10));
    let sent: Vec<_> = flooded(&net).iter().zip(before).map(|(now, then)| now - then).collect();
    let renewed = net.node(3).renewed;
    assert!((1..=4).contains(&renewed), "what its two neighbours have sent: {renewed}");
    assert!(sent.iter().all(|times| *times <= 1), "each sends it once at most: {sent:?}");
    let all_have_it = [1, 2, 4, 5].iter().all(|slot| net.node(*slot).delivered.len() == 1);
    assert!(all_have_it, "and each has it once");
}

#[test]
fn wires_carry_plain_frames_of_the_full_form() {
    let mut net = chain(7, 3, MeshMedium::wire(1500), Link::default());
    net.run(MeshSpan::seconds(10));
    net.data(0, Some(2), COUNTER, &[9; 3000]);
    let frame = net.frame(2, None, EMERGENCY, b"12345678all");
    net.take(2, MeshInput::Data { frame: (&frame).into() });
    net.run(MeshSpan::seconds(1));
    assert_eq!(net.node(2).delivered.len(), 1);
    assert_eq!(net.node(0).delivered.len(), 1);
    assert_eq!(net.node(0).delivered[0].1[17..], frame[17..]);
}
