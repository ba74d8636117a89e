//! Machines that find each other, with no neighbour and no route in their files: what is said at
//! one end arrives at the other, over relays that hold no key of it, and goes another way when one
//! of them is killed.

mod documents;
mod field;
mod reaches_the_cloud;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use sealane::Value;
use sealane_frame::{ANNOUNCEMENT_TYPE, FrameKind, GroupTag, Header, HeaderFields, PeerTag};
use sealane_link::USUAL_MULTICAST_V4;
use sealane_seal::SenderContext;
use sealane_testing::{process_memory_kib, until};

use self::field::Field;
use crate::cli::home::number;
use crate::cli::writes_json::StatusPage;
use crate::cli::{json, text};

const BASE: &str = "10.9.0.1";
const CAR: &str = "10.9.0.2";

/// The car's datagram comes back from the base, as soon as there is a route.
fn says_hello(field: &Field, car: usize, base: usize) {
    let echo = field.on(base, || UdpSocket::bind((BASE, 7001)).unwrap());
    let own = field.on(car, || UdpSocket::bind((CAR, 0)).unwrap());
    for socket in [&echo, &own] {
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    }
    let mut got = [0; 64];
    until("it comes back", || {
        // Without a route the system may refuse it.
        let _ = own.send_to(b"are you there?", (BASE, 7001));
        if let Ok((bytes, from)) = echo.recv_from(&mut got) {
            let _ = echo.send_to(&got[..bytes], from);
        }
        own.recv_from(&mut got).is_ok_and(|(bytes, _)| {
            assert_eq!(&got[..bytes], b"are you there?");
            true
        })
    });
}

pub(super) fn list(of: &Value, name: &str) -> Vec<Value> {
    match of.field(name) {
        Some(Value::Array(rows)) => rows.clone(),
        _ => vec![],
    }
}

/// The ways by which a machine reaches another one, the one in use first.
fn ways(told: &Value, to: u64) -> Vec<Value> {
    let routes = told.field("routing").map(|routing| list(routing, "routes")).unwrap_or_default();
    let route = routes.iter().find(|route| number(route, "to") == to);
    route.map(|route| list(route, "ways")).unwrap_or_default()
}

/// The neighbour by which a machine reaches another one.
fn via(told: &Value, to: u64) -> Option<u64> {
    ways(told, to).first().map(|way| number(way, "via"))
}

