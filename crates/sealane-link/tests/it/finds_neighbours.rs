//! Relays in one process that find each other over wires and radios, and what crosses between them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sealane_frame::{HeaderFields, PeerTag};
use sealane_link::{
    Config, LinkError, LinkInbox, LinkReady, MemoryNet, RelayArrival, RelayBeside, RelayEnd,
    RoutingSecrets,
};
use sealane_link::{DropReason, LinkRelay, RelayCard, RoutingStatus};
use sealane_mesh::limits::MAX_KEPT_FRAMES;
use sealane_mesh::{HelloMessage, MeshProvision};
use sealane_message::DataType;
use sealane_seal::Slot;
use sealane_testing::until;

use crate::stage::{Maker, card, group, tag};

/// Machines on the link of this number are gateways.
const GATEWAYS: u32 = 900;
const GATEWAY: &str = "role = \"gateway\"\n";

/// A machine of a mesh of six, and the frames that came to its member.
struct Machined {
    relay: LinkRelay,
    came: Arc<Mutex<Vec<Vec<u8>>>>,
}

struct Stage {
    net: MemoryNet,
    provision: MeshProvision,
    /// The machine in this slot sleeps between its hellos.
    sleeper: Option<u16>,
}

impl Stage {
    fn new() -> Stage {
        let provision = MeshProvision::new([5; 32], 6).unwrap();
        Stage { net: MemoryNet::new(), provision, sleeper: None }
    }

    fn config(&self, links: &[(u32, &str)], rest: &str) -> Config {
        let mut text = format!("version = 1\n{rest}\n[routing]\ngroup = \"roads\"\n");
        text += if links.iter().any(|(port, _)| *port == GATEWAYS) { GATEWAY } else { "" };
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

    fn machine(&self, slot: u16) -> RoutingSecrets {
        let keys = self.provision.keys(slot, [slot as u8; 8], 1).unwrap();
        RoutingSecrets { keys, seed: [slot as u8; 32] }
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
        let take = Box::new(move |arrival: RelayArrival<'_>| {
            if let RelayArrival::Frame(frame) = arrival {
                kept.lock().push(frame.to_vec());
            }
            Ok(())
        });
        let end = member.map(|slot| RelayEnd { tag: tag(slot), take });
        let beside = RelayBeside { end, machine: Some(self.machine(slot)) };
        let mut config = self.config(links, "");
        if let Some(routing) = &mut config.routing {
            routing.sleeps = self.sleeper == Some(slot);
        }
        Machined { relay: LinkRelay::open(&config, cards, beside).unwrap(), came }
    }
}

impl Machined {
    fn status(&self) -> Arc<RoutingStatus> {
        self.relay.router().unwrap().status()
    }

    fn slot(&self) -> u16 {
        self.status().slot.number()
    }

    fn reaches(&self, slot: u16) -> bool {
        self.status().routes.iter().any(|route| route.to.number() == slot)
    }

    fn wait_for(&self, slots: &[u16]) {
        until("all are reached", || slots.iter().all(|slot| self.reaches(*slot)));
    }

