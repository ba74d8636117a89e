//! Orders of groups whose members are elsewhere: machines without their keys tell what the group's
//! authority has signed from all else, keep no more than there is room for, and give it to those
//! who lack it, also after they were started anew.

use sealane_mesh::{
    HeldOf, KeptGroup, MachineRole, MeshAddress, MeshEvent, MeshInput, MeshMedium, MeshProvision,
    MeshSpan, MessageType, OrderPieces, OrdersHeld, RemovalMessage, limits,
};
use sealane_seal::Slot;

use crate::net::{Link, Net, RADIO};
use crate::refuses_strangers::Insider;

/// A group of people whose frames cross the mesh.
fn team() -> MeshProvision {
    MeshProvision::new([9; 32], 8).unwrap()
}

/// The group that a machine keeps by a relay card that was written after so many orders.
fn card(orders: u64) -> KeptGroup {
    team().kept(orders).unwrap()
}

/// The group that a member has its machine keep.
fn membership(orders: u64) -> KeptGroup {
    KeptGroup { has_member: true, ..card(orders) }
}

/// A row of machines over a radio that loses so much.
fn row(seed: u64, count: usize, loss_percent: u64) -> Net {
    let mut net = Net::new(seed, 8, MeshMedium::dot11p());
    net.chain(&(0..count).collect::<Vec<_>>(), Link { loss_percent, ..Link::default() });
    (0..count).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    net
}

fn give(net: &mut Net, at: usize, notice: &[u8]) {
    net.take(at, MeshInput::Notice { group: team().group_tag(), notice: notice.into() });
}

/// The numbers of the orders that a machine has handed to who listens there.
fn numbers(net: &Net, at: usize) -> Vec<u64> {
    let orders = net.node(at).notices.iter().filter(|(_, _, notice)| notice[0] == 1);
    orders.map(|(_, _, notice)| u64::from_be_bytes(notice[1..9].try_into().unwrap())).collect()
}

fn run_until(net: &mut Net, seconds: u64, is_so: impl Fn(&Net) -> bool) -> u64 {
    let since = net.now;
    while !is_so(net) && net.now.since(since) < MeshSpan::seconds(seconds) {
        net.run(MeshSpan::millis(250));
    }
    assert!(is_so(net), "not within {seconds} s");
    net.now.since(since).as_millis()
}

/// A row of three, and a captured machine of the mesh beside the first: it holds the mesh's keys,
/// and those of no other group.
fn with_captured(seed: u64) -> (Net, Insider) {
    let mut net = row(seed, 3, 0);
    (0..3).for_each(|at| net.take(at, MeshInput::Keep(card(0))));
    let keys = net.keys(3);
    let mut captured = Insider::new(&net.provision, keys);
    let unit = captured.announce();
    hear(&mut net, &unit);
    (net, captured)
}

fn hear(net: &mut Net, unit: &[u8]) {
    net.take(0, MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: unit.into() });
}

fn tell_order(net: &mut Net, captured: &mut Insider, number: u64, notice: &[u8]) {
    let group = team().group_tag();
    let length = notice.len() as u16;
    let pieces = OrderPieces { group, number, length, first: 0, bytes: notice.to_vec() };
    let unit = captured.say(MessageType::Pieces, &pieces.to_bytes());
    hear(net, &unit);
}

fn tell_removal(net: &mut Net, captured: &mut Insider, notice: Vec<u8>) {
    let message = RemovalMessage { group: team().group_tag(), notice: notice.try_into().unwrap() };
    let unit = captured.say(MessageType::Removal, &message.to_bytes());
    hear(net, &unit);
}

