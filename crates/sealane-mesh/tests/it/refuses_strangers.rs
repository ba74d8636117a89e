//! Outsiders change nothing; a member that went bad disturbs routes, within bounds.

use std::sync::Arc;

use sealane_frame::{ANNOUNCEMENT_TYPE, FrameBuf, FrameKind, HeaderFields, LongFrame, seal_frame};
use sealane_mesh::{
    AdvertisedRoute, HelloEcho, HelloMessage, HelloNeighbour, HopSender, HopWriter, INFINITE, Keys,
    MachineRole, MeshAddress, MeshEvent, MeshInput, MeshMedium, MeshProvision, MeshSpan, MeshTime,
    MessageType, RouteDistance, RouteMessage, RouteRequest,
};
use sealane_seal::{Announcement, Binding, Class, Sealer, Slot};

use crate::net::{Link, Net, RADIO};

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

fn pair(seed: u64) -> Net {
    let mut net = Net::new(seed, 4, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| {
        net.start(slot, if slot == 2 { MachineRole::Gateway } else { MachineRole::Member })
    });
    net.run(MeshSpan::seconds(10));
    assert!(net.reaches(0, 2));
    net
}

/// The knowledge of a machine, as others see it.
fn state(net: &Net, at: usize) -> String {
    let node = net.node(at);
    let mut neighbours = node.mesh.neighbours();
    neighbours.retain(|one| one.cost.is_some());
    neighbours.iter_mut().for_each(|one| (one.round_trip, one.cost) = (None, None));
    format!("{neighbours:?} {:?}", node.table.routes().map(|one| one.to).collect::<Vec<_>>())
}

#[test]
fn recorded_units_do_nothing_wherever_they_come_again() {
    let mut net = pair(1);
    let recorded: Vec<_> = net.heard.iter().map(|(_, unit)| Arc::clone(unit)).collect();
    net.run(MeshSpan::seconds(5));
    for at in 0..3 {
        let (before, dropped) = (state(&net, at), net.node(at).mesh.counters());
        for (number, unit) in recorded.iter().enumerate() {
            let from = MeshAddress([0, 1, 2, 77][number % 4]);
            net.take(at, MeshInput::Heard { interface: RADIO, from, unit: (&**unit).into() });
        }
        assert_eq!(state(&net, at), before, "{at}");
        let counters = net.node(at).mesh.counters();
        let refused = |one: sealane_mesh::MeshCounters| one.repeats + one.reflected + one.unopened;
        // A machine out of reach is heard for the first time so, and is no neighbour by that.
        assert!(refused(counters) - refused(dropped) >= recorded.len() as u64 / 2);
    }
    net.run(MeshSpan::seconds(5));
    assert!(net.reaches(0, 2) && net.reaches(2, 0));
}

#[test]
fn a_recorded_session_moves_nobody_that_starts_anew() {
    let mut net = pair(2);
    let recorded: Vec<_> = net.heard.to_vec();
    // Machine 1 is gone; 0 starts anew and hears what 1 said before, from where 1 was.
    net.stop(1);
    net.start(0, MachineRole::Member);
    for (from, unit) in recorded.iter().filter(|(from, _)| *from == 1) {
        let from = MeshAddress(*from as u64);
        net.take(0, MeshInput::Heard { interface: RADIO, from, unit: (&**unit).into() });
        net.run(MeshSpan::millis(10));
    }
    assert_eq!(net.node(0).table.routes().count(), 0, "nothing gave back what is new");
    assert!(net.node(0).mesh.neighbours().iter().all(|one| one.cost.is_none()));
}

#[test]
fn changed_units_and_those_of_another_mesh_do_nothing() {
    let mut net = pair(3);
    let mut other = pair(4);
    other.run(MeshSpan::seconds(1));
    let strange: Vec<_> = other.heard.iter().map(|(_, unit)| unit.to_vec()).collect();
    let before = state(&net, 0);
    for unit in &strange {
        net.take(0, MeshInput::Heard { interface: RADIO, from: MeshAddress(1), unit: unit.into() });
    }
    let recorded: Vec<_> = net.heard.iter().rev().take(40).map(|(_, unit)| unit.to_vec()).collect();
    for unit in &recorded {
        for at in 0..unit.len() {
            let mut bad = unit.clone();
            bad[at] ^= 1 << (at % 8);
            net.take(
                0,
                MeshInput::Heard { interface: RADIO, from: MeshAddress(1), unit: (&bad).into() },
            );
        }
    }
    assert_eq!(state(&net, 0), before);
    net.run(MeshSpan::seconds(10));
    assert!(net.reaches(0, 2));
}

