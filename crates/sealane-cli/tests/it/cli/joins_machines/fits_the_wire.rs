//! Packets and frames that are longer than a wire takes at once: who sends a packet that the
//! interface does not take is told by the kernel, and frames go in parts where a wire, or the path
//! behind it, is narrower than its link says.

use super::*;

/// Runs `ip` on a side's machine.
fn ip_on(row: &Row, side: usize, words: &str) {
    let mut ip = row.net.on_side(side, Path::new("ip"));
    let output = ip.args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs `ip` on the relay's machine.
fn ip_on_hub(row: &Row, words: &str) {
    let mut ip = row.net.on_hub(Path::new("ip"));
    assert!(ip.args(words.split(' ')).status().unwrap().success(), "{words}");
}

/// Replaces a part of the configuration of a machine.
fn edit(home: &Home, who: &str, from: &str, to: &str) {
    let path = home.path(&format!("{who}.toml"));
    let config = std::fs::read_to_string(&path).unwrap();
    assert!(config.contains(from), "{from}: {config}");
    std::fs::write(path, config.replace(from, to)).unwrap();
}

/// A machine beside the car, which knows the car alone.
struct Phone {
    name: String,
}

impl Phone {
    fn beside_the_car(row: &Row) -> Phone {
        let phone = Phone { name: format!("sealane-{}-phone", std::process::id()) };
        let (name, car) = (&phone.name, row.net.side(0));
        for line in [
            format!("netns add {name}"),
            format!("-n {car} link add cabin type veth peer cabin netns {name}"),
            format!("-n {car} address add 10.88.0.1/24 dev cabin"),
            format!("-n {car} address add fd88::1/64 dev cabin nodad"),
            format!("-n {car} link set cabin up"),
            format!("-n {name} address add 10.88.0.2/24 dev cabin"),
            format!("-n {name} address add fd88::2/64 dev cabin nodad"),
            format!("-n {name} link set cabin up"),
            format!("-n {name} link set lo up"),
            format!("-n {name} route add default via 10.88.0.1"),
            format!("-n {name} -6 route add default via fd88::1"),
        ] {
            assert!(phone.ip(&line).0, "ip {line}");
        }
        for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let mut shell = row.net.on_side(0, Path::new("sh"));
            let status = shell.args(["-c", &format!("echo 1 > /proc/sys/net/{switch}")]).status();
            assert!(status.unwrap().success(), "{switch}");
        }
        phone
    }

    fn ip(&self, words: &str) -> (bool, String) {
        let output = Command::new("ip").args(words.split(' ')).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.ip(&format!("netns delete {}", self.name));
    }
}

