//! Nobody but a group's authority gives its orders or announces a removal: not an outsider, not a
//! relay that was captured, and not the member that is removed.

use sealane_mesh::limits::MAX_BAD_SIGNATURES;
use sealane_mesh::{
    HeldOf, MachineRole, MeshAddress, MeshEvent, MeshInput, MeshMedium, MeshSpan, MessageType,
    OrderPieces, OrdersHeld, PiecesAsked, RemovalMessage,
};
use sealane_seal::Slot;

use crate::net::{Link, Net, RADIO, is_of_orders};
use crate::refuses_strangers::Insider;

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// Machines 0 to 2 in a row, and a member 3 at address 3 that is known to machine 0.
fn with_insider(seed: u64) -> (Net, Insider) {
    let mut net = Net::new(seed, 8, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    let keys = net.keys(3);
    let mut insider = Insider::new(&net.provision, keys);
    let unit = insider.announce();
    net.take(0, MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() });
    (net, insider)
}

fn hear(net: &mut Net, unit: &[u8]) {
    net.take(0, MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: unit.into() });
}

fn removal(net: &Net, order: u64, removed: u16, by: u16) -> RemovalMessage {
    let notice = net.provision.removal(order, removed, by).unwrap();
    RemovalMessage { group: net.provision.group_tag(), notice: notice.try_into().unwrap() }
}

fn nothing_has_come(net: &Net) {
    for at in 0..3 {
        assert!(net.node(at).notices.is_empty() && net.node(at).mesh.leaving().is_empty(), "{at}");
    }
    assert!(net.reaches(0, 2) && net.reaches(2, 0));
}

#[test]
fn a_member_cannot_have_another_one_shut_out() {
    let (mut net, mut insider) = with_insider(1);
    let honest = removal(&net, 0, 1, 0);
    let mut forged = vec![removal(&net, 0, 1, 3)];
    // The authority's notice with another slot, order, epoch or mark; and that of another group.
    for at in 1..27 {
        let mut changed = honest;
        changed.notice[at] ^= 1;
        forged.push(changed);
    }
    forged.push(RemovalMessage { group: sealane_frame::GroupTag::from_bytes([1; 4]), ..honest });
    for (number, message) in forged.into_iter().enumerate() {
        let unit = insider.say(MessageType::Removal, &message.to_bytes());
        hear(&mut net, &unit);
        if number % 8 == 7 {
            // More in a second are not looked at.
            net.run(MeshSpan::seconds(1));
        }
    }
    let unsigned = net.node(0).mesh.counters().unsigned;
    assert!(unsigned >= 26, "{unsigned}");
    let is_told = |(_, event): &(_, MeshEvent)| *event == MeshEvent::Faulty { slot: slot(3) };
    assert!(net.node(0).events.iter().any(is_told));
    net.run(MeshSpan::seconds(5));
    nothing_has_come(&net);
    let unit = insider.say(MessageType::Removal, &honest.to_bytes());
    hear(&mut net, &unit);
    assert_eq!(net.node(0).mesh.leaving(), [(slot(1), 0)], "the authority can, whoever brings it");
}

#[test]
fn who_brings_false_signatures_without_end_costs_few_verifications_a_second() {
    let (mut net, mut insider) = with_insider(7);
    let most = u64::from(MAX_BAD_SIGNATURES);
    for second in 1..=2 {
        for number in 0..10 * MAX_BAD_SIGNATURES {
            let mut forged = removal(&net, 0, 1, 3);
            forged.notice[40] ^= number;
            let unit = insider.say(MessageType::Removal, &forged.to_bytes());
            hear(&mut net, &unit);
        }
        assert_eq!(net.node(0).mesh.counters().unsigned, second * most);
        let honest = removal(&net, 0, 1, 0);
        let unit = insider.say(MessageType::Removal, &honest.to_bytes());
        hear(&mut net, &unit);
        assert_eq!(net.node(0).mesh.leaving(), [], "what else it brings has to wait");
        net.run(MeshSpan::seconds(1));
    }
    nothing_has_come(&net);
}

#[test]
fn a_member_cannot_give_orders() {
    let (mut net, mut insider) = with_insider(2);
    let group = net.provision.group_tag();
    let honest = net.provision.order(0, &[7; 100]).unwrap();
    let mut junk =
        vec![net.provision.removal(0, 1, 3).unwrap(), vec![9; 300], vec![1; 74], vec![2]];
    for at in [1, 8, 9, 60, 150] {
        let mut changed = honest.clone();
        changed[at] ^= 1;
        junk.push(changed);
    }
    for notice in &junk {
        let length = notice.len() as u16;
        let pieces = OrderPieces { group, number: 0, length, first: 0, bytes: notice.clone() };
        let unit = insider.say(MessageType::Pieces, &pieces.to_bytes());
        hear(&mut net, &unit);
    }
    net.run(MeshSpan::seconds(5));
    nothing_has_come(&net);
    assert!(net.node(0).mesh.counters().unsigned >= junk.len() as u64 - 2);
    // The junk that it told takes nobody's room: the order comes nevertheless.
    net.give(1, &honest);
    net.run(MeshSpan::seconds(20));
    assert!((0..3).all(|at| net.node(at).notices.len() == 1));
}

