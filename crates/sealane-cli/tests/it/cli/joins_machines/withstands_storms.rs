//! A storm of ARP, neighbour discovery and router advertisements on an interface of frames: it ends
//! there, what is answered is bounded, and packets go on.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, bind};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, eth, recv, send, socket_with,
    sockopt,
};

use super::*;

const ROUNDS: u32 = 4000;
/// The memory that an end may take more than before, whatever comes.
const GROWTH_KIB: u64 = 8 << 10;

/// A socket that sends any frame on the interface, and receives those of ARP.
fn packet_socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(eth::ARP));
    let socket = socket.unwrap();
    let mut of_name = getifaddrs().unwrap().filter(|one| one.interface_name == "sealane0");
    let link = |one: nix::ifaddrs::InterfaceAddress| -> Option<LinkAddr> {
        one.address?.as_link_addr().copied()
    };
    let card = of_name.find_map(link).unwrap();
    bind(socket.as_raw_fd(), &card).unwrap();
    sockopt::set_socket_recv_buffer_size_force(socket.as_fd(), 64 << 20).unwrap();
    socket
}

/// A frame of a machine that is another one each time.
fn frame(number: u32, to: [u8; 6], kind: u16, inside: &[u8]) -> Vec<u8> {
    [&to[..], &host(number), &kind.to_be_bytes(), inside].concat()
}

fn host(number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [2, 0x77, a, b, c, d]
}

/// A question for an address behind the base.
fn question(number: u32) -> Vec<u8> {
    let [_, _, a, b] = number.to_be_bytes();
    let parts: [&[u8]; 5] =
        [&[0, 1, 8, 0, 6, 4, 0, 1], &host(number), &[10, 9, a.max(1), b], &[0; 6], &[10, 9, 0, 1]];
    frame(number, [0xff; 6], 0x0806, &parts.concat())
}

/// An advertisement of a router, as anybody may send it: it promises a network and a way out.
fn advertisement(number: u32) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 16, 58, 255];
    packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(number.to_be_bytes());
    packet.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([134, 0, 0, 0, 64, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame(number, [0x33, 0x33, 0, 0, 0, 1], 0x86dd, &packet)
}

/// The outcome of the storm: answers of the end, and how long it took.
struct Storm {
    answers: u64,
    took: Duration,
}

fn storm() -> Storm {
    let socket = packet_socket();
    let (begun, mut answers) = (Instant::now(), 0);
    for number in 0..ROUNDS {
        let mut cut = question(number);
        cut.truncate(14 + number as usize % 28);
        let long = frame(number, [0xff; 6], 0x0800, &[0x45; 1300]);
        for one in [question(number), advertisement(number), cut, long] {
            // If the interface has no room for a frame, the frame is lost, as on any wire.
            let _ = send(&socket, &one, SendFlags::empty());
        }
        answers += count_answers(&socket);
    }
    while answers == 0 && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
        answers += count_answers(&socket);
    }
    Storm { answers, took: begun.elapsed() }
}

fn count_answers(socket: &OwnedFd) -> u64 {
    let (mut count, mut frame) = (0, [0; 2048]);
    while let Ok((_, bytes)) = recv(socket, frame.as_mut_slice(), RecvFlags::empty()) {
        let is_answer = bytes > 21 && frame[20..22] == [0, 2] && frame[6..8] == [2, 0x5e];
        count += u64::from(is_answer);
    }
    count
}

#[test]
#[ignore = "lab: needs root (network namespaces)"]
fn a_storm_on_an_interface_of_frames_ends_there() {
    let _turn = crate::TURN.beside();
    let row = Row::new();
    let path = row.home.path("car.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, config.replace("[mesh]\n", "[mesh]\nkind = \"tap\"\n")).unwrap();
    let (car, base) = (row.end(0, "car"), row.end(1, "base"));
    let server = row.echo();
    let short = text(5000, 41);
    row.echoes(&short);
    let before = row.told(1, "base", |_| true);
    let memory = || sealane_testing::process_memory_kib(car.process.id(), "RssAnon:");
    let kib = memory();
    let Storm { answers, took } = row.on(0, storm);
    let grown = memory().saturating_sub(kib);
    assert!(grown < GROWTH_KIB, "it grew by {grown} KiB");
    let most = sealane_link::limits::MAX_TAP_ANSWERS_PER_SECOND;
    let most = f64::from(most) * (took.as_secs_f64() + 1.0);
    assert!(answers > 0 && answers as f64 <= most, "{answers} answers in {took:?}");
    println!("{answers} answers in {took:?}, {grown} KiB more");
    // Nothing of it has travelled, and what should travel does.
    let delivered = |told: &Value| number(told.field("delivered").unwrap(), "units");
    let after = row.told(1, "base", |_| true);
    assert!(delivered(&after) < delivered(&before) + 200, "{after:?}");
    row.echoes(&short);
    row.end_echo(server);
    drop((car.stop(), base.stop()));
}