#[test]
fn a_stranger_cannot_have_anything_sent_on() {
    let mut net = pair(5);
    let frame = net.frame(0, None, 7, b"12345678help");
    let mut unit = vec![];
    LongFrame::of(&frame).unwrap().write(&mut unit);
    unit.extend([0; 10]);
    let (before, units) = (net.node(1).mesh.counters(), net.node(1).sent_units);
    for from in [0, 2, 9] {
        net.take(
            1,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(from), unit: (&unit).into() },
        );
    }
    assert_eq!(net.node(1).sent_units, units);
    let counters = net.node(1).mesh.counters();
    let refused = |one: sealane_mesh::MeshCounters| one.stranger + one.unopened + one.repeats;
    assert_eq!(refused(counters) - refused(before), 3);
    net.data(0, None, 7, b"12345678help");
    net.run(MeshSpan::seconds(1));
    assert_eq!(net.node(1).delivered.len(), 1, "a member can");
}

#[test]
fn two_machines_with_one_key_are_told() {
    let mut net = pair(6);
    let keys = net.keys(1);
    let mut twin = Insider::new(&net.provision, keys);
    let unit = twin.announce();
    net.take(1, MeshInput::Heard { interface: RADIO, from: MeshAddress(7), unit: (&unit).into() });
    let is_told = |(_, event): &(MeshTime, MeshEvent)| *event == MeshEvent::OwnSlotHeard;
    assert!(net.node(1).events.iter().any(is_told));
    assert!(net.node(1).mesh.counters().reflected > 0);
}

#[test]
fn a_revoked_member_is_no_neighbour_any_more() {
    let mut net = pair(7);
    for at in [0, 2] {
        let rekeyed = net.provision.without(&[1], 1, at as u16).unwrap();
        let now = net.now;
        net.nodes.get_mut(&at).unwrap().mesh.rekey(now, rekeyed).unwrap();
        net.take(at, MeshInput::Tick);
    }
    assert!(net.node(0).mesh.neighbours().is_empty());
    net.run(MeshSpan::seconds(10));
    assert!(net.node(0).mesh.neighbours().is_empty());
    assert!(!net.reaches(0, 2));
    // Those who stay find each other in the new epoch.
    net.join(0, 2, Link::default());
    net.run(MeshSpan::seconds(10));
    assert!(net.reaches(0, 2) && net.reaches(2, 0));
}

/// A member that says what it likes.
pub(crate) struct Insider {
    sealer: Sealer,
    hop: HopWriter,
    fields: HeaderFields,
    start: u64,
}

impl Insider {
    pub(crate) fn new(provision: &MeshProvision, keys: Keys) -> Self {
        let Keys { group, slot, context, start_ms: start, epochs, signing, .. } = keys;
        let sender = HopSender { slot, context, epoch: epochs.newest() };
        let hop = HopWriter::new(epochs.secret(epochs.newest()).unwrap(), sender, 0);
        let mut sealer = Sealer::new(group, slot, context, &epochs, 0).unwrap();
        sealer.set_signing_key(signing);
        let tag = provision.tag(slot.number());
        let fields = HeaderFields {
            hop_limit: 0,
            kind: FrameKind::Routing,
            class: Class::Authenticated,
            codec: 0,
            ..HeaderFields::new(provision.group_tag(), tag, 1)
        };
        Self { sealer, hop, fields, start }
    }

    pub(crate) fn announce(&mut self) -> Vec<u8> {
        let fields = HeaderFields {
            kind: FrameKind::Control,
            class: Class::Signed,
            data_type: ANNOUNCEMENT_TYPE,
            ..self.fields
        };
        let body = Announcement { start: self.start, orders: 0 }.to_bytes();
        self.unit(&fields, &body)
    }

    pub(crate) fn say(&mut self, what: MessageType, body: &[u8]) -> Vec<u8> {
        let fields = HeaderFields { data_type: what as u16, ..self.fields };
        self.unit(&fields, body)
    }

