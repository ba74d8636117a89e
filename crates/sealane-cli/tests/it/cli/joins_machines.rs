//! Two machines on a network of their own, sealed, through a third that holds no key: what they
//! say to each other by TCP and UDP arrives, and no byte on the relay's wires holds it.

mod ends_by_name;
mod fits_the_wire;
mod withstands_storms;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealane::Value;
use sealane_frame::{FrameBuf, HeaderFields};
use sealane_group::KeyFolder;
use sealane_message::DataType;
use sealane_seal::{Binding, Class};
use sealane_testing::{NetSpace, PATIENCE, PacketRecorder, lay_wire, succeed, until};

use crate::cli::home::{Home, number};
use crate::cli::writes_json::StatusPage;
use crate::cli::{Machine, until_status};
use crate::crosses_a_blind_hub::net::Net;
use crate::crosses_a_blind_hub::program;
use crate::crosses_a_blind_hub::search::Needles;

const CAR: &str = "10.9.0.2";
const BASE: &str = "10.9.0.1";

/// A text that nobody could guess.
fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let letter = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        b'a' + (state >> 59) as u8 % 26
    };
    (0..bytes).map(letter).collect()
}

fn configs(home: &Home) {
    let neighbour = |name: &str, tag: &str, link: &str, address: &str| {
        format!(
            "[[neighbour]]\nname = \"{name}\"\ntag = \"{tag}\"\nlink = \"{link}\"\n\
             address = \"{address}:9190\"\n"
        )
    };
    let link = |name: &str, address: &str| {
        format!("[[link]]\nname = \"{name}\"\nudp = \"{address}:9190\"\n")
    };
    let route = |to: &str, via: &str| format!("[[route]]\nto = \"{to}\"\nvia = \"{via}\"\n");
    let relay = [
        "version = 1\nstatus = \"127.0.0.1:9191\"\n".to_owned(),
        "tag = \"b100000000000001\"\ncards = [\"fleet.card\"]\n".to_owned(),
        link("left", "10.77.1.2"),
        link("right", "10.77.2.2"),
        neighbour("car", "slot 1", "left", "10.77.1.1"),
        neighbour("base", "slot 0", "right", "10.77.2.1"),
        route("slot 1", "car"),
        route("slot 0", "base"),
    ];
    std::fs::write(home.path("relay.toml"), relay.concat()).unwrap();
    let ends = [("car", CAR, "10.77.1"), ("base", BASE, "10.77.2")];
    for (who, address, net) in ends {
        let end = [
            "version = 1\nstatus = \"127.0.0.1:9191\"\n".to_owned(),
            link("road", &format!("{net}.1")),
            neighbour("relay", "b100000000000001", "road", &format!("{net}.2")),
            route("*", "relay"),
            format!("[mesh]\naddresses = [\"{address}/24\"]\n"),
            format!("[[mesh.member]]\nslot = 0\nprefixes = [\"{BASE}/32\"]\n"),
            format!("[[mesh.member]]\nslot = 1\nprefixes = [\"{CAR}/32\"]\n"),
        ];
        std::fs::write(home.path(&format!("{who}.toml")), end.concat()).unwrap();
    }
}

fn end(home: &Home, net: &Net, side: usize, who: &str) -> Machine {
    let mut command = net.on_side(side, program());
    command.args(["--json", "mesh", "up", "fleet"]).arg(home.path(&format!("{who}.toml")));
    command.env("SEALANE_KEYS", home.path(who));
    Machine::start(command)
}

/// A server that gives back whatever it is sent over one connection after the other.
fn echo(listener: &TcpListener) {
    while let Ok((mut socket, _)) = listener.accept() {
        let mut sent = Vec::new();
        socket.read_to_end(&mut sent).unwrap();
        if sent.is_empty() {
            return;
        }
        socket.write_all(&sent).unwrap();
    }
}

/// Sends a text, and gives what comes back; how often it was tried is nobody's business.
fn there_and_back(sent: Vec<u8>) -> Vec<u8> {
    let begun = Instant::now();
    let address = (BASE.parse::<std::net::IpAddr>().unwrap(), 7000).into();
    let mut socket = loop {
        match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
            Ok(socket) => break socket,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    };
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(&sent).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut got = Vec::new();
    socket.read_to_end(&mut got).unwrap();
    got
}

/// Three machines in a row, and what the one between them sees.
struct Row {
    net: Net,
    home: Home,
    relay: Machine,
    recorder: PacketRecorder,
}

