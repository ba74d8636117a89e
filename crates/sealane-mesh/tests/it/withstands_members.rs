//! The endless requests of a member that went bad cost no more than those of an honest one.

use sealane_mesh::{
    MachineRole, MeshAddress, MeshEvent, MeshInput, MeshMedium, MeshSpan, MeshTime, MessageType,
};
use sealane_seal::Slot;

use crate::net::{Net, RADIO};
use crate::refuses_strangers::with_insider;

#[test]
fn an_interface_that_comes_and_goes_has_no_more_air_time_than_one_that_stays() {
    let medium = MeshMedium::lora_sf7();
    let mut net = Net::new(32, 3, medium);
    net.join(0, 1, crate::net::Link::default());
    (0..2).for_each(|slot| net.start(slot, MachineRole::Member));
    net.run(MeshSpan::seconds(300));
    let air = |net: &Net| {
        let node = net.node(0);
        medium.fixed.0 * node.sent_units + node.sent_bytes * 1_000_000 / 683
    };
    let before = air(&net);
    for _ in 0..360 {
        net.take(0, MeshInput::Down { interface: RADIO });
        net.take(0, MeshInput::Up { interface: RADIO, medium });
        net.data(0, None, 1, &[7; 100]);
        net.run(MeshSpan::seconds(10));
    }
    let spent = air(&net) - before;
    assert!(spent <= 36_000_000, "{spent} µs in an hour of one percent");
}

#[test]
fn a_faulty_member_is_told_once_in_a_while_and_fills_no_log() {
    let (mut net, mut insider) = with_insider(33);
    for _ in 0..1000 {
        let unit = insider.say(MessageType::Hello, &[0xff; 40]);
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
        net.run(MeshSpan::millis(100));
    }
    let slot = Slot::new(3).unwrap();
    let is_told = |(_, event): &&(MeshTime, MeshEvent)| *event == MeshEvent::Faulty { slot };
    let told = net.node(0).events.iter().filter(is_told).count();
    assert_eq!(told, 2, "in a hundred seconds");
    assert_eq!(net.node(0).mesh.counters().malformed, 1000, "each is counted");
}