    /// Becomes a neighbour of machine 0: it gives back what that has sent, as an honest one would.
    fn is_met(&mut self, net: &mut Net, sequences: std::ops::Range<u16>) {
        let unit = self.announce();
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
        for sequence in sequences {
            net.run(MeshSpan::millis(100));
            let (sent, at) = last_hello(net, 0);
            let heard = 1_000_000 - net.now.since(at).0 as u32;
            let hello = HelloMessage {
                sequence,
                interval: 50,
                sent: 1_000_000,
                neighbours: vec![HelloNeighbour { slot: slot(0), heard: 15, told: 15 }],
                echoes: vec![HelloEcho { index: 0, sent, heard }],
                ..HelloMessage::default()
            };
            self.tells(net, MessageType::Hello, &hello.to_bytes());
        }
        let known = net.node(0).mesh.neighbours();
        let is_met = known.iter().any(|one| one.slot == slot(3) && one.cost.is_some());
        assert!(is_met, "{known:?}");
    }

    /// Tells machine 0 something.
    fn tells(&mut self, net: &mut Net, what: MessageType, body: &[u8]) {
        let unit = self.say(what, body);
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
    }

    fn unit(&mut self, fields: &HeaderFields, body: &[u8]) -> Vec<u8> {
        let mut buf = FrameBuf::new();
        let link = Binding::link();
        let frame = seal_frame(&mut self.sealer, fields, &link, body, &mut buf).unwrap();
        let mut unit = vec![];
        LongFrame::of(frame).unwrap().write(&mut unit);
        unit
    }
}

/// A pair of machines of a large group, and a member 3 at address 3 that is known to machine 0.
pub(crate) fn with_insider(seed: u64) -> (Net, Insider) {
    let mut net = Net::new(seed, 200, MeshMedium::dot11p());
    net.chain(&[0, 1, 2], Link::default());
    (0..3).for_each(|slot| {
        net.start(slot, if slot == 2 { MachineRole::Gateway } else { MachineRole::Member })
    });
    net.run(MeshSpan::seconds(10));
    let keys = net.keys(3);
    let mut insider = Insider::new(&net.provision, keys);
    insider.is_met(&mut net, 0..12);
    (net, insider)
}

/// The time stamp of a machine's last hello, and about when it was sent.
fn last_hello(net: &Net, of: usize) -> (u32, MeshTime) {
    let hello = net.heard.iter().rev().filter(|(from, _)| *from == of).find_map(|(_, unit)| {
        let is_hello = unit[0] >> 4 == 0xa && unit[3] == 1;
        // The SFrame header has 1 to 7 bytes: the body begins with the version and its counts.
        is_hello
            .then(|| (5..12).find_map(|at| HelloMessage::parse(&unit[at..unit.len() - 16]).ok()))?
    });
    (hello.expect("it said hello").sent, net.now)
}

#[test]
fn a_member_that_advertises_everything_fills_no_memory_and_no_way_has_a_loop() {
    let (mut net, mut insider) = with_insider(8);
    let tags: Vec<_> = (0..1024).map(|number| net.provision.tag(number)).collect();
    for sequence in 0..20_u16 {
        let route = |number: u16| AdvertisedRoute {
            distance: RouteDistance {
                slot: slot(number),
                sequence: sequence.wrapping_mul(30_011),
                metric: [1, 2, INFINITE - 1][usize::from(number) % 3],
            },
            is_gateway: number.is_multiple_of(2),
            attached: Some(vec![tags[usize::from(number)]; 8]),
        };
        for part in 0..5 {
            let routes = (part * 250..(part + 1) * 250).filter(|n| *n < 1024).map(route).collect();
            let told = RouteMessage { sequence: sequence * 8 + part, routes };
            let unit = insider.say(MessageType::Routes, &told.to_bytes());
            net.take(
                0,
                MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
            );
        }
        net.run(MeshSpan::millis(200));
    }
    assert!(net.node(0).table.routes().count() < 200, "only members are destinations");
    assert_eq!(net.loops, 0);
    // The routes that it told run out with it, and the honest ways come back.
    net.run(MeshSpan::seconds(60));
    assert!(net.reaches(0, 2) && net.reaches(2, 0) && net.reaches(0, 1));
}