impl Row {
    fn new() -> Row {
        let net = Net::make();
        let home = Home::fleet(&[], &["base", "car"]);
        home.file("fleet.card", "base", &["group", "relay-card", "fleet"]);
        configs(&home);
        let recorder = PacketRecorder::start(net.hub());
        let mut command = net.on_hub(program());
        command.args(["--json", "relay"]).arg(home.path("relay.toml"));
        let relay = Machine::start(command);
        Row { net, home, relay, recorder }
    }

    fn end(&self, side: usize, who: &str) -> Machine {
        end(&self.home, &self.net, side, who)
    }

    /// The status of that side's end, as soon as the condition holds.
    #[track_caller]
    fn told(&self, side: usize, who: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.told_to(self.net.on_side(side, program()), who, is_so)
    }

    /// The status of the relay, as soon as the condition holds.
    #[track_caller]
    fn told_by_relay(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        self.told_to(self.net.on_hub(program()), "relay", is_so)
    }

    #[track_caller]
    fn told_to(&self, mut ask: Command, who: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        ask.args(["--json", "mesh", "status"]).arg(self.home.path(&format!("{who}.toml")));
        until_status(&mut ask, is_so)
    }

    /// On the machine of that side.
    fn on<T: Send + 'static>(&self, side: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.net.side(side).on(work)
    }

    /// A server at the base that gives back what is sent to it, until nothing is.
    fn echo(&self) -> JoinHandle<()> {
        let listener = self.on(1, || TcpListener::bind((BASE, 7000)).unwrap());
        std::thread::spawn(move || echo(&listener))
    }

    /// Has the car send a text to that server, and demands that it comes back.
    fn echoes(&self, sent: &[u8]) {
        let said = sent.to_vec();
        let got = self.on(0, move || there_and_back(said));
        assert!(got == sent, "{} bytes came back", got.len());
    }

    /// Ends that server.
    fn end_echo(&self, server: JoinHandle<()>) {
        self.on(0, || there_and_back(Vec::new()));
        server.join().unwrap();
    }

    /// Ends the relay, and looks for what was said on its wires.
    fn search(self, secrets: &[(&str, &[u8])]) {
        let relay = self.relay.stop();
        let carried = number(relay.field("forwarded").unwrap(), "bytes");
        assert!(carried > 2 << 20, "{relay:?}");
        let mut needles = Needles::default();
        secrets.iter().for_each(|(name, secret)| needles.add(name, secret));
        for who in ["base", "car"] {
            let bytes = std::fs::read(self.home.path(who).join("identity")).unwrap();
            needles.add(who, &bytes);
        }
        let packets = self.recorder.finish();
        let bytes: usize = packets.iter().map(Vec::len).sum();
        assert!(bytes as u64 > 2 * carried, "{bytes} bytes recorded on two wires");
        for packet in &packets {
            let found = needles.find(packet);
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn two_machines_talk_by_tcp_and_udp_through_one_that_holds_no_key() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    assert_eq!(number(&car.started, "mtu"), 1500 - 28 - 89);
    let server = row.echo();
    let long = text(1 << 20, 7);
    row.echoes(&long);

    // A car that is killed goes on.
    drop(car);
    let car = row.end(0, "car");
    let short = text(5000, 8);
    let begun = Instant::now();
    row.echoes(&short);
    println!("after a kill it went on within {:?}", begun.elapsed());

    // A datagram to nobody goes nowhere, and other datagrams arrive.
    let word = text(400, 9);
    let told = word.clone();
    let socket = row.on(1, || UdpSocket::bind((BASE, 7001)).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    row.on(0, move || {
        let own = UdpSocket::bind((CAR, 0)).unwrap();
        own.send_to(&told, ("10.9.0.77", 7001)).unwrap();
        own.send_to(&told, (BASE, 7001)).unwrap();
    });
    let mut got = [0; 500];
    let length = socket.recv(&mut got).unwrap();
    assert_eq!(got[..length], word);
    row.end_echo(server);

    let dropped = |said: &Value, why| said.field("dropped").and_then(|all| all.field(why)).cloned();
    let (car, base) = (car.stop(), base.stop());
    assert!(dropped(&car, "no_member").is_some(), "{car:?}");
    assert_eq!(dropped(&base, "false_address"), None, "{base:?}");
    row.search(&[("long", &long[..4096]), ("short", &short), ("datagram", &word)]);
}

/// One end has an interface of frames, and asks by ARP for whom it talks to; the other has one that
/// goes packet by packet.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn ends_with_interfaces_of_all_kinds_talk_to_each_other() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    for (who, kind) in [("car", "kind = \"tap\""), ("base", "offload = false")] {
        let path = row.home.path(&format!("{who}.toml"));
        let config = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, config.replace("[mesh]\n", &format!("[mesh]\n{kind}\n"))).unwrap();
    }
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let server = row.echo();
    let long = text(2 << 20, 11);
    row.echoes(&long);
    row.end_echo(server);
    let dropped = car.stop().field("dropped").and_then(|all| all.field("link_fault")).cloned();
    assert_eq!(dropped, None, "the machine's own address is known");
    drop(base);
    row.search(&[("long", &long[..4096])]);
}

