//! Orders and notices of removal reach everybody whom any chain of machines reaches, over links
//! that lose a third, past relays that hold no key, and also those who come later.

use std::collections::{BTreeMap, BTreeSet};

use sealane_mesh::{
    KeptGroup, MachineRole, MeshEvent, MeshInput, MeshMedium, MeshProvision, MeshSpan, MeshTime,
};
use sealane_seal::Slot;

use crate::net::{Link, Net};

/// A re-key of 20 members: a frame of 1,046 bytes, its number and a signature.
const REKEY_FRAME_BYTES: usize = 1046;
const TEAM: usize = 20;
const THIEF: usize = 10;

/// Twenty machines in eight columns: those of a column, and of the next one, hear each other.
fn team(seed: u64, medium: MeshMedium, loss_percent: u64) -> Net {
    let mut net = Net::new(seed, TEAM as u16, medium);
    let column = |node: usize| node * 8 / TEAM;
    for one in 0..TEAM {
        for other in one + 1..TEAM {
            if column(other) - column(one) <= 1 {
                net.join(one, other, Link { loss_percent, ..Link::default() });
            }
        }
        net.start(one, if one == 0 { MachineRole::Gateway } else { MachineRole::Member });
    }
    net
}

/// How many hops each machine is from the first, without going by one of them.
fn hops(net: &Net, without: usize) -> BTreeMap<usize, u64> {
    let (mut found, mut edge) = (BTreeMap::from([(0, 0)]), BTreeSet::from([0]));
    for distance in 1.. {
        let next: BTreeSet<usize> =
            net.links.keys().filter(|(from, _)| edge.contains(from)).map(|(_, to)| *to).collect();
        edge = next.into_iter().filter(|to| *to != without && !found.contains_key(to)).collect();
        if edge.is_empty() {
            break;
        }
        found.extend(edge.iter().map(|one| (*one, distance)));
    }
    found
}

fn left_at(net: &Net, at: usize) -> Option<MeshTime> {
    let thief = Slot::new(THIEF as u16).unwrap();
    let is_it = |event: &MeshEvent| *event == MeshEvent::Leaving { slot: thief, order: 0 };
    net.node(at).events.iter().find(|(_, event)| is_it(event)).map(|(at, _)| *at)
}

/// When the last of the others had the notice, for each hop, and when it had the re-key.
struct Took {
    hops: u64,
    notice: MeshSpan,
    /// The longest time for one hop, in hellos and their air time.
    worst_hop: f64,
    rekey: MeshSpan,
}

fn remove_the_thief(net: &mut Net, hello: MeshSpan, most: MeshSpan) -> Took {
    net.removed.insert(0, vec![THIEF as u16]);
    let notice = net.provision.removal(0, THIEF as u16, 0).unwrap();
    let order = net.provision.order(0, &[7; REKEY_FRAME_BYTES]).unwrap();
    let start = net.now;
    net.give(0, &notice);
    net.give(0, &order);
    let others: Vec<usize> = (0..TEAM).filter(|one| *one != THIEF).collect();
    let is_done = |net: &Net| others.iter().all(|one| !net.node(*one).obeyed.is_empty());
    while !is_done(net) && net.now.since(start) < most {
        net.run(hello.part(4));
    }
    let hops = hops(net, THIEF);
    let since = |at: Option<&MeshTime>| at.map(|at| at.since(start));
    let mut took = Took { hops: 0, notice: MeshSpan(0), worst_hop: 0.0, rekey: MeshSpan(0) };
    for one in others {
        let obeyed = since(net.node(one).obeyed.first());
        let obeyed = obeyed.unwrap_or_else(|| panic!("{one} has no re-key after {most:?}"));
        // The order tells it as well, to those who missed the notice.
        let notice = left_at(net, one).map_or(obeyed, |at| at.since(start));
        let hop = hello + net.medium.air(133);
        took.hops = took.hops.max(hops[&one]);
        took.worst_hop = took.worst_hop.max(notice.0 as f64 / (hop.0 * hops[&one].max(1)) as f64);
        took.notice = took.notice.max(notice);
        took.rekey = took.rekey.max(obeyed);
    }
    took
}

fn is_shut_out(net: &mut Net) {
    net.run(MeshSpan::seconds(10));
    let thief = Slot::new(THIEF as u16).unwrap();
    for one in (0..TEAM).filter(|one| *one != THIEF) {
        let node = net.node(one);
        assert!(node.mesh.neighbours().iter().all(|other| other.slot != thief), "{one}");
        assert!(node.table.route(thief).is_none(), "{one}");
        assert!(node.mesh.leaving().is_empty(), "the order has come");
    }
    assert!(net.node(THIEF).obeyed.is_empty());
}