/// Three machines in a row: what the car says comes back, with no neighbour and no route in a file.
fn line(kinds: [&str; 2]) {
    let _turn = crate::TURN.beside();
    let field = Field::new(&["base", "relay", "car"], &[(0, 1), (1, 2)]);
    field.end("base", BASE, &field.links(0, &kinds[..1]));
    field.relay("relay", &field.links(1, &kinds));
    field.end("car", CAR, &field.links(2, &kinds[1..]));
    let machines = [0, 1, 2].map(|index| field.start(index));
    let begun = Instant::now();
    says_hello(&field, 2, 0);
    println!("{kinds:?}: routed within {:?}", begun.elapsed());
    let told = field.told(2, |told| via(told, 0) == Some(1));
    let own = told.field("routing").unwrap();
    assert_eq!((number(own, "slot"), number(own, "ownSlotHeard")), (2, 0), "{told:?}");
    let mut line = Vec::new();
    sealane_codec::encode(sealane::Codec::Json, &told, &mut line);
    let page = StatusPage::read();
    page.compare("mesh status CONFIG", &String::from_utf8(line).unwrap());
    for to in ["0", "base"] {
        let (traced, error) = field.trace(2, to);
        page.compare("mesh trace CONFIG PEER", &traced);
        let hops = list(&json(&traced), "hops");
        let slots: Vec<_> = hops.iter().map(|hop| number(hop, "slot")).collect();
        assert!(error.is_empty() && slots == [2, 1, 0], "{traced} {error}");
        let names: Vec<_> = hops.iter().map(|hop| text(hop, "name")).collect();
        assert_eq!(names, ["car", "relay", "base"], "{traced}");
        assert_eq!(text(&list(&hops[0], "ways")[0], "name"), "relay", "{traced}");
    }
    let (traced, error) = field.trace(2, "77");
    assert!(error.contains("SL-LINK-10"), "{error}");
    assert_eq!(list(&json(&traced), "hops").len(), 1, "{traced}");
    let (traced, error) = field.trace(2, "bass");
    assert!(error.contains("SL-GROUP-17") && traced.is_empty(), "{traced} {error}");
    drop(machines);
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn three_machines_in_a_line_find_each_other_over_udp() {
    line(["udp", "udp"]);
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn three_machines_in_a_line_find_each_other_over_ethernet_and_ipv6() {
    line(["ethernet", "udp6"]);
}

/// Radios: every unit passes the machine, within hop seals, and frames cross to a wire and back.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn frames_cross_between_radios_and_wires() {
    line(["11p", "udp"]);
    line(["11p", "ble-247"]);
}

/// A relay is killed: what is said goes by the other one. It is started again, and routed again.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_second_way_takes_over_when_a_relay_is_killed_and_it_comes_back() {
    let _turn = crate::TURN.beside();
    let names = ["base", "north", "south", "car"];
    let field = Field::new(&names, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    field.end("base", BASE, &field.links(0, &["udp", "udp"]));
    field.relay("north", &field.links(1, &["udp", "udp"]));
    field.relay("south", &field.links(2, &["ethernet", "udp"]));
    field.end("base", BASE, &field.links(0, &["udp", "ethernet"]));
    field.end("car", CAR, &field.links(3, &["udp", "udp"]));
    let mut machines = [0, 1, 2, 3].map(|index| Some(field.start(index)));
    says_hello(&field, 3, 0);
    let candidates = |told: &Value| ways(told, 0).len() == 2;
    let told = field.told(3, candidates);
    let first = via(&told, 0).unwrap();
    let other = 3 - first;
    let begun = Instant::now();
    drop(machines[first as usize].take());
    says_hello(&field, 3, 0);
    println!("another way within {:?}", begun.elapsed());
    field.told(3, |told| via(told, 0) == Some(other));
    machines[first as usize] = Some(field.start(first as usize));
    let begun = Instant::now();
    field.told(3, |told| via(told, first).is_some() && candidates(told));
    println!("back within {:?}", begun.elapsed());
    drop(machines);
}

/// A machine was captured: with the next epoch it is no neighbour, and nothing goes by it.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_machine_that_was_revoked_is_no_neighbour_any_more() {
    let _turn = crate::TURN.beside();
    let names = ["base", "north", "south", "car"];
    let field = Field::new(&names, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    field.end("base", BASE, &field.links(0, &["udp", "udp"]));
    field.relay("north", &field.links(1, &["udp", "udp"]));
    field.relay("south", &field.links(2, &["udp", "udp"]));
    field.end("car", CAR, &field.links(3, &["udp", "udp"]));
    let machines = [0, 1, 2, 3].map(|index| field.start(index));
    let neighbours = |told: &Value| list(told.field("routing").unwrap(), "neighbours");
    field.told(3, |told| neighbours(told).len() == 2 && ways(told, 0).len() == 2);
    field.revoke("north");
    // The notice of its removal goes ahead of the next epoch.
    let epoch = |told: &Value| number(told.field("routing").unwrap(), "epoch");
    let is_gone = |told: &Value| neighbours(told).len() == 1 && via(told, 0) == Some(2);
    let told = field.told(3, |told| is_gone(told) && epoch(told) > 0);
    assert_eq!(via(&told, 1), None, "{told:?}");
    says_hello(&field, 3, 0);
    drop(machines);
}

/// The authority removes a machine, and tells nobody but the mesh: the orders go from machine to
/// machine, past the one that is removed, and each folder moves on.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_re_key_travels_over_the_mesh_itself() {
    let _turn = crate::TURN.beside();
    let names = ["base", "north", "south", "car"];
    let field = Field::new(&names, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    field.end("base", BASE, &field.links(0, &["udp", "udp"]));
    field.relay("north", &field.links(1, &["udp", "udp"]));
    field.relay("south", &field.links(2, &["11p", "udp"]));
    field.end("base", BASE, &field.links(0, &["udp", "11p"]));
    field.end("car", CAR, &field.links(3, &["udp", "udp"]));
    let machines = [0, 1, 2, 3].map(|index| field.start(index));
    let neighbours = |told: &Value| list(told.field("routing").unwrap(), "neighbours");
    field.told(3, |told| neighbours(told).len() == 2 && ways(told, 0).len() == 2);
    let begun = Instant::now();
    field.revoke_alone("north");
    let epoch = |told: &Value| number(told.field("routing").unwrap(), "epoch");
    field.told(3, |told| neighbours(told).len() == 1 && via(told, 0) == Some(2));
    println!("the car has shut it out within {:?}", begun.elapsed());
    let told = field.told(3, |told| epoch(told) > 0);
    println!("the car was re-keyed within {:?}", begun.elapsed());
    assert_eq!(via(&told, 1), None, "{told:?}");
    field.told(2, |told| epoch(told) > 0);
    assert_eq!(epoch(&field.told(1, |_| true)), 0, "the removed one was given no secret");
    says_hello(&field, 3, 0);
    drop(machines);
}

/// Two machines are given one key folder: each says so, and its status does.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn two_machines_with_one_key_are_told_by_name() {
    let _turn = crate::TURN.beside();
    let field = Field::new(&["base", "relay", "car"], &[(0, 1), (1, 2)]);
    field.end("base", BASE, &field.links(0, &["udp"]));
    field.relay("relay", &field.links(1, &["udp", "udp"]));
    field.end("car", CAR, &field.links(2, &["udp"]));
    field.take_keys("base", "relay");
    let machines = [0, 1].map(|index| field.start(index));
    let is_told = |told: &Value| number(told.field("routing").unwrap(), "ownSlotHeard") > 0;
    field.told(0, is_told);
    field.told(1, is_told);
    drop(machines);
}