#[test]
fn what_the_authority_of_a_group_has_not_signed_goes_nowhere() {
    let (mut net, mut captured) = with_captured(1);
    let stranger = MeshProvision::new([8; 32], 8).unwrap();
    let honest = team().order(0, &[7; 100]).unwrap();
    let mut forged = vec![
        // Of an outsider, and of another group; of the mesh's own authority.
        vec![1; 172],
        stranger.order(0, &[7; 100]).unwrap(),
        net.provision.order(0, &[7; 100]).unwrap(),
    ];
    for at in [1, 8, 9, 60, honest.len() - 1] {
        let mut changed = honest.clone();
        changed[at] ^= 1;
        forged.push(changed);
    }
    forged.iter().for_each(|notice| tell_order(&mut net, &mut captured, 0, notice));
    // Of a member that is no authority, which its own group would know.
    for notice in [team().removal(0, 5, 3), stranger.removal(0, 5, 0)] {
        tell_removal(&mut net, &mut captured, notice.unwrap());
    }
    let unsigned = net.node(0).mesh.counters().unsigned;
    assert_eq!(unsigned, forged.len() as u64 + 2, "each is counted by name");
    let faulty = MeshEvent::Faulty { slot: Slot::new(3).unwrap() };
    assert!(net.node(0).events.iter().any(|(_, event)| *event == faulty));
    net.run(MeshSpan::seconds(10));
    for at in 0..3 {
        assert!(net.node(at).notices.is_empty(), "{at}");
        assert_eq!(net.node(at).mesh.counters().pieces, 0, "no air time was spent for it: {at}");
    }
    // The true one still comes, whoever brings it.
    tell_order(&mut net, &mut captured, 0, &honest);
    run_until(&mut net, 20, |net| numbers(net, 2) == [0]);
}

#[test]
fn a_card_of_another_group_takes_none_of_this_one() {
    let (mut net, mut captured) = with_captured(2);
    // Somebody has changed the card on its way to the first machine, which reads it again.
    let other = MeshProvision::new([8; 32], 8).unwrap().kept(0).unwrap();
    net.take(0, MeshInput::Keep(KeptGroup { tag: card(0).tag, ..other }));
    let honest = team().order(0, &[7; 100]).unwrap();
    tell_order(&mut net, &mut captured, 0, &honest);
    give(&mut net, 0, &honest);
    assert_eq!(net.node(0).mesh.counters().unsigned, 2);
    net.run(MeshSpan::seconds(5));
    assert!((0..3).all(|at| net.node(at).notices.is_empty()));
    // The right card again.
    net.take(0, MeshInput::Keep(card(0)));
    give(&mut net, 0, &honest);
    run_until(&mut net, 20, |net| numbers(net, 2) == [0]);
}

#[test]
fn older_orders_again_and_orders_without_end_are_bounded_and_do_nothing() {
    let (mut net, mut captured) = with_captured(3);
    let order = |number| team().order(number, &[number as u8; 900]).unwrap();
    let count = 4 * limits::MAX_KEPT_ORDERS as u64;
    (0..count).for_each(|number| give(&mut net, 0, &order(number)));
    assert_eq!(numbers(&net, 0), (0..count).collect::<Vec<_>>());
    for number in (0..count).chain(0..count) {
        tell_order(&mut net, &mut captured, number, &order(number));
    }
    let notice = team().removal(3, 5, 0).unwrap();
    tell_removal(&mut net, &mut captured, notice);
    assert_eq!(net.node(0).notices.len() as u64, count, "each was handed on once");
    // A machine that listens now is given the last ones; its card counts none of them.
    net.join(0, 4, Link::default());
    net.start(4, MachineRole::Member);
    net.take(4, MeshInput::Keep(card(0)));
    let kept = limits::MAX_KEPT_ORDERS as u64;
    run_until(&mut net, 400, |net| numbers(net, 4).last() == Some(&(count - 1)));
    assert_eq!(numbers(&net, 4), (count - kept..count).collect::<Vec<_>>());
}