#[test]
fn who_claims_to_hold_what_was_never_given_is_asked_a_few_times() {
    let (mut net, mut insider) = with_insider(3);
    let group = net.provision.group_tag();
    let asked_of_it = |net: &Net| net.node(0).mesh.counters().requests;
    let before = asked_of_it(&net);
    let held =
        OrdersHeld { groups: vec![HeldOf { group, wants: u64::MAX, first: 0, removals: 77 }] };
    let unit = insider.say(MessageType::Held, &held.to_bytes());
    hear(&mut net, &unit);
    net.run(MeshSpan::seconds(60));
    let asked = asked_of_it(&net) - before;
    assert!((1..=4).contains(&asked), "{asked}");
    // The true orders come from whoever has them.
    let order = net.provision.order(0, &[7; 3000]).unwrap();
    let unit = insider.say(MessageType::Held, &held.to_bytes());
    hear(&mut net, &unit);
    net.give(2, &order);
    net.run(MeshSpan::seconds(60));
    assert!((0..3).all(|at| net.node(at).notices.len() == 1));
}

#[test]
fn who_asks_without_end_is_given_each_piece_once_in_a_while() {
    let (mut net, mut insider) = with_insider(4);
    let group = net.provision.group_tag();
    let order = net.provision.order(0, &[7; 5000]).unwrap();
    net.give(0, &order);
    net.run(MeshSpan::seconds(30));
    let before = net.node(0).mesh.counters().pieces;
    for _ in 0..2000 {
        let asked = PiecesAsked { to: slot(0), group, number: 0, first: 0, pieces: u64::MAX };
        let unit = insider.say(MessageType::Asked, &asked.to_bytes());
        hear(&mut net, &unit);
        net.run(MeshSpan::millis(1));
    }
    let pieces = net.node(0).mesh.counters().pieces - before;
    assert!((40..=40 * 20).contains(&pieces), "{pieces} of 40 pieces in two seconds");
    // An emergency of somebody finds air time nevertheless.
    net.data(1, None, 7, b"12345678help");
    net.run(MeshSpan::millis(200));
    assert!([0, 2].into_iter().all(|at| net.node(at).delivered.len() == 1));
}

#[test]
fn recordings_of_orders_do_nothing_again() {
    let mut net = Net::new(5, 8, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    net.removed.insert(0, vec![5]);
    let (notice, order) =
        (net.provision.removal(0, 5, 0).unwrap(), net.provision.order(0, &[7; 1046]).unwrap());
    net.give(0, &notice);
    net.run(MeshSpan::seconds(3));
    net.give(0, &order);
    net.run(MeshSpan::seconds(20));
    let recorded: Vec<_> =
        net.heard.iter().filter(|(_, unit)| is_of_orders(unit)).cloned().collect();
    assert!(recorded.len() > 8);
    for at in 0..3 {
        let counters = net.node(at).mesh.counters();
        let before = (net.node(at).notices.len(), counters.pieces);
        for (from, unit) in &recorded {
            let from = MeshAddress(*from as u64);
            net.take(at, MeshInput::Heard { interface: RADIO, from, unit: (&**unit).into() });
        }
        let counters = net.node(at).mesh.counters();
        assert_eq!((net.node(at).notices.len(), counters.pieces), before);
        assert_eq!(net.node(at).obeyed.len(), 1);
    }
    // The notice again, after the order that it announced: nobody leaves.
    net.give(0, &notice);
    net.run(MeshSpan::seconds(5));
    assert!((0..3).all(|at| net.node(at).mesh.leaving().is_empty()));
    assert!(net.reaches(0, 2) && net.reaches(2, 0));
}

#[test]
fn a_captured_relay_that_keeps_orders_to_itself_is_gone_round() {
    let mut net = Net::new(6, 8, MeshMedium::dot11p());
    // Two ways from 0 to 3: by 1, which hoards, and by 2 and 4.
    net.chain(&[0, 1, 3], Link::default());
    net.chain(&[0, 2, 4, 3], Link::default());
    (0..5).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    net.nodes.get_mut(&1).unwrap().hoards = true;
    net.removed.insert(0, vec![1]);
    let notice = net.provision.removal(0, 1, 0).unwrap();
    let order = net.provision.order(0, &[7; 1046]).unwrap();
    net.give(0, &notice);
    net.give(0, &order);
    net.run(MeshSpan::seconds(20));
    assert!([0, 2, 3, 4].into_iter().all(|at| net.node(at).obeyed.len() == 1));
    assert!(net.node(3).mesh.neighbours().iter().all(|one| one.slot != slot(1)));
    assert!(net.reaches(0, 3) && net.via(0, 3) == Some(2));
}

#[test]
fn a_removed_member_is_given_nothing_more_and_asks_in_vain() {
    let mut net = Net::new(7, 8, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(10));
    net.removed.insert(0, vec![2]);
    let notice = net.provision.removal(0, 2, 0).unwrap();
    net.give(0, &notice);
    net.run(MeshSpan::seconds(3));
    let order = net.provision.order(0, &[7; 1046]).unwrap();
    net.give(0, &order);
    net.run(MeshSpan::seconds(30));
    assert_eq!(net.node(1).obeyed.len(), 1);
    let before = net.node(1).mesh.counters();
    net.run(MeshSpan::seconds(60));
    let counters = net.node(1).mesh.counters();
    assert_eq!(counters.pieces, before.pieces, "it goes on saying hello in the old epoch");
    assert!(counters.unopened > before.unopened);
    assert!(net.node(1).mesh.neighbours().iter().all(|one| one.slot != slot(2)));
}