/// Whether machine 0 has told of member 3 that it is faulty.
fn is_told(net: &Net) -> bool {
    net.node(0).events.iter().any(|(_, event)| *event == MeshEvent::Faulty { slot: slot(3) })
}

/// A route message with one distance.
fn told(sequence: u16, to: u16, metric: u16) -> Vec<u8> {
    let distance = RouteDistance { slot: slot(to), sequence: 7, metric };
    let routes = vec![AdvertisedRoute { distance, is_gateway: false, attached: None }];
    RouteMessage { sequence, routes }.to_bytes()
}

#[test]
fn nobody_is_taken_for_another_machine_by_a_hello_or_a_route_message_of_metric_0() {
    for is_hello in [false, true] {
        let (mut net, mut insider) = with_insider(14);
        let gateways = vec![RouteDistance { slot: slot(50), sequence: 7, metric: 0 }];
        let hello =
            HelloMessage { sequence: 12, interval: 50, gateways, ..HelloMessage::default() };
        let (what, body) = match is_hello {
            true => (MessageType::Hello, hello.to_bytes()),
            false => (MessageType::Routes, told(1, 50, 0)),
        };
        let before = net.node(0).mesh.counters().malformed;
        insider.tells(&mut net, what, &body);
        assert_eq!(net.via(0, 50), None, "{what:?}");
        assert!(is_told(&net), "{what:?}");
        assert_eq!(net.node(0).mesh.counters().malformed, before + 1, "{what:?}");
        // Its own distance has that metric, and a longer one of another machine may be true.
        insider.tells(&mut net, MessageType::Routes, &told(2, 3, 0));
        insider.tells(&mut net, MessageType::Routes, &told(3, 50, 64));
        assert_eq!([net.via(0, 3), net.via(0, 50)], [Some(3), Some(3)], "{what:?}");
    }
}

#[test]
fn metric_0_passes_no_route_to_a_machine_that_has_just_started() {
    let (mut net, mut insider) = with_insider(15);
    net.start(0, MachineRole::Member);
    insider.is_met(&mut net, 12..18);
    insider.tells(&mut net, MessageType::Routes, &told(1, 50, 64));
    assert!(!is_told(&net), "it may be true");
    assert_eq!(net.via(0, 50), None, "but may lead to those who know the machine from before");
    insider.tells(&mut net, MessageType::Routes, &told(2, 50, 0));
    assert_eq!(net.via(0, 50), None, "and is no neighbour's distance");
    assert!(is_told(&net));
    insider.tells(&mut net, MessageType::Routes, &told(3, 3, 0));
    assert_eq!(net.via(0, 3), Some(3), "the one to the neighbour itself is taken at once");
    net.run(MeshSpan::seconds(2));
    insider.tells(&mut net, MessageType::Routes, &told(4, 50, 64));
    assert_eq!(net.via(0, 50), Some(3), "later others are taken too");
}

#[test]
fn a_message_of_the_mesh_with_a_hop_limit_is_neither_taken_nor_sent_on() {
    let (mut net, mut insider) = with_insider(16);
    let hello = HelloMessage { sequence: 12, interval: 50, ..HelloMessage::default() };
    let fields = HeaderFields { hop_limit: 15, data_type: 1, ..insider.fields };
    let mut send = |net: &mut Net, fields: &HeaderFields| {
        let before = net.node(0).mesh.counters();
        let mut unit = insider.unit(fields, &hello.to_bytes());
        insider.hop.seal(&mut unit);
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
        net.run(MeshSpan::millis(100));
        let after = net.node(0).mesh.counters();
        (after.flooded - before.flooded, after.unopened - before.unopened)
    };
    assert_eq!(send(&mut net, &fields), (0, 1), "a hello");
    assert_eq!(net.node(0).delivered, []);
    let data = HeaderFields { kind: FrameKind::Message, ..fields };
    assert_eq!(send(&mut net, &data), (1, 0), "what is no message of the mesh goes on");
    assert_eq!(net.node(1).delivered.len(), 1);
}