#[test]
fn groups_without_end_find_no_room_and_leave_when_they_are_told_to() {
    let mut net = row(4, 2, 0);
    let groups: Vec<_> = (0..40).map(|n| MeshProvision::new([n + 20; 32], 1).unwrap()).collect();
    for group in &groups {
        net.take(0, MeshInput::Keep(group.kept(0).unwrap()));
    }
    let refused = net.node(0).mesh.counters().no_room;
    assert_eq!(refused, 40 - (limits::MAX_KEPT_GROUPS as u64 - 1), "the mesh's own is there");
    for group in &groups {
        for number in 0..limits::MAX_KEPT_ORDERS as u64 {
            let notice = group.order(number, &[1; 2000]).unwrap();
            net.take(0, MeshInput::Notice { group: group.group_tag(), notice: (&notice).into() });
        }
    }
    // Their bytes are bounded together, too: the machine asserts it.
    let given = net.node(0).notices.len();
    for group in &groups {
        net.take(0, MeshInput::Forget(group.group_tag()));
    }
    net.take(0, MeshInput::Forget(net.provision.group_tag()));
    net.take(0, MeshInput::Keep(card(0)));
    give(&mut net, 0, &team().order(0, &[7; 100]).unwrap());
    assert_eq!(net.node(0).notices.len(), given + 1, "there is room again");
    let own = net.provision.order(0, &[7; 100]).unwrap();
    net.give(0, &own);
    assert_eq!(net.node(0).notices.len(), given + 2, "the mesh's own group is not forgotten");
}

#[test]
fn a_relay_that_starts_anew_asks_its_neighbours_and_gives_to_those_behind_it() {
    let mut net = row(5, 3, 30);
    // The gateway, a relay, and a member that has obeyed two orders.
    net.take(0, MeshInput::Keep(card(0)));
    net.take(1, MeshInput::Keep(card(0)));
    let order = |number| team().order(number, &[number as u8; 1000]).unwrap();
    (0..5).for_each(|number| give(&mut net, 0, &order(number)));
    run_until(&mut net, 60, |net| numbers(net, 1).len() == 5);
    // It loses all, and has a card now that counts what the member still lacks.
    net.stop(1);
    net.start(1, MachineRole::Member);
    net.take(1, MeshInput::Keep(card(5)));
    net.take(2, MeshInput::Keep(membership(2)));
    let took = run_until(&mut net, 300, |net| numbers(net, 2) == [2, 3, 4]);
    println!("a relay that started anew has given what it did not have within {took} ms");
    assert!(numbers(&net, 1).is_empty(), "nobody who listens there is given what its card counts");
}

#[test]
fn without_a_member_a_machine_begins_where_its_neighbours_do() {
    let mut net = row(6, 3, 0);
    net.take(0, MeshInput::Keep(card(7)));
    (7..9).for_each(|number| give(&mut net, 0, &team().order(number, &[1; 500]).unwrap()));
    net.take(1, MeshInput::Keep(card(0)));
    net.take(2, MeshInput::Keep(membership(0)));
    run_until(&mut net, 60, |net| numbers(net, 1) == [7, 8]);
    net.run(MeshSpan::seconds(60));
    assert!(numbers(&net, 2).is_empty(), "a member needs those before");
}

#[test]
fn who_claims_to_lack_all_or_to_hold_all_costs_little() {
    let (mut net, mut captured) = with_captured(7);
    (5..8).for_each(|number| give(&mut net, 0, &team().order(number, &[1; 500]).unwrap()));
    net.take(0, MeshInput::Keep(card(5)));
    (5..8).for_each(|number| give(&mut net, 0, &team().order(number, &[1; 500]).unwrap()));
    net.run(MeshSpan::seconds(20));
    let before = net.node(0).mesh.counters().requests;
    let group = team().group_tag();
    for (wants, first) in [(0, 0), (u64::MAX, 0), (u64::MAX, u64::MAX - 1), (5, 0), (1, 0)] {
        let held = OrdersHeld { groups: vec![HeldOf { group, wants, first, removals: 77 }] };
        let unit = captured.say(MessageType::Held, &held.to_bytes());
        hear(&mut net, &unit);
        net.run(MeshSpan::seconds(10));
    }
    let asked = net.node(0).mesh.counters().requests - before;
    assert!(asked <= 5 * 4, "{asked}");
    give(&mut net, 0, &team().order(8, &[1; 500]).unwrap());
    assert_eq!(numbers(&net, 0), [5, 6, 7, 8], "it has not gone ahead of what it holds");
}
