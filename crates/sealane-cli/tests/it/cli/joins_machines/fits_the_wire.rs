//! Packets and frames that are longer than a wire takes at once: who sends a packet that the
//! interface does not take is told by the kernel, and frames go in parts where a wire, or the path
//! behind it, is narrower than its link says.

use super::*;

/// Replaces a part of the configuration of a machine.
fn edit(home: &Home, who: &str, from: &str, to: &str) {
    let path = home.path(&format!("{who}.toml"));
    let config = std::fs::read_to_string(&path).unwrap();
    assert!(config.contains(from), "{from}: {config}");
    std::fs::write(path, config.replace(from, to)).unwrap();
}

/// A machine beside the car, which knows the car alone.
fn phone_beside_the_car(row: &Row) -> NetSpace {
    let phone = NetSpace::new("phone");
    let at = |host: u8| [format!("10.88.0.{host}/24"), format!("fd88::{host}/64")];
    lay_wire("cabin", [(row.net.side(0), &at(1)), (&phone, &at(2))]);
    phone.ip("route add default via 10.88.0.1");
    phone.ip("-6 route add default via fd88::1");
    for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        let mut shell = row.net.on_side(0, Path::new("sh"));
        succeed(shell.args(["-c", &format!("echo 1 > /proc/sys/net/{switch}")]));
    }
    phone
}

/// Sends a word from a machine until it has come whole, which the sender's kernel sees to once it
/// knows how wide the way is.
fn send_until_it_comes(from: &NetSpace, to: (&'static str, u16), word: &[u8], socket: &UdpSocket) {
    let own = match to.0.contains(':') {
        true => "[::]:0",
        false => "0.0.0.0:0",
    };
    let own = from.on(move || UdpSocket::bind(own).unwrap());
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut got = vec![0; 1 << 16];
    until(&format!("{} bytes come to {to:?}", word.len()), || {
        // The first ones are refused, or lost.
        let _ = own.send_to(word, to);
        let length = socket.recv(&mut got);
        length.is_ok_and(|length| {
            assert_eq!(got[..length], *word);
            true
        })
    });
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn what_is_longer_than_the_interface_is_answered_with_its_width() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    for (who, own) in [("car", "fd09::2/64"), ("base", "fd09::1/64")] {
        edit(&row.home, who, "/24\"]\n", &format!("/24\", \"{own}\"]\n"));
        edit(&row.home, who, "10.9.0.1/32\"", "10.9.0.1/32\", \"fd09::1/128\"");
        let behind_car = "10.9.0.2/32\", \"fd09::2/128\", \"10.88.0.0/24\", \"fd88::/64\"";
        edit(&row.home, who, "10.9.0.2/32\"", behind_car);
    }
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let width = number(&car.started, "mtu");
    let phone = phone_beside_the_car(&row);
    row.net.side(1).ip("route add 10.88.0.0/24 dev sealane0");
    row.net.side(1).ip("-6 route add fd88::/64 dev sealane0");
    for (to, at) in [(BASE, "10.9.0.1:7001"), ("fd09::1", "[fd09::1]:7001")] {
        let socket = row.on(1, move || UdpSocket::bind(at).unwrap());
        // It fits the phone's own wire, and not the interface behind the car.
        let word = text(1400, 5);
        send_until_it_comes(&phone, (to, 7001), &word, &socket);
        let route = phone.ip(&format!("route get {to}"));
        assert!(route.contains(&format!("mtu {width}")), "{route}");
    }
    drop((car.stop(), base.stop()));
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn frames_go_in_parts_where_a_wire_is_narrower_than_its_link_says() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    for (side, mtu) in [(0, 1000), (1, 1280)] {
        let words = format!("link set wire{} mtu {mtu}", side + 1);
        row.net.side(side).ip(&words);
        row.net.hub().ip(&words);
    }
    let server = row.echo();
    let long = text(2 << 20, 21);
    row.echoes(&long);
    row.end_echo(server);
    for said in [car.stop(), base.stop()] {
        let faults = said.field("dropped").and_then(|all| all.field("link_fault"));
        assert_eq!(faults, None, "{said:?}");
    }
    row.search(&[("long", &long[..4096])]);
}

/// The phone is the member here, and the car a router between it and the relay: the wire behind the
/// router is narrower than the phone's own, which only the router can tell.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn frames_go_in_parts_where_the_path_behind_a_wire_is_narrower() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let phone = phone_beside_the_car(&row);
    row.net.side(0).ip("link set wire1 mtu 1000");
    row.net.hub().ip("link set wire1 mtu 1000");
    row.net.hub().ip("route add 10.88.0.0/24 via 10.77.1.1");
    edit(&row.home, "car", "udp = \"10.77.1.1:9190\"", "udp = \"10.88.0.2:9190\"");
    edit(&row.home, "relay", "address = \"10.77.1.1:9190\"", "address = \"10.88.0.2:9190\"");
    row.relay.process.signal("HUP");
    let taken = |told: &Value| number(told.field("reloads").unwrap(), "taken");
    row.told_by_relay(|told| taken(told) == 1);
    let mut command = phone.command(program());
    command.args(["--json", "mesh", "up", "fleet"]).arg(row.home.path("car.toml"));
    command.env("SEALANE_KEYS", row.home.path("car"));
    let (car, base) = (Machine::start(command), row.end(1, "base"));
    let server = row.echo();
    let long = text(1 << 20, 22);
    let sent = long.clone();
    let got = phone.on(move || there_and_back(sent));
    assert!(got == long, "{} bytes came back", got.len());
    phone.on(|| there_and_back(Vec::new()));
    server.join().unwrap();
    drop((car.stop(), base.stop()));
}

/// A route may say that packets are longer than the interface takes: they go in parts, too.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_packet_longer_than_the_interface_goes_whole_where_a_route_has_it_so() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let socket = row.on(1, || UdpSocket::bind((BASE, 7001)).unwrap());
    send_until_it_comes(row.net.side(0), (BASE, 7001), b"so far it goes", &socket);
    row.net.side(0).ip("route replace 10.9.0.1/32 dev sealane0 mtu 4000");
    let units = |told: &Value| number(told.field("delivered").unwrap(), "units");
    let before = units(&row.told(1, "base", |_| true));
    let word = text(3000, 6);
    let told = word.clone();
    row.on(0, move || {
        let own = UdpSocket::bind((CAR, 0)).unwrap();
        own.send_to(&told, (BASE, 7001)).unwrap();
    });
    let mut got = vec![0; 1 << 16];
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // Before it may come what was sent more than once.
    while socket.recv(&mut got).unwrap() < word.len() {}
    assert_eq!(got[..word.len()], word);
    drop(car.stop());
    assert!(units(&base.stop()) > before);
}