/// Sends a word from a machine until it has come whole, which the sender's kernel sees to once it
/// knows how wide the way is.
fn send_until_it_comes(from: &str, to: (&'static str, u16), word: &[u8], socket: &UdpSocket) {
    let own = match to.0.contains(':') {
        true => "[::]:0",
        false => "0.0.0.0:0",
    };
    let own = within(from, move || UdpSocket::bind(own).unwrap()).join().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (begun, mut got) = (Instant::now(), vec![0; 1 << 16]);
    loop {
        assert!(begun.elapsed() < PATIENCE, "nothing came of {} bytes to {to:?}", word.len());
        // The first ones are refused, or lost.
        let _ = own.send_to(word, to);
        if let Ok(length) = socket.recv(&mut got) {
            assert_eq!(got[..length], *word);
            return;
        }
    }
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn what_is_longer_than_the_interface_is_answered_with_its_width() {
    let _turn = crate::TURN.blocking_lock();
    let row = Row::new();
    for (who, own) in [("car", "fd09::2/64"), ("base", "fd09::1/64")] {
        edit(&row.home, who, "/24\"]\n", &format!("/24\", \"{own}\"]\n"));
        edit(&row.home, who, "10.9.0.1/32\"", "10.9.0.1/32\", \"fd09::1/128\"");
        let behind_car = "10.9.0.2/32\", \"fd09::2/128\", \"10.88.0.0/24\", \"fd88::/64\"";
        edit(&row.home, who, "10.9.0.2/32\"", behind_car);
    }
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let width = number(&car.started, "mtu");
    let phone = Phone::beside_the_car(&row);
    ip_on(&row, 1, "route add 10.88.0.0/24 dev sealane0");
    ip_on(&row, 1, "-6 route add fd88::/64 dev sealane0");
    for (to, at) in [(BASE, "10.9.0.1:7001"), ("fd09::1", "[fd09::1]:7001")] {
        let socket = row.on(1, move || UdpSocket::bind(at).unwrap());
        // It fits the phone's own wire, and not the interface behind the car.
        let word = text(1400, 5);
        send_until_it_comes(&phone.name, (to, 7001), &word, &socket);
        let (_, route) = phone.ip(&format!("-n {} route get {to}", phone.name));
        assert!(route.contains(&format!("mtu {width}")), "{route}");
    }
    drop((car.stop(), base.stop()));
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn frames_go_in_parts_where_a_wire_is_narrower_than_its_link_says() {
    let _turn = crate::TURN.blocking_lock();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    for (side, mtu) in [(0, 1000), (1, 1280)] {
        let words = format!("link set wire{} mtu {mtu}", side + 1);
        ip_on(&row, side, &words);
        ip_on_hub(&row, &words);
    }
    let listener = row.on(1, || TcpListener::bind((BASE, 7000)).unwrap());
    let server = std::thread::spawn(move || echo(&listener));
    let long = text(2 << 20, 21);
    let sent = long.clone();
    let got = row.on(0, move || there_and_back(sent));
    assert!(got == long, "{} bytes came back", got.len());
    row.on(0, || there_and_back(Vec::new()));
    server.join().unwrap();
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
    let _turn = crate::TURN.blocking_lock();
    let row = Row::new();
    let phone = Phone::beside_the_car(&row);
    ip_on(&row, 0, "link set wire1 mtu 1000");
    ip_on_hub(&row, "link set wire1 mtu 1000");
    ip_on_hub(&row, "route add 10.88.0.0/24 via 10.77.1.1");
    edit(&row.home, "car", "udp = \"10.77.1.1:9190\"", "udp = \"10.88.0.2:9190\"");
    edit(&row.home, "relay", "address = \"10.77.1.1:9190\"", "address = \"10.88.0.2:9190\"");
    let id = row.relay.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "HUP", &id]).status().unwrap().success());
    let taken = |told: &Value| number(told.field("reloads").unwrap(), "taken");
    row.told_by_relay(|told| taken(told) == 1);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &phone.name, env!("CARGO_BIN_EXE_sealane"), "--json"]);
    command.args(["mesh", "up", "fleet"]).arg(row.home.path("car.toml"));
    command.env("SEALANE_KEYS", row.home.path("car"));
    let (car, base) = (Machine::start(command), row.end(1, "base"));
    let listener = row.on(1, || TcpListener::bind((BASE, 7000)).unwrap());
    let server = std::thread::spawn(move || echo(&listener));
    let long = text(1 << 20, 22);
    let sent = long.clone();
    let got = within(&phone.name, move || there_and_back(sent)).join().unwrap();
    assert!(got == long, "{} bytes came back", got.len());
    within(&phone.name, || there_and_back(Vec::new())).join().unwrap();
    server.join().unwrap();
    drop((car.stop(), base.stop()));
}

/// A route may say that packets are longer than the interface takes: they go in parts, too.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_packet_longer_than_the_interface_goes_whole_where_a_route_has_it_so() {
    let _turn = crate::TURN.blocking_lock();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let socket = row.on(1, || UdpSocket::bind((BASE, 7001)).unwrap());
    send_until_it_comes(row.net.side(0), (BASE, 7001), b"so far it goes", &socket);
    ip_on(&row, 0, "route replace 10.9.0.1/32 dev sealane0 mtu 4000");
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
