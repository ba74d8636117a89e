//! A machine is told which way leads to another one, and how each machine on it decides.

use sealane_mesh::limits::MAX_TRACES_PER_SECOND;
use sealane_mesh::{MachineRole, MeshInput, MeshMedium, MeshSpan, RouteTrace};
use sealane_seal::Slot;

use crate::net::{Link, Net};

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// 0 ─ 1 ─ 2 ─ 4, and 3 beside 1 and 2.
fn net() -> Net {
    let mut net = Net::new(3, 6, MeshMedium::dot11p());
    net.chain(&[0, 1, 2, 4], Link::default());
    net.chain(&[0, 3], Link { loss_percent: 0, delay: MeshSpan::millis(40) });
    net.chain(&[3, 2], Link { loss_percent: 0, delay: MeshSpan::millis(40) });
    (0..5).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(30));
    net
}

fn ask(net: &mut Net, to: u16, number: u32) -> Vec<RouteTrace> {
    net.take(0, MeshInput::Trace { to: slot(to), number });
    net.run(MeshSpan::seconds(1));
    std::mem::take(&mut net.nodes.get_mut(&0).unwrap().traced)
}

fn passed(trace: &RouteTrace) -> Vec<u16> {
    trace.hops.iter().map(|hop| hop.slot.number()).collect()
}

#[test]
fn a_trace_lists_the_machines_of_a_way_their_round_trips_and_what_they_could_do_else() {
    let mut net = net();
    let traced = ask(&mut net, 4, 7);
    let [trace] = &traced[..] else { panic!("{traced:?}") };
    assert_eq!((trace.number, trace.is_cut, passed(trace)), (7, false, vec![0, 1, 2, 4]));
    let first = &trace.hops[0];
    let trip = first.round_trip_us.unwrap();
    assert!((500..3000).contains(&trip), "twice half a millisecond on the air: {trip}");
    let via: Vec<_> = first.ways.iter().map(|way| way.via.number()).collect();
    assert_eq!(via, [1, 3]);
    assert!(first.ways[0].metric < first.ways[1].metric, "{first:?}");
    assert_eq!(trace.hops[3].ways, []);
}

#[test]
fn what_cannot_go_on_comes_back_and_says_so() {
    let mut net = net();
    let unknown = ask(&mut net, 5, 1);
    assert!(unknown[0].is_cut && passed(&unknown[0]) == [0], "{unknown:?}");
    let own = ask(&mut net, 0, 2);
    assert!(!own[0].is_cut && passed(&own[0]) == [0], "{own:?}");
}

#[test]
fn no_more_traces_are_passed_on_than_may_be() {
    let mut net = net();
    let before = net.node(1).sent_units;
    for number in 0..200 {
        net.take(0, MeshInput::Trace { to: slot(4), number });
    }
    net.run(MeshSpan::millis(900));
    let sent = net.node(1).sent_units - before;
    // Questions and answers together, and a few hellos.
    assert!(sent <= 2 * u64::from(MAX_TRACES_PER_SECOND) + 8, "{sent}");
    assert!(!net.node(0).traced.is_empty());
}
