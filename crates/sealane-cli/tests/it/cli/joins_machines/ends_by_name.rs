//! How an end ends: when its interface is deleted, by name, so that whoever keeps it running starts
//! it again; and when it is asked to, with all that waited for it carried.

use std::collections::HashSet;

use rustix::net::sockopt;

use super::*;

/// The program that a unit of `packaging/` starts, with files of the test in the place of its own.
fn started_by(unit: &str, row: &Row, side: Option<usize>, who: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(unit);
    let unit = std::fs::read_to_string(path).unwrap().replace("%i", "fleet");
    assert!(unit.contains("\nRestart=on-failure\n"), "{unit}");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/sealane "));
    let mut command = match side {
        Some(side) => row.net.on_side(side, program()),
        None => row.net.on_hub(program()),
    };
    command.arg("--json").env("SEALANE_KEYS", row.home.path(who));
    for word in line.unwrap().split(' ') {
        match word.starts_with("/etc/sealane/") {
            true => command.arg(row.home.path(&format!("{who}.toml"))),
            false => command.arg(word),
        };
    }
    Machine::start(command)
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn the_units_of_relays_and_ends_start_them() {
    let _turn = crate::TURN.beside();
    let mut row = Row::new();
    assert!(row.relay.process.stop().success());
    row.relay = started_by("sealane-relay.service", &row, None, "relay");
    let mesh = "sealane-mesh@.service";
    let [car, base] =
        [(0, "car"), (1, "base")].map(|(side, who)| started_by(mesh, &row, Some(side), who));
    let server = row.echo();
    let short = text(5000, 33);
    row.echoes(&short);
    row.end_echo(server);
    drop((car.stop(), base.stop()));
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn an_end_whose_interface_is_deleted_ends_by_name_and_makes_it_again() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let base = row.end(1, "base");
    let server = row.echo();
    let log = row.home.path("car.log");
    let mut command = row.net.on_side(0, program());
    command.args(["--json", "mesh", "up", "fleet"]).arg(row.home.path("car.toml"));
    command.env("SEALANE_KEYS", row.home.path("car")).stderr(File::create(&log).unwrap());
    let mut car = Machine::start(command);
    let short = text(5000, 31);
    row.echoes(&short);
    row.net.side(0).ip("link delete sealane0");
    assert_eq!(car.process.ended().code(), Some(1));
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("SL-LINK-09") && said.contains("sealane0"), "{said}");
    drop(car);
    let car = row.end(0, "car");
    row.echoes(&short);
    row.end_echo(server);
    drop((car.stop(), base.stop()));
}

/// Packets of a program wait in the interface, and frames of the base at the link, when the car is
/// asked to end.
#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn what_waits_when_an_end_is_asked_to_end_is_carried() {
    const WAITING: u16 = 400;
    const BEHIND: u16 = 20;
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let at_base = row.on(1, || UdpSocket::bind((BASE, 7001)).unwrap());
    let at_car = row.on(0, || UdpSocket::bind((CAR, 7001)).unwrap());
    for (from, to, socket) in [(&at_car, BASE, &at_base), (&at_base, CAR, &at_car)] {
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        sockopt::set_socket_recv_buffer_size_force(socket, 8 << 20).unwrap();
        until(&format!("something comes to {to}"), || {
            from.send_to(&[255; 100], (to, 7001)).unwrap();
            socket.recv(&mut [0; 200]).is_ok()
        });
    }
    car.process.signal("STOP");
    let sent = |told: &Value| number(told.field("sent").unwrap(), "units");
    let before = sent(&row.told_by_relay(|_| true));
    let datagram = |number: u16| [&number.to_be_bytes()[..], &[7; 98]].concat();
    for number in 0..WAITING {
        at_car.send_to(&datagram(number), (BASE, 7001)).unwrap();
        at_base.send_to(&datagram(number), (CAR, 7001)).unwrap();
    }
    // Some more follow, so that announcements are not taken for them: what is for the car waits at
    // its link once the relay has sent as many.
    (0..BEHIND).for_each(|_| drop(at_base.send_to(&datagram(WAITING), (CAR, 7001))));
    row.told_by_relay(|told| sent(told) >= before + u64::from(WAITING + BEHIND));
    car.process.signal("TERM");
    car.process.signal("CONT");
    let count = |socket: &UdpSocket| {
        let (mut numbers, mut got) = (HashSet::new(), [0_u8; 200]);
        let begun = Instant::now();
        while numbers.len() < usize::from(WAITING) && begun.elapsed() < PATIENCE {
            let number = socket.recv(&mut got).map(|_| u16::from_be_bytes([got[0], got[1]]));
            numbers.extend(number.ok().filter(|number| *number < WAITING));
        }
        numbers.len()
    };
    let [to_base, to_car] = [&at_base, &at_car].map(count);
    assert_eq!((to_base, to_car), (usize::from(WAITING), usize::from(WAITING)));
    let mut car = car;
    assert!(car.process.ended().success());
    drop(base.stop());
}