/// An outsider without keys invents machines, and floods neighbours that find each other. They
/// still find each other.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn ten_thousand_invented_neighbours_fill_no_memory_and_stop_nobody() {
    let _turn = crate::TURN.beside();
    let field = Field::new(&["base", "relay", "car"], &[(0, 1), (1, 2)]);
    field.end("base", BASE, &field.links(0, &["udp"]));
    field.relay("relay", &field.links(1, &["udp", "udp"]));
    field.end("car", CAR, &field.links(2, &["udp"]));
    let machines = [0, 1].map(|index| field.start(index));
    let status = field.told(0, |told| via(told, 1) == Some(1));
    let group = status.field("routing").unwrap().field("group").and_then(Value::as_text);
    let group = GroupTag::from_hex(group.unwrap()).unwrap();
    let memory = || process_memory_kib(machines[1].process.id(), "VmRSS:");
    let before = memory();
    field.on(0, move || invent(group));
    let strangers = |told: &Value| {
        let routing = told.field("routing").unwrap();
        list(told, "dropped").iter().chain(&list(routing, "dropped")).any(|one| {
            let why = one.field("reason").and_then(Value::as_text);
            ["quota", "unopened"].contains(&why.unwrap()) && number(one, "units") > 100
        })
    };
    let told = field.told(1, strangers);
    assert_eq!(list(told.field("routing").unwrap(), "neighbours").len(), 1, "{told:?}");
    let more = memory().saturating_sub(before);
    assert!(more < 8 << 10, "{more} KiB for machines that are not there");
    let car = field.start(2);
    says_hello(&field, 2, 0);
    drop((machines, car));
}

/// Sends hellos and announcements that nobody sealed, each from another port and address.
fn invent(group: GroupTag) {
    let everybody = (USUAL_MULTICAST_V4.0, USUAL_MULTICAST_V4.1);
    for port in 0..500_u16 {
        let socket = UdpSocket::bind(("10.77.0.1", 20_000 + port)).unwrap();
        for number in 0..20_u16 {
            let source =
                PeerTag::from_hash((u64::from(port) << 16 | u64::from(number)).to_le_bytes());
            let kind = if number % 2 == 0 { FrameKind::Routing } else { FrameKind::Control };
            let data_type = if number % 2 == 0 { 1 } else { ANNOUNCEMENT_TYPE };
            let fields =
                HeaderFields { kind, hop_limit: 0, ..HeaderFields::new(group, source, data_type) };
            let context = SenderContext(source.to_bytes());
            let header = Header::new(&fields, 60, u64::from(number), context).unwrap();
            let frame = [header.as_bytes(), &[7; 80]].concat();
            let _ = socket.send_to(&frame, everybody);
        }
    }
}