/// A packet of nothing but a header.
fn packet(from: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&from);
    packet[16..].copy_from_slice(&[10, 9, 0, 1]);
    packet
}

/// A member gone bad, which seals whatever it likes.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_member_speaks_for_no_address_but_its_own_and_for_each_packet_once() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let base = row.end(1, "base");
    let member = |who| KeyFolder::open(&row.home.path(who), None).unwrap().group("fleet").unwrap();
    let socket = row.on(0, || UdpSocket::bind("10.77.1.1:9190").unwrap());
    let send = |frame: &[u8]| {
        socket.send_to(frame, "10.77.1.2:9190").unwrap();
    };
    let (mut sender, mut buf) = (member("car").sender().unwrap(), FrameBuf::new());
    send(sender.announce(&mut buf).unwrap());
    let fields = HeaderFields {
        destination: member("base").source().unwrap(),
        codec: 0,
        ..sender.fields(Class::Group, DataType::PACKET.number())
    };
    let another_type = HeaderFields { data_type: 1, ..fields };
    let cases = [
        (&fields, packet([10, 9, 0, 2]), 2),
        (&fields, packet([10, 9, 0, 1]), 1),
        (&fields, packet([10, 9, 0, 9]), 1),
        (&fields, vec![0x45], 1),
        (&another_type, packet([10, 9, 0, 2]), 1),
    ];
    for (fields, packet, times) in cases {
        let frame = sender.seal(fields, &Binding::link(), &packet, &mut buf).unwrap();
        (0..times).for_each(|_| send(frame));
    }
    row.told(1, "base", |told| {
        let Some(Value::Array(all)) = told.field("dropped") else { return false };
        all.iter().map(|one| number(one, "units")).sum::<u64>() >= 5
    });
    let said = base.stop();
    let dropped = said.field("dropped").unwrap();
    assert_eq!((number(dropped, "false_address"), number(dropped, "unopened")), (3, 2), "{said:?}");
}

/// A group changes under an end that runs: members that have come and gone are known without a
/// signal, and a configuration may name those who are yet to come.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn an_end_knows_who_comes_and_goes_without_a_signal() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let config = std::fs::read_to_string(row.home.path("base.toml")).unwrap();
    let config = format!("{config}[[mesh.member]]\nslot = 2\nprefixes = [\"10.9.0.3/32\"]\n");
    std::fs::write(row.home.path("base.toml"), config).unwrap();
    let base = row.end(1, "base");
    let members = |told: &Value| match told.field("groups") {
        Some(Value::Array(groups)) => number(groups.last().unwrap(), "members"),
        _ => panic!("no groups: {told:?}"),
    };
    let awaited = |told: &Value| told.field("end").unwrap().field("awaited").cloned();
    let list =
        |slots: &[u64]| Some(Value::Array(slots.iter().map(|slot| Value::from(*slot)).collect()));
    let told = row.told(1, "base", |told| members(told) == 2);
    assert_eq!(awaited(&told), list(&[2]), "{told:?}");
    let mut line = Vec::new();
    sealane_codec::encode(sealane::Codec::Json, &told, &mut line);
    StatusPage::read().compare("mesh status CONFIG", &String::from_utf8(line).unwrap());
    row.home.run("bus", &["key", "new", "bus"]);
    row.home.join("base", "bus");
    row.told(1, "base", |told| members(told) == 3 && awaited(told) == list(&[]));
    row.home.run("base", &["group", "revoke", "fleet", "1"]);
    let told = row.told(1, "base", |told| members(told) == 2);
    assert_eq!(awaited(&told), list(&[1]), "{told:?}");
    assert!(number(told.field("end").unwrap(), "epoch") > 0, "{told:?}");
    drop(base.stop());
}

/// The wire of an end's link goes away and comes back: what is sent meanwhile is counted, and it
/// goes on by itself.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_wire_that_vanishes_and_returns_is_used_again() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let server = row.echo();
    let sent = text(5000, 3);
    row.echoes(&sent);
    row.net.side(0).ip("link set wire1 down");
    let faults = |told: &Value| match told.field("dropped") {
        Some(Value::Array(all)) => {
            all.iter().any(|one| one.field("reason").and_then(Value::as_text) == Some("link_fault"))
        }
        _ => false,
    };
    row.told(0, "car", faults);
    row.net.side(0).ip("link set wire1 up");
    row.echoes(&sent);
    row.end_echo(server);
    drop((car.stop(), base.stop()));
}
