//! Relays in one process that find each other over wires and radios, and what crosses between them.

use std::sync::Arc;

use parking_lot::Mutex;
use sealane_frame::{HeaderFields, PeerTag};
use sealane_link::{Arrival, Beside, Config, End, Machine, MemoryNet, Reason, Relay, RelayCard};
use sealane_link::{LinkError, RoutingStatus};
use sealane_mesh::Provision;
use sealane_seal::Slot;

use crate::stage::{Maker, card, group, tag, wait_until};

/// A machine of a mesh of six, and the frames that came to its member.
struct Machined {
    relay: Relay,
    came: Arc<Mutex<Vec<Vec<u8>>>>,
}

struct Stage {
    net: MemoryNet,
    provision: Provision,
}

impl Stage {
    fn new() -> Stage {
        Stage { net: MemoryNet::new(), provision: Provision::new([5; 32], 6).unwrap() }
    }

    fn config(&self, links: &[(u32, &str)], rest: &str) -> Config {
        let mut text = format!("version = 1\n{rest}\n[routing]\ngroup = \"roads\"\n");
        for (port, medium) in links {
            text += &format!(
                "[[link]]\nname = \"l{port}\"\nmemory = {port}\ndiscover = true\n\
                 medium = \"{medium}\"\n"
            );
        }
        let mut config = Config::parse(&text).unwrap();
        config.memory = Some(self.net.clone());
        config
    }

    fn machine(&self, slot: u16) -> Machine {
        let keys = self.provision.keys(slot, [slot as u8; 8], 1).unwrap();
        Machine { keys, seed: [slot as u8; 32] }
    }

    /// A machine in a slot of the mesh, beside the member of a slot of the group.
    fn start(&self, slot: u16, member: Option<u8>, links: &[(u32, &str)]) -> Machined {
        self.start_with(slot, member, links, &[card()])
    }

    fn start_with(
        &self,
        slot: u16,
        member: Option<u8>,
        links: &[(u32, &str)],
        cards: &[RelayCard],
    ) -> Machined {
        let came = Arc::new(Mutex::new(vec![]));
        let kept = Arc::clone(&came);
        let take = Box::new(move |arrival: Arrival<'_>| {
            if let Arrival::Frame(frame) = arrival {
                kept.lock().push(frame.to_vec());
            }
            Ok(())
        });
        let end = member.map(|slot| End { tag: tag(slot), take });
        let beside = Beside { end, machine: Some(self.machine(slot)) };
        Machined { relay: Relay::open(&self.config(links, ""), cards, beside).unwrap(), came }
    }
}

impl Machined {
    fn status(&self) -> Arc<RoutingStatus> {
        self.relay.router().unwrap().status()
    }

    fn reaches(&self, slot: u16) -> bool {
        self.status().routes.iter().any(|route| route.to.number() == slot)
    }

    fn wait_for(&self, slots: &[u16]) {
        wait_until("all are reached", || slots.iter().all(|slot| self.reaches(*slot)));
    }

    /// Sends a frame again and again until it has come to somebody.
    fn send_until(&self, maker: &mut Maker, to: PeerTag, is_there: impl Fn() -> bool) {
        let mut port = self.relay.port();
        wait_until("it has come", || {
            let fields = HeaderFields { next_hop: PeerTag::BROADCAST, ..maker.fields(to) };
            let mut frame = maker.seal(&fields, b"over there");
            port.push(&mut frame);
            port.flush();
            std::thread::sleep(std::time::Duration::from_millis(5));
            is_there()
        });
    }
}

#[test]
fn frames_cross_from_a_wire_to_radios_and_back() {
    let stage = Stage::new();
    let one = stage.start(0, Some(0), &[(101, "wire")]);
    let two = stage.start(1, None, &[(102, "wire"), (201, "11p")]);
    let three = stage.start(2, None, &[(202, "11p"), (301, "ble-185")]);
    let four = stage.start(3, Some(1), &[(302, "ble-185")]);
    one.wait_for(&[1, 2, 3]);
    four.wait_for(&[0, 1, 2]);
    let has_come = |at: &Machined| !at.came.lock().is_empty();
    one.send_until(&mut Maker::new(0), tag(1), || has_come(&four));
    four.send_until(&mut Maker::new(1), tag(0), || has_come(&one));
    four.came.lock().clear();
    one.send_until(&mut Maker::new(2), PeerTag::BROADCAST, || has_come(&four));
    let frame = four.came.lock()[0].clone();
    assert_eq!(frame[27..35], tag(2).to_bytes());
    assert_eq!(frame[16], 15 - 4, "one hop for each machine, those with a radio too");
    assert!(two.status().spent.iter().all(|link| link.parts[0].0 > 0), "{:?}", two.status());
    drop((two, three));
}

#[test]
fn a_source_on_no_card_is_carried_by_no_radio() {
    let stage = Stage::new();
    let one = stage.start(0, Some(0), &[(201, "11p")]);
    let all = |number: &u8| *number != 5;
    let members = (0..9).filter(all).map(|n| (Slot::new(n.into()).unwrap(), tag(n)));
    let lesser = RelayCard::new(group(), sealane_seal::Epoch(0), members);
    let two = stage.start_with(1, None, &[(202, "11p"), (301, "11p")], &[lesser]);
    let three = stage.start(2, Some(1), &[(302, "11p")]);
    one.wait_for(&[1, 2]);
    one.send_until(&mut Maker::new(5), tag(1), || two.status().counters.unknown_source > 0);
    one.send_until(&mut Maker::new(0), tag(1), || !three.came.lock().is_empty());
    assert!(three.came.lock().iter().all(|frame| frame[27..35] == tag(0).to_bytes()));
}

#[test]
fn a_mesh_is_a_group_of_its_own_and_needs_its_keys() {
    let stage = Stage::new();
    let refused = |cards: &[RelayCard], machine: Option<Machine>, rest: &str| {
        let config = stage.config(&[(101, "wire")], rest);
        let beside = Beside { end: None, machine };
        let error = Relay::open(&config, cards, beside).unwrap_err();
        assert!(matches!(error, LinkError::ConfigValue(_)), "{error}");
        error.to_string()
    };
    let own = RelayCard::new(stage.provision.group_tag(), sealane_seal::Epoch(0), []);
    assert!(refused(&[own], Some(stage.machine(0)), "").contains("a group of its own"));
    assert!(refused(&[], None, "").contains("the keys"));
    let tagged = "tag = \"b100000000000001\"";
    assert!(refused(&[], Some(stage.machine(0)), tagged).contains("not the address"));
}

#[test]
fn what_is_for_the_mesh_and_no_message_of_it_is_dropped_by_name() {
    let stage = Stage::new();
    let one = stage.start(0, None, &[(101, "wire")]);
    let other = crate::relays_in_memory::link(&stage.net, 150);
    let at = sealane_link::Address::Memory(101);
    let mut unit = Maker::new(1).frame(PeerTag::BROADCAST, &[1; 40]);
    let send = |unit: &[u8]| assert!(other.send(at, unit, unit.len()).stopped.is_none());
    send(&unit);
    wait_until("a stranger", || one.relay.tally().dropped(Reason::Stranger) == 1);
    (unit[16], unit[18]) = (0, 2);
    unit[23..27].copy_from_slice(&stage.provision.group_tag().to_bytes());
    send(&unit);
    wait_until("no message", || {
        let counters = one.status().counters;
        counters.unopened == 1
    });
}