fn shut_out_over_seven_hops(name: &str, medium: MeshMedium, seed: u64) {
    let mut net = team(100 + seed, medium, 30);
    net.run(MeshSpan::seconds(15));
    let took = remove_the_thief(&mut net, MeshSpan::seconds(1), MeshSpan::seconds(600));
    println!(
        "{name}, seed {seed}: {} hops, 30 % loss: notice {} ms, {:.2} hellos a hop at worst; \
         re-key of {REKEY_FRAME_BYTES} + 73 bytes {} ms",
        took.hops,
        took.notice.as_millis(),
        took.worst_hop,
        took.rekey.as_millis(),
    );
    assert_eq!(took.hops, 7);
    assert!(took.worst_hop <= 1.0, "{name}, seed {seed}: {}", took.worst_hop);
    is_shut_out(&mut net);
}

/// How many seeds a long run tries; the daily tests try fewer.
fn seeds() -> Option<u64> {
    std::env::var("SEALANE_SEEDS").ok().map(|seeds| seeds.parse().expect("a number of seeds"))
}

#[test]
fn a_notice_is_everywhere_within_a_hello_for_each_hop_and_the_re_key_follows() {
    for seed in 0..seeds().unwrap_or(2) {
        shut_out_over_seven_hops("BLE, MTU 247", MeshMedium::ble(247), seed);
        shut_out_over_seven_hops("802.11p", MeshMedium::dot11p(), seed);
        // Where units are narrow, a re-key takes minutes, and so does its test.
        if seeds().is_some() {
            shut_out_over_seven_hops("BLE, MTU 23", MeshMedium::ble(23), seed);
        }
    }
}

fn is_within_its_hours(net: &Net) {
    let hour = net.now.0 / 3_600_000_000 + 1;
    for node in net.nodes.values() {
        let spent: u64 = node.mesh.spent(crate::net::RADIO).iter().map(|one| one.0).sum();
        assert!(spent <= hour * 36_000_000, "{spent} in {hour} hours");
    }
}

#[test]
fn slow_radios_re_key_within_their_duty_cycle() {
    for seed in 0..seeds().unwrap_or(1) {
        re_key_slow_radios(seed);
    }
}

fn re_key_slow_radios(seed: u64) {
    let hops: usize = 7;
    let mut net = Net::new(9 + seed, hops as u16 + 2, MeshMedium::lora_sf7());
    let chain: Vec<_> = (0..=hops).collect();
    net.chain(&chain, Link { loss_percent: 30, ..Link::default() });
    chain.iter().for_each(|slot| net.start(*slot, MachineRole::Member));
    net.run(MeshSpan::seconds(3600));
    net.removed.insert(0, vec![hops as u16 + 1]);
    let notice = net.provision.removal(0, hops as u16 + 1, 0).unwrap();
    let order = net.provision.order(0, &[7; REKEY_FRAME_BYTES]).unwrap();
    let start = net.now;
    net.give(0, &notice);
    net.give(0, &order);
    while net.node(hops).obeyed.is_empty() && net.now.since(start) < MeshSpan::seconds(24 * 3600) {
        net.run(MeshSpan::seconds(60));
    }
    let told = net.node(hops).notices[0].0.since(start).as_millis() / 1000;
    let obeyed = net.node(hops).obeyed[0].since(start).as_millis() / 1000;
    println!(
        "LoRa SF7, 1 %, seed {seed}: {hops} hops, 30 % loss: notice {told} s, re-key of \
         {REKEY_FRAME_BYTES} + 73 bytes {obeyed} s"
    );
    assert!(told < obeyed, "the short one is first");
    is_within_its_hours(&net);
}

#[test]
fn those_who_come_back_after_two_re_keys_catch_up() {
    let mut net = Net::new(3, 8, MeshMedium::dot11p());
    net.chain(&[0, 1, 2, 3], Link::default());
    (0..4).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    net.cut(2, 3);
    net.run(MeshSpan::seconds(15));
    for (number, gone) in [(0, 6), (1, 7)] {
        net.removed.insert(number, vec![gone]);
        let order = net.provision.order(number, &[number as u8; 2000]).unwrap();
        net.give(0, &order);
        net.run(MeshSpan::seconds(10));
    }
    let obeyed = |net: &Net| -> Vec<_> { (0..4).map(|one| net.node(one).obeyed.len()).collect() };
    assert_eq!(obeyed(&net), [2, 2, 2, 0]);
    net.join(2, 3, Link { loss_percent: 30, ..Link::default() });
    let since = net.now;
    while obeyed(&net)[3] < 2 && net.now.since(since) < MeshSpan::seconds(300) {
        net.run(MeshSpan::seconds(1));
    }
    println!("two epochs behind: caught up in {} ms", net.now.since(since).as_millis());
    assert_eq!(obeyed(&net), [2, 2, 2, 2]);
    net.run(MeshSpan::seconds(60));
    assert!(net.reaches(0, 3) && net.reaches(3, 0));
}