#[test]
fn routes_that_were_told_before_others_change_nothing_when_they_come_behind_them() {
    let (mut net, mut insider) = with_insider(13);
    let mut tell = |net: &mut Net, message: u16, metric: u16| {
        let distance = RouteDistance { slot: slot(50), sequence: 7, metric };
        let route = AdvertisedRoute { distance, is_gateway: false, attached: None };
        let told = RouteMessage { sequence: message, routes: vec![route] };
        // The seal is new: only the message itself says that it is old.
        let unit = insider.say(MessageType::Routes, &told.to_bytes());
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
        net.via(0, 50)
    };
    assert_eq!(tell(&mut net, 5, 100), Some(3));
    let before = net.node(0).mesh.counters().repeats;
    assert_eq!(tell(&mut net, 4, INFINITE), Some(3), "it was on its way for longer");
    assert_eq!(tell(&mut net, 5, INFINITE), Some(3), "it came again");
    assert_eq!(net.node(0).mesh.counters().repeats - before, 2);
    assert_eq!(tell(&mut net, 6, INFINITE), None);
}

#[test]
fn time_stamps_of_another_century_change_no_round_trip() {
    let (mut net, mut insider) = with_insider(9);
    let round_trip = |net: &Net| {
        let all = net.node(0).mesh.neighbours();
        all.into_iter().find(|one| one.slot == slot(3)).unwrap().round_trip
    };
    let before = round_trip(&net);
    let (real, _) = last_hello(&net, 0);
    for (number, (sent, heard, now)) in [
        (0, 0, 0),
        (u32::MAX, 0, u32::MAX),
        (real.wrapping_add(1), 5, 5),
        (real, 0, u32::MAX),
        (real, 1 << 31, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let hello = HelloMessage {
            sequence: 100 + number as u16,
            interval: 50,
            sent: now,
            neighbours: vec![HelloNeighbour { slot: slot(0), heard: 15, told: 15 }],
            echoes: vec![HelloEcho { index: 0, sent, heard }],
            ..HelloMessage::default()
        };
        let unit = insider.say(MessageType::Hello, &hello.to_bytes());
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
    }
    assert_eq!(round_trip(&net), before);
    assert_eq!(net.node(0).mesh.counters().bad_echoes, 5);
}

#[test]
fn messages_that_no_machine_sends_are_told_with_their_sender() {
    let (mut net, mut insider) = with_insider(10);
    for what in MessageType::ALL {
        for body in [&[][..], &[0], &[0xff; 40], &[0x40; 3]] {
            let unit = insider.say(what, body);
            net.take(
                0,
                MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
            );
        }
    }
    assert!(is_told(&net));
    assert!(net.reaches(0, 2));
}

#[test]
fn requests_raise_a_sequence_a_few_times_a_second_at_most() {
    let (mut net, mut insider) = with_insider(11);
    let told = |net: &Net| net.node(0).mesh.counters().route_messages;
    let before = told(&net);
    for number in 0..1000_u16 {
        let (to, sequence) = (None, number.wrapping_mul(311));
        let request = RouteRequest { slot: slot(0), sequence, hops: 255, to };
        let unit = insider.say(MessageType::Request, &RouteRequest::write(&[request; 8]));
        net.take(
            0,
            MeshInput::Heard { interface: RADIO, from: MeshAddress(3), unit: (&unit).into() },
        );
        net.run(MeshSpan::millis(1));
    }
    let messages = told(&net) - before;
    assert!(messages <= 12, "{messages} in one second");
    assert!(net.reaches(1, 0) && net.reaches(2, 0));
}

#[test]
fn a_table_of_neighbours_has_its_bound() {
    let mut net = Net::new(12, 200, MeshMedium::dot11p());
    net.start(0, MachineRole::Member);
    for number in 1..200_u16 {
        let keys = net.keys(usize::from(number));
        let mut insider = Insider::new(&net.provision, keys);
        let hello = HelloMessage { interval: 1000, ..HelloMessage::default() };
        let units = [insider.announce(), insider.say(MessageType::Hello, &hello.to_bytes())];
        for unit in units {
            let from = MeshAddress(number.into());
            net.take(0, MeshInput::Heard { interface: RADIO, from, unit: (&unit).into() });
        }
        // Strangers are tried at a pace.
        net.run(MeshSpan::millis(100));
    }
    assert_eq!(net.node(0).mesh.neighbours().len(), 128);
    assert!(net.node(0).mesh.counters().no_room > 0);
    assert_eq!(net.start_number(0), 1);
}