    /// Sends a frame again and again until it has come to somebody.
    fn send_until(&self, maker: &mut Maker, to: PeerTag, mut is_there: impl FnMut() -> bool) {
        let mut port = self.relay.port();
        until("it has come", || {
            let fields = HeaderFields { next_hop: PeerTag::BROADCAST, ..maker.fields(to) };
            let mut frame = maker.seal(&fields, b"over there");
            port.push(&mut frame);
            port.flush();
            std::thread::sleep(Duration::from_millis(5));
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
    // Frames of before may still be on their way.
    let broadcast = || {
        let came = four.came.lock();
        came.iter().find(|frame| frame[27..35] == tag(2).to_bytes()).cloned()
    };
    one.send_until(&mut Maker::new(2), PeerTag::BROADCAST, || broadcast().is_some());
    let hops = broadcast().unwrap()[16];
    assert_eq!(hops, 15 - 4, "one hop for each machine, those with a radio too");
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
fn a_neighbour_on_a_radio_keeps_a_few_frames_of_one_that_sleeps_and_the_urgent_one_among_them() {
    const COUNT: usize = 4 * MAX_KEPT_FRAMES;
    let stage = Stage { sleeper: Some(1), ..Stage::new() };
    let one = stage.start(0, Some(0), &[(201, "11p")]);
    let leaf = stage.start(1, Some(1), &[(202, "11p")]);
    one.wait_for(&[1]);
    let mut maker = Maker::new(0);
    one.send_until(&mut maker, tag(1), || !leaf.came.lock().is_empty());
    let dropped = || one.status().counters.no_air_time;
    let (came_before, dropped_before) = (leaf.came.lock().len(), dropped());
    let mut port = one.relay.port();
    let seal = |number: usize| {
        let what = if number == 0 { DataType::EMERGENCY } else { DataType::LOCATION };
        let fields = HeaderFields { next_hop: PeerTag::BROADCAST, ..maker.fields(tag(1)) };
        maker.seal(&HeaderFields { data_type: what.number(), ..fields }, b"wake up")
    };
    // They are sealed before: few hellos come while they are sent.
    for mut frame in (0..COUNT).map(seal).collect::<Vec<_>>() {
        port.push(&mut frame);
        port.flush();
    }
    // A hello may come while they are sent: then as many more are kept.
    until("most had no room", || dropped() - dropped_before >= COUNT as u64 / 2);
    let urgent = DataType::EMERGENCY.number() as u8;
    let has_come = || leaf.came.lock().iter().any(|frame| frame[21] == urgent);
    until("the urgent one comes with a hello", has_come);
    let came = leaf.came.lock().len() - came_before;
    assert!(came <= COUNT / 2, "{came} of {COUNT} frames were kept");
}

/// How busy the sender of a unit says that it finds its channel, of 255, if that is a hello.
fn load(unit: &[u8]) -> Option<u8> {
    let is_hello = unit[0] >> 4 == 0xa && unit.get(3) == Some(&1) && unit.len() > 28;
    // The header of the seal has 1 to 7 bytes, and the tag 16.
    let places = (5..12).filter(|_| is_hello);
    places
        .filter_map(|at| HelloMessage::parse(&unit[at..unit.len() - 16]).ok())
        .map(|one| one.load)
        .next()
}

#[test]
fn who_sends_by_a_radio_and_who_hears_it_say_in_their_hellos_that_it_is_busy() {
    let stage = Stage::new();
    let one = stage.start(0, Some(0), &[(201, "ble-185")]);
    let other = stage.start(1, Some(1), &[(202, "ble-185")]);
    let stranger = crate::relays_in_memory::link(&stage.net, 250);
    one.wait_for(&[1]);
    let (mut port, mut maker) = (one.relay.port(), Maker::new(0));
    let (mut inbox, mut busy) = (LinkInbox::new(), HashSet::new());
    until("both say that it is busy", || {
        for _ in 0..20 {
            let fields = HeaderFields { next_hop: PeerTag::BROADCAST, ..maker.fields(tag(1)) };
            port.push(&mut maker.seal(&fields, &[7; 100]));
            port.flush();
        }
        let _ = stranger.wait(LinkReady::ToReceive, Duration::from_millis(50));
        let count = stranger.receive(&mut inbox).unwrap_or(0);
        for (arrived, segments) in inbox.batches(count) {
            let loads = segments.chunks(arrived.segment_bytes).filter_map(load);
            busy.extend(loads.filter(|load| *load > 8).map(|_| arrived.from));
        }
        busy.len() == 2
    });
    drop(other);
}

/// The neighbour that a machine sends by what is for another one.
fn via(at: &Machined, to: u16) -> Option<u16> {
    let status = at.status();
    let route = status.routes.iter().find(|route| route.to.number() == to)?;
    route.ways.iter().find(|way| way.is_used).map(|way| way.via.number())
}

/// Two ways lead to a gateway over wires: one by a machine that answers all that the mesh asks and
/// has no card of the group, so that it drops all data. `chooser` is the machine before both.
/// Others keep the gateway busy, which tells every two seconds what came.
fn leaves_a_black_hole(stage: &Stage, sender: &Machined, chooser: &Machined) {
    let hole = stage.start_with(1, None, &[(202, "wire"), (402, "wire")], &[]);
    let gateway = stage.start(3, Some(1), &[(401, "wire"), (501, "wire"), (GATEWAYS, "wire")]);
    let other = stage.start(5, Some(2), &[(GATEWAYS + 1, "wire")]);
    until("the way by the hole", || via(chooser, 3) == Some(1));
    let honest = stage.start(2, None, &[(302, "wire"), (502, "wire")]);
    until("the other way", || honest.reaches(3) && honest.reaches(chooser.slot()));
    let has_come = |from: u8| {
        let came = gateway.came.lock();
        came.iter().any(|frame| frame[27..35] == tag(from).to_bytes())
    };
    other.send_until(&mut Maker::new(2), tag(1), || has_come(2));
    let begun = Instant::now();
    let mut others = Maker::new(2);
    let mut port = other.relay.port();
    sender.send_until(&mut Maker::new(0), tag(1), || {
        let fields = HeaderFields { next_hop: PeerTag::BROADCAST, ..others.fields(tag(1)) };
        port.push(&mut others.seal(&fields, b"busy"));
        port.flush();
        has_come(0)
    });
    println!("frames came after {:?}", begun.elapsed());
    until("the honest way is used", || via(chooser, 3) == Some(2));
    assert!(hole.relay.tally().dropped(DropReason::UnknownSource) > 8, "{:?}", hole.relay.tally());
}

#[test]
fn a_next_hop_on_a_wire_that_swallows_what_this_machine_sends_is_left() {
    let stage = Stage::new();
    let sender = stage.start(0, Some(0), &[(201, "wire"), (301, "wire")]);
    leaves_a_black_hole(&stage, &sender, &sender);
}

#[test]
fn a_next_hop_on_a_wire_that_swallows_what_this_machine_carries_is_left() {
    let stage = Stage::new();
    let sender = stage.start(0, Some(0), &[(101, "wire")]);
    let relay = stage.start(4, None, &[(102, "wire"), (201, "wire"), (301, "wire")]);
    leaves_a_black_hole(&stage, &sender, &relay);
}

/// The files of `scenarios/convoy.toml`, which a live run of the simulator starts ends with.
#[test]
fn the_ends_of_the_convoy_are_read_and_fit_their_radio() {
    for text in [
        include_str!("../../../../scenarios/convoy/front.toml"),
        include_str!("../../../../scenarios/convoy/rear.toml"),
    ] {
        let config = Config::parse(text).unwrap();
        assert_eq!(config.packet_bytes().unwrap(), 1500 - 10 - 89, "{text}");
    }
}

#[test]
fn a_mesh_is_a_group_of_its_own_and_needs_its_keys() {
    let stage = Stage::new();
    let refused = |cards: &[RelayCard], machine: Option<RoutingSecrets>, rest: &str| {
        let config = stage.config(&[(101, "wire")], rest);
        let beside = RelayBeside { end: None, machine };
        let error = LinkRelay::open(&config, cards, beside).unwrap_err();
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
    let at = sealane_link::LinkAddress::Memory(101);
    let mut unit = Maker::new(1).frame(PeerTag::BROADCAST, &[1; 40]);
    let send = |unit: &[u8]| assert!(other.send(at, unit, unit.len()).stopped.is_none());
    send(&unit);
    until("a stranger", || one.relay.tally().dropped(DropReason::Stranger) == 1);
    (unit[16], unit[18]) = (0, 2);
    unit[23..27].copy_from_slice(&stage.provision.group_tag().to_bytes());
    send(&unit);
    until("no message", || {
        let counters = one.status().counters;
        counters.unopened == 1
    });
}