/// Another group, whose orders machines keep that are no members of it.
fn other_group(net: &mut Net) -> (MeshProvision, KeptGroup) {
    let other = MeshProvision::new([9; 32], 4).unwrap();
    let kept = other.kept(0).unwrap();
    for slot in net.nodes.keys().copied().collect::<Vec<_>>() {
        net.take(slot, MeshInput::Keep(kept));
    }
    (other, kept)
}

#[test]
fn machines_without_a_key_of_a_group_pass_its_orders_on_and_keep_them() {
    let mut net = Net::new(4, 5, MeshMedium::dot11p());
    net.chain(&[0, 1, 2, 3], Link { loss_percent: 30, ..Link::default() });
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    let (other, kept) = other_group(&mut net);
    // Four parts of a re-key of 1,000 members.
    let orders: Vec<_> = (0..4).map(|n| other.order(n, &[n as u8; 13_000]).unwrap()).collect();
    for notice in &orders {
        net.take(0, MeshInput::Notice { group: kept.tag, notice: notice.into() });
    }
    let got = |net: &Net, at: usize| net.node(at).notices.len();
    let mut seconds = 0;
    while got(&net, 2) < 4 && seconds < 600 {
        net.run(MeshSpan::seconds(1));
        seconds += 1;
    }
    println!("4 x 13 kB over 2 hops at 30 % loss: {seconds} s");
    let told: Vec<_> = net.node(2).notices.iter().map(|(_, _, notice)| notice.to_vec()).collect();
    assert_eq!(told, orders, "in order, and each once");
    // One that comes later, while the first has gone, is given all of them.
    net.stop(0);
    net.start(3, MachineRole::Member);
    net.take(3, MeshInput::Keep(kept));
    // A machine that did not keep orders of this group gives none.
    net.start(4, MachineRole::Member);
    net.join(3, 4, Link::default());
    net.run(MeshSpan::seconds(200));
    assert_eq!((got(&net, 3), got(&net, 4)), (4, 0));
}

#[test]
fn what_was_obeyed_by_other_ways_is_not_asked_for() {
    let mut net = Net::new(5, 3, MeshMedium::dot11p());
    net.chain(&[0, 1], Link::default());
    (0..2).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    let (other, kept) = other_group(&mut net);
    net.take(1, MeshInput::Keep(KeptGroup { orders: 3, ..kept }));
    for number in 0..4 {
        let notice = other.order(number, &[1; 500]).unwrap();
        net.take(0, MeshInput::Notice { group: kept.tag, notice: (&notice).into() });
    }
    net.run(MeshSpan::seconds(20));
    let numbers: Vec<_> = net.node(1).notices.iter().map(|(_, _, notice)| notice[8]).collect();
    assert_eq!(numbers, [3]);
}

#[test]
fn a_notice_whose_order_never_comes_is_shown_and_one_that_removes_nobody_ends() {
    let mut net = Net::new(6, 4, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    net.join(0, 2, Link::default());
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    let (one, two) = (Slot::new(1).unwrap(), Slot::new(2).unwrap());
    let notice = net.provision.removal(0, 1, 0).unwrap();
    net.give(0, &notice);
    net.run(MeshSpan::seconds(600));
    for at in [0, 2] {
        assert_eq!(net.node(at).mesh.leaving(), [(one, 0)], "{at}");
        assert!(net.node(at).mesh.neighbours().iter().all(|other| other.slot != one));
    }
    // The order of that number removes somebody else.
    net.removed.insert(0, vec![3]);
    let order = net.provision.order(0, &[1; 500]).unwrap();
    net.give(0, &order);
    net.run(MeshSpan::seconds(60));
    for at in [0, 2] {
        let stays = MeshEvent::Stays { slot: one, order: 0 };
        assert!(net.node(at).events.iter().any(|(_, event)| *event == stays), "{at}");
        assert!(net.node(at).mesh.leaving().is_empty());
    }
    assert_eq!(net.node(1).obeyed.len(), 1, "it was given the order as well");
    assert!(net.reaches(0, 1) && net.reaches(1, 0) && net.via(0, 2) == Some(2), "{two:?}");
}

#[test]
fn where_all_is_told_orders_cost_next_to_nothing() {
    let mut net = team(8, MeshMedium::dot11p(), 0);
    net.removed.insert(0, vec![THIEF as u16]);
    net.run(MeshSpan::seconds(10));
    let order = net.provision.order(0, &[7; REKEY_FRAME_BYTES]).unwrap();
    net.give(0, &order);
    net.stop(THIEF);
    net.run(MeshSpan::seconds(200));
    net.heard.clear();
    net.run(MeshSpan::seconds(60));
    let of_orders = net.heard.iter().filter(|(_, unit)| crate::net::is_of_orders(unit)).count();
    let hellos = net.heard.len() - of_orders;
    println!("{of_orders} messages of orders beside {hellos} others in a minute");
    assert!(of_orders * 20 < hellos, "{of_orders} of {hellos}");
}
